//! `given`: the cluster as a story finds it, written as users write it or shorter.

use super::words::{Span, quantity_map};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The cluster as the story finds it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Given {
    /// Namespace of everything that names none.
    #[serde(default = "default_namespace")]
    pub namespace: String,
    /// The set that the story is about.
    #[serde(default)]
    pub set: Option<SetGiven>,
    /// Further sets.
    #[serde(default)]
    pub sets: Vec<SetGiven>,
    /// Pods that exist already, each as the operator would have made it, in some state. By pod name.
    #[serde(default)]
    pub pods: BTreeMap<String, PodGiven>,
    /// Nodes by name. Without it: `node-a` and `node-b` of pool `default`.
    #[serde(default)]
    pub nodes: Option<BTreeMap<String, NodeGiven>>,
    /// Hard limits of a ResourceQuota in the namespace, e.g. `pods: 3`.
    #[serde(default, deserialize_with = "quantity_map")]
    #[schemars(with = "BTreeMap<String, Value>")]
    pub quota: BTreeMap<String, String>,
    /// Tags in the registry, as `vm:tag`, or as `tag` of all VMs' names in `{vm: [tags]}`.
    #[serde(default)]
    pub tags: Vec<String>,
    /// How cluster and operator are set up.
    #[serde(default)]
    pub settings: SettingsGiven,
    /// Any further object, as `kubectl apply` takes it.
    #[serde(default)]
    pub objects: Vec<Value>,
    /// The operator has brought everything up before the story begins; that part is not told.
    #[serde(default)]
    pub settled: bool,
}

fn default_namespace() -> String {
    "default".to_owned()
}

/// How cluster and operator are set up.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct SettingsGiven {
    /// The operator may watch namespaces.
    pub watch_namespaces: bool,
    /// The operator may watch nodes.
    pub watch_nodes: bool,
    /// Namespace deletion as of Kubernetes 1.33: the pods first, everything else once they are gone.
    pub ordered_namespace_deletion: bool,
    /// The CocoonSet CRD is an older one, which prunes `nodeName` from the entries of the status, and what scaling shows.
    pub older_crd: bool,
    /// The CocoonSet CRD takes anything for a spec, as somebody may have loosened it.
    pub loose_crd: bool,
    /// The operators elect a leader, under a lease of 15 s; without it each of them leads.
    pub leader_election: bool,
    /// The operators' own namespace, in which the lease lies, is there.
    pub operator_namespace: bool,
    /// What admission merges into every pod that is created: a strategic merge patch, as a webhook or a limit range
    /// has it.
    pub admission_adds: Value,
    /// Annotations that admission takes off whatever is patched, by key: a webhook that knows better.
    pub admission_strips: Vec<String>,
}

impl Default for SettingsGiven {
    fn default() -> Self {
        Self {
            watch_namespaces: true,
            watch_nodes: true,
            ordered_namespace_deletion: true,
            older_crd: false,
            loose_crd: false,
            leader_election: false,
            operator_namespace: true,
            admission_adds: Value::Null,
            admission_strips: Vec::new(),
        }
    }
}

/// A node that runs VMs.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct NodeGiven {
    /// Its pool; `default` without.
    pub pool: Option<String>,
    /// How many pods fit.
    pub pods: Option<u32>,
    /// How long a VM takes to boot.
    pub boot: Option<Span>,
    /// How long a pod takes to terminate.
    pub terminate: Option<Span>,
    /// How long the push of a snapshot takes.
    pub push: Option<Span>,
}

/// A pod that exists already.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct PodGiven {
    /// The set it belongs to; the story's first without.
    pub of: Option<String>,
    /// Where it runs; `node-a` without. The empty text: not bound.
    pub node: Option<String>,
    /// Its VM runs and is `ready`.
    pub ready: bool,
    /// Its VM has `failed`, with these words.
    pub failed: Option<String>,
    /// Annotations on top; null takes one away.
    pub annotations: BTreeMap<String, Option<String>>,
    /// Labels on top; null takes one away.
    pub labels: BTreeMap<String, Option<String>>,
    /// Finalizers.
    pub finalizers: Vec<String>,
    /// Owned by nobody, or by something else: `none`, or `KIND/NAME`.
    pub owner: Option<String>,
}

/// A set: its name, or `{set: NAME, …}` with fields of the spec in short, or the whole object as users write it.
#[derive(Clone, Debug)]
pub struct SetGiven {
    /// The object to create.
    pub object: Value,
    /// Status to begin with.
    pub status: Option<Value>,
}

/// A set in short.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(rename = "SetShort")]
struct Short {
    /// Its name.
    set: String,
    /// Its namespace, if not the story's.
    namespace: Option<String>,
    /// Number of sub-agents.
    replicas: Option<Value>,
    /// The agents' image.
    image: Option<String>,
    /// Further fields of `spec.agent`.
    #[serde(default)]
    agent: Map<String, Value>,
    /// Toolboxes: names, or objects as in the spec.
    #[serde(default)]
    toolboxes: Vec<Value>,
    /// Further fields of `spec`.
    #[serde(default)]
    spec: Map<String, Value>,
    /// Annotations.
    #[serde(default)]
    annotations: Map<String, Value>,
    /// Labels.
    #[serde(default)]
    labels: Map<String, Value>,
    /// Finalizers that it bears already.
    #[serde(default)]
    finalizers: Vec<String>,
    /// The status that it has already.
    #[serde(default)]
    status: Option<Value>,
}

/// The image that agents and toolboxes have where a story names none.
pub const IMAGE: &str = "ghcr.io/cocoonstack/cocoon/ubuntu:24.04";

impl<'de> Deserialize<'de> for SetGiven {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::Error;
        let value = Value::deserialize(deserializer)?;
        Self::of(value).map_err(D::Error::custom)
    }
}

impl SetGiven {
    /// Reads any of the three forms.
    pub fn of(value: Value) -> Result<Self, String> {
        match value {
            Value::String(name) => Self::of(json!({ "set": name })),
            Value::Object(ref fields) if fields.contains_key("kind") => {
                let status = fields.get("status").cloned();
                Ok(Self { object: value, status })
            }
            Value::Object(_) => {
                let short: Short = serde_json::from_value(value).map_err(|error| format!("a set: {error}"))?;
                Ok(short.whole())
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
                Err("a set: its name, {set: NAME, …} or a whole CocoonSet is expected".to_owned())
            }
        }
    }
}

impl Short {
    fn whole(self) -> SetGiven {
        let mut agent = self.agent;
        agent.entry("image").or_insert_with(|| json!(self.image.as_deref().unwrap_or(IMAGE)));
        if let Some(replicas) = self.replicas {
            agent.insert("replicas".to_owned(), replicas);
        }
        let mut spec = self.spec;
        spec.insert("agent".to_owned(), Value::Object(agent));
        if !self.toolboxes.is_empty() {
            let toolboxes: Vec<Value> = self.toolboxes.into_iter().map(toolbox).collect();
            spec.insert("toolboxes".to_owned(), Value::Array(toolboxes));
        }
        let mut metadata = Map::new();
        metadata.insert("name".to_owned(), json!(self.set));
        metadata.extend(self.namespace.map(|namespace| ("namespace".to_owned(), json!(namespace))));
        for (key, map) in [("annotations", self.annotations), ("labels", self.labels)] {
            if !map.is_empty() {
                metadata.insert(key.to_owned(), Value::Object(map));
            }
        }
        if !self.finalizers.is_empty() {
            metadata.insert("finalizers".to_owned(), json!(self.finalizers));
        }
        let object = json!({
            "apiVersion": crate::core::contract::keys::API_VERSION,
            "kind": crate::core::contract::keys::SET_KIND,
            "metadata": metadata,
            "spec": spec,
        });
        SetGiven { object, status: self.status }
    }
}

/// A toolbox by its name alone is a managed one of the usual image.
fn toolbox(value: Value) -> Value {
    match value {
        Value::String(name) => json!({ "name": name, "image": IMAGE }),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value,
    }
}

impl JsonSchema for SetGiven {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "SetGiven".into()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let short = generator.subschema_for::<Short>();
        schemars::json_schema!({
            "description": "A set: its name, or {set: NAME, …} with fields of the spec in short, or a whole CocoonSet.",
            "anyOf": [
                { "type": "string" },
                short,
                { "type": "object", "required": ["kind", "metadata"] },
            ],
        })
    }
}
