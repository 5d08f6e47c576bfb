//! What labels, annotations and names mean, shared with the node agent, the webhook and the registry.

pub mod delete_names;
pub mod joined;
pub mod keys;
pub mod lifecycle;
pub mod names;
pub mod rebuilds;
pub mod records;
pub mod vm_runtime;
pub mod vm_spec;

use std::collections::BTreeMap;

/// Annotations by key, as an object carries them.
pub type Annotations = BTreeMap<String, String>;
/// Changes to annotations; `None` takes the key away. The body of a merge patch, in effect.
pub type AnnotationPatch = BTreeMap<String, Option<String>>;

/// The annotation, empty where absent: the contract never tells the two apart.
pub fn text<'a>(annotations: &'a Annotations, key: &str) -> &'a str {
    annotations.get(key).map(String::as_str).unwrap_or_default()
}

/// True only where the value is exactly `true` (contract 2).
pub fn flag(annotations: &Annotations, key: &str) -> bool {
    text(annotations, key) == "true"
}

/// The annotation as a signed decimal, 0 where absent or no number (contract 2.2).
pub fn int(annotations: &Annotations, key: &str) -> i64 {
    text(annotations, key).parse().unwrap_or_default()
}

/// The body of a merge patch that makes these changes.
pub fn merge_patch(changes: &AnnotationPatch) -> serde_json::Value {
    serde_json::json!({ "metadata": { "annotations": changes } })
}
