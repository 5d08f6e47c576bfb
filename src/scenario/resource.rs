//! The kinds of the API that a story can speak of by name.

use schemars::JsonSchema;
use serde::Deserialize;

/// What stories patch and refuse.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Resource {
    /// CocoonSets.
    Cocoonsets,
    /// The status of CocoonSets.
    CocoonsetsStatus,
    /// CocoonHibernations.
    Cocoonhibernations,
    /// Pods.
    Pods,
    /// Namespaces.
    Namespaces,
    /// Nodes.
    Nodes,
    /// Events, as the operator writes them.
    Events,
    /// Leases, in the operator's namespace.
    Leases,
}

impl Resource {
    /// As the API spells it.
    pub const fn plural(self) -> &'static str {
        match self {
            Self::Cocoonsets | Self::CocoonsetsStatus => "cocoonsets",
            Self::Cocoonhibernations => "cocoonhibernations",
            Self::Pods => "pods",
            Self::Namespaces => "namespaces",
            Self::Nodes => "nodes",
            Self::Events => "events",
            Self::Leases => "leases",
        }
    }
    /// With its group, as rules and the store spell it.
    pub const fn qualified(self) -> &'static str {
        match self {
            Self::Cocoonsets => "cocoonsets.cocoonset.cocoonstack.io",
            Self::CocoonsetsStatus => "cocoonsets.cocoonset.cocoonstack.io/status",
            Self::Cocoonhibernations => "cocoonhibernations.cocoonset.cocoonstack.io",
            Self::Pods => "pods",
            Self::Namespaces => "namespaces",
            Self::Nodes => "nodes",
            Self::Events => "events.events.k8s.io",
            Self::Leases => "leases.coordination.k8s.io",
        }
    }
}
