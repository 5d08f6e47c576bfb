//! The table of resources: the built-in kinds, and what a CustomResourceDefinition adds.

use serde_json::Value;
use std::sync::Arc;

/// One resource as paths, messages and rules speak of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Resource {
    /// API group, empty for core.
    pub group: String,
    /// The served version.
    pub version: String,
    /// As it stands in paths.
    pub plural: String,
    /// As it stands in objects.
    pub kind: String,
    /// Kind of a LIST's answer.
    pub list_kind: String,
    /// False for cluster-wide resources.
    pub namespaced: bool,
    /// Whether `/status` exists; if so, the main resource ignores status.
    pub status: bool,
    /// Whether `metadata.generation` is kept.
    pub generation: bool,
    /// The structural schema; built-in kinds have none here.
    pub schema: Option<Arc<super::schema::Schema>>,
    /// The version at which this resource began to be served: a watch cannot start before it.
    pub since: u64,
}

impl Resource {
    /// `pods`, `widgets.example.test`: the name in messages, and the key under which objects are stored.
    pub fn qualified(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }
    /// `Pod`, `Widget.example.test`.
    pub fn qualified_kind(&self) -> String {
        if self.group.is_empty() { self.kind.clone() } else { format!("{}.{}", self.kind, self.group) }
    }
    /// `v1`, `example.test/v1`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }
    /// True for kinds that came with a CustomResourceDefinition.
    pub fn is_custom(&self) -> bool {
        self.schema.is_some()
    }
    /// True for pods.
    pub fn is_pod(&self) -> bool {
        self.group.is_empty() && self.plural == "pods"
    }
    /// True for namespaces.
    pub fn is_namespace(&self) -> bool {
        self.group.is_empty() && self.plural == "namespaces"
    }
    /// True for resource quotas.
    pub fn is_quota(&self) -> bool {
        self.group.is_empty() && self.plural == "resourcequotas"
    }
    /// True for CustomResourceDefinitions.
    pub fn is_crd(&self) -> bool {
        self.group == "apiextensions.k8s.io" && self.plural == "customresourcedefinitions"
    }
}

/// group, version, plural, kind, namespaced, status subresource, generation.
type Row = (&'static str, &'static str, &'static str, &'static str, bool, bool, bool);

const ROWS: &[Row] = &[
    ("", "v1", "configmaps", "ConfigMap", true, false, false),
    ("", "v1", "events", "Event", true, false, false),
    ("", "v1", "limitranges", "LimitRange", true, false, false),
    ("", "v1", "namespaces", "Namespace", false, true, false),
    ("", "v1", "nodes", "Node", false, true, false),
    ("", "v1", "pods", "Pod", true, true, true),
    ("", "v1", "resourcequotas", "ResourceQuota", true, true, false),
    ("", "v1", "secrets", "Secret", true, false, false),
    ("", "v1", "serviceaccounts", "ServiceAccount", true, false, false),
    ("", "v1", "services", "Service", true, true, false),
    (
        "admissionregistration.k8s.io",
        "v1",
        "validatingadmissionpolicies",
        "ValidatingAdmissionPolicy",
        false,
        true,
        true,
    ),
    (
        "admissionregistration.k8s.io",
        "v1",
        "validatingadmissionpolicybindings",
        "ValidatingAdmissionPolicyBinding",
        false,
        false,
        true,
    ),
    ("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", false, true, true),
    ("coordination.k8s.io", "v1", "leases", "Lease", true, false, false),
    ("events.k8s.io", "v1", "events", "Event", true, false, false),
    ("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", true, true, true),
    ("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", false, false, true),
];

/// The built-in kinds.
pub fn builtin() -> Vec<Resource> {
    ROWS.iter()
        .map(|&(group, version, plural, kind, namespaced, status, generation)| Resource {
            group: group.to_owned(),
            version: version.to_owned(),
            plural: plural.to_owned(),
            kind: kind.to_owned(),
            list_kind: format!("{kind}List"),
            namespaced,
            status,
            generation,
            schema: None,
            since: 0,
        })
        .collect()
}

/// The resource that a CustomResourceDefinition describes: its storage version.
pub fn from_crd(crd: &Value, since: u64) -> Option<Resource> {
    let spec = crd.get("spec")?;
    let text = |pointer: &str| spec.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    let versions = spec.get("versions")?.as_array()?;
    let stored = |version: &&Value| version.get("storage").and_then(Value::as_bool) == Some(true);
    let version = versions.iter().find(stored).or_else(|| versions.first())?;
    let kind = text("/names/kind")?;
    let empty = Value::Object(serde_json::Map::new());
    let schema = version.pointer("/schema/openAPIV3Schema").unwrap_or(&empty);
    Some(Resource {
        group: text("/group")?,
        version: version.get("name")?.as_str()?.to_owned(),
        plural: text("/names/plural")?,
        list_kind: text("/names/listKind").unwrap_or_else(|| format!("{kind}List")),
        kind,
        namespaced: text("/scope").as_deref() != Some("Cluster"),
        status: version.pointer("/subresources/status").is_some(),
        generation: true,
        schema: Some(Arc::new(super::schema::Schema::new(schema.clone()))),
        since,
    })
}
