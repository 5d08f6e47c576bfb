//! The CRDs are those of the platform, apart from descriptions and a few additions, and the files are up to date (R25).

use cocoon_operator::core::api::crd::crds;
use serde_json::{Map, Value, json};
use std::path::Path;

const SCHEMA: &str = "/spec/versions/0/schema/openAPIV3Schema";

/// What we add to the reference, and nothing else: where, and what the reference must be given to be equal.
fn with_additions(mut reference: Value) -> Value {
    let names = reference.pointer_mut("/spec/names/shortNames").and_then(Value::as_array_mut).unwrap();
    if names.contains(&json!("cs")) {
        names.push(json!("cset"));
        for entries in ["agents", "toolboxes"] {
            let at = format!("{SCHEMA}/properties/status/properties/{entries}/items/properties");
            let entry = reference.pointer_mut(&at).and_then(Value::as_object_mut).unwrap();
            assert!(entry.insert("nodeName".to_owned(), json!({ "type": "string" })).is_none());
        }
        let status = reference.pointer_mut(&format!("{SCHEMA}/properties/status/properties")).unwrap();
        let status = status.as_object_mut().unwrap();
        assert!(status.insert("subAgents".to_owned(), json!({ "type": "integer", "format": "int32" })).is_none());
        assert!(status.insert("selector".to_owned(), json!({ "type": "string" })).is_none());
        let subresources = reference.pointer_mut("/spec/versions/0/subresources").unwrap();
        subresources["scale"] = json!({
            "labelSelectorPath": ".status.selector", "specReplicasPath": ".spec.agent.replicas",
            "statusReplicasPath": ".status.subAgents",
        });
    }
    // Its tool's mark: ours are made by another.
    reference.pointer_mut("/metadata").and_then(Value::as_object_mut).unwrap().remove("annotations").unwrap();
    reference
}

/// The schema without its descriptions; a *property* called so would be kept.
fn undescribed(value: &Value, names: bool) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(key, value)| names || !(*key == "description" && value.is_string()));
            let kept = kept.map(|(key, value)| (key.clone(), undescribed(value, !names && key == "properties")));
            Value::Object(kept.collect::<Map<_, _>>())
        }
        Value::Array(items) => Value::Array(items.iter().map(|item| undescribed(item, false)).collect()),
        _ => value.clone(),
    }
}

fn reference(plural: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/crds-reference").join(format!("{plural}.json"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn both_are_the_reference_and_the_additions() {
    let ours = crds();
    assert_eq!(ours.len(), 2);
    for crd in ours {
        let plural = crd.pointer("/spec/names/plural").and_then(Value::as_str).unwrap().to_owned();
        let (ours, wanted) = (undescribed(&crd, false), with_additions(reference(&plural)));
        assert_eq!(serde_json::to_string_pretty(&ours).unwrap(), serde_json::to_string_pretty(&wanted).unwrap());
    }
}

#[test]
fn every_field_is_described() {
    fn walk(schema: &Value, path: &str, missing: &mut Vec<String>) {
        for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let path = format!("{path}.{name}");
            if property.get("description").and_then(Value::as_str).is_none_or(str::is_empty) && path != ".metadata" {
                missing.push(path.clone());
            }
            walk(property, &path, missing);
        }
        if let Some(items) = schema.get("items") {
            walk(items, &format!("{path}[]"), missing);
        }
    }
    let mut missing = Vec::new();
    for crd in crds() {
        let root = crd.pointer(SCHEMA).unwrap();
        assert!(root.get("description").is_some());
        walk(root, "", &mut missing);
    }
    assert_eq!(missing, Vec::<String>::new());
}

#[test]
fn nothing_is_nullable_titled_or_closed() {
    for crd in crds() {
        let text = crd.to_string();
        for word in ["nullable", "\"title\"", "\"null\"", "$ref", "$schema", "oneOf", "additionalProperties\":false"] {
            assert!(!text.contains(word), "{word} in {text}");
        }
        assert_eq!(crd.pointer(&format!("{SCHEMA}/required")), None, "spec may be absent");
    }
}

#[cfg(feature = "cli")]
#[test]
fn the_files_are_in_sync() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("crds");
    let files = cocoon_operator::cli::crds::render_all().unwrap();
    assert_eq!(files.len(), 2);
    for ((name, text), crd) in files.into_iter().zip(crds()) {
        let path = root.join(&name);
        if std::env::var_os("UPDATE_CRDS").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        let stored = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(stored, text, "{name} is out of date: UPDATE_CRDS=1 cargo test --test crds");
        let back: Value = serde_saphyr::from_str(&stored).unwrap();
        assert_eq!(back, crd, "{name} reads back as what was written");
    }
}
