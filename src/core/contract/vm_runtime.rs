//! What the node agent says of a VM, and how one connects to it (contract 2.2, 5).

use super::{Annotations, keys, text};
use crate::core::api::words::{ConnType, Os};

/// Runtime annotations of one pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct VmRuntime {
    /// VM id; empty before boot and while hibernated.
    pub id: String,
    /// Address; may come later than the id.
    pub ip: String,
    /// VNC port, 0 for none.
    pub vnc_port: u16,
}

impl VmRuntime {
    /// Reads them; what is no port number reads as 0.
    pub fn read(from: &Annotations) -> Self {
        Self {
            id: text(from, keys::VM_ID).to_owned(),
            ip: text(from, keys::VM_IP).to_owned(),
            vnc_port: text(from, keys::VNC_PORT).parse().unwrap_or_default(),
        }
    }
    /// Writes what is set, as we do for static toolboxes.
    pub fn write(&self, to: &mut Annotations) {
        let mut put = |key: &str, value: &str| {
            if !value.is_empty() {
                to.insert(key.to_owned(), value.to_owned());
            }
        };
        put(keys::VM_ID, &self.id);
        put(keys::VM_IP, &self.ip);
        put(keys::VNC_PORT, &super::vm_spec::port_text(self.vnc_port).unwrap_or_default());
    }
}

/// How one connects: override, then VNC where there is a port, then by guest. An override that is no word counts as
/// none, since the status schema would refuse it (D-71).
pub fn connection_type(stated: Option<&ConnType>, vnc_port: u16, os: &Os) -> ConnType {
    if let Some(word) = stated.filter(|word| word.is_known()) {
        return word.clone();
    }
    if vnc_port > 0 {
        return ConnType::Vnc;
    }
    match os {
        Os::Android => ConnType::Adb,
        Os::Windows => ConnType::Rdp,
        Os::Linux | Os::Macos | Os::Unknown(_) => ConnType::Ssh,
    }
}
