//! `/scale` of custom resources: the wanted and the present number, whatever the resource calls them.

use super::objects::{meta, set_meta, text};
use super::path::Call;
use super::reply::{ReplyBody, StoreReply};
use super::resource::ScalePaths;
use super::status_error::{Answer, FieldError, Refused, bad_request, invalid_patch, no_such_subresource};
use super::update::Origin;
use super::{Store, Value, patch, strategic};
use serde_json::json;

impl Store {
    /// GET of `/scale`.
    pub(super) fn read_scale(&mut self, call: &Call<'_>) -> Answer {
        let paths = paths(call)?;
        let current = self.current(call)?;
        Ok(StoreReply::json(200, shown(&current, &paths)))
    }

    /// PUT and PATCH of `/scale`: only the wanted number is taken from it, and the version that is insisted on.
    pub(super) fn write_scale(&mut self, call: &Call<'_>) -> Answer {
        let paths = paths(call)?;
        let current = self.current(call)?;
        let scale =
            if call.verb == "patch" { patch::patched(call, &shown(&current, &paths))? } else { put_scale(call)? };
        let wanted = match scale.pointer("/spec/replicas") {
            None | Some(Value::Null) => 0,
            Some(wanted) => wanted.as_i64().ok_or_else(|| not_a_number(call, &scale, wanted))?,
        };
        let mut proposed = current.as_ref().clone();
        let version = meta(&scale, "resourceVersion");
        if !version.is_empty() {
            set_meta(&mut proposed, "resourceVersion", Value::from(version));
        }
        put(&mut proposed, &paths.spec, json!(wanted));
        let mut reply = self.finish_update(call, &current, proposed, Origin::Patch)?;
        if let ReplyBody::Json(object) = &mut reply.body {
            *object = shown(object, &paths);
        }
        Ok(reply)
    }
}

/// What is wrong with the wanted number. The server says it of every write, also where the schema has said as much.
pub(super) fn errors(call: &Call<'_>, object: &Value) -> Option<FieldError> {
    let path = &call.resource().scale.as_ref()?.spec;
    let invalid = |value: i64, detail: &str| Some(FieldError::invalid(path.clone(), &json!(value), detail));
    let mut place = object;
    let mut walked = String::new();
    for step in steps(path) {
        walked = format!("{walked}.{step}");
        let Value::Object(map) = place else {
            return invalid(0, &accessor_error(&walked, place, "map[string]interface{}"));
        };
        place = map.get(step)?;
    }
    let Some(wanted) = place.as_i64() else { return invalid(0, &accessor_error(&walked, place, "int64")) };
    if wanted < 0 {
        return invalid(wanted, "should be a non-negative integer");
    }
    if wanted > i64::from(i32::MAX) {
        return invalid(wanted, &format!("should be less than or equal to {}", i32::MAX));
    }
    None
}

/// What the server says of a value that is not what its place is for.
fn accessor_error(path: &str, value: &Value, wanted: &str) -> String {
    let (shown, kind) = match value {
        Value::Null => ("<nil>".to_owned(), "<nil>"),
        Value::Bool(value) => (value.to_string(), "bool"),
        // A whole float is shown without its fraction.
        Value::Number(number) if number.is_f64() => (number.as_f64().unwrap_or(0.0).to_string(), "float64"),
        Value::Number(number) => (number.to_string(), "int64"),
        Value::String(text) => (text.clone(), "string"),
        Value::Array(_) => (strategic::in_go(value), "[]interface {}"),
        Value::Object(_) => (strategic::in_go(value), "map[string]interface {}"),
    };
    format!("{path} accessor error: {shown} is of the type {kind}, expected {wanted}")
}

/// The Scale that is put.
fn put_scale(call: &Call<'_>) -> Result<Value, Refused> {
    let scale = call.request.body.clone();
    let (name, in_path) = (meta(&scale, "name"), &call.target.name);
    if text(&scale, "/kind") != "Scale" {
        return Err(bad_request("the object provided is unrecognized (must be of type Scale)"));
    }
    if !name.is_empty() && name != in_path {
        return Err(bad_request(&format!(
            "the name of the object ({name}) does not match the name on the URL ({in_path})"
        )));
    }
    Ok(scale)
}

fn not_a_number(call: &Call<'_>, scale: &Value, wanted: &Value) -> Refused {
    let kind = patch::kind_of(wanted);
    let why = format!("json: cannot unmarshal {kind} into Go struct field ScaleSpec.spec.replicas of type int32");
    if call.verb != "patch" {
        // The server's own trouble with the kind hides what it was about to say.
        return bad_request("no kind is registered for the type v1.Scale in scheme \"pkg/runtime/scheme.go:111\"");
    }
    invalid_patch(&FieldError::invalid("patch", &Value::from(scale.to_string()), &why))
}

/// Where this resource keeps its numbers; 404 where it is not scaled.
fn paths(call: &Call<'_>) -> Result<ScalePaths, Refused> {
    let none = || no_such_subresource(call.resource(), &call.target.name);
    call.resource().scale.clone().ok_or_else(none)
}

fn steps(path: &str) -> impl Iterator<Item = &str> {
    path.split('.').filter(|step| !step.is_empty())
}

fn at<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    steps(path).try_fold(object, |value, step| value.get(step))
}

fn number(object: &Value, path: &str) -> Option<i64> {
    at(object, path).and_then(Value::as_i64)
}

fn put(object: &mut Value, path: &str, value: Value) {
    let mut place = object;
    for step in steps(path) {
        place = super::objects::as_map(place).entry(step).or_insert(Value::Null);
    }
    *place = value;
}

/// An object as its Scale.
fn shown(object: &Value, paths: &ScalePaths) -> Value {
    let mut scale = json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": {}, "spec": {},
        "status": {"replicas": number(object, &paths.status).unwrap_or(0)},
    });
    if let Some(wanted) = number(object, &paths.spec).filter(|wanted| *wanted != 0) {
        scale["spec"]["replicas"] = json!(wanted);
    }
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        let value = meta(object, field);
        if !value.is_empty() {
            set_meta(&mut scale, field, Value::from(value));
        }
    }
    if let Some(selector) = at(object, &paths.selector).filter(|_| !paths.selector.is_empty()) {
        scale["status"]["selector"] = selector.clone();
    }
    scale
}
