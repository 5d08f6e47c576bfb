//! What a story's people and nodes know of its objects: lists and watches, kept by tasks of their own and taken in when
//! somebody looks.

use crate::core::meta;
use crate::core::wire::{Method, Reply, Request};
use crate::shell::client::Api;
use crate::sim::store::{Key, WatchEvent, WatchKind};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

/// What is mirrored: as the store calls it, and where it is listed.
const KINDS: [(&str, &str); 5] = [
    ("pods", "/api/v1/pods"),
    ("cocoonsets.cocoonset.cocoonstack.io", "/apis/cocoonset.cocoonstack.io/v1/cocoonsets"),
    ("namespaces", "/api/v1/namespaces"),
    ("nodes", "/api/v1/nodes"),
    ("events", "/api/v1/events"),
];
/// A watch that failed is opened again after this long.
const AGAIN: Duration = Duration::from_millis(300);

/// News of one kind.
enum News {
    Listed(&'static str, Vec<Value>),
    Event(&'static str, WatchKind, Value),
}

impl News {
    const fn resource(&self) -> &'static str {
        match self {
            Self::Listed(resource, _) | Self::Event(resource, ..) => resource,
        }
    }
}

/// What has happened to pods since the last look.
pub enum Seen {
    /// This, in order.
    Events(Vec<WatchEvent>),
    /// Nobody knows: they were listed anew.
    Listed,
}

/// Copies of a story's objects.
pub struct Mirror {
    objects: BTreeMap<Key, Arc<Value>>,
    /// The version of each pod that the watch has shown.
    shown: BTreeMap<Key, u64>,
    news: Receiver<News>,
    /// What was received while waiting.
    kept: Vec<News>,
    tasks: Vec<JoinHandle<()>>,
}

impl Mirror {
    /// Begins to follow everything.
    pub fn start(handle: &Handle, api: &Arc<Api>) -> Self {
        let (sender, news) = channel();
        let follow = |(resource, path): (&'static str, &'static str)| {
            handle.spawn(follow(Arc::clone(api), resource, path, sender.clone()))
        };
        Self {
            objects: BTreeMap::new(),
            shown: BTreeMap::new(),
            news,
            kept: Vec::new(),
            tasks: KINDS.into_iter().map(follow).collect(),
        }
    }

    /// One object.
    pub fn get(&self, resource: &str, namespace: &str, name: &str) -> Option<&Value> {
        self.objects.get(&Key::new(resource, namespace, name)).map(Arc::as_ref)
    }
    /// All objects of a resource, or those of one namespace.
    pub fn all<'a>(&'a self, resource: &'a str, namespace: Option<&'a str>) -> impl Iterator<Item = &'a Arc<Value>> {
        let fits = move |key: &&Key| key.resource == resource && namespace.is_none_or(|ns| ns == key.namespace);
        self.objects.iter().filter(move |(key, _)| fits(key)).map(|(_, object)| object)
    }

    /// A write was answered with this object: nobody is to see less from now on.
    pub fn learn(&mut self, resource: &str, object: &Value) {
        self.take(resource, object);
    }

    /// It is known to be gone.
    pub fn forget(&mut self, resource: &str, namespace: &str, name: &str) {
        self.objects.remove(&Key::new(resource, namespace, name));
    }

    fn take(&mut self, resource: &str, object: &Value) {
        let key = Key::new(resource, &meta::text(object, "namespace"), &meta::text(object, "name"));
        let newer =
            self.objects.get(&key).is_none_or(|known| !is_same(known, object) || version(known) <= version(object));
        if newer {
            self.objects.insert(key, Arc::new(object.clone()));
        }
    }

    /// The watch has shown all that is known of pods.
    pub fn has_shown_pods(&self) -> bool {
        let shown = |key: &Key| self.shown.get(key).copied().unwrap_or_default();
        self.objects.iter().filter(|(key, _)| key.resource == "pods").all(|(key, pod)| version(pod) <= shown(key))
    }

    /// Waits for news, for at most so long; true if there are some.
    pub fn wait(&mut self, longest: Duration) -> bool {
        if self.kept.is_empty() {
            self.kept.extend(self.news.recv_timeout(longest).ok());
        }
        !self.kept.is_empty()
    }

    /// Takes in what there is. What is said of pods is given back; true as well if there was anything that somebody acts
    /// on: nobody does on events.
    pub fn look(&mut self) -> (Seen, bool) {
        let mut news = std::mem::take(&mut self.kept);
        news.extend(self.news.try_iter());
        let any = news.iter().any(|one| one.resource() != "events");
        let (mut events, mut listed) = (Vec::new(), false);
        for one in news {
            match one {
                News::Listed(resource, items) => {
                    listed |= resource == "pods";
                    self.objects.retain(|key, _| key.resource != resource);
                    items.iter().for_each(|item| self.take(resource, item));
                    if resource == "pods" {
                        let of =
                            |pod: &Value| Key::new(resource, &meta::text(pod, "namespace"), &meta::text(pod, "name"));
                        self.shown = items.iter().map(|pod| (of(pod), version(pod))).collect();
                    }
                }
                News::Event(resource, kind, object) => {
                    let key = Key::new(resource, &meta::text(&object, "namespace"), &meta::text(&object, "name"));
                    if kind == WatchKind::Deleted {
                        if self.objects.get(&key).is_some_and(|known| is_same(known, &object)) {
                            self.objects.remove(&key);
                        }
                    } else {
                        self.take(resource, &object);
                    }
                    if resource == "pods" {
                        let version = version(&object);
                        self.shown.insert(key.clone(), version);
                        // An agent that hears of a pod late is to take it as it is, and not boot what has failed since.
                        let object = match self.objects.get(&key) {
                            Some(known) if kind != WatchKind::Deleted && is_same(known, &object) => Arc::clone(known),
                            _ => Arc::new(object),
                        };
                        events.push(WatchEvent { kind, object, version });
                    }
                }
            }
        }
        (if listed { Seen::Listed } else { Seen::Events(events) }, any)
    }
}

impl Drop for Mirror {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

fn is_same(one: &Value, other: &Value) -> bool {
    meta::text(one, "uid") == meta::text(other, "uid")
}

fn version(object: &Value) -> u64 {
    meta::text(object, "resourceVersion").parse().unwrap_or(0)
}

/// Lists and watches one kind until nobody listens.
async fn follow(api: Arc<Api>, resource: &'static str, path: &'static str, sender: Sender<News>) {
    while let Some(mut at) = list(&api, resource, path, &sender).await {
        while watch(&api, resource, path, &sender, &mut at).await {
            tokio::time::sleep(AGAIN).await;
        }
    }
}

/// The version of the list; none where nobody listens.
async fn list(api: &Api, resource: &'static str, path: &'static str, sender: &Sender<News>) -> Option<String> {
    loop {
        if let Reply::Http { status: 200, body, .. } = api.send(resource, &Request::new(Method::Get, path)).await
            && let Ok(mut list) = serde_json::from_slice::<Value>(&body)
        {
            let items = list.get_mut("items").map(Value::take);
            let items = items.and_then(|items| serde_json::from_value(items).ok()).unwrap_or_default();
            sender.send(News::Listed(resource, items)).ok()?;
            return Some(meta::text(&list, "resourceVersion"));
        }
        tokio::time::sleep(AGAIN).await;
    }
}

/// Watches from this version on. False where only a list helps.
async fn watch(api: &Api, resource: &'static str, path: &str, sender: &Sender<News>, at: &mut String) -> bool {
    let request = Request::new(Method::Get, path)
        .with_query("watch", "true")
        .with_query("allowWatchBookmarks", "true")
        .with_query("resourceVersion", at);
    let mut lines = match api.open(resource, &request).await {
        Ok(lines) => lines,
        Err(Reply::Http { status: 410, .. }) => return false,
        Err(_) => return true,
    };
    while let Ok(line) = lines.next().await {
        let Ok(mut event) = serde_json::from_slice::<Value>(&line) else { return true };
        let object = event.get_mut("object").map(Value::take).unwrap_or_default();
        let kind = match event.get("type").and_then(Value::as_str) {
            Some("ADDED") => WatchKind::Added,
            Some("MODIFIED") => WatchKind::Modified,
            Some("DELETED") => WatchKind::Deleted,
            Some("BOOKMARK") => {
                *at = meta::text(&object, "resourceVersion");
                continue;
            }
            _ => return false,
        };
        *at = meta::text(&object, "resourceVersion");
        if sender.send(News::Event(resource, kind, object)).is_err() {
            return false;
        }
    }
    true
}
