//! `when`: the closed list of things that can happen in a story.

use super::given::{PodGiven, SetGiven};
pub use super::resource::Resource;
use super::words::{Span, quantity_map};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// One thing that happens. Time passes only in `settle` and `wait`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// Everything due is done until nothing is due within ten minutes: `- settle`.
    Settle,
    /// Time passes, and what is due in it happens: `- wait: 30s`.
    Wait(Span),
    /// A user creates sets, or replaces their spec: `- apply: {set: demo, replicas: 2}`.
    Apply(SetGiven),
    /// A user changes the spec by a merge patch: `- edit: {spec: {agent: {replicas: 3}}}`.
    Edit(Edit),
    /// Somebody deletes something: `- delete: {pod: demo-1}`.
    Delete(Delete),
    /// Somebody merges annotations or labels: `- annotate: {pod: demo-0, annotations: {a: b}}`.
    Annotate(Annotate),
    /// Somebody merge-patches any object: `- patch: {resource: pods, name: demo-0, patch: {…}}`.
    Patch(PatchStep),
    /// Somebody creates a pod, as in `given.pods`: `- create-pod: {demo-1: {owner: none}}`.
    CreatePod(BTreeMap<String, PodGiven>),
    /// Somebody creates any object, as `kubectl create` does.
    Create(Value),
    /// A node changes: `- node: {node-a: lost}`.
    Node(BTreeMap<String, NodeEvent>),
    /// A VM does something by itself: `- vm: {demo-0: gone}`.
    Vm(BTreeMap<String, VmEvent>),
    /// VMs of a pod name fail to boot so many times: `- boots-fail: {pod: demo-1, times: 3}`.
    BootsFail(BootsFail),
    /// The registry, from outside: `- registry: {put: vk-default-demo-0:hibernate}`.
    Registry(RegistryEvent),
    /// The quota of the namespace is set, or taken away if empty: `- quota: {pods: 3}`.
    #[serde(deserialize_with = "quantity_map")]
    Quota(#[schemars(with = "BTreeMap<String, Value>")] BTreeMap<String, String>),
    /// The API server refuses a kind of request from now on, or as often as said: `- refuse: {by: rbac, verb: create, resource: pods}`.
    Refuse(Refuse),
    /// It refuses nothing any more: `- allow`.
    Allow,
    /// A call of the operator meets a fault: `- fault: {verb: patch, resource: cocoonsets, answer: Conflict}`.
    Fault(Fault),
    /// Somebody else is faster: right before a call of the operator, another write is carried out:
    /// `- overtake: {verb: create, resource: pods, delete: {namespace: true}}`.
    Overtake(Box<Overtake>),
    /// The operator dies right after its nth call from now, and starts again: `- crash: {after: 3}`. All but the API
    /// server, the nodes and the registry is lost.
    Crash(Crash),
    /// What the operator sees of a kind stands still, or goes on: `- lag: {pods: true}`.
    Lag(BTreeMap<WatchedKind, bool>),
    /// A watch breaks, and lists anew once it is back: `- watch-gap: {pods: true}`, later `{pods: false}`.
    WatchGap(BTreeMap<WatchedKind, bool>),
    /// A second operator runs beside the first, or no longer: `- second-operator: true`.
    SecondOperator(bool),
    /// The operator is stopped, or started with empty memory: `- operator: false`.
    Operator(bool),
    /// The operator is killed and gives nothing back; `operator: true` starts another: `- kill`.
    Kill,
    /// The operator does not reach the API server, or does again: `- cut-off: true`.
    CutOff(bool),
    /// The operator's wall clock jumps: `- clock: -5m`.
    Clock(Span),
    /// The namespace is created, as after a deletion: `- create-namespace`.
    CreateNamespace,
}

/// A change of a set's spec.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Edit {
    /// The set; the story's first without.
    #[serde(default)]
    pub set: Option<String>,
    /// Merge patch of `spec`.
    pub spec: Value,
}

/// Something to delete: exactly one.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Delete {
    /// A set.
    pub set: Option<String>,
    /// A pod.
    pub pod: Option<String>,
    /// A node object.
    pub node: Option<String>,
    /// A CocoonHibernation.
    pub hibernation: Option<String>,
    /// The story's namespace.
    pub namespace: bool,
    /// How dependents are treated.
    pub cascade: Option<Cascade>,
    /// At once: with grace period 0.
    pub force: bool,
}

/// Treatment of dependents.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Cascade {
    /// They are collected afterwards.
    Background,
    /// They go first.
    Foreground,
    /// They stay.
    Orphan,
}

/// A merge of annotations and labels; null takes one away.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Annotate {
    /// A set; the story's first without any.
    pub set: Option<String>,
    /// A pod.
    pub pod: Option<String>,
    /// Annotations.
    pub annotations: BTreeMap<String, Option<String>>,
    /// Labels.
    pub labels: BTreeMap<String, Option<String>>,
}

/// A merge patch of any object.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PatchStep {
    /// `pods`, `nodes`, `cocoonsets`.
    pub resource: Resource,
    /// Its name.
    pub name: String,
    /// Of the status subresource.
    #[serde(default)]
    pub status: bool,
    /// The patch.
    pub patch: Value,
}

/// What happens to a node.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum NodeEvent {
    /// It is NotReady at once; its VMs run on.
    NotReady,
    /// It cannot be reached; the control plane notices after 40 s. Its VMs run on.
    Unreachable,
    /// Its object is deleted, and its agent is silent; its VMs run on.
    Deleted,
    /// The machine starts anew, without any of its VMs.
    Reboots,
    /// It is there and Ready again, and its agent with it.
    Back,
    /// Its agent reacts to nothing; nothing else shows it.
    AgentDown,
    /// Its agent starts anew, and has forgotten what it was doing.
    AgentRestarts,
}

/// What a VM does by itself.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum VmEvent {
    /// It is gone, and its agent deletes the pod.
    Gone,
    /// Its guest stops; its agent starts it again, once in 30 s.
    Stops,
    /// Its probe fails.
    ProbeFails,
    /// Its probe succeeds again.
    ProbeRecovers,
}

/// Boots that fail.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct BootsFail {
    /// The pod.
    pub pod: String,
    /// How often; for ever without.
    #[serde(default)]
    pub times: Option<u32>,
    /// How long the agents wait from now on before they try a failed boot again the first time; 1 s without.
    #[serde(default)]
    pub pause: Option<Span>,
}

/// What happens at the registry.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct RegistryEvent {
    /// A tag appears, as vm:tag.
    pub put: Option<String>,
    /// A tag goes, as vm:tag.
    pub delete: Option<String>,
    /// It does not answer (true), or does again (false).
    pub down: Option<bool>,
    /// It denies everything, or no longer.
    pub denied: Option<bool>,
}

/// A refusal of the API server.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Refuse {
    /// Who refuses.
    pub by: Refuser,
    /// Which verb: create, patch, delete, get, list; every one without.
    #[serde(default)]
    pub verb: Option<String>,
    /// Which resource.
    pub resource: Resource,
    /// Which object.
    #[serde(default)]
    pub name: Option<String>,
    /// How often; until `allow` without.
    #[serde(default)]
    pub times: Option<u32>,
    /// Its words, where they are its own to choose.
    #[serde(default)]
    pub message: Option<String>,
}

/// Who refuses.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Refuser {
    /// RBAC: 403.
    Rbac,
    /// PodSecurity: 403.
    PodSecurity,
    /// A LimitRange: 403.
    LimitRange,
    /// A webhook denies: 403.
    Webhook,
    /// A webhook cannot be called: 500.
    WebhookDown,
    /// A ValidatingAdmissionPolicy: 422.
    Policy,
    /// Flow control: 429 with Retry-After of one second.
    FlowControl,
    /// The credentials are not known: 401.
    Authentication,
}

/// What a call meets instead of its answer.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Fault {
    /// The verb as it is counted: get, list, create, update, patch, delete; of the registry head, delete-tag.
    pub verb: String,
    /// The resource: pods, cocoonsets, cocoonsets/status, namespaces, leases, snapshots; every one without.
    #[serde(default)]
    pub resource: Option<String>,
    /// The object; every one without.
    #[serde(default)]
    pub name: Option<String>,
    /// From the nth such call on; the next without.
    #[serde(default = "one")]
    pub nth: u32,
    /// For so many calls.
    #[serde(default = "one")]
    pub times: u32,
    /// The class of the answer (as `explain` names it), or: timeout-before, timeout-after, reset-before, reset-after.
    pub answer: String,
}

/// A write of somebody else, right before a call of the operator.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Overtake {
    /// The verb of the call, as in `fault`.
    pub verb: String,
    /// Its resource, as in `fault`.
    #[serde(default)]
    pub resource: Option<String>,
    /// Its object.
    #[serde(default)]
    pub name: Option<String>,
    /// The nth such call; the next without.
    #[serde(default = "one")]
    pub nth: u32,
    /// So many calls in a row.
    #[serde(default = "one")]
    pub times: u32,
    /// What is patched.
    #[serde(default)]
    pub patch: Option<PatchStep>,
    /// What is annotated.
    #[serde(default)]
    pub annotate: Option<Annotate>,
    /// What is deleted.
    #[serde(default)]
    pub delete: Option<Delete>,
}

fn one() -> u32 {
    1
}

/// A death of the operator.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Crash {
    /// After so many calls from now; 0: before the next.
    pub after: u32,
    /// How long until it starts again.
    #[serde(default)]
    pub down: Option<Span>,
}

/// What the operator watches.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "kebab-case")]
pub enum WatchedKind {
    /// CocoonSets.
    Cocoonsets,
    /// CocoonHibernations.
    Cocoonhibernations,
    /// Pods.
    Pods,
    /// Namespaces.
    Namespaces,
    /// Nodes.
    Nodes,
}

impl WatchedKind {
    /// The same, as the core calls it.
    pub const fn kind(self) -> crate::core::control::kinds::Kind {
        use crate::core::control::kinds::Kind;
        match self {
            Self::Cocoonsets => Kind::CocoonSets,
            Self::Cocoonhibernations => Kind::CocoonHibernations,
            Self::Pods => Kind::Pods,
            Self::Namespaces => Kind::Namespaces,
            Self::Nodes => Kind::Nodes,
        }
    }
}
