//! The state that the facts k to x need.

use super::cases::{bound_pod, g1};
use super::stage::{Stage, WIDGETS, plain, time, version_of};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cocoon_operator::core::wire::{JSON, Method, Request};
use cocoon_operator::sim::store::{Match, Refusal, Selector, Settings, Store};
use serde_json::{Value, json};
use std::time::Duration;

pub fn immutable_pod(stage: &mut Stage) {
    g1(stage);
    // Go's diff of its own structs follows.
    stage.message_until = Some("@@");
}

pub fn much_wrong(stage: &mut Stage) {
    if stage.server.store().is_none() {
        stage.any_order = true;
        stage.message_until = Some("is invalid: [");
    }
}

pub fn malformed(stage: &mut Stage) {
    // The words of Go's JSON reader follow.
    stage.message_until = Some("json parse error:");
}

pub fn k5(stage: &mut Stage) {
    stage.widget_in("f1-main", "k5", json!({"size": 3, "mode": "a"}), &[]);
}

pub fn version_in_message(stage: &mut Stage) {
    match stage.server.store().map(|store| store.version()) {
        Some(version) => stage.swap("current: 358", &format!("current: {version}")),
        None => stage.message_until = Some("current: "),
    }
}

fn event(stage: &mut Stage, name: &str) -> u64 {
    let object = json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": name}, "reason": "Test",
        "involvedObject": {"kind": "Pod", "namespace": "lns", "name": "p"},
    });
    stage.post("/api/v1/namespaces/lns/events", object);
    stage.store().version()
}

/// Events, all writes of which are forgotten.
pub fn compacted_events(stage: &mut Stage) {
    let first = event(stage, "e1");
    event(stage, "e2");
    let last = event(stage, "e3");
    stage.store().compact(last);
    stage.swap("resourceVersion=217", &format!("resourceVersion={first}"));
    let recorded = URL_SAFE_NO_PAD.encode("{\"v\":\"meta.k8s.io/v1\",\"rv\":218,\"start\":\"e1\\u0000\"}");
    let here = URL_SAFE_NO_PAD.encode(format!("{{\"v\":\"meta.k8s.io/v1\",\"rv\":{first},\"start\":\"e1\\u0000\"}}"));
    stage.swap(&recorded, &here);
}

/// Four Widgets, two of them changed since; the version before the changes.
fn touched(stage: &mut Stage) -> String {
    let mut before = String::new();
    for name in ["l0", "l1", "l2", "l3"] {
        before = version_of(&stage.widget_in("lns", name, json!({"size": 3}), &[]));
    }
    let second = [
        "1796025996.9784472",
        "1796025998.9924846",
        "1796026001.0089738",
        "1796026003.0212398",
        "1796026005.034586",
        "1796026007.0449684",
        "1796026009.0572672",
        "1796026011.0722492",
        "1796026013.0833304",
    ];
    let first = ["0", "1", "2", "3", "4", "5"];
    let all = first.iter().map(|t| ("l0", *t)).chain(second.iter().map(|t| ("l1", *t)));
    for (name, t) in all {
        stage.merge(&format!("{WIDGETS}/lns/widgets/{name}"), json!({"metadata": {"annotations": {"t": t}}}));
    }
    before
}

pub fn four_widgets_touched(stage: &mut Stage) {
    let before = touched(stage);
    stage.swap("resourceVersion=216", &format!("resourceVersion={before}"));
}

pub fn restarted(stage: &mut Stage) {
    let before = touched(stage);
    let now = stage.store().version();
    stage.store().compact(now);
    stage.swap("resourceVersion=216", &format!("resourceVersion={before}"));
    stage.swap("resourceVersion=251", &format!("resourceVersion={now}"));
    stage.swap("216 (251)", &format!("{before} ({now})"));
}

/// A page was read, then the list changed.
pub fn half_listed(stage: &mut Stage) {
    for name in ["l0", "l1", "l2", "l3"] {
        stage.widget_in("lns", name, json!({"size": 3}), &[]);
    }
    let path = format!("{WIDGETS}/lns/widgets");
    let page = stage.ask(&Request::new(Method::Get, path.clone()).with_query("limit", "1"));
    let token = page.body["metadata"]["continue"].as_str().expect("a token").to_owned();
    let decoded: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(&token).expect("base64")).expect("JSON");
    assert_eq!(decoded["start"], json!("/l0\u{0}"), "tokens are made like the recorded ones");
    stage.swap("eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MjE2LCJzdGFydCI6Ii9sMFx1MDAwMCJ9", &token);
    stage.merge(&format!("{path}/l1"), json!({"metadata": {"annotations": {"t": "1"}}}));
    stage.delete(&format!("{path}/l3"));
    stage.widget_in("lns", "l4", json!({"size": 3}), &[]);
}

/// A kind that was installed when the cluster was old.
pub fn late_kind(stage: &mut Stage) {
    let widgets = |store: &mut Store| store.resources().find(|kind| kind.plural == "widgets").map(|kind| kind.since);
    match stage.server.store().map(widgets) {
        Some(since) => {
            let since = since.filter(|since| *since > 1).expect("namespaces were there before");
            stage.swap("1 (211)", &format!("1 ({since})"));
        }
        None => stage.message_until = Some("1 ("),
    }
}

/// The pods of the recording, in its order.
pub fn pods_with_a_past(stage: &mut Stage) {
    let pods = "/api/v1/namespaces/f1-main/pods";
    let unschedulable = |at: &str| {
        json!({"status": {"conditions": [{
            "type": "PodScheduled", "observedGeneration": 1, "status": "False", "lastProbeTime": null,
            "lastTransitionTime": at, "reason": "Unschedulable", "message": "no nodes available to schedule pods",
        }]}})
    };
    stage.store().set_now(time("2026-11-30T08:00:10Z"));
    stage.pod("bp");
    stage.merge(&format!("{pods}/bp"), json!({"metadata": {"labels": {"a": "1"}}}));
    stage.merge(&format!("{pods}/bp/status"), unschedulable("2026-11-30T08:00:10Z"));
    stage.store().set_now(time("2026-11-30T08:00:11Z"));
    bound_pod(stage);
    stage.delete(&format!("{pods}/cp"));
    stage.delete_with(&format!("{pods}/cp"), json!({"gracePeriodSeconds": 0}));
    stage.delete(&format!("{pods}/bp"));
    stage.store().set_now(time("2026-11-30T08:00:32Z"));
    stage.pod("g1");
    stage.merge(&format!("{pods}/g1/status"), unschedulable("2026-11-30T08:00:32Z"));
}

pub fn watched_from_now(stage: &mut Stage) {
    g1(stage);
    let last = version_of(&stage.get("/api/v1/namespaces/f1-main/pods/g1").body);
    stage.swap("resourceVersion=368", &format!("resourceVersion={last}"));
}

/// A policy against pods and Widgets of this name.
fn policy(stage: &mut Stage, name: &str, reason: Option<&str>) {
    let (called, says) = (format!("{name}.example.test"), format!("{name} says no"));
    let when = Match { name: Some(name.to_owned()), verbs: vec!["create".to_owned()], ..Match::default() };
    let reason = reason.map(str::to_owned);
    let mut validation = json!({"expression": format!("object.metadata.name != '{name}'"), "message": says});
    if let Some(reason) = &reason {
        validation["reason"] = json!(reason);
    }
    let rules = json!([{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["CREATE"],
        "resources": ["pods", "widgets"], "scope": "Namespaced"}]);
    let selected = json!({"matchExpressions": [{
        "key": "kubernetes.io/metadata.name", "operator": "In", "values": ["f1-main"]}]});
    let rule = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": called}, "spec": {"failurePolicy": "Fail", "validations": [validation],
            "matchConstraints": {"namespaceSelector": selected, "resourceRules": rules}},
    });
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": called}, "spec": {"policyName": called, "validationActions": ["Deny"]},
    });
    let objects = [
        ("/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies", rule),
        ("/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings", binding),
    ];
    stage.refuse(when, Refusal::Policy { name: called, message: says, reason }, &objects);
}

pub fn policy_default(stage: &mut Stage) {
    policy(stage, "vap-default", None);
}

pub fn policy_forbidden(stage: &mut Stage) {
    policy(stage, "vap-forbidden", Some("Forbidden"));
}

pub fn webhook(stage: &mut Stage) {
    let error = "Post \"https://127.0.0.1:1/x?timeout=2s\": dial tcp 127.0.0.1:1: connect: connection refused";
    let refuse = Refusal::WebhookUnreachable { name: "wh.example.test".to_owned(), error: error.to_owned() };
    let labels = Selector::labels("wh=yes").expect("a selector");
    let hook = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "wh.example.test"}, "webhooks": [{
            "name": "wh.example.test", "clientConfig": {"url": "https://127.0.0.1:1/x"}, "timeoutSeconds": 2,
            "sideEffects": "None", "admissionReviewVersions": ["v1"], "failurePolicy": "Fail",
            "objectSelector": {"matchLabels": {"wh": "yes"}},
            "rules": [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["*"]}],
        }],
    });
    let objects = [("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", hook)];
    stage.refuse(Match { labels, ..Match::default() }, refuse, &objects);
}

pub fn n1(stage: &mut Stage) {
    stage.held_widget("n1");
    stage.delete(&format!("{WIDGETS}/f1-main/widgets/n1"));
}

pub fn n1_released(stage: &mut Stage) {
    n1(stage);
    stage.json_patch(
        &format!("{WIDGETS}/f1-main/widgets/n1"),
        json!([
            {"op": "test", "path": "/metadata/finalizers", "value": ["example.test/hold"]},
            {"op": "remove", "path": "/metadata/finalizers"},
        ]),
    );
}

pub fn n5(stage: &mut Stage) {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "n5", "finalizers": ["example.test/hold"]}, "spec": plain(),
    });
    stage.post("/api/v1/namespaces/f1-main/pods", pod);
    stage.delete("/api/v1/namespaces/f1-main/pods/n5");
}

pub fn rehearsed(stage: &mut Stage) {
    let object =
        json!({"apiVersion": "example.test/v1", "kind": "Widget", "metadata": {"name": "o1"}, "spec": {"size": 3}});
    let request = Request::new(Method::Post, format!("{WIDGETS}/f1-main/widgets")).with_body(JSON, object);
    assert_eq!(stage.ask(&request.with_query("dryRun", "All")).status, 201);
}

pub fn flow_control(stage: &mut Stage) {
    stage.refuse(Match::default(), Refusal::TooManyRequests(Duration::from_secs(1)), &[]);
}

/// A healthy pod of an owner whose scale is 0: no eviction is allowed, and yet no healthy pod is missing.
fn healthy_beyond_scale(stage: &mut Stage) {
    let set = json!({"apiVersion": "cocoonset.cocoonstack.io/v1", "kind": "CocoonSet", "metadata": {"name": "none"},
        "spec": {"agent": {"image": "img", "replicas": 0}}});
    let set = stage.post("/apis/cocoonset.cocoonstack.io/v1/namespaces/f1-main/cocoonsets", set);
    let owner = json!({"apiVersion": set["apiVersion"], "kind": set["kind"], "name": "none",
        "uid": set["metadata"]["uid"], "controller": true});
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "ev", "ownerReferences": [owner]},
        "spec": plain()});
    stage.post("/api/v1/namespaces/f1-main/pods", pod);
    let status = json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]});
    stage.merge("/api/v1/namespaces/f1-main/pods/ev/status", json!({"status": status}));
}

pub fn eviction(stage: &mut Stage) {
    if stage.server.store().is_some() {
        stage.pod("ev");
    } else {
        healthy_beyond_scale(stage);
    }
    let budget = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "pdb"},
        "spec": {"maxUnavailable": 0, "selector": {}}});
    let budgets = "/apis/policy/v1/namespaces/f1-main/poddisruptionbudgets";
    let objects = [(budgets, budget.clone())];
    stage.refuse_resource("pods/eviction", Refusal::DisruptionBudget("pdb".to_owned()), &objects);
    if stage.refuses {
        stage.made_anew(budgets, "pdb", &budget, "/status/observedGeneration", 1);
        stage.until(&format!("{budgets}/pdb"), "/status/currentHealthy", 1);
    }
}

fn with_annotation(kind: &str, version: &str, name: &str, size: usize) -> Value {
    json!({
        "apiVersion": version, "kind": kind, "spec": {"size": 3},
        "metadata": {"name": name, "annotations": {"t": "x".repeat(size)}},
    })
}

pub fn too_large_for_a_request(stage: &mut Stage) {
    stage.body = Some(with_annotation("ConfigMap", "v1", "big", 3 * 1024 * 1024));
}

pub fn too_large_for_etcd(stage: &mut Stage) {
    let mut object = with_annotation("Widget", "example.test/v1", "big", 0);
    object["metadata"]["annotations"] = Value::Null;
    let entries: Vec<String> = (0..17).map(|at| format!("example.test/{at}{}", "x".repeat(100_000))).collect();
    object["metadata"]["ownerReferences"] =
        entries.iter().map(|name| json!({"apiVersion": "v1", "kind": "Pod", "name": name, "uid": "u"})).collect();
    stage.body = Some(object);
}

pub fn long_annotations(stage: &mut Stage) {
    stage.body = Some(with_annotation("Widget", "example.test/v1", "ann", 256 * 1024));
}

pub fn bound(stage: &mut Stage) {
    let mut spec = plain();
    spec["nodeName"] = json!("ghost");
    stage.pod_in("f1-main", "s4", spec);
}

pub fn fresh_namespace(stage: &mut Stage) {
    stage.namespace("f1-fresh");
}

/// A control plane whose controllers are down.
fn without_controllers(stage: &mut Stage) {
    let settings = Settings { service_accounts: false, ..Settings::default() };
    let store = stage.store();
    *store = Store::with_settings(time("2026-11-30T08:12:00Z"), settings);
    store.add_namespace("n1");
}

pub fn no_service_account(stage: &mut Stage) {
    without_controllers(stage);
}

pub fn everything_wrong(stage: &mut Stage) {
    without_controllers(stage);
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": {"pods": "0"}}});
    stage.post("/api/v1/namespaces/n1/resourcequotas", quota);
    stage.delete("/api/v1/namespaces/n1");
}
