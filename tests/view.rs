//! The view: what the watches have shown, what of our own they have not, who is woken by what, and what is forgotten.

mod common;

use cocoon_operator::core::action::ActionKind;
use cocoon_operator::core::cocoonset::observed::NamespaceSeen;
use cocoon_operator::core::contract::keys;
use cocoon_operator::core::contract::names::Role;
use cocoon_operator::core::control::kinds::{Event, Kind};
use cocoon_operator::core::control::queue::Priority;
use cocoon_operator::core::control::view::View;
use cocoon_operator::core::control::wake::{Key, Wake};
use cocoon_operator::core::decide::explain;
use cocoon_operator::core::outcome::{Class, Outcome};
use common::line;
use common::stage::{Stage, plainly};
use common::world::{State, World};
use serde_json::{Value, json};
use std::time::Duration;

fn agents(replicas: u32) -> Value {
    json!({ "agent": { "image": "img", "replicas": replicas } })
}

/// A set at rest.
fn settled(replicas: u32) -> Stage {
    let mut stage = Stage::new(World::of(agents(replicas)));
    stage.drive(Duration::from_secs(60), &mut plainly);
    stage.sent.clear();
    stage
}

fn keys_of(woken: &[Wake]) -> Vec<String> {
    let mut keys: Vec<String> = woken.iter().map(|wake| wake.key.to_string()).collect();
    keys.sort();
    keys.dedup();
    keys
}

fn set(namespace: &str, name: &str, spec: Value) -> Value {
    json!({
        "metadata": {
            "name": name, "namespace": namespace, "uid": format!("uid-{namespace}-{name}"), "resourceVersion": "7",
            "generation": 1, "finalizers": [keys::SET_FINALIZER], "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": spec,
    })
}

fn node(name: &str, ready: &str) -> Value {
    json!({
        "metadata": { "name": name, "resourceVersion": "9" },
        "status": { "conditions": [{ "type": "Ready", "status": ready }] },
    })
}

fn last(stage: &mut Stage) -> String {
    stage.sync();
    let ran = stage.pass(&mut plainly).expect("a set");
    line(ran.decisions.last().expect("a decision"))
}

#[test]
fn nothing_is_written_until_the_watch_has_shown_our_own_writes() {
    let mut stage = Stage::new(World::of(agents(0)));
    stage.sync();
    stage.pass(&mut plainly);
    let creates = |stage: &Stage| stage.sent.iter().filter(|sent| sent.attempt.action == ActionKind::CreatePod).count();
    assert_eq!(creates(&stage), 1);
    for _ in 0..3 {
        stage.mono += Duration::from_secs(31);
        let ran = stage.pass(&mut plainly).expect("a set");
        assert!(line(&ran.decisions[0]).contains("freshness/await-own-writes"), "{}", line(&ran.decisions[0]));
        assert_eq!(ran.end, Ok(Some(Duration::from_secs(30))));
    }
    assert_eq!(creates(&stage), 1, "a lagging watch leads to no second create (D-11)");
    let woken = stage.sync();
    assert_eq!(keys_of(&woken), ["ns/demo"]);
    assert!(stage.view.sizes()["writes"] == 0);
}

#[test]
fn a_write_that_a_live_read_found_done_is_waited_for_like_our_own() {
    let mut stage = Stage::new(World::of(agents(0)));
    stage.sync();
    let mut once = true;
    let mut doubtful = |world: &mut World, action: &_, attempt: &cocoon_operator::core::action::Attempt| {
        let first = attempt.action == ActionKind::CreatePod && std::mem::take(&mut once);
        first.then(|| {
            world.answer(action);
            Outcome::of(Class::Unknown)
        })
    };
    stage.pass(&mut doubtful);
    stage.mono += Duration::from_secs(60);
    stage.pass(&mut doubtful);
    let creates = stage.sent.iter().filter(|sent| sent.attempt.action == ActionKind::CreatePod).count();
    assert_eq!(creates, 1, "{:?}", stage.sent);
}

#[test]
fn another_set_does_not_wait_for_them() {
    let mut stage = Stage::new(World::of(agents(0)));
    stage.sync();
    stage.view.apply(Kind::CocoonSets, Event::Applied(set("ns", "other", agents(0))));
    stage.pass(&mut plainly);
    let other = stage.view.observe(&Key::new("ns", "other"), stage.clocks()).expect("a set");
    assert_eq!(other.unseen, Vec::<String>::new());
}

#[test]
fn a_relist_shows_what_is_gone() {
    let mut stage = settled(1);
    let pods: Vec<Value> =
        stage.world.pods.values().filter(|pod| pod["metadata"]["name"] == "demo-0").cloned().collect();
    let woken = stage.view.apply(Kind::Pods, Event::Listed { items: pods, version: "900".to_owned() });
    assert_eq!(keys_of(&woken), ["ns/demo"]);
    let seen = stage.view.observe(&Stage::key(), stage.clocks()).expect("a set");
    assert!(!seen.pods.contains_key("demo-1"));
    assert!(!seen.memory.vanished["demo-1"].confirmed, "unknown until a live read, never gone (R26)");
    let woken = stage.view.apply(Kind::CocoonSets, Event::Listed { items: Vec::new(), version: "901".to_owned() });
    assert_eq!(keys_of(&woken), ["ns/demo"]);
    assert!(stage.view.observe(&Stage::key(), stage.clocks()).is_none());
}

#[test]
fn a_relist_of_the_same_wakes_nobody() {
    let mut stage = settled(1);
    for (kind, items) in [
        (Kind::Pods, stage.world.pods.values().cloned().collect::<Vec<_>>()),
        (Kind::Nodes, stage.world.nodes.values().cloned().collect()),
        (Kind::CocoonSets, stage.world.set.iter().cloned().collect()),
        (Kind::Namespaces, stage.world.namespace.iter().cloned().collect()),
    ] {
        let woken = stage.view.apply(kind, Event::Listed { items, version: "900".to_owned() });
        assert_eq!(keys_of(&woken), Vec::<String>::new(), "{kind:?}");
    }
}

#[test]
fn a_pod_whose_label_was_edited_is_looked_for_and_mended() {
    let mut stage = settled(1);
    stage.world.edit_pod("demo-1", |pod| drop(pod["metadata"]["labels"].as_object_mut().map(|l| l.remove(keys::NAME))));
    stage.world.hidden.insert("demo-1".to_owned());
    stage.sync();
    let ran = stage.pass(&mut plainly).expect("a set");
    let sent: Vec<String> = ran.sent.iter().map(|sent| format!("{} {}", sent.attempt, sent.rule)).collect();
    assert_eq!(sent, ["ReadLive pod/demo-1 seat/look-for-vanished", "PatchPod demo-1 stamp/labels"]);
    stage.world.hidden.clear();
    assert_eq!(last(&mut stage), "nothing");
}

#[test]
fn what_we_deleted_has_not_vanished_and_what_others_deleted_has() {
    let mut stage = settled(1);
    stage.world.edit(|set| set["spec"]["agent"]["replicas"] = json!(0));
    stage.drive(Duration::from_secs(10), &mut plainly);
    assert!(stage.observe().expect("a set").memory.vanished.is_empty());

    let mut stage = settled(1);
    stage.world.pods.remove("demo-1");
    let seen = stage.observe().expect("a set");
    assert!(!seen.memory.vanished["demo-1"].confirmed);
    assert_eq!(seen.memory.vanished["demo-1"].node_was_ready, None, "a watch is no evidence");
    stage.drive(Duration::from_secs(60), &mut plainly);
    let reads = stage.sent.iter().filter(|sent| sent.attempt.target == format!("node/{}", common::NODE)).count();
    assert_eq!(
        (reads, stage.world.pods.contains_key("demo-1")),
        (1, true),
        "its node was read once, and it was made anew"
    );
}

#[test]
fn what_we_deleted_is_feared_for_where_nobody_saw_its_vm_end() {
    let mut stage = settled(1);
    stage.world.edit(|set| set["spec"]["agent"]["replicas"] = json!(0));
    stage.sync();
    stage.pass(&mut plainly);
    stage.sync();
    stage.world.add_node(common::NODE, false);
    stage.world.pods.remove("demo-1");
    stage.drive(Duration::from_secs(60), &mut plainly);
    let memory = stage.observe().expect("a set").memory;
    assert!(memory.vanished["demo-1"].by_us && memory.deleted.contains_key("demo-1"));
    stage.world.edit(|set| set["spec"]["agent"]["replicas"] = json!(1));
    stage.drive(Duration::from_secs(600), &mut plainly);
    assert!(!stage.world.pods.contains_key("demo-1"));
    assert!(stage.world.set.as_ref().expect("a set")["status"].to_string().contains("NodeLost"));

    stage.world.add_node(common::NODE, true);
    stage.drive(Duration::from_secs(60), &mut plainly);
    assert!(stage.world.pods.contains_key("demo-1"));
    assert!(stage.observe().expect("a set").memory.vanished.is_empty());
}

/// A pod whose phase says that it is at its end is removed by the API server at once: its end may be seen before the
/// answer to our delete (D-78, R18).
#[test]
fn what_we_deleted_is_feared_for_also_where_its_end_is_seen_before_the_answer() {
    let mut stage = settled(1);
    stage.world.edit_pod("demo-1", |pod| pod["status"]["phase"] = json!("Failed"));
    stage.world.edit(|set| set["spec"]["agent"]["replicas"] = json!(0));
    let mut seen = stage.observe().expect("a set");
    let attempt = cocoon_operator::core::action::Attempt {
        action: ActionKind::DeletePod,
        target: "demo-1".to_owned(),
        dry_run: false,
    };
    let answer = Outcome::done(stage.world.pods.remove("demo-1").expect("a pod"));
    stage.sync();
    stage.view.answered(&seen.subject(), &attempt, &answer);
    cocoon_operator::core::cocoonset::absorb::absorb(&mut seen, &attempt, &answer);
    stage.view.rest(seen);
    let gone = stage.observe().expect("a set").memory.vanished.remove("demo-1").expect("its VM may run");
    assert!(gone.may_run() && gone.by_us && gone.confirmed, "{gone:?}");

    stage.world.add_node(common::NODE, false);
    stage.world.edit(|set| set["spec"]["agent"]["replicas"] = json!(1));
    stage.drive(Duration::from_secs(600), &mut plainly);
    assert!(!stage.world.pods.contains_key("demo-1"), "a second VM beside the first");
    stage.world.add_node(common::NODE, true);
    stage.drive(Duration::from_secs(60), &mut plainly);
    assert!(stage.world.pods.contains_key("demo-1"));
}

#[test]
fn the_last_word_about_a_pod_says_that_its_vm_ended() {
    let mut stage = settled(1);
    let mut last = stage.world.pods.remove("demo-1").expect("a pod");
    last["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    last["metadata"]["deletionGracePeriodSeconds"] = json!(30);
    stage.view.apply(Kind::Pods, Event::Applied(last.clone()));
    // Its node agent removes the object once it has said so.
    last["status"]["phase"] = json!("Succeeded");
    last["metadata"]["deletionGracePeriodSeconds"] = json!(0);
    stage.view.apply(Kind::Pods, Event::Deleted(last));
    let seen = stage.view.observe(&Stage::key(), stage.clocks()).expect("a set");
    assert!(seen.memory.vanished["demo-1"].succeeded);
}

#[test]
fn a_pod_that_succeeded_before_its_deletion_says_nothing_of_its_vm() {
    let mut stage = settled(1);
    let mut last = stage.world.pods.remove("demo-1").expect("a pod");
    last["status"]["phase"] = json!("Succeeded");
    stage.view.apply(Kind::Pods, Event::Applied(last.clone()));
    last["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    last["metadata"]["deletionGracePeriodSeconds"] = json!(0);
    stage.view.apply(Kind::Pods, Event::Applied(last.clone()));
    stage.view.apply(Kind::Pods, Event::Deleted(last));
    let seen = stage.view.observe(&Stage::key(), stage.clocks()).expect("a set");
    assert!(seen.memory.vanished["demo-1"].may_run());
}

#[test]
fn a_pod_that_a_live_answer_called_gone_stays_gone_while_the_watch_lags() {
    let mut stage = settled(1);
    stage.world.edit(|set| set["spec"]["agent"]["replicas"] = json!(0));
    stage.sync();
    let old = stage.world.pods.remove("demo-1").expect("a pod");
    stage.pass(&mut plainly);
    stage.view.apply(Kind::Pods, Event::Applied(old));
    stage.mono += Duration::from_secs(60);
    let seen = stage.view.observe(&Stage::key(), stage.clocks()).expect("a set");
    assert!(seen.pods.get("demo-1").is_none_or(|pod| pod.deleting));
    stage.pass(&mut plainly);
    let deletes = stage.sent.iter().filter(|sent| sent.attempt.action == ActionKind::DeletePod).count();
    assert_eq!(deletes, 1);
}

#[test]
fn a_set_of_the_same_name_starts_with_an_empty_memory() {
    let mut stage = settled(1);
    stage.world.pods.remove("demo-1");
    stage.sync();
    stage.pass(&mut |_, _, _| Some(Outcome::of(Class::RbacDenied)));
    assert!(!stage.view.memory(common::SET_UID).expect("memory").attempts.is_empty());
    stage.world.edit(|set| set["metadata"]["uid"] = json!("another"));
    let woken = stage.sync();
    assert!(woken.iter().any(|wake| wake.key == Stage::key() && wake.priority == Priority::Edit));
    assert!(stage.view.memory(common::SET_UID).is_none() && stage.view.memory("another").is_none());
    let seen = stage.view.observe(&Stage::key(), stage.clocks()).expect("a set");
    assert!(seen.pods.is_empty() && seen.memory.vanished.is_empty());
    assert_eq!(seen.strangers.len(), 1, "the pod of the first is a stranger to the second");
}

#[test]
fn an_edit_overtakes_what_only_happened() {
    let mut stage = settled(0);
    stage.world.edit(|set| set["spec"]["agent"]["replicas"] = json!(1));
    assert!(stage.sync().contains(&Wake { key: Stage::key(), priority: Priority::Edit }));
    stage.drive(Duration::from_secs(30), &mut plainly);
    stage.world.set_state("demo-0", State::Failed);
    assert!(stage.sync().contains(&Wake { key: Stage::key(), priority: Priority::Event }));
    stage.world.edit(|set| set["metadata"]["labels"] = json!({ "of": "somebody" }));
    assert_eq!(keys_of(&stage.sync()), Vec::<String>::new(), "a version alone is no news");
}

#[test]
fn a_node_wakes_the_sets_whose_pods_or_status_name_it_and_no_others() {
    let mut stage = settled(0);
    stage.view.apply(Kind::CocoonSets, Event::Applied(set("ns", "other", agents(0))));
    let mut far = set("far", "away", agents(0));
    far["status"] = json!({ "agents": [{ "slot": 0, "podName": "away-0", "vmID": "v", "nodeName": common::NODE }] });
    stage.view.apply(Kind::CocoonSets, Event::Applied(far));
    let flip =
        |view: &mut View, ready: &str| keys_of(&view.apply(Kind::Nodes, Event::Applied(node(common::NODE, ready))));
    assert_eq!(flip(&mut stage.view, "False"), ["far/away", "ns/demo"]);
    assert_eq!(flip(&mut stage.view, "Unknown"), Vec::<String>::new(), "not Ready either way");
    assert_eq!(flip(&mut stage.view, "True"), ["far/away", "ns/demo"]);
    let woken = stage.view.apply(Kind::Nodes, Event::Deleted(node(common::NODE, "True")));
    assert_eq!(keys_of(&woken), ["far/away", "ns/demo"]);
}

#[test]
fn a_namespace_wakes_its_sets_and_is_unknown_once_refused() {
    let mut stage = settled(0);
    stage.view.apply(Kind::CocoonSets, Event::Applied(set("ns-2", "other", agents(0))));
    let going = json!({ "metadata": { "name": "ns", "uid": "ns-uid", "resourceVersion": "9" },
        "status": { "phase": "Terminating" } });
    assert_eq!(keys_of(&stage.view.apply(Kind::Namespaces, Event::Applied(going.clone()))), ["ns/demo"]);
    assert_eq!(keys_of(&stage.view.apply(Kind::Namespaces, Event::Applied(going))), Vec::<String>::new());
    let woken = stage.view.apply(Kind::Namespaces, Event::Refused);
    assert_eq!(keys_of(&woken), ["ns/demo"]);
    let seen = stage.view.observe(&Stage::key(), stage.clocks()).expect("a set");
    assert_eq!(seen.namespace, NamespaceSeen::Unknown);
}

#[test]
fn two_sets_of_two_namespaces_share_no_vm_name() {
    // vk-a-b-c-0 either way (D-29).
    let mut view = View::new();
    let (one, other) = (Key::new("a", "b-c"), Key::new("a-b", "c"));
    view.apply(Kind::CocoonSets, Event::Applied(set("a", "b-c", agents(0))));
    let mut younger = set("a-b", "c", agents(0));
    younger["metadata"]["creationTimestamp"] = json!("2026-01-02T00:00:00Z");
    let woken = view.apply(Kind::CocoonSets, Event::Applied(younger.clone()));
    assert_eq!(keys_of(&woken), ["a-b/c", "a/b-c"], "both are looked at");
    let clocks = settled(0).clocks();
    let of = |view: &View, key: &Key| line(&explain(&view.observe(key, clocks).expect("a set")));
    assert!(of(&view, &one).contains("ProbeSnapshot vk-a-b-c-0:hibernate"), "{}", of(&view, &one));
    let yields = of(&view, &other);
    assert!(yields.contains("Stop [seat/name-conflict]") && yields.contains("ERROR NameConflict"), "{yields}");

    // A pod outweighs age.
    let facts = cocoon_operator::core::cocoonset::observed::SetFacts::of(&younger);
    let mut pod = common::world::manifest(&facts, &Role::Main);
    pod["metadata"]["uid"] = json!("pod");
    let woken = view.apply(Kind::Pods, Event::Applied(pod.clone()));
    assert_eq!(keys_of(&woken), ["a-b/c", "a/b-c"], "a pod decides for both");
    assert!(of(&view, &one).contains("Stop [seat/name-conflict]"), "{}", of(&view, &one));
    // One that is on its way out counts as much: its VM may still be saved.
    pod["metadata"]["deletionTimestamp"] = json!("2026-01-03T00:00:00Z");
    view.apply(Kind::Pods, Event::Applied(pod.clone()));
    assert!(of(&view, &one).contains("Stop [seat/name-conflict]"), "{}", of(&view, &one));
    let woken = view.apply(Kind::Pods, Event::Deleted(pod));
    assert_eq!(keys_of(&woken), ["a-b/c", "a/b-c"], "and so does its end");
    assert!(!of(&view, &one).contains("name-conflict"), "{}", of(&view, &one));

    // Whoever waited is woken when the other goes.
    let woken = view.apply(Kind::CocoonSets, Event::Deleted(set("a", "b-c", agents(0))));
    assert!(keys_of(&woken).contains(&"a-b/c".to_owned()));
    assert!(!of(&view, &other).contains("name-conflict"), "{}", of(&view, &other));
}

#[test]
fn a_name_given_up_by_an_edit_wakes_the_set_that_waited_for_it() {
    let mut view = View::new();
    let with_box = json!({ "agent": { "image": "img" }, "toolboxes": [{ "name": "1-0", "image": "img" }] });
    view.apply(Kind::CocoonSets, Event::Applied(set("ns", "a", with_box)));
    let mut waits = set("ns", "a-1", agents(0));
    waits["metadata"]["creationTimestamp"] = json!("2026-01-02T00:00:00Z");
    view.apply(Kind::CocoonSets, Event::Applied(waits));
    let woken = view.apply(Kind::CocoonSets, Event::Applied(set("ns", "a", agents(0))));
    assert_eq!(keys_of(&woken), ["ns/a", "ns/a-1"]);
}

#[test]
fn a_hibernation_is_of_one_set_and_its_change_wakes_both() {
    let mut stage = settled(0);
    stage.view.apply(Kind::CocoonSets, Event::Applied(set("ns", "demo-x", agents(0))));
    let request = |pod: &str| json!({ "metadata": { "name": "r", "namespace": "ns", "resourceVersion": "9" }, "spec": { "podRef": { "name": pod } } });
    stage.view.apply(Kind::CocoonHibernations, Event::Applied(request("demo-x-0")));
    let of = |stage: &Stage, name: &str| {
        stage.view.observe(&Key::new("ns", name), stage.clocks()).expect("a set").hibernations.len()
    };
    assert_eq!((of(&stage, "demo"), of(&stage, "demo-x")), (0, 1));
    let woken = stage.view.apply(Kind::CocoonHibernations, Event::Applied(request("demo-0")));
    assert_eq!(keys_of(&woken), ["ns/demo", "ns/demo-x"]);
    assert_eq!((of(&stage, "demo"), of(&stage, "demo-x")), (1, 0));
    let woken = stage.view.apply(Kind::CocoonHibernations, Event::Deleted(request("demo-0")));
    assert_eq!(keys_of(&woken), ["ns/demo"]);
}

#[test]
fn memory_is_bounded_and_nothing_is_left_behind() {
    let mut stage = settled(2);
    for round in 0..20 {
        stage.world.pods.remove("demo-1");
        stage.drive(Duration::from_secs(900), &mut plainly);
        let memory = stage.view.memory(common::SET_UID).expect("memory");
        assert!(memory.watched.len() <= 3, "round {round}: {} VMs watched", memory.watched.len());
        assert!(memory.attempts.is_empty() && memory.vanished.is_empty());
    }
    stage.world.edit(|set| set["spec"]["agent"]["replicas"] = json!(0));
    stage.drive(Duration::from_secs(60), &mut plainly);
    stage.world.delete_set();
    stage.drive(Duration::from_secs(60), &mut plainly);
    assert!(stage.world.set.is_none());
    stage.sync();
    let sizes = stage.view.sizes();
    let left: Vec<_> =
        sizes.iter().filter(|(map, size)| **size > 0 && !["namespaces", "nodes"].contains(map)).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn what_was_asked_about_a_vm_that_nobody_wants_any_more_is_forgotten() {
    let mut stage = settled(0);
    stage.world.edit(|set| set["spec"]["agent"]["replicas"] = json!(2));
    stage.world.tags.insert("vk-ns-demo-1:hibernate".to_owned(), "sha256:1".to_owned());
    let mut away = |_: &mut World, _: &_, attempt: &cocoon_operator::core::action::Attempt| {
        let probed = attempt.action == ActionKind::ProbeSnapshot && attempt.target.contains("demo-2");
        probed.then(|| Outcome::of(Class::Unavailable))
    };
    stage.drive(Duration::from_secs(20), &mut away);
    let memory = stage.view.memory(common::SET_UID).expect("memory");
    assert_eq!((memory.found.len(), memory.attempts.len()), (1, 2), "its own row and the registry's: {memory:?}");
    stage.world.edit(|set| set["spec"]["agent"]["replicas"] = json!(0));
    stage.drive(Duration::from_secs(20), &mut away);
    let memory = stage.view.memory(common::SET_UID).expect("memory");
    assert_eq!((memory.found.len(), memory.attempts.len()), (0, 0), "{memory:?}");
}

#[test]
fn an_answer_that_comes_after_the_set_is_gone_leaves_nothing() {
    let mut stage = settled(0);
    stage.world.edit(|set| set["spec"]["agent"]["replicas"] = json!(1));
    stage.sync();
    let gone = stage.world.set.clone().expect("a set");
    let seen = stage.view.observe(&Stage::key(), stage.clocks()).expect("a set");
    stage.view.apply(Kind::CocoonSets, Event::Deleted(gone));
    let attempt = cocoon_operator::core::action::Attempt {
        action: ActionKind::DeletePod,
        target: "demo-0".to_owned(),
        dry_run: false,
    };
    let answer = Outcome::done(json!({ "metadata": { "name": "demo-0", "resourceVersion": "99999" } }));
    stage.view.answered(&seen.subject(), &attempt, &answer);
    stage.view.rest(seen);
    let sizes = stage.view.sizes();
    assert_eq!((sizes["memory"], sizes["vanished"], sizes["writes"], sizes["names"]), (0, 0, 0, 0));
}

/// The answer that takes the last finalizer off bears the version of before: no own write is waited for, and a second
/// teardown would begin before the watch shows the end.
#[test]
fn a_set_that_went_with_our_finalizer_is_not_looked_at_again() {
    let mut stage = settled(0);
    stage.world.edit(|set| set["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"));
    stage.sync();
    let seen = stage.view.observe(&Stage::key(), stage.clocks()).expect("a set");
    let mut answer = stage.world.set.clone().expect("a set");
    answer["metadata"]["finalizers"] = json!([]);
    let attempt = cocoon_operator::core::action::Attempt {
        action: ActionKind::RemoveFinalizer,
        target: String::new(),
        dry_run: false,
    };
    stage.view.answered(&seen.subject(), &attempt, &Outcome::done(answer.clone()));
    stage.view.rest(seen);
    assert!(stage.view.observe(&Stage::key(), stage.clocks()).is_none(), "a second teardown");
    // Whatever is newer than that answer is there after all.
    answer["metadata"]["resourceVersion"] = json!(stage.world.next_version());
    answer["metadata"]["finalizers"] = json!(["somebody/else"]);
    stage.view.apply(Kind::CocoonSets, Event::Applied(answer.clone()));
    assert!(stage.view.observe(&Stage::key(), stage.clocks()).is_some());
    stage.view.apply(Kind::CocoonSets, Event::Deleted(answer));
    assert_eq!(stage.view.sizes()["released"], 0);
}

/// Decision R26: what left the watch is unknown, never gone; also to another set that waits for its VM's name.
#[test]
fn a_rivals_pod_that_left_the_watch_keeps_its_name_until_it_is_looked_for() {
    let mut stage = settled(0);
    let mut other = stage.world.set.clone().expect("a set");
    // `vk-ns-demo-x-0` is the VM of this set's toolbox, and of the main agent of a set `x` in namespace `ns-demo`.
    let toolbox = json!([{ "name": "x-0", "image": "i", "mode": "run" }]);
    stage.world.edit(|set| set["spec"]["toolboxes"] = toolbox);
    stage.drive(Duration::from_secs(60), &mut plainly);
    let (vm, pod) = (format!("vk-{}-{}-x-0", common::NAMESPACE, common::SET), format!("{}-x-0", common::SET));
    let key = Key::new(&format!("{}-{}", common::NAMESPACE, common::SET), "x");
    other["metadata"]["uid"] = json!("uid-other");
    other["metadata"]["namespace"] = json!(key.namespace);
    other["metadata"]["name"] = json!(key.name);
    stage.view.apply(Kind::CocoonSets, Event::Applied(other));
    let has_it = |stage: &Stage| {
        let seen = stage.view.observe(&key, stage.clocks()).expect("the other set");
        seen.rivals.get(&vm).is_some_and(|rival| rival.has_it)
    };
    assert!(has_it(&stage));
    let shown = stage.world.pods.get(&pod).cloned().expect("a pod");
    let woken = stage.view.apply(Kind::Pods, Event::Deleted(shown));
    assert!(has_it(&stage), "only its label went");
    assert_eq!(keys_of(&woken), [Stage::key().to_string()], "nobody but its own set has to look");
    // Its own set looks, and it is gone indeed: whoever waits for the name is woken.
    let mut seen = stage.view.observe(&Stage::key(), stage.clocks()).expect("a set");
    let look = cocoon_operator::core::action::Attempt {
        action: ActionKind::ReadLive,
        target: format!("pod/{pod}"),
        dry_run: false,
    };
    cocoon_operator::core::cocoonset::absorb::absorb(&mut seen, &look, &Outcome::of(Class::NotFound));
    let woken = stage.view.rest(seen);
    assert!(!has_it(&stage), "gone");
    assert!(keys_of(&woken).contains(&key.to_string()), "{woken:?}");
}
