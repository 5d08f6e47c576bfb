//! The fields that drift is judged by: each with its name, its value as JSON, and what a difference calls for (R20).

use super::template::{DEFAULT_ACCOUNT, PodTemplate, env_source};
use crate::core::api::quantity::Quantity;
use crate::core::api::words::{Backend, ConnType, Os, SnapshotPolicy, ToolboxMode};
use crate::core::contract::keys;
use crate::core::contract::names::Role;
use crate::core::contract::vm_spec::port_text;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// What a difference calls for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Remedy {
    /// One patch of an annotation that is read when it is needed.
    PatchInPlace,
    /// One patch; the node agent reads it when the VM boots next, and a condition says so.
    PatchAtNextBoot,
    /// One patch and no second: the node agent writes its own value back.
    PatchOnce,
    /// Only a new pod and VM can have it.
    Recreate,
}

/// One field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[allow(missing_docs)]
pub enum Field {
    Image,
    Mode,
    Os,
    Backend,
    Storage,
    Network,
    Cpu,
    Memory,
    ServiceAccount,
    EnvFrom,
    Pool,
    CompatClass,
    SnapshotPolicy,
    ConnType,
    ForcePull,
    VncPort,
    ProbePort,
    NoDirectIo,
    StaticVmId,
    StaticIp,
}

impl Field {
    /// All of them, in the order in which drift tells of them.
    pub const ALL: [Self; 20] = [
        Self::Image,
        Self::Mode,
        Self::Os,
        Self::Backend,
        Self::Storage,
        Self::Network,
        Self::Cpu,
        Self::Memory,
        Self::ServiceAccount,
        Self::EnvFrom,
        Self::Pool,
        Self::CompatClass,
        Self::SnapshotPolicy,
        Self::ConnType,
        Self::ForcePull,
        Self::VncPort,
        Self::ProbePort,
        Self::NoDirectIo,
        Self::StaticVmId,
        Self::StaticIp,
    ];
    /// The name in the spec, under which drift and the intent annotation speak of it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Image => "image",
            Self::Mode => "mode",
            Self::Os => "os",
            Self::Backend => "backend",
            Self::Storage => "storage",
            Self::Network => "network",
            Self::Cpu => "resources.cpu",
            Self::Memory => "resources.memory",
            Self::ServiceAccount => "serviceAccountName",
            Self::EnvFrom => "envFrom",
            Self::Pool => "nodePool",
            Self::CompatClass => "snapshotCompatibilityClass",
            Self::SnapshotPolicy => "snapshotPolicy",
            Self::ConnType => "connType",
            Self::ForcePull => "forcePull",
            Self::VncPort => "vncPort",
            Self::ProbePort => "probePort",
            Self::NoDirectIo => "noDirectIO",
            Self::StaticVmId => "staticVMID",
            Self::StaticIp => "staticIP",
        }
    }
    /// What a difference in it calls for.
    pub const fn remedy(self) -> Remedy {
        match self {
            Self::SnapshotPolicy | Self::ConnType | Self::ForcePull | Self::VncPort => Remedy::PatchInPlace,
            Self::ProbePort | Self::NoDirectIo => Remedy::PatchAtNextBoot,
            Self::StaticVmId | Self::StaticIp => Remedy::PatchOnce,
            Self::Image
            | Self::Mode
            | Self::Os
            | Self::Backend
            | Self::Storage
            | Self::Network
            | Self::Cpu
            | Self::Memory
            | Self::ServiceAccount
            | Self::EnvFrom
            | Self::Pool
            | Self::CompatClass => Remedy::Recreate,
        }
    }
    /// The fields that a template has: only agents have accounts and environments, only static toolboxes have a VM
    /// of somebody else's.
    pub fn of(template: &PodTemplate) -> BTreeSet<Self> {
        Self::ALL.into_iter().filter(|field| field.applies(template)).collect()
    }
    /// True where the template has this field.
    pub fn applies(self, template: &PodTemplate) -> bool {
        match self {
            Self::ServiceAccount | Self::EnvFrom => match template.role {
                Role::Main | Role::SubAgent(_) => true,
                Role::Toolbox(_) | Role::Unknown => false,
            },
            Self::VncPort | Self::StaticVmId | Self::StaticIp => template.fixed.is_some(),
            Self::Image
            | Self::Mode
            | Self::Os
            | Self::Backend
            | Self::Storage
            | Self::Network
            | Self::Cpu
            | Self::Memory
            | Self::Pool
            | Self::CompatClass
            | Self::SnapshotPolicy
            | Self::ConnType
            | Self::ForcePull
            | Self::ProbePort
            | Self::NoDirectIo => true,
        }
    }
    /// The template's value of it.
    pub fn value(self, of: &PodTemplate) -> Value {
        let fixed = of.fixed.clone().unwrap_or_default();
        match self {
            Self::Image => of.vm.image.as_str().into(),
            Self::Mode => of.vm.mode.as_str().into(),
            Self::Os => of.vm.os.as_str().into(),
            Self::Backend => of.vm.backend.as_str().into(),
            Self::Storage => of.vm.storage.as_ref().map(Quantity::as_str).into(),
            Self::Network => of.vm.network.as_deref().into(),
            Self::Cpu => bounds(of, "cpu"),
            Self::Memory => bounds(of, "memory"),
            Self::ServiceAccount => of.service_account.as_deref().into(),
            Self::EnvFrom => of.env_from.clone().into(),
            Self::Pool => of.pool.as_str().into(),
            Self::CompatClass => of.compat_class.as_deref().into(),
            Self::SnapshotPolicy => of.vm.snapshot_policy.as_str().into(),
            Self::ConnType => of.vm.conn_type.as_ref().map(ConnType::as_str).into(),
            Self::ForcePull => of.vm.force_pull.into(),
            Self::VncPort => fixed.vnc_port.into(),
            Self::ProbePort => of.vm.probe_port.into(),
            Self::NoDirectIo => of.vm.no_direct_io.into(),
            Self::StaticVmId => fixed.id.into(),
            Self::StaticIp => fixed.ip.into(),
        }
    }
    /// Lays a stated value over what was read off the pod; `None` where it is no value of this field.
    pub fn take(self, to: &mut PodTemplate, value: &Value) -> Option<()> {
        let optional = || match value {
            Value::Null => Some(None),
            Value::String(text) => Some(Some(text.clone()).filter(|text| !text.is_empty())),
            Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => None,
        };
        let port = || u16::try_from(value.as_u64()?).ok();
        match self {
            Self::Image => to.vm.image = value.as_str()?.to_owned(),
            Self::Mode => to.vm.mode = ToolboxMode::of(value.as_str()?),
            Self::Os => to.vm.os = Os::of(value.as_str()?),
            Self::Backend => to.vm.backend = Backend::of(value.as_str()?),
            Self::Storage => to.vm.storage = optional()?.as_deref().map(Quantity::of),
            Self::Network => to.vm.network = optional()?,
            Self::Cpu => take_bounds(to, "cpu", value)?,
            Self::Memory => take_bounds(to, "memory", value)?,
            Self::ServiceAccount => to.service_account = optional()?.filter(|account| account != DEFAULT_ACCOUNT),
            Self::EnvFrom => to.env_from = value.as_array()?.iter().map(env_source).collect(),
            Self::Pool => to.pool = value.as_str()?.to_owned(),
            Self::CompatClass => to.compat_class = optional()?,
            Self::SnapshotPolicy => to.vm.snapshot_policy = SnapshotPolicy::of(value.as_str()?),
            Self::ConnType => to.vm.conn_type = optional()?.as_deref().map(ConnType::of),
            Self::ForcePull => to.vm.force_pull = value.as_bool()?,
            Self::VncPort => to.fixed.as_mut()?.vnc_port = port()?,
            Self::ProbePort => to.vm.probe_port = port()?,
            Self::NoDirectIo => to.vm.no_direct_io = value.as_bool()?,
            Self::StaticVmId => to.fixed.as_mut()?.id = value.as_str()?.to_owned(),
            Self::StaticIp => to.fixed.as_mut()?.ip = value.as_str()?.to_owned(),
        }
        Some(())
    }
    /// The annotation that says it, and its value; none for fields that no patch can change.
    pub fn annotation(self, of: &PodTemplate) -> Option<(&'static str, Option<String>)> {
        let yes = |flag: bool| flag.then(|| "true".to_owned());
        let some = |text: String| Some(text).filter(|text| !text.is_empty());
        let fixed = of.fixed.clone().unwrap_or_default();
        match self {
            Self::SnapshotPolicy => Some((keys::SNAPSHOT_POLICY, some(of.vm.snapshot_policy.to_string()))),
            Self::ConnType => Some((keys::CONN_TYPE, of.vm.conn_type.as_ref().map(ConnType::to_string))),
            Self::ForcePull => Some((keys::FORCE_PULL, yes(of.vm.force_pull))),
            Self::VncPort => Some((keys::VNC_PORT, port_text(fixed.vnc_port))),
            Self::ProbePort => Some((keys::PROBE_PORT, port_text(of.vm.probe_port))),
            Self::NoDirectIo => Some((keys::NO_DIRECT_IO, yes(of.vm.no_direct_io))),
            Self::StaticVmId => Some((keys::VM_ID, some(fixed.id))),
            Self::StaticIp => Some((keys::VM_IP, some(fixed.ip))),
            Self::Image
            | Self::Mode
            | Self::Os
            | Self::Backend
            | Self::Storage
            | Self::Network
            | Self::Cpu
            | Self::Memory
            | Self::ServiceAccount
            | Self::EnvFrom
            | Self::Pool
            | Self::CompatClass => None,
        }
    }
}

fn bounds(of: &PodTemplate, key: &str) -> Value {
    let limit = of.resources.limits.get(key).map(Quantity::as_str);
    let request = of.resources.requests.get(key).map(Quantity::as_str);
    json!({ "limit": limit, "request": request })
}

fn take_bounds(to: &mut PodTemplate, key: &str, value: &Value) -> Option<()> {
    let bounds = value.as_object()?;
    let resources = &mut to.resources;
    for (name, amounts) in [("limit", &mut resources.limits), ("request", &mut resources.requests)] {
        match bounds.get(name).and_then(Quantity::read) {
            Some(amount) => drop(amounts.insert(key.to_owned(), amount)),
            None => drop(amounts.remove(key)),
        }
    }
    Some(())
}
