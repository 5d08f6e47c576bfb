//! What the two custom kinds take and refuse: types, required fields, bounds, words, defaults, unknown fields, CEL.

use super::Case;
use super::call::{Call, get, merge, post, put_last};
use serde_json::{Value, json};

const SETS: &str = "/apis/cocoonset.cocoonstack.io/v1/namespaces/{ns}/cocoonsets";
const REQUESTS: &str = "/apis/cocoonset.cocoonstack.io/v1/namespaces/{ns}/cocoonhibernations";

/// One case for specs, one for changes of them, one for status, one for requests.
pub fn cases() -> Vec<Case> {
    vec![
        Case::new("schema-specs", specs()),
        Case::new("schema-changes", changes()),
        Case::new("schema-status", statuses()),
        Case::new("schema-requests", requests()),
    ]
}

fn set(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "cocoonset.cocoonstack.io/v1", "kind": "CocoonSet", "metadata": {"name": name}, "spec": spec})
}

fn agent(agent: Value) -> Value {
    json!({ "agent": agent })
}

/// Specs whose agent is wrong or odd in one place.
fn odd_agents(image: &str) -> Vec<(&'static str, Value)> {
    vec![
        ("the least there is", agent(json!({"image": image}))),
        ("null", Value::Null),
        ("an empty spec", json!({})),
        ("a text for a spec", json!("x")),
        ("no image", agent(json!({}))),
        ("an empty image", agent(json!({"image": ""}))),
        ("a number for an image", agent(json!({"image": 7}))),
        ("replicas as text", agent(json!({"image": image, "replicas": "2"}))),
        ("replicas below zero", agent(json!({"image": image, "replicas": -1}))),
        ("replicas beyond an int32", agent(json!({"image": image, "replicas": 4_294_967_296_i64}))),
        ("replicas as a fraction", agent(json!({"image": image, "replicas": 1.5}))),
        ("replicas as a whole fraction", agent(json!({"image": image, "replicas": 2.0}))),
        ("null replicas", agent(json!({"image": image, "replicas": null}))),
        ("very many replicas", agent(json!({"image": image, "replicas": 100_000}))),
        ("a mode that is none", agent(json!({"image": image, "mode": "walk"}))),
        ("a backend that is none", agent(json!({"image": image, "backend": "qemu"}))),
        ("the other backend", agent(json!({"image": image, "backend": "firecracker"}))),
        ("an os that is none", agent(json!({"image": image, "os": "plan9"}))),
        ("a connection that is none", agent(json!({"image": image, "connType": "telnet"}))),
        ("a port beyond", agent(json!({"image": image, "probePort": 70_000}))),
        ("a port of zero", agent(json!({"image": image, "probePort": 0}))),
        ("a storage that is no quantity", agent(json!({"image": image, "storage": "much"}))),
        ("a storage that is a number", agent(json!({"image": image, "storage": 1024}))),
        ("resources that are none", agent(json!({"image": image, "resources": {"limits": {"cpu": "many"}}}))),
        (
            "resources in numbers",
            agent(json!({"image": image, "resources": {"limits": {"cpu": 2, "memory": "1.5Gi"}}})),
        ),
        ("an unknown field", agent(json!({"image": image, "colour": "red"}))),
    ]
}

/// Whole specs, each wrong or odd in one place.
fn odd_specs(image: &str) -> Vec<(&'static str, Value)> {
    let toolbox = |one: Value| json!({"agent": {"image": image}, "toolboxes": [one]});
    vec![
        ("snapshotPolicy that is none", json!({"agent": {"image": image}, "snapshotPolicy": "sometimes"})),
        ("hibernatePolicy that is none", json!({"agent": {"image": image}, "hibernatePolicy": "maybe"})),
        ("suspend as text", json!({"agent": {"image": image}, "suspend": "yes"})),
        ("a toolbox", toolbox(json!({"name": "box", "image": image}))),
        ("a toolbox without a name", toolbox(json!({"image": image}))),
        ("a toolbox with a name too long", toolbox(json!({"name": "x".repeat(80), "image": image}))),
        ("a toolbox with an odd name", toolbox(json!({"name": "Box_1", "image": image}))),
        (
            "a static toolbox",
            toolbox(json!({"name": "box", "mode": "static", "staticVMID": "vm-1", "staticIP": "10.1.2.3"})),
        ),
        ("a static toolbox without an id", toolbox(json!({"name": "box", "mode": "static"}))),
        (
            "two toolboxes of one name",
            json!({"agent": {"image": image}, "toolboxes": [
            {"name": "box", "image": image}, {"name": "box", "image": image}]}),
        ),
        ("release with sub-agents", json!({"agent": {"image": image, "replicas": 1}, "hibernatePolicy": "release"})),
        ("release alone", json!({"agent": {"image": image}, "hibernatePolicy": "release"})),
        ("everything wrong at once", json!({"agent": {"image": 7, "replicas": "x", "os": "y"}, "suspend": 3})),
        ("a class", json!({"agent": {"image": image}, "snapshotCompatibilityClass": "n2-v1"})),
    ]
}

fn specs() -> Vec<Call> {
    let image = "ubuntu:24.04";
    let rows = [odd_agents(image), odd_specs(image)].concat();
    let mut calls: Vec<Call> = Vec::new();
    for (index, (title, spec)) in rows.into_iter().enumerate() {
        calls.push(post(SETS, set(&format!("s{index}"), spec)).says(format!("spec: {title}")));
    }
    let mut without = set("without", Value::Null);
    if let Some(map) = without.as_object_mut() {
        map.remove("spec");
    }
    calls.push(post(SETS, without).says("no spec at all"));
    let unknown = set("unknown", agent(json!({"image": image, "colour": "red"})));
    for validation in ["Strict", "Warn", "Ignore", "Perhaps"] {
        calls.push(
            post(format!("{SETS}?dryRun=All&fieldValidation={validation}"), unknown.clone())
                .says(format!("an unknown field under {validation}")),
        );
    }
    calls.push(
        super::call::text(
            "POST",
            format!("{SETS}?fieldValidation=Strict"),
            super::call::JSON,
            "{\"apiVersion\":\"cocoonset.cocoonstack.io/v1\",\"kind\":\"CocoonSet\",\"metadata\":{\"name\":\"twice\"},\
             \"spec\":{\"agent\":{\"image\":\"a\",\"image\":\"b\"}}}",
        )
        .says("a field twice"),
    );
    calls.push(get(SETS).says("all that were taken"));
    calls
}

fn changes() -> Vec<Call> {
    let at = format!("{SETS}/one");
    vec![
        post(SETS, set("one", json!({"agent": {"image": "a", "replicas": 1}, "snapshotCompatibilityClass": "n2-v1"})))
            .says("a set"),
        merge(&at, json!({"spec": {"agent": {"image": "b"}}})).says("another image: the generation moves"),
        merge(&at, json!({"metadata": {"labels": {"a": "b"}}})).says("a label: it does not"),
        merge(&at, json!({"spec": {"agent": {"replicas": "x"}}})).says("a patch to what is refused"),
        merge(&at, json!({"spec": {"snapshotCompatibilityClass": "n2-v2"}})).says("the class is immutable"),
        merge(&at, json!({"spec": {"snapshotCompatibilityClass": null}})).says("and stays"),
        merge(&at, json!({"spec": {"hibernatePolicy": "release"}})).says("release with a sub-agent"),
        merge(&at, json!({"spec": null})).says("the spec taken away"),
        merge(&at, json!({"spec": {"agent": null}})).says("the agent taken away"),
        merge(&at, json!({"spec": {"agent": {"colour": "red"}}})).says("an unknown field is dropped"),
        put_last(&at, "one", json!({"spec": {"agent": {"mode": null}}})).says("a default comes back"),
        put_last(&at, "one", json!({"spec": {"nodeName": "node-a"}})).says("put: the generation moves"),
        put_last(&at, "one", json!({})).says("put as it is: it does not"),
        get(&at).says("as it is then"),
    ]
}

fn statuses() -> Vec<Call> {
    let at = format!("{SETS}/one");
    let status = format!("{at}/status");
    let condition = |kind: &str| json!({"type": kind, "status": "True", "reason": "Fine", "message": "", "lastTransitionTime": "2026-08-03T12:00:00Z"});
    vec![
        post(SETS, set("one", json!({"agent": {"image": "a"}}))).says("a set"),
        get(&status).says("its status, before there is one"),
        merge(&status, json!({"status": {"phase": "Pending", "conditions": [condition("Ready")]}})).says("a status"),
        merge(&status, json!({"status": {"phase": "Pending"}})).says("the same"),
        merge(&status, json!({"status": {"phase": "Asleep"}})).says("a phase that is none"),
        merge(&status, json!({"status": {"phase": 7}})).says("a phase that is a number"),
        merge(&status, json!({"status": {"conditions": [{"type": "Ready"}]}})).says("half a condition"),
        merge(&status, json!({"status": {"conditions": [condition("Ready"), condition("Ready")]}}))
            .says("a condition twice"),
        merge(&status, json!({"status": {"conditions": [condition("Ready"), condition("Degraded")]}}))
            .says("two conditions"),
        merge(&status, json!({"status": {"colour": "red"}})).says("an unknown field"),
        merge(&status, json!({"status": {"observedGeneration": -1}})).says("a generation below zero"),
        merge(&status, json!({"spec": {"agent": {"image": "b"}}})).says("the spec through status"),
        merge(&status, json!({"metadata": {"finalizers": ["example.test/hold"]}})).says("a finalizer through status"),
        merge(
            &status,
            json!({"metadata": {"uid": "00000000-0000-4000-8000-000000000000"}, "status": {"phase": "Running"}}),
        )
        .says("under another uid"),
        put_last(&status, "one", json!({"status": {"phase": "Running"}})).says("put"),
        put_last(&status, "one", json!({"status": null})).says("put away"),
        merge(format!("{SETS}/absent/status"), json!({"status": {"phase": "Running"}})).says("of what is not there"),
        get(&at).says("as it is then"),
    ]
}

fn requests() -> Vec<Call> {
    let request = |name: &str, spec: Value| json!({"apiVersion": "cocoonset.cocoonstack.io/v1", "kind": "CocoonHibernation", "metadata": {"name": name}, "spec": spec});
    let rows: Vec<(&str, Value)> = vec![
        ("whole", json!({"podRef": {"name": "demo-0"}, "desire": "Hibernate"})),
        ("without a pod", json!({"desire": "Hibernate"})),
        ("without a name", json!({"podRef": {}, "desire": "Hibernate"})),
        ("with an empty name", json!({"podRef": {"name": ""}, "desire": "Hibernate"})),
        ("without a desire", json!({"podRef": {"name": "demo-0"}})),
        ("with a desire that is none", json!({"podRef": {"name": "demo-0"}, "desire": "Dream"})),
        ("with null for a desire", json!({"podRef": {"name": "demo-0"}, "desire": null})),
        ("with an unknown field", json!({"podRef": {"name": "demo-0", "uid": "x"}, "desire": "Wake"})),
        ("that is a list", json!([])),
    ];
    let mut calls: Vec<Call> = Vec::new();
    for (index, (title, spec)) in rows.into_iter().enumerate() {
        calls.push(post(REQUESTS, request(&format!("r{index}"), spec)).says(format!("a request {title}")));
    }
    let at = format!("{REQUESTS}/r0");
    calls.extend([
        merge(&at, json!({"spec": {"desire": "Wake"}})).says("another desire"),
        merge(&at, json!({"spec": {"podRef": {"name": "demo-1"}}})).says("another pod"),
        merge(format!("{at}/status"), json!({"status": {"phase": "Active"}})).says("a phase that is none"),
        merge(format!("{at}/status"), json!({"status": {"phase": "Hibernated", "vmName": "vk-x"}})).says("a phase"),
        get(REQUESTS).says("all"),
    ]);
    calls
}
