//! What lies between one operator and the cluster: its watches show what they have to show only when the stage looks,
//! some may not be opened, and after so many calls the operator dies.

use crate::core::control::kinds::Kind;
use crate::core::control::lease::NAME;
use crate::core::wire::{Reply, Verb};
use crate::shell::registry::Local;
use crate::shell::watch;
use crate::sim::server::Cluster;
use crate::sim::world::OPERATOR;
use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::{Method, Request, Response};
use http_body::{Body, Frame, SizeHint};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use tokio::sync::Notify;

/// What every client and every watch of one operator goes through.
#[derive(Debug, Default)]
pub struct Wire {
    inner: Mutex<Inner>,
    died: Notify,
}

#[derive(Debug, Default)]
struct Inner {
    /// Watches show what they have.
    open: bool,
    /// These show nothing even then.
    held: BTreeSet<Kind>,
    /// The open watch of these is too old, the next time it shows something.
    expired: BTreeSet<Kind>,
    /// These may not be watched.
    refused: Vec<Kind>,
    /// The watches that wait.
    waiting: BTreeMap<Kind, Waker>,
    /// So many calls are left until it dies.
    calls_left: Option<u32>,
    /// The API server is out of reach.
    cut_off: bool,
    dead: bool,
}

/// What is sent back.
pub type Sent = UnsyncBoxBody<Bytes, BoxError>;
/// Why a connection broke.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
/// The answer to a request, on its way.
pub type Answering = BoxFuture<'static, Result<Response<Sent>, BoxError>>;

/// What lies behind the wire: the cluster, and what a story lets happen to requests on their way there.
pub trait Beyond: Send + Sync {
    /// Answers one request to the API server.
    fn api(&self, request: Request<kube::client::Body>) -> Answering;
    /// Answers one call to the registry.
    fn snapshots(&self, verb: Verb, vm: &str, tag: &str, digest: Option<&str>) -> BoxFuture<'static, Reply>;
}

impl Beyond for Cluster {
    fn api(&self, request: Request<kube::client::Body>) -> Answering {
        let cluster = self.clone();
        async move {
            let response = cluster.handle(OPERATOR, request).await?;
            Ok(response.map(|body| body.map_err(|never| match never {}).boxed_unsync()))
        }
        .boxed()
    }
    fn snapshots(&self, verb: Verb, vm: &str, tag: &str, digest: Option<&str>) -> BoxFuture<'static, Reply> {
        let reply = self.with(|world| world.registry_call(verb, vm, tag, digest));
        std::future::ready(reply).boxed()
    }
}

impl Wire {
    /// An operator that may not watch these kinds.
    pub fn new(refused: &[Kind]) -> Self {
        Self { inner: Mutex::new(Inner { refused: refused.to_vec(), ..Inner::default() }), died: Notify::new() }
    }

    /// Watches show what they have from now on, or nothing.
    pub fn open(&self, open: bool) {
        let mut inner = self.lock();
        inner.open = open;
        // In the order of kinds, so that the same story is told every time.
        let waiting = if open { std::mem::take(&mut inner.waiting) } else { BTreeMap::new() };
        drop(inner);
        waiting.into_values().for_each(Waker::wake);
    }
    /// This kind's watch stands still, or goes on.
    pub fn hold(&self, kind: Kind, on: bool) {
        let mut inner = self.lock();
        if on {
            inner.held.insert(kind);
        } else {
            inner.held.remove(&kind);
        }
    }
    /// This kind's watch has to list anew.
    pub fn expire(&self, kind: Kind) {
        self.lock().expired.insert(kind);
    }
    /// The operator dies after so many further calls; after none, at its next.
    pub fn die_after(&self, calls: u32) {
        self.lock().calls_left = Some(calls);
    }
    /// The API server is out of reach, or no longer: watches show nothing, requests find nobody.
    pub fn cut_off(&self, on: bool) {
        Kind::ALL.into_iter().for_each(|kind| self.hold(kind, on));
        self.lock().cut_off = on;
    }
    /// It is dead: nothing that it sends arrives any more.
    pub fn cut(&self) {
        self.lock().dead = true;
        self.died.notify_one();
    }
    /// Waits until it dies.
    pub async fn died(&self) {
        self.died.notified().await;
    }
    /// True once it is dead.
    pub fn is_dead(&self) -> bool {
        self.lock().dead
    }
    /// A call was answered, and its answer noted. True if that was the last.
    pub fn was_last(&self) -> bool {
        self.lock().calls_left == Some(0)
    }

    /// The operator's client.
    pub fn client(self: &Arc<Self>, beyond: &Arc<dyn Beyond>) -> kube::Client {
        let (wire, beyond) = (Arc::clone(self), Arc::clone(beyond));
        let service = tower::service_fn(move |request: Request<kube::client::Body>| {
            let (wire, beyond) = (Arc::clone(&wire), Arc::clone(&beyond));
            async move { wire.carry(beyond.as_ref(), request).await }
        });
        kube::Client::new(service, "default")
    }

    /// The operator's registry.
    pub fn registry(self: &Arc<Self>, beyond: &Arc<dyn Beyond>) -> Local {
        let (wire, beyond) = (Arc::clone(self), Arc::clone(beyond));
        Arc::new(move |verb, vm, tag, digest| {
            let (wire, beyond) = (Arc::clone(&wire), Arc::clone(&beyond));
            Box::pin(async move {
                wire.call().await;
                match beyond.snapshots(verb, &vm, &tag, digest.as_deref()).await {
                    // Nobody answers: the caller has to have enough of it.
                    Reply::TimedOut => std::future::pending().await,
                    reply => reply,
                }
            })
        })
    }

    async fn carry(
        self: Arc<Self>,
        beyond: &dyn Beyond,
        request: Request<kube::client::Body>,
    ) -> Result<Response<Sent>, BoxError> {
        let watched = Kind::ALL.into_iter().find(|kind| watch::path(*kind) == request.uri().path());
        let Some(kind) = watched.filter(|_| request.method() == Method::GET) else {
            // What keeps the lease is no call of a pass.
            if !request.uri().path().ends_with(&format!("/{NAME}")) && !request.uri().path().ends_with("/leases") {
                self.call().await;
            }
            if self.is_dead() || self.lock().cut_off {
                std::future::pending::<()>().await;
            }
            return beyond.api(request).await;
        };
        if self.is_dead() || self.lock().cut_off {
            std::future::pending::<()>().await;
        }
        if self.lock().refused.contains(&kind) {
            let body = Full::new(forbidden(kind)).map_err(|never| match never {});
            let mut response = Response::new(body.boxed_unsync());
            *response.status_mut() = http::StatusCode::FORBIDDEN;
            return Ok(response);
        }
        let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
        let response = beyond.api(request).await?;
        if !is_watch {
            return Ok(response);
        }
        Ok(response.map(|body| Shown { wire: self, kind, body, over: false }.boxed_unsync()))
    }

    /// A call of a pass is on its way: the operator may die before it leaves.
    async fn call(&self) {
        let dies = {
            let mut inner = self.lock();
            inner.dead |= inner.calls_left == Some(0);
            inner.calls_left = inner.calls_left.map(|left| left.saturating_sub(1));
            inner.dead
        };
        if dies {
            self.cut();
            std::future::pending::<()>().await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The body of a watch.
struct Shown<B> {
    wire: Arc<Wire>,
    kind: Kind,
    body: B,
    over: bool,
}

impl<B: Body<Data = Bytes, Error = BoxError> + Unpin> Body for Shown<B> {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if self.over {
            return Poll::Ready(None);
        }
        let kind = self.kind;
        let expired = {
            let mut inner = self.wire.lock();
            if !inner.open || inner.held.contains(&kind) {
                inner.waiting.insert(kind, context.waker().clone());
                return Poll::Pending;
            }
            inner.expired.remove(&kind)
        };
        if expired {
            self.over = true;
            return Poll::Ready(Some(Ok(Frame::data(too_old()))));
        }
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if polled.is_pending() {
            // It is looked at again whenever the stage looks.
            self.wire.lock().waiting.insert(kind, context.waker().clone());
        }
        polled
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}

fn too_old() -> Bytes {
    let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "too old resource version: 1 (2)", "reason": "Expired", "code": 410});
    Bytes::from(format!("{}\n", json!({"type": "ERROR", "object": status})))
}

fn forbidden(kind: Kind) -> Bytes {
    let resource = kind.resource();
    let message = format!(
        "{resource} is forbidden: User \"{OPERATOR}\" cannot list resource \"{resource}\" in API group \"\" at the \
         cluster scope"
    );
    let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": "Forbidden", "details": {"kind": resource}, "code": 403});
    Bytes::from(status.to_string())
}
