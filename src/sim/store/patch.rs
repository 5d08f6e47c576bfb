//! PATCH: JSON patch with Go's reading of it, merge patch, and strategic merge patch for built-in kinds.

use super::create::without_doubles;
use super::path::Call;
use super::status_error::{self as say, Answer, Refused, bad_request, status};
use super::update::{Origin, check_place, check_subresource};
use super::{Store, events, strategic, typed};
use crate::core::wire::{JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH};
use serde_json::Value;

impl Store {
    /// PATCH.
    pub(super) fn patch(&mut self, call: &Call<'_>) -> Answer {
        check_subresource(call)?;
        check_type(call)?;
        let current = self.current(call)?;
        let mut shown = current.as_ref().clone();
        events::shown(&call.resource().qualified(), &mut shown);
        self.show_in(call.resource(), &mut shown);
        let mut proposed = patched(call, &shown)?;
        check_place(call, &proposed)?;
        if !call.resource().is_custom() {
            super::objects::drop_nulls(&mut proposed);
        }
        let mut warnings = typed::patched(call, &mut proposed)?;
        warnings.extend(without_doubles(&mut proposed));
        events::stored(call.resource(), &mut proposed);
        if let Some(annotations) = proposed.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
            annotations.retain(|key, _| !self.settings().admission_strips.contains(key));
        }
        let mut reply = self.finish_update(call, &current, proposed, Origin::Patch)?;
        reply.warnings.splice(0..0, warnings);
        Ok(reply)
    }
}

fn content_type<'a>(call: &'a Call<'_>) -> &'a str {
    let content_type = call.request.content_type.as_deref().unwrap_or("");
    content_type.split(';').next().unwrap_or("").trim()
}

/// Whether the body is a patch of a kind that this resource takes.
fn check_type(call: &Call<'_>) -> Result<(), Refused> {
    let body = &call.request.body;
    match content_type(call) {
        JSON_PATCH => check_operations(body),
        MERGE_PATCH => check_object(body),
        STRATEGIC_MERGE_PATCH if !call.resource().is_custom() => check_object(body),
        _ => Err(unsupported(call)),
    }
}

/// What the request makes of an object.
pub(super) fn patched(call: &Call<'_>, object: &Value) -> Result<Value, Refused> {
    check_type(call)?;
    let (mut proposed, body) = (object.clone(), &call.request.body);
    match content_type(call) {
        JSON_PATCH => apply_operations(&mut proposed, body)?,
        MERGE_PATCH => merge(&mut proposed, body),
        _ => strategic::merge(&mut proposed, body).map_err(|why| status(500, "", &why, None))?,
    }
    Ok(proposed)
}

fn unsupported(call: &Call<'_>) -> Refused {
    if content_type(call) == "application/apply-patch+yaml" {
        return status(415, "UnsupportedMediaType", "server-side apply is not served here", None);
    }
    if !call.resource().is_custom() {
        return status(415, "UnsupportedMediaType", "415: Unsupported Media Type", Some(serde_json::json!({})));
    }
    let accepted = [JSON_PATCH, MERGE_PATCH, "application/apply-patch+yaml"];
    let message = format!(
        "the body of the request was in an unknown format - accepted media types include: {}",
        accepted.join(", ")
    );
    status(415, "UnsupportedMediaType", &message, None)
}

pub(super) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn check_operations(body: &Value) -> Result<(), Refused> {
    if body.is_array() {
        return Ok(());
    }
    check_json(body)?;
    let why = format!("json: cannot unmarshal {} into Go value of type []handlers.jsonPatchOp", kind_of(body));
    Err(bad_request(&format!("error decoding patch: {why}")))
}

/// What is no JSON arrives as text.
fn check_json(body: &Value) -> Result<(), Refused> {
    let why = match body {
        Value::String(raw) => super::create::json_error(raw),
        Value::Null => "unexpected end of JSON input".to_owned(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => return Ok(()),
    };
    Err(bad_request(&format!("error decoding patch: {why}")))
}

fn check_object(body: &Value) -> Result<(), Refused> {
    if body.is_object() {
        return Ok(());
    }
    check_json(body)?;
    let why = format!("json: cannot unmarshal {} into Go value of type map[string]interface {{}}", kind_of(body));
    Err(bad_request(&format!("error decoding patch: {why}")))
}

/// Applies the operations in turn. A `test` for null passes where the member is absent, as it does in Go (R9).
fn apply_operations(object: &mut Value, body: &Value) -> Result<(), Refused> {
    for operation in body.as_array().into_iter().flatten() {
        if tests_for_absence(object, operation) {
            continue;
        }
        let one = Value::Array(vec![operation.clone()]);
        let one: json_patch::Patch = serde_json::from_value(one).map_err(|_| say::patch_does_not_apply())?;
        json_patch::patch(object, &one).map_err(|_| say::patch_does_not_apply())?;
    }
    if object.is_object() { Ok(()) } else { Err(say::patch_does_not_apply()) }
}

fn tests_for_absence(object: &Value, operation: &Value) -> bool {
    let is_test = operation.get("op").and_then(Value::as_str) == Some("test");
    let for_null = operation.get("value").is_none_or(Value::is_null);
    let path = operation.get("path").and_then(Value::as_str).unwrap_or("");
    let Some((parent, _)) = path.rsplit_once('/') else { return false };
    is_test && for_null && object.pointer(path).is_none() && object.pointer(parent).is_some_and(Value::is_object)
}

/// RFC 7386.
fn merge(object: &mut Value, patch: &Value) {
    let Value::Object(changes) = patch else {
        *object = patch.clone();
        return;
    };
    let map = super::objects::as_map(object);
    for (key, change) in changes {
        if change.is_null() {
            map.remove(key);
        } else {
            merge(map.entry(key.clone()).or_insert(Value::Null), change);
        }
    }
}
