//! The kinds that the script speaks of, each with a small object that a server takes.

use serde_json::{Value, json};

/// A kind as paths and bodies have it.
pub struct Kind {
    pub name: &'static str,
    /// The collection; `{ns}` where it is namespaced.
    pub collection: &'static str,
    pub api_version: &'static str,
    pub kind: &'static str,
    /// What an object has beside its metadata.
    pub content: fn() -> Value,
    /// A change of the content that does not change what it means for `generation` to move.
    pub change: fn() -> Value,
    /// Whether `/status` exists.
    pub status: Option<fn() -> Value>,
}

impl Kind {
    /// A whole object of this name with further metadata.
    pub fn object(&self, name: &str, metadata: Value) -> Value {
        let mut object = (self.content)();
        object["apiVersion"] = json!(self.api_version);
        object["kind"] = json!(self.kind);
        object["metadata"] = metadata;
        object["metadata"]["name"] = json!(name);
        object
    }
    pub fn at(&self, name: &str) -> String {
        format!("{}/{name}", self.collection)
    }
}

/// Every kind that the operator, the sandbox or kubectl writes.
pub const KINDS: [Kind; 9] = [
    Kind {
        name: "cocoonset",
        collection: "/apis/cocoonset.cocoonstack.io/v1/namespaces/{ns}/cocoonsets",
        api_version: "cocoonset.cocoonstack.io/v1",
        kind: "CocoonSet",
        content: || json!({"spec": {"agent": {"image": "ubuntu:24.04", "replicas": 1}}}),
        change: || json!({"spec": {"agent": {"replicas": 2}}}),
        status: Some(|| json!({"phase": "Running", "readyAgents": 2, "observedGeneration": 1})),
    },
    Kind {
        name: "cocoonhibernation",
        collection: "/apis/cocoonset.cocoonstack.io/v1/namespaces/{ns}/cocoonhibernations",
        api_version: "cocoonset.cocoonstack.io/v1",
        kind: "CocoonHibernation",
        content: || json!({"spec": {"podRef": {"name": "demo-0"}, "desire": "Hibernate"}}),
        change: || json!({"spec": {"desire": "Wake"}}),
        status: Some(|| json!({"phase": "Hibernating", "observedGeneration": 1})),
    },
    Kind {
        name: "pod",
        collection: "/api/v1/namespaces/{ns}/pods",
        api_version: "v1",
        kind: "Pod",
        // Nobody schedules it: what a scheduler writes comes in its own time.
        content: || {
            json!({"spec": {"automountServiceAccountToken": false, "schedulerName": "nobody",
                "containers": [{"name": "agent", "image": "ubuntu:24.04"}]}})
        },
        change: || json!({"spec": {"containers": [{"name": "agent", "image": "ubuntu:26.04"}]}}),
        status: Some(|| json!({"phase": "Running", "podIP": "10.0.0.7", "podIPs": [{"ip": "10.0.0.7"}]})),
    },
    Kind {
        name: "configmap",
        collection: "/api/v1/namespaces/{ns}/configmaps",
        api_version: "v1",
        kind: "ConfigMap",
        content: || json!({"data": {"a": "1"}}),
        change: || json!({"data": {"a": "2"}}),
        status: None,
    },
    Kind {
        name: "lease",
        collection: "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases",
        api_version: "coordination.k8s.io/v1",
        kind: "Lease",
        content: || json!({"spec": {"holderIdentity": "one", "leaseDurationSeconds": 15, "leaseTransitions": 0}}),
        change: || json!({"spec": {"holderIdentity": "two", "leaseTransitions": 1}}),
        status: None,
    },
    Kind {
        name: "event",
        collection: "/apis/events.k8s.io/v1/namespaces/{ns}/events",
        api_version: "events.k8s.io/v1",
        kind: "Event",
        content: || {
            json!({
                "eventTime": "2026-08-03T12:00:00.000000Z", "reportingController": "cocoon-operator",
                "reportingInstance": "cocoon-operator-1", "action": "CreatePod", "reason": "Created", "type": "Normal",
                "note": "pod demo-0 is created", "regarding": {
                    "apiVersion": "cocoonset.cocoonstack.io/v1", "kind": "CocoonSet", "namespace": "{ns}", "name": "demo",
                },
            })
        },
        change: || json!({"series": {"count": 2, "lastObservedTime": "2026-08-03T12:01:00.000000Z"}}),
        status: None,
    },
    Kind {
        name: "resourcequota",
        collection: "/api/v1/namespaces/{ns}/resourcequotas",
        api_version: "v1",
        kind: "ResourceQuota",
        content: || json!({"spec": {"hard": {"secrets": "100"}}}),
        change: || json!({"spec": {"hard": {"secrets": "99"}}}),
        status: None,
    },
    Kind {
        name: "node",
        collection: "/api/v1/nodes",
        api_version: "v1",
        kind: "Node",
        content: || json!({"spec": {"podCIDR": "10.9.0.0/24"}}),
        change: || json!({"spec": {"providerID": "cocoon://one"}}),
        status: Some(|| json!({"capacity": {"pods": "4"}})),
    },
    Kind {
        name: "namespace",
        collection: "/api/v1/namespaces",
        api_version: "v1",
        kind: "Namespace",
        content: || json!({}),
        change: || json!({"metadata": {"annotations": {"changed": "yes"}}}),
        status: None,
    },
];
