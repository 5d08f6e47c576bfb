//! Tables: the columns of each kind, and an object's cells in them, as the API server prints them.

mod age;
mod builtin;
mod jsonpath;
mod more;
mod pods;

use crate::sim::store::objects::{meta, text};
use crate::sim::store::{Column, Resource};
use age::since;
use jiff::Timestamp;
use serde_json::{Value, json};

/// A column of a built-in kind: heading, type, priority (above 0: only in wide tables).
type Heading = (&'static str, &'static str, i64);
/// An object's cells at this time.
type Cells = fn(&Value, Timestamp) -> Vec<Value>;

/// How a kind is printed.
#[derive(Clone, Debug)]
pub(super) enum Printer {
    /// Headings after the name, unless they bring it themselves, and cells.
    Builtin(&'static [Heading], Cells),
    /// What a CustomResourceDefinition says.
    Custom(Vec<Column>),
}

impl Printer {
    /// The printer of this resource.
    pub fn of(resource: &Resource) -> Self {
        if resource.is_custom() {
            return Self::Custom(resource.columns.clone());
        }
        let (headings, cells) = builtin::printer(&resource.plural);
        Self::Builtin(headings, cells)
    }

    /// `columnDefinitions`.
    pub fn columns(&self) -> Value {
        let column = |name: &str, kind: &str, priority: i64, description: &str| {
            let format = if name == "Name" { "name" } else { "" };
            json!({"name": name, "type": kind, "format": format, "description": description, "priority": priority})
        };
        match self {
            Self::Builtin(headings, _) => {
                headings.iter().map(|(name, kind, priority)| column(name, kind, *priority, "")).collect()
            }
            Self::Custom(columns) => {
                let first = column("Name", "string", 0, "Name must be unique within a namespace.");
                let rest = columns.iter().map(|one| column(&one.name, &one.kind, one.priority, &one.description));
                std::iter::once(first).chain(rest).collect()
            }
        }
    }

    /// The cells of one object.
    pub fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        match self {
            Self::Builtin(_, cells) => cells(object, now),
            Self::Custom(columns) => {
                let name = Value::from(meta(object, "name"));
                std::iter::once(name).chain(columns.iter().map(|column| custom(column, object, now))).collect()
            }
        }
    }
}

/// ComponentStatus, which the store does not have.
pub(super) fn component_printer() -> Printer {
    const HEADINGS: &[Heading] =
        &[("Name", "string", 0), ("Status", "string", 0), ("Message", "string", 0), ("Error", "string", 0)];
    Printer::Builtin(HEADINGS, |object, _| {
        let healthy = text(object, "/conditions/0/status") == "True";
        let status = if healthy { "Healthy" } else { "Unhealthy" };
        vec![name(object), json!(status), json!(text(object, "/conditions/0/message")), json!("")]
    })
}

/// What `/scale` answers, whichever the resource.
pub(super) fn scale_printer() -> Printer {
    const HEADINGS: &[Heading] =
        &[("Name", "string", 0), ("Desired", "integer", 0), ("Available", "integer", 0), ("Age", "string", 0)];
    Printer::Builtin(HEADINGS, |object, now| {
        let of = |part: &str| object.pointer(&format!("/{part}/replicas")).cloned().unwrap_or_default();
        vec![name(object), of("spec"), of("status"), age(object, now)]
    })
}

fn custom(column: &Column, object: &Value, now: Timestamp) -> Value {
    let found = jsonpath::find(object, &column.path);
    let Some(first) = found.first().copied() else { return Value::Null };
    match column.kind.as_str() {
        "string" => {
            let shown: Vec<String> = found.iter().map(|value| plain(value)).collect();
            Value::from(shown.join(" "))
        }
        "date" => first.as_str().map_or(Value::Null, |at| Value::from(since(at, now))),
        "integer" | "number" if first.is_number() => first.clone(),
        "boolean" if first.is_boolean() => first.clone(),
        _ => Value::Null,
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn name(object: &Value) -> Value {
    Value::from(meta(object, "name"))
}

fn age(object: &Value, now: Timestamp) -> Value {
    Value::from(since(meta(object, "creationTimestamp"), now))
}

fn list<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object.pointer(pointer).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn or<'a>(text: &'a str, otherwise: &'a str) -> &'a str {
    if text.is_empty() { otherwise } else { text }
}
