//! `/scale` of a set, as a real API server answered it for the same definition.

use super::{cluster, get, merge, operations, post, put, refusal, strategic, sure};
use cocoon_operator::core::wire::{MERGE_PATCH, Method, Request};
use cocoon_operator::sim::store::Store;
use serde_json::{Value, json};

const SETS: &str = "/apis/cocoonset.cocoonstack.io/v1/namespaces/default/cocoonsets";
const DEMO: &str = "/apis/cocoonset.cocoonstack.io/v1/namespaces/default/cocoonsets/demo";
const SCALE: &str = "/apis/cocoonset.cocoonstack.io/v1/namespaces/default/cocoonsets/demo/scale";

fn with_set() -> Store {
    let mut store = cluster();
    let set = json!({
        "apiVersion": "cocoonset.cocoonstack.io/v1", "kind": "CocoonSet", "metadata": {"name": "demo"},
        "spec": {"agent": {"image": "i"}},
    });
    sure(&post(&mut store, SETS, set));
    store
}

fn scale(replicas: Value) -> Value {
    json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "demo"}, "spec": {"replicas": replicas}})
}

#[test]
fn numbers_and_selector_are_those_of_the_set() {
    let mut store = with_set();
    let none = sure(&get(&mut store, SCALE));
    assert_eq!((&none["kind"], &none["apiVersion"]), (&json!("Scale"), &json!("autoscaling/v1")));
    assert_eq!((&none["spec"], &none["status"]), (&json!({}), &json!({"replicas": 0})));
    sure(&merge(&mut store, DEMO, json!({"spec": {"agent": {"replicas": 2}}})));
    let status = json!({"status": {"subAgents": 1, "selector": "a=b"}});
    let set = sure(&merge(&mut store, &format!("{DEMO}/status"), status));
    let some = sure(&get(&mut store, SCALE));
    assert_eq!((&some["spec"], &some["status"]), (&json!({"replicas": 2}), &json!({"replicas": 1, "selector": "a=b"})));
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        assert_eq!(some["metadata"][field], set["metadata"][field], "{field}");
    }
}

#[test]
fn only_the_number_is_written() {
    let mut store = with_set();
    let patch = json!({
        "metadata": {"labels": {"a": "b"}, "uid": "other"}, "spec": {"replicas": 2, "x": 1}, "status": {"replicas": 7},
    });
    assert_eq!(sure(&merge(&mut store, SCALE, patch))["spec"], json!({"replicas": 2}));
    let set = sure(&get(&mut store, DEMO));
    assert_eq!(set["spec"]["agent"]["replicas"], 2);
    assert_eq!((set.get("status"), set["metadata"].get("labels")), (None, None));
    assert_eq!(set["metadata"]["generation"], 2);
    let replace = json!([{"op": "replace", "path": "/spec/replicas", "value": 3}]);
    assert_eq!(sure(&operations(&mut store, SCALE, replace))["spec"], json!({"replicas": 3}));
    assert_eq!(sure(&put(&mut store, SCALE, scale(json!(5))))["spec"], json!({"replicas": 5}));
    let mut nothing = scale(json!(0));
    nothing["spec"] = json!({});
    assert_eq!(sure(&put(&mut store, SCALE, nothing))["spec"], json!({}));
    assert_eq!(sure(&get(&mut store, DEMO))["spec"]["agent"]["replicas"], 0);
}

#[test]
fn a_dry_run_scales_nothing() {
    let mut store = with_set();
    let patch = Request::new(Method::Patch, SCALE).with_body(MERGE_PATCH, json!({"spec": {"replicas": 2}}));
    let before = sure(&get(&mut store, SCALE));
    let rehearsed = sure(&store.handle(&patch.with_query("dryRun", "All")));
    assert_eq!(rehearsed["spec"], json!({"replicas": 2}));
    assert_eq!(rehearsed["metadata"], before["metadata"]);
    assert_eq!(sure(&get(&mut store, SCALE)), before);
}

#[test]
fn refusals_are_in_the_words_of_the_set() {
    let mut store = with_set();
    let stale = json!({"metadata": {"resourceVersion": "1"}, "spec": {"replicas": 2}});
    let (code, reason, message) = (409, "Conflict", "cocoonsets.cocoonset.cocoonstack.io \"demo\"");
    let reply = merge(&mut store, SCALE, stale);
    assert_eq!((refusal(&reply).0, refusal(&reply).1), (code, reason));
    assert!(refusal(&reply).2.contains(message));
    let reply = merge(&mut store, SCALE, json!({"spec": {"replicas": -2}}));
    let message = "CocoonSet.cocoonset.cocoonstack.io \"demo\" is invalid: [spec.agent.replicas: Invalid value: -2: \
        spec.agent.replicas in body should be greater than or equal to 0, .spec.agent.replicas: Invalid value: -2: should \
        be a non-negative integer]";
    assert_eq!(refusal(&reply), (422, "Invalid", message));
    let reply = merge(&mut store, SCALE, json!({"spec": {"replicas": "x"}}));
    assert_eq!((refusal(&reply).0, refusal(&reply).1), (422, "Invalid"));
    assert!(
        refusal(&reply)
            .2
            .ends_with("cannot unmarshal string into Go struct field ScaleSpec.spec.replicas of type int32")
    );
    let mut other = scale(json!(2));
    other["metadata"]["name"] = json!("other");
    let reply = put(&mut store, SCALE, other);
    assert_eq!(
        refusal(&reply),
        (400, "BadRequest", "the name of the object (other) does not match the name on the URL (demo)")
    );
    assert_eq!(refusal(&strategic(&mut store, SCALE, json!({"spec": {"replicas": 2}}))).0, 415);
    assert_eq!(sure(&get(&mut store, SCALE))["spec"], json!({}));
}

#[test]
fn what_is_not_there_is_not_scaled() {
    let mut store = with_set();
    let none = format!("{SETS}/none/scale");
    let missing = "cocoonsets.cocoonset.cocoonstack.io \"none\" not found";
    assert_eq!(refusal(&get(&mut store, &none)), (404, "NotFound", missing));
    assert_eq!(refusal(&merge(&mut store, &none, json!({"spec": {"replicas": 2}}))), (404, "NotFound", missing));
    let unscaled = DEMO.replace("cocoonsets/", "cocoonhibernations/");
    let missing = "cocoonhibernations.cocoonset.cocoonstack.io \"demo\" not found";
    assert_eq!(refusal(&get(&mut store, &format!("{unscaled}/scale"))), (404, "NotFound", missing));
    let pod = "/api/v1/namespaces/default/pods/demo/scale";
    let unknown = "the server could not find the requested resource";
    assert_eq!(refusal(&merge(&mut store, pod, json!({}))), (404, "NotFound", unknown));
}
