//! The table of resources: the built-in kinds, and what a CustomResourceDefinition adds.

use serde_json::{Value, json};
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
    /// The word for one of them.
    pub singular: String,
    /// Abbreviations.
    pub short_names: Vec<String>,
    /// Groups of resources that it belongs to, such as `all`.
    pub categories: Vec<String>,
    /// What a custom resource is listed with, beside its name.
    pub columns: Vec<Column>,
    /// Where a custom resource keeps what `/scale` shows; none without that subresource.
    pub scale: Option<ScalePaths>,
    /// The version at which this resource began to be served: a watch cannot start before it.
    pub since: u64,
    /// Whether it is served in this version. Built-in kinds are.
    pub served: bool,
    /// The other versions in which it is served; what is stored is stored in this one.
    pub others: Vec<Arc<Resource>>,
    /// Fields of a custom resource by which it may be selected, as in `spec.color`.
    pub selectable: Vec<String>,
}

/// One of `additionalPrinterColumns`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its heading.
    pub name: String,
    /// `string`, `integer`, `number`, `boolean` or `date`.
    pub kind: String,
    /// A JSONPath into the object.
    pub path: String,
    /// Above 0: shown in wide tables only.
    pub priority: i64,
    /// What it says.
    pub description: String,
}

/// The paths of the scale subresource, in dots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScalePaths {
    /// The wanted number.
    pub spec: String,
    /// The number there is.
    pub status: String,
    /// A label selector as text; empty where there is none.
    pub selector: String,
}

impl ScalePaths {
    fn of(raw: &Value) -> Option<Self> {
        let text = |key: &str| raw.get(key).and_then(Value::as_str).map(str::to_owned);
        Some(Self {
            spec: text("specReplicasPath")?,
            status: text("statusReplicasPath")?,
            selector: text("labelSelectorPath").unwrap_or_default(),
        })
    }
}

/// The columns of a version; a resource without any is listed with its age.
fn columns(version: &Value) -> Vec<Column> {
    let listed = version.get("additionalPrinterColumns").and_then(Value::as_array);
    let read = |raw: &Value| {
        let text = |key: &str| raw.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let path = text("jsonPath");
        let description = match text("description") {
            none if none.is_empty() => format!("Custom resource definition column (in JSONPath format): {path}"),
            said => said,
        };
        let priority = raw.get("priority").and_then(Value::as_i64).unwrap_or(0);
        Column { name: text("name"), kind: text("type"), path, priority, description }
    };
    let columns: Vec<Column> = listed.into_iter().flatten().map(read).collect();
    if columns.is_empty() {
        vec![read(&json!({"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}))]
    } else {
        columns
    }
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
    /// The versions in which it is served.
    pub fn served_versions(&self) -> impl Iterator<Item = &Resource> {
        self.served.then_some(self).into_iter().chain(self.others.iter().map(Arc::as_ref))
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
    /// True for nodes.
    pub fn is_node(&self) -> bool {
        self.group.is_empty() && self.plural == "nodes"
    }
    /// True for kinds that a PUT creates where there is nothing yet.
    pub fn is_created_by_put(&self) -> bool {
        matches!(self.plural.as_str(), "leases" | "events") && !self.is_custom()
    }
    /// True for kinds that are not overwritten without saying which version is meant.
    pub fn insists_on_version(&self) -> bool {
        const OTHERS: [&str; 5] = [
            "leases",
            "poddisruptionbudgets",
            CRDS,
            "validatingadmissionpolicies",
            "validatingadmissionpolicybindings",
        ];
        self.is_custom() || OTHERS.contains(&self.plural.as_str())
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

/// One built-in kind: group, version, plural, kind, namespaced, status subresource, generation, short names.
type Row = (&'static str, &'static str, &'static str, &'static str, bool, bool, bool, &'static [&'static str]);

const ADMISSION: &str = "admissionregistration.k8s.io";
const CRDS: &str = "customresourcedefinitions";

const ROWS: &[Row] = &[
    ("", "v1", "configmaps", "ConfigMap", true, false, false, &["cm"]),
    ("", "v1", "events", "Event", true, false, false, &["ev"]),
    ("", "v1", "limitranges", "LimitRange", true, false, false, &["limits"]),
    ("", "v1", "namespaces", "Namespace", false, true, false, &["ns"]),
    ("", "v1", "nodes", "Node", false, true, false, &["no"]),
    ("", "v1", "pods", "Pod", true, true, true, &["po"]),
    ("", "v1", "resourcequotas", "ResourceQuota", true, true, false, &["quota"]),
    ("", "v1", "secrets", "Secret", true, false, false, &[]),
    ("", "v1", "serviceaccounts", "ServiceAccount", true, false, false, &["sa"]),
    ("", "v1", "services", "Service", true, true, false, &["svc"]),
    (ADMISSION, "v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy", false, true, true, &[]),
    (ADMISSION, "v1", "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", false, false, true, &[]),
    ("apiextensions.k8s.io", "v1", CRDS, "CustomResourceDefinition", false, true, true, &["crd", "crds"]),
    ("coordination.k8s.io", "v1", "leases", "Lease", true, false, false, &[]),
    ("events.k8s.io", "v1", "events", "Event", true, false, false, &["ev"]),
    ("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", true, true, true, &["pdb"]),
    ("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", false, false, true, &["pc"]),
];

/// The built-in kinds.
pub fn builtin() -> Vec<Resource> {
    ROWS.iter()
        .map(|&(group, version, plural, kind, namespaced, status, generation, short)| Resource {
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
            singular: kind.to_lowercase(),
            short_names: short.iter().map(|name| (*name).to_owned()).collect(),
            categories: categories(plural),
            columns: Vec::new(),
            scale: None,
            served: true,
            others: Vec::new(),
            selectable: Vec::new(),
        })
        .collect()
}

/// What `kubectl get all` shows, of what is served.
fn categories(plural: &str) -> Vec<String> {
    match plural {
        "pods" | "services" => vec!["all".to_owned()],
        "customresourcedefinitions" | "validatingadmissionpolicies" | "validatingadmissionpolicybindings" => {
            vec!["api-extensions".to_owned()]
        }
        _ => Vec::new(),
    }
}

/// The resource that a CustomResourceDefinition describes: its storage version, with the other versions served.
pub fn from_crd(crd: &Value, since: u64) -> Option<Resource> {
    let spec = crd.get("spec")?;
    let versions = spec.get("versions")?.as_array()?;
    let is = |version: &Value, what: &str| version.get(what).and_then(Value::as_bool) == Some(true);
    let stored = versions.iter().find(|version| is(version, "storage")).or_else(|| versions.first())?;
    let others = versions.iter().filter(|version| is(version, "served") && version.get("name") != stored.get("name"));
    let others = others.filter_map(|version| in_version(spec, version, since)).map(Arc::new).collect();
    Some(Resource { others, ..in_version(spec, stored, since)? })
}

/// One version of what a CustomResourceDefinition describes.
fn in_version(spec: &Value, version: &Value, since: u64) -> Option<Resource> {
    let text = |pointer: &str| spec.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    let selectable = version.get("selectableFields").and_then(Value::as_array);
    let path = |field: &Value| Some(field.get("jsonPath")?.as_str()?.trim_start_matches('.').to_owned());
    let kind = text("/names/kind")?;
    let empty = Value::Object(serde_json::Map::new());
    let schema = version.pointer("/schema/openAPIV3Schema").unwrap_or(&empty);
    Some(Resource {
        group: text("/group")?,
        version: version.get("name")?.as_str()?.to_owned(),
        plural: text("/names/plural")?,
        list_kind: text("/names/listKind").unwrap_or_else(|| format!("{kind}List")),
        singular: text("/names/singular").unwrap_or_else(|| kind.to_lowercase()),
        short_names: super::objects::texts(spec.pointer("/names/shortNames")),
        categories: super::objects::texts(spec.pointer("/names/categories")),
        columns: columns(version),
        scale: version.pointer("/subresources/scale").and_then(ScalePaths::of),
        kind,
        namespaced: text("/scope").as_deref() != Some("Cluster"),
        status: version.pointer("/subresources/status").is_some(),
        generation: true,
        schema: Some(Arc::new(super::schema::Schema::new(schema.clone()))),
        since,
        served: version.get("served").and_then(Value::as_bool) == Some(true),
        others: Vec::new(),
        selectable: selectable.into_iter().flatten().filter_map(path).collect(),
    })
}
