//! Validation of `metadata`: names, labels, annotations, finalizers.

use super::super::objects::{finalizers, meta, owners, text};
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
const EARLY_LABEL: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an \
    alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for \
    validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or \
    '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex \
    used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const WORD: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
    alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
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

/// What is wrong with a DNS label that begins with a letter, in words.
pub(in super::super) fn early_label_details(value: &str) -> Vec<&'static str> {
    let mut details = Vec::new();
    if value.len() > 63 {
        details.push("must be no more than 63 bytes");
    }
    if !is_label(value) || value.starts_with(|c: char| c.is_ascii_digit()) {
        details.push(EARLY_LABEL);
    }
    details
}

fn name_errors(resource: &Resource, name: &str) -> Vec<FieldError> {
    if resource.is_namespace() {
        return label_errors("metadata.name", name);
    }
    subdomain_errors("metadata.name", name)
}

fn map_of<'a>(object: &'a Value, field: &str) -> Option<&'a Map<String, Value>> {
    object.get("metadata")?.get(field)?.as_object()
}

/// What is wrong with a qualified name, in words.
pub(in super::super) fn key_details(key: &str) -> Vec<String> {
    let parts: Vec<&str> = key.split('/').collect();
    let (prefix, name) = match parts.as_slice() {
        [name] => (None, *name),
        [prefix, name] => (Some(*prefix), *name),
        _ => {
            return vec![format!(
                "a valid label key {WORD} with an optional DNS subdomain prefix and '/' (e.g. \
                                  'example.com/MyName')"
            )];
        }
    };
    let mut details = Vec::new();
    match prefix {
        Some("") => details.push("prefix part must be non-empty".to_owned()),
        Some(prefix) if !prefix.split('.').all(is_label) => details.push(format!("prefix part {SUBDOMAIN}")),
        Some(prefix) if prefix.len() > 253 => details.push("prefix part must be no more than 253 bytes".to_owned()),
        _ => {}
    }
    if name.is_empty() {
        details.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        details.push("name part must be no more than 63 bytes".to_owned());
    }
    if !is_word(name) {
        details.push(format!("name part {WORD}"));
    }
    details
}

/// What is wrong with a label's value, in words.
pub(in super::super) fn value_details(value: &str) -> Vec<String> {
    let mut details = Vec::new();
    if value.len() > 63 {
        details.push("must be no more than 63 bytes".to_owned());
    }
    if !value.is_empty() && !is_word(value) {
        details.push(LABEL_VALUE.to_owned());
    }
    details
}

/// What is wrong with a DNS subdomain.
pub(in super::super) fn subdomain_errors(field: &str, value: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if value.len() > 253 {
        errors.push(FieldError::invalid(field, &Value::from(value), "must be no more than 253 bytes"));
    }
    if !value.split('.').all(is_label) {
        errors.push(FieldError::invalid(field, &Value::from(value), SUBDOMAIN));
    }
    errors
}

fn key_errors(field: &str, key: &str, errors: &mut Vec<FieldError>) {
    let shown = Value::from(key);
    errors.extend(key_details(key).iter().map(|why| FieldError::invalid(field, &shown, why)));
}

fn label_map_errors(object: &Value, errors: &mut Vec<FieldError>) {
    for (key, value) in map_of(object, "labels").into_iter().flatten() {
        key_errors("metadata.labels", key, errors);
        let text = value.as_str().unwrap_or("");
        errors.extend(value_details(text).iter().map(|why| FieldError::invalid("metadata.labels", value, why)));
    }
}

/// What is wrong with the owners: every one has to be named in full, and only one may be the controller.
fn owner_errors(object: &Value, errors: &mut Vec<FieldError>) {
    let mut controller: Option<&str> = None;
    for (at, owner) in owners(object).iter().enumerate() {
        let own = |field: &str| text(owner, &format!("/{field}"));
        let empty = |field: &str, shown: &str| {
            FieldError::invalid(format!("metadata.ownerReferences.{field}"), &Value::from(shown), "must not be empty")
        };
        if own("apiVersion").rsplit('/').next().unwrap_or("").is_empty() {
            errors.push(FieldError::invalid(
                "metadata.ownerReferences.apiVersion",
                &Value::from(own("apiVersion")),
                "version must not be empty",
            ));
        }
        errors.extend(["kind", "name", "uid"].into_iter().filter(|field| own(field).is_empty()).map(|f| empty(f, "")));
        if owner.get("controller").and_then(Value::as_bool) == Some(true) {
            if let Some(other) = controller {
                let detail = format!(
                    "Only one reference can have Controller set to true. Found \"true\" in references for {other} and {}",
                    own("name")
                );
                errors.push(FieldError::invalid("metadata.ownerReferences", &Value::from(at), &detail));
            }
            controller = Some(own("name"));
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

/// Finalizers that need no domain.
const STANDARD: [&str; 3] = ["orphan", "foregroundDeletion", "kubernetes"];

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
    owner_errors(object, &mut errors);
    for finalizer in finalizers(object) {
        key_errors("metadata.finalizers", &finalizer, &mut errors);
    }
    // The core group looks twice.
    for (at, finalizer) in
        finalizers(object).iter().enumerate().filter(|_| resource.group.is_empty() || resource.plural == "events")
    {
        if !finalizer.contains('/') && !STANDARD.contains(&finalizer.as_str()) {
            let detail = "name is neither a standard finalizer name nor is it fully qualified";
            errors.push(FieldError::invalid(
                format!("metadata.finalizers[{at}]"),
                &Value::from(finalizer.as_str()),
                detail,
            ));
        }
    }
    errors
}

/// The warnings that a write of these finalizers earns.
pub(in super::super) fn finalizer_warnings(object: &Value) -> Vec<String> {
    let plain = finalizers(object).into_iter().filter(|name| !name.contains('/') && !STANDARD.contains(&name.as_str()));
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
