//! Which object to look at, and how urgently.

use super::queue::Priority;
use crate::core::meta;
use serde_json::Value;

/// Namespace and name of a custom resource.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Empty for what has none.
    pub namespace: String,
    /// Name.
    pub name: String,
}

/// One wish to look at an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wake {
    /// Which.
    pub key: Key,
    /// How urgently.
    pub priority: Priority,
}

impl Key {
    /// By namespace and name.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.to_owned(), name: name.to_owned() }
    }
    /// Of an object as returned.
    pub fn of(object: &Value) -> Self {
        Self { namespace: meta::text(object, "namespace"), name: meta::text(object, "name") }
    }
    /// Not after any key of this namespace.
    pub fn first_of(namespace: &str) -> Self {
        Self::new(namespace, "")
    }
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.namespace.is_empty() { f.write_str(&self.name) } else { write!(f, "{}/{}", self.namespace, self.name) }
    }
}
