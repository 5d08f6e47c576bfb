//! What the operator remembers on the set itself: rebuild histories, VM records, names to collect, the status.

use cocoon_operator::core::api::cocoonset::SetStatus;
use cocoon_operator::core::api::condition::{self, Condition};
use cocoon_operator::core::api::hibernation::{HibernationSpec, HibernationStatus, holds_asleep, wants_restore};
use cocoon_operator::core::contract::names::{Role, VmName};
use cocoon_operator::core::contract::rebuilds::{Charged, Rebuild, Rebuilds};
use cocoon_operator::core::contract::records::{Record, RecordState, Records};
use cocoon_operator::core::contract::{delete_names, keys};
use cocoon_operator::core::oddity::Oddity;
use rstest::rstest;
use serde_json::{Value, json};
use std::collections::BTreeSet;

fn reasons(oddities: &[Oddity]) -> Vec<&str> {
    oddities.iter().map(|oddity| oddity.reason).collect()
}

fn now() -> jiff::Timestamp {
    "2026-08-01T10:00:00.123456789Z".parse().unwrap()
}

fn times(count: u32) -> Rebuild {
    let (vm, given_up) = ("vm-1".to_owned(), count > 1);
    Rebuild { count, last_deleted: Some(now()), uid: "u1".into(), generation: Some(7), vm, given_up }
}

#[test]
fn l4_a_history_round_trips_and_is_pruned() {
    let text = r#"{"1":{"count":2,"lastDeleted":"2026-08-01T10:00:00.123456789Z"},"2":{"count":1},"7":{"count":9}}"#;
    let (mut history, oddity) = Rebuilds::read(keys::REBUILD_HISTORY, Some(text));
    assert_eq!(oddity, None);
    let Charged::Times(rebuild) = history.of("1") else { panic!() };
    assert_eq!((rebuild.count, rebuild.last_deleted), (2, Some(now())));
    assert_eq!(history.of("3"), Charged::Never);
    history.prune_slots(2);
    history.put("2", times(2));
    history.put("3", times(1));
    let written: Value = serde_json::from_str(&history.write().unwrap()).unwrap();
    let last = "2026-08-01T10:00:00.123456789Z";
    assert_eq!(
        written,
        json!({ "1": { "count": 2, "lastDeleted": last }, "2": { "count": 2, "lastDeleted": last, "uid": "u1", "generation": 7, "vmID": "vm-1", "givenUp": true },
            "3": { "count": 1, "lastDeleted": last, "uid": "u1", "generation": 7, "vmID": "vm-1" } })
    );
    let (again, _) = Rebuilds::read(keys::REBUILD_HISTORY, Some(&history.write().unwrap()));
    assert_eq!(again, history);
    history.forget("1");
    assert_eq!(history.of("1"), Charged::Never);
}

/// L4 says "corrupt or null reads as empty"; R21 overrules: nothing readable is no budget.
#[rstest]
#[case("null")]
#[case("")]
#[case("not json")]
#[case("[]")]
#[case("{\"1\":")]
fn what_cannot_be_read_counts_as_exhausted(#[case] text: &str) {
    let (mut history, oddity) = Rebuilds::read(keys::REBUILD_HISTORY, Some(text));
    assert_eq!(oddity.unwrap().reason, "CorruptAnnotation");
    assert_eq!(history.of("1"), Charged::Unreadable);
    history.put("1", times(1));
    assert_eq!(history.write(), None, "nothing is written over it");
    history.start_over();
    assert_eq!(history.of("1"), Charged::Never);
}

#[rstest]
#[case(json!(-1))]
#[case(json!(1.5))]
#[case(json!("2"))]
#[case(json!(null))]
#[case(json!(99_999_999_999_i64))]
fn one_bad_count_spoils_one_slot(#[case] count: Value) {
    let text = json!({ "1": { "count": count }, "2": { "count": 1, "lastDeleted": "yesterday" } }).to_string();
    let (mut history, oddity) = Rebuilds::read(keys::REBUILD_HISTORY, Some(&text));
    assert!(oddity.is_some());
    assert_eq!(history.of("1"), Charged::Unreadable);
    assert!(matches!(history.of("2"), Charged::Times(rebuild) if rebuild.count == 1 && rebuild.last_deleted.is_none()));
    history.put("2", times(2));
    history.put("1", times(1));
    let written: Value = serde_json::from_str(&history.write().unwrap()).unwrap();
    assert_eq!(written["1"]["count"], count, "what cannot be read is kept as it came");
}

#[test]
fn no_history_is_a_fresh_budget() {
    let (history, oddity) = Rebuilds::read(keys::REBUILD_HISTORY, None);
    assert!(history.is_empty() && oddity.is_none());
    assert_eq!(history.write().as_deref(), Some("{}"));
}

fn record() -> Record {
    Record {
        round: 1,
        generation: 3,
        state: RecordState::Saved,
        digest: "sha256:1".into(),
        base_image: "img".into(),
        node: "node-a".into(),
        since: "2026-08-01T10:00:00Z".into(),
    }
}

#[test]
fn records_are_bound_to_their_set() {
    let mut records = Records::default();
    records.put(&Role::Main, record());
    records.put(&Role::Toolbox("tb".into()), record());
    records.put(&Role::Unknown, record());
    let text = records.write("uid-1").unwrap();
    let (read, oddities) = Records::read(Some(&text), "uid-1");
    assert_eq!((read.clone(), oddities.len()), (records, 0));
    assert_eq!(read.iter().map(|(key, _)| key).collect::<Vec<_>>(), ["0", "tb"]);
    let (other, oddities) = Records::read(Some(&text), "uid-2");
    assert!(other.is_empty() && oddities.is_empty(), "an exported manifest's records are nobody's (R13)");
}

#[rstest]
#[case("null")]
#[case("{}")]
#[case("{")]
#[case(r#"{"uid":"u","vms":[]}"#)]
#[case(r#"{"uid":"u","vms":{"0":{"state":"lost"}}}"#)]
fn records_that_cannot_be_read_are_not_absent(#[case] text: &str) {
    let (read, oddities) = Records::read(Some(text), "u");
    assert_eq!(reasons(&oddities), ["CorruptAnnotation"]);
    assert!(read.is_unreadable() && !read.is_empty());
}

#[test]
fn too_many_records_are_refused_beforehand() {
    let mut records = Records::default();
    for slot in 1..2000 {
        records.put(&Role::SubAgent(slot), record());
    }
    assert!(records.write("u").unwrap_err().bytes > 128 * 1024);
}

#[test]
fn delete_names_are_the_sets_own() {
    let known = BTreeSet::from([VmName::from("old-name")]);
    let read =
        delete_names::read(" vk-ns-demo-1,,vk-ns-demo-0 , other/tenant,old-name,vk-ns-demo-0", "ns", "demo", &known);
    assert_eq!(delete_names::write(&read.names), "old-name,vk-ns-demo-0,vk-ns-demo-1");
    let oddity = read.oddity.unwrap();
    assert!(oddity.message.contains("other/tenant"), "D-31: {}", oddity.message);
    assert_eq!(delete_names::read("", "ns", "demo", &known).names.len(), 0);
}

#[test]
fn the_wire_form_is_exact() {
    assert_eq!(
        SetStatus::default().to_value(),
        json!({ "readyAgents": 0, "desiredAgents": 0, "readyToolboxes": 0, "desiredToolboxes": 0 })
    );
    let wire = json!({
        "observedGeneration": 7, "phase": "Running",
        "readyAgents": 2, "desiredAgents": 2, "readyToolboxes": 1, "desiredToolboxes": 1,
        "agents": [
            { "slot": 0, "role": "main", "podName": "demo-0", "vmName": "vk-ns-demo-0", "vmID": "qemu-1",
                    "ip": "10.0.0.1",
                    "phase": "Running", "nodeName": "a" },
            { "slot": 1, "role": "sub-agent", "forkedFrom": "vk-ns-demo-0" },
        ],
        "toolboxes": [{ "name": "tb", "vmID": "q", "connType": "vnc", "vncPort": 5901, "nodeName": "b" }],
        "conditions": [{ "type": "Ready", "status": "True", "observedGeneration": 7,
            "lastTransitionTime": "2026-08-01T10:00:00Z", "reason": "AllAgentsReady", "message": "m" }],
    });
    let status = SetStatus::read(&wire);
    assert_eq!(status.to_value(), wire);
    assert_eq!(status.vm_names().collect::<Vec<_>>(), ["vk-ns-demo-0"]);
}

#[test]
fn garbage_never_reaches_the_wire() {
    let status = SetStatus::read(
        &json!({ "phase": 3, "agents": [{ "role": "main" }, 1], "toolboxes": [{ "name": "tb", "connType": "telnet" }],
        "readyAgents": "x", "conditions": {} }),
    );
    assert_eq!(
        status.to_value(),
        json!({ "readyAgents": 0, "desiredAgents": 0, "readyToolboxes": 0, "desiredToolboxes": 0,
            "toolboxes": [{ "name": "tb" }] })
    );
}

#[test]
fn conditions_move_only_with_their_status() {
    let old = vec![
        Condition { last_transition_time: "t0".into(), ..Condition::new("Foreign", true, "X", "", 1) },
        Condition { last_transition_time: "t0".into(), ..Condition::new("Ready", true, "A", "a", 1) },
        Condition { last_transition_time: "t0".into(), ..Condition::new("Degraded", true, "A", "a", 1) },
    ];
    let timeless = condition::merge(
        &[Condition::new("Ready", true, "A", "a", 1)],
        vec![Condition::new("Ready", true, "A", "a", 1)],
        "t1",
    );
    assert_eq!(timeless[0].last_transition_time, "t1");
    let ours = vec![
        Condition::new("Ready", true, "B", "b", 2),
        Condition::new("Degraded", false, "B", "b", 2),
        Condition::new("Progressing", true, "B", "b", 2),
    ];
    let merged = condition::merge(&old, ours, "t1");
    let told: Vec<_> =
        merged.iter().map(|c| (c.kind.as_str(), c.reason.as_str(), c.last_transition_time.as_str())).collect();
    assert_eq!(
        told,
        [("Foreign", "X", "t0"), ("Ready", "B", "t0"), ("Degraded", "B", "t1"), ("Progressing", "B", "t1")]
    );
    assert!(!condition::find(&merged, "Degraded").unwrap().is_true());
    let sound = json!({ "type": "X", "status": "True", "reason": "R", "lastTransitionTime": "2026-08-01T10:00:00Z" });
    for (key, value) in [("status", "Maybe"), ("reason", ""), ("lastTransitionTime", "yesterday"), ("type", "")] {
        let mut broken = sound.clone();
        broken[key] = json!(value);
        assert_eq!(Condition::read_all(&json!([broken, sound])).len(), 1, "{key} would be refused");
    }
    assert_eq!(Condition::new("Ready", true, "A", "é".repeat(20_000), 1).message.chars().count(), 16_384);
}

#[test]
fn requests_tell_who_owns_a_sleeping_vm() {
    let read = |desire: &str, phase: &str| {
        let (spec, _) = HibernationSpec::read(&json!({ "podRef": { "name": "p" }, "desire": desire }));
        let status = HibernationStatus::read(&json!({ "phase": phase, "vmName": "v" }));
        (holds_asleep(&spec, &status), wants_restore(&status))
    };
    assert_eq!(read("Hibernate", ""), (true, false));
    assert_eq!(read("Hibernate", "Hibernated"), (true, true));
    assert_eq!(read("Wake", "Hibernating"), (true, false));
    assert_eq!(read("Wake", "Waking"), (false, true));
    assert_eq!(read("Wake", "Active"), (false, false));
}
