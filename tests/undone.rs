//! A webhook takes off what the operator writes: each such write is made twice, then waited with, and nothing is done
//! that rests on it.

mod common;

use cocoon_operator::core::action::{Action, ActionKind, Attempt};
use cocoon_operator::core::cocoonset::tally;
use cocoon_operator::core::contract::keys;
use cocoon_operator::core::contract::names::Role;
use cocoon_operator::core::outcome::{Answer, Outcome};
use common::stage::{Stage, plainly};
use common::world::{State, World};
use serde_json::{Value, json};
use std::time::Duration;

fn settled(replicas: u32) -> Stage {
    let spec = json!({ "agent": { "image": "img", "replicas": replicas }, "snapshotPolicy": "never" });
    let mut stage = Stage::new(World::of(spec));
    stage.drive(Duration::from_secs(60), &mut plainly);
    stage.sent.clear();
    stage
}

fn strip(object: &mut Value, kind: ActionKind) {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    match kind {
        ActionKind::AddFinalizer => drop(metadata.remove("finalizers")),
        ActionKind::PatchPod => drop(metadata.get_mut("annotations").map(|map| map[keys::GENERATION].take())),
        _ => drop(metadata.remove("annotations")),
    }
}

/// The world with a webhook that strips what writes of this kind add.
fn stripping(kind: ActionKind) -> impl FnMut(&mut World, &Action, &Attempt) -> Option<Outcome> {
    move |world, action, attempt| {
        if attempt.action != kind {
            return None;
        }
        let mut outcome = world.answer(action);
        if let Answer::Object(object) = &mut outcome.answer {
            strip(object, kind);
            match world.pods.get_mut(&attempt.target) {
                Some(pod) => pod.clone_from(object),
                None => world.set = Some(object.clone()),
            }
        }
        Some(outcome)
    }
}

fn at(stage: &Stage, kind: ActionKind) -> Vec<u64> {
    stage.sent.iter().filter(|sent| sent.attempt.action == kind).map(|sent| sent.at.as_secs()).collect()
}

fn degraded(stage: &Stage) -> String {
    let status = stage.world.set.as_ref().map(|set| set["status"].clone()).unwrap_or_default();
    let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
    let degraded = conditions.iter().find(|one| one["type"] == "Degraded").cloned().unwrap_or_default();
    format!("{} {}", degraded["reason"].as_str().unwrap_or_default(), degraded["message"].as_str().unwrap_or_default())
}

#[test]
fn a_charge_that_does_not_stay_deletes_no_pod() {
    let mut stage = settled(2);
    stage.world.set_state("demo-1", State::Failed);
    let start = stage.mono.as_secs();
    stage.drive(Duration::from_secs(120), &mut stripping(ActionKind::PatchObject));
    let writes: Vec<u64> = at(&stage, ActionKind::PatchObject).iter().map(|at| at - start).collect();
    assert_eq!(writes, [0, 0, 10, 30, 70], "twice, then after 10, 20, 40 seconds");
    assert_eq!(at(&stage, ActionKind::DeletePod), [] as [u64; 0], "its rebuild would count for nothing");
    let told = degraded(&stage);
    assert!(told.starts_with("WriteUndone ") && told.contains("rebuild-history in its annotations"), "{told}");
    stage.drive(Duration::from_secs(300), &mut plainly);
    assert_eq!(at(&stage, ActionKind::DeletePod).len(), 1, "the webhook is gone, and the work goes on");
    assert!(degraded(&stage).starts_with("WriteUndone"), "it was undone less than ten minutes ago");
    stage.drive(Duration::from_secs(300), &mut plainly);
    assert!(degraded(&stage).starts_with("AsWanted"), "{}", degraded(&stage));
}

#[test]
fn names_that_do_not_stay_delete_no_pod() {
    let mut stage = settled(2);
    stage.world.edit(|set| set["spec"]["agent"]["replicas"] = json!(1));
    stage.drive(Duration::from_secs(5), &mut stripping(ActionKind::PatchObject));
    assert_eq!(at(&stage, ActionKind::PatchObject).len(), 2);
    assert_eq!(at(&stage, ActionKind::DeletePod), [] as [u64; 0]);
}

#[test]
fn a_stamp_that_does_not_stay_is_waited_with() {
    let mut stage = settled(1);
    stage.world.edit(|set| set["spec"]["agent"]["replicas"] = json!(2));
    stage.drive(Duration::from_secs(5), &mut stripping(ActionKind::PatchPod));
    let per_pod = |pod: &str| {
        stage.sent.iter().filter(|s| s.attempt.action == ActionKind::PatchPod && s.attempt.target == pod).count()
    };
    assert_eq!([per_pod("demo-0"), per_pod("demo-1")], [2, 2]);
}

#[test]
fn a_finalizer_that_does_not_stay_is_waited_with() {
    let mut world = World::of(json!({ "agent": { "image": "img" } }));
    world.edit(|set| strip(set, ActionKind::AddFinalizer));
    let mut stage = Stage::new(world);
    stage.drive(Duration::from_secs(5), &mut stripping(ActionKind::AddFinalizer));
    assert_eq!(at(&stage, ActionKind::AddFinalizer).len(), 2);
    assert_eq!(at(&stage, ActionKind::CreatePod), [] as [u64; 0]);
    assert!(degraded(&stage).starts_with("WriteUndone "), "{}", degraded(&stage));
}

#[test]
fn a_failure_is_counted_under_the_phase_before_it() {
    let mut stage = settled(0);
    let failure = |stage: &mut Stage| {
        let mut seen = stage.observe().expect("a set");
        let phase = tally::new_failure(&mut seen).map(|phase| phase.as_str().to_owned());
        stage.view.rest(seen);
        phase
    };
    assert_eq!(failure(&mut stage), None);
    stage.world.set_state("demo-0", State::Failed);
    assert_eq!(failure(&mut stage).as_deref(), Some("Running"), "though its pod is replaced in this very pass");
    assert_eq!(failure(&mut stage), None, "once");
    stage.world.set_state("demo-0", State::Ready);
    assert_eq!(failure(&mut stage), None);
    stage.world.set_state("demo-0", State::Failed);
    assert_eq!(failure(&mut stage).as_deref(), Some("Running"), "it was Ready in between");
    stage.world.pods.remove("demo-0");
    stage.world.add_pod(&Role::Main, State::Failed);
    assert_eq!(failure(&mut stage).as_deref(), Some("Running"), "another incarnation");
    stage.world.edit(|set| set["status"]["phase"] = json!("Failed"));
    let mut restarted = Stage::new(stage.world.clone());
    assert_eq!(failure(&mut restarted), None, "another process has counted it");
}
