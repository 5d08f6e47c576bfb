//! `crds`: the manifests of both custom resources as YAML files.

use super::{Failure, Report};
use crate::core::api::crd;
use serde_json::{Map, Value};

/// Says where the files come from; the first line of each document.
const HEADER: &str = "# Generated from the types in src/core/api/schema.rs by `cocoon-operator crds`.\n";

/// Prints the files of `crds/`, one after another: each is a document that begins with three dashes.
pub fn run() -> Result<Report, Failure> {
    let files = render_all().map_err(|error| Failure::Environment(format!("cannot print the manifests: {error}")))?;
    Ok(Report::of(files.into_iter().map(|(_, text)| text).collect::<String>()))
}

/// Every file: its name and its content.
pub fn render_all() -> Result<Vec<(String, String)>, serde_saphyr::SerializeError> {
    crd::crds().iter().map(|manifest| Ok((file_name(manifest), to_yaml(manifest)?))).collect()
}

/// One manifest as a YAML document, keys sorted.
pub fn to_yaml(manifest: &Value) -> Result<String, serde_saphyr::SerializeError> {
    Ok(format!("---\n{HEADER}{}", serde_saphyr::to_string(&sorted(manifest))?))
}

/// `<group>_<plural>.yaml`, as controller-gen calls them.
fn file_name(manifest: &Value) -> String {
    let text = |pointer: &str| manifest.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    format!("{}_{}.yaml", text("/spec/group"), text("/spec/names/plural"))
}

/// The same with keys in order, whatever order the JSON library keeps.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut keys: Vec<&String> = fields.keys().collect();
            keys.sort();
            let entries = keys.into_iter().filter_map(|key| Some((key.clone(), sorted(fields.get(key)?))));
            Value::Object(entries.collect::<Map<_, _>>())
        }
        Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}
