//! What no schema of a CustomResourceDefinition may be, one level of it at a time, and defaults that do not fit.

use super::crd_errors::not_among;
use super::objects::text;
use super::schema;
use super::status_error::FieldError;
use serde_json::Value;

const LIST_TYPE: &str = "x-kubernetes-list-type";
const LIST_KEYS: &str = "x-kubernetes-list-map-keys";

fn is_true(schema: &Value, field: &str) -> bool {
    schema.get(field).and_then(Value::as_bool) == Some(true)
}

/// What is wrong with this level.
pub(super) fn errors(schema: &Value, place: &str, root: bool) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if schema.get("$ref").is_some() {
        errors.push(FieldError::forbidden(format!("{place}.$ref"), "$ref is not supported"));
    }
    if is_true(schema, "uniqueItems") {
        let why = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        errors.push(FieldError::forbidden(format!("{place}.uniqueItems"), why));
    }
    let more = schema.get("additionalProperties").filter(|more| !more.is_null());
    let has_properties = schema.get("properties").and_then(Value::as_object).is_some_and(|all| !all.is_empty());
    let why = match more {
        Some(Value::Bool(false)) => Some("additionalProperties cannot be set to false"),
        Some(_) if has_properties => Some("additionalProperties and properties are mutual exclusive"),
        Some(_) if root => Some("must not be used at the root"),
        Some(_) | None => None,
    };
    errors.extend(why.map(|why| FieldError::forbidden(format!("{place}.additionalProperties"), why)));
    errors.extend(list_errors(schema, place));
    errors.extend(untyped(schema, place));
    errors
}

/// What is wrong with a list.
fn list_errors(schema: &Value, place: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let is_list = text(schema, "/type") == "array";
    let list = text(schema, &format!("/{LIST_TYPE}"));
    if is_list && schema.get("items").is_none_or(Value::is_null) {
        errors.push(FieldError::required(format!("{place}.items"), "must be specified"));
    }
    errors.extend(not_among(&format!("{place}.{LIST_TYPE}"), list, &["atomic", "map", "set"]));
    if !list.is_empty() && !is_list {
        let why = format!("must be array if {LIST_TYPE} is specified");
        errors.push(FieldError::invalid(format!("{place}.type"), &Value::from(text(schema, "/type")), &why));
    }
    let keys = schema.get(LIST_KEYS).and_then(Value::as_array).is_some_and(|keys| !keys.is_empty());
    if list == "map" && !keys {
        let why = format!("must not be empty if {LIST_TYPE} is map");
        errors.push(FieldError::required(format!("{place}.{LIST_KEYS}"), &why));
    }
    errors
}

/// Fields, entries and values below must say their type, unless they are left open.
fn untyped(schema: &Value, place: &str) -> Vec<FieldError> {
    let open = |child: &Value| {
        is_true(child, "x-kubernetes-int-or-string") || is_true(child, "x-kubernetes-preserve-unknown-fields")
    };
    let lacks = |child: &Value| child.is_object() && text(child, "/type").is_empty() && !open(child);
    let mut errors = Vec::new();
    // Below `allOf` and the like nothing has a type; a schema without one says there only what else must hold.
    if text(schema, "/type").is_empty() {
        return errors;
    }
    for (name, child) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        if lacks(child) {
            let why = "must not be empty for specified object fields";
            errors.push(FieldError::required(format!("{place}.properties[{name}].type"), why));
        }
    }
    for (field, why) in [
        ("items", "must not be empty for specified array items"),
        ("additionalProperties", "must not be empty for specified object fields"),
    ] {
        if schema.get(field).is_some_and(lacks) {
            errors.push(FieldError::required(format!("{place}.{field}.type"), why));
        }
    }
    errors
}

/// Defaults that their own schema would refuse.
pub(super) fn default_errors(of: &Value, place: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if let Some(value) = of.get("default") {
        errors.extend(schema::default_errors(of, value, &format!("{place}.default")));
    }
    for (name, child) in of.get("properties").and_then(Value::as_object).into_iter().flatten() {
        errors.extend(default_errors(child, &format!("{place}.properties[{name}]")));
    }
    for field in ["items", "additionalProperties"] {
        if let Some(child) = of.get(field).filter(|child| child.is_object()) {
            errors.extend(default_errors(child, &format!("{place}.{field}")));
        }
    }
    errors
}
