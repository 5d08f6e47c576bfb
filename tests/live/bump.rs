//! A second writer: it changes every set and every pod of a namespace several times in its first second.

use crate::place::{Place, name, pods, sets};
use cocoon_operator::core::wire::{MERGE_PATCH, Method, Reply, Request};
use cocoon_operator::shell::client::Api;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::task::JoinHandle;

/// When it writes to an object, counted from its first sight of it.
const AT: [u64; 6] = [0, 30, 80, 200, 450, 900];

/// The writer at work.
pub struct Bumps {
    tasks: Vec<JoinHandle<()>>,
    count: Arc<AtomicUsize>,
}

impl Bumps {
    /// Ends it; how often it has written.
    pub fn end(self) -> usize {
        self.tasks.iter().for_each(JoinHandle::abort);
        self.count.load(Ordering::Relaxed)
    }
}

/// Begins.
pub fn start(place: &Place, namespace: &str) -> Bumps {
    let count = Arc::new(AtomicUsize::new(0));
    let watch = |path: String| place.handle.spawn(follow(Arc::clone(&place.api), path, Arc::clone(&count)));
    Bumps { tasks: vec![watch(sets(namespace)), watch(pods(namespace))], count: Arc::clone(&count) }
}

async fn follow(api: Arc<Api>, path: String, count: Arc<AtomicUsize>) {
    let request = Request::new(Method::Get, path.clone()).with_query("watch", "true");
    let Ok(mut lines) = api.open("second writer", &request).await else { return };
    while let Ok(line) = lines.next().await {
        let event: Value = serde_json::from_slice(&line).unwrap_or_default();
        if event["type"] == "ADDED" {
            let object = format!("{path}/{}", name(&event["object"]));
            tokio::spawn(bump(Arc::clone(&api), object, Arc::clone(&count)));
        }
    }
}

async fn bump(api: Arc<Api>, object: String, count: Arc<AtomicUsize>) {
    let begun = tokio::time::Instant::now();
    for (number, at) in AT.into_iter().enumerate() {
        tokio::time::sleep_until(begun + Duration::from_millis(at)).await;
        let patch = json!({"metadata": {"annotations": {"example.test/bump": number.to_string()}}});
        let request = Request::new(Method::Patch, object.clone()).with_body(MERGE_PATCH, patch);
        if let Reply::Http { status: 200, .. } = api.send("second writer", &request).await {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }
}
