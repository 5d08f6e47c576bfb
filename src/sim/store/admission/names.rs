//! Validation of `metadata`: names, labels, annotations, finalizers.

use super::super::objects::{finalizers, meta};
use super::super::resource::Resource;
use super::super::status_error::{FieldError, FieldErrorKind};
use serde_json::{Map, Value};

/// The most that all keys and values of annotations may take.
const ANNOTATIONS_LIMIT: usize = 256 * 1024;

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
    and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
    start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or \
    '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex \
    used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const QUALIFIED: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end \
    with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
    '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

fn is_label(text: &str) -> bool {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !text.is_empty() && text.chars().all(inner) && !text.starts_with('-') && !text.ends_with('-')
}

fn is_word(text: &str) -> bool {
    let inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    text.chars().all(inner) && edge(text.chars().next()) && edge(text.chars().next_back())
}

/// What is wrong with a DNS label of at most 63 characters.
pub(in super::super) fn label_errors(field: &str, value: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if value.len() > 63 {
        errors.push(FieldError::invalid(field, &Value::from(value), "must be no more than 63 bytes"));
    }
    if !is_label(value) {
        errors.push(FieldError::invalid(field, &Value::from(value), LABEL));
    }
    errors
}

fn name_errors(resource: &Resource, name: &str) -> Vec<FieldError> {
    if resource.is_namespace() {
        return label_errors("metadata.name", name);
    }
    let mut errors = Vec::new();
    if name.len() > 253 {
        errors.push(FieldError::invalid("metadata.name", &Value::from(name), "must be no more than 253 bytes"));
    }
    if !name.split('.').all(is_label) {
        errors.push(FieldError::invalid("metadata.name", &Value::from(name), SUBDOMAIN));
    }
    errors
}

fn map_of<'a>(object: &'a Value, field: &str) -> Option<&'a Map<String, Value>> {
    object.get("metadata")?.get(field)?.as_object()
}

fn key_errors(field: &str, key: &str, errors: &mut Vec<FieldError>) {
    let (prefix, name) = key.split_once('/').map_or((None, key), |(prefix, name)| (Some(prefix), name));
    let shown = Value::from(key);
    if prefix.is_some_and(|prefix| prefix.len() > 253 || !prefix.split('.').all(is_label)) {
        errors.push(FieldError::invalid(field, &shown, &format!("prefix part {SUBDOMAIN}")));
    }
    if name.is_empty() {
        errors.push(FieldError::invalid(field, &shown, "name part must be non-empty"));
    } else if name.len() > 63 {
        errors.push(FieldError::invalid(field, &shown, "name part must be no more than 63 bytes"));
    }
    if !is_word(name) {
        errors.push(FieldError::invalid(field, &shown, QUALIFIED));
    }
}

fn label_map_errors(object: &Value, errors: &mut Vec<FieldError>) {
    for (key, value) in map_of(object, "labels").into_iter().flatten() {
        key_errors("metadata.labels", key, errors);
        let text = value.as_str().unwrap_or("");
        if text.len() > 63 {
            errors.push(FieldError::invalid("metadata.labels", value, "must be no more than 63 bytes"));
        }
        if !text.is_empty() && !is_word(text) {
            errors.push(FieldError::invalid("metadata.labels", value, LABEL_VALUE));
        }
    }
}

fn annotation_errors(object: &Value, errors: &mut Vec<FieldError>) {
    let mut size = 0;
    for (key, value) in map_of(object, "annotations").into_iter().flatten() {
        key_errors("metadata.annotations", &key.to_lowercase(), errors);
        size += key.len() + value.as_str().map_or(0, str::len);
    }
    if size > ANNOTATIONS_LIMIT {
        let message = format!("Too long: may not be more than {ANNOTATIONS_LIMIT} bytes");
        errors.push(FieldError::new(FieldErrorKind::TooLong, "metadata.annotations", message));
    }
}

/// What is wrong with an object's metadata.
pub(in super::super) fn metadata_errors(resource: &Resource, object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let name = meta(object, "name");
    if name.is_empty() {
        errors.push(FieldError::required("metadata.name", "name or generateName is required"));
    } else {
        errors.extend(name_errors(resource, name));
    }
    label_map_errors(object, &mut errors);
    annotation_errors(object, &mut errors);
    for finalizer in finalizers(object) {
        key_errors("metadata.finalizers", &finalizer, &mut errors);
    }
    errors
}

/// The warnings that a write of these finalizers earns.
pub(in super::super) fn finalizer_warnings(object: &Value) -> Vec<String> {
    const KNOWN: [&str; 3] = ["orphan", "foregroundDeletion", "kubernetes"];
    let plain = finalizers(object).into_iter().filter(|name| !name.contains('/') && !KNOWN.contains(&name.as_str()));
    plain
        .map(|name| {
            let shown = super::super::reply::quoted(&name);
            format!(
                "metadata.finalizers: {shown}: prefer a domain-qualified finalizer name to avoid accidental conflicts \
                 with other finalizer writers"
            )
        })
        .collect()
}
