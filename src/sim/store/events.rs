//! Events are one collection with two faces: `v1` and `events.k8s.io/v1`. They are stored as `v1`.

use super::reply::{ReplyBody, StoreReply};
use super::resource::Resource;
use serde_json::Value;

const NEW_FACE: &str = "events.events.k8s.io";

/// Fields by their names in `v1` and in `events.k8s.io/v1`.
const NAMES: [(&str, &str); 7] = [
    ("message", "note"),
    ("involvedObject", "regarding"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

/// The name under which the objects of a resource are stored.
pub(super) fn storage(resource: &str) -> &str {
    if resource == NEW_FACE { "events" } else { resource }
}

/// True for the face that is not stored.
pub(super) fn is_new_face(resource: &str) -> bool {
    resource == NEW_FACE
}

/// An object as it is stored.
pub(super) fn stored(resource: &Resource, object: &mut Value) {
    if is_new_face(&resource.qualified()) {
        rename(object, "v1", |(old, new)| (*new, *old));
    }
}

/// A stored object as this resource shows it.
pub(super) fn shown(resource: &str, object: &mut Value) {
    if is_new_face(resource) {
        rename(object, "events.k8s.io/v1", |(old, new)| (*old, *new));
    }
}

/// The same for an answer, be it an object or a list.
pub(super) fn shown_reply(resource: &Resource, mut reply: StoreReply) -> StoreReply {
    let resource = resource.qualified();
    if let (true, ReplyBody::Json(body)) = (is_new_face(&resource), &mut reply.body) {
        match body.get("kind").and_then(Value::as_str) {
            Some("Event") => shown(&resource, body),
            Some("EventList") => {
                for item in body.get_mut("items").and_then(Value::as_array_mut).into_iter().flatten() {
                    shown(&resource, item);
                    // Items of built-in lists do not repeat their kind.
                    super::objects::as_map(item).remove("apiVersion");
                }
            }
            _ => {}
        }
    }
    reply
}

/// The field by which stored events are selected.
pub(super) fn stored_field(resource: &Resource, field: &str) -> String {
    if field == "reportingController" {
        return "reportingComponent".to_owned();
    }
    match field.strip_prefix("regarding.") {
        Some(rest) if is_new_face(&resource.qualified()) => format!("involvedObject.{rest}"),
        _ => field.to_owned(),
    }
}

fn rename(
    object: &mut Value,
    version: &str,
    from_to: impl Fn(&(&'static str, &'static str)) -> (&'static str, &'static str),
) {
    let Some(map) = object.as_object_mut() else { return };
    map.insert("apiVersion".to_owned(), Value::from(version));
    for pair in &NAMES {
        let (from, to) = from_to(pair);
        if let Some(value) = map.remove(from) {
            map.insert(to.to_owned(), value);
        }
    }
}
