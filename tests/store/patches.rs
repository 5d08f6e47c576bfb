//! Patches: Go's reading of JSON patch, merge keys, and what pods take.

use super::{PODS, bound, cluster, delete, get, merge, operations, pod, post, refusal, strategic, sure};
use cocoon_operator::core::wire::{JSON, Method, Request};
use cocoon_operator::sim::store::Store;
use rstest::rstest;
use serde_json::{Value, json};

fn with_pod(change: impl FnOnce(&mut Value)) -> (Store, String) {
    let mut store = cluster();
    let mut object = pod("p");
    change(&mut object);
    sure(&post(&mut store, PODS, object));
    (store, format!("{PODS}/p"))
}

#[rstest]
#[case::null_on_an_absent_list_passes(json!([]), json!(null), 200)]
#[case::an_empty_list_does_not(json!([]), json!([]), 422)]
#[case::the_list_as_it_is_passes(json!(["a/b"]), json!(["a/b"]), 200)]
#[case::another_list_does_not(json!(["a/b"]), json!(["a/c"]), 422)]
#[case::null_on_a_list_does_not(json!(["a/b"]), json!(null), 422)]
fn a_test_of_the_finalizers(#[case] stored: Value, #[case] tested: Value, #[case] status: u16) {
    let (mut store, path) = with_pod(|pod| pod["metadata"]["finalizers"] = stored);
    let patch = json!([
        {"op": "test", "path": "/metadata/finalizers", "value": tested},
        {"op": "add", "path": "/metadata/finalizers", "value": ["x/y"]},
    ]);
    let reply = operations(&mut store, &path, patch);
    assert_eq!(reply.status, status, "{}", reply.value());
    if status == 422 {
        assert_eq!(reply.value()["details"], json!({}));
    }
}

#[test]
fn an_emptied_finalizer_list_is_stored_as_absent() {
    let (mut store, path) = with_pod(|pod| pod["metadata"]["finalizers"] = json!(["a/b"]));
    let patched =
        sure(&operations(&mut store, &path, json!([{"op": "replace", "path": "/metadata/finalizers", "value": []}])));
    assert_eq!(patched["metadata"].get("finalizers"), None);
}

#[test]
fn an_operation_in_the_middle_undoes_those_before_it() {
    let (mut store, path) = with_pod(|_| {});
    let before = sure(&get(&mut store, &path));
    let patch = json!([
        {"op": "add", "path": "/metadata/labels", "value": {"a": "b"}},
        {"op": "remove", "path": "/metadata/annotations/none"},
    ]);
    assert_eq!(operations(&mut store, &path, patch).status, 422);
    assert_eq!(sure(&get(&mut store, &path)), before);
}

#[test]
fn strategic_patches_merge_by_key() {
    let (mut store, path) = with_pod(|pod| {
        pod["metadata"]["finalizers"] = json!(["a/b"]);
        pod["metadata"]["ownerReferences"] = json!([{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u1"}]);
    });
    let patch = json!({
        "metadata": {
            "finalizers": ["c/d"],
            "ownerReferences": [{"uid": "u2", "apiVersion": "v1", "kind": "Node", "name": "m"}, {"uid": "u1", "name": "n2"}],
        },
        "spec": {"containers": [{"name": "c", "image": "img:2"}], "$setElementOrder/containers": [{"name": "c"}]},
    });
    let patched = sure(&strategic(&mut store, &path, patch));
    assert_eq!(patched["metadata"]["finalizers"], json!(["c/d", "a/b"]), "what is new comes first");
    let owners = patched["metadata"]["ownerReferences"].as_array().expect("owners");
    assert_eq!(owners.iter().map(|o| o["name"].as_str()).collect::<Vec<_>>(), [Some("m"), Some("n2")]);
    assert_eq!(patched["spec"]["containers"].as_array().map(Vec::len), Some(1));
    assert_eq!(patched["spec"]["containers"][0]["image"], "img:2");
    assert_eq!(patched["metadata"]["generation"], 2);
    let gone = json!({"metadata": {
        "finalizers": ["c/d"], "$deleteFromPrimitiveList/finalizers": ["a/b"], "ownerReferences": [{"$patch": "delete", "uid": "u1"}],
    }});
    let patched = sure(&strategic(&mut store, &path, gone));
    assert_eq!(patched["metadata"]["finalizers"], json!(["c/d"]));
    assert_eq!(patched["metadata"]["ownerReferences"].as_array().map(Vec::len), Some(1));
}

#[test]
fn strategic_patches_keep_conditions_of_other_types() {
    let (mut store, path) = with_pod(|_| {});
    let status = format!("{path}/status");
    let condition = |kind: &str, status: &str| json!({"status": {"conditions": [{"type": kind, "status": status}]}});
    sure(&strategic(&mut store, &status, condition("Ready", "False")));
    sure(&strategic(&mut store, &status, condition("PodScheduled", "True")));
    let patched = sure(&strategic(&mut store, &status, condition("Ready", "True")));
    let conditions = json!([{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": "True"}]);
    assert_eq!(patched["status"]["conditions"], conditions);
}

#[test]
fn tolerations_are_replaced_as_a_whole_and_only_added_to() {
    let (mut store, path) = with_pod(|_| {});
    let tolerations = sure(&get(&mut store, &path))["spec"]["tolerations"].clone();
    assert_eq!(tolerations.as_array().map(Vec::len), Some(2), "the two that every pod gets");
    let mut more = tolerations.clone();
    more.as_array_mut().expect("a list").push(json!({"key": "k", "operator": "Exists"}));
    sure(&strategic(&mut store, &path, json!({"spec": {"tolerations": more}})));
    let fewer = strategic(&mut store, &path, json!({"spec": {"tolerations": [{"key": "k", "operator": "Exists"}]}}));
    assert_eq!(refusal(&fewer).0, 422);
}

#[test]
fn own_tolerations_stand_in_for_the_default_ones() {
    let (mut store, path) = with_pod(|pod| pod["spec"]["tolerations"] = json!([{"operator": "Exists"}]));
    assert_eq!(sure(&get(&mut store, &path))["spec"]["tolerations"], json!([{"operator": "Exists"}]));
}

#[test]
fn requests_default_to_limits_one_by_one() {
    let (mut store, path) = with_pod(|pod| {
        pod["spec"]["containers"][0]["resources"] =
            json!({"limits": {"cpu": "2", "ephemeral-storage": "10Gi"}, "requests": {"cpu": "1"}});
    });
    let stored = sure(&get(&mut store, &path));
    let requests = &stored["spec"]["containers"][0]["resources"]["requests"];
    assert_eq!(requests, &json!({"cpu": "1", "ephemeral-storage": "10Gi"}));
    assert_eq!(stored["status"]["qosClass"], "Burstable");
}

#[test]
fn a_pod_keeps_its_node() {
    let mut store = cluster();
    sure(&post(&mut store, PODS, bound("p", "n1")));
    let reply = merge(&mut store, &format!("{PODS}/p"), json!({"spec": {"nodeName": "n2"}}));
    assert_eq!(refusal(&reply).0, 422);
}

#[rstest]
#[case::label_too_long(json!({"labels": {"a": "x".repeat(64)}}), "must be no more than 63 bytes")]
#[case::label_with_odd_signs(json!({"labels": {"a": "x/y"}}), "a valid label must be an empty string or consist of")]
#[case::name_too_long(json!({"name": "x".repeat(254)}), "must be no more than 253 bytes")]
#[case::upper_case(json!({"name": "Pod"}), "a lowercase RFC 1123 subdomain")]
#[case::no_name(json!({"name": null}), "name or generateName is required")]
fn metadata_that_is_refused(#[case] metadata: Value, #[case] text: &str) {
    let mut store = cluster();
    let mut object = pod("p");
    for (field, value) in metadata.as_object().expect("fields") {
        object["metadata"][field] = value.clone();
    }
    let reply = post(&mut store, PODS, object);
    assert_eq!(refusal(&reply).0, 422);
    assert!(refusal(&reply).2.contains(text), "{}", refusal(&reply).2);
}

#[test]
fn a_deletion_is_shortened_never_lengthened() {
    let mut store = cluster();
    sure(&post(&mut store, PODS, bound("p", "n1")));
    let path = format!("{PODS}/p");
    let until = |object: &Value| object["metadata"]["deletionTimestamp"].as_str().expect("a time").to_owned();
    assert_eq!(until(&sure(&delete(&mut store, &path, json!({"gracePeriodSeconds": 60})))), "2026-01-01T00:01:00Z");
    assert_eq!(until(&sure(&delete(&mut store, &path, json!({"gracePeriodSeconds": 90})))), "2026-01-01T00:01:00Z");
    assert_eq!(until(&sure(&delete(&mut store, &path, json!({"gracePeriodSeconds": 20})))), "2026-01-01T00:00:20Z");
    let stored = sure(&get(&mut store, &path));
    assert_eq!(stored["metadata"]["deletionGracePeriodSeconds"], 20);
    assert_eq!(sure(&delete(&mut store, &path, json!({"gracePeriodSeconds": 30}))), stored);
    sure(&delete(&mut store, &path, json!({"gracePeriodSeconds": 0})));
    assert_eq!(get(&mut store, &path).status, 404);
}

#[test]
fn a_rehearsal_changes_nothing() {
    let mut store = cluster();
    sure(&post(&mut store, PODS, bound("p", "n1")));
    let path = format!("{PODS}/p");
    let (before, version) = (sure(&get(&mut store, &path)), store.version());
    let patch = Request::new(Method::Patch, path.clone())
        .with_body("application/merge-patch+json", json!({"metadata": {"labels": {"a": "b"}}}))
        .with_query("dryRun", "All");
    assert_eq!(sure(&store.handle(&patch))["metadata"]["labels"]["a"], "b");
    let gone = Request::new(Method::Delete, path.clone()).with_body(JSON, json!({"dryRun": ["All"]}));
    assert!(sure(&store.handle(&gone))["metadata"].get("deletionTimestamp").is_some());
    assert_eq!((sure(&get(&mut store, &path)), store.version()), (before, version));
}

#[test]
fn a_test_for_null_needs_the_place_where_the_member_would_be() {
    let (mut store, path) = with_pod(|_| {});
    let absent = |path: &str| json!([{"op": "test", "path": path, "value": null}]);
    assert_eq!(operations(&mut store, &path, absent("/metadata/annotations")).status, 200);
    assert_eq!(operations(&mut store, &path, absent("/metadata/annotations/x")).status, 422);
}

#[test]
fn a_write_that_changes_nothing_is_no_write() {
    let (mut store, path) = with_pod(|pod| {
        pod["metadata"]["labels"] = json!({"a": "b"});
        pod["metadata"]["finalizers"] = json!(["x/y"]);
    });
    let stored = sure(&get(&mut store, &path));
    let version = store.version();
    let same = json!({"metadata": {"labels": {"a": "b"}, "finalizers": ["x/y"]}});
    sure(&merge(&mut store, &path, same.clone()));
    sure(&strategic(&mut store, &path, same));
    sure(&operations(&mut store, &path, json!([{"op": "replace", "path": "/metadata/labels/a", "value": "b"}])));
    sure(&super::put(&mut store, &path, stored.clone()));
    sure(&merge(&mut store, &format!("{path}/status"), json!({"status": {"phase": "Pending"}})));
    assert_eq!((sure(&get(&mut store, &path)), store.version()), (stored, version));
}

#[test]
fn labels_of_built_in_kinds_pass_through_the_status_endpoint() {
    let (mut store, path) = with_pod(|_| {});
    let patch = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"hostname": "x"}, "status": {"podIP": "10.0.0.1"}});
    let patched = sure(&merge(&mut store, &format!("{path}/status"), patch));
    assert_eq!(patched["metadata"]["labels"]["a"], "b");
    assert_eq!(patched["spec"].get("hostname"), None);
    assert_eq!(patched["status"]["podIP"], "10.0.0.1");
}

#[test]
fn a_terminating_pod_waits_for_its_node_when_its_last_finalizer_goes() {
    let mut store = cluster();
    let mut object = bound("p", "n1");
    object["metadata"]["finalizers"] = json!(["x/y"]);
    sure(&post(&mut store, PODS, object));
    let path = format!("{PODS}/p");
    sure(&delete(&mut store, &path, Value::Null));
    sure(&merge(&mut store, &path, json!({"metadata": {"finalizers": null}})));
    assert_eq!(get(&mut store, &path).status, 200);
    sure(&delete(&mut store, &path, json!({"gracePeriodSeconds": 0})));
    assert_eq!(get(&mut store, &path).status, 404);
}

#[rstest]
#[case("Succeeded")]
#[case("Failed")]
fn a_finished_pod_goes_at_once(#[case] phase: &str) {
    let mut store = cluster();
    sure(&post(&mut store, PODS, bound("p", "n1")));
    let path = format!("{PODS}/p");
    sure(&merge(&mut store, &format!("{path}/status"), json!({"status": {"phase": phase}})));
    sure(&delete(&mut store, &path, Value::Null));
    assert_eq!(get(&mut store, &path).status, 404);
}

#[test]
fn a_strategic_patch_can_replace_a_list() {
    let (mut store, path) = with_pod(|_| {});
    let condition = |kind: &str| json!({"type": kind, "status": "True"});
    let status = format!("{path}/status");
    sure(&strategic(&mut store, &status, json!({"status": {"conditions": [condition("A"), condition("B")]}})));
    let patch = json!({"status": {"conditions": [condition("C"), {"$patch": "replace"}]}});
    assert_eq!(sure(&strategic(&mut store, &status, patch))["status"]["conditions"], json!([condition("C")]));
}
