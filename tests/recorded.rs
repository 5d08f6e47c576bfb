//! The names that are written down for teardown: they leave once nothing is owed under them, and whatever stands there
//! keeps no set from being deleted (D-31).

mod common;

use cocoon_operator::core::action::ActionKind;
use cocoon_operator::core::contract::keys;
use cocoon_operator::core::contract::names::Role;
use cocoon_operator::core::outcome::{Class, Outcome};
use common::stage::{Stage, plainly};
use common::world::{State, World};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

fn spec(toolboxes: &[&str]) -> Value {
    let toolboxes: Vec<Value> = toolboxes.iter().map(|name| json!({ "name": name, "image": "img" })).collect();
    json!({ "agent": { "image": "img", "replicas": 1 }, "snapshotPolicy": "never", "toolboxes": toolboxes })
}

fn settled(spec: Value) -> Stage {
    let mut stage = Stage::new(World::of(spec));
    stage.drive(Duration::from_secs(60), &mut plainly);
    stage
}

fn recorded(stage: &Stage) -> BTreeSet<String> {
    stage.world.facts().recorded_names().map(str::to_owned).collect()
}

/// Names of toolboxes that are no more.
fn old(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("vk-ns-demo-old{number}")).collect()
}

fn record(stage: &mut Stage, names: &[String]) {
    let names = names.join(",");
    stage.world.edit(|set| set["metadata"]["annotations"] = json!({ keys::DELETE_VM_NAMES: names }));
}

fn count(stage: &Stage, action: ActionKind) -> usize {
    stage.sent.iter().filter(|sent| sent.attempt.action == action).count()
}

#[test]
fn a_set_that_changes_for_ever_keeps_few_names_and_can_be_deleted() {
    let mut stage = settled(spec(&[]));
    let mut most = 0;
    for round in 0..60 {
        let name = format!("tb{round}");
        stage.world.edit(|set| set["spec"] = spec(&[name.as_str()]));
        stage.drive(Duration::from_secs(30), &mut plainly);
        most = most.max(recorded(&stage).len());
    }
    assert!((30..=34).contains(&most), "{most} names were recorded at once");
    stage.world.delete_set();
    stage.drive(Duration::from_secs(60), &mut plainly);
    assert!(stage.world.set.is_none());
}

#[test]
fn names_with_a_tag_or_a_pod_stay_and_are_not_asked_about_at_every_turn() {
    let mut stage = settled(spec(&["old5"]));
    stage.world.hidden.insert("demo-old5".to_owned());
    stage.world.edit(|set| set["spec"] = spec(&[]));
    stage.world.tags.insert("vk-ns-demo-old7:latest".to_owned(), "sha256:7".to_owned());
    record(&mut stage, &old(40));
    stage.world.edit(|set| set["status"] = json!({}));
    let mut stage = Stage::new(stage.world);
    stage.drive(Duration::from_secs(60), &mut plainly);
    let left = recorded(&stage);
    assert!(left.contains("vk-ns-demo-old7") && left.contains("vk-ns-demo-old5"), "{left:?}");
    assert!(left.len() <= 32, "{left:?}");
    assert_eq!(count(&stage, ActionKind::DeleteSnapshot), 0, "no tag is deleted while the set lives");

    let tagged: Vec<String> = old(40);
    stage.world.tags.extend(tagged.iter().map(|vm| (format!("{vm}:hibernate"), "sha256:8".to_owned())));
    record(&mut stage, &tagged);
    stage.drive(Duration::from_secs(3000), &mut plainly);
    let asked = count(&stage, ActionKind::ProbeSnapshot);
    for _ in 0..5 {
        stage.world.edit(|set| set["metadata"]["labels"] = json!({}));
        stage.drive(Duration::from_secs(60), &mut plainly);
    }
    assert_eq!(recorded(&stage).len(), 40);
    assert_eq!(count(&stage, ActionKind::ProbeSnapshot), asked, "the tags were just seen");
    stage.world.tags.clear();
    stage.drive(Duration::from_secs(7200), &mut plainly);
    stage.world.edit(|set| set["metadata"]["annotations"]["cocoonset.cocoonstack.io/nudge"] = json!("x"));
    stage.drive(Duration::from_secs(60), &mut plainly);
    let left = recorded(&stage).len();
    assert!(left <= 32, "{left} are left: an hour later they are asked for again");
}

#[test]
fn nothing_is_forgotten_while_the_registry_is_away() {
    let mut stage = settled(spec(&[]));
    record(&mut stage, &old(40));
    let mut away = |_: &mut World, _: &cocoon_operator::core::action::Action, attempt: &_| {
        let attempt: &cocoon_operator::core::action::Attempt = attempt;
        (attempt.action == ActionKind::ProbeSnapshot).then(|| Outcome::of(Class::Unavailable).saying("away"))
    };
    stage.drive(Duration::from_secs(600), &mut away);
    assert_eq!(recorded(&stage).len(), 40);
    let seen = stage.observe().expect("a set");
    let degraded = seen.set.status.conditions.iter().find(|one| one.kind == "Degraded").map(|one| one.status.as_str());
    assert_ne!(degraded, Some("True"), "there is no hurry, and nothing to tell");
}

#[test]
fn a_pod_whose_name_no_longer_fits_stays() {
    let mut stage = settled(spec(&["tb"]));
    let long: Vec<String> = (0..1000).map(|number| format!("vk-ns-demo-{}{number}", "x".repeat(70))).collect();
    stage.world.tags.extend(long.iter().map(|vm| (format!("{vm}:latest"), "sha256:8".to_owned())));
    record(&mut stage, &long);
    stage.world.edit(|set| set["spec"] = spec(&[]));
    stage.drive(Duration::from_secs(60), &mut plainly);
    assert!(stage.world.pods.contains_key("demo-tb"));
    let seen = stage.observe().expect("a set");
    let degraded = seen.set.status.conditions.iter().find(|one| one.kind == "Degraded").expect("a condition");
    assert_eq!(degraded.reason, "RecordTooLarge", "{}", degraded.message);
}

#[test]
fn a_record_that_is_refused_holds_no_deletion_up() {
    for class in [Class::Invalid, Class::TooLarge] {
        let mut stage = settled(spec(&["tb"]));
        let mut refused = |_: &mut World, _: &cocoon_operator::core::action::Action, attempt: &_| {
            let attempt: &cocoon_operator::core::action::Attempt = attempt;
            (attempt.action == ActionKind::PatchObject).then(|| Outcome::of(class).saying("Too long"))
        };
        stage.world.add_pod(&Role::SubAgent(1), State::Ready);
        stage.world.tags.insert("vk-ns-demo-tb:latest".to_owned(), "sha256:7".to_owned());
        stage.world.delete_set();
        stage.drive(Duration::from_secs(120), &mut refused);
        assert!(stage.world.set.is_none(), "{class}: the status lists every name");
        assert!(stage.world.tags.is_empty(), "{class}");
        assert_eq!(count(&stage, ActionKind::PatchObject), 1, "{class}");
    }
}
