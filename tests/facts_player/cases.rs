//! The state that the facts a to j need.

use super::stage::{Stage, WIDGETS, asking, plain, version_of};
use cocoon_operator::sim::store::{Match, Refusal};
use serde_json::{Value, json};

pub fn nothing(_: &mut Stage) {}

pub fn terminating_namespace(stage: &mut Stage) {
    stage.widget_in("f1-term", "old", json!({"size": 3}), &["example.test/hold"]);
    stage.delete("/api/v1/namespaces/f1-term");
}

pub fn namespace_that_was_emptied(stage: &mut Stage) {
    let held = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cm", "finalizers": ["example.test/hold"]}});
    stage.post("/api/v1/namespaces/f1-term/configmaps", held);
    terminating_namespace(stage);
    let remaining = "Some resources are remaining: configmaps. has 1 resource instances, \
        widgets.example.test has 1 resource instances";
    stage.until("/api/v1/namespaces/f1-term", "/status/conditions/3/message", remaining);
}

pub fn b1_at_size_4(stage: &mut Stage) {
    let first = stage.widget("b1", 3);
    let second = stage.merge(&format!("{WIDGETS}/f1-main/widgets/b1"), json!({"spec": {"size": 4}}));
    stage.uid("4a85d304-557a-42a9-8d18-ce2201e94d2c", &first);
    stage.version("296", &first);
    stage.version("297", &second);
}

pub fn labelled_pod(stage: &mut Stage) {
    let pod = stage.pod("bp");
    stage.merge("/api/v1/namespaces/f1-main/pods/bp", json!({"metadata": {"labels": {"a": "1"}}}));
    stage.uid("4b433e87-8583-4fa5-9ee2-00e356c99269", &pod);
    stage.version("298", &pod);
}

pub fn unschedulable_pod(stage: &mut Stage) {
    labelled_pod(stage);
    let condition = json!({
        "type": "PodScheduled", "observedGeneration": 1, "status": "False", "lastProbeTime": null,
        "lastTransitionTime": "2026-11-30T08:00:10Z", "reason": "Unschedulable",
        "message": "no nodes available to schedule pods",
    });
    let patch = json!({"status": {"conditions": [condition]}});
    stage.merge("/api/v1/namespaces/f1-main/pods/bp/status", patch);
}

pub fn c3(stage: &mut Stage) {
    stage.held_widget("c3");
}

pub fn c3_terminating(stage: &mut Stage) {
    c3(stage);
    stage.delete(&format!("{WIDGETS}/f1-main/widgets/c3"));
}

pub fn c3_terminating_at_size_8(stage: &mut Stage) {
    c3_terminating(stage);
    stage.merge(&format!("{WIDGETS}/f1-main/widgets/c3"), json!({"spec": {"size": 8}}));
}

pub fn bound_pod(stage: &mut Stage) {
    let mut spec = plain();
    spec["nodeName"] = json!("ghost-node");
    stage.pod_in("f1-main", "cp", spec);
}

pub fn terminating_bound_pod(stage: &mut Stage) {
    bound_pod(stage);
    let pod = stage.delete("/api/v1/namespaces/f1-main/pods/cp");
    if stage.server.store().is_some() {
        assert_eq!(pod["metadata"]["deletionTimestamp"], json!("2026-11-30T08:00:30Z"), "now and the grace of 30 s");
    }
}

fn quota(stage: &mut Stage, namespace: &str, hard: Value) -> Value {
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": hard}});
    stage.post(&format!("/api/v1/namespaces/{namespace}/resourcequotas"), quota.clone());
    quota
}

pub fn quota_not_computed(stage: &mut Stage) {
    quota(stage, "n1", json!({"pods": "0"}));
}

const QUOTA: &str = "/api/v1/namespaces/f1-quota/resourcequotas/q";

pub fn full_pod_quota(stage: &mut Stage) {
    quota(stage, "f1-quota", json!({"pods": "1", "requests.cpu": "1"}));
    stage.until(QUOTA, "/status/used/pods", "0");
    stage.pod_in("f1-quota", "p1", asking("100m"));
    stage.until(QUOTA, "/status/used/pods", "1");
    stage.refuses = stage.server.store().is_none();
}

pub fn full_widget_quota(stage: &mut Stage) {
    let (at, used) = ("/api/v1/namespaces/f2-quota/resourcequotas/q", "/status/used/count~1widgets.example.test");
    let object = quota(stage, "f2-quota", json!({"count/widgets.example.test": "1"}));
    stage.made_anew("/api/v1/namespaces/f2-quota/resourcequotas", "q", &object, used, "0");
    stage.widget_in("f2-quota", "w1", json!({"size": 3}), &[]);
    stage.until(at, used, "1");
    stage.refuses = stage.server.store().is_none();
}

pub fn quota_on_unmonitored_kind(stage: &mut Stage) {
    quota(stage, "f1-quota", json!({"count/widgets.example.test": "1"}));
    let status = json!({"status": {"hard": {"count/widgets.example.test": "1"}, "used": {}}});
    stage.merge("/api/v1/namespaces/f1-quota/resourcequotas/q/status", status);
}

pub fn limit_range(stage: &mut Stage) {
    stage.namespace("f1-lr");
    let why = "maximum cpu usage per Container is 500m, but limit is 2";
    let range = json!({"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "lr"},
        "spec": {"limits": [{"type": "Container", "max": {"cpu": "500m"}}]}});
    let objects = [("/api/v1/namespaces/f1-lr/limitranges", range)];
    stage.refuse_resource("pods", Refusal::LimitRange(why.to_owned()), &objects);
}

/// Somebody who may do nothing: a real server knows of no right of theirs.
fn deny(stage: &mut Stage, user: &str, refuse: Refusal) {
    let when = Match { user: Some(user.to_owned()), ..Match::default() };
    stage.refuse(when, refuse, &[]);
    stage.user = user.to_owned();
}

pub fn alice(stage: &mut Stage) {
    c3(stage);
    deny(stage, "alice", Refusal::Rbac);
}

pub fn anonymous(stage: &mut Stage) {
    deny(stage, "system:anonymous", Refusal::Rbac);
}

pub fn bad_token(stage: &mut Stage) {
    deny(stage, "nope", Refusal::Unauthorized);
}

const VIOLATIONS: &str = "allowPrivilegeEscalation != false (container \"c\" must set \
    securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container \"c\" must set \
    securityContext.capabilities.drop=[\"ALL\"]), runAsNonRoot != true (pod or container \"c\" must set \
    securityContext.runAsNonRoot=true), seccompProfile (pod or container \"c\" must set \
    securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\")";

/// A namespace with this label of pod security.
fn secured(name: &str, mode: &str) -> [(&'static str, Value); 1] {
    let labels = json!({format!("pod-security.kubernetes.io/{mode}"): "restricted"});
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}});
    [("/api/v1/namespaces", namespace)]
}

pub fn pod_security(stage: &mut Stage) {
    stage.namespace("f1-psa");
    let refuse = Refusal::PodSecurity { level: "restricted:latest".to_owned(), violations: VIOLATIONS.to_owned() };
    stage.refuse_resource("pods", refuse, &secured("f1-psa", "enforce"));
}

pub fn pod_security_warning(stage: &mut Stage) {
    stage.namespace("f1-psaw");
    let text = format!("would violate PodSecurity \"restricted:latest\": {VIOLATIONS}");
    stage.refuse_resource("pods", Refusal::Warn(text), &secured("f1-psaw", "warn"));
}

/// A Widget and a pod, both named g1.
pub fn g1(stage: &mut Stage) {
    let first = stage.widget("g1", 3);
    let second = stage.merge(&format!("{WIDGETS}/f1-main/widgets/g1"), json!({"spec": {"size": 4}}));
    let pod = stage.pod("g1");
    stage.version("343", &first);
    stage.uid("3828c6ac-2054-4238-a3b3-93040871e953", &second);
    stage.uid("430a17b0-e375-419d-87ea-d0308f7e40e6", &pod);
    stage.swap("(347)", &format!("({})", version_of(&pod)));
}

pub fn j1_recreated(stage: &mut Stage) {
    let old = stage.widget("j1", 3);
    stage.uid("c37ec37d-8a79-4de1-9c7a-2d392ed9faac", &old);
    stage.delete(&format!("{WIDGETS}/f1-main/widgets/j1"));
    stage.widget("j1", 3);
}
