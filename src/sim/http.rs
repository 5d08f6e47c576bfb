//! Between HTTP and the world: requests read, answers written, discovery, and the registry's own face.

use super::server::Cluster;
use super::store::{ReplyBody, Resource, StoreReply};
use super::world::{Opened, World};
use crate::core::wire::{self, Method, Reply, Verb};
use ::http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderName, RETRY_AFTER, WARNING};
use ::http::{Request, Response, StatusCode};
use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::io::{Error, ErrorKind};
use std::time::Duration;
use tokio::net::TcpListener;

/// A body that is sent.
pub type Body = UnsyncBoxBody<Bytes, Infallible>;
/// Why a connection broke.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

const DIGEST: HeaderName = HeaderName::from_static("docker-content-digest");
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const HEALTH: [&str; 3] = ["/healthz", "/readyz", "/livez"];

/// Answers one request to the API server.
pub(super) async fn api<B>(cluster: &Cluster, user: &str, request: Request<B>) -> Result<Response<Body>, BoxError>
where
    B: http_body::Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    let (parts, body) = request.into_parts();
    let bytes = body.collect().await.map_err(Into::into)?.to_bytes();
    let token = parts.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let user = token.and_then(|token| token.strip_prefix("Bearer ")).unwrap_or(user);
    let request = match read(&parts, &bytes) {
        Ok(request) => request,
        Err(reply) => return Ok(answer(&reply)),
    };
    if let Some(found) = cluster.with(|world| discovery(world, &request)) {
        return Ok(answer(&found));
    }
    if is_watch(&request) {
        return match cluster.with(|world| world.open_watch(user, &request)) {
            Opened::Watch(watch) => Ok(respond(200, "application/json", cluster.stream(*watch))),
            Opened::Refused(reply) => refuse_watch(reply).await,
        };
    }
    match cluster.with(|world| world.api_full(user, &request)) {
        Ok(reply) => Ok(answer(&reply)),
        Err(reply) => give(reply).await,
    }
}

/// A request as the world takes it.
pub(crate) fn read(parts: &::http::request::Parts, bytes: &Bytes) -> Result<wire::Request, Box<StoreReply>> {
    let method = match parts.method.as_str() {
        "GET" => Method::Get,
        "HEAD" => Method::Head,
        "POST" => Method::Post,
        "PUT" => Method::Put,
        "PATCH" => Method::Patch,
        "DELETE" => Method::Delete,
        _ => return Err(Box::new(StoreReply::text(405, "method not allowed\n"))),
    };
    let path = percent_encoding::percent_decode_str(parts.uri.path()).decode_utf8_lossy().into_owned();
    let mut request = wire::Request::new(method, path);
    let query = parts.uri.query().unwrap_or("");
    request.query = form_urlencoded::parse(query.as_bytes()).into_owned().filter(|(key, _)| !key.is_empty()).collect();
    let kind = parts.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    request.content_type = kind.map(|kind| kind.split(';').next().unwrap_or(kind).trim().to_owned());
    if !bytes.is_empty() {
        // What is no JSON is handed on as it is: the store knows the server's words for it.
        let raw = |_| Value::String(String::from_utf8_lossy(bytes).into_owned());
        request.body = serde_json::from_slice(bytes).unwrap_or_else(raw);
    }
    Ok(request)
}

fn failure(code: u16, reason: &str, message: &str) -> Value {
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message, "reason": reason,
        "code": code,
    })
}

pub(crate) fn is_watch(request: &wire::Request) -> bool {
    let asked = |(key, value): &(String, String)| key == "watch" && matches!(value.as_str(), "true" | "1");
    matches!(request.method, Method::Get) && request.query.iter().any(asked)
}

fn respond(status: u16, kind: &str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    if let Ok(kind) = kind.parse() {
        response.headers_mut().insert(CONTENT_TYPE, kind);
    }
    response
}

fn whole(bytes: Vec<u8>) -> Body {
    Full::new(Bytes::from(bytes)).boxed_unsync()
}

/// The store's answer over HTTP.
pub(crate) fn answer(reply: &StoreReply) -> Response<Body> {
    let mut response = respond(reply.status, reply.content_type(), whole(reply.bytes()));
    wait_header(&mut response, reply.retry_after);
    for warning in reply.warning_headers() {
        if let Ok(value) = warning.parse() {
            response.headers_mut().append(WARNING, value);
        }
    }
    response
}

fn wait_header(response: &mut Response<Body>, after: Option<Duration>) {
    if let Some(after) = after {
        response.headers_mut().insert(RETRY_AFTER, after.as_secs().into());
    }
}

/// A reply that a fault has for the client: an answer, silence, or a broken connection.
pub(crate) async fn give(reply: Reply) -> Result<Response<Body>, BoxError> {
    match reply {
        Reply::Http { status, retry_after, body, digest } => {
            let kind = if body.first() == Some(&b'{') { "application/json" } else { "text/plain; charset=utf-8" };
            let mut response = respond(status, kind, whole(body));
            wait_header(&mut response, retry_after);
            if let Some(value) = digest.and_then(|digest| digest.parse().ok()) {
                response.headers_mut().insert(DIGEST, value);
            }
            Ok(response)
        }
        // The client has to have enough of it.
        Reply::TimedOut => std::future::pending().await,
        Reply::Reset { sent: true } => Err(Error::new(ErrorKind::ConnectionReset, "connection reset by peer").into()),
        Reply::Reset { sent: false } | Reply::Fenced => {
            Err(Error::new(ErrorKind::ConnectionRefused, "connection refused").into())
        }
    }
}

/// A watch that starts too far back is open, and its first event says so.
async fn refuse_watch(reply: Reply) -> Result<Response<Body>, BoxError> {
    match reply {
        Reply::Http { status: 410, body, .. } => {
            let object: Value = serde_json::from_slice(&body).unwrap_or_else(|_| failure(410, "Expired", "too old"));
            let frame = format!("{}\n", json!({"type": "ERROR", "object": object}));
            Ok(respond(200, "application/json", whole(frame.into_bytes())))
        }
        reply => give(reply).await,
    }
}

/// The paths that say what is served; none for everything else.
fn discovery(world: &World, request: &wire::Request) -> Option<StoreReply> {
    if !matches!(request.method, Method::Get) {
        return None;
    }
    let path = request.path.trim_end_matches('/');
    if HEALTH.contains(&path) {
        return Some(StoreReply::text(200, "ok"));
    }
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let body = match parts.as_slice() {
        ["version"] => json!({
            "major": "1", "minor": "33", "gitVersion": "v1.33.0", "platform": "linux/amd64", "gitCommit": "",
            "gitTreeState": "clean", "buildDate": "2025-04-23T00:00:00Z", "goVersion": "", "compiler": "",
        }),
        ["api"] => json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}),
        ["apis"] => json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups(world)}),
        ["apis", group] => {
            let found = groups(world).into_iter().find(|one| one["name"] == **group)?;
            let mut found = found;
            found["kind"] = json!("APIGroup");
            found["apiVersion"] = json!("v1");
            found
        }
        ["api", version] => resources(world, "", version)?,
        ["apis", group, version] => resources(world, group, version)?,
        _ => return None,
    };
    Some(StoreReply::json(200, body))
}

fn groups(world: &World) -> Vec<Value> {
    let mut seen: Vec<(String, String)> = world
        .store
        .resources()
        .filter(|kind| !kind.group.is_empty())
        .map(|kind| (kind.group.clone(), kind.version.clone()))
        .collect();
    seen.sort();
    seen.dedup();
    seen.iter()
        .map(|(group, version)| {
            let version = json!({"groupVersion": format!("{group}/{version}"), "version": version});
            json!({"name": group, "versions": [version], "preferredVersion": version})
        })
        .collect()
}

fn resources(world: &World, group: &str, version: &str) -> Option<Value> {
    let here = |kind: &&Resource| kind.group == group && kind.version == version;
    let kinds: Vec<&Resource> = world.store.resources().filter(here).collect();
    let first = kinds.first()?;
    let verbs = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
    let mut list = Vec::new();
    for kind in &kinds {
        let entry = |name: String, verbs: &[&str]| {
            json!({
                "name": name, "singularName": kind.kind.to_lowercase(), "namespaced": kind.namespaced, "kind": kind.kind,
                "verbs": verbs,
            })
        };
        list.push(entry(kind.plural.clone(), &verbs));
        if kind.status {
            list.push(entry(format!("{}/status", kind.plural), &["get", "patch", "update"]));
        }
    }
    Some(json!({
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": first.api_version(), "resources": list,
    }))
}

/// Answers one request to the registry: `/v2/`, and manifests by tag or digest. The repository's last part is the VM.
pub(super) async fn registry<B>(cluster: &Cluster, request: &Request<B>) -> Result<Response<Body>, BoxError> {
    manifests(request, |verb, vm, reference| cluster.with(|world| world.registry_call(verb, vm, reference, None))).await
}

/// The same, for whoever has a registry.
pub(crate) async fn manifests<B>(
    request: &Request<B>,
    call: impl FnOnce(Verb, &str, &str) -> Reply,
) -> Result<Response<Body>, BoxError> {
    let path = request.uri().path();
    if path.trim_end_matches('/') == "/v2" {
        return Ok(respond(200, "application/json", whole(b"{}".to_vec())));
    }
    let named = path.strip_prefix("/v2/").and_then(|rest| rest.rsplit_once("/manifests/"));
    let verb = match request.method().as_str() {
        "HEAD" => Some(Verb::RegistryHead),
        "GET" => Some(Verb::RegistryGet),
        "DELETE" => Some(Verb::RegistryDelete),
        _ => None,
    };
    let (Some((repository, reference)), Some(verb)) = (named, verb) else {
        let body = json!({"errors": [{"code": "UNSUPPORTED", "message": "The operation is unsupported."}]});
        return Ok(answer(&StoreReply {
            status: 405,
            retry_after: None,
            body: ReplyBody::Json(body),
            warnings: Vec::new(),
        }));
    };
    let vm = repository.rsplit('/').next().unwrap_or(repository);
    let mut response = give(call(verb, vm, reference)).await?;
    if response.status() == StatusCode::OK
        && let Ok(kind) = MANIFEST.parse()
    {
        response.headers_mut().insert(CONTENT_TYPE, kind);
    }
    Ok(response)
}

/// Serves connections until the listener fails. A request that ends in an error breaks its connection.
pub(crate) async fn accept<F, R>(listener: TcpListener, handle: F) -> std::io::Result<()>
where
    F: Fn(Request<hyper::body::Incoming>) -> R + Clone + Send + 'static,
    R: Future<Output = Result<Response<Body>, BoxError>> + Send + 'static,
{
    loop {
        let (stream, _) = listener.accept().await?;
        let handle = handle.clone();
        tokio::spawn(async move {
            let connection = hyper::server::conn::http1::Builder::new();
            // How a connection ends is its client's business.
            connection.serve_connection(TokioIo::new(stream), service_fn(handle)).await.ok();
        });
    }
}
