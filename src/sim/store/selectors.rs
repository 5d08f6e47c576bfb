//! Label and field selectors.

use super::grammar::label_tests;
use super::resource::Resource;
use super::status_error::{Refused, bad_request};
use serde_json::Value;
use std::borrow::Cow;

/// A condition on one label or field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Test {
    Is(Vec<String>),
    IsNot(Vec<String>),
    Exists,
    Missing,
    /// A whole number above this.
    Above(i64),
    /// A whole number below this.
    Below(i64),
}

/// What a LIST or WATCH is narrowed to. The empty one fits everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    labels: Vec<(String, Test)>,
    fields: Vec<(String, Test)>,
}

impl Selector {
    /// True if it fits everything.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// A selector by labels, as in `app=a,tier in (b,c),!canary`; none if it cannot be read.
    pub fn labels(text: &str) -> Option<Self> {
        Some(Self { labels: label_tests(text).ok()?, fields: Vec::new() })
    }

    /// The selector of a request to this resource.
    pub(super) fn parse(resource: &Resource, labels: &str, fields: &str) -> Result<Self, Refused> {
        let labels = label_tests(labels).map_err(|why| bad_request(&why))?;
        let mut selector = Self { labels, fields: Vec::new() };
        for part in fields.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (field, test) = match part.split_once("!=") {
                Some((field, value)) => (field, Test::IsNot(vec![value.to_owned()])),
                None => match part.split_once("==").or_else(|| part.split_once('=')) {
                    Some((field, value)) => (field, Test::Is(vec![value.to_owned()])),
                    None => {
                        return Err(bad_request(&format!("invalid selector: '{fields}'; can't understand '{part}'")));
                    }
                },
            };
            if !is_supported(resource, field) {
                return Err(bad_request(&not_selectable(resource, field)));
            }
            selector.fields.push((super::events::stored_field(resource, field), test));
        }
        Ok(selector)
    }

    /// True if the object is inside.
    pub fn matches(&self, object: &Value) -> bool {
        let label = |key: &str| object.get("metadata")?.get("labels")?.get(key)?.as_str();
        let field = |path: &str| shown(object.pointer(&format!("/{}", path.replace('.', "/"))));
        self.labels.iter().all(|(key, test)| test.holds(label(key)))
            && self.fields.iter().all(|(path, test)| test.holds(Some(&field(path))))
    }
}

/// A field's value as selectors compare it; what is not there is empty.
fn shown(value: Option<&Value>) -> Cow<'_, str> {
    match value {
        Some(Value::String(text)) => Cow::Borrowed(text),
        Some(one @ (Value::Bool(_) | Value::Number(_))) => Cow::Owned(one.to_string()),
        Some(Value::Null | Value::Array(_) | Value::Object(_)) | None => Cow::Borrowed(""),
    }
}

impl Test {
    fn holds(&self, value: Option<&str>) -> bool {
        match self {
            Self::Is(wanted) => value.is_some_and(|value| wanted.iter().any(|want| want == value)),
            Self::IsNot(unwanted) => value.is_none_or(|value| unwanted.iter().all(|not| not != value)),
            Self::Exists => value.is_some(),
            Self::Missing => value.is_none(),
            Self::Above(bound) => value.and_then(|value| value.parse().ok()).is_some_and(|value: i64| value > *bound),
            Self::Below(bound) => value.and_then(|value| value.parse().ok()).is_some_and(|value: i64| value < *bound),
        }
    }
}

/// Kinds with fields of their own, and custom ones, name the field alone.
fn not_selectable(resource: &Resource, field: &str) -> String {
    const OWN_WORDS: [&str; 6] = ["pods", "nodes", "namespaces", "events", "secrets", "services"];
    if resource.is_custom() || OWN_WORDS.contains(&resource.plural.as_str()) {
        return format!("field label not supported: {field}");
    }
    let shown = super::reply::quoted(field);
    format!("{shown} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"")
}

fn is_supported(resource: &Resource, field: &str) -> bool {
    let more: &[&str] = match resource.plural.as_str() {
        "pods" => &[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "status.phase",
            "status.podIP",
        ],
        "namespaces" => &["status.phase"],
        "secrets" => &["type"],
        "nodes" => &["spec.unschedulable"],
        "events" => &[
            "involvedObject.apiVersion",
            "involvedObject.fieldPath",
            "involvedObject.kind",
            "involvedObject.name",
            "involvedObject.namespace",
            "involvedObject.resourceVersion",
            "involvedObject.uid",
            "regarding.apiVersion",
            "regarding.fieldPath",
            "regarding.kind",
            "regarding.name",
            "regarding.namespace",
            "regarding.resourceVersion",
            "regarding.uid",
            "reason",
            "reportingComponent",
            "reportingController",
            "type",
        ],
        _ => &[],
    };
    let own = resource.selectable.iter().any(|path| path == field);
    own || field == "metadata.name" || (resource.namespaced && field == "metadata.namespace") || more.contains(&field)
}
