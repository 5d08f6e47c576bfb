//! The schemas of the built-in kinds: those of Kubernetes itself, which its Rust types carry along.

use k8s_openapi::api::{admissionregistration, coordination, core, events, policy, scheduling};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions;
use k8s_openapi::apimachinery::pkg::apis::meta;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

/// A generator whose references are those of OpenAPI v3.
pub(super) fn generator() -> SchemaGenerator {
    let settings = SchemaSettings::openapi3().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    settings.into_generator()
}

/// Adds the schema of a built-in kind, and of all that it refers to; gives its name.
pub(super) fn add(to: &mut SchemaGenerator, group: &str, kind: &str) -> Option<String> {
    let add = match (group, kind) {
        ("", "ConfigMap") => put::<core::v1::ConfigMap>,
        ("", "Event") => put::<core::v1::Event>,
        ("", "LimitRange") => put::<core::v1::LimitRange>,
        ("", "Namespace") => put::<core::v1::Namespace>,
        ("", "Node") => put::<core::v1::Node>,
        ("", "Pod") => put::<core::v1::Pod>,
        ("", "ResourceQuota") => put::<core::v1::ResourceQuota>,
        ("", "Secret") => put::<core::v1::Secret>,
        ("", "Service") => put::<core::v1::Service>,
        ("", "ServiceAccount") => put::<core::v1::ServiceAccount>,
        (_, "ValidatingAdmissionPolicy") => put::<admissionregistration::v1::ValidatingAdmissionPolicy>,
        (_, "ValidatingAdmissionPolicyBinding") => put::<admissionregistration::v1::ValidatingAdmissionPolicyBinding>,
        (_, "CustomResourceDefinition") => put::<apiextensions::v1::CustomResourceDefinition>,
        (_, "Lease") => put::<coordination::v1::Lease>,
        ("events.k8s.io", "Event") => put::<events::v1::Event>,
        (_, "PodDisruptionBudget") => put::<policy::v1::PodDisruptionBudget>,
        (_, "PriorityClass") => put::<scheduling::v1::PriorityClass>,
        _ => return None,
    };
    Some(add(to))
}

/// Adds the schema of an object's metadata.
pub(super) fn add_metadata(to: &mut SchemaGenerator) -> String {
    put::<meta::v1::ObjectMeta>(to)
}

fn put<T: JsonSchema>(to: &mut SchemaGenerator) -> String {
    to.subschema_for::<T>();
    T::schema_name().into_owned()
}

/// What was added, as OpenAPI 3.0 wants it: beside a reference nothing else may stand.
pub(super) fn schemas(generator: &mut SchemaGenerator) -> Map<String, Value> {
    generator.take_definitions(true).into_iter().map(|(name, schema)| (name, framed(schema))).collect()
}

fn framed(schema: Value) -> Value {
    match schema {
        Value::Object(map) => {
            let mut map: Map<String, Value> = map.into_iter().map(|(key, value)| (key, framed(value))).collect();
            // The Rust types insist on metadata; the API takes an object without.
            if let Some(required) = map.get_mut("required").and_then(Value::as_array_mut) {
                required.retain(|name| name != "metadata");
            }
            if map.get("required").and_then(Value::as_array).is_some_and(Vec::is_empty) {
                map.remove("required");
            }
            // A property may be called so, too: then it is no text.
            let reference = map.get("$ref").filter(|reference| reference.is_string()).cloned();
            if let (Some(reference), true) = (reference, map.len() > 1) {
                map.remove("$ref");
                map.insert("allOf".to_owned(), json!([{"$ref": reference}]));
            }
            Value::Object(map)
        }
        Value::Array(list) => Value::Array(list.into_iter().map(framed).collect()),
        other => other,
    }
}
