//! What holds of every decision, whatever is seen: it is the same every time, it breaks no law, it never panics, it
//! accounts for every concern, and it stays small. And each law is a real one: a bad decision breaks it.

mod common;
#[path = "matrix/possible.rs"]
mod possible;

use cocoon_operator::core::action::{Action, Attempt, Change, Live, MetaPatch, Question, Want};
use cocoon_operator::core::call::{Call, call};
use cocoon_operator::core::cocoonset::laws::{self, LAWS};
use cocoon_operator::core::cocoonset::observed::{
    Lease, LivePod, Manifest, NamespaceSeen, Observed, Rival, SetFacts, Snapshot,
};
use cocoon_operator::core::contract::keys;
use cocoon_operator::core::contract::names::Role;
use cocoon_operator::core::control::pass::{Next, Pass};
use cocoon_operator::core::decide::{Observation, decide, explain};
use cocoon_operator::core::decision::{Decision, Entry};
use cocoon_operator::core::fact::Fact;
use cocoon_operator::core::outcome::{Class, Effect, Outcome};
use cocoon_operator::core::pod::facts::PodFacts;
use cocoon_operator::core::rule::RuleId;
use cocoon_operator::core::vanished::Vanished;
use cocoon_operator::core::wire::Verb;
use common::stage::Stage;
use common::world::{State, World};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// Any JSON, with the words in it that the core looks for.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        prop::sample::select(vec!["", "true", "static", "never", "-1", "99999999999999999999", "ü😀\u{0}", "{}"])
            .prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 48, 6, |inner| {
        let key = prop::sample::select(vec![
            "agent",
            "image",
            "replicas",
            "toolboxes",
            "name",
            "mode",
            "suspend",
            "resources",
            "limits",
            "cpu",
            "phase",
            "agents",
            "vmName",
            "conditions",
            "type",
            "slot",
            "x",
        ]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(key, inner, 0..6)
                .prop_map(|map| map.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()),
        ]
    })
}

fn annotation_key() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        keys::REBUILD_HISTORY,
        keys::REBUILD_HISTORY_ROLES,
        keys::DELETE_VM_NAMES,
        keys::VM_RECORDS,
        keys::ACCEPT_NODE_LOSS,
        keys::PAUSED,
        keys::HIBERNATED_ON_NODE,
        keys::GENERATION,
        keys::VM_NAME,
        keys::VM_ID,
        keys::TEMPLATE,
        keys::LIFECYCLE_STATE,
        keys::CONN_TYPE,
        keys::MANAGED,
        keys::HIBERNATE,
        keys::DEAD_LETTER,
    ])
}

fn annotation_value() -> impl Strategy<Value = String> {
    prop_oneof![
        ".{0,24}",
        any_json().prop_map(|json| json.to_string()),
        Just(json!({ "1": { "count": 4, "lastDeleted": "2099-01-01T00:00:00Z" } }).to_string()),
        Just("vk-ns-demo-0,vk-other-x-1, ,vk-ns-demo-9".to_owned()),
        Just("failed".to_owned()),
        Just("true".to_owned()),
    ]
}

#[derive(Clone, Debug)]
struct PodPlan {
    role: Role,
    state: State,
    deleting: bool,
    owned: bool,
    image: bool,
    extra: Option<(&'static str, String)>,
}

fn pod_plan() -> impl Strategy<Value = PodPlan> {
    let role = prop_oneof![
        3 => Just(Role::Main),
        3 => (1u32..5).prop_map(Role::SubAgent),
        2 => prop::sample::select(vec!["box", "desk"]).prop_map(|name| Role::Toolbox(name.to_owned())),
    ];
    let state = prop_oneof![
        4 => Just(State::Ready),
        1 => Just(State::Unbound),
        1 => Just(State::Booting),
        1 => Just(State::Failed),
        1 => Just(State::FailedButRuns),
    ];
    let extra = prop::option::weighted(0.2, (annotation_key(), annotation_value()));
    (role, state, prop::bool::weighted(0.15), prop::bool::weighted(0.9), prop::bool::weighted(0.2), extra)
        .prop_map(|(role, state, deleting, owned, image, extra)| PodPlan { role, state, deleting, owned, image, extra })
}

fn spec() -> impl Strategy<Value = Value> {
    let replicas = prop_oneof![4 => 0i64..4, 1 => Just(i64::from(i32::MAX)), 1 => Just(-7i64)];
    let toolboxes = prop::collection::vec(prop::sample::select(vec!["box", "desk", "3", "Bad_Name"]), 0..3);
    let sane = (replicas, toolboxes, any::<bool>(), prop::sample::select(vec!["img", ""])).prop_map(
        |(replicas, names, suspend, image)| {
            let toolboxes: Vec<Value> = names.iter().map(|name| json!({ "name": name, "image": "img" })).collect();
            let mut spec = json!({ "agent": { "image": image, "replicas": replicas }, "toolboxes": toolboxes });
            spec["suspend"] = json!(suspend && names.len() == 2);
            spec
        },
    );
    prop_oneof![6 => sane, 1 => any_json()]
}

/// A cluster in some state, and how far the operator's watches have seen it.
fn state() -> impl Strategy<Value = Stage> {
    let set = (prop::bool::weighted(0.8), prop::bool::weighted(0.25), 0i64..3, prop::option::of(any_json()));
    let notes = prop::collection::vec((annotation_key(), annotation_value()), 0..2);
    let tags = prop::collection::vec(0u32..3, 0..2);
    let surroundings = (any::<bool>(), prop::bool::weighted(0.1), tags);
    (spec(), set, notes, prop::collection::vec(pod_plan(), 0..6), surroundings).prop_map(
        |(spec, (claimed, deleting, generation, status), notes, pods, (node_ready, namespace_going, tags))| {
            let mut world = World::of(spec);
            for plan in &pods {
                let name = world.add_pod(&plan.role, plan.state);
                world.edit_pod(&name, |pod| spoil(pod, plan));
            }
            world.edit(|set| {
                set["metadata"]["generation"] = json!(generation);
                set["status"] = status.unwrap_or_default();
                set["metadata"]["annotations"] =
                    notes.into_iter().map(|(key, value)| (key.to_owned(), json!(value))).collect();
                if !claimed {
                    set["metadata"]["finalizers"] = json!(["somebody/else"]);
                }
                if deleting {
                    set["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:10:00Z");
                }
            });
            world.add_node(common::NODE, node_ready);
            if namespace_going {
                world.namespace.as_mut().expect("a namespace")["status"] = json!({ "phase": "Terminating" });
            }
            for slot in tags {
                world.tags.insert(format!("vk-ns-demo-{slot}:hibernate"), "sha256:d".to_owned());
            }
            Stage::new(world)
        },
    )
}

fn spoil(pod: &mut Value, plan: &PodPlan) {
    if plan.deleting {
        pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:20:00Z");
    }
    if !plan.owned {
        pod["metadata"]["ownerReferences"] = json!([]);
    }
    if plan.image {
        let notes = &mut pod["metadata"]["annotations"];
        notes[keys::IMAGE] = json!("older");
        notes.as_object_mut().expect("annotations").remove(keys::TEMPLATE);
    }
    if let Some((key, value)) = &plan.extra {
        pod["metadata"]["annotations"][key] = json!(value);
    }
}

/// What a pass may meet: mostly the truth, and sometimes any failure at all.
fn answers() -> impl Strategy<Value = Vec<Option<Class>>> {
    let failures: Vec<Class> = Class::ALL.iter().copied().filter(|class| class.effect() != Effect::Happened).collect();
    prop::collection::vec(prop::option::weighted(0.3, prop::sample::select(failures)), 64)
}

fn accounted(decision: &Decision) {
    let names: Vec<&str> = Observed::CONCERNS.iter().map(|concern| concern.name).collect();
    let mut told = Vec::new();
    let mut spoke = 0;
    for entry in &decision.trace {
        match entry {
            Entry::Passed { concern, .. } | Entry::NotAsked { concern } => told.push(*concern),
            Entry::Spoke(_) => spoke += 1,
        }
    }
    let in_order: Vec<&str> = names.iter().copied().filter(|name| told.contains(name)).collect();
    assert_eq!(told, in_order, "each concern once, and in order");
    assert!(told.len() == names.len() || spoke > 0, "a concern that neither passed nor spoke");
}

/// An action whose request could hit another object than the one decided on, or be answered from the API server's cache.
fn unguarded(seen: &Observed, decision: &Decision) -> Option<String> {
    let subject = seen.subject();
    decision.actions.iter().find_map(|action| {
        let Call::Api { verb, request, .. } = call(&subject, action)? else { return None };
        let names =
            |pointer: &str| request.body.pointer(pointer).and_then(Value::as_str).is_some_and(|it| !it.is_empty());
        let guarded = match verb {
            Verb::Get | Verb::List => !request.query.iter().any(|(key, _)| key.starts_with("resourceVersion")),
            Verb::Delete => names("/preconditions/uid"),
            Verb::Patch if request.path.contains("/pods/") => names("/metadata/uid"),
            Verb::Patch => names("/metadata/resourceVersion") || request.body[0]["op"] == "test",
            _ => true,
        };
        (!guarded).then(|| format!("{request:?}"))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_same_is_decided_twice_and_no_law_is_broken(mut stage in state()) {
        let seen = stage.observe().expect("a set");
        let decision = explain(&seen);
        prop_assert_eq!(&decision, &explain(&seen.clone()));
        prop_assert_eq!(&decision.actions, &decide(&seen));
        prop_assert_eq!(seen.broken_law(&decision), None);
        prop_assert_eq!(unguarded(&seen, &decision), None);
        accounted(&decision);
    }

    /// Whatever else is so: nothing is asked, changed or announced of a paused set but its status.
    #[test]
    fn a_paused_set_is_left_as_it_is(mut stage in state()) {
        stage.world.edit(|set| set["metadata"]["annotations"][keys::PAUSED] = json!("true"));
        stage.sync();
        let mut seen = stage.observe().expect("a set");
        seen.unseen.clear();
        for action in decide(&seen) {
            let fine = matches!(action.want, Want::Wait(_) | Want::Change(Change::PatchStatus { .. }));
            prop_assert!(fine, "{action:?}");
        }
    }

    #[test]
    fn a_pass_ends_whatever_is_answered(mut stage in state(), answers in answers()) {
        stage.sync();
        let mut answers = answers.into_iter();
        for _ in 0..3 {
            let Some(ran) = stage.pass(&mut |_, _, _| answers.next().flatten().map(Outcome::of)) else { break };
            prop_assert!(ran.end.is_ok(), "{:?} after {:?}", ran.end, ran.sent);
            prop_assert!(ran.sent.len() < 1200);
            for decision in &ran.decisions {
                accounted(decision);
            }
            stage.sync();
        }
    }

    #[test]
    fn whatever_was_answered_it_settles_and_goes(replicas in 0u32..4, toolbox in any::<bool>(), answers in answers(),
        edited in 0u32..4, amid in answers(), later in answers()) {
        let toolboxes = if toolbox { json!([{ "name": "box", "image": "img" }]) } else { json!([]) };
        let mut world = World::of(json!({ "agent": { "image": "img", "replicas": replicas }, "toolboxes": toolboxes }));
        world.edit(|set| drop(set["metadata"].as_object_mut().expect("metadata").remove("finalizers")));
        let mut stage = Stage::new(world);
        let faults = |stage: &mut Stage, answers: Vec<Option<Class>>| {
            let mut answers = answers.into_iter();
            let subject = stage.observe().expect("a set").subject();
            stage.drive(Duration::from_secs(7200), &mut |world, action, _| {
                let class = answers.next().flatten()?;
                let verb = call(&subject, action)?.verb();
                // That something is gone or going is news, not a fault.
                let news = matches!(class.effect(), Effect::Gone | Effect::NamespaceGoing);
                let fault = !news && possible::possible(verb, class).is_ok();
                fault.then(|| {
                    if class == Class::Malformed {
                        world.answer(action);
                    }
                    Outcome::of(class)
                })
            });
        };
        faults(&mut stage, answers);
        let status = stage.world.set.as_ref().expect("a set")["status"].clone();
        prop_assert_eq!(&status["phase"], "Running", "{:?}", stage.sent.iter().rev().take(5).collect::<Vec<_>>());
        prop_assert_eq!(stage.world.pods.len(), 1 + replicas as usize + usize::from(toolbox));
        prop_assert!(stage.sent.len() < 400, "{} calls", stage.sent.len());

        stage.world.edit(|set| set["spec"]["agent"] = json!({ "image": "img2", "replicas": edited }));
        faults(&mut stage, amid);
        prop_assert_eq!(stage.world.pods.len(), 1 + edited as usize + usize::from(toolbox));
        let old = stage.world.pods.values().filter(|pod| pod["metadata"]["labels"][keys::ROLE] != "toolbox");
        let old = old.filter(|pod| pod["metadata"]["annotations"][keys::IMAGE] != "img2").count();
        prop_assert_eq!(old, 0, "{:?}", stage.sent.iter().rev().take(5).collect::<Vec<_>>());

        stage.world.tags.insert("vk-ns-demo-0:hibernate".to_owned(), "sha256:d".to_owned());
        stage.world.delete_set();
        faults(&mut stage, later);
        prop_assert!(stage.world.set.is_none(), "{:?}", stage.sent.iter().rev().take(5).collect::<Vec<_>>());
        prop_assert!(stage.world.pods.is_empty() && stage.world.tags.is_empty());
    }

    #[test]
    fn the_order_of_what_is_listed_does_not_matter(stage in state(), seed in any::<u64>()) {
        let mut one = stage.clone();
        let mut other = stage;
        let mut seen = one.observe().expect("a set");
        let mut again = other.observe_shuffled(seed).expect("a set");
        let pods: Vec<Value> = one.world.pods.values().cloned().collect();
        let mut turned = pods.clone();
        turned.reverse();
        for (seen, items) in [(&mut seen, pods), (&mut again, turned)] {
            let attempt = Attempt::of(&Want::Ask(Question::ReadLive(Live::Pods))).expect("an attempt");
            let answer = cocoon_operator::core::outcome::Answer::List {
                items, version: "9".to_owned(), continue_token: String::new(),
            };
            seen.absorb(&attempt, &Outcome { answer, ..Outcome::of(Class::Done) });
        }
        prop_assert_eq!(explain(&seen), explain(&again));
    }

    #[test]
    fn anything_reads_as_something(set in any_json(), pod in any_json(), metadata in any_json(), key in annotation_key(),
        value in annotation_value()) {
        let object = json!({ "metadata": { "name": "demo", "namespace": "ns", "uid": "set-uid", "annotations": { key: value },
            "finalizers": [keys::SET_FINALIZER], "generation": i64::MAX }, "spec": set, "status": pod });
        let facts = SetFacts::of(&object);
        let odd = SetFacts::of(&json!({ "metadata": metadata, "spec": set }));
        for facts in [facts, odd] {
            let mut seen = Observed::of(facts, jiff::Timestamp::MAX, Duration::MAX);
            let owner = json!([{ "uid": seen.set.uid, "controller": true, "kind": "CocoonSet" }]);
            let mut body = json!({ "metadata": { "name": "demo-0", "namespace": "ns", "uid": "u", "ownerReferences": owner },
                "spec": pod, "status": set });
            body["metadata"]["annotations"] = metadata.clone();
            body["metadata"]["finalizers"] = metadata.clone();
            seen.pods.insert("demo-0".to_owned(), PodFacts::read(&body));
            let decision = explain(&seen);
            accounted(&decision);
            prop_assert_eq!(seen.broken_law(&decision), None);
        }
    }
}

#[test]
fn absurd_counts_are_fast_and_bounded() {
    let spec = json!({ "agent": { "image": "img", "replicas": i32::MAX } });
    let mut world = World::of(spec);
    world.add_pod(&Role::Main, State::Ready);
    let mut stage = Stage::new(world);
    let decision = explain(&stage.observe().expect("a set"));
    assert!(decision.actions.len() <= 257, "{} actions", decision.actions.len());
    let ran = stage.pass(&mut common::stage::plainly).expect("a set");
    assert!(ran.end.is_ok());
    let created = stage.sent.iter().filter(|sent| sent.rule == "sub-agents/create").count();
    assert_eq!(created, 256, "as many as one set may create, and no more (D-34)");
}

fn agents(count: u32) -> Observed {
    let mut world = World::of(json!({ "agent": { "image": "img", "replicas": count } }));
    world.add_pod(&Role::Main, State::Ready);
    for slot in 1..=count {
        world.add_pod(&Role::SubAgent(slot), State::Ready);
    }
    Stage::new(world).observe().expect("a set")
}

fn wanting(rule: &'static str, wants: Vec<Change>) -> Decision {
    let action = |change| Action {
        want: Want::Change(change),
        rule: RuleId(rule.into()),
        because: "a test".into(),
        also: Vec::new(),
    };
    Decision { actions: wants.into_iter().map(action).collect(), ..Decision::default() }
}

fn settled() -> Observed {
    agents(1)
}

fn create(seen: &Observed, slot: u32) -> Change {
    let manifest = common::world::manifest(&seen.set, &Role::SubAgent(slot));
    Change::CreatePod { pod: format!("demo-{slot}"), manifest, dry_run: false }
}

fn vanished() -> Vanished {
    let mut world = World::of(json!({ "agent": { "image": "img" } }));
    world.add_pod(&Role::Main, State::Ready);
    Vanished::of(&PodFacts::read(&world.pods["demo-0"]))
}

/// Nothing is known against the node, and it was not read live.
fn seen_before_the_look(good: &Observed) -> Observed {
    let mut seen = good.clone();
    let gone = Vanished { node: Some(common::NODE.to_owned()), confirmed: true, ..vanished() };
    seen.memory.vanished.insert("demo-2".to_owned(), gone);
    seen
}

fn delete(pod: &str, uid: &str) -> Change {
    Change::DeletePod { pod: pod.to_owned(), uid: uid.to_owned(), resource_version: None }
}

fn absent(seen: &mut Observed, vm: &str) {
    let key = (vm.to_owned(), keys::TAG_HIBERNATE.to_owned());
    seen.snapshots.insert(key, Snapshot { fact: Fact::Known(None), fresh: true });
}

/// The law that a hand-made decision breaks, and the same without the fault, which breaks none.
fn breaks(law: &str, good: &Observed, bad: &Observed, fine: Vec<Change>, wrong: Vec<Change>) {
    assert_eq!(laws::broken(good, &wanting("test/good", fine)), None, "{law}: the good one");
    let broken = laws::broken(bad, &wanting("test/bad", wrong)).unwrap_or_default();
    assert!(broken.starts_with(law), "{law}: {broken}");
}

#[test]
fn nothing_is_created_without_finalizer_or_while_going_or_unasked() {
    let mut good = settled();
    absent(&mut good, "vk-ns-demo-2");
    let one = |seen: &Observed| vec![create(seen, 2)];
    let mut bad = good.clone();
    bad.set.finalizers = None;
    breaks("law/finalizer-first", &good, &bad, one(&good), one(&good));
    let mut bad = good.clone();
    bad.set.deleting = Some(bad.now);
    breaks("law/no-create-while-going", &good, &bad, one(&good), one(&good));
    let mut bad = good.clone();
    bad.namespace = NamespaceSeen::Terminating { uid: "ns-uid".to_owned() };
    breaks("law/no-create-while-going", &good, &bad, one(&good), one(&good));
    let mut bad = good.clone();
    bad.snapshots.clear();
    breaks("law/no-boot-unasked", &good, &bad, one(&good), one(&good));
    let mut bad = good.clone();
    let gone = Vanished { node: Some("node-z".to_owned()), by_us: true, confirmed: true, ..vanished() };
    bad.memory.vanished.insert("demo-2".to_owned(), gone);
    breaks("law/no-boot-beside", &good, &bad, one(&good), one(&good));
    bad.set.annotations.insert(keys::ACCEPT_NODE_LOSS.to_owned(), "node-y, node-z".to_owned());
    breaks("law/no-boot-beside", &bad, &seen_before_the_look(&good), one(&good), one(&good));
    let mut bad = good.clone();
    bad.snapshots.clear();
    for fact in [Fact::Unavailable("away".into()), Fact::Known(Some(Manifest::default()))] {
        let key = ("vk-ns-demo-2".to_owned(), keys::TAG_HIBERNATE.to_owned());
        bad.snapshots.insert(key, Snapshot { fact, fresh: true });
        breaks("law/no-boot-unasked", &good, &bad, one(&good), one(&good));
    }
}

#[test]
fn strangers_are_not_touched_and_nothing_is_written_on_a_stale_view() {
    let good = settled();
    let uid = good.pods["demo-1"].uid.to_string();
    let patch = |uid: &str| Change::PatchPod {
        pod: "demo-1".to_owned(),
        uid: uid.to_owned(),
        patch: MetaPatch::annotation(keys::GENERATION, Some("2")),
    };
    breaks("law/only-our-pods", &good, &good, vec![patch(&uid)], vec![patch("another")]);
    breaks("law/only-our-pods", &good, &good, vec![delete("demo-1", &uid)], vec![delete("demo-7", &uid)]);
    let mut stale = good.clone();
    stale.unseen.push("CreatePod demo-2".to_owned());
    breaks("law/fresh-view", &good, &stale, vec![patch(&uid)], vec![patch(&uid)]);
}

#[test]
fn the_finalizer_goes_last_and_names_are_written_first() {
    let mut good = settled();
    good.set.deleting = Some(good.now);
    good.live.pods = Fact::Known(Vec::new());
    let release = || vec![Change::RemoveFinalizer { tested: None, finalizers: Vec::new() }];
    let mut bad = good.clone();
    bad.live.pods = Fact::Unasked;
    breaks("law/let-go-last", &good, &bad, release(), release());
    bad.live.pods = Fact::Known(vec![LivePod::of_facts(&good.pods["demo-1"])]);
    breaks("law/let-go-last", &good, &bad, release(), release());

    let mut surplus = settled();
    surplus.set.spec.agent.replicas_clamped = 0;
    let uid = surplus.pods["demo-1"].uid.to_string();
    let record = surplus.remember(&["vk-ns-demo-1".to_owned()].into()).expect("a write");
    let fine = vec![record, delete("demo-1", &uid)];
    breaks("law/remember-first", &surplus, &surplus, fine.clone(), vec![delete("demo-1", &uid)]);
    // One that only a live read shows has a name as well.
    let mut hidden = surplus;
    let pod = hidden.pods.remove("demo-1").expect("a pod");
    hidden.live.pods = Fact::Known(vec![LivePod::of_facts(&pod)]);
    breaks("law/remember-first", &hidden, &hidden, fine, vec![delete("demo-1", &uid)]);
}

#[test]
fn only_own_tags_go_and_only_when_just_seen() {
    let mut good = settled();
    good.set.deleting = Some(good.now);
    let key = ("vk-ns-demo-0".to_owned(), keys::TAG_HIBERNATE.to_owned());
    let manifest = Manifest { digest: Some("sha256:d".to_owned()), base_image: None };
    good.snapshots.insert(key.clone(), Snapshot { fact: Fact::Known(Some(manifest.clone())), fresh: true });
    let drop_tag = |digest: &str| {
        vec![Change::DeleteSnapshot { vm: key.0.clone(), tag: key.1.clone(), digest: Some(digest.to_owned()) }]
    };
    let law = "law/own-tags-only";
    breaks(law, &good, &good, drop_tag("sha256:d"), drop_tag("sha256:other"));
    let mut alive = good.clone();
    alive.set.deleting = None;
    let mut old = good.clone();
    old.snapshots.insert(key.clone(), Snapshot { fact: Fact::Known(Some(manifest)), fresh: false });
    let mut contested = good.clone();
    let rival =
        Rival { namespace: "n".to_owned(), name: "s".to_owned(), uid: "r".to_owned(), created: None, has_it: true };
    contested.rivals = BTreeMap::from([(key.0.clone(), rival.clone())]);
    // Neither has anything under the name: nobody knows whose tag it is.
    let mut unclear = good.clone();
    unclear.pods.clear();
    unclear.set.status = Default::default();
    unclear.rivals = BTreeMap::from([(key.0.clone(), Rival { has_it: false, ..rival })]);
    let mut orphaned = good.clone();
    let bare = json!({ "metadata": { "name": "demo-0", "namespace": "ns", "uid": "bare" } });
    orphaned.live.pods = Fact::Known(vec![LivePod::of(&bare)]);
    for bad in [alive, old, contested, unclear, orphaned] {
        breaks(law, &good, &bad, drop_tag("sha256:d"), drop_tag("sha256:d"));
    }
}

#[test]
fn of_a_paused_set_only_the_status_is_written() {
    let good = settled();
    let mut paused = good.clone();
    paused.set.annotations.insert(keys::PAUSED.to_owned(), "true".to_owned());
    let uid = good.pods["demo-1"].uid.to_string();
    let claim = Change::AddFinalizer { tested: None, finalizers: vec![keys::SET_FINALIZER.to_owned()] };
    let mark = |pod: &str| Change::PatchPod {
        pod: pod.to_owned(),
        uid: uid.clone(),
        patch: MetaPatch::annotation(keys::GENERATION, Some("2")),
    };
    let note = Change::PatchObject { annotations: BTreeMap::new(), resource_version: "1".to_owned() };
    let status = Change::PatchStatus { status: json!({}), dropped: Vec::new(), resource_version: "1".to_owned() };
    for change in [claim, mark("demo-1"), delete("demo-1", &uid), note] {
        breaks("law/hands-off", &good, &paused, vec![change.clone()], vec![change]);
    }
    assert_eq!(laws::broken(&paused, &wanting("test/status", vec![status])), None);
}

#[test]
fn a_broken_law_ends_the_pass_and_every_law_has_its_case() {
    let ids: Vec<&str> = LAWS.iter().map(|law| law.id).collect();
    let here = include_str!("laws.rs");
    for id in &ids {
        assert!(here.contains(&format!("\"{id}\"")), "{id} has no hand-made case");
    }
    let mut seen = settled();
    seen.lease = Lease::Held(Duration::from_secs(60));
    assert!(matches!(Pass::begin(seen).next_step(), Next::Do(_)));
}
