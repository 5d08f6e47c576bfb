//! Cases in which the core once did wrong, each in the words of what went wrong, and a few whose story spans passes.

mod common;

use cocoon_operator::core::action::{ActionKind, Attempt, Change, Want};
use cocoon_operator::core::cocoonset::observed::Lease;
use cocoon_operator::core::contract::joined::joined;
use cocoon_operator::core::contract::keys;
use cocoon_operator::core::contract::names::Role;
use cocoon_operator::core::decide::explain;
use cocoon_operator::core::decision::Entry;
use cocoon_operator::core::outcome::{Class, Outcome};
use common::line;
use common::stage::{Ran, Stage, plainly};
use common::world::{State, World};
use serde_json::{Value, json};
use std::time::Duration;

fn agents(replicas: u32) -> Value {
    json!({ "agent": { "image": "img", "replicas": replicas } })
}

fn settled(spec: Value) -> Stage {
    let mut stage = Stage::new(World::of(spec));
    stage.drive(Duration::from_secs(60), &mut plainly);
    stage.sent.clear();
    stage
}

fn pass(stage: &mut Stage) -> Ran {
    stage.sync();
    stage.pass(&mut plainly).expect("a set")
}

fn annotation(stage: &Stage, key: &str) -> String {
    stage.world.facts().annotations.get(key).cloned().unwrap_or_default()
}

fn count(stage: &Stage, action: ActionKind) -> usize {
    stage.sent.iter().filter(|sent| sent.attempt.action == action && !sent.attempt.dry_run).count()
}

/// Answers every try of this action with this class.
fn always(
    kind: ActionKind,
    class: Class,
) -> impl FnMut(&mut World, &cocoon_operator::core::action::Action, &Attempt) -> Option<Outcome> {
    move |_, _, attempt| (attempt.action == kind).then(|| Outcome::of(class).saying("so it said"))
}

#[test]
fn no_pod_is_touched_while_the_spec_does_not_say_what_to_run() {
    for spec in [json!(null), json!("text"), json!({}), json!({ "agent": [1] }), json!({ "agent": { "image": "" } })] {
        let mut stage = settled(agents(2));
        stage.world.edit(|set| set["spec"] = spec.clone());
        stage.drive(Duration::from_secs(60), &mut plainly);
        let touched = [ActionKind::CreatePod, ActionKind::DeletePod].map(|action| count(&stage, action));
        assert_eq!(touched, [0, 0], "{spec} (D-58)");
        assert_eq!(stage.world.pods.len(), 3, "{spec}");
    }
}

#[test]
fn two_seats_that_fail_at_once_are_both_charged() {
    let mut stage = settled(agents(2));
    stage.world.set_state("demo-1", State::Failed);
    stage.world.set_state("demo-2", State::Failed);
    pass(&mut stage);
    let history: Value = serde_json::from_str(&annotation(&stage, keys::REBUILD_HISTORY)).expect("a history");
    assert_eq!((&history["1"]["count"], &history["2"]["count"]), (&json!(1), &json!(1)));
    assert_eq!(count(&stage, ActionKind::PatchObject), 1, "one write of the set (R12)");
    assert_eq!(count(&stage, ActionKind::DeletePod), 2);
}

#[test]
fn a_scale_down_beside_a_removed_toolbox_remembers_both_names() {
    let spec = json!({ "agent": { "image": "img", "replicas": 1 }, "toolboxes": [{ "name": "box", "image": "img" }] });
    let mut stage = settled(spec);
    stage.world.edit(|set| set["spec"] = agents(0));
    pass(&mut stage);
    assert_eq!(annotation(&stage, keys::DELETE_VM_NAMES), "vk-ns-demo-1,vk-ns-demo-box");
}

#[test]
fn joined_wishes_keep_both_and_the_later_charge() {
    let text = |value: Value| Some(value.to_string());
    let old = json!({ "count": 3, "lastDeleted": "2026-01-01T00:00:00Z" });
    let new = json!({ "count": 1, "lastDeleted": "2026-01-02T00:00:00Z" });
    let both = joined(keys::REBUILD_HISTORY, text(json!({ "1": new, "2": old })), text(json!({ "1": old, "2": new })));
    assert_eq!(both, text(json!({ "1": new, "2": new })), "the old entries are what both began with");
    assert_eq!(joined(keys::DELETE_VM_NAMES, Some("b,a".into()), Some("c, a".into())), Some("a,b,c".into()));
    assert_eq!(joined(keys::DELETE_VM_NAMES, Some("a".into()), None), None);
    assert_eq!(joined(keys::REBUILD_HISTORY, Some("no json".into()), Some("{}".into())), Some("{}".into()));
    assert_eq!(joined("another", Some("a".into()), Some("b".into())), Some("b".into()));
}

#[test]
fn what_was_fenced_is_sent_once_the_lease_is_held_again() {
    let mut stage = Stage::new(World::of(agents(0)));
    stage.sync();
    stage.pass(&mut always(ActionKind::CreatePod, Class::Fenced));
    stage.lease = Lease::Lost;
    assert!(line(pass(&mut stage).decisions.last().expect("one")).contains("Stop [answer/fenced]"));
    stage.lease = Lease::Held(Duration::from_secs(10));
    stage.drive(Duration::from_secs(60), &mut plainly);
    assert!(stage.world.pods.contains_key("demo-0"));
}

#[test]
fn a_pod_of_a_name_that_we_deleted_once_is_feared_for_like_any_other() {
    let mut stage = settled(agents(1));
    stage.world.set_state("demo-1", State::Failed);
    stage.drive(Duration::from_secs(60), &mut plainly);
    assert_eq!(stage.world.pods["demo-1"]["status"]["phase"], "Running", "rebuilt by us");

    stage.world.add_node(common::NODE, false);
    stage.sync();
    stage.world.pods.remove("demo-1");
    stage.sent.clear();
    stage.drive(Duration::from_secs(1200), &mut plainly);
    assert_eq!(count(&stage, ActionKind::CreatePod), 0, "its VM may still run on the lost node (R18)");
    let status = stage.world.set.as_ref().expect("a set")["status"].to_string();
    assert!(status.contains("NodeLost"), "{status}");

    stage.world.edit(|set| set["metadata"]["annotations"][keys::ACCEPT_NODE_LOSS] = json!(common::NODE));
    stage.drive(Duration::from_secs(60), &mut plainly);
    assert_eq!(count(&stage, ActionKind::CreatePod), 1, "a person said that the node will not come back");
}

#[test]
fn nobody_saw_a_pod_vanish_and_its_node_is_gone() {
    let mut stage = settled(agents(0));
    let mut restarted = Stage::new(stage.world.clone());
    restarted.world.pods.clear();
    restarted.world.nodes.clear();
    restarted.drive(Duration::from_secs(600), &mut plainly);
    assert_eq!(count(&restarted, ActionKind::CreatePod), 0);
    stage.world.pods.clear();
    let mut restarted = Stage::new(stage.world);
    restarted.drive(Duration::from_secs(600), &mut plainly);
    assert_eq!(count(&restarted, ActionKind::CreatePod), 1, "the node is there and Ready");
}

#[test]
fn a_foreign_pod_is_looked_at_and_never_fought_over() {
    let mut world = World::of(agents(0));
    let pod = world.add_pod(&Role::Main, State::Ready);
    world.edit_pod(&pod, |pod| {
        pod["metadata"]["ownerReferences"] = json!([]);
        pod["metadata"]["labels"] = json!({});
    });
    world.hidden.insert(pod.clone());
    let mut stage = Stage::new(world);
    let driven = stage.drive(Duration::from_secs(3600), &mut plainly);
    assert_eq!(count(&stage, ActionKind::CreatePod), 1, "one refusal tells that the name is taken");
    let looks = count(&stage, ActionKind::ReadLive);
    assert!((8..=20).contains(&looks), "{looks} looks in an hour");
    assert_eq!(driven.errors, ["NameConflict"]);
    stage.world.pods.clear();
    stage.drive(Duration::from_secs(600), &mut plainly);
    assert!(stage.world.pods.contains_key(&pod));
}

#[test]
fn a_refusal_of_one_target_is_not_hidden_by_an_older_one() {
    let mut stage = Stage::new(World::of(agents(0)));
    stage.sync();
    for class in [Class::Conflict, Class::QuotaExceeded, Class::QuotaExceeded] {
        let ran = stage.pass(&mut always(ActionKind::CreatePod, class)).expect("a set");
        assert!(ran.end.is_ok(), "{:?}", ran.end);
        stage.mono += Duration::from_secs(60);
    }
    assert!(count(&stage, ActionKind::CreatePod) <= 4);
}

#[test]
fn a_success_beside_a_refusal_does_not_reset_its_backoff() {
    let mut stage = Stage::new(World::of(json!({
        "agent": { "image": "img" }, "toolboxes": [{ "name": "box", "image": "img" }]
    })));
    let mut denied = |_: &mut World, _: &_, attempt: &Attempt| {
        let main = attempt.action == ActionKind::ProbeSnapshot && attempt.target.starts_with("vk-ns-demo-0:");
        main.then(|| Outcome::of(Class::Denied))
    };
    stage.drive(Duration::from_secs(600), &mut denied);
    let asked = stage.sent.iter().filter(|sent| sent.class == Class::Denied).count();
    assert!(asked <= 16, "{asked} HEADs of one repository in ten minutes");
    assert!(stage.world.pods.contains_key("demo-box"), "and the other is not held up for long");
}

#[test]
fn a_dry_run_refused_for_the_namespace_is_like_any_create() {
    let mut stage = settled(agents(0));
    stage.world.namespace.as_mut().expect("one")["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:20:00Z");
    // The watch has not shown it yet.
    stage.world.edit(|set| set["spec"]["agent"]["image"] = json!("img2"));
    let set = stage.world.set.clone().expect("a set");
    let kind = cocoon_operator::core::control::kinds::Kind::CocoonSets;
    stage.view.apply(kind, cocoon_operator::core::control::kinds::Event::Applied(set));
    let ran = stage.pass(&mut always(ActionKind::CreatePod, Class::NamespaceTerminating)).expect("a set");
    assert!(line(ran.decisions.last().expect("one")).contains("Stop [namespace/terminating]"));
    assert_eq!(ran.end, Ok(None), "no timer");
    assert_eq!(count(&stage, ActionKind::DeletePod), 0);
}

#[test]
fn a_namespace_that_terminates_costs_one_refused_create() {
    let mut stage = settled(agents(0));
    stage.world.namespace.as_mut().expect("one")["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:20:00Z");
    let namespace = stage.world.namespace.clone();
    // Its pods go first, and the watch of namespaces lags.
    let mut lagging = stage.clone();
    lagging.world.namespace.as_mut().expect("one")["metadata"]
        .as_object_mut()
        .expect("one")
        .remove("deletionTimestamp");
    lagging.world.pods.clear();
    lagging.sync();
    lagging.world.namespace = namespace;
    let mut refuse = always(ActionKind::CreatePod, Class::NamespaceTerminating);
    let ran = lagging.pass(&mut refuse).expect("a set");
    assert_eq!(ran.end, Ok(None));
    let driven = lagging.drive(Duration::from_secs(120), &mut refuse);
    assert_eq!(count(&lagging, ActionKind::CreatePod), 1, "{:?}", lagging.sent);
    assert!(driven.errors.is_empty());
    lagging.world.delete_set();
    lagging.drive(Duration::from_secs(120), &mut refuse);
    assert!(lagging.world.set.is_none());
}

#[test]
fn a_finalizer_test_that_fails_on_an_unchanged_list_is_an_error_of_ours() {
    let mut world = World::of(agents(0));
    world.edit(|set| drop(set["metadata"].as_object_mut().expect("metadata").remove("finalizers")));
    let mut stage = Stage::new(world);
    let driven = stage.drive(Duration::from_secs(60), &mut always(ActionKind::AddFinalizer, Class::PreconditionFailed));
    assert_eq!(driven.errors, ["PreconditionFailed"]);

    // Another writer who really moves the list each time is no error.
    let mut world = World::of(agents(0));
    world.edit(|set| set["metadata"]["finalizers"] = json!(["a/0"]));
    let mut stage = Stage::new(world);
    let mut turn = 0;
    let driven = stage.drive(Duration::from_secs(60), &mut |world, _, attempt| {
        (attempt.action == ActionKind::AddFinalizer).then(|| {
            turn += 1;
            world.edit(|set| set["metadata"]["finalizers"] = json!([format!("a/{turn}")]));
            Outcome::of(Class::PreconditionFailed)
        })
    });
    assert!(driven.errors.is_empty(), "{:?}", driven.errors);
}

#[test]
fn a_leaving_pod_without_its_label_is_not_waited_for_for_ever() {
    let mut stage = settled(agents(0));
    stage.world.hidden.insert("demo-0".to_owned());
    stage.world.frozen.insert("demo-0".to_owned());
    stage.world.edit_pod("demo-0", |pod| pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:20:00Z"));
    stage.drive(Duration::from_secs(60), &mut plainly);
    stage.world.pods.remove("demo-0");
    stage.world.hidden.clear();
    stage.world.frozen.clear();
    stage.drive(Duration::from_secs(60), &mut plainly);
    assert_eq!(stage.world.pods["demo-0"]["status"]["phase"], "Running");
}

#[test]
fn one_plan_writes_each_object_once() {
    let spec = json!({ "agent": { "image": "img", "replicas": 3 }, "toolboxes": [{ "name": "box", "image": "img" }] });
    let mut stage = settled(spec);
    stage.world.edit(|set| {
        set["spec"]["agent"] = json!({ "image": "img", "replicas": 1, "probePort": 81 });
        set["spec"]["toolboxes"] = json!([]);
        set["spec"]["snapshotPolicy"] = json!("never");
    });
    stage.world.set_state("demo-1", State::Failed);
    let decision = explain(&stage.observe().expect("a set"));
    let mut written: Vec<String> = Vec::new();
    for action in &decision.actions {
        if let Want::Change(change) = &action.want {
            written.push(change.target());
        }
    }
    let all = written.len();
    written.sort();
    written.dedup();
    assert_eq!(written.len(), all, "{written:?}");
    let patched = |pod: &str| {
        let is = |action: &&cocoon_operator::core::action::Action| matches!(&action.want, Want::Change(Change::PatchPod { pod: name, .. }) if name == pod);
        decision.actions.iter().find(is).map(|action| action.also.len())
    };
    assert!(
        patched("demo-0").is_some_and(|also| also >= 1),
        "stamp and policy in one patch, the second rule in `also`"
    );
    assert_eq!(patched("demo-2"), None, "what is deleted is not patched");
}

#[test]
fn the_delete_of_a_pod_that_no_watch_shows_is_not_waited_for() {
    let mut stage = settled(agents(1));
    stage.world.edit_pod("demo-1", |pod| pod["metadata"]["labels"] = json!({}));
    stage.world.hidden.insert("demo-1".to_owned());
    let mut restarted = Stage::new(stage.world);
    restarted.world.delete_set();
    restarted.drive(Duration::from_secs(120), &mut plainly);
    assert_eq!(count(&restarted, ActionKind::DeletePod), 2);
    assert!(restarted.world.set.is_none(), "it waited for the watch to show a delete that it never shows");
}

#[test]
fn a_deletion_writes_no_status_to_say_that_nothing_is_wrong() {
    let mut stage = settled(agents(1));
    stage.world.edit(|set| set["metadata"]["generation"] = json!(2));
    stage.world.delete_set();
    stage.drive(Duration::from_secs(120), &mut plainly);
    assert_eq!(count(&stage, ActionKind::PatchStatus), 0);
}

#[test]
fn a_stamp_from_the_future_is_waited_for_as_one_of_now() {
    let mut stage = settled(agents(1));
    let ahead = json!({ "1": { "count": 2, "lastDeleted": "2036-01-01T00:00:00Z", "generation": 1 } });
    stage.world.edit(|set| set["metadata"]["annotations"][keys::REBUILD_HISTORY] = json!(ahead.to_string()));
    stage.world.set_state("demo-1", State::Failed);
    stage.drive(Duration::from_secs(30), &mut plainly);
    assert_eq!(stage.world.pods["demo-1"]["status"]["phase"], "Running", "5 s, not ten years");
}

#[test]
fn all_that_failed_is_charged_in_one_write() {
    let mut stage = Stage::new(World::of(agents(40)));
    stage.drive(Duration::from_secs(60), &mut plainly);
    (1..=40).for_each(|slot| stage.world.set_state(&format!("demo-{slot}"), State::Failed));
    let seen = stage.observe().expect("a set");
    let decision = explain(&seen);
    let written = |want: &Want| match want {
        Want::Change(Change::PatchObject { annotations, .. }) => annotations.values().flatten().map(String::len).sum(),
        _ => 0,
    };
    let spoken = decision.trace.iter().filter_map(|entry| match entry {
        Entry::Spoke(finding) => Some(finding.wants.iter().map(written).sum::<usize>()),
        _ => None,
    });
    let sent: usize = decision.actions.iter().map(|action| written(&action.want)).sum();
    assert_eq!(spoken.sum::<usize>(), sent, "the whole history is stated once, not once for each seat");
    let deletes = decision.actions.iter().filter(|action| action.kind() == ActionKind::DeletePod).count();
    assert_eq!(deletes, 40);
    let ran = pass(&mut stage);
    assert_eq!(ran.sent.iter().filter(|sent| sent.attempt.action == ActionKind::PatchObject).count(), 1);
    let Some(history) = serde_json::from_str::<Value>(&annotation(&stage, keys::REBUILD_HISTORY)).ok() else {
        panic!()
    };
    assert!((1..=40).all(|slot| history[slot.to_string()]["count"] == 1), "{history}");
}

#[test]
fn nothing_that_is_charged_goes_while_the_charge_may_not_be_written() {
    let mut stage = settled(agents(3));
    (1..=3).for_each(|slot| stage.world.set_state(&format!("demo-{slot}"), State::Failed));
    let mut refused = always(ActionKind::PatchObject, Class::RbacDenied);
    stage.drive(Duration::from_secs(60), &mut refused);
    assert_eq!(count(&stage, ActionKind::DeletePod), 0, "{:?}", stage.sent);
}
