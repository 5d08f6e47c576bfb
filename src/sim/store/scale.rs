//! `/scale` of custom resources: the wanted and the present number, whatever the resource calls them.

use super::objects::{meta, set_meta};
use super::path::Call;
use super::reply::{ReplyBody, StoreReply};
use super::resource::ScalePaths;
use super::status_error::{Answer, FieldError, Refused, bad_request, invalid_scale, no_such_path, status};
use super::update::Origin;
use super::{Store, Value, patch};
use serde_json::json;

impl Store {
    /// GET of `/scale`.
    pub(super) fn read_scale(&mut self, call: &Call<'_>) -> Answer {
        let paths = paths(call)?;
        let current = self.current(call)?;
        if number(&current, &paths.spec).is_none() {
            let why = format!("the spec replicas field {} does not exist", super::reply::quoted(&paths.spec));
            return Err(status(500, "InternalError", &format!("Internal error occurred: {why}"), None));
        }
        Ok(StoreReply::json(200, shown(&current, &paths)))
    }

    /// PUT and PATCH of `/scale`: only the wanted number is taken from it.
    pub(super) fn write_scale(&mut self, call: &Call<'_>) -> Answer {
        let paths = paths(call)?;
        let current = self.current(call)?;
        let scale = if call.verb == "patch" {
            patch::patched(call, &shown(&current, &paths))?
        } else {
            call.request.body.clone()
        };
        let wanted = match scale.pointer("/spec/replicas") {
            None => 0,
            Some(wanted) => wanted.as_i64().ok_or_else(|| {
                bad_request(&format!("Scale in version \"v1\" cannot be handled as a Scale: spec.replicas: {wanted}"))
            })?,
        };
        if wanted < 0 {
            let error = FieldError::invalid("spec.replicas", &json!(wanted), "must be greater than or equal to 0");
            return Err(invalid_scale(&call.target.name, &error));
        }
        let mut proposed = current.as_ref().clone();
        for field in ["resourceVersion", "uid"] {
            let stated = meta(&scale, field);
            if !stated.is_empty() {
                set_meta(&mut proposed, field, Value::from(stated));
            }
        }
        put(&mut proposed, &paths.spec, json!(wanted));
        let mut reply = self.finish_update(call, &current, proposed, Origin::Patch)?;
        if let ReplyBody::Json(object) = &mut reply.body {
            *object = shown(object, &paths);
        }
        Ok(reply)
    }
}

/// Where this resource keeps its numbers; 404 where it is not scaled. The real server says it of the object.
fn paths(call: &Call<'_>) -> Result<ScalePaths, Refused> {
    call.resource().scale.clone().ok_or_else(no_such_path)
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
        "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": {},
        "spec": {"replicas": number(object, &paths.spec).unwrap_or(0)},
        "status": {"replicas": number(object, &paths.status).unwrap_or(0)},
    });
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
