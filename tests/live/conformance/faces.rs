//! Other forms of an answer, other faces of an object, and what is asked about the API itself.

use super::Case;
use super::call::{Call, JSON, delete, get, json_patch, merge, post, put, put_last, text};
use serde_json::{Value, json};

const SETS: &str = "/apis/cocoonset.cocoonstack.io/v1/namespaces/{ns}/cocoonsets";
const PODS: &str = "/api/v1/namespaces/{ns}/pods";
const EVENTS: &str = "/api/v1/namespaces/{ns}/events";
const NEW_EVENTS: &str = "/apis/events.k8s.io/v1/namespaces/{ns}/events";

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
const PARTIAL: &str = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
const PARTIALS: &str = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";

pub fn cases() -> Vec<Case> {
    vec![
        Case::new("forms", forms()),
        Case::new("methods", methods()),
        Case::new("scale", scale()),
        Case::new("events", events()),
        Case::new("about-the-api", about()),
    ]
}

fn set(name: &str) -> Value {
    json!({"apiVersion": "cocoonset.cocoonstack.io/v1", "kind": "CocoonSet", "metadata": {"name": name},
        "spec": {"agent": {"image": "a", "replicas": 1}}})
}

fn pod(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"schedulerName": "nobody", "automountServiceAccountToken": false,
            "containers": [{"name": "agent", "image": "a"}]}})
}

fn forms() -> Vec<Call> {
    let mut calls = vec![
        post(SETS, set("one")).says("a set"),
        merge(format!("{SETS}/one/status"), json!({"status": {"phase": "Running", "readyAgents": 2}})).says("it runs"),
        post(PODS, pod("one")).says("a pod"),
        post(
            "/api/v1/namespaces/{ns}/configmaps",
            json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "one"}, "data": {"a": "1", "b": "2"}}),
        )
        .says("a map"),
    ];
    for collection in [SETS, PODS] {
        let one = format!("{collection}/one");
        calls.extend([
            get(collection).accept(TABLE).says("a table"),
            get(&one).accept(TABLE).says("a table of one"),
            get(format!("{collection}?includeObject=None")).accept(TABLE).says("a table without objects"),
            get(format!("{collection}?includeObject=Object")).accept(TABLE).says("a table with objects"),
            get(format!("{collection}?limit=1")).accept(TABLE).says("a page of a table"),
            get(format!("{collection}/absent")).accept(TABLE).says("no table of what is not there"),
            get(&one).accept(PARTIAL).says("metadata"),
            get(collection).accept(PARTIALS).says("metadata of all"),
            merge(&one, json!({"metadata": {"labels": {"a": "b"}}})).accept(PARTIAL).says("metadata after a patch"),
            get(&one).accept("text/html").says("a form that there is not"),
            get(&one).accept("*/*").says("any form"),
            get(&one).accept("application/json;as=Table;v=v1;g=other.test, application/json").says("the second form"),
        ]);
    }
    calls.push(get("/api/v1/namespaces/{ns}/configmaps/one").accept(TABLE).says("a table of a map"));
    calls
}

/// Verbs where they do not belong.
fn methods() -> Vec<Call> {
    let mut calls = vec![post(SETS, set("one")).says("a set"), post(PODS, pod("one")).says("a pod")];
    for (collection, object) in [(SETS, set("one")), (PODS, pod("one"))] {
        let one = format!("{collection}/one");
        calls.extend([
            post(&one, object.clone()).says("posting to an object"),
            put(collection, object.clone()).says("putting a collection"),
            merge(collection, json!({})).says("patching a collection"),
            post(format!("{one}/status"), object.clone()).says("posting a status"),
            delete(format!("{one}/status")).says("deleting a status"),
            get(format!("{one}/colour")).says("a subresource that is none"),
            put(format!("{one}/colour"), object).says("putting a subresource that is none"),
        ]);
    }
    for path in ["/apis/cocoonset.cocoonstack.io/v1/namespaces/{ns}/cocoonpots", "/api/v1/namespaces/{ns}/pots"] {
        calls.push(get(path).says("a resource that is none"));
        calls.push(post(path, set("one")).says("posting to a resource that is none"));
    }
    calls.push(get("/apis/other.test/v1/pots").says("a group that is none"));
    calls.push(get("/apis/cocoonset.cocoonstack.io/v9/cocoonsets").says("a version that is none"));
    calls.push(post("/apis/cocoonset.cocoonstack.io/v1/cocoonsets", set("two")).says("posting to all namespaces"));
    calls
}

fn scale() -> Vec<Call> {
    let scale = format!("{SETS}/one/scale");
    let body = |replicas: Value| {
        json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "one"},
        "spec": {"replicas": replicas}})
    };
    vec![
        post(SETS, set("one")).says("a set"),
        get(&scale).says("its scale"),
        merge(&scale, json!({"spec": {"replicas": 3}})).says("scaled by a patch"),
        merge(&scale, json!({"spec": {"replicas": 3}})).says("the same"),
        merge(&scale, json!({"spec": {"replicas": -1}})).says("below zero"),
        put(&scale, body(json!(2))).says("scaled by a put"),
        put(&scale, body(json!("two"))).says("put as text"),
        put(
            &scale,
            json!({"apiVersion": "autoscaling/v1", "kind": "Scale",
            "metadata": {"name": "one", "resourceVersion": "$first-rv:one"}, "spec": {"replicas": 4}}),
        )
        .says("put at a stale version"),
        json_patch(&scale, json!([{"op": "replace", "path": "/spec/replicas", "value": 0}])).says("scaled to nothing"),
        get(format!("{SETS}/absent/scale")).says("of what is not there"),
        get(format!("{PODS}/one/scale")).says("of a pod"),
        get(format!("{SETS}/one")).says("as it is then"),
    ]
}

fn events() -> Vec<Call> {
    let old = json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "old"}, "reason": "Created",
        "message": "a pod is created", "type": "Normal", "count": 1, "source": {"component": "kubelet", "host": "node-a"},
        "firstTimestamp": "2026-08-03T12:00:00Z", "lastTimestamp": "2026-08-03T12:00:00Z",
        "involvedObject": {"apiVersion": "v1", "kind": "Pod", "namespace": "{ns}", "name": "demo-0", "uid": "u-1"}});
    let new = json!({"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "new"},
        "eventTime": "2026-08-03T12:00:00.000000Z", "reportingController": "cocoon-operator",
        "reportingInstance": "cocoon-operator-1", "action": "CreatePod", "reason": "Created", "type": "Normal",
        "note": "pod demo-0 is created", "regarding": {"kind": "Pod", "namespace": "{ns}", "name": "demo-0"}});
    vec![
        post(EVENTS, old).says("an event in the old form"),
        get(format!("{NEW_EVENTS}/old")).says("it in the new form"),
        post(NEW_EVENTS, new).says("an event in the new form"),
        get(format!("{EVENTS}/new")).says("it in the old form"),
        get(format!("{EVENTS}?fieldSelector=involvedObject.name%3Ddemo-0,reason%3DCreated"))
            .says("by object and reason"),
        get(format!("{NEW_EVENTS}?fieldSelector=regarding.name%3Ddemo-0")).says("by object in the new words"),
        get(format!("{EVENTS}?fieldSelector=type%3DWarning")).says("warnings"),
        merge(format!("{EVENTS}/old"), json!({"count": 2})).says("counted on"),
        merge(
            format!("{NEW_EVENTS}/new"),
            json!({"series": {"count": 2, "lastObservedTime": "2026-08-03T12:00:05.000000Z"}}),
        )
        .says("a series"),
        put_last(format!("{NEW_EVENTS}/new"), "new", json!({})).says("put as it is"),
        get(EVENTS).says("all"),
        delete(EVENTS).says("all deleted"),
    ]
}

fn about() -> Vec<Call> {
    let review = |group: &str, resource: &str, verb: &str| {
        json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": {
            "resourceAttributes": {"namespace": "{ns}", "group": group, "resource": resource, "verb": verb}}})
    };
    let reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    vec![
        get("/apis/cocoonset.cocoonstack.io").says("our group"),
        get("/apis/cocoonset.cocoonstack.io/v1").says("our kinds"),
        get("/apis/cocoonset.cocoonstack.io/v2").says("a version that is none"),
        get("/apis/other.test").says("a group that is none"),
        get("/apis/coordination.k8s.io").says("the group of Leases"),
        get("/healthz").accept("*/*").says("healthy"),
        get("/readyz").accept("*/*").says("ready"),
        post(reviews, review("cocoonset.cocoonstack.io", "cocoonsets", "create")).says("may I create sets"),
        post(reviews, review("", "pods", "delete")).says("may I delete pods"),
        text("POST", reviews, JSON, "{").says("half a question"),
    ]
}
