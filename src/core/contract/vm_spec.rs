//! What we ask of a VM, as annotations on its pod (contract 2.1).

use super::names::{Role, VmName};
use super::{Annotations, flag, keys, text};
use crate::core::api::quantity::Quantity;
use crate::core::api::words::{Backend, ConnType, Os, SnapshotPolicy, ToolboxMode};

/// The annotation tuple of one VM.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct VmSpec {
    /// Name of the VM.
    pub name: VmName,
    /// Image; empty for a static toolbox.
    pub image: String,
    /// Run, clone or static; agents know the first two only.
    pub mode: ToolboxMode,
    /// Guest family.
    pub os: Os,
    /// Hypervisor.
    pub backend: Backend,
    /// Whether the node agent leaves a `latest` snapshot.
    pub snapshot_policy: SnapshotPolicy,
    /// Root volume.
    pub storage: Option<Quantity>,
    /// Network name.
    pub network: Option<String>,
    /// Override of the connection type, garbage included.
    pub conn_type: Option<ConnType>,
    /// TCP probe port, 0 for ICMP.
    pub probe_port: u16,
    /// Bypass the image cache.
    pub force_pull: bool,
    /// Page cache instead of O_DIRECT.
    pub no_direct_io: bool,
    /// We manage this VM.
    pub managed: bool,
    /// The VM it is a fork of.
    pub fork_from: Option<VmName>,
}

impl VmSpec {
    /// Writes what is set; what is empty or false is left as it was, never written as an empty value.
    pub fn write(&self, to: &mut Annotations) {
        let mut put = |key: &str, value: &str| {
            if !value.is_empty() {
                to.insert(key.to_owned(), value.to_owned());
            }
        };
        let yes = |flag: bool| if flag { "true" } else { "" };
        put(keys::VM_NAME, self.name.as_str());
        put(keys::IMAGE, &self.image);
        put(keys::MODE, self.mode.as_str());
        put(keys::OS, self.os.as_str());
        put(keys::BACKEND, self.backend.as_str());
        put(keys::SNAPSHOT_POLICY, self.snapshot_policy.as_str());
        put(keys::STORAGE, self.storage.as_ref().map(Quantity::as_str).unwrap_or_default());
        put(keys::NETWORK, self.network.as_deref().unwrap_or_default());
        put(keys::CONN_TYPE, self.conn_type.as_ref().map(ConnType::as_str).unwrap_or_default());
        put(keys::PROBE_PORT, &port_text(self.probe_port).unwrap_or_default());
        put(keys::FORCE_PULL, yes(self.force_pull));
        put(keys::NO_DIRECT_IO, yes(self.no_direct_io));
        put(keys::MANAGED, yes(self.managed));
        put(keys::FORK_FROM, self.fork_from.as_ref().map(VmName::as_str).unwrap_or_default());
    }
    /// Reads the tuple off a pod of this role; an empty word means its default (api.md 3).
    pub fn read(from: &Annotations, role: &Role) -> Self {
        let any = |key: &str| Some(text(from, key)).filter(|value| !value.is_empty());
        let mode = match (role, any(keys::MODE)) {
            (_, Some(mode)) => ToolboxMode::of(mode),
            (Role::Toolbox(_), None) => ToolboxMode::Run,
            (Role::Main | Role::SubAgent(_) | Role::Unknown, None) => ToolboxMode::Clone,
        };
        Self {
            name: text(from, keys::VM_NAME).into(),
            image: text(from, keys::IMAGE).to_owned(),
            mode,
            os: Os::of(text(from, keys::OS)),
            backend: Backend::of(text(from, keys::BACKEND)),
            snapshot_policy: SnapshotPolicy::of(text(from, keys::SNAPSHOT_POLICY)),
            storage: any(keys::STORAGE).map(Quantity::of),
            network: any(keys::NETWORK).map(str::to_owned),
            conn_type: any(keys::CONN_TYPE).map(ConnType::of),
            probe_port: text(from, keys::PROBE_PORT).parse().unwrap_or_default(),
            force_pull: flag(from, keys::FORCE_PULL),
            no_direct_io: flag(from, keys::NO_DIRECT_IO),
            managed: flag(from, keys::MANAGED),
            fork_from: any(keys::FORK_FROM).map(VmName::from),
        }
    }
}

/// A port as an annotation says it; 0 is said by absence.
pub fn port_text(port: u16) -> Option<String> {
    (port > 0).then(|| port.to_string())
}
