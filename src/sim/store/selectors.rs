//! Label and field selectors.

use super::objects::text;
use super::resource::Resource;
use super::status_error::{Refused, bad_request};
use serde_json::Value;

/// A condition on one label or field.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Test {
    Is(Vec<String>),
    IsNot(Vec<String>),
    Exists,
    Missing,
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
        Some(Self { labels: split_top(text).into_iter().map(label_test).collect::<Option<_>>()?, fields: Vec::new() })
    }

    /// The selector of a request to this resource.
    pub(super) fn parse(resource: &Resource, labels: &str, fields: &str) -> Result<Self, Refused> {
        let Some(mut selector) = Self::labels(labels) else {
            return Err(bad_request(&format!("unable to parse requirement: {labels}")));
        };
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
                let what = format!("{}, Resource={}", resource.api_version(), resource.plural);
                return Err(bad_request(&format!(
                    "Unable to find \"{what}\" that match label selector \"{labels}\", field selector \"{fields}\": \
                     field label not supported: {field}"
                )));
            }
            selector.fields.push((super::events::stored_field(resource, field), test));
        }
        Ok(selector)
    }

    /// True if the object is inside.
    pub fn matches(&self, object: &Value) -> bool {
        let label = |key: &str| object.get("metadata")?.get("labels")?.get(key)?.as_str();
        let field = |path: &str| Some(text(object, &format!("/{}", path.replace('.', "/"))));
        self.labels.iter().all(|(key, test)| test.holds(label(key)))
            && self.fields.iter().all(|(path, test)| test.holds(field(path)))
    }
}

impl Test {
    fn holds(&self, value: Option<&str>) -> bool {
        match self {
            Self::Is(wanted) => value.is_some_and(|value| wanted.iter().any(|want| want == value)),
            Self::IsNot(unwanted) => value.is_none_or(|value| unwanted.iter().all(|not| not != value)),
            Self::Exists => value.is_some(),
            Self::Missing => value.is_none(),
        }
    }
}

/// Splits at commas outside parentheses.
fn split_top(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut depth, mut from) = (0_i32, 0);
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(text.get(from..at).unwrap_or(""));
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text.get(from..).unwrap_or(""));
    parts.into_iter().map(str::trim).filter(|part| !part.is_empty()).collect()
}

fn label_test(part: &str) -> Option<(String, Test)> {
    let values = |list: &str| -> Option<Vec<String>> {
        let inner = list.trim().strip_prefix('(')?.strip_suffix(')')?;
        Some(inner.split(',').map(|value| value.trim().to_owned()).collect())
    };
    if let Some(key) = part.strip_prefix('!') {
        return Some((key.trim().to_owned(), Test::Missing));
    }
    if let Some((key, list)) =
        part.split_once(" notin ").or_else(|| part.split_once(" notin(").map(|_| split_word(part, "notin")))
    {
        return Some((key.trim().to_owned(), Test::IsNot(values(list)?)));
    }
    if let Some((key, list)) =
        part.split_once(" in ").or_else(|| part.split_once(" in(").map(|_| split_word(part, "in")))
    {
        return Some((key.trim().to_owned(), Test::Is(values(list)?)));
    }
    if let Some((key, value)) = part.split_once("!=") {
        return Some((key.trim().to_owned(), Test::IsNot(vec![value.trim().to_owned()])));
    }
    if let Some((key, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
        return Some((key.trim().to_owned(), Test::Is(vec![value.trim().to_owned()])));
    }
    let plain = !part.contains([' ', '(', ')', '<', '>']);
    plain.then(|| (part.to_owned(), Test::Exists))
}

/// `key in(a)` split into `key` and `(a)`.
fn split_word<'a>(part: &'a str, word: &str) -> (&'a str, &'a str) {
    let at = part.find(&format!(" {word}(")).unwrap_or(0);
    (part.get(..at).unwrap_or(""), part.get(at + 1 + word.len()..).unwrap_or(""))
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
    field == "metadata.name" || (resource.namespaced && field == "metadata.namespace") || more.contains(&field)
}
