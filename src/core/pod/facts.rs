//! A pod as the API server returned it, read into what a decision may depend on. Total: any JSON gives facts.

use super::template::{Boot, DEFAULT_ACCOUNT, EPHEMERAL, Placement, PodTemplate, env_source, has_storage};
use super::{intent, render::CONTAINER};
use crate::core::api::cocoonset::{DEFAULT_POOL, Resources};
use crate::core::api::words::{ConnType, ToolboxMode};
use crate::core::contract::lifecycle::{Lifecycle, State};
use crate::core::contract::names::{NodeName, PodName, Role, Uid, VmName, accepted_vm};
use crate::core::contract::vm_runtime::{VmRuntime, connection_type};
use crate::core::contract::vm_spec::VmSpec;
use crate::core::contract::{Annotations, flag, int, keys, text};
use crate::core::oddity::{NAME_MISMATCH, Oddity, excerpt};
use jiff::Timestamp;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Everything that a decision may know of one pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodFacts {
    /// Name.
    pub name: PodName,
    /// Namespace.
    pub namespace: String,
    /// Uid: this incarnation.
    pub uid: Uid,
    /// The version these facts were read at.
    pub resource_version: String,
    /// Labels under our prefixes, and the app name.
    pub labels: BTreeMap<String, String>,
    /// Annotations under our prefixes; others are not kept.
    pub annotations: Annotations,
    /// The controlling owner.
    pub owner: Option<OwnerRef>,
    /// All owners.
    pub owners: Vec<OwnerRef>,
    /// When it was created.
    pub created: Option<Timestamp>,
    /// When it is to be gone; set once it is being deleted.
    pub deletion: Option<Timestamp>,
    /// True once it is being deleted, also where the time cannot be read.
    pub deleting: bool,
    /// Grace of that deletion, in seconds.
    pub grace: Option<i64>,
    /// What holds it.
    pub finalizers: Vec<String>,
    /// Where it is.
    pub node: Option<NodeName>,
    /// Core phase.
    pub phase: PodPhase,
    /// Condition Ready is True.
    pub ready: bool,
    /// Since when it is so, or is not.
    pub ready_since: Option<Timestamp>,
    /// The scheduler's words, where it found no node.
    pub unschedulable: Option<String>,
    /// Some container runs.
    pub container_running: bool,
    /// Its containers have ended, and whoever says so knows what became of the VM.
    pub containers_ended: bool,
    /// Its node agent has stopped its VM: see [`PodFacts::follow`].
    pub stopped: bool,
    /// `status.podIP`.
    pub pod_ip: Option<String>,
    /// What it is to its set, by its labels.
    pub role: Role,
    /// VM name as annotated; see [`PodFacts::accepted_vm_name`].
    pub vm_name: VmName,
    /// State, observed generation, message.
    pub lifecycle: Lifecycle,
    /// VM id, address and port, as annotated at this moment.
    pub runtime: VmRuntime,
    /// The generation stamp; 0 where absent or no number.
    pub generation: i64,
    /// Asked to hibernate.
    pub hibernate: bool,
    /// Created to restore.
    pub restore: bool,
    /// Given up on.
    pub dead_letter: bool,
    /// We manage its VM.
    pub managed: bool,
    /// Flagged to keep its snapshot files.
    pub keep_snapshot: bool,
    /// The node agent gave up on guest fix-up (R16).
    pub post_clone_failed: bool,
    /// The fields we own, as asked for where the pod states it, else as it carries them.
    pub carries: PodTemplate,
    /// What did not read.
    pub oddities: Vec<Oddity>,
}

/// One owner.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct OwnerRef {
    pub api_version: String,
    pub kind: String,
    pub name: String,
    pub uid: Uid,
    pub controller: bool,
}

/// Core pod phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum PodPhase {
    Pending,
    Running,
    Succeeded,
    Failed,
    #[default]
    Unknown,
}

impl PodPhase {
    /// Reads the wire's word; absent is Unknown.
    pub fn of(text: &str) -> Self {
        match text {
            "Pending" => Self::Pending,
            "Running" => Self::Running,
            "Succeeded" => Self::Succeeded,
            "Failed" => Self::Failed,
            _ => Self::Unknown,
        }
    }
    /// The wire's word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Running => "Running",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
            Self::Unknown => "Unknown",
        }
    }
}

impl PodFacts {
    /// Reads any JSON.
    pub fn read(pod: &Value) -> Self {
        let meta = at(pod, "/metadata");
        let labels = strings(at(meta, "/labels"));
        let annotations = strings(at(meta, "/annotations"));
        let status = at(pod, "/status");
        let role = Role::of_labels(text(&labels, keys::ROLE), text(&labels, keys::SLOT));
        let mut oddities = Vec::new();
        let carries = carries(pod, &role, &labels, &annotations, &mut oddities);
        oddities.extend(mismatch(word(meta, "/namespace"), word(meta, "/name"), &role, &carries.vm.name));
        let owners: Vec<OwnerRef> = items(at(meta, "/ownerReferences")).map(OwnerRef::read).collect();
        let ready = condition(status, "Ready");
        let scheduled = condition(status, "PodScheduled");
        Self {
            name: word(meta, "/name").into(),
            namespace: word(meta, "/namespace").to_owned(),
            uid: word(meta, "/uid").into(),
            resource_version: word(meta, "/resourceVersion").to_owned(),
            owner: owners.iter().find(|owner| owner.controller).cloned(),
            owners,
            created: time(meta, "/creationTimestamp"),
            deletion: time(meta, "/deletionTimestamp"),
            deleting: !at(meta, "/deletionTimestamp").is_null(),
            grace: at(meta, "/deletionGracePeriodSeconds").as_i64(),
            finalizers: items(at(meta, "/finalizers")).filter_map(Value::as_str).map(str::to_owned).collect(),
            node: filled(pod, "/spec/nodeName").map(NodeName::from),
            phase: PodPhase::of(word(status, "/phase")),
            ready: ready.is_some_and(|ready| word(ready, "/status") == "True"),
            ready_since: ready.and_then(|ready| time(ready, "/lastTransitionTime")),
            unschedulable: scheduled
                .filter(|said| word(said, "/status") == "False" && word(said, "/reason") == "Unschedulable")
                .map(|said| word(said, "/message").to_owned()),
            container_running: items(at(status, "/containerStatuses")).any(|one| at(one, "/state/running").is_object()),
            containers_ended: have_ended(at(status, "/containerStatuses")),
            stopped: !at(meta, "/deletionTimestamp").is_null()
                && PodPhase::of(word(status, "/phase")) == PodPhase::Succeeded
                && at(meta, "/deletionGracePeriodSeconds").as_i64() != Some(0),
            pod_ip: filled(status, "/podIP").map(str::to_owned),
            role,
            vm_name: text(&annotations, keys::VM_NAME).into(),
            lifecycle: Lifecycle::read(&annotations),
            runtime: VmRuntime::read(&annotations),
            generation: int(&annotations, keys::GENERATION),
            hibernate: flag(&annotations, keys::HIBERNATE),
            restore: flag(&annotations, keys::RESTORE),
            dead_letter: flag(&annotations, keys::DEAD_LETTER),
            managed: flag(&annotations, keys::MANAGED),
            keep_snapshot: flag(&annotations, keys::KEEP_SNAPSHOT),
            post_clone_failed: text(&annotations, keys::POST_CLONE_STATE) == "failed",
            carries,
            labels,
            annotations,
            oddities,
        }
    }
    /// At its end: failed by the kubelet's or the node agent's word, or a managed VM that "succeeded" (contract 7,
    /// D-65). The VM of a pod that the node agent calls failed may run all the same: see [`PodFacts::has_vm`] (R16).
    /// A dead letter stays one through every further try of the node agent, until its VM is up (CS-A4, D-47).
    pub fn is_terminal(&self) -> bool {
        let ended = match self.phase {
            PodPhase::Failed => true,
            PodPhase::Succeeded => self.managed,
            PodPhase::Pending | PodPhase::Running | PodPhase::Unknown => false,
        };
        let given_up = self.dead_letter && !self.ready && self.lifecycle.state != State::Ready;
        ended || self.lifecycle.state == State::Failed || given_up
    }
    /// The VM is there and its container runs (contract 7).
    pub fn is_live(&self) -> bool {
        self.has_vm() && self.container_running
    }
    /// Without our label it is in no watch of ours (decision R26).
    pub fn is_hidden(&self) -> bool {
        !self.labels.contains_key(keys::NAME)
    }
    /// The node agent names a VM: something runs, whatever the state says.
    pub fn has_vm(&self) -> bool {
        !self.runtime.id.is_empty()
    }
    /// It has ended by its phase, and its VM may run all the same: the node agent names one, and nothing says that it is no
    /// more. Anybody may write a phase; of such a pod no delete waits for the node agent.
    pub fn may_outlive_its_end(&self) -> bool {
        let ended = matches!(self.phase, PodPhase::Failed | PodPhase::Succeeded);
        ended && self.managed && self.has_vm() && !self.containers_ended
    }
    /// Takes over what an earlier sight of this incarnation says of its end. The node agent stops a VM because its pod is
    /// being deleted, and says `Succeeded` then. The word alone says nothing, for anybody may write it: of a pod that bore
    /// it before, the deletion has no grace (D-78, R18).
    pub fn follow(&mut self, known: &Self) {
        let is_same = known.uid == self.uid;
        let ended_since = known.deleting && known.phase != PodPhase::Succeeded && self.phase == PodPhase::Succeeded;
        self.stopped |= is_same && (known.stopped || (ended_since && self.deleting));
    }
    /// Uid of the controlling owner.
    pub fn owner_uid(&self) -> Option<&str> {
        self.owner.as_ref().map(|owner| owner.uid.as_str()).filter(|uid| !uid.is_empty())
    }
    /// True where the controlling owner is this object.
    pub fn is_controlled_by(&self, uid: &str) -> bool {
        !uid.is_empty() && self.owner.as_ref().is_some_and(|owner| owner.uid.as_str() == uid)
    }
    /// The set that owns it, as the node agent sees it: the first owner of that kind, whatever its group
    /// (contract 4.3).
    pub fn owning_set(&self) -> Option<&str> {
        self.owners.iter().find(|owner| owner.kind == keys::SET_KIND).map(|owner| owner.name.as_str())
    }
    /// The annotated VM name, if it is one that this very pod may have (R22).
    pub fn accepted_vm_name(&self) -> Option<VmName> {
        accepted_vm(&self.namespace, self.name.as_str(), self.vm_name.as_str())
    }
    /// How one connects to its VM; never a word that the status schema refuses (D-71).
    pub fn connection_type(&self) -> ConnType {
        connection_type(
            self.annotations.get(keys::CONN_TYPE).map(|word| ConnType::of(word)).as_ref().filter(|w| w.is_known()),
            self.runtime.vnc_port,
            &self.carries.vm.os,
        )
    }
}

impl OwnerRef {
    fn read(owner: &Value) -> Self {
        Self {
            api_version: word(owner, "/apiVersion").to_owned(),
            kind: word(owner, "/kind").to_owned(),
            name: word(owner, "/name").to_owned(),
            uid: word(owner, "/uid").into(),
            controller: at(owner, "/controller") == &Value::Bool(true),
        }
    }
}

/// The reason of a node agent that cannot say what became of a VM.
const UNKNOWN_END: &str = "VMInspectTimeout";

/// Every container has ended, as somebody says who knows.
fn have_ended(statuses: &Value) -> bool {
    let ended =
        |one: &Value| at(one, "/state/terminated").is_object() && word(one, "/state/terminated/reason") != UNKNOWN_END;
    items(statuses).next().is_some() && items(statuses).all(ended)
}

/// A VM name that is not this pod's: no registry decision is ever made on it (R22).
fn mismatch(namespace: &str, pod: &str, role: &Role, annotated: &VmName) -> Option<Oddity> {
    let fits = *role == Role::Unknown || accepted_vm(namespace, pod, annotated.as_str()).is_some();
    (!fits).then(|| {
        let said = format!("\"{}\" is not the VM of pod {pod}", excerpt(annotated.as_str(), 80));
        Oddity::new(NAME_MISMATCH, keys::VM_NAME, said)
    })
}

/// The fields we own, read off a pod. Every tolerance stands here once, as a normalisation.
fn carries(
    pod: &Value,
    role: &Role,
    labels: &Annotations,
    annotations: &Annotations,
    oddities: &mut Vec<Oddity>,
) -> PodTemplate {
    let spec = at(pod, "/spec");
    let vm = VmSpec::read(annotations, role);
    // Sidecars are other people's: ours is the container of our name, or the only one.
    let mut containers = items(at(spec, "/containers"));
    let container = containers.find(|one| word(one, "/name") == CONTAINER).unwrap_or(at(spec, "/containers/0"));
    let mut resources = Resources::read(at(container, "/resources"));
    if has_storage(&vm) {
        resources.limits.remove(EPHEMERAL);
        resources.requests.remove(EPHEMERAL);
    }
    let is_agent = matches!(role, Role::Main | Role::SubAgent(_));
    let account = filled(spec, "/serviceAccountName").filter(|account| is_agent && *account != DEFAULT_ACCOUNT);
    let selected = |key: &str| at(spec, "/nodeSelector").get(key).and_then(Value::as_str).filter(|v| !v.is_empty());
    let pools = [selected(keys::POOL).unwrap_or_default(), text(labels, keys::POOL), text(annotations, keys::POOL)];
    let mut template = PodTemplate {
        role: role.clone(),
        fixed: (vm.mode == ToolboxMode::Static).then(|| VmRuntime::read(annotations)),
        vm,
        boot: if flag(annotations, keys::RESTORE) { Boot::Restore } else { Boot::Fresh },
        resources,
        env_from: if is_agent { items(at(container, "/envFrom")).map(env_source).collect() } else { Vec::new() },
        service_account: account.map(str::to_owned),
        pool: pools.into_iter().find(|pool| !pool.is_empty()).unwrap_or(DEFAULT_POOL).to_owned(),
        compat_class: selected(keys::CPU_CLASS).map(str::to_owned),
        placement: placement(at(spec, "/affinity/nodeAffinity")),
        stated: BTreeSet::new(),
    };
    oddities.extend(intent::read(annotations, &mut template));
    template
}

/// The node that an affinity names, whatever else admission has added to it.
fn placement(affinity: &Value) -> Placement {
    let node = |term: &Value| {
        let mut expressions = items(at(term, "/matchExpressions"));
        let ours = expressions.find(|one| word(one, "/key") == keys::HOSTNAME && word(one, "/operator") == "In")?;
        filled(ours, "/values/0").map(NodeName::from)
    };
    let required = at(affinity, "/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms");
    let preferred = at(affinity, "/preferredDuringSchedulingIgnoredDuringExecution");
    if let Some(node) = items(required).find_map(node) {
        return Placement::Required(node);
    }
    match items(preferred).find_map(|one| node(at(one, "/preference"))) {
        Some(node) => Placement::Preferred(node),
        None => Placement::Anywhere,
    }
}

const NOTHING: &Value = &Value::Null;

fn at<'a>(value: &'a Value, pointer: &str) -> &'a Value {
    value.pointer(pointer).unwrap_or(NOTHING)
}
fn word<'a>(value: &'a Value, pointer: &str) -> &'a str {
    at(value, pointer).as_str().unwrap_or_default()
}
fn filled<'a>(value: &'a Value, pointer: &str) -> Option<&'a str> {
    Some(word(value, pointer)).filter(|text| !text.is_empty())
}
fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}
fn time(value: &Value, pointer: &str) -> Option<Timestamp> {
    word(value, pointer).parse().ok()
}
fn condition<'a>(status: &'a Value, kind: &str) -> Option<&'a Value> {
    items(at(status, "/conditions")).find(|one| word(one, "/type") == kind)
}
/// Text entries under our prefixes.
fn strings(map: &Value) -> Annotations {
    let entries = map.as_object().into_iter().flatten();
    let ours = entries.filter(|(key, _)| keys::is_ours(key) || key.as_str() == keys::APP_NAME);
    ours.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}
