//! `/scale` of custom resources: the wanted and the present number, whatever the resource calls them.

use super::objects::{meta, set_meta, text};
use super::path::Call;
use super::reply::{ReplyBody, StoreReply};
use super::resource::ScalePaths;
use super::status_error::{Answer, FieldError, Refused, bad_request, invalid_patch, no_such_subresource};
use super::update::Origin;
use super::{Store, Value, patch};
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

/// What is wrong with the wanted number. The real server says it of every write, also where the schema has said as much
/// already; here only of writes to `/scale`.
pub(super) fn errors(call: &Call<'_>, object: &Value, so_far: &[FieldError]) -> Option<FieldError> {
    let paths = call.resource().scale.as_ref()?;
    let wanted = number(object, &paths.spec).filter(|wanted| *wanted < 0)?;
    let said = so_far.iter().any(|error| error.field == paths.spec.trim_start_matches('.'));
    let says = call.target.subresource == "scale" || !said;
    says.then(|| FieldError::invalid(paths.spec.clone(), &json!(wanted), "should be a non-negative integer"))
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
        return bad_request(&format!("Scale in version \"v1\" cannot be handled as a Scale: {why}"));
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
