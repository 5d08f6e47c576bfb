//! The OpenAPI v3 document of one group and version.

use super::builtin;
use crate::sim::store::Resource;
use crate::sim::world::World;
use serde_json::{Map, Value, json};

/// The document; none where nothing of the group and version is served.
pub(super) fn document(world: &World, group: &str, version: &str) -> Option<Value> {
    let kinds: Vec<&Resource> = super::here(world, group, version).collect();
    kinds.first()?;
    let mut generator = builtin::generator();
    let metadata = builtin::add_metadata(&mut generator);
    let mut custom = Map::new();
    let mut named = Vec::new();
    for kind in &kinds {
        let name = match &kind.schema {
            None => builtin::add(&mut generator, group, &kind.kind),
            Some(schema) => {
                let name = model(kind);
                custom.insert(name.clone(), described(schema.raw(), &metadata));
                Some(name)
            }
        };
        named.extend(name.map(|name| (name, *kind)));
    }
    let mut schemas = builtin::schemas(&mut generator);
    schemas.extend(custom);
    for (name, kind) in &named {
        if let Some(schema) = schemas.get_mut(name) {
            schema["x-kubernetes-group-version-kind"] = json!([identity(kind)]);
        }
    }
    let mut paths = Map::new();
    for (name, kind) in &named {
        add_paths(&mut paths, kind, name);
    }
    Some(json!({
        "openapi": "3.0.0", "info": {"title": "Kubernetes", "version": "v1"}, "paths": paths,
        "components": {"schemas": schemas},
    }))
}

/// `io.cocoonstack.cocoonset.v1.CocoonSet`.
fn model(kind: &Resource) -> String {
    let mut parts: Vec<&str> = kind.group.split('.').rev().collect();
    parts.extend([kind.version.as_str(), kind.kind.as_str()]);
    parts.join(".")
}

fn identity(kind: &Resource) -> Value {
    json!({"group": kind.group, "version": kind.version, "kind": kind.kind})
}

/// A definition's schema with what every object has.
fn described(raw: &Value, metadata: &str) -> Value {
    let mut schema = raw.clone();
    let of = |what: &str, words: &str| json!({"type": "string", "description": format!("{what}: {words}")});
    for (field, value) in [
        ("apiVersion", of("APIVersion", "group and version of this representation.")),
        ("kind", of("Kind", "which resource this object is one of.")),
        (
            "metadata",
            json!({
                "description": "Standard object's metadata.",
                "allOf": [{"$ref": format!("#/components/schemas/{metadata}")}],
            }),
        ),
    ] {
        let known = schema.pointer(&format!("/properties/{field}/description")).is_some();
        if !known {
            crate::sim::store::objects::child_mut(&mut schema, "properties").insert(field.to_owned(), value);
        }
    }
    schema
}

fn add_paths(paths: &mut Map<String, Value>, kind: &Resource, model: &str) {
    let content = |types: &[&str]| -> Value {
        let schema = json!({"schema": {"$ref": format!("#/components/schemas/{model}")}});
        let all: Map<String, Value> = types.iter().map(|name| ((*name).to_owned(), schema.clone())).collect();
        Value::Object(all)
    };
    let answer = json!({"200": {"description": "OK", "content": content(&["application/json"])}});
    let operation = |action: &str, body: &[&str]| {
        let mut operation = json!({
            "x-kubernetes-action": action, "x-kubernetes-group-version-kind": identity(kind), "responses": answer,
        });
        if !body.is_empty() {
            operation["parameters"] =
                json!([parameter("dryRun"), parameter("fieldManager"), parameter("fieldValidation")]);
            operation["requestBody"] = json!({"content": content(body)});
        }
        operation
    };
    // Strategic merge patches are taken of built-in kinds, too; clients work them out from their own types.
    let patches = ["application/json-patch+json", "application/merge-patch+json"];
    let json_only = ["application/json"];
    let all = kind.path("");
    let collection = if kind.namespaced { kind.path("{namespace}") } else { all.clone() };
    if kind.namespaced {
        paths.insert(all, json!({"get": operation("list", &[])}));
    }
    paths.insert(
        collection.clone(),
        json!({
            "get": operation("list", &[]), "post": operation("post", &json_only),
            "delete": operation("deletecollection", &[]),
        }),
    );
    let one = json!({
        "get": operation("get", &[]), "put": operation("put", &json_only), "patch": operation("patch", &patches),
        "delete": operation("delete", &[]),
    });
    paths.insert(format!("{collection}/{{name}}"), one);
    if kind.status {
        let status = json!({
            "get": operation("get", &[]), "put": operation("put", &json_only), "patch": operation("patch", &patches),
        });
        paths.insert(format!("{collection}/{{name}}/status"), status);
    }
}

fn parameter(name: &str) -> Value {
    json!({"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": true}})
}
