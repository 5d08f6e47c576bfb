//! What is let in: paths, namespaces, rules, bindings, and how a pod is completed.

use super::{PODS, bound, cluster, delete, get, merge, node, pass, pod, post, put, refusal, sure};
use cocoon_operator::core::wire::{JSON, Method, Request};
use cocoon_operator::sim::store::{Match, Refusal, Rule};
use rstest::rstest;
use serde_json::{Value, json};

#[rstest]
#[case::cluster_wide_below_a_namespace("/api/v1/namespaces/default/nodes", true)]
#[case::a_pod_without_its_namespace("/api/v1/pods/a", true)]
#[case::another_version("/api/v2/namespaces/default/pods", true)]
#[case::no_kind("/api/v1", true)]
#[case::too_long("/api/v1/namespaces/default/pods/a/status/more", true)]
#[case::unknown_in_a_built_in_group("/apis/policy/v1/nothings", true)]
#[case::unknown_in_a_custom_group("/apis/cocoonset.cocoonstack.io/v1/nothings", false)]
#[case::unknown_group("/apis/nothing.test/v1/nothings", false)]
#[case::nothing("/", false)]
fn paths_that_lead_nowhere(#[case] path: &str, #[case] in_a_status: bool) {
    let mut store = cluster();
    sure(&post(&mut store, PODS, pod("a")));
    let reply = get(&mut store, path);
    let form = if in_a_status { "application/json" } else { "text/plain; charset=utf-8" };
    assert_eq!((reply.status, reply.content_type()), (404, form));
}

#[test]
fn only_some_kinds_have_a_status_endpoint() {
    let mut store = cluster();
    let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}});
    sure(&post(&mut store, "/api/v1/namespaces/default/configmaps", config));
    assert_eq!(get(&mut store, "/api/v1/namespaces/default/configmaps/c/status").status, 404);
    assert_eq!(merge(&mut store, "/api/v1/namespaces/default/configmaps/c/status", json!({})).status, 404);
    assert_eq!(get(&mut store, "/api/v1/namespaces/default/status").status, 200);
}

#[test]
fn an_object_stays_in_the_namespace_of_its_path() {
    let mut store = cluster();
    let mut object = pod("a");
    object["metadata"]["namespace"] = json!("kube-system");
    assert_eq!(post(&mut store, PODS, object.clone()).status, 400);
    sure(&post(&mut store, PODS, pod("a")));
    assert_eq!(put(&mut store, &format!("{PODS}/a"), object).status, 400);
    assert_eq!(post(&mut store, "/api/v1/pods", pod("b")).status, 405);
}

#[test]
fn a_new_object_brings_no_version() {
    let mut store = cluster();
    let mut object = pod("a");
    object["metadata"]["resourceVersion"] = json!("1");
    assert_eq!(post(&mut store, PODS, object).status, 500);
}

#[rstest]
#[case("pods", None, [403, 200, 201])]
#[case("pods/status", None, [201, 403, 201])]
#[case("pods/*", None, [403, 403, 201])]
#[case("*", None, [403, 403, 403])]
#[case("configmaps", None, [201, 200, 403])]
#[case("pods", Some("kube-system"), [201, 200, 201])]
fn a_rule_meets_what_it_names(#[case] resource: &str, #[case] namespace: Option<&str>, #[case] expected: [u16; 3]) {
    let mut store = cluster();
    sure(&post(&mut store, PODS, pod("old")));
    let when =
        Match { resource: Some(resource.to_owned()), namespace: namespace.map(str::to_owned), ..Match::default() };
    store.add_rule(Rule::new(when, Refusal::Rbac));
    let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}});
    let got = [
        post(&mut store, PODS, pod("new")).status,
        merge(&mut store, &format!("{PODS}/old/status"), json!({"status": {"podIP": "1"}})).status,
        post(&mut store, "/api/v1/namespaces/default/configmaps", config).status,
    ];
    assert_eq!(got, expected);
}

#[test]
fn a_binding_gives_a_pod_its_node_once() {
    let mut store = cluster();
    sure(&post(&mut store, "/api/v1/nodes", node("n1")));
    sure(&post(&mut store, PODS, pod("a")));
    let binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n1"}});
    sure(&post(&mut store, &format!("{PODS}/a/binding"), binding.clone()));
    let stored = sure(&get(&mut store, &format!("{PODS}/a")));
    assert_eq!((&stored["spec"]["nodeName"], &stored["metadata"]["generation"]), (&json!("n1"), &json!(1)));
    assert_eq!(stored["status"]["conditions"][0]["type"], "PodScheduled");
    assert_eq!(refusal(&post(&mut store, &format!("{PODS}/a/binding"), binding.clone())).1, "Conflict");
    let mut held = pod("held");
    held["metadata"]["finalizers"] = json!(["x/y"]);
    sure(&post(&mut store, PODS, held));
    sure(&delete(&mut store, &format!("{PODS}/held"), Value::Null));
    assert_eq!(refusal(&post(&mut store, &format!("{PODS}/held/binding"), binding)).1, "Conflict");
}

#[test]
fn an_eviction_deletes() {
    let mut store = cluster();
    sure(&post(&mut store, PODS, pod("a")));
    let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}});
    assert_eq!(post(&mut store, &format!("{PODS}/a/eviction"), eviction).status, 201);
    assert_eq!(get(&mut store, &format!("{PODS}/a")).status, 404);
}

#[rstest]
#[case("img", "Always")]
#[case("img:latest", "Always")]
#[case("img:1", "IfNotPresent")]
#[case("registry:5000/img", "Always")]
#[case("registry:5000/img:2", "IfNotPresent")]
#[case("img@sha256:00", "IfNotPresent")]
fn images_are_pulled_as_their_tag_says(#[case] image: &str, #[case] policy: &str) {
    let mut store = cluster();
    let mut object = pod("a");
    object["spec"]["containers"][0]["image"] = json!(image);
    assert_eq!(sure(&post(&mut store, PODS, object))["spec"]["containers"][0]["imagePullPolicy"], policy);
}

#[test]
fn a_service_account_may_be_named_the_old_way() {
    let mut store = cluster();
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "agent"}});
    sure(&post(&mut store, "/api/v1/namespaces/default/serviceaccounts", account));
    let mut object = pod("a");
    object["spec"]["serviceAccount"] = json!("agent");
    assert_eq!(sure(&post(&mut store, PODS, object))["spec"]["serviceAccountName"], "agent");
}

#[test]
fn requests_beyond_limits_are_refused() {
    let mut store = cluster();
    let mut object = pod("a");
    object["spec"]["containers"][0]["resources"] = json!({"limits": {"cpu": "500m"}, "requests": {"cpu": "1"}});
    let reply = post(&mut store, PODS, object);
    assert!(refusal(&reply).2.contains("must be less than or equal to cpu limit of 500m"), "{}", refusal(&reply).2);
}

#[test]
fn a_pod_bound_to_a_node_that_never_was_goes_too() {
    let mut store = cluster();
    sure(&post(&mut store, PODS, bound("a", "ghost")));
    pass(&mut store, 39);
    assert!(store.get("pods", "default", "a").is_some());
    pass(&mut store, 1);
    assert!(store.get("pods", "default", "a").is_none());
}

#[test]
fn a_later_deletion_decides_how_dependents_go() {
    let mut store = cluster();
    let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "finalizers": ["x/y"]}});
    let path = "/api/v1/namespaces/default/configmaps/c";
    sure(&post(&mut store, "/api/v1/namespaces/default/configmaps", config));
    let with = |policy: &str| json!({"propagationPolicy": policy});
    let held = |reply: Value| reply["metadata"]["finalizers"].clone();
    assert_eq!(held(sure(&delete(&mut store, path, with("Foreground")))), json!(["x/y", "foregroundDeletion"]));
    assert_eq!(held(sure(&delete(&mut store, path, Value::Null))), json!(["x/y", "foregroundDeletion"]));
    assert_eq!(held(sure(&delete(&mut store, path, with("Orphan")))), json!(["x/y", "orphan"]));
    assert_eq!(held(sure(&delete(&mut store, path, with("Background")))), json!(["x/y"]));
}

#[test]
fn a_foreground_deletion_waits_only_for_those_that_block() {
    let mut store = cluster();
    sure(&post(&mut store, "/api/v1/nodes", node("n1")));
    let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}});
    let owner = sure(&post(&mut store, "/api/v1/namespaces/default/configmaps", config));
    let mut object = bound("p", "n1");
    object["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": owner["metadata"]["uid"]}]);
    sure(&post(&mut store, PODS, object));
    let path = "/api/v1/namespaces/default/configmaps/c";
    sure(&delete(&mut store, path, json!({"propagationPolicy": "Foreground"})));
    pass(&mut store, 1);
    assert_eq!(get(&mut store, path).status, 404);
    let pod = store.get("pods", "default", "p").expect("it waits for its node");
    assert!(pod["metadata"].get("deletionTimestamp").is_some());
}

#[test]
fn unknown_fields_can_be_passed_over_in_silence() {
    let mut store = cluster();
    let object = json!({
        "apiVersion": "cocoonset.cocoonstack.io/v1", "kind": "CocoonSet", "metadata": {"name": "a"},
        "spec": {"agent": {"image": "i", "colour": "red"}},
    });
    let request = Request::new(Method::Post, "/apis/cocoonset.cocoonstack.io/v1/namespaces/default/cocoonsets")
        .with_body(JSON, object);
    let loud = store.clone().handle(&request);
    assert_eq!(loud.warning_headers(), ["299 - \"unknown field \\\"spec.agent.colour\\\"\""]);
    let quiet = store.handle(&request.with_query("fieldValidation", "Ignore"));
    assert_eq!((quiet.status, quiet.warnings.len()), (201, 0));
    assert_eq!(quiet.value()["spec"]["agent"].get("colour"), None);
}
