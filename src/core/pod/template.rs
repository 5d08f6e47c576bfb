//! The fields of a pod that are ours, made from a spec.

use super::field::Field;
use crate::core::api::cocoonset::{AgentSpec, Resources, SetSpec, Toolbox, VmOptions};
use crate::core::api::quantity::Quantity;
use crate::core::api::words::{AgentMode, ToolboxMode};
use crate::core::contract::names::{NodeName, Role, VmName};
use crate::core::contract::vm_runtime::VmRuntime;
use crate::core::contract::vm_spec::VmSpec;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::fmt;

/// The set a pod belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity<'a> {
    /// Namespace of set and pod.
    pub namespace: &'a str,
    /// Name of the set.
    pub set: &'a str,
    /// Uid of the set.
    pub uid: &'a str,
    /// Generation of the set, stamped on the pod.
    pub generation: i64,
}

/// How the VM comes up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Boot {
    /// From its image, or as a fork.
    #[default]
    Fresh,
    /// From the `hibernate` snapshot in the registry.
    Restore,
}

/// Where the pod may go, as far as we say. Placement never drifts.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Placement {
    /// Wherever the pool allows.
    #[default]
    Anywhere,
    /// On this node only, by the scheduler's own choice: capacity and cordons count (D-44).
    Required(NodeName),
    /// There if possible.
    Preferred(NodeName),
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Anywhere => f.write_str("any node"),
            Self::Required(node) => write!(f, "node {node}"),
            Self::Preferred(node) => write!(f, "any node, best {node}"),
        }
    }
}

/// Exactly the fields we own. Made from a spec or read off a pod, and compared as one kind of thing.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct PodTemplate {
    /// What the pod is to its set.
    pub role: Role,
    /// The annotation tuple.
    pub vm: VmSpec,
    /// Static toolboxes: the VM that is managed elsewhere.
    pub fixed: Option<VmRuntime>,
    /// Fresh or restored.
    pub boot: Boot,
    /// Container resources, without the ephemeral storage that `vm.storage` stands for.
    pub resources: Resources,
    /// Agents: environment sources, normalised.
    pub env_from: Vec<Value>,
    /// Agents: service account, where it is another than `default`.
    pub service_account: Option<String>,
    /// Pool.
    pub pool: String,
    /// Snapshot compatibility class.
    pub compat_class: Option<String>,
    /// Affinity.
    pub placement: Placement,
    /// Fields whose values here are what we asked for, not what admission left of it (D-19).
    pub stated: BTreeSet<Field>,
}

/// The main agent's pod. `hint` is where a released main agent was: preferred, unless the spec pins it elsewhere.
pub fn wanted_main(spec: &SetSpec, id: &Identity<'_>, boot: Boot, hint: Option<&NodeName>) -> PodTemplate {
    let placement = match (&spec.node_name, hint) {
        (Some(pinned), _) => Placement::Required(pinned.as_str().into()),
        (None, Some(hint)) if !hint.is_empty() => Placement::Preferred(hint.clone()),
        (None, _) => Placement::Anywhere,
    };
    agent(spec, id, Role::Main, boot, placement, None)
}

/// The pod of a sub-agent: a fork of the main agent's VM, and on its node, where that VM can be forked (D-44).
pub fn wanted_sub_agent(
    spec: &SetSpec,
    id: &Identity<'_>,
    slot: u32,
    main_vm: &VmName,
    main_node: Option<&NodeName>,
    boot: Boot,
) -> PodTemplate {
    let placement = match main_node {
        Some(node) if !node.is_empty() => Placement::Required(node.clone()),
        Some(_) | None => Placement::Anywhere,
    };
    let fork = Some(main_vm.clone()).filter(|vm| !vm.is_empty());
    agent(spec, id, Role::SubAgent(slot), boot, placement, fork)
}

/// The pod of a toolbox.
pub fn wanted_toolbox(spec: &SetSpec, id: &Identity<'_>, toolbox: &Toolbox, boot: Boot) -> PodTemplate {
    let role = Role::Toolbox(toolbox.name.clone());
    let fixed = (!toolbox.is_managed()).then(|| VmRuntime {
        id: toolbox.static_vm_id.clone(),
        ip: toolbox.static_ip.clone(),
        vnc_port: toolbox.vnc_port,
    });
    let vm = VmSpec {
        image: toolbox.image.clone(),
        mode: toolbox.mode.clone(),
        managed: toolbox.is_managed(),
        ..vm_spec(spec, id, &role, &toolbox.vm)
    };
    let boot = if toolbox.is_managed() { boot } else { Boot::Fresh };
    stating_all(PodTemplate { fixed, boot, ..base(spec, role, vm, &toolbox.vm) })
}

fn agent(
    spec: &SetSpec,
    id: &Identity<'_>,
    role: Role,
    boot: Boot,
    placement: Placement,
    fork_from: Option<VmName>,
) -> PodTemplate {
    let AgentSpec { image, mode, env_from, service_account, vm: options, .. } = &spec.agent;
    let mode = match mode {
        AgentMode::Clone => ToolboxMode::Clone,
        AgentMode::Run => ToolboxMode::Run,
        AgentMode::Unknown(word) => ToolboxMode::Unknown(word.clone()),
    };
    let vm = VmSpec { image: image.clone(), mode, managed: true, fork_from, ..vm_spec(spec, id, &role, options) };
    stating_all(PodTemplate {
        boot,
        env_from: env_from.iter().map(env_source).collect(),
        service_account: service_account.clone().filter(|account| account != DEFAULT_ACCOUNT),
        placement,
        ..base(spec, role, vm, options)
    })
}

fn vm_spec(spec: &SetSpec, id: &Identity<'_>, role: &Role, options: &VmOptions) -> VmSpec {
    VmSpec {
        name: role.vm_name(id.namespace, id.set).unwrap_or_default(),
        os: options.os.clone(),
        backend: options.backend.clone(),
        snapshot_policy: spec.snapshot_policy.clone(),
        storage: options.storage.clone(),
        network: options.network.clone(),
        conn_type: options.conn_type.clone(),
        probe_port: options.probe_port,
        force_pull: options.force_pull,
        no_direct_io: options.no_direct_io,
        ..VmSpec::default()
    }
}

fn base(spec: &SetSpec, role: Role, vm: VmSpec, options: &VmOptions) -> PodTemplate {
    let mut resources = options.resources.clone();
    if has_storage(&vm) {
        resources.limits.remove(EPHEMERAL);
        resources.requests.remove(EPHEMERAL);
    }
    PodTemplate {
        role,
        vm,
        fixed: None,
        boot: Boot::Fresh,
        resources,
        env_from: Vec::new(),
        service_account: None,
        pool: spec.node_pool.clone(),
        compat_class: spec.compat_class.clone(),
        placement: Placement::Anywhere,
        stated: BTreeSet::new(),
    }
}

/// Made from a spec, a template is what we ask for in each of its fields.
fn stating_all(mut template: PodTemplate) -> PodTemplate {
    template.stated = Field::of(&template);
    template
}

/// The resource that stands for the root volume.
pub(super) const EPHEMERAL: &str = "ephemeral-storage";
/// The service account that the API server gives to pods that name none.
pub(super) const DEFAULT_ACCOUNT: &str = "default";

/// True where the root volume's size becomes ephemeral storage (contract 6).
pub(super) fn has_storage(vm: &VmSpec) -> bool {
    vm.storage.as_ref().is_some_and(|storage: &Quantity| !storage.is_zero())
}

/// One environment source, with the fields that the API knows and as a Go client writes them: what is empty is left
/// out, for absent means the same.
pub(super) fn env_source(source: &Value) -> Value {
    let mut fields = Map::new();
    let prefix = source.get("prefix").filter(|prefix| prefix.as_str().is_some_and(|text| !text.is_empty()));
    fields.extend(prefix.map(|prefix| ("prefix".to_owned(), prefix.clone())));
    for key in ["configMapRef", "secretRef"] {
        let Some(Value::Object(reference)) = source.get(key) else { continue };
        let name = reference.get("name").filter(|name| name.as_str().is_some_and(|text| !text.is_empty()));
        let optional = reference.get("optional").filter(|optional| optional.is_boolean());
        let kept = [("name", name), ("optional", optional)];
        let kept = kept.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?.clone())));
        fields.insert(key.to_owned(), Value::Object(kept.collect()));
    }
    Value::Object(fields)
}
