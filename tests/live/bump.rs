//! A second writer: it changes every set and every pod of a namespace several times in its first second.

use crate::follow::{Follow, follow};
use crate::place::{Place, name, pods, sets};
use cocoon_operator::core::wire::{MERGE_PATCH, Method, Reply, Request};
use cocoon_operator::shell::client::Api;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// When it writes to an object, counted from its first sight of it.
pub const AT: [u64; 6] = [0, 30, 80, 200, 450, 900];
/// The last writes are over within this.
const GRACE: Duration = Duration::from_secs(10);

/// How often it has written to an object, and how often that went well.
type Counts = Arc<Mutex<BTreeMap<String, (usize, usize)>>>;

/// The writer at work.
pub struct Bumps {
    counts: [Counts; 2],
    _watches: [Follow; 2],
}

/// Begins.
pub fn start(place: &Place, namespace: &str) -> Bumps {
    let counts = [Counts::default(), Counts::default()];
    let watch = |path: String, counts: &Counts| {
        let (api, handle, counts, within) =
            (Arc::clone(&place.api), place.handle.clone(), Arc::clone(counts), path.clone());
        follow(place, &path, move |kind, object| {
            if kind == "ADDED" {
                handle.spawn(bump(Arc::clone(&api), format!("{within}/{}", name(&object)), Arc::clone(&counts)));
            }
        })
    };
    let watches = [watch(sets(namespace), &counts[0]), watch(pods(namespace), &counts[1])];
    Bumps { counts, _watches: watches }
}

impl Bumps {
    /// Ends it, once it has done with all that it has seen: how many writes went well, for each set and for each pod.
    pub fn end(self) -> [Vec<usize>; 2] {
        let until = Instant::now() + GRACE;
        let done = |counts: &Counts| lock(counts).values().all(|(tried, _)| *tried == AT.len());
        while !self.counts.iter().all(done) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(50));
        }
        self.counts.each_ref().map(|counts| lock(counts).values().map(|(_, well)| *well).collect())
    }
}

fn lock(counts: &Counts) -> MutexGuard<'_, BTreeMap<String, (usize, usize)>> {
    counts.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn bump(api: Arc<Api>, object: String, counts: Counts) {
    let begun = tokio::time::Instant::now();
    lock(&counts).entry(object.clone()).or_default();
    for (number, at) in AT.into_iter().enumerate() {
        tokio::time::sleep_until(begun + Duration::from_millis(at)).await;
        let patch = json!({"metadata": {"annotations": {"example.test/bump": number.to_string()}}});
        let request = Request::new(Method::Patch, object.clone()).with_body(MERGE_PATCH, patch);
        let went_well = matches!(api.send("second writer", &request).await, Reply::Http { status: 200, .. });
        let mut counts = lock(&counts);
        let (tried, well) = counts.entry(object.clone()).or_default();
        *tried += 1;
        *well += usize::from(went_well);
    }
}
