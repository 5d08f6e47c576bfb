//! What is wrong with the names, versions, columns and subresources of a CustomResourceDefinition.

use super::admission::{early_label_details, subdomain_errors};
use super::objects::text;
use super::status_error::FieldError;
use serde_json::Value;

const COLUMN_TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
const COLUMN_FORMATS: [&str; 8] = ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];

/// What is wrong beside the schemas.
pub(super) fn errors(crd: &Value, versions: &[Value]) -> Vec<FieldError> {
    let mut errors = group_errors(text(crd, "/spec/group"));
    errors.extend(name_errors(crd.pointer("/spec/names").unwrap_or(&Value::Null)));
    if crd.pointer("/spec/preserveUnknownFields").and_then(Value::as_bool) == Some(true) {
        let why =
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
        errors.push(FieldError::invalid("spec.preserveUnknownFields", &Value::Bool(true), why));
    }
    for (at, version) in versions.iter().enumerate() {
        let place = format!("spec.versions[{at}]");
        errors.extend(label_errors(&format!("{place}.name"), text(version, "/name")));
        let columns = version.get("additionalPrinterColumns").and_then(Value::as_array);
        for (at, column) in columns.into_iter().flatten().enumerate() {
            errors.extend(column_errors(column, &format!("{place}.additionalPrinterColumns[{at}]")));
        }
        let scale = version.pointer("/subresources/scale");
        errors
            .extend(scale.map(|scale| scale_errors(scale, &format!("{place}.subresources.scale"))).unwrap_or_default());
    }
    errors
}

fn group_errors(group: &str) -> Vec<FieldError> {
    if group.is_empty() {
        return vec![FieldError::required("spec.group", "")];
    }
    let mut errors = subdomain_errors("spec.group", group);
    if errors.is_empty() && !group.contains('.') {
        let why = "should be a domain with at least one dot";
        errors.push(FieldError::invalid("spec.group", &Value::from(group), why));
    }
    errors
}

fn label_errors(place: &str, value: &str) -> Vec<FieldError> {
    let details = early_label_details(value);
    details.into_iter().map(|why| FieldError::invalid(place, &Value::from(value), why)).collect()
}

fn name_errors(names: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for field in ["plural", "singular"] {
        let value = text(names, &format!("/{field}"));
        let place = format!("spec.names.{field}");
        match (field, value) {
            ("plural", "") => errors.push(FieldError::required(place, "")),
            (_, "") => {}
            (_, value) => errors.extend(label_errors(&place, value)),
        }
    }
    for field in ["kind", "listKind"] {
        let value = text(names, &format!("/{field}"));
        let details = if value.is_empty() { Vec::new() } else { early_label_details(&value.to_lowercase()) };
        errors.extend(details.into_iter().map(|why| {
            let why = format!("may have mixed case, but should otherwise match: {why}");
            FieldError::invalid(format!("spec.names.{field}"), &Value::from(value), &why)
        }));
    }
    let (kind, list) = (text(names, "/kind"), text(names, "/listKind"));
    if !kind.is_empty() && kind == list {
        let why = "kind and listKind may not be the same";
        errors.push(FieldError::invalid("spec.names.listKind", &Value::from(list), why));
    }
    for field in ["shortNames", "categories"] {
        let all = names.get(field).and_then(Value::as_array);
        for (at, name) in all.into_iter().flatten().enumerate() {
            errors.extend(label_errors(&format!("spec.names.{field}[{at}]"), name.as_str().unwrap_or_default()));
        }
    }
    errors
}

fn path_errors(place: &str, path: &str) -> Vec<FieldError> {
    let why = "must be a simple json path starting with .";
    let fits = path.starts_with('.');
    if fits { Vec::new() } else { vec![FieldError::invalid(place, &Value::from(path), why)] }
}

fn column_errors(column: &Value, place: &str) -> Vec<FieldError> {
    let of = |field: &str| text(column, &format!("/{field}"));
    let mut errors = Vec::new();
    if of("name").is_empty() {
        errors.push(FieldError::required(format!("{place}.name"), ""));
    }
    let why = format!("must be one of {}", COLUMN_TYPES.join(","));
    match of("type") {
        "" => errors.push(FieldError::required(format!("{place}.type"), &why)),
        known if COLUMN_TYPES.contains(&known) => {}
        other => errors.push(FieldError::invalid(format!("{place}.type"), &Value::from(other), &why)),
    }
    let format = of("format");
    if !format.is_empty() && !COLUMN_FORMATS.contains(&format) {
        let why = format!("must be one of {}", COLUMN_FORMATS.join(","));
        errors.push(FieldError::invalid(format!("{place}.format"), &Value::from(format), &why));
    }
    match of("jsonPath") {
        "" => errors.push(FieldError::required(format!("{place}.jsonPath"), "")),
        path => errors.extend(path_errors(&format!("{place}.jsonPath"), path)),
    }
    errors
}

fn scale_errors(scale: &Value, place: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let fields: [(&str, &[&str], &str); 3] = [
        ("specReplicasPath", &[".spec."], "should be a json path under .spec"),
        ("statusReplicasPath", &[".status."], "should be a json path under .status"),
        ("labelSelectorPath", &[".spec.", ".status."], "should be a json path under either .spec or .status"),
    ];
    for (field, roots, why) in fields {
        let (place, path) = (format!("{place}.{field}"), text(scale, &format!("/{field}")));
        if path.is_empty() {
            errors.extend((field != "labelSelectorPath").then(|| FieldError::required(place, "")));
            continue;
        }
        let wrong = path_errors(&place, path);
        if wrong.is_empty() && !roots.iter().any(|root| path.starts_with(root)) {
            errors.push(FieldError::invalid(place, &Value::from(path), why));
        }
        errors.extend(wrong);
    }
    errors
}
