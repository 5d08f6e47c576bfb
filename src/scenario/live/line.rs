//! Between one operator and a real API server: its requests go through the story's lens, and meet on their way what the
//! story has for them. The server itself is never changed.

use super::lens::Lens;
use super::outage::Outage;
use crate::core::wire::{self, Reply, Verb};
use crate::scenario::process::wire::{Answering, Beyond, BoxError, Sent};
use crate::shell::client;
use crate::sim::faults::{Faults, What};
use crate::sim::http::{answer, give, read};
use crate::sim::registry::{Asker, Registry};
use crate::sim::store::{About, Store};
use crate::sim::world::OPERATOR;
use bytes::{Bytes, BytesMut};
use futures::FutureExt;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Full};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::Instant;

/// What a story has for requests, shared by its people, its nodes and its operators.
pub struct Shared {
    /// What single requests meet.
    pub faults: Mutex<Faults>,
    /// A cluster without anything in it: it knows what paths mean, and bears the refusals in force.
    pub rules: Mutex<Store>,
    /// The snapshot registry.
    pub registry: Mutex<Registry>,
    /// When the control plane was away.
    pub outage: Arc<Outage>,
    origin: Instant,
    /// When something happened last, in milliseconds since the origin.
    last: AtomicU64,
    under_way: AtomicUsize,
}

/// Locks, whatever happened to whoever held it before.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// Nothing in force.
    pub fn new(rules: Store, origin: Instant, outage: Arc<Outage>) -> Self {
        Self {
            faults: Mutex::default(),
            rules: Mutex::new(rules),
            registry: Mutex::default(),
            outage,
            origin,
            last: AtomicU64::new(0),
            under_way: AtomicUsize::new(0),
        }
    }
    /// Something has happened.
    pub fn touch(&self) {
        let now = u64::try_from(self.origin.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last.fetch_max(now, Ordering::Relaxed);
    }
    /// For how long nothing has happened.
    pub fn quiet_for(&self) -> Duration {
        if self.under_way.load(Ordering::Relaxed) > 0 {
            return Duration::ZERO;
        }
        self.origin.elapsed().saturating_sub(Duration::from_millis(self.last.load(Ordering::Relaxed)))
    }
}

/// Counts a request while it is under way.
struct UnderWay(Arc<Shared>);

impl UnderWay {
    fn new(shared: &Arc<Shared>) -> Self {
        shared.touch();
        shared.under_way.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(shared))
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Ordering::Relaxed);
        self.0.touch();
    }
}

/// Where one operator's requests go.
#[derive(Clone)]
pub struct Line {
    /// The story's names.
    pub lens: Arc<Lens>,
    /// The operator's own client.
    pub operator: kube::Client,
    /// Whoever is faster than the operator.
    pub people: kube::Client,
    /// What the story has.
    pub shared: Arc<Shared>,
}

impl Beyond for Line {
    fn api(&self, request: Request<kube::client::Body>) -> Answering {
        let line = self.clone();
        async move { line.carry(request).await }.boxed()
    }

    fn snapshots(&self, verb: Verb, vm: &str, tag: &str, digest: Option<&str>) -> BoxFuture<'static, Reply> {
        let line = self.clone();
        let (vm, tag, digest) = (vm.to_owned(), tag.to_owned(), digest.map(str::to_owned));
        async move {
            let _counted = UnderWay::new(&line.shared);
            let name = format!("{vm}:{tag}");
            let about = About { verb, kind: "snapshots".to_owned(), namespace: String::new(), name };
            let met = lock(&line.shared.faults).meet(OPERATOR, &about);
            let call = || lock(&line.shared.registry).call(Asker::Operator, verb, &vm, &tag, digest.as_deref());
            match met {
                None => call(),
                Some(What::Answer(reply)) => reply,
                Some(What::TimeoutBefore) => Reply::TimedOut,
                Some(What::Reset { sent }) => Reply::Reset { sent },
                Some(What::TimeoutAfter) => {
                    call();
                    Reply::TimedOut
                }
                Some(What::ResetAfter) => {
                    call();
                    Reply::Reset { sent: true }
                }
                Some(What::Overtaken(request)) => {
                    send(&line.people, &line.lens, &request).await.ok();
                    call()
                }
            }
        }
        .boxed()
    }
}

impl Line {
    async fn carry(self, request: Request<kube::client::Body>) -> Result<Response<Sent>, BoxError> {
        let (parts, body) = request.into_parts();
        let bytes = body.collect().await?.to_bytes();
        let request = match read(&parts, &bytes) {
            Ok(request) => request.ok_or("no such method")?,
            Err(reply) => return Ok(sent(answer(&reply))),
        };
        if is_watch(&request) {
            return self.pass_on(&request).await;
        }
        let about = lock(&self.shared.rules).about(&request);
        // A leader renews for ever: that is quiet, too.
        let quiet = about.as_ref().is_some_and(|about| about.kind == "leases");
        let _counted = (!quiet).then(|| UnderWay::new(&self.shared));
        match about.and_then(|about| lock(&self.shared.faults).meet(OPERATOR, &about)) {
            None => self.judged(&request).await,
            Some(What::Answer(reply)) => Ok(sent(give(reply).await?)),
            Some(What::TimeoutBefore) => Ok(sent(give(Reply::TimedOut).await?)),
            Some(What::Reset { sent: left }) => Ok(sent(give(Reply::Reset { sent: left }).await?)),
            Some(What::TimeoutAfter) => {
                self.judged(&request).await?;
                Ok(sent(give(Reply::TimedOut).await?))
            }
            Some(What::ResetAfter) => {
                self.judged(&request).await?;
                Ok(sent(give(Reply::Reset { sent: true }).await?))
            }
            Some(What::Overtaken(other)) => {
                send(&self.people, &self.lens, &other).await?;
                self.judged(&request).await
            }
        }
    }

    /// Carried out, unless it is refused.
    async fn judged(&self, request: &wire::Request) -> Result<Response<Sent>, BoxError> {
        let refused = lock(&self.shared.rules).turns_down(OPERATOR, request);
        match refused {
            Some(reply) => Ok(sent(answer(&reply))),
            None => self.pass_on(request).await,
        }
    }

    async fn pass_on(&self, request: &wire::Request) -> Result<Response<Sent>, BoxError> {
        through(&self.operator, &self.lens, request).await
    }
}

fn sent(response: Response<crate::sim::http::Body>) -> Response<Sent> {
    response.map(|body| body.map_err(|never| match never {}).boxed_unsync())
}

fn is_watch(request: &wire::Request) -> bool {
    let asked = |(key, value): &(String, String)| key == "watch" && matches!(value.as_str(), "true" | "1");
    matches!(request.method, wire::Method::Get) && request.query.iter().any(asked)
}

/// Sends a request through the lens, and reads the whole answer.
pub async fn send(client: &kube::Client, lens: &Arc<Lens>, request: &wire::Request) -> Result<Bytes, BoxError> {
    Ok(through(client, lens, request).await?.into_body().collect().await?.to_bytes())
}

/// A client that looks through the lens.
pub fn looking(client: &kube::Client, lens: &Arc<Lens>) -> kube::Client {
    let (client, lens) = (client.clone(), Arc::clone(lens));
    let service = tower::service_fn(move |request: Request<kube::client::Body>| {
        let (client, lens) = (client.clone(), Arc::clone(&lens));
        async move {
            let (parts, body) = request.into_parts();
            let bytes = body.collect().await?.to_bytes();
            match read(&parts, &bytes) {
                Ok(request) => through(&client, &lens, &request.ok_or("no such method")?).await,
                Err(reply) => Ok(sent(answer(&reply))),
            }
        }
    });
    kube::Client::new(service, "default")
}

/// Sends a request through the lens. A watch comes back line by line.
async fn through(client: &kube::Client, lens: &Arc<Lens>, request: &wire::Request) -> Result<Response<Sent>, BoxError> {
    let mixes = lens.mixes(request);
    let response = client.send(client::spelled(&lens.there(request))?).await?;
    let (mut parts, body) = response.into_parts();
    parts.headers.remove(http::header::CONTENT_LENGTH);
    if is_watch(request) && parts.status == http::StatusCode::OK {
        let body = Seen { lens: Arc::clone(lens), mixes, body, read: BytesMut::new(), over: false };
        return Ok(Response::from_parts(parts, body.boxed_unsync()));
    }
    let bytes = body.collect().await?.to_bytes();
    let bytes = if mixes { only_ours(lens, &bytes) } else { bytes.to_vec() };
    let whole = Full::new(Bytes::from(lens.back(&bytes))).map_err(|never| match never {});
    Ok(Response::from_parts(parts, whole.boxed_unsync()))
}

/// A list without the objects of other stories.
fn only_ours(lens: &Lens, bytes: &[u8]) -> Vec<u8> {
    let Ok(mut list) = serde_json::from_slice::<serde_json::Value>(bytes) else { return bytes.to_vec() };
    if let Some(items) = list.get_mut("items").and_then(serde_json::Value::as_array_mut) {
        items.retain(|item| lens.is_ours(item));
    }
    list.to_string().into_bytes()
}

/// The body of a watch, seen through the lens: whole lines only.
struct Seen {
    lens: Arc<Lens>,
    mixes: bool,
    body: kube::client::Body,
    read: BytesMut,
    over: bool,
}

impl Seen {
    /// The lines that are whole.
    fn lines(&mut self) -> Option<Bytes> {
        let end = self.read.iter().rposition(|byte| *byte == b'\n')?;
        let whole = self.read.split_to(end.saturating_add(1));
        if !self.mixes {
            return Some(Bytes::from(self.lens.back(&whole)));
        }
        let ours = |line: &&[u8]| {
            let event: serde_json::Value = serde_json::from_slice(line).unwrap_or_default();
            event.get("object").is_some_and(|object| self.lens.is_ours(object))
        };
        let kept: Vec<&[u8]> = whole.split_inclusive(|byte| *byte == b'\n').filter(ours).collect();
        Some(Bytes::from(self.lens.back(&kept.concat()))).filter(|kept| !kept.is_empty())
    }
}

impl Body for Seen {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        loop {
            if let Some(lines) = self.lines() {
                return Poll::Ready(Some(Ok(Frame::data(lines))));
            }
            if self.over {
                let rest = self.read.split().freeze();
                return Poll::Ready((!rest.is_empty()).then(|| Ok(Frame::data(rest))));
            }
            match futures::ready!(Pin::new(&mut self.body).poll_frame(context)) {
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        self.read.extend_from_slice(&data);
                    }
                }
                Some(Err(error)) => return Poll::Ready(Some(Err(error.into()))),
                None => self.over = true,
            }
        }
    }
}
