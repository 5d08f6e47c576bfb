//! The world behind HTTP, on tokio's clock: in the same process, or on a port. The cluster's time follows tokio's, so
//! that under a paused clock hours pass in no time.

use super::face::{Shape, Shaper};
use super::http::{self, Body, BoxError};
use super::store::{Watch, WatchEvent, WatchKind};
use super::world::{Told, World};
use ::http::{Request, Response};
use bytes::Bytes;
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use jiff::{SignedDuration, Timestamp};
use std::collections::{BTreeSet, VecDeque};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

/// How often an idle watch is told how far it has come.
const BOOKMARKS: Duration = Duration::from_secs(60);
/// How long a watch stays open that does not say.
const WATCH_LIMIT: Duration = Duration::from_secs(1800);

/// A handle on a cluster that is served. Clones are the same cluster.
#[derive(Clone)]
pub struct Cluster {
    inner: Arc<Inner>,
}

struct Inner {
    world: Mutex<World>,
    told: Mutex<Vec<Told>>,
    wire: Mutex<Wire>,
    start: Timestamp,
    origin: Instant,
    /// Nothing follows from anything until it is stepped.
    stepped: bool,
    /// Counts what may interest those who wait: writes, and changes of the wire.
    changed: watch::Sender<u64>,
    /// The same for open watches, which are woken in the order in which they wait: a channel wakes its receivers in an
    /// order drawn by chance, and then the same world would not always tell its clients the same.
    waiting: Notify,
}

/// What the transport does to everybody.
#[derive(Default)]
struct Wire {
    latency: Duration,
    held: BTreeSet<String>,
    /// Watches opened before this count have been cut.
    cut: u64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Cluster {
    /// Serves this world from now on: its time is now.
    pub fn new(world: World) -> Self {
        Self::serving(world, false)
    }

    /// The same, but what follows from a request, and what is due, happens when [`Cluster::step`] says so: for whoever
    /// goes from moment to moment.
    pub fn stepped(world: World) -> Self {
        Self::serving(world, true)
    }

    fn serving(world: World, stepped: bool) -> Self {
        let start = world.now();
        let inner = Inner {
            world: Mutex::new(world),
            told: Mutex::default(),
            wire: Mutex::default(),
            start,
            origin: Instant::now(),
            stepped,
            changed: watch::channel(0).0,
            waiting: Notify::new(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// What time it is in the cluster.
    pub fn now(&self) -> Timestamp {
        let passed = SignedDuration::try_from(self.inner.origin.elapsed()).unwrap_or(SignedDuration::MAX);
        self.inner.start.checked_add(passed).unwrap_or(Timestamp::MAX)
    }

    /// Lets everything happen that is due by now.
    pub fn step(&self) -> Vec<Told> {
        let now = self.now();
        let mut world = lock(&self.inner.world);
        let before = world.store.version();
        let told = world.run_until(now);
        let wrote = world.store.version() != before;
        drop(world);
        if wrote {
            self.wake();
        }
        told
    }

    /// Does something with the world as it is now. What follows from it at once has happened when this returns.
    pub fn with<T>(&self, act: impl FnOnce(&mut World) -> T) -> T {
        let now = self.now();
        let mut world = lock(&self.inner.world);
        let before = world.store.version();
        let run = |world: &mut World| if self.inner.stepped { Vec::new() } else { world.run_until(now) };
        let mut told = run(&mut world);
        let result = act(&mut world);
        told.extend(run(&mut world));
        let wrote = world.store.version() != before;
        drop(world);
        let heard = !told.is_empty();
        lock(&self.inner.told).append(&mut told);
        if wrote || heard {
            self.wake();
        }
        result
    }

    fn wake(&self) {
        self.inner.changed.send_modify(|count| *count = count.wrapping_add(1));
        self.inner.waiting.notify_waiters();
    }

    /// Signals whenever something was written or has happened.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.inner.changed.subscribe()
    }

    /// What has happened since the last call.
    pub fn take_told(&self) -> Vec<Told> {
        std::mem::take(&mut lock(&self.inner.told))
    }

    /// Every request takes this long from now on.
    pub fn set_latency(&self, latency: Duration) {
        lock(&self.inner.wire).latency = latency;
    }

    /// Watches of this resource (`pods`, `cocoonsets.cocoonset.cocoonstack.io`) fall silent, or go on where they were.
    pub fn hold_watches(&self, resource: &str, hold: bool) {
        let mut wire = lock(&self.inner.wire);
        if hold {
            wire.held.insert(resource.to_owned());
        } else {
            wire.held.remove(resource);
        }
        drop(wire);
        self.wake();
    }

    /// Ends every open watch.
    pub fn cut_watches(&self) {
        let mut wire = lock(&self.inner.wire);
        wire.cut = wire.cut.wrapping_add(1);
        drop(wire);
        self.wake();
    }

    /// Lets things happen at their times, for as long as it is polled.
    pub async fn drive(&self) {
        let mut changes = self.changes();
        loop {
            changes.borrow_and_update();
            let due = self.with(|world| world.next_due());
            let wait = due.map(|due| due.duration_since(self.now()));
            let wait = wait.map(|wait| Duration::try_from(wait).unwrap_or(Duration::ZERO));
            tokio::select! {
                biased;
                _ = changes.changed() => {}
                () = tokio::time::sleep(wait.unwrap_or_default()), if wait.is_some() => {}
            }
        }
    }

    /// Answers one HTTP request of this user, who may call himself otherwise by a bearer token.
    pub async fn handle<B>(&self, user: &str, request: Request<B>) -> Result<Response<Body>, BoxError>
    where
        B: http_body::Body<Data = Bytes>,
        B::Error: Into<BoxError>,
    {
        self.delay().await;
        http::api(self, user, request).await
    }

    /// Answers one HTTP request to the registry.
    pub async fn handle_registry<B>(&self, request: Request<B>) -> Result<Response<Body>, BoxError> {
        self.delay().await;
        http::registry(self, &request).await
    }

    async fn delay(&self) {
        let latency = lock(&self.inner.wire).latency;
        if !latency.is_zero() {
            tokio::time::sleep(latency).await;
        }
    }

    /// A client in the same process that speaks as this user.
    pub fn client(&self, user: &str, namespace: &str) -> kube::Client {
        let (cluster, user) = (self.clone(), user.to_owned());
        let service = tower::service_fn(move |request: Request<kube::client::Body>| {
            let (cluster, user) = (cluster.clone(), user.clone());
            async move { cluster.handle(&user, request).await }
        });
        kube::Client::new(service, namespace)
    }

    /// Serves the API on a port, for as long as it is polled. Requests without a bearer token come from this user.
    pub async fn serve(&self, listener: TcpListener, user: &str) -> std::io::Result<()> {
        let (cluster, user) = (self.clone(), user.to_owned());
        http::accept(listener, move |request| {
            let (cluster, user) = (cluster.clone(), user.clone());
            async move { cluster.handle(&user, request).await }
        })
        .await
    }

    /// Serves the registry on a port, for as long as it is polled.
    pub async fn serve_registry(&self, listener: TcpListener) -> std::io::Result<()> {
        let cluster = self.clone();
        http::accept(listener, move |request| {
            let cluster = cluster.clone();
            async move { cluster.handle_registry(request).await }
        })
        .await
    }

    fn shaper(&self, watch: &Watch, shape: Shape) -> Option<Shaper> {
        let world = lock(&self.inner.world);
        let mut kinds = world.store.resources();
        let resource =
            kinds.find(|kind| kind.qualified() == watch.query.resource && kind.api_version() == watch.api_version)?;
        (shape != Shape::Whole).then(|| Shaper::new(shape, resource))
    }

    /// The body of a watch: one JSON object a line, until its time is over, it is cut, or it has fallen behind.
    pub(super) fn stream(&self, watch: Watch, shape: Shape) -> Body {
        let limit = watch.timeout_seconds.filter(|seconds| *seconds > 0).map_or(WATCH_LIMIT, Duration::from_secs);
        let now = Instant::now();
        let stream = Stream {
            shaper: self.shaper(&watch, shape),
            cluster: self.clone(),
            cut: lock(&self.inner.wire).cut,
            told: watch.version,
            watch,
            ready: VecDeque::new(),
            until: now.checked_add(limit).unwrap_or(now + WATCH_LIMIT),
            next_bookmark: now + BOOKMARKS,
            over: false,
        };
        let frames = futures::stream::unfold(stream, |mut stream| async move {
            let frame = stream.next().await?;
            Some((Ok::<_, Infallible>(Frame::data(frame)), stream))
        });
        StreamBody::new(frames).boxed_unsync()
    }
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Cluster")
    }
}

/// An open watch on its way to a client.
struct Stream {
    cluster: Cluster,
    /// None for objects as they are.
    shaper: Option<Shaper>,
    watch: Watch,
    ready: VecDeque<Bytes>,
    cut: u64,
    until: Instant,
    next_bookmark: Instant,
    /// The version that the client knows of.
    told: u64,
    over: bool,
}

impl Stream {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(frame) = self.ready.pop_front() {
                return Some(frame);
            }
            if self.over {
                return None;
            }
            let inner = Arc::clone(&self.cluster.inner);
            let changed = inner.waiting.notified();
            self.take_events();
            if !self.ready.is_empty() || self.over {
                continue;
            }
            tokio::select! {
                biased;
                () = changed => {}
                () = tokio::time::sleep_until(self.until) => {
                    self.bookmark();
                    self.over = true;
                }
                () = tokio::time::sleep_until(self.next_bookmark), if self.watch.bookmarks => {
                    self.bookmark();
                    self.next_bookmark += BOOKMARKS;
                }
            }
        }
    }

    fn take_events(&mut self) {
        let wire = lock(&self.cluster.inner.wire);
        let (cut, held) = (wire.cut != self.cut, wire.held.contains(&self.watch.query.resource));
        drop(wire);
        if cut {
            self.over = true;
            return;
        }
        if held {
            return;
        }
        let events = lock(&self.cluster.inner.world).poll_watch(&mut self.watch);
        for event in &events {
            self.told = self.told.max(event.version);
            self.over |= event.kind == WatchKind::Error;
            let line = self.line(event);
            self.ready.push_back(line);
        }
    }

    /// Says how far the watch has come, where that is news.
    fn bookmark(&mut self) {
        if !self.watch.bookmarks || self.watch.version <= self.told {
            return;
        }
        self.told = self.watch.version;
        let event = lock(&self.cluster.inner.world).store.bookmark(&self.watch);
        let line = self.line(&event);
        self.ready.push_back(line);
    }

    fn line(&mut self, event: &WatchEvent) -> Bytes {
        let now = self.cluster.now();
        let frame = self.shaper.as_mut().map_or_else(|| event.frame(), |shaper| shaper.frame(event, now));
        Bytes::from(format!("{frame}\n"))
    }
}
