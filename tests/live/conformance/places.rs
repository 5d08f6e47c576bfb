//! Pods that are bound and deleted, quotas, owners, and namespaces that end.

use super::Case;
use super::call::{Call, delete, delete_with, get, json_patch, merge, post, put_last, strategic};
use serde_json::{Value, json};

const PODS: &str = "/api/v1/namespaces/{ns}/pods";
const SETS: &str = "/apis/cocoonset.cocoonstack.io/v1/namespaces/{ns}/cocoonsets";

pub fn cases() -> Vec<Case> {
    vec![
        Case::new("pods-bound", bound()),
        Case::new("pods-invalid", invalid()),
        Case::new("pods-strategic", strategies()),
        Case::new("quota", quota()),
        Case::new("owners", owners()),
        Case::new("namespace-ends", ends()),
    ]
}

fn pod(name: &str, spec: Value) -> Value {
    let mut object = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"containers": [{"name": "agent", "image": "ubuntu:24.04"}]},
    });
    if let (Some(into), Some(from)) = (object["spec"].as_object_mut(), spec.as_object()) {
        into.extend(from.clone());
    }
    object
}

fn at(name: &str) -> String {
    format!("{PODS}/{name}")
}

/// Pods on a node whose agent never speaks: they stay until they are removed by force.
fn bound() -> Vec<Call> {
    let binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "late"},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "nowhere-to-run"}});
    vec![
        post(PODS, pod("one", json!({"nodeName": "nowhere-to-run"}))).says("a pod on a node"),
        get(format!("{PODS}?fieldSelector=spec.nodeName%3Dnowhere-to-run")).says("listed by its node"),
        get(format!("{PODS}?fieldSelector=spec.nodeName%3D")).says("listed by no node"),
        get(format!("{PODS}?fieldSelector=status.phase%3DPending")).says("listed by phase"),
        post(PODS, pod("late", json!({"schedulerName": "nobody"}))).says("a pod that nobody schedules"),
        post(at("late/binding"), binding.clone()).says("bound"),
        post(at("late/binding"), binding).says("bound again"),
        get(at("late")).says("it is bound"),
        put_last(at("late"), "late", json!({"spec": {"nodeName": "elsewhere"}})).says("moved to another node"),
        merge(
            at("one/status"),
            json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}),
        )
        .says("it runs"),
        delete_with(at("one"), json!({"gracePeriodSeconds": 30, "preconditions": {"uid": "$uid:one"}}))
            .says("deleted with grace"),
        get(at("one")).says("it is going"),
        delete_with(at("one"), json!({"gracePeriodSeconds": 60})).says("deleted again with more grace"),
        delete_with(at("one"), json!({"gracePeriodSeconds": 5})).says("deleted again with less"),
        post(PODS, pod("one", json!({}))).says("created over it"),
        delete_with(at("one"), json!({"gracePeriodSeconds": 0})).says("removed by force"),
        get(at("one")).says("gone"),
        post(PODS, pod("one", json!({"schedulerName": "nobody"}))).says("created anew"),
        delete(at("one")).says("deleted before it was bound"),
        get(at("one")).says("gone at once"),
        merge(at("late/status"), json!({"status": {"phase": "Succeeded"}})).says("the bound one is over"),
        delete(at("late")).says("deleted when it is over"),
        get(at("late")).says("gone at once too"),
        post(PODS, pod("grace", json!({"nodeName": "nowhere-to-run", "terminationGracePeriodSeconds": 0})))
            .says("a pod without grace"),
        delete(at("grace")).says("deleted"),
        get(at("grace")).says("gone"),
    ]
}

fn invalid() -> Vec<Call> {
    let container = |more: Value| {
        let mut one = json!({"name": "agent", "image": "ubuntu:24.04"});
        if let (Some(into), Some(from)) = (one.as_object_mut(), more.as_object()) {
            into.extend(from.clone());
        }
        json!({"containers": [one]})
    };
    let rows: Vec<(&str, Value)> = vec![
        ("no containers", json!({"containers": []})),
        ("a container without an image", container(json!({"image": ""}))),
        ("a container with an odd name", container(json!({"name": "Agent_1"}))),
        (
            "two containers of one name",
            json!({"containers": [{"name": "a", "image": "x"}, {"name": "a", "image": "x"}]}),
        ),
        ("a limit that is none", container(json!({"resources": {"limits": {"cpu": "many"}}}))),
        ("a limit below zero", container(json!({"resources": {"limits": {"cpu": "-1"}}}))),
        (
            "a request over its limit",
            container(json!({"resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "2"}}})),
        ),
        ("a limit alone", container(json!({"resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}))),
        ("a resource that is none", container(json!({"resources": {"limits": {"colour": "1"}}}))),
        ("a node selector that is none", json!({"nodeSelector": {"pool": "a b"}})),
        ("a node name that is none", json!({"nodeName": "Node_A"})),
        ("a toleration that is none", json!({"tolerations": [{"key": "a", "operator": "Exists", "value": "b"}]})),
        ("a toleration of everything", json!({"tolerations": [{"operator": "Exists"}]})),
        ("an effect that is none", json!({"tolerations": [{"key": "a", "operator": "Exists", "effect": "Never"}]})),
        ("a restart policy that is none", json!({"restartPolicy": "Sometimes"})),
        ("a grace below zero", json!({"terminationGracePeriodSeconds": -1})),
        ("a service account that is not there", json!({"serviceAccountName": "nobody-knows-me"})),
        ("a priority class that is not there", json!({"priorityClassName": "most-urgent"})),
        ("an environment from nowhere", container(json!({"envFrom": [{}]}))),
        (
            "an environment from a map",
            container(json!({"envFrom": [{"configMapRef": {"name": "a", "optional": true}}]})),
        ),
        (
            "an affinity without terms",
            json!({"affinity": {"nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}}}),
        ),
        (
            "an affinity to a host",
            json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["node-a"]}]}]}}}}),
        ),
        (
            "an operator that is none",
            json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Near", "values": ["b"]}]}]}}}}),
        ),
        ("a DNS policy that is none", json!({"dnsPolicy": "Guess"})),
        ("an unknown field", json!({"colour": "red"})),
        ("a field of another type", json!({"hostNetwork": "yes"})),
    ];
    let mut calls: Vec<Call> = Vec::new();
    for (index, (title, mut spec)) in rows.into_iter().enumerate() {
        // Nobody is to run them.
        spec["schedulerName"] = json!("nobody");
        calls.push(post(format!("{PODS}?dryRun=All"), pod(&format!("p{index}"), spec)).says(format!("pod: {title}")));
    }
    calls
}

fn strategies() -> Vec<Call> {
    let one = at("one");
    vec![
        post(PODS, pod("one", json!({"schedulerName": "nobody", "tolerations": [{"key": "a", "operator": "Exists"}]})))
            .says("a pod"),
        strategic(&one, json!({"metadata": {"annotations": {"a": "1"}, "labels": {"b": "2"}}}))
            .says("annotation and label"),
        strategic(&one, json!({"metadata": {"annotations": {"a": null}}})).says("the annotation taken away"),
        strategic(&one, json!({"metadata": {"uid": "$uid:one", "annotations": {"c": "3"}}})).says("under its uid"),
        strategic(&one, json!({"metadata": {"uid": "00000000-0000-4000-8000-000000000000"}})).says("under another uid"),
        strategic(&one, json!({"spec": {"containers": [{"name": "agent", "image": "ubuntu:26.04"}]}}))
            .says("another image by name"),
        strategic(&one, json!({"spec": {"containers": [{"image": "x"}]}})).says("a container without its name"),
        strategic(&one, json!({"spec": {"tolerations": [{"key": "b", "operator": "Exists"}]}}))
            .says("other tolerations"),
        strategic(&one, json!({"spec": {"restartPolicy": "Never"}})).says("what cannot change"),
        strategic(&one, json!({"metadata": {"finalizers": ["example.test/a"]}})).says("a finalizer"),
        strategic(&one, json!({"metadata": {"finalizers": ["example.test/b"]}})).says("another: lists merge"),
        strategic(&one, json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.test/a"]}}))
            .says("one taken out"),
        strategic(&one, json!({"metadata": {"finalizers": null}})).says("all taken out"),
        strategic(at("one/status"), json!({"status": {"conditions": [{"type": "Ready", "status": "False"}]}}))
            .says("a condition"),
        strategic(at("one/status"), json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}}))
            .says("the same, True"),
        strategic(at("one/status"), json!({"status": {"conditions": [{"type": "Initialized", "status": "True"}]}}))
            .says("one more"),
        strategic(
            at("one/status"),
            json!({"status": {"phase": "Running", "podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}]}}),
        )
        .says("it runs"),
        get(&one).says("as it is then"),
        strategic(format!("{SETS}/one"), json!({"metadata": {"labels": {"a": "b"}}}))
            .says("a strategic patch of a custom kind"),
    ]
}

fn quota() -> Vec<Call> {
    let at_quota = "/api/v1/namespaces/{ns}/resourcequotas/pods";
    let hard = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "pods"},
        "spec": {"hard": {"pods": "1", "requests.cpu": "2"}}});
    let sized = |name: &str, cpu: &str| {
        let mut object = pod(name, json!({"schedulerName": "nobody"}));
        object["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": cpu}});
        object
    };
    vec![
        post("/api/v1/namespaces/{ns}/resourcequotas", hard).says("a quota"),
        get(at_quota).once(at_quota, "/status/used/pods", json!("0")).says("it is computed"),
        post(PODS, pod("bare", json!({"schedulerName": "nobody"}))).once_answered(403).says("a pod that says no cpu"),
        post(PODS, sized("big", "3")).says("a pod beyond the cpu"),
        post(PODS, sized("one", "1")).says("a pod within"),
        get(at_quota).once(at_quota, "/status/used/pods", json!("1")).says("it counts"),
        post(PODS, sized("two", "1")).once_answered(403).says("a pod beyond the count"),
        post(PODS, sized("one", "1")).says("the same pod under a full quota"),
        post(format!("{PODS}?dryRun=All"), sized("two", "1")).says("dry, beyond the count"),
        merge(at_quota, json!({"spec": {"hard": {"pods": "2"}}})).says("the quota is raised"),
        get(at_quota).once(at_quota, "/status/hard/pods", json!("2")).says("it knows"),
        post(PODS, sized("two", "1")).once_answered(201).says("now it fits"),
        delete(at("one")).says("one goes"),
        get(at_quota).once(at_quota, "/status/used/pods", json!("1")).says("it is counted off"),
    ]
}

/// The uid of nothing.
const NOBODY: &str = "00000000-0000-4000-8000-000000000000";

fn owners() -> Vec<Call> {
    let owned = |name: &str, uid: &str, blocks: bool| {
        let mut object = pod(name, json!({"schedulerName": "nobody"}));
        object["metadata"]["ownerReferences"] = json!([{"apiVersion": "cocoonset.cocoonstack.io/v1", "kind": "CocoonSet",
            "name": "set", "uid": uid, "controller": true, "blockOwnerDeletion": blocks}]);
        object
    };
    let set = |name: &str| {
        json!({"apiVersion": "cocoonset.cocoonstack.io/v1", "kind": "CocoonSet", "metadata": {"name": name},
            "spec": {"agent": {"image": "a"}}})
    };
    let at_set = format!("{SETS}/set");
    let hold = json!([{"op": "add", "path": "/metadata/finalizers", "value": ["example.test/hold"]}]);
    let release = json!([{"op": "remove", "path": "/metadata/finalizers"}]);
    vec![
        post(SETS, set("set")).says("a set"),
        post(PODS, owned("a", "$uid:set", true)).says("a pod of it"),
        {
            let mut two = owned("b", "$uid:set", true);
            let again = two["metadata"]["ownerReferences"][0].clone();
            if let Some(list) = two["metadata"]["ownerReferences"].as_array_mut() {
                list.push(again);
            }
            post(PODS, two).says("a pod with two controllers")
        },
        json_patch(&at_set, hold.clone()).says("the set is held"),
        delete_with(&at_set, json!({"propagationPolicy": "Background"})).says("deleted in the background"),
        get(at("a")).says("its pod stays for as long as it does"),
        json_patch(&at_set, release.clone()).says("the set is let go"),
        get(at("a")).once_gone(&at("a")).says("the pod follows"),
        post(PODS, owned("orphan", NOBODY, false)).says("a pod of a set that never was"),
        get(at("orphan")).once_gone(&at("orphan")).says("it is collected"),
        post(SETS, set("set")).says("a set again"),
        post(PODS, owned("a", "$uid:set", true)).says("a pod of it"),
        post(PODS, owned("seen-one", NOBODY, false)).says("one more of a set that never was"),
        get(at("seen-one"))
            .once_gone(&at("seen-one"))
            .says("it is collected: so the collector knows the pod before it"),
        delete_with(&at_set, json!({"propagationPolicy": "Orphan"})).says("deleted, its pods orphaned"),
        get(&at_set).once_gone(&at_set).says("the set is gone"),
        get(at("a")).says("the pod stays, without an owner"),
        post(SETS, set("set")).says("a set again"),
        post(PODS, owned("c", "$uid:set", true)).says("a pod of it"),
        json_patch(at("c"), hold).says("the pod is held"),
        post(PODS, owned("seen-two", NOBODY, false)).says("one more of a set that never was"),
        get(at("seen-two"))
            .once_gone(&at("seen-two"))
            .says("it is collected: so the collector knows the pod before it"),
        delete_with(&at_set, json!({"propagationPolicy": "Foreground"})).says("deleted in the foreground"),
        get(&at_set).says("the set waits for its pod"),
        json_patch(at("c"), release)
            .once(&at("c"), "/metadata/deletionGracePeriodSeconds", json!(0))
            .says("the pod is let go"),
        get(&at_set).once_gone(&at_set).says("the set is gone"),
    ]
}

fn ends() -> Vec<Call> {
    let namespace = "/api/v1/namespaces/{ns}-ends";
    let pods = format!("{namespace}/pods");
    let sets = "/apis/cocoonset.cocoonstack.io/v1/namespaces/{ns}-ends/cocoonsets";
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "late"}});
    let set = json!({"apiVersion": "cocoonset.cocoonstack.io/v1", "kind": "CocoonSet",
        "metadata": {"name": "set", "finalizers": ["example.test/hold"]}, "spec": {"agent": {"image": "a"}}});
    let account = format!("{namespace}/serviceaccounts/default");
    let event = json!({"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "late"},
        "eventTime": "2026-08-03T12:00:00.000000Z", "reportingController": "x", "reportingInstance": "x", "action": "x",
        "reason": "X", "type": "Normal", "regarding": {"kind": "Pod", "namespace": "{ns}-ends", "name": "x"}});
    vec![
        post("/api/v1/namespaces", json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "{ns}-ends"}}))
            .says("a namespace"),
        get(&account).once(&account, "/metadata/name", json!("default")).says("its service account"),
        post(sets, set.clone()).says("a set in it, held"),
        post(&pods, pod("one", json!({"nodeName": "nowhere-to-run"}))).says("a pod in it"),
        delete(namespace).says("it is deleted"),
        get(namespace).says("it is terminating"),
        delete(namespace).says("deleted again"),
        post(&pods, pod("two", json!({}))).says("a pod is refused"),
        post(&pods, pod("one", json!({}))).says("one that is there is refused as well"),
        post(format!("{pods}?dryRun=All"), pod("two", json!({}))).says("dry, too"),
        post(sets, set).says("a set is refused"),
        post(format!("{namespace}/configmaps"), map).says("a map is refused"),
        post("/apis/events.k8s.io/v1/namespaces/{ns}-ends/events", event).says("an event is refused"),
        merge(format!("{sets}/set/status"), json!({"status": {"phase": "Running"}})).says("a status is taken"),
        merge(format!("{sets}/set"), json!({"metadata": {"annotations": {"a": "b"}}})).says("an annotation is taken"),
        merge(format!("{pods}/one"), json!({"metadata": {"annotations": {"a": "b"}}})).says("a pod's, too"),
        post("/api/v1/namespaces", json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "{ns}-ends"}}))
            .says("created over it"),
        get(format!("{pods}/one"))
            .once(&format!("{pods}/one"), "/metadata/deletionGracePeriodSeconds", json!(30))
            .says("its pod is marked"),
        get(format!("{sets}/set")).says("its set is not, while a pod is there"),
        delete_with(format!("{pods}/one"), json!({"gracePeriodSeconds": 0})).says("the pod goes"),
        get(format!("{sets}/set"))
            .once(&format!("{sets}/set"), "/metadata/deletionGracePeriodSeconds", json!(0))
            .says("the set is marked"),
        json_patch(format!("{sets}/set"), json!([{"op": "remove", "path": "/metadata/finalizers"}]))
            .says("the set is let go"),
        get(namespace).once_gone(namespace).says("the namespace is gone"),
        post(&pods, pod("one", json!({}))).says("a pod where no namespace is"),
    ]
}
