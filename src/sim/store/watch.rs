//! WATCH as data: where a watch stands, and the events after that. A transport waits and asks again.

use super::events;
use super::list::parse_version;
use super::log::Entry;
use super::objects::{Key, set_meta};
use super::selectors::Selector;
use super::status_error::{self as say, Refused};
use super::{ADMIN, Store, StoreReply, options};
use crate::core::wire::{Method, Request};
use serde_json::{Value, json};
use std::sync::Arc;

/// Types of watch events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WatchKind {
    /// The object is new, or has entered the selection.
    Added,
    /// The object has changed.
    Modified,
    /// The object is gone, or has left the selection.
    Deleted,
    /// No change: this far the watch has come.
    Bookmark,
    /// The watch is over: a Status follows.
    Error,
}

impl WatchKind {
    /// As it goes over the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
            Self::Bookmark => "BOOKMARK",
            Self::Error => "ERROR",
        }
    }
}

/// One event of a watch.
#[derive(Clone, Debug, PartialEq)]
pub struct WatchEvent {
    /// What happened.
    pub kind: WatchKind,
    /// To what: the object, a bookmark, or a Status.
    pub object: Arc<Value>,
    /// The version of the write.
    pub version: u64,
}

impl WatchEvent {
    /// The event as one frame of a watch stream, without the line break.
    pub fn frame(&self) -> Value {
        json!({"type": self.kind.as_str(), "object": self.object.as_ref()})
    }
}

/// What is watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchQuery {
    /// `pods`, `widgets.example.test`.
    pub resource: String,
    /// None for all namespaces.
    pub namespace: Option<String>,
    /// What the collection is narrowed to.
    pub selector: Selector,
}

/// The version to start from is no longer remembered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expired {
    /// The text of the 410.
    pub message: String,
}

/// An open watch.
#[derive(Clone, Debug)]
pub struct Watch {
    /// What is watched.
    pub query: WatchQuery,
    /// The version up to which events were given.
    pub version: u64,
    /// Whether the client wants bookmarks.
    pub bookmarks: bool,
    /// The client's `timeoutSeconds`.
    pub timeout_seconds: Option<u64>,
    /// The version in which objects are shown, as in `example.test/v1`.
    pub api_version: String,
    /// What was there already: given once, before any event.
    initial: Vec<WatchEvent>,
}

fn is_true(value: &str) -> bool {
    matches!(value, "true" | "1" | "True" | "TRUE" | "t" | "T")
}

impl Store {
    pub(super) fn asks_to_watch(request: &Request) -> bool {
        let asks = request.query.iter().any(|(key, value)| key == "watch" && is_true(value));
        asks && matches!(request.method, Method::Get | Method::Head)
    }

    /// Opens the watch that this request asks for.
    pub fn open_watch(&mut self, request: &Request) -> Result<Watch, StoreReply> {
        self.open_watch_as(ADMIN, request)
    }

    /// The same for this user. An `Err` is an HTTP answer; a start that is too old is no such error but the first
    /// event of the watch.
    pub fn open_watch_as(&mut self, user: &str, request: &Request) -> Result<Watch, StoreReply> {
        self.open(user, request).map_err(|Refused(reply)| *reply)
    }

    fn open(&mut self, user: &str, request: &Request) -> Result<Watch, Refused> {
        let call = self.admit(user, request)?;
        options::check_watch(&call)?;
        let asked = parse_version(call.query("resourceVersion"))?;
        let labels = call.query("labelSelector").unwrap_or("");
        let fields = call.query("fieldSelector").unwrap_or("");
        let query = WatchQuery {
            resource: call.resource().qualified(),
            namespace: (!call.target.namespace.is_empty()).then(|| call.target.namespace.clone()),
            selector: Selector::parse(call.resource(), labels, fields)?,
        };
        let send_initial = call.query("sendInitialEvents") == Some("true");
        let from_now = matches!(asked, None | Some(0));
        let mut watch = Watch {
            query,
            version: asked.filter(|version| *version > 0 && !send_initial).unwrap_or(self.version),
            bookmarks: call.query("allowWatchBookmarks") == Some("true"),
            timeout_seconds: call.query("timeoutSeconds").and_then(|seconds| seconds.parse().ok()),
            api_version: call.resource().api_version(),
            initial: Vec::new(),
        };
        if send_initial || (from_now && call.query("sendInitialEvents").is_none()) {
            watch.initial = self.initial_events(&watch.query);
        }
        if send_initial && watch.bookmarks {
            watch.initial.push(self.bookmark_of(&watch, true));
        }
        Ok(watch)
    }

    fn initial_events(&self, query: &WatchQuery) -> Vec<WatchEvent> {
        self.entries(&query.resource, query.namespace.as_deref())
            .filter(|(_, object)| query.selector.matches(object))
            .map(|(_, object)| WatchEvent {
                kind: WatchKind::Added,
                object: query.shown(Arc::clone(object)),
                version: super::objects::version_of(object),
            })
            .collect()
    }

    /// The events since the last call, and moves the watch on. A watch that has fallen behind the log gets one ERROR
    /// event and must be closed.
    pub fn poll_watch(&self, watch: &mut Watch) -> Vec<WatchEvent> {
        let mut events = std::mem::take(&mut watch.initial);
        match self.watch_from(&watch.query, watch.version) {
            Ok(more) => events.extend(more),
            Err(Expired { message }) => {
                let Refused(reply) = say::expired(&message, None);
                let object = Arc::new(reply.value().clone());
                events.push(WatchEvent { kind: WatchKind::Error, object, version: watch.version });
            }
        }
        watch.version = watch.version.max(self.version);
        self.in_version(&watch.query.resource, &watch.api_version, &mut events);
        events
    }

    /// A bookmark that says how far this watch has come.
    pub fn bookmark(&self, watch: &Watch) -> WatchEvent {
        self.bookmark_of(watch, false)
    }

    fn bookmark_of(&self, watch: &Watch, ends_initial: bool) -> WatchEvent {
        let (resource, version) = (self.resources.get(&watch.query.resource), watch.version);
        let mut object = json!({
            "kind": resource.map(|kind| kind.kind.as_str()), "apiVersion": resource.map(|_| watch.api_version.as_str()),
            "metadata": {"resourceVersion": version.to_string()},
        });
        if ends_initial {
            set_meta(&mut object, "annotations", json!({"k8s.io/initial-events-end": "true"}));
        }
        WatchEvent { kind: WatchKind::Bookmark, object: Arc::new(object), version }
    }

    /// The events after a version. A version of the future has none.
    pub fn watch_from(&self, query: &WatchQuery, version: u64) -> Result<Vec<WatchEvent>, Expired> {
        let since = self.resources.get(&query.resource).map_or(0, |kind| kind.since);
        let floor = self.log.floor.max(since);
        if version < floor {
            let message = if events::storage(&query.resource) == "events" {
                "The resourceVersion for the provided watch is too old.".to_owned()
            } else {
                format!("too old resource version: {version} ({floor})")
            };
            return Err(Expired { message });
        }
        Ok(self.log.after(version).filter_map(|entry| query.event(entry)).collect())
    }
}

impl WatchQuery {
    fn covers(&self, key: &Key) -> bool {
        key.resource == events::storage(&self.resource)
            && self.namespace.as_ref().is_none_or(|namespace| *namespace == key.namespace)
    }

    fn shown(&self, mut object: Arc<Value>) -> Arc<Value> {
        if events::is_new_face(&self.resource) {
            events::shown(&self.resource, Arc::make_mut(&mut object));
        }
        object
    }

    /// What a write looks like from inside the selection.
    fn event(&self, entry: &Entry) -> Option<WatchEvent> {
        if !self.covers(&entry.key) {
            return None;
        }
        let inside = |object: &Option<Arc<Value>>| object.clone().filter(|object| self.selector.matches(object));
        let (before, after) = (inside(&entry.before), inside(&entry.after));
        let (kind, object) = match (before, after) {
            (None, None) => return None,
            (None, Some(after)) => (WatchKind::Added, after),
            (Some(_), Some(after)) => (WatchKind::Modified, after),
            (Some(before), None) => {
                // The state that was left, under the version at which it was left.
                let mut last = before.as_ref().clone();
                set_meta(&mut last, "resourceVersion", Value::from(entry.version.to_string()));
                (WatchKind::Deleted, Arc::new(last))
            }
        };
        Some(WatchEvent { kind, object: self.shown(object), version: entry.version })
    }
}
