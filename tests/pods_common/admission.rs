//! What others do to a pod between our create and our next look.

use cocoon_operator::core::contract::keys;
use serde_json::{Value, json};

pub fn push(at: &mut Value, item: Value) {
    match at {
        Value::Array(items) => items.push(item),
        other => *other = json!([item]),
    }
}

pub fn reverse(at: &mut Value) {
    if let Value::Array(items) = at {
        items.reverse();
    }
}

/// Ours, wherever a sidecar has moved it.
pub fn ours(pod: &mut Value) -> &mut Value {
    pod["spec"]["containers"].as_array_mut().unwrap().iter_mut().find(|one| one["name"] == "agent").unwrap()
}

pub fn fill(pod: &mut Value, bounds: &str, key: &str, amount: &str) {
    let at = &mut ours(pod)["resources"][bounds][key];
    if at.is_null() {
        *at = json!(amount);
    }
}

pub type Mutation = (&'static str, fn(&mut Value));

/// What API server, admission plugins, webhooks and node agent do to a pod. None of it is anybody's edit of a spec.
pub const ADMISSION: &[Mutation] = &[
    ("default tolerations", |pod| {
        push(&mut pod["spec"]["tolerations"], json!({ "key": "x", "operator": "Exists", "tolerationSeconds": 300 }))
    }),
    ("tolerations reordered", |pod| reverse(&mut pod["spec"]["tolerations"])),
    ("toleration seconds", |pod| pod["spec"]["tolerations"][1]["tolerationSeconds"] = json!(300)),
    ("sidecar behind", |pod| {
        push(
            &mut pod["spec"]["containers"],
            json!({ "name": "proxy", "image": "p", "resources": { "limits": { "cpu": "9" } } }),
        )
    }),
    ("sidecar in front", |pod| {
        push(
            &mut pod["spec"]["containers"],
            json!({ "name": "first", "image": "p", "envFrom": [{ "secretRef": { "name": "z" } }] }),
        );
        reverse(&mut pod["spec"]["containers"]);
    }),
    ("init container", |pod| push(&mut pod["spec"]["initContainers"], json!({ "name": "init", "image": "p" }))),
    ("container defaults", |pod| {
        ours(pod)["terminationMessagePath"] = json!("/dev/termination-log");
        ours(pod)["terminationMessagePolicy"] = json!("File");
        ours(pod)["imagePullPolicy"] = json!("Always");
    }),
    ("pod defaults", |pod| {
        for (key, value) in
            [("restartPolicy", "Always"), ("dnsPolicy", "ClusterFirst"), ("schedulerName", "default-scheduler")]
        {
            pod["spec"][key] = json!(value);
        }
        pod["spec"]["securityContext"] = json!({});
        pod["spec"]["enableServiceLinks"] = json!(true);
    }),
    ("priority", |pod| {
        pod["spec"]["priority"] = json!(1000);
        pod["spec"]["priorityClassName"] = json!("high");
        pod["spec"]["preemptionPolicy"] = json!("PreemptLowerPriority");
    }),
    ("zone affinity in each term", |pod| {
        let required = "requiredDuringSchedulingIgnoredDuringExecution";
        let terms = &mut pod["spec"]["affinity"]["nodeAffinity"][required]["nodeSelectorTerms"];
        if terms.is_null() {
            *terms = json!([{}]);
        }
        push(&mut terms[0]["matchExpressions"], json!({ "key": "zone", "operator": "In", "values": ["z"] }));
    }),
    ("pod anti-affinity", |pod| pod["spec"]["affinity"]["podAntiAffinity"] = json!({})),
    ("service account token", |pod| {
        push(&mut pod["spec"]["volumes"], json!({ "name": "kube-api-access-rgb7r", "projected": {} }));
        push(
            &mut ours(pod)["volumeMounts"],
            json!({ "name": "kube-api-access-rgb7r", "mountPath": "/var/run/secrets" }),
        );
    }),
    ("default service account", |pod| {
        if pod["spec"]["serviceAccountName"].is_null() {
            pod["spec"]["serviceAccountName"] = json!("default");
        }
        pod["spec"]["serviceAccount"] = pod["spec"]["serviceAccountName"].clone();
    }),
    ("another service account", |pod| pod["spec"]["serviceAccountName"] = json!("restricted")),
    ("limit range: cpu limit", |pod| fill(pod, "limits", "cpu", "7")),
    ("limit range: memory limit", |pod| fill(pod, "limits", "memory", "7Gi")),
    ("limit range: cpu request", |pod| fill(pod, "requests", "cpu", "100m")),
    ("limit range: memory request", |pod| fill(pod, "requests", "memory", "7Mi")),
    ("limit range: ephemeral storage", |pod| fill(pod, "limits", "ephemeral-storage", "3Gi")),
    ("requests from limits", |pod| {
        for key in ["cpu", "memory", "ephemeral-storage", "example.com/gpu"] {
            if let Some(limit) = ours(pod)["resources"]["limits"][key].as_str().map(str::to_owned) {
                fill(pod, "requests", key, &limit);
            }
        }
    }),
    ("vertical autoscaler", |pod| {
        ours(pod)["resources"]["requests"]["cpu"] = json!("33m");
        ours(pod)["resources"]["limits"]["memory"] = json!("333Mi");
    }),
    ("resources taken away", |pod| ours(pod)["resources"] = json!({})),
    ("quantities in another form", |pod| {
        for (one, other) in [
            ("1", "1000m"),
            ("4", "4000m"),
            ("2", "2.0"),
            ("8Gi", "8192Mi"),
            ("1Gi", "1073741824"),
            ("100Gi", "102400Mi"),
        ] {
            for bounds in ["limits", "requests"] {
                for key in ["cpu", "memory", "ephemeral-storage"] {
                    if ours(pod)["resources"][bounds][key] == one {
                        ours(pod)["resources"][bounds][key] = json!(other);
                    }
                }
            }
            if pod["metadata"]["annotations"][keys::STORAGE] == one {
                pod["metadata"]["annotations"][keys::STORAGE] = json!(other);
            }
        }
    }),
    ("extended resource", |pod| fill(pod, "limits", "example.com/fpga", "1")),
    ("environment sources", |pod| push(&mut ours(pod)["envFrom"], json!({ "configMapRef": { "name": "proxy-env" } }))),
    ("environment", |pod| push(&mut ours(pod)["env"], json!({ "name": "A", "value": "b" }))),
    ("registry mirror, container", |pod| ours(pod)["image"] = json!("mirror.local/placeholder:latest")),
    ("registry mirror, VM image", |pod| pod["metadata"]["annotations"][keys::IMAGE] = json!("mirror.local/img")),
    ("bound to a node", |pod| pod["spec"]["nodeName"] = json!("node-z")),
    ("namespace's node selector", |pod| pod["spec"]["nodeSelector"]["team"] = json!("x")),
    ("another pool", |pod| pod["spec"]["nodeSelector"][keys::POOL] = json!("forced")),
    ("labels", |pod| pod["metadata"]["labels"]["team"] = json!("x")),
    ("foreign annotations", |pod| pod["metadata"]["annotations"]["sidecar.istio.io/status"] = json!("{}")),
    ("finalizer", |pod| push(&mut pod["metadata"]["finalizers"], json!("example.com/f"))),
    ("second owner", |pod| {
        push(&mut pod["metadata"]["ownerReferences"], json!({ "kind": "Other", "name": "o", "uid": "o" }))
    }),
    ("topology spread", |pod| push(&mut pod["spec"]["topologySpreadConstraints"], json!({ "maxSkew": 1 }))),
    ("image pull secrets", |pod| push(&mut pod["spec"]["imagePullSecrets"], json!({ "name": "r" }))),
    ("runtime class and overhead", |pod| {
        pod["spec"]["runtimeClassName"] = json!("kata");
        pod["spec"]["overhead"] = json!({ "cpu": "250m" });
    }),
    ("longer grace", |pod| pod["spec"]["terminationGracePeriodSeconds"] = json!(30)),
    ("server's metadata", |pod| {
        for (key, value) in [("uid", "u"), ("resourceVersion", "9"), ("creationTimestamp", "2026-08-01T10:00:00Z")] {
            pod["metadata"][key] = json!(value);
        }
    }),
    ("status", |pod| {
        pod["status"] = json!({ "phase": "Running", "podIP": "10.1.1.1",
            "conditions": [{ "type": "Ready", "status": "True" }],
            "containerStatuses": [{ "name": "agent", "state": { "running": {} } }] });
    }),
    ("node agent: runtime", |pod| {
        pod["metadata"]["annotations"][keys::VM_ID] = json!("qemu-5");
        pod["metadata"]["annotations"][keys::VM_IP] = json!("10.88.0.5");
        pod["metadata"]["annotations"][keys::VNC_PORT] = json!("5999");
    }),
    ("node agent: lifecycle", |pod| {
        pod["metadata"]["annotations"][keys::LIFECYCLE_STATE] = json!("ready");
        pod["metadata"]["annotations"][keys::LIFECYCLE_GENERATION] = json!("7");
    }),
    ("generation stamp", |pod| pod["metadata"]["annotations"][keys::GENERATION] = json!("99")),
    ("hibernate mark", |pod| pod["metadata"]["annotations"][keys::HIBERNATE] = json!("true")),
];

/// Of these, an older pod that states no intent bears witness to nothing else than what it carries, so that they look
/// like edits. (Under the operator that made such pods they were drift, too: no pod outlived them.)
pub const ONLY_WITH_INTENT: &[&str] = &[
    "another service account",
    "vertical autoscaler",
    "resources taken away",
    "environment sources",
    "registry mirror, VM image",
    "another pool",
    "node agent: runtime",
    "limit range: cpu request",
    "limit range: memory request",
];
