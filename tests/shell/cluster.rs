//! The served world behind the real client, in process and on the runtime's clock, with somebody on the wire who keeps
//! a list of what the operator sends and may answer in the cluster's place.

use bytes::Bytes;
use cocoon_operator::core::wire::{JSON, MERGE_PATCH, Method, Reply, Request};
use cocoon_operator::shell::clock::Clock;
use cocoon_operator::shell::options::Settings;
use cocoon_operator::shell::registry::{Local, Registry};
use cocoon_operator::shell::{Exit, Shell, Stopper, run, shutdown};
use cocoon_operator::sim::node::NodeSpec;
use cocoon_operator::sim::server::Cluster as Served;
use cocoon_operator::sim::world::{OPERATOR, World};
use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
use kube::client::Body;
use serde_json::{Value, json};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::sleep;

type BoxError = Box<dyn std::error::Error + Send + Sync>;
type ReplyBytes = UnsyncBoxBody<Bytes, BoxError>;
type Meddler = Box<dyn FnMut(&Request) -> Option<Meddled> + Send>;

/// What a request meets in the cluster's place.
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
    pub served: Served,
    wire: Arc<Mutex<Wire>>,
}

#[derive(Default)]
struct Wire {
    requests: Vec<String>,
    meddlers: Vec<Meddler>,
}

impl Cluster {
    /// A cluster with namespace `ns` and one node, running.
    pub fn new() -> Self {
        let mut world = World::new("2026-08-03T12:00:00Z".parse().expect("a time"));
        world.store.add_namespace("ns");
        world.add_node(NodeSpec::named("node-a"));
        let cluster = Self { served: Served::new(world), wire: Arc::default() };
        let served = cluster.served.clone();
        tokio::spawn(async move { served.drive().await });
        cluster
    }

    /// One request of the administrator; the status of its answer.
    pub fn admin(&self, method: Method, path: &str, content_type: &str, body: Value) -> u16 {
        let request = Request::new(method, path).with_body(content_type, body);
        self.served.with(|world| world.store.handle(&request).status)
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
        self.served.with(|world| world.store.get("cocoonsets.cocoonset.cocoonstack.io", "ns", name).cloned())
    }
    pub fn phase(&self, name: &str) -> String {
        text(&self.set(name).unwrap_or_default(), "/status/phase")
    }
    pub fn pods(&self) -> Vec<String> {
        let names = |world: &mut World| {
            world.store.objects("pods", Some("ns")).map(|pod| text(pod, "/metadata/name")).collect()
        };
        self.served.with(names)
    }
    pub fn has_namespace(&self) -> bool {
        self.served.with(|world| world.store.get("namespaces", "", "ns").is_some())
    }

    /// What the operator sent, line by line.
    pub fn requests(&self) -> Vec<String> {
        self.wire().requests.clone()
    }
    /// How much of it contains this.
    pub fn sent(&self, part: &str) -> usize {
        self.wire().requests.iter().filter(|line| line.contains(part)).count()
    }
    pub fn meddle(&self, meddler: impl FnMut(&Request) -> Option<Meddled> + Send + 'static) {
        self.wire().meddlers.push(Box::new(meddler));
    }
    pub fn stop_meddling(&self) {
        self.wire().meddlers.clear();
    }

    fn wire(&self) -> MutexGuard<'_, Wire> {
        self.wire.lock().expect("not poisoned")
    }

    fn client(&self) -> kube::Client {
        let cluster = self.clone();
        let service = tower::service_fn(move |request: http::Request<Body>| {
            let cluster = cluster.clone();
            async move { cluster.answer(request).await }
        });
        kube::Client::new(service, "default")
    }

    async fn answer(&self, request: http::Request<Body>) -> Result<http::Response<ReplyBytes>, BoxError> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let seen = read(&parts, &body);
        let meddled = {
            let mut wire = self.wire();
            let query: Vec<String> = seen.query.iter().map(|(key, value)| format!("{key}={value}")).collect();
            wire.requests.push(format!("{} {}?{}", seen.method.as_str(), seen.path, query.join("&")));
            wire.meddlers.iter_mut().find_map(|meddler| meddler(&seen))
        };
        match meddled {
            Some(Meddled::Answer(reply)) => spell(reply),
            Some(Meddled::Hang) => std::future::pending().await,
            Some(Meddled::Line(line)) => Ok(http::Response::new(full(format!("{line}\n").into_bytes()))),
            None => {
                let request = http::Request::from_parts(parts, Full::new(body));
                let response = self.served.handle(OPERATOR, request).await?;
                Ok(response.map(|body| body.map_err(|never| match never {}).boxed_unsync()))
            }
        }
    }

    /// An operator on this cluster, working.
    pub fn operator(&self, registry: Local) -> Operator {
        let clock = Clock::starting_at(self.served.now(), 0);
        let registry = Registry::local(registry, clock.clone());
        let shell = Arc::new(Shell::new(self.client(), registry, Settings::default(), clock));
        let (stopper, wanted) = shutdown();
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
    #[track_caller]
    pub fn shows(&self, line: &str) {
        let text = self.shell.metrics.text();
        assert!(text.contains(line), "no {line} in\n{text}");
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

/// The registry of the served world.
pub fn registry(cluster: &Cluster) -> Local {
    let served = cluster.served.clone();
    Arc::new(move |verb, vm, tag, digest| {
        let reply = served.with(|world| world.registry_call(verb, &vm, &tag, digest.as_deref()));
        Box::pin(async { reply })
    })
}

pub fn http_reply(status: u16) -> Reply {
    Reply::Http { status, retry_after: None, body: Vec::new(), digest: None }
}

pub fn sets(name: &str) -> String {
    let all = "/apis/cocoonset.cocoonstack.io/v1/namespaces/ns/cocoonsets";
    if name.is_empty() { all.to_owned() } else { format!("{all}/{name}") }
}

pub fn text(value: &Value, pointer: &str) -> String {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn read(parts: &http::request::Parts, body: &Bytes) -> Request {
    let method = match parts.method.as_str() {
        "GET" => Method::Get,
        "POST" => Method::Post,
        "PUT" => Method::Put,
        "PATCH" => Method::Patch,
        "DELETE" => Method::Delete,
        other => panic!("the operator has no use for {other}"),
    };
    let query = form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes());
    let mut read = Request::new(method, parts.uri.path());
    read.query = query.into_owned().collect();
    read.body = serde_json::from_slice(body).unwrap_or_default();
    read
}

fn spell(reply: Reply) -> Result<http::Response<ReplyBytes>, BoxError> {
    match reply {
        Reply::Http { status, retry_after, body, .. } => {
            let mut response = http::Response::builder().status(status);
            if let Some(wait) = retry_after {
                response = response.header("retry-after", wait.as_secs());
            }
            Ok(response.body(full(body))?)
        }
        Reply::TimedOut => Err(io::Error::from(io::ErrorKind::TimedOut).into()),
        Reply::Reset { sent: false } => Err(io::Error::from(io::ErrorKind::ConnectionRefused).into()),
        Reply::Reset { sent: true } | Reply::Fenced => Err(io::Error::from(io::ErrorKind::ConnectionReset).into()),
    }
}

fn full(body: Vec<u8>) -> ReplyBytes {
    Full::new(Bytes::from(body)).map_err(|never| match never {}).boxed_unsync()
}
