//! Numbers that are of the right type and make no sense.

use super::{PODS, bound, cluster, merge, node, pod, post, put, refusal, strategic, sure};
use rstest::rstest;
use serde_json::{Value, json};

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases";

/// The causes of a refusal, as `field: message`.
fn causes(reply: &cocoon_operator::sim::store::StoreReply) -> Vec<String> {
    assert_eq!(reply.status, 422, "{}", reply.value());
    let text = |cause: &Value, key: &str| cause[key].as_str().expect("text").to_owned();
    let all = reply.value()["details"]["causes"].as_array().expect("causes");
    all.iter().map(|cause| format!("{}: {}", text(cause, "field"), text(cause, "message"))).collect()
}

#[rstest]
#[case("/activeDeadlineSeconds", json!(-1), "spec.activeDeadlineSeconds: Invalid value: -1: must be between 1 and 2147483647, inclusive")]
#[case("/activeDeadlineSeconds", json!(0), "spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive")]
#[case("/securityContext", json!({"runAsUser": -1}), "spec.securityContext.runAsUser: Invalid value: -1: must be between 0 and 2147483647, inclusive")]
#[case("/containers/0/ports", json!([{"containerPort": 70000}]), "spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive")]
#[case("/containers/0/ports", json!([{"name": "a"}]), "spec.containers[0].ports[0].containerPort: Required value")]
#[case("/containers/0/ports", json!([{"containerPort": 1, "hostPort": -5}]), "spec.containers[0].ports[0].hostPort: Invalid value: -5: must be between 1 and 65535, inclusive")]
#[case("/containers/0/readinessProbe", json!({"periodSeconds": -1}), "spec.containers[0].readinessProbe.periodSeconds: Invalid value: -1: must be greater than or equal to 0")]
#[case("/containers/0/livenessProbe", json!({"successThreshold": 2}), "spec.containers[0].livenessProbe.successThreshold: Invalid value: 2: must be 1")]
#[case("/topologySpreadConstraints", json!([{"maxSkew": 0}]), "spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero")]
#[case("/affinity", json!({"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 101}]}}), "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: Invalid value: 101: must be in the range 1-100")]
#[case("/tolerations", json!([{"key": "a", "operator": "Exists", "effect": "NoSchedule", "tolerationSeconds": 5}]), "spec.tolerations[0].effect: Invalid value: \"NoSchedule\": effect must be 'NoExecute' when `tolerationSeconds` is set")]
fn a_pod_of_numbers_that_make_no_sense(#[case] place: &str, #[case] value: Value, #[case] told: &str) {
    let mut store = cluster();
    let mut pod = pod("demo");
    let (parent, field) = place.rsplit_once('/').expect("a place");
    pod["spec"].pointer_mut(parent).expect("the parent")[field] = value;
    assert_eq!(causes(&post(&mut store, PODS, pod)), [told]);
}

#[test]
fn a_deadline_only_gets_shorter() {
    let mut store = cluster();
    sure(&post(&mut store, PODS, bound("demo", "node-a")));
    let place = format!("{PODS}/demo");
    let mut deadline = |value: Value| strategic(&mut store, &place, json!({"spec": {"activeDeadlineSeconds": value}}));
    let both = causes(&deadline(json!(-1)));
    assert!(both.iter().any(|told| told.ends_with("must be between 0 and 2147483647, inclusive")), "{both:?}");
    sure(&deadline(json!(50)));
    sure(&deadline(json!(40)));
    assert!(causes(&deadline(json!(41)))[0].ends_with("must be less than or equal to previous value"));
    assert!(causes(&deadline(Value::Null))[0].ends_with("must not update from a positive integer to nil value"));
}

#[test]
fn a_lease_lasts() {
    let mut store = cluster();
    let lease = |spec: Value| json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"}, "spec": spec});
    let told = "spec.leaseDurationSeconds: Invalid value: -5: must be greater than 0";
    assert_eq!(causes(&post(&mut store, LEASES, lease(json!({"leaseDurationSeconds": -5})))), [told]);
    assert_eq!(causes(&put(&mut store, &format!("{LEASES}/l"), lease(json!({"leaseDurationSeconds": -5})))), [told]);
    sure(&post(&mut store, LEASES, lease(json!({"leaseDurationSeconds": 1, "leaseTransitions": 0}))));
    let told = "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0";
    assert_eq!(causes(&merge(&mut store, &format!("{LEASES}/l"), json!({"spec": {"leaseTransitions": -1}}))), [told]);
    assert_eq!(merge(&mut store, &format!("{LEASES}/l"), json!({"spec": {"leaseDurationSeconds": 0}})).status, 422);
}

#[test]
fn amounts_are_not_negative_and_some_are_whole() {
    let mut store = cluster();
    let quotas = "/api/v1/namespaces/default/resourcequotas";
    let quota = |hard: Value| json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": hard}});
    let told = "spec.hard[pods]: Invalid value: \"-1\": must be greater than or equal to 0";
    assert_eq!(causes(&post(&mut store, quotas, quota(json!({"pods": "-1"})))), [told]);
    let told = "spec.hard[pods]: Invalid value: \"1500m\": must be an integer";
    assert_eq!(causes(&post(&mut store, quotas, quota(json!({"pods": "1500m"})))), [told]);
    sure(&post(&mut store, quotas, quota(json!({"pods": "2", "requests.cpu": "1500m", "limits.memory": "1Gi"}))));
    assert_eq!(merge(&mut store, &format!("{quotas}/q"), json!({"spec": {"hard": {"pods": -3}}})).status, 422);

    sure(&post(&mut store, "/api/v1/nodes", node("node-a")));
    let status = "/api/v1/nodes/node-a/status";
    let told = "status.capacity.cpu: Invalid value: \"-8\": must be greater than or equal to 0";
    assert_eq!(causes(&strategic(&mut store, status, json!({"status": {"capacity": {"cpu": "-8"}}}))), [told]);
}

#[test]
fn budgets_classes_and_services_too() {
    let mut store = cluster();
    let budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
    let budget = |spec: Value| json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"}, "spec": spec});
    for (spec, told) in [
        (json!({"minAvailable": -1}), "spec.minAvailable: Invalid value: -1: must be greater than or equal to 0"),
        (
            json!({"maxUnavailable": "150%"}),
            "spec.maxUnavailable: Invalid value: \"150%\": must not be greater than 100%",
        ),
    ] {
        assert_eq!(causes(&post(&mut store, budgets, budget(spec))), [told]);
    }
    assert_eq!(post(&mut store, budgets, budget(json!({"minAvailable": 1, "maxUnavailable": 1}))).status, 422);
    sure(&post(&mut store, budgets, budget(json!({"minAvailable": "50%"}))));
    let class = json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "c"}, "value": 2_000_000_000});
    let told = "value: Forbidden: maximum allowed value of a user defined priority is 1000000000";
    let reply = post(&mut store, "/apis/scheduling.k8s.io/v1/priorityclasses", class);
    assert_eq!(causes(&reply), [told]);
    assert!(refusal(&reply).2.starts_with("PriorityClass.scheduling.k8s.io \"c\" is invalid: "), "{}", reply.value());
    let service =
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"ports": [{"port": 0}]}});
    assert_eq!(post(&mut store, "/api/v1/namespaces/default/services", service).status, 422);
}
