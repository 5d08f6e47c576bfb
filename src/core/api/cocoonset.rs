//! What a CocoonSet asks for, read from any JSON, with every default applied in code as well (api.md 1, 3).

use super::quantity::Quantity;
use super::reader::Reader;
use super::words::{AgentMode, Backend, ConnType, HibernatePolicy, Os, SnapshotPolicy, ToolboxMode};
use crate::core::oddity::{CLAMPED, NAME_TOO_LONG, Oddity, excerpt};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

pub use super::set_status::{AgentEntry, SetStatus, ToolboxEntry};

/// The most sub-agents that one set may bring into being (D-34, R25).
pub const MAX_REPLICAS: u32 = 256;
/// The most toolboxes that one set may bring into being (R25).
pub const MAX_TOOLBOXES: usize = 64;
/// The most that a label value holds, and so a toolbox name.
pub const MAX_LABEL: usize = 63;
/// The pool of sets that name none.
pub const DEFAULT_POOL: &str = "default";

/// `spec` of a CocoonSet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SetSpec {
    /// Hibernate every VM of the set.
    pub suspend: bool,
    /// Which VMs leave a `latest` snapshot.
    pub snapshot_policy: SnapshotPolicy,
    /// What becomes of pods while suspended.
    pub hibernate_policy: HibernatePolicy,
    /// The pool every pod is bound for; never empty.
    pub node_pool: String,
    /// The snapshot compatibility class; the empty text is none (D-75).
    pub compat_class: Option<String>,
    /// Where the main agent has to be.
    pub node_name: Option<String>,
    /// The main agent and its sub-agents.
    pub agent: AgentSpec,
    /// As listed, refused ones included: each is within the spec's own count and never surplus.
    pub toolboxes: Vec<Toolbox>,
    /// Some value of it is of the wrong type, out of its bounds or no word that this version knows. What stands in its
    /// place is a guess, and no VM is lost for a guess: nothing is surplus or replaced until the spec is mended.
    pub unreadable: bool,
}

/// `spec.agent` (api.md 1.2).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentSpec {
    /// Empty where the object has no spec, or no agent that reads: then nothing is done about its pods (D-58).
    pub image: String,
    /// Sub-agents as given; below zero reads as zero. A pod within this count is never surplus.
    pub replicas: i64,
    /// Nobody can tell how many are wanted: none is created, and those that exist stay.
    pub replicas_unreadable: bool,
    /// Sub-agents that may be created: at most [`MAX_REPLICAS`].
    pub replicas_clamped: u32,
    /// Clone or cold boot.
    pub mode: AgentMode,
    /// Core `EnvFromSource` items, handed to the pod as they are.
    pub env_from: Vec<Value>,
    /// The pod's service account.
    pub service_account: Option<String>,
    /// Options of each agent's VM.
    pub vm: VmOptions,
}

/// One of `spec.toolboxes` (api.md 1.4).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Toolbox {
    /// Suffix of pod and VM name.
    pub name: String,
    /// Empty only where static, or refused.
    pub image: String,
    /// Run, clone or static.
    pub mode: ToolboxMode,
    /// Static: where it answers.
    pub static_ip: String,
    /// Static: the VM it is.
    pub static_vm_id: String,
    /// Static: its VNC port, 0 for none.
    pub vnc_port: u16,
    /// Options of its VM.
    pub vm: VmOptions,
    /// Why nothing is created for it, where nothing is: a duplicate, an integer name, beyond the clamp.
    pub refused: Option<String>,
}

/// VM options shared by agents and toolboxes (api.md 1.3).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VmOptions {
    /// Guest family.
    pub os: Os,
    /// Hypervisor.
    pub backend: Backend,
    /// Overrides the inferred connection type.
    pub conn_type: Option<ConnType>,
    /// Network name.
    pub network: Option<String>,
    /// Bypass the image cache.
    pub force_pull: bool,
    /// Page cache instead of O_DIRECT.
    pub no_direct_io: bool,
    /// TCP readiness probe; 0 for ICMP.
    pub probe_port: u16,
    /// Root volume.
    pub storage: Option<Quantity>,
    /// Container resources.
    pub resources: Resources,
}

/// Core `ResourceRequirements`.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Resources {
    /// Upper bounds.
    pub limits: BTreeMap<String, Quantity>,
    /// What the scheduler counts.
    pub requests: BTreeMap<String, Quantity>,
    /// Resource claims, handed to the pod as they are and never compared.
    pub claims: Vec<Value>,
}

impl Resources {
    /// The request of a resource as the API server completes it: its limit where it has none of its own (D-17).
    pub fn effective_request(&self, key: &str) -> Option<&Quantity> {
        self.requests.get(key).or_else(|| self.limits.get(key))
    }
    /// True where nothing is asked for.
    pub fn is_empty(&self) -> bool {
        self.limits.is_empty() && self.requests.is_empty() && self.claims.is_empty()
    }
    /// Reads a `resources` object, absent and `{}` alike.
    pub fn read(at: &Value) -> Self {
        let amounts = |key: &str| {
            let entries = at.get(key).and_then(Value::as_object).into_iter().flatten();
            entries.filter_map(|(name, amount)| Some((name.clone(), Quantity::read(amount)?))).collect()
        };
        let claims = at.get("claims").and_then(Value::as_array).cloned().unwrap_or_default();
        Self { limits: amounts("limits"), requests: amounts("requests"), claims }
    }
}

impl SetSpec {
    /// Reads `spec` from whatever is there. An absent spec is one oddity, not one for each field (D-58).
    pub fn read(spec: &Value) -> (Self, Vec<Oddity>) {
        let mut odd = Vec::new();
        if !spec.is_object() {
            let said = if spec.is_null() { "the object has no spec" } else { "spec is not an object" };
            odd.push(Oddity::invalid("spec", said));
            return (Self { node_pool: DEFAULT_POOL.to_owned(), ..Self::default() }, odd);
        }
        let at = Reader::new(spec, "spec");
        let read = Self {
            suspend: at.flag("suspend", &mut odd),
            snapshot_policy: SnapshotPolicy::read(&at, "snapshotPolicy", &mut odd),
            hibernate_policy: HibernatePolicy::read(&at, "hibernatePolicy", &mut odd),
            node_pool: at.text_if_any("nodePool", &mut odd).unwrap_or_else(|| DEFAULT_POOL.to_owned()),
            compat_class: at.text_if_any("snapshotCompatibilityClass", &mut odd),
            node_name: at.text_if_any("nodeName", &mut odd),
            agent: AgentSpec::read(&at.object("agent", &mut odd), &mut odd),
            toolboxes: read_toolboxes(&at, &mut odd),
            unreadable: false,
        };
        let unreadable = odd.iter().any(|oddity| oddity.unreadable);
        (Self { unreadable, ..read }, odd)
    }
    /// Toolboxes that a pod may be created for.
    pub fn creatable_toolboxes(&self) -> impl Iterator<Item = &Toolbox> {
        self.toolboxes.iter().filter(|toolbox| toolbox.refused.is_none())
    }
    /// True where the spec lists a toolbox of this name, refused or not.
    pub fn lists_toolbox(&self, name: &str) -> bool {
        self.toolboxes.iter().any(|toolbox| toolbox.name == name)
    }
    /// True where the spec says enough to boot an agent (D-58).
    pub fn can_create_agents(&self) -> bool {
        !self.agent.image.is_empty()
    }
    /// `status.desiredAgents`: the main agent and the sub-agents as given, within what the field holds.
    pub fn desired_agents(&self) -> i32 {
        i32::try_from(self.agent.replicas.saturating_add(1)).unwrap_or(i32::MAX)
    }
}

impl AgentSpec {
    /// Whether a sub-agent of this slot is within the spec's own count, as far as that reads.
    pub fn wants(&self, slot: u32) -> bool {
        self.replicas_unreadable || i64::from(slot) <= self.replicas
    }
    fn read(at: &Reader<'_>, odd: &mut Vec<Oddity>) -> Self {
        let image = at.text("image", odd);
        if image.is_empty() {
            odd.push(Oddity::invalid(at.path_of("image"), "no image is named"));
        }
        let before = odd.len();
        let replicas = at.int_within("replicas", 0, i64::from(i32::MAX), odd);
        // Beyond its bound above it still says that many are wanted.
        let replicas_unreadable = odd.len() > before && replicas == 0;
        let replicas_clamped = u32::try_from(replicas).unwrap_or(u32::MAX).min(MAX_REPLICAS);
        if replicas > i64::from(MAX_REPLICAS) {
            let said = format!("{replicas} sub-agents are wanted; at most {MAX_REPLICAS} are created");
            odd.push(Oddity::new(CLAMPED, at.path_of("replicas"), said));
        }
        Self {
            image,
            replicas,
            replicas_unreadable,
            replicas_clamped,
            mode: AgentMode::read(at, "mode", odd),
            env_from: at.list("envFrom", odd).to_vec(),
            service_account: at.text_if_any("serviceAccountName", odd),
            vm: VmOptions::read(at, odd),
        }
    }
}

impl VmOptions {
    fn read(at: &Reader<'_>, odd: &mut Vec<Oddity>) -> Self {
        let resources = at.object("resources", odd);
        for bounds in ["limits", "requests"] {
            for (name, amount) in at.get("resources").and_then(|r| r.get(bounds)?.as_object()).into_iter().flatten() {
                if !amount.is_null() && Quantity::read(amount).is_none_or(|amount| !amount.is_valid()) {
                    let field = format!("{}.{}", resources.path_of(bounds), excerpt(name, 60));
                    odd.push(Oddity::unreadable(field, format!("{} is no quantity", excerpt(&amount.to_string(), 60))));
                }
            }
        }
        Self {
            os: Os::read(at, "os", odd),
            backend: Backend::read(at, "backend", odd),
            conn_type: Some(ConnType::read(at, "connType", odd))
                .filter(|word| word.is_known() && at.get("connType").is_some_and(|given| given != "")),
            network: at.text_if_any("network", odd),
            force_pull: at.flag("forcePull", odd),
            no_direct_io: at.flag("noDirectIO", odd),
            probe_port: read_port(at, "probePort", odd),
            storage: read_storage(at, odd),
            resources: at.get("resources").map(Resources::read).unwrap_or_default(),
        }
    }
}

fn read_storage(at: &Reader<'_>, odd: &mut Vec<Oddity>) -> Option<Quantity> {
    let given = at.get("storage")?;
    if given == "" {
        return None;
    }
    let read = Quantity::read(given);
    if read.as_ref().is_none_or(|amount| !amount.is_valid()) {
        let said = format!("{} is no quantity", excerpt(&given.to_string(), 60));
        odd.push(Oddity::unreadable(at.path_of("storage"), said));
    }
    read
}

fn read_port(at: &Reader<'_>, key: &str, odd: &mut Vec<Oddity>) -> u16 {
    u16::try_from(at.int_within(key, 0, i64::from(u16::MAX), odd)).unwrap_or_default()
}

fn read_toolboxes(at: &Reader<'_>, odd: &mut Vec<Oddity>) -> Vec<Toolbox> {
    let mut names = BTreeSet::new();
    let mut toolboxes = Vec::new();
    for (index, item) in at.list("toolboxes", odd).iter().enumerate() {
        let mut toolbox = Toolbox::read(&Reader::new(item, format!("{}[{index}]", at.path_of("toolboxes"))), odd);
        if !toolbox.name.is_empty() && !names.insert(toolbox.name.clone()) {
            let said = format!("toolbox \"{}\" is listed twice; the first counts", excerpt(&toolbox.name, 80));
            odd.push(Oddity::invalid(format!("{}[{index}].name", at.path_of("toolboxes")), said.clone()));
            toolbox.refused = Some(said);
        }
        toolboxes.push(toolbox);
    }
    clamp_toolboxes(&mut toolboxes, at, odd);
    toolboxes
}

fn clamp_toolboxes(toolboxes: &mut [Toolbox], at: &Reader<'_>, odd: &mut Vec<Oddity>) {
    let listed = toolboxes.len();
    let beyond = toolboxes.iter_mut().filter(|toolbox| toolbox.refused.is_none()).skip(MAX_TOOLBOXES);
    let mut any = false;
    for toolbox in beyond {
        any = true;
        toolbox.refused = Some(format!("beyond the {MAX_TOOLBOXES} toolboxes that are created"));
    }
    if any {
        let said = format!("{listed} toolboxes are wanted; at most {MAX_TOOLBOXES} are created");
        odd.push(Oddity::new(CLAMPED, at.path_of("toolboxes"), said));
    }
}

impl Toolbox {
    /// True where we manage its VM (contract 2.1).
    pub fn is_managed(&self) -> bool {
        self.mode != ToolboxMode::Static
    }
    fn read(at: &Reader<'_>, odd: &mut Vec<Oddity>) -> Self {
        let mut read = Self {
            name: at.text("name", odd),
            image: at.text("image", odd),
            mode: ToolboxMode::read(at, "mode", odd),
            static_ip: at.text("staticIP", odd),
            static_vm_id: at.text("staticVMID", odd),
            vnc_port: read_port(at, "vncPort", odd),
            vm: VmOptions::read(at, odd),
            refused: None,
        };
        if let Some(fault) = read.fault(at) {
            read.refused = Some(fault.message.clone());
            odd.push(fault);
        }
        read
    }
    /// What keeps this toolbox from being created, whatever the others are.
    fn fault(&self, at: &Reader<'_>) -> Option<Oddity> {
        let name = excerpt(&self.name, 80);
        if self.name.len() > MAX_LABEL {
            let said = format!("toolbox name \"{name}\" has {} characters, {MAX_LABEL} is the most", self.name.len());
            return Some(Oddity::new(NAME_TOO_LONG, at.path_of("name"), said));
        }
        if !is_label(&self.name) {
            return Some(Oddity::invalid(at.path_of("name"), format!("toolbox name \"{name}\" is not a DNS label")));
        }
        if self.name.bytes().all(|b| b.is_ascii_digit()) {
            let said = format!("toolbox name \"{name}\" must not be an integer: agents are named so");
            return Some(Oddity::invalid(at.path_of("name"), said));
        }
        if !self.is_managed() && (self.static_ip.is_empty() || self.static_vm_id.is_empty()) {
            let said = format!("static toolbox \"{name}\" needs staticIP and staticVMID");
            return Some(Oddity::invalid(at.path_of("mode"), said));
        }
        if self.is_managed() && self.image.is_empty() {
            return Some(Oddity::invalid(at.path_of("image"), format!("toolbox \"{name}\" names no image")));
        }
        None
    }
}

/// `^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
fn is_label(name: &str) -> bool {
    let bytes = name.as_bytes();
    let alnum = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    bytes.first().is_some_and(alnum) && bytes.last().is_some_and(alnum) && bytes.iter().all(|b| alnum(b) || *b == b'-')
}
