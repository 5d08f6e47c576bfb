//! `memory`: what only the running operator knows, taken in from a dump.

use super::{actions, explained, observation, rules_of, run, set};
use serde_json::{Value, json};

fn with(memory: Value) -> Value {
    let seen = json!({ "now": "2026-08-03T12:03:00Z", "snapshots": { "vk-a-x-0": { "hibernate": "absent" } },
                       "memory": { "a/x": memory } });
    explained(&[set("a", "x"), observation(seen)]).remove(0)
}

fn refused(count: u32, age: f64) -> Value {
    let attempt = json!({ "action": "CreatePod", "target": "x-0", "class": "QuotaExceeded", "count": count,
                          "ageSeconds": age, "sinceAgeSeconds": 900, "generation": 1, "message": "exceeded quota: q" });
    json!({ "attempts": [attempt] })
}

#[test]
fn an_attempt_is_as_old_as_it_says() {
    assert_eq!(actions(&with(json!({}))), ["CreatePod"]);
    let fresh = with(refused(1, 0.5));
    assert_eq!(rules_of(&fresh).last(), Some(&"answer/await-quota"), "{fresh}");
    let waits = fresh["actions"].as_array().expect("actions").iter().find(|a| a["action"] == "Await");
    assert_eq!(waits.expect("a wait")["recheckAfterSeconds"], 1.5);
    assert_eq!(fresh["error"]["reason"], "QuotaExceeded", "for fifteen minutes now");
    assert!(actions(&with(refused(1, 3.0))).contains(&"CreatePod"), "it is due");
    assert!(!actions(&with(refused(9, 9.0))).contains(&"CreatePod"), "the ninth waits longer");
}

#[test]
fn a_refusal_of_the_namespace_is_remembered_with_what_was_read_since() {
    let refusal =
        |live: &str, age: f64| with(json!({ "namespaceRefusal": { "count": 2, "ageSeconds": age, "live": live } }));
    assert_eq!(rules_of(&refusal("terminating", 60.0)), ["namespace/terminating"]);
    assert_eq!(rules_of(&refusal("unasked", 60.0)), ["namespace/look", "namespace/terminating"]);
    assert_eq!(refusal("active", 0.5)["actions"][0]["recheckAfterSeconds"], 1.5);
    assert_eq!(actions(&refusal("active", 2.5)), ["CreatePod"]);
    assert_eq!(rules_of(&refusal("refused", 1.0)).first(), Some(&"namespace/blind"));
}

#[test]
fn own_writes_that_the_watch_has_not_shown_hold_everything_back() {
    let element = with(json!({ "unseen": ["CreatePod x-0"] }));
    assert_eq!(rules_of(&element), ["freshness/await-own-writes"]);
}

#[test]
fn a_pod_that_went_is_looked_for_before_another_is_created() {
    let gone = json!({ "uid": "u", "node": "n", "hadVm": true, "nodeWasReady": true });
    let element = with(json!({ "vanished": { "x-0": gone } }));
    assert_eq!(rules_of(&element).first(), Some(&"seat/look-for-vanished"), "{element}");
}

#[test]
fn the_rest_reads_too() {
    let element = with(json!({
        "uid": "uid-of-a-x", "lastStatusAgeSeconds": 0.2, "deleted": { "x-1": "u1" }, "nodeNamesPruned": true,
        "watched": { "u0": { "everReady": true, "everMarked": false } }, "found": { "vk-a-x-9": 3 },
        "foreign": { "x-7": { "looks": 2, "ageSeconds": 5, "owner": { "kind": "ReplicaSet", "name": "r" }, "deleting": true } },
        "error": { "reason": "QuotaExceeded", "ageSeconds": 30 },
        "vanished": { "x-9": { "uid": "u9", "confirmed": true, "succeeded": true } },
        "attempts": [{ "action": "AddFinalizer", "class": "PreconditionFailed", "ageSeconds": 100, "looked": true,
                       "onLive": true, "tested": ["a"], "retryAfterSeconds": 1, "dryRun": false }],
    }));
    assert_eq!(actions(&element), ["CreatePod"], "{element}");
}

#[test]
fn memory_of_another_uid_is_dropped_and_said_to_be() {
    let mut memory = refused(1, 0.5);
    memory["uid"] = json!("somebody-else");
    let seen = json!({ "snapshots": { "vk-a-x-0": { "hibernate": "absent" } }, "memory": { "a/x": memory } });
    let text = format!("{}\n{}", set("a", "x"), observation(seen));
    let ran = run(&["explain", "-f", "-", "-o", "json"], text.as_bytes());
    assert!(ran.err.contains("another uid"), "{}", ran.err);
    let all: Value = serde_json::from_str(&ran.out).expect("JSON");
    assert_eq!(actions(&all[0]), ["CreatePod"]);
}
