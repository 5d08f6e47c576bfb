//! The manifests of both CRDs, from the types in `schema`, brought to what the API server knows as structural (R25).

use super::schema::{CocoonHibernation, CocoonSet};
use crate::core::contract::keys::{GROUP, HIBERNATION_KIND, SET_KIND, VERSION};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

/// Both manifests, requests first: in the order of their names.
pub fn crds() -> Vec<Value> {
    vec![
        manifest(&Kind {
            name: HIBERNATION_KIND,
            plural: "cocoonhibernations",
            singular: "cocoonhibernation",
            short: &["ch", "cocoonhibernations"],
            columns: &[
                ("Pod", "string", ".spec.podRef.name"),
                ("Desire", "string", ".spec.desire"),
                ("Phase", "string", ".status.phase"),
                ("Age", "date", ".metadata.creationTimestamp"),
            ],
            subresources: json!({ "status": {} }),
            schema: schema_of::<CocoonHibernation>(),
        }),
        manifest(&Kind {
            name: SET_KIND,
            plural: "cocoonsets",
            singular: "cocoonset",
            // kubectl takes `cs` for ComponentStatus; `cset` is free (D-82).
            short: &["cs", "cocoonsets", "cset"],
            columns: &[
                ("Phase", "string", ".status.phase"),
                ("Ready", "integer", ".status.readyAgents"),
                ("Desired", "integer", ".status.desiredAgents"),
                ("Age", "date", ".metadata.creationTimestamp"),
            ],
            // What is scaled is the sub-agents: there is one main agent whatever the number.
            subresources: json!({
                "scale": {
                    "labelSelectorPath": ".status.selector",
                    "specReplicasPath": ".spec.agent.replicas",
                    "statusReplicasPath": ".status.subAgents",
                },
                "status": {},
            }),
            schema: schema_of::<CocoonSet>(),
        }),
    ]
}

struct Kind {
    name: &'static str,
    plural: &'static str,
    singular: &'static str,
    short: &'static [&'static str],
    columns: &'static [(&'static str, &'static str, &'static str)],
    subresources: Value,
    schema: Value,
}

fn manifest(kind: &Kind) -> Value {
    let columns: Vec<Value> =
        kind.columns.iter().map(|(name, of, path)| json!({ "name": name, "type": of, "jsonPath": path })).collect();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{}.{GROUP}", kind.plural) },
        "spec": {
            "group": GROUP,
            "names": {
                "categories": ["cocoon"],
                "kind": kind.name,
                "listKind": format!("{}List", kind.name),
                "plural": kind.plural,
                "shortNames": kind.short,
                "singular": kind.singular,
            },
            "scope": "Namespaced",
            "versions": [{
                "additionalPrinterColumns": columns,
                "name": VERSION,
                "schema": { "openAPIV3Schema": kind.schema },
                "served": true,
                "storage": true,
                "subresources": kind.subresources,
            }],
        },
    })
}

fn schema_of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::openapi3().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = structural(&settings.into_generator().into_root_schema_for::<T>().to_value());
    let meta = json!({
        "apiVersion": { "type": "string", "description": "Group and version of this representation." },
        "kind": { "type": "string", "description": "Kind of the resource." },
        "metadata": { "type": "object" },
    });
    if let (Some(Value::Object(properties)), Value::Object(meta)) = (schema.get_mut("properties"), meta) {
        properties.extend(meta);
    }
    schema
}

/// The same schema as the API server wants it: no null beside a type, no titles, no closed objects, and no word of
/// what serde would fill in by itself; `required` sorted.
fn structural(schema: &Value) -> Value {
    let Value::Object(given) = schema else { return schema.clone() };
    let mut fields = Map::new();
    // "This or null" says no more than "this": a field of a custom resource may be left out anyway.
    if let Some(Value::Object(one)) = given.get("anyOf").and_then(but_for_null) {
        fields.extend(one.clone());
        fields.extend(given.iter().filter(|(key, _)| *key != "anyOf").map(|(key, value)| (key.clone(), value.clone())));
        return structural(&Value::Object(fields));
    }
    for (key, value) in given {
        match (key.as_str(), value) {
            ("$schema" | "title" | "nullable" | "additionalProperties", Value::String(_) | Value::Bool(_)) => {}
            ("properties", Value::Object(properties)) => {
                let kept = properties.iter().map(|(name, schema)| (name.clone(), structural(schema)));
                fields.insert(key.clone(), Value::Object(kept.collect()));
            }
            ("items" | "additionalProperties", _) => drop(fields.insert(key.clone(), structural(value))),
            ("required", Value::Array(names)) => {
                let mut names = names.clone();
                names.sort_by(|a, b| a.as_str().cmp(&b.as_str()));
                fields.insert(key.clone(), Value::Array(names));
            }
            ("enum", Value::Array(words)) => {
                let words = words.iter().filter(|word| !word.is_null()).cloned();
                fields.insert(key.clone(), words.collect());
            }
            (_, _) => drop(fields.insert(key.clone(), value.clone())),
        }
    }
    Value::Object(fields)
}

/// The one alternative beside null, where there are just these two.
fn but_for_null(alternatives: &Value) -> Option<&Value> {
    let is_null = |one: &Value| one.get("enum").is_some_and(|words| *words == json!([null]));
    match alternatives.as_array()?.as_slice() {
        [one, null] | [null, one] if is_null(null) && !is_null(one) => Some(one),
        _ => None,
    }
}
