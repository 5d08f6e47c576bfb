//! In which form a client wants objects: whole, as a table with the columns of their kind, or their metadata alone.

use super::table::{Printer, component_printer, scale_printer};
use crate::sim::store::objects::meta;
use crate::sim::store::{Resource, WatchEvent, WatchKind};
use jiff::Timestamp;
use serde_json::{Value, json};

/// The form that a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sim) enum Shape {
    /// As they are.
    Whole,
    /// A Table.
    Table(Include),
    /// PartialObjectMetadata, alone or in a list.
    Metadata,
}

/// What a table's row carries of its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sim) enum Include {
    Nothing,
    Metadata,
    Object,
}

impl Shape {
    /// The first form of the `Accept` header that is to be had, and `includeObject` of the query.
    pub fn of(accept: &str, include: Option<&str>) -> Self {
        let mut shapes = accept.split(',').map(|form| {
            let mut parts = form.split(';').map(str::trim);
            let kind = parts.next().unwrap_or("");
            let of = |key: &str| form.split(';').map(str::trim).find_map(|part| part.strip_prefix(key));
            let ours = matches!(kind, "application/json" | "application/yaml" | "application/*" | "*/*");
            match (ours, of("as="), of("g=")) {
                (true, None, _) => Some(Self::Whole),
                (true, Some("Table"), Some("meta.k8s.io")) => Some(Self::Table(match include {
                    Some("None") => Include::Nothing,
                    Some("Object") => Include::Object,
                    _ => Include::Metadata,
                })),
                (true, Some("PartialObjectMetadata" | "PartialObjectMetadataList"), Some("meta.k8s.io")) => {
                    Some(Self::Metadata)
                }
                _ => None,
            }
        });
        shapes.find_map(|shape| shape).unwrap_or(Self::Whole)
    }

    /// Whether anything that the `Accept` header names is to be had.
    pub fn is_to_be_had(accept: &str) -> bool {
        const KINDS: [&str; 5] =
            ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf", "application/*", "*/*"];
        let kind = |form: &str| form.split(';').next().unwrap_or("").trim().to_owned();
        accept.is_empty() || accept.split(',').any(|form| KINDS.contains(&kind(form).as_str()))
    }

    /// Whether the `Accept` header names protobuf and nothing else, which no custom resource is written in.
    pub fn is_protobuf_alone(accept: &str) -> bool {
        let kind = |form: &str| form.split(';').next().unwrap_or("").trim() == super::protobuf::CONTENT_TYPE;
        !accept.is_empty() && accept.split(',').all(kind)
    }

    /// Objects of the one kind that the store does not have.
    pub fn components(self, body: Value) -> Value {
        Shaper { shape: self, printer: component_printer(), kind: "ComponentStatus".to_owned(), headed: false }
            .body(body, Timestamp::UNIX_EPOCH)
    }
}

/// Brings the objects of one resource into a form.
#[derive(Clone, Debug)]
pub(in crate::sim) struct Shaper {
    shape: Shape,
    printer: Printer,
    kind: String,
    /// Whether a watch has had its columns.
    headed: bool,
}

impl Shaper {
    /// For the Scales of any resource.
    pub fn of_scales(shape: Shape) -> Self {
        Self { shape, printer: scale_printer(), kind: "Scale".to_owned(), headed: false }
    }

    /// For this resource.
    pub fn new(shape: Shape, resource: &Resource) -> Self {
        Self { shape, printer: Printer::of(resource), kind: resource.kind.clone(), headed: false }
    }

    /// An answer's body in the form; a Status stays one.
    pub fn body(&self, body: Value, now: Timestamp) -> Value {
        let kind = body.get("kind").and_then(Value::as_str).unwrap_or("");
        let list = body.get("items").and_then(Value::as_array);
        let is_ours = kind == self.kind || list.is_some();
        match (self.shape, is_ours) {
            (Shape::Whole, _) | (_, false) => body,
            (Shape::Table(include), true) => {
                let objects: Vec<Value> = match list {
                    Some(items) => items.iter().map(|item| self.named(&body, item)).collect(),
                    None => vec![body.clone()],
                };
                self.table(list_metadata(&body), &objects, include, true, now)
            }
            (Shape::Metadata, true) => match list {
                None => partial(&body),
                Some(items) => json!({
                    "kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1",
                    "metadata": list_metadata(&body), "items": items.iter().map(partial).collect::<Vec<_>>(),
                }),
            },
        }
    }

    /// An item with the kind that lists leave out.
    fn named(&self, list: &Value, item: &Value) -> Value {
        let mut object = item.clone();
        if object.get("kind").is_none() {
            object["kind"] = Value::from(self.kind.clone());
            object["apiVersion"] = list.get("apiVersion").cloned().unwrap_or_default();
        }
        object
    }

    fn table(&self, metadata: Value, objects: &[Value], include: Include, headed: bool, now: Timestamp) -> Value {
        let rows = objects.iter().map(|object| {
            let mut row = json!({"cells": self.printer.cells(object, now)});
            match include {
                Include::Nothing => {}
                Include::Metadata => row["object"] = partial(object),
                Include::Object => row["object"] = object.clone(),
            }
            row
        });
        let columns = if headed { self.printer.columns() } else { Value::Null };
        json!({
            "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata, "columnDefinitions": columns,
            "rows": rows.collect::<Vec<_>>(),
        })
    }

    /// One frame of a watch. The columns come with the first.
    pub fn frame(&mut self, event: &WatchEvent, now: Timestamp) -> Value {
        if self.shape == Shape::Whole || event.kind == WatchKind::Error {
            return event.frame();
        }
        let object = match self.shape {
            Shape::Table(include) => {
                let metadata = json!({"resourceVersion": meta(&event.object, "resourceVersion")});
                let headed = !std::mem::replace(&mut self.headed, true);
                self.table(metadata, &[event.object.as_ref().clone()], include, headed, now)
            }
            Shape::Metadata | Shape::Whole => partial(&event.object),
        };
        json!({"type": event.kind.as_str(), "object": object})
    }
}

/// What a list says of itself, without what is empty.
fn list_metadata(body: &Value) -> Value {
    let mut metadata = json!({});
    for field in ["resourceVersion", "continue", "remainingItemCount"] {
        let value = body.get("metadata").and_then(|meta| meta.get(field));
        if let Some(value) = value.filter(|value| value.as_str() != Some("")) {
            metadata[field] = value.clone();
        }
    }
    metadata
}

fn partial(object: &Value) -> Value {
    json!({
        "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
        "metadata": object.get("metadata").cloned().unwrap_or_else(|| json!({})),
    })
}
