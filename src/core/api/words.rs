//! The closed vocabularies of the API. What a newer schema may add is carried as it came, and said to be odd.

use super::reader::Reader;
use crate::core::oddity::{Oddity, excerpt};
use serde_json::Value;
use std::fmt;

macro_rules! words {
    (
        $(#[doc = $doc:literal])+
        $name:ident, default $default:ident { $( $(#[doc = $vdoc:literal])+ $variant:ident => $text:literal, )+ }
    ) => {
        $(#[doc = $doc])+
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name {
            $( $(#[doc = $vdoc])+ $variant, )+
            /// A word that this version does not know, as it came.
            Unknown(String),
        }

        impl $name {
            /// Every word there is.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];
            /// As it stands on the wire.
            pub fn as_str(&self) -> &str {
                match self { $(Self::$variant => $text,)+ Self::Unknown(text) => text }
            }
            /// True for the words of the schema.
            pub fn is_known(&self) -> bool {
                match self { $(Self::$variant => true,)+ Self::Unknown(_) => false }
            }
            /// The word of this text; the empty text is no word and reads as the default (api.md 3).
            pub fn of(text: &str) -> Self {
                match text {
                    "" => Self::default(),
                    $($text => Self::$variant,)+
                    _ => Self::Unknown(text.to_owned()),
                }
            }
            /// The word of a field, with an oddity where it is none.
            pub fn read(reader: &Reader<'_>, key: &str, oddities: &mut Vec<Oddity>) -> Self {
                let word = Self::of(&reader.text(key, oddities));
                if let Self::Unknown(text) = &word {
                    oddities.push(Oddity::unreadable(reader.path_of(key), unknown(text, &[$($text),+])));
                }
                word
            }
        }

        impl Default for $name {
            fn default() -> Self { Self::$default }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { f.write_str(self.as_str()) }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let text = String::deserialize(from)?;
                // The empty text is carried where it was carried, and is not the default here.
                Ok(if text.is_empty() { Self::Unknown(text) } else { Self::of(&text) })
            }
        }
    };
}

fn unknown(text: &str, words: &[&str]) -> String {
    format!("\"{}\" is none of {}", excerpt(text, 60), words.join(", "))
}

words! {
    /// How an agent's VM comes to be (api.md 1.2).
    AgentMode, default Clone {
        /// Cloned from a snapshot image.
        Clone => "clone",
        /// Booted cold from an image.
        Run => "run",
    }
}
words! {
    /// How a toolbox's VM comes to be (api.md 1.4).
    ToolboxMode, default Run {
        /// Booted cold from an image.
        Run => "run",
        /// Cloned from a snapshot image.
        Clone => "clone",
        /// Managed elsewhere: we only point at it.
        Static => "static",
    }
}
words! {
    /// The guest's family (api.md 1.3).
    Os, default Linux {
        /// Any Linux.
        Linux => "linux",
        /// Windows.
        Windows => "windows",
        /// Android.
        Android => "android",
        /// macOS.
        Macos => "macos",
    }
}
words! {
    /// The hypervisor (api.md 1.3).
    Backend, default CloudHypervisor {
        /// Cloud Hypervisor.
        CloudHypervisor => "cloud-hypervisor",
        /// Firecracker.
        Firecracker => "firecracker",
    }
}
words! {
    /// Which VMs leave a `latest` snapshot when their pod goes (api.md 1.1).
    SnapshotPolicy, default Always {
        /// All of them.
        Always => "always",
        /// The main agent's.
        MainOnly => "main-only",
        /// None.
        Never => "never",
    }
}
words! {
    /// What becomes of the pods of a suspended set (api.md 1.1).
    HibernatePolicy, default Retain {
        /// They stay and keep their seats.
        Retain => "retain",
        /// They go once their snapshots are verified.
        Release => "release",
    }
}
words! {
    /// How one connects to a VM (contract 5).
    ConnType, default Ssh {
        /// Secure shell.
        Ssh => "ssh",
        /// Remote desktop.
        Rdp => "rdp",
        /// VNC.
        Vnc => "vnc",
        /// Android debug bridge.
        Adb => "adb",
    }
}
words! {
    /// What a CocoonHibernation wants of its pod (api.md 2.1).
    Desire, default Wake {
        /// VM asleep, state in the registry.
        Hibernate => "Hibernate",
        /// VM live.
        Wake => "Wake",
    }
}
words! {
    /// Where a CocoonSet stands (api.md 1.6).
    SetPhase, default Pending {
        /// The main agent is missing or not ready.
        Pending => "Pending",
        /// All desired agents and toolboxes are ready.
        Running => "Running",
        /// The main agent is ready, something else is not.
        Scaling => "Scaling",
        /// Asked to hibernate, not yet verified.
        Suspending => "Suspending",
        /// Every snapshot is verified.
        Suspended => "Suspended",
        /// A released set is being restored.
        Waking => "Waking",
        /// The main agent moves between nodes.
        Migrating => "Migrating",
        /// The main agent is lost.
        Failed => "Failed",
    }
}
words! {
    /// Where a CocoonHibernation stands (api.md 2.3).
    HibernationPhase, default Pending {
        /// The target pod or its VM name is not there.
        Pending => "Pending",
        /// Hibernation was requested.
        Hibernating => "Hibernating",
        /// The snapshot is confirmed.
        Hibernated => "Hibernated",
        /// The wake was requested.
        Waking => "Waking",
        /// The VM is live.
        Active => "Active",
        /// Timed out, or the request makes no sense.
        Failed => "Failed",
    }
}

impl ConnType {
    /// The override of a spec or annotation: absent where empty or unknown (D-71: what is no word never reaches a
    /// status, whose schema refuses it).
    pub fn known(text: &str) -> Option<Self> {
        Some(text).filter(|text| !text.is_empty()).map(Self::of).filter(Self::is_known)
    }
}

/// A phase field of a status: absent where empty, kept as it came where unknown.
pub(super) fn phase<T>(at: &Value, of: impl Fn(&str) -> T) -> Option<T> {
    at.get("phase").and_then(Value::as_str).filter(|text| !text.is_empty()).map(of)
}
