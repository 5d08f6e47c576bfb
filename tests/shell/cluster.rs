//! The store behind the real client, in process and on the runtime's clock, with a node that boots and stops pods.

use bytes::Bytes;
use cocoon_operator::core::api::crd;
use cocoon_operator::core::wire::{JSON, MERGE_PATCH, Method, Reply, Request};
use cocoon_operator::shell::clock::Clock;
use cocoon_operator::shell::options::Settings;
use cocoon_operator::shell::registry::{Local, Registry};
use cocoon_operator::shell::{Exit, Shell, Shutdown, Stopper, run, shutdown};
use cocoon_operator::sim::store::{ReplyBody, Store, Watch};
use futures::stream;
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use jiff::Timestamp;
use kube::client::Body;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

type ReplyBytes = UnsyncBoxBody<Bytes, io::Error>;
/// Looks at a request before the store does, and may answer in its place.
type Meddler = Box<dyn FnMut(&Request) -> Option<Meddled> + Send>;

/// What a request meets in the store's place.
pub enum Meddled {
    /// This answer.
    Answer(Reply),
    /// Nothing, ever.
    Hang,
    /// A watch that ends after this line.
    Line(String),
}

#[derive(Clone)]
pub struct Cluster {
    inner: Arc<Mutex<Inner>>,
    changed: tokio::sync::watch::Sender<u64>,
    start: Instant,
}

struct Inner {
    store: Store,
    requests: Vec<String>,
    meddlers: Vec<Meddler>,
}

const WALL: &str = "2026-08-03T12:00:00Z";
const OPERATOR: &str = "operator";

impl Cluster {
    pub fn new() -> Self {
        let mut store = Store::new(wall());
        for manifest in crd::crds() {
            store.install_crd(&manifest);
        }
        store.add_namespace("ns");
        let inner = Inner { store, requests: Vec::new(), meddlers: Vec::new() };
        let cluster = Self {
            inner: Arc::new(Mutex::new(inner)),
            changed: tokio::sync::watch::channel(0).0,
            start: Instant::now(),
        };
        cluster.admin(Method::Post, "/api/v1/nodes", JSON, node());
        cluster
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().expect("not poisoned")
    }

    /// One request of the administrator.
    pub fn admin(&self, method: Method, path: &str, content_type: &str, body: Value) -> u16 {
        let request = Request::new(method, path).with_body(content_type, body);
        self.with_store(|store| store.handle(&request).status)
    }
    pub fn create_set(&self, name: &str, spec: Value) {
        let set = json!({"apiVersion": "cocoonset.cocoonstack.io/v1", "kind": "CocoonSet",
            "metadata": {"name": name, "namespace": "ns"}, "spec": spec});
        let status = self.admin(Method::Post, &sets(""), JSON, set);
        assert_eq!(status, 201);
    }
    pub fn patch_set(&self, name: &str, patch: Value) {
        assert_eq!(self.admin(Method::Patch, &sets(name), MERGE_PATCH, patch), 200);
    }
    pub fn delete(&self, path: &str) {
        assert!(self.admin(Method::Delete, path, JSON, json!({})) < 300, "{path}");
    }
    pub fn set(&self, name: &str) -> Option<Value> {
        self.with_store(|store| store.get("cocoonsets.cocoonset.cocoonstack.io", "ns", name).cloned())
    }
    pub fn phase(&self, name: &str) -> String {
        let set = self.set(name).unwrap_or_default();
        set.pointer("/status/phase").and_then(Value::as_str).unwrap_or_default().to_owned()
    }
    pub fn pods(&self) -> Vec<String> {
        self.with_store(|store| store.objects("pods", Some("ns")).map(|pod| text(pod, "/metadata/name")).collect())
    }
    /// What the operator sent that contains this.
    pub fn sent(&self, part: &str) -> usize {
        self.lock().requests.iter().filter(|line| line.contains(part)).count()
    }
    pub fn requests(&self) -> Vec<String> {
        self.lock().requests.clone()
    }
    pub fn meddle(&self, meddler: impl FnMut(&Request) -> Option<Meddled> + Send + 'static) {
        self.lock().meddlers.push(Box::new(meddler));
    }
    pub fn stop_meddling(&self) {
        self.lock().meddlers.clear();
    }

    pub fn with_store<T>(&self, act: impl FnOnce(&mut Store) -> T) -> T {
        let mut inner = self.lock();
        inner.store.set_now(self.now());
        let result = act(&mut inner.store);
        let version = inner.store.version();
        drop(inner);
        self.changed.send_replace(version);
        result
    }

    fn now(&self) -> Timestamp {
        wall() + jiff::SignedDuration::try_from(self.start.elapsed()).expect("not that long")
    }

    /// Lets controllers, scheduler and node do their work four times a second.
    pub fn start_nodes(&self) -> JoinHandle<()> {
        let cluster = self.clone();
        tokio::spawn(async move {
            loop {
                cluster.with_store(|store| {
                    store.run_due();
                    tend_pods(store);
                });
                sleep(Duration::from_millis(250)).await;
            }
        })
    }

    pub fn client(&self) -> kube::Client {
        let cluster = self.clone();
        let service = tower::service_fn(move |request: http::Request<Body>| {
            let cluster = cluster.clone();
            async move { cluster.answer(request).await }
        });
        kube::Client::new(service, "default")
    }

    async fn answer(&self, request: http::Request<Body>) -> Result<http::Response<ReplyBytes>, io::Error> {
        let request = read(request).await;
        let meddled = {
            let mut inner = self.lock();
            let query: Vec<String> = request.query.iter().map(|(key, value)| format!("{key}={value}")).collect();
            inner.requests.push(format!("{} {}?{}", request.method.as_str(), request.path, query.join("&")));
            inner.meddlers.iter_mut().find_map(|meddler| meddler(&request))
        };
        match meddled {
            Some(Meddled::Answer(reply)) => return spell(reply),
            Some(Meddled::Hang) => return std::future::pending().await,
            Some(Meddled::Line(line)) => return Ok(http::Response::new(full(format!("{line}\n").into_bytes()))),
            None => {}
        }
        if request.query.iter().any(|(key, value)| key == "watch" && value == "true") {
            return match self.with_store(|store| store.open_watch_as(OPERATOR, &request)) {
                Ok(watch) => Ok(http::Response::new(self.stream(watch))),
                Err(reply) => spell(reply_of(reply)),
            };
        }
        spell(reply_of(self.with_store(|store| store.handle_as(OPERATOR, &request))))
    }

    fn stream(&self, watch: Watch) -> ReplyBytes {
        let end = Instant::now() + Duration::from_secs(watch.timeout_seconds.unwrap_or(300));
        let state = (self.clone(), watch, VecDeque::new(), self.changed.subscribe());
        let frames = stream::unfold(state, move |(cluster, mut watch, mut due, mut changed)| async move {
            loop {
                if let Some(frame) = due.pop_front() {
                    return Some((Ok(Frame::data(frame)), (cluster, watch, due, changed)));
                }
                changed.borrow_and_update();
                let events = cluster.lock().store.poll_watch(&mut watch);
                if !events.is_empty() {
                    due.extend(events.iter().map(|event| Bytes::from(format!("{}\n", event.frame()))));
                    continue;
                }
                tokio::select! {
                    biased;
                    _ = changed.changed() => {}
                    () = tokio::time::sleep_until(end) => return None,
                }
            }
        });
        StreamBody::new(frames).boxed_unsync()
    }

    /// An operator on this cluster, working.
    pub fn operator(&self, registry: Local) -> Operator {
        let clock = Clock::starting_at(wall(), 0);
        let registry = Registry::local(registry, clock.clone());
        let shell = Arc::new(Shell::new(self.client(), registry, Settings::default(), clock));
        let (stopper, wanted): (Stopper, Shutdown) = shutdown();
        let running = Arc::clone(&shell);
        let task = tokio::spawn(async move { run(running, wanted).await.expect("no port is asked for") });
        Operator { shell, stopper, task }
    }
}

pub struct Operator {
    pub shell: Arc<Shell>,
    pub stopper: Stopper,
    pub task: JoinHandle<Exit>,
}

impl Operator {
    pub fn errors(&self) -> u64 {
        self.shell.metrics.errors()
    }
    pub fn metric(&self, line: &str) -> bool {
        self.shell.metrics.text().contains(line)
    }
}

/// Waits, in virtual time, until this holds.
pub async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..4_800 {
        if holds() {
            return;
        }
        sleep(Duration::from_millis(250)).await;
    }
    panic!("not within twenty minutes: {what}");
}

/// A registry that holds nothing.
pub fn empty_registry() -> Local {
    Arc::new(|_, _, _, _| Box::pin(async { http_reply(404) }))
}

pub fn http_reply(status: u16) -> Reply {
    Reply::Http { status, retry_after: None, body: Vec::new(), digest: None }
}

pub fn sets(name: &str) -> String {
    let all = "/apis/cocoonset.cocoonstack.io/v1/namespaces/ns/cocoonsets";
    if name.is_empty() { all.to_owned() } else { format!("{all}/{name}") }
}

fn wall() -> Timestamp {
    WALL.parse().expect("a time")
}

fn node() -> Value {
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-a"},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]}})
}

/// Binds and readies what is new, and lets go what is being deleted.
fn tend_pods(store: &mut Store) {
    let pods: Vec<Value> = store.objects("pods", None).cloned().collect();
    for pod in pods {
        let (namespace, name) = (text(&pod, "/metadata/namespace"), text(&pod, "/metadata/name"));
        if pod.pointer("/metadata/deletionTimestamp").is_some() {
            let body = json!({"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0});
            let path = format!("/api/v1/namespaces/{namespace}/pods/{name}");
            store.handle(&Request::new(Method::Delete, path).with_body(JSON, body));
        } else if pod.pointer("/spec/nodeName").is_none() {
            store.modify("pods", &namespace, &name, |pod| {
                pod["spec"]["nodeName"] = json!("node-a");
                pod["metadata"]["annotations"]["vm.cocoonstack.io/id"] = json!(format!("vm-{name}"));
                pod["metadata"]["annotations"]["vm.cocoonstack.io/lifecycle-state"] = json!("ready");
                pod["status"] = json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]});
            });
        }
    }
}

fn text(value: &Value, pointer: &str) -> String {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

async fn read(request: http::Request<Body>) -> Request {
    let (parts, body) = request.into_parts();
    let method = match parts.method.as_str() {
        "GET" => Method::Get,
        "POST" => Method::Post,
        "PATCH" => Method::Patch,
        "DELETE" => Method::Delete,
        other => panic!("the operator has no use for {other}"),
    };
    let query = form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes());
    let body = body.collect().await.expect("a whole body").to_bytes();
    let mut read = Request::new(method, parts.uri.path());
    read.query = query.into_owned().collect();
    read.content_type = parts.headers.get("content-type").map(|value| value.to_str().expect("plain text").to_owned());
    read.body = if body.is_empty() { Value::Null } else { serde_json::from_slice(&body).expect("JSON") };
    read
}

fn reply_of(reply: cocoon_operator::sim::store::StoreReply) -> Reply {
    let body = match &reply.body {
        ReplyBody::Json(value) => value.to_string().into_bytes(),
        ReplyBody::Text(text) => text.clone().into_bytes(),
    };
    Reply::Http { status: reply.status, retry_after: reply.retry_after, body, digest: None }
}

fn spell(reply: Reply) -> Result<http::Response<ReplyBytes>, io::Error> {
    match reply {
        Reply::Http { status, retry_after, body, .. } => {
            let mut response = http::Response::builder().status(status);
            if let Some(wait) = retry_after {
                response = response.header("retry-after", wait.as_secs());
            }
            Ok(response.body(full(body)).expect("a response"))
        }
        Reply::TimedOut => Err(io::ErrorKind::TimedOut.into()),
        Reply::Reset { sent: false } => Err(io::ErrorKind::ConnectionRefused.into()),
        Reply::Reset { sent: true } | Reply::Fenced => Err(io::ErrorKind::ConnectionReset.into()),
    }
}

fn full(body: Vec<u8>) -> ReplyBytes {
    Full::new(Bytes::from(body)).map_err(|never| match never {}).boxed_unsync()
}
