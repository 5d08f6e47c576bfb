//! Versions of custom resources: stored in one, shown in whichever is asked for. Conversion changes the `apiVersion`,
//! and takes what the version's schema does not know.

use super::objects::text;
use super::reply::{ReplyBody, StoreReply};
use super::resource::Resource;
use super::watch::WatchEvent;
use super::{Store, WatchKind};
use serde_json::Value;
use std::cmp::{Ordering, Reverse};
use std::sync::Arc;

impl Store {
    /// A resource in a version in which it is served.
    pub(super) fn resource_in(&self, qualified: &str, version: &str) -> Option<Arc<Resource>> {
        let kind = self.resources.get(qualified)?;
        if kind.version == version {
            return kind.served.then(|| Arc::clone(kind));
        }
        kind.others.iter().find(|other| other.version == version).cloned()
    }

    /// An object in the version in which its kind is stored.
    pub(super) fn as_stored(&self, resource: &Resource, object: &mut Value) {
        let stored = resource.is_custom().then(|| self.resources.get(&resource.qualified())).flatten();
        if let Some(stored) = stored {
            object["apiVersion"] = Value::from(stored.api_version());
        }
    }

    /// A stored object as this version of its kind shows it.
    pub(super) fn show_in(&self, resource: &Resource, object: &mut Value) {
        let wanted = resource.api_version();
        if !resource.is_custom() || text(object, "/apiVersion") == wanted {
            return;
        }
        object["apiVersion"] = Value::from(wanted);
        if let Some(schema) = &resource.schema {
            schema.prune(object);
        }
    }

    /// The same for an answer, be it an object or a list. A Scale or a Status stays what it is.
    pub(super) fn reply_in_version(&self, resource: &Resource, mut reply: StoreReply) -> StoreReply {
        if let (true, ReplyBody::Json(body)) = (resource.is_custom(), &mut reply.body) {
            let ours = text(body, "/apiVersion").split('/').next() == Some(resource.group.as_str());
            if ours && text(body, "/kind") == resource.kind {
                self.show_in(resource, body);
            } else if ours {
                let items = body.get_mut("items").and_then(Value::as_array_mut);
                items.into_iter().flatten().for_each(|item| self.show_in(resource, item));
            }
        }
        reply
    }

    /// The same for what a watch has.
    pub(super) fn in_version(&self, qualified: &str, api_version: &str, events: &mut [WatchEvent]) {
        let Some(kind) = self.resources.get(qualified).filter(|kind| kind.is_custom()) else { return };
        let Some(resource) = kind.served_versions().find(|kind| kind.api_version() == api_version) else { return };
        for event in events.iter_mut().filter(|event| event.kind != WatchKind::Error) {
            if text(&event.object, "/apiVersion") != api_version {
                self.show_in(resource, Arc::make_mut(&mut event.object));
            }
        }
    }
}

/// The order in which versions are preferred: `v2`, `v1`, `v1beta2`, `v1alpha1`, and whatever is called otherwise by its
/// letters.
pub fn by_preference(one: &str, other: &str) -> Ordering {
    match (read(one), read(other)) {
        (Some(one), Some(other)) => Reverse(one).cmp(&Reverse(other)),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => one.cmp(other),
    }
}

/// Stability, major number, and the number after `alpha` or `beta`.
fn read(version: &str) -> Option<(u8, u32, u32)> {
    let rest = version.strip_prefix('v')?;
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (major, rest) = rest.split_at_checked(digits)?;
    let major = major.parse().ok()?;
    if rest.is_empty() {
        return Some((2, major, 0));
    }
    let (stability, minor) =
        rest.strip_prefix("beta").map(|minor| (1, minor)).or_else(|| rest.strip_prefix("alpha").map(|m| (0, m)))?;
    Some((stability, major, minor.parse().ok()?))
}
