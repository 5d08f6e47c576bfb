//! The controllers: quota, garbage collection, lost nodes, namespaces.

use super::{PODS, bound, cluster, delete, merge, node, pass, pod, post, refusal, sure};
use cocoon_operator::core::wire::{Method, Request};
use cocoon_operator::sim::store::{Match, Refusal, Rule, Store};
use serde_json::{Value, json};
use std::time::Duration;

fn quota(store: &mut Store, hard: Value) {
    let object =
        json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": hard}});
    sure(&post(store, "/api/v1/namespaces/default/resourcequotas", object));
    pass(store, 1);
}

fn used(store: &Store, resource: &str) -> String {
    let quota = store.get("resourcequotas", "default", "q").expect("the quota");
    quota["status"]["used"][resource].as_str().expect("an amount").to_owned()
}

fn asking(name: &str, memory: &str) -> Value {
    let mut pod = bound(name, "n1");
    pod["spec"]["containers"][0]["resources"] = json!({"limits": {"memory": memory, "cpu": "500m"}});
    pod
}

#[test]
fn a_quota_follows_pods_as_they_come_and_go() {
    let mut store = cluster();
    sure(&post(&mut store, "/api/v1/nodes", node("n1")));
    let hard = json!({
        "pods": "2", "count/pods": "5", "requests.memory": "3Gi", "limits.cpu": "2", "count/configmaps": "0",
    });
    quota(&mut store, hard);
    sure(&post(&mut store, PODS, asking("a", "1Gi")));
    sure(&post(&mut store, PODS, asking("b", "1536Mi")));
    assert_eq!((used(&store, "pods").as_str(), used(&store, "requests.memory").as_str()), ("2", "2560Mi"));
    assert_eq!(used(&store, "limits.cpu"), "1");
    let refused = post(&mut store, PODS, asking("c", "1Gi"));
    assert!(
        refusal(&refused).2.contains("exceeded quota: q, requested: pods=1,requests.memory=1Gi"),
        "{}",
        refusal(&refused).2
    );
    let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}});
    assert_eq!(post(&mut store, "/api/v1/namespaces/default/configmaps", config).status, 403);
    sure(&merge(&mut store, &format!("{PODS}/a/status"), json!({"status": {"phase": "Succeeded"}})));
    pass(&mut store, 1);
    assert_eq!((used(&store, "pods").as_str(), used(&store, "count/pods").as_str()), ("1", "2"));
    sure(&delete(&mut store, &format!("{PODS}/b"), json!({"gracePeriodSeconds": 0})));
    pass(&mut store, 1);
    assert_eq!((used(&store, "pods").as_str(), used(&store, "requests.memory").as_str()), ("0", "0"));
}

#[test]
fn a_pod_that_outlives_its_grace_stops_counting_at_the_next_round() {
    let mut store = cluster();
    sure(&post(&mut store, "/api/v1/nodes", node("n1")));
    quota(&mut store, json!({"pods": "1"}));
    sure(&post(&mut store, PODS, bound("a", "n1")));
    sure(&delete(&mut store, &format!("{PODS}/a"), Value::Null));
    // Counted anew within its grace, it counts (decision R31).
    let more = json!({"spec": {"hard": {"pods": "1", "count/pods": "9"}}});
    sure(&merge(&mut store, "/api/v1/namespaces/default/resourcequotas/q", more));
    pass(&mut store, 1);
    assert_eq!(used(&store, "pods"), "1");
    assert_eq!(post(&mut store, PODS, bound("b", "n1")).status, 403);
    pass(&mut store, 199);
    assert_eq!(used(&store, "pods"), "1");
    pass(&mut store, 100);
    assert_eq!(used(&store, "pods"), "0");
    assert_eq!(store.next_due(), None, "and then there is nothing left to do");
}

#[test]
fn pods_of_a_lost_node_go_after_forty_seconds() {
    let mut store = cluster();
    sure(&post(&mut store, "/api/v1/nodes", node("n1")));
    sure(&post(&mut store, PODS, bound("a", "n1")));
    let mut held = bound("b", "n1");
    held["metadata"]["finalizers"] = json!(["x/y"]);
    sure(&post(&mut store, PODS, held));
    sure(&delete(&mut store, "/api/v1/nodes/n1", Value::Null));
    pass(&mut store, 39);
    assert!(store.get("pods", "default", "a").is_some());
    pass(&mut store, 1);
    assert_eq!(store.get("pods", "default", "a"), None);
    let held = store.get("pods", "default", "b").expect("b is held by its finalizer");
    assert_eq!(held["status"]["phase"], "Failed");
    assert_eq!(held["status"]["conditions"][0]["reason"], "DeletionByPodGC");
}

#[test]
fn a_node_that_comes_back_keeps_its_pods() {
    let mut store = cluster();
    sure(&post(&mut store, "/api/v1/nodes", node("n1")));
    sure(&post(&mut store, PODS, bound("a", "n1")));
    sure(&delete(&mut store, "/api/v1/nodes/n1", Value::Null));
    pass(&mut store, 20);
    sure(&post(&mut store, "/api/v1/nodes", node("n1")));
    pass(&mut store, 60);
    assert_eq!(store.get("pods", "default", "a").expect("a")["status"]["phase"], "Pending");
}

fn owned(name: &str, owners: &[&Value]) -> Value {
    let mut object = pod(name);
    let reference = |owner: &&Value| {
        json!({
            "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"], "blockOwnerDeletion": true,
        })
    };
    object["metadata"]["ownerReferences"] = owners.iter().map(reference).collect();
    object
}

fn config(store: &mut Store, name: &str) -> Value {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
    sure(&post(store, "/api/v1/namespaces/default/configmaps", object))
}

#[test]
fn a_dependent_outlives_one_of_two_owners() {
    let mut store = cluster();
    let (first, second) = (config(&mut store, "first"), config(&mut store, "second"));
    sure(&post(&mut store, PODS, owned("p", &[&first, &second])));
    sure(&delete(&mut store, "/api/v1/namespaces/default/configmaps/first", Value::Null));
    pass(&mut store, 1);
    let left = &store.get("pods", "default", "p").expect("the pod")["metadata"]["ownerReferences"];
    assert_eq!(left.as_array().map(Vec::len), Some(1));
    assert_eq!(left[0]["name"], "second");
    sure(&delete(&mut store, "/api/v1/namespaces/default/configmaps/second", Value::Null));
    pass(&mut store, 1);
    assert_eq!(store.get("pods", "default", "p"), None);
}

#[test]
fn an_owner_that_is_gone_or_elsewhere_takes_a_new_dependent_along() {
    let mut store = cluster();
    let gone = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "uid": "gone"}});
    assert_eq!(post(&mut store, PODS, owned("p", &[&gone])).status, 201);
    store.add_namespace("other");
    let elsewhere = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "y"}});
    let elsewhere = sure(&post(&mut store, "/api/v1/namespaces/other/configmaps", elsewhere));
    assert_eq!(post(&mut store, PODS, owned("q", &[&elsewhere])).status, 201);
    pass(&mut store, 1);
    assert_eq!(store.objects("pods", None).count(), 0);
}

#[test]
fn foreground_goes_down_to_the_last_dependent() {
    let mut store = cluster();
    let top = config(&mut store, "top");
    let mut middle = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "middle"}});
    middle["metadata"]["ownerReferences"] = owned("_", &[&top])["metadata"]["ownerReferences"].clone();
    let middle = sure(&post(&mut store, "/api/v1/namespaces/default/configmaps", middle));
    let mut leaf = owned("leaf", &[&middle]);
    leaf["spec"]["nodeName"] = json!("n1");
    sure(&post(&mut store, "/api/v1/nodes", node("n1")));
    sure(&post(&mut store, PODS, leaf));
    let path = "/api/v1/namespaces/default/configmaps/top";
    sure(&delete(&mut store, path, json!({"propagationPolicy": "Foreground"})));
    pass(&mut store, 5);
    for name in ["top", "middle"] {
        let object = store.get("configmaps", "default", name).expect("it waits");
        assert_eq!(object["metadata"]["finalizers"], json!(["foregroundDeletion"]), "{name}");
    }
    sure(&delete(&mut store, &format!("{PODS}/leaf"), json!({"gracePeriodSeconds": 0})));
    pass(&mut store, 1);
    assert_eq!(store.objects("configmaps", Some("default")).count(), 0);
}

#[test]
fn a_namespace_can_be_made_again_once_it_is_gone() {
    let mut store = cluster();
    store.add_namespace("short");
    let first = store.get("namespaces", "", "short").expect("it")["metadata"]["uid"].clone();
    sure(&delete(&mut store, "/api/v1/namespaces/short", Value::Null));
    assert_eq!(store.add_namespace("short").status, 409);
    pass(&mut store, 5);
    assert_eq!(store.get("namespaces", "", "short"), None);
    assert_eq!(store.add_namespace("short").status, 201);
    assert_ne!(store.get("namespaces", "", "short").expect("it")["metadata"]["uid"], first);
    assert_eq!(refusal(&delete(&mut store, "/api/v1/namespaces/default", Value::Null)).0, 403);
}

#[test]
fn before_the_ordered_deletion_everything_goes_at_once() {
    for ordered in [true, false] {
        let mut store = cluster();
        store.settings_mut().ordered_namespace_deletion = ordered;
        store.add_namespace("short");
        sure(&post(&mut store, "/api/v1/nodes", node("n1")));
        sure(&post(&mut store, "/api/v1/namespaces/short/pods", bound("p", "n1")));
        config(&mut store, "elsewhere");
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}});
        sure(&post(&mut store, "/api/v1/namespaces/short/configmaps", object));
        sure(&delete(&mut store, "/api/v1/namespaces/short", Value::Null));
        pass(&mut store, 5);
        assert_eq!(store.get("configmaps", "short", "c").is_some(), ordered);
        assert!(store.get("configmaps", "default", "elsewhere").is_some());
    }
}

#[test]
fn a_rule_meets_as_many_requests_as_it_says() {
    let mut store = cluster();
    let when = Match { verbs: vec!["create".to_owned()], resource: Some("pods".to_owned()), ..Match::default() };
    store.add_rule(Rule::new(when, Refusal::TooManyRequests(Duration::from_secs(7))).times(2));
    let codes: Vec<u16> = ["a", "b", "c"].iter().map(|name| post(&mut store, PODS, pod(name)).status).collect();
    assert_eq!(codes, [429, 429, 201]);
    assert_eq!(store.handle(&Request::new(Method::Get, PODS)).status, 200);
}

#[test]
fn a_rule_never_stops_the_control_plane() {
    let mut store = cluster();
    store.add_rule(Rule::new(Match::default(), Refusal::Rbac));
    assert_eq!(store.add_namespace("new").status, 201);
    assert!(store.get("serviceaccounts", "new", "default").is_some());
    assert_eq!(post(&mut store, PODS, pod("a")).status, 403);
}
