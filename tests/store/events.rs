//! What the API server asks of an event, and what of it may change later.

use super::{cluster, get, merge, post, refusal, sure};
use serde_json::{Value, json};

const NEW: &str = "/apis/events.k8s.io/v1/namespaces/default/events";
const OLD: &str = "/api/v1/namespaces/default/events";

fn event() -> Value {
    json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "e"}, "note": "n", "type": "Warning",
        "eventTime": "2026-01-01T00:00:00.000000Z", "action": "Rebuild", "reason": "SubAgentRebuilding",
        "regarding": {"kind": "CocoonSet", "name": "demo", "namespace": "default"},
        "reportingController": "cocoon-operator", "reportingInstance": "pod-1",
    })
}

/// The fields that a refusal names, of an event with this in it.
fn wrong(field: &str, value: Value) -> Vec<String> {
    let mut object = event();
    object[field] = value;
    let reply = post(&mut cluster(), NEW, object);
    assert_eq!(refusal(&reply).0, 422, "{field}: {}", reply.value());
    let causes = reply.value().pointer("/details/causes").and_then(Value::as_array).cloned().unwrap_or_default();
    causes.iter().map(|cause| cause["field"].as_str().unwrap_or("").to_owned()).collect()
}

#[test]
fn an_event_that_lacks_something_is_refused() {
    for field in ["action", "reason", "reportingController", "reportingInstance", "eventTime", "type"] {
        assert_eq!(wrong(field, Value::Null), [field]);
    }
    for field in ["action", "reason", "reportingInstance"] {
        assert_eq!(wrong(field, json!("x".repeat(129))), [field]);
    }
    assert_eq!(wrong("note", json!("x".repeat(1_025))), ["message"]);
    assert_eq!(wrong("type", json!("Bad")), ["type"]);
    assert_eq!(wrong("reportingController", json!("a b")), ["reportingController"]);
    assert_eq!(wrong("regarding", json!({"namespace": "another"})), ["involvedObject.namespace"]);
    assert_eq!(wrong("deprecatedCount", json!(3)), ["count"]);
}

#[test]
fn the_older_face_shows_it_and_asks_for_less() {
    let mut store = cluster();
    sure(&post(&mut store, NEW, event()));
    let seen = sure(&get(&mut store, &format!("{OLD}/e")));
    assert_eq!((&seen["reportingComponent"], &seen["message"]), (&json!("cocoon-operator"), &json!("n")));
    assert_eq!((&seen["source"], &seen["firstTimestamp"]), (&json!({}), &Value::Null));
    let bare = json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": "old"}, "reason": "R",
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"},
    });
    sure(&post(&mut store, OLD, bare));
}

#[test]
fn only_the_series_moves() {
    let mut store = cluster();
    sure(&post(&mut store, NEW, event()));
    let path = format!("{NEW}/e");
    let series = json!({"series": {"count": 2, "lastObservedTime": "2026-01-01T00:01:00.000000Z"}});
    assert_eq!(sure(&merge(&mut store, &path, series))["series"]["count"], 2);
    for (field, value) in [("note", json!("other")), ("reason", json!("Other")), ("related", json!({"kind": "Pod"}))] {
        let reply = merge(&mut store, &path, json!({ field: value }));
        assert_eq!(refusal(&reply).0, 422, "{field}");
    }
}
