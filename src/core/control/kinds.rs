//! What is watched, and what a watch can say.

use crate::core::contract::keys;
use serde_json::Value;

/// What is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// `cocoonset.cocoonstack.io/v1` cocoonsets.
    CocoonSets,
    /// `cocoonset.cocoonstack.io/v1` cocoonhibernations.
    CocoonHibernations,
    /// Pods that bear the label of a set.
    Pods,
    /// Namespaces.
    Namespaces,
    /// Nodes.
    Nodes,
}

impl Kind {
    /// All of them, in the order in which they are listed at start.
    pub const ALL: [Self; 5] = [Self::Namespaces, Self::Nodes, Self::CocoonHibernations, Self::Pods, Self::CocoonSets];
    /// The resource, for metrics and logs.
    pub const fn resource(self) -> &'static str {
        match self {
            Self::CocoonSets => "cocoonsets",
            Self::CocoonHibernations => "cocoonhibernations",
            Self::Pods => "pods",
            Self::Namespaces => "namespaces",
            Self::Nodes => "nodes",
        }
    }
    /// `apiVersion` and `kind` of its objects.
    pub const fn type_meta(self) -> (&'static str, &'static str) {
        match self {
            Self::CocoonSets => (keys::API_VERSION, keys::SET_KIND),
            Self::CocoonHibernations => (keys::API_VERSION, keys::HIBERNATION_KIND),
            Self::Pods => ("v1", "Pod"),
            Self::Namespaces => ("v1", "Namespace"),
            Self::Nodes => ("v1", "Node"),
        }
    }
    /// The operator runs on where this one may not be watched (decision R26).
    pub const fn is_optional(self) -> bool {
        match self {
            Self::Namespaces | Self::Nodes => true,
            Self::CocoonSets | Self::CocoonHibernations | Self::Pods => false,
        }
    }
}

/// What a watch, or the list before it, says.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// Everything there is; what is not named is gone.
    Listed {
        /// The objects.
        items: Vec<Value>,
        /// The version of the list.
        version: String,
    },
    /// This object is there, as of now.
    Applied(Value),
    /// This object is gone, or has left the selection.
    Deleted(Value),
    /// Nothing happened up to this version.
    Bookmark(String),
    /// It may not be watched; only of kinds that are optional.
    Refused,
}
