//! The shape of both custom resources, for their CRDs only: nothing is ever read through these types, because one
//! object that does not fit would fail a whole LIST (R25).
#![allow(dead_code, missing_docs)]

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use std::collections::BTreeMap;

/// A group of VMs: one main agent, its sub-agents, and toolboxes beside them.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct CocoonSet {
    /// What is wanted.
    spec: Option<SetSpec>,
    /// What is.
    status: Option<SetStatus>,
}

/// A request to put the VM of one pod to sleep, or to wake it.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct CocoonHibernation {
    /// What is wanted.
    spec: Option<HibernationSpec>,
    /// What is.
    status: Option<HibernationStatus>,
}

#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": RELEASE_RULE,
        "message": "hibernatePolicy=release requires agent.replicas=0 and no toolboxes",
    },
    {
        "rule": CLASS_RULE,
        "message": "snapshotCompatibilityClass is immutable once set",
    },
]))]
struct SetSpec {
    /// Hibernates every VM of the set while true, and wakes them when it no longer is.
    suspend: Option<bool>,
    /// Which VMs leave a snapshot tagged `latest` when their pod is deleted, and which of those tags outlive the set.
    #[schemars(extend("default" = "always"))]
    snapshot_policy: Option<SnapshotPolicy>,
    /// What becomes of the pods of a suspended set: `retain` keeps them and their seats, `release` deletes them once
    /// their snapshots are verified.
    #[schemars(extend("default" = "retain"))]
    hibernate_policy: Option<HibernatePolicy>,
    /// The pool of nodes that every pod of the set is bound for.
    #[schemars(extend("default" = "default"))]
    node_pool: Option<String>,
    /// Restricts the set to nodes whose CPUs can restore one another's snapshots. Cannot change once set.
    #[schemars(length(max = 63), regex(pattern = r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$"))]
    snapshot_compatibility_class: Option<String>,
    /// The node that the main agent has to be on; a change moves it there with its state.
    node_name: Option<String>,
    /// The main agent and its sub-agents.
    agent: AgentSpec,
    /// VMs beside the agents, by name.
    toolboxes: Option<Vec<ToolboxSpec>>,
}

#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
struct AgentSpec {
    /// The image of the VM: a snapshot repository for mode `clone`, an OCI image or cloud image URL for mode `run`.
    #[schemars(length(min = 1))]
    image: String,
    /// How many sub-agents there are beside the one main agent.
    #[schemars(range(min = 0), extend("default" = 0))]
    replicas: Option<i32>,
    /// Whether VMs are cloned from a snapshot or booted cold.
    #[schemars(extend("default" = "clone"))]
    mode: Option<AgentMode>,
    /// Sources of environment variables for the pod's container.
    env_from: Option<Vec<EnvFromSource>>,
    /// The service account of the pods; the namespace's default where empty.
    service_account_name: Option<String>,
    #[serde(flatten)]
    vm: VmOptions,
}

#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ToolboxSpec {
    /// The toolbox's name, last part of the names of its pod and VM. Must not be a number.
    #[schemars(length(min = 1), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    name: String,
    /// The image of the VM; none for a static toolbox.
    image: Option<String>,
    /// Whether the VM is booted cold, cloned from a snapshot, or managed elsewhere.
    #[schemars(extend("default" = "run"))]
    mode: Option<ToolboxMode>,
    /// Address of a static toolbox.
    #[serde(rename = "staticIP")]
    static_ip: Option<String>,
    /// VM id of a static toolbox.
    #[serde(rename = "staticVMID")]
    static_vm_id: Option<String>,
    /// VNC port of a static toolbox; 0 for none.
    #[schemars(range(min = 0, max = 65535))]
    vnc_port: Option<i32>,
    #[serde(flatten)]
    vm: VmOptions,
}

#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
struct VmOptions {
    /// Family of the guest's operating system.
    #[schemars(extend("default" = "linux"))]
    os: Option<Os>,
    /// The hypervisor. Firecracker boots Linux from OCI images only.
    #[schemars(extend("default" = "cloud-hypervisor"))]
    backend: Option<Backend>,
    /// How one connects to the VM, where that does not follow from the guest.
    conn_type: Option<ConnType>,
    /// Name of the network that the VM is attached to.
    network: Option<String>,
    /// Fetches the image anew instead of taking it from the node's cache.
    force_pull: Option<bool>,
    /// Lets writable disks go through the host's page cache. Cloud Hypervisor only.
    #[serde(rename = "noDirectIO")]
    no_direct_io: Option<bool>,
    /// TCP port whose answer makes the VM ready; 0 probes by ICMP.
    #[schemars(range(min = 0, max = 65535))]
    probe_port: Option<i32>,
    /// Size of the root volume.
    storage: Option<Quantity>,
    /// Compute resources of the pod's container.
    resources: Option<Resources>,
}

#[derive(JsonSchema)]
struct Resources {
    /// The most that may be used, by resource.
    limits: Option<Quantities>,
    /// What the scheduler sets aside, by resource; the limit where absent.
    requests: Option<Quantities>,
    /// Names of resource claims of the pod that the container uses.
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    claims: Option<Vec<ResourceClaim>>,
}

#[derive(JsonSchema)]
struct ResourceClaim {
    /// Name of the claim in the pod.
    name: String,
    /// One request within the claim; all of them where empty.
    request: Option<String>,
}

#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
struct EnvFromSource {
    /// Put before the name of each variable.
    prefix: Option<String>,
    /// A ConfigMap whose entries become variables.
    config_map_ref: Option<EnvSourceRef>,
    /// A Secret whose entries become variables.
    secret_ref: Option<EnvSourceRef>,
}

#[derive(JsonSchema)]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
struct EnvSourceRef {
    /// Name of the object.
    #[schemars(extend("default" = ""))]
    name: Option<String>,
    /// Whether the pod may start without it.
    optional: Option<bool>,
}

#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
struct SetStatus {
    /// Generation of the spec at the last write.
    observed_generation: Option<i64>,
    /// Where the set stands.
    phase: Option<SetPhase>,
    /// Agents that are ready, the main agent included.
    ready_agents: Option<i32>,
    /// Agents that are wanted: the main agent and the replicas.
    desired_agents: Option<i32>,
    /// Toolboxes that are ready.
    ready_toolboxes: Option<i32>,
    /// Toolboxes that are wanted.
    desired_toolboxes: Option<i32>,
    /// Sub-agents that there are, ready or not.
    sub_agents: Option<i32>,
    /// The label selector of the pods of the sub-agents.
    selector: Option<String>,
    /// The agents, main agent first.
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["slot"]))]
    agents: Option<Vec<AgentStatus>>,
    /// The toolboxes.
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    toolboxes: Option<Vec<ToolboxStatus>>,
    /// Ready, Progressing, Suspended and Degraded.
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    conditions: Option<Vec<Condition>>,
}

#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
struct AgentStatus {
    /// 0 for the main agent, 1 and above for sub-agents.
    slot: i32,
    /// `main` or `sub-agent`.
    role: String,
    /// Name of the pod.
    pod_name: Option<String>,
    /// Name of the VM, and of its repository in the registry.
    vm_name: Option<String>,
    /// The node agent's id of the VM.
    #[serde(rename = "vmID")]
    vm_id: Option<String>,
    /// Address of the VM.
    ip: Option<String>,
    /// Phase of the pod.
    phase: Option<String>,
    /// The VM that a sub-agent is a fork of.
    forked_from: Option<String>,
    /// The node that the VM is on, or was on last.
    node_name: Option<String>,
}

#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ToolboxStatus {
    /// The toolbox's name in the spec.
    name: String,
    /// Name of the pod.
    pod_name: Option<String>,
    /// Name of the VM, and of its repository in the registry.
    vm_name: Option<String>,
    /// The node agent's id of the VM.
    #[serde(rename = "vmID")]
    vm_id: Option<String>,
    /// Address of the VM.
    ip: Option<String>,
    /// Phase of the pod.
    phase: Option<String>,
    /// How one connects to the VM.
    conn_type: Option<ConnType>,
    /// VNC port of the VM, where it has one.
    vnc_port: Option<i32>,
    /// The node that the VM is on, or was on last.
    node_name: Option<String>,
}

#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Condition {
    /// What the condition is about.
    #[schemars(
        length(max = 316),
        regex(
            pattern = CONDITION_TYPE
        )
    )]
    r#type: String,
    /// Whether it holds.
    status: ConditionStatus,
    /// Generation of the spec it was judged at.
    #[schemars(range(min = 0))]
    observed_generation: Option<i64>,
    /// When the status last changed.
    #[schemars(extend("format" = "date-time"))]
    last_transition_time: String,
    /// Why, in one word.
    #[schemars(length(min = 1, max = 1024), regex(pattern = r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"))]
    reason: String,
    /// Why, for people.
    #[schemars(length(max = 32768))]
    message: String,
}

#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
struct HibernationSpec {
    /// The pod whose VM is meant, in the same namespace.
    #[schemars(extend("x-kubernetes-validations" = [
        { "rule": "self == oldSelf", "message": "spec.podRef is immutable" },
    ]))]
    pod_ref: PodRef,
    /// Whether the VM is to sleep or to run.
    desire: Desire,
}

#[derive(JsonSchema)]
struct PodRef {
    /// Name of the pod.
    #[schemars(length(min = 1))]
    name: String,
}

#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
struct HibernationStatus {
    /// Generation of the spec at the last write.
    observed_generation: Option<i64>,
    /// Where the request stands.
    phase: Option<HibernationPhase>,
    /// Name of the pod's VM when the phase last moved.
    vm_name: Option<String>,
    /// Ready: whether the request is fulfilled.
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    conditions: Option<Vec<Condition>>,
}

type Quantities = BTreeMap<String, Quantity>;

struct Quantity;

impl JsonSchema for Quantity {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Quantity".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [{ "type": "integer" }, { "type": "string" }],
            "pattern": QUANTITY,
            "x-kubernetes-int-or-string": true,
        })
    }
}

macro_rules! word_schemas {
    ($( $name:ident { $($variant:ident = $text:literal),+ } )+) => { $(
        #[derive(JsonSchema)]
        enum $name { $( #[serde(rename = $text)] $variant ),+ }
    )+ };
}

word_schemas! {
    AgentMode { Clone = "clone", Run = "run" }
    ToolboxMode { Run = "run", Clone = "clone", Static = "static" }
    Os { Linux = "linux", Windows = "windows", Android = "android", Macos = "macos" }
    Backend { CloudHypervisor = "cloud-hypervisor", Firecracker = "firecracker" }
    SnapshotPolicy { Always = "always", MainOnly = "main-only", Never = "never" }
    HibernatePolicy { Retain = "retain", Release = "release" }
    ConnType { Ssh = "ssh", Rdp = "rdp", Vnc = "vnc", Adb = "adb" }
    Desire { Hibernate = "Hibernate", Wake = "Wake" }
    ConditionStatus { True = "True", False = "False", Unknown = "Unknown" }
    SetPhase {
        Pending = "Pending", Running = "Running", Scaling = "Scaling", Suspending = "Suspending",
        Suspended = "Suspended", Waking = "Waking", Migrating = "Migrating", Failed = "Failed"
    }
    HibernationPhase {
        Pending = "Pending", Hibernating = "Hibernating", Hibernated = "Hibernated", Waking = "Waking",
        Active = "Active", Failed = "Failed"
    }
}

const RELEASE_RULE: &str = "!has(self.hibernatePolicy) || self.hibernatePolicy != 'release' || \
    ((!has(self.agent.replicas) || self.agent.replicas == 0) && (!has(self.toolboxes) || size(self.toolboxes) == 0))";
const CLASS_RULE: &str = "!has(oldSelf.snapshotCompatibilityClass) || (has(self.snapshotCompatibilityClass) && \
    self.snapshotCompatibilityClass == oldSelf.snapshotCompatibilityClass)";
const CONDITION_TYPE: &str = concat!(
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?",
    r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
);
const QUANTITY: &str = concat!(
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))",
    r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$",
);
