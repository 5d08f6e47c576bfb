//! Between HTTP and the world: requests read, answers written, and the registry's own face.

use super::face::{self, Page, Shape, Shaper, protobuf, yaml};
use super::server::Cluster;
use super::store::{ReplyBody, StoreReply};
use super::world::{Opened, World};
use crate::core::wire::{self, Method, Reply, Verb};
use ::http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, ETAG, HeaderName, IF_NONE_MATCH, RETRY_AFTER, WARNING};
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
        Ok(Some(request)) => request,
        Ok(None) => return Ok(answer(&cluster.with(|world| world.store.unknown_method(parts.uri.path())))),
        // Where nothing is served, that is what there is to say, whatever was sent.
        Err(reply) => {
            let nowhere = cluster.with(|world| world.store.unserved(parts.uri.path()));
            return Ok(answer(&nowhere.unwrap_or(*reply)));
        }
    };
    let header = |name| parts.headers.get(name).and_then(|value: &::http::HeaderValue| value.to_str().ok());
    let accept = header(ACCEPT).unwrap_or("");
    if let Some(page) = cluster.with(|world| face::own(world, user, &request, accept)) {
        let page = page.unless_known(header(IF_NONE_MATCH));
        return Ok(send(if yaml::is_wanted(accept) { yaml::page(page) } else { page }));
    }
    let shape =
        Shape::of(accept, request.query.iter().find(|(key, _)| key == "includeObject").map(|(_, of)| of.as_str()));
    let whole_of_custom = || shape == Shape::Whole && cluster.with(|world| is_custom(world, &request));
    if !Shape::is_to_be_had(accept) || (Shape::is_protobuf_alone(accept) && whole_of_custom()) {
        return Ok(answer(&cluster.with(|world| not_acceptable(world, &request))));
    }
    if cluster.with(|world| world.store.is_watch(&request)) {
        // Frames are JSON only.
        if accept.split(',').all(|form| form.trim().starts_with(yaml::CONTENT_TYPE)) {
            return Ok(answer(&cluster.with(|world| not_acceptable(world, &request))));
        }
        return match cluster.with(|world| world.open_watch(user, &request)) {
            Opened::Watch(watch) => Ok(respond(200, "application/json", cluster.stream(*watch, shape))),
            Opened::Refused(reply) => refuse_watch(reply).await,
        };
    }
    let doubled = doubled_members(&request, &bytes);
    if !doubled.is_empty() && request.query.contains(&("fieldValidation".to_owned(), "Strict".to_owned())) {
        let kind = request.body.get("kind").and_then(Value::as_str).unwrap_or("");
        let version = request.body.get("apiVersion").and_then(Value::as_str).unwrap_or("");
        let version = version.rsplit('/').next().unwrap_or(version);
        let why = format!(
            "{kind} in version \"{version}\" cannot be handled as a {kind}: strict decoding error: {}",
            doubled.join(", ")
        );
        return Ok(answer(&StoreReply::json(400, failure(400, "BadRequest", &why))));
    }
    let reply = cluster.with(|world| {
        let mut reply = world.api_full(user, &request)?;
        reply.warnings.splice(0..0, doubled);
        shape_reply(world, shape, &request, &mut reply);
        Ok(reply)
    });
    match reply {
        Ok(reply) if yaml::is_wanted(accept) => Ok(in_yaml(&reply)),
        Ok(reply) => Ok(answer(&reply)),
        Err(reply) => give(reply).await,
    }
}

/// What is said of members that a posted or put object has twice.
fn doubled_members(request: &wire::Request, bytes: &Bytes) -> Vec<String> {
    let ignored = request.query.contains(&("fieldValidation".to_owned(), "Ignore".to_owned()));
    if ignored || !matches!(request.method, Method::Post | Method::Put) {
        return Vec::new();
    }
    face::doubled(bytes).iter().map(|path| format!("duplicate field \"{path}\"")).collect()
}

/// The objects of an answer in the form that the client wants.
fn shape_reply(world: &World, shape: Shape, request: &wire::Request, reply: &mut StoreReply) {
    if shape == Shape::Whole || !reply.is_success() {
        return;
    }
    if let (Some(resource), ReplyBody::Json(body)) = (world.store.resource_at(&request.path), &mut reply.body) {
        let is_scale = resource.scale.is_some() && request.path.ends_with("/scale");
        let shaper = if is_scale { Shaper::of_scales(shape) } else { Shaper::new(shape, &resource) };
        *body = shaper.body(std::mem::take(body), world.now());
    }
}

/// A request as the world takes it; none where its method is not known.
pub(crate) fn read(parts: &::http::request::Parts, bytes: &Bytes) -> Result<Option<wire::Request>, Box<StoreReply>> {
    let method = match parts.method.as_str() {
        "GET" => Method::Get,
        "HEAD" => Method::Head,
        "POST" => Method::Post,
        "PUT" => Method::Put,
        "PATCH" => Method::Patch,
        "DELETE" => Method::Delete,
        _ => return Ok(None),
    };
    let path = percent_encoding::percent_decode_str(parts.uri.path()).decode_utf8_lossy().into_owned();
    let mut request = wire::Request::new(method, path);
    let query = parts.uri.query().unwrap_or("");
    request.query = form_urlencoded::parse(query.as_bytes()).into_owned().filter(|(key, _)| !key.is_empty()).collect();
    let kind = parts.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    request.content_type = kind.map(|kind| kind.split(';').next().unwrap_or(kind).trim().to_owned());
    if request.content_type.as_deref() == Some(protobuf::CONTENT_TYPE) && !bytes.is_empty() {
        let refusal = || {
            let why =
                "the body of the request was in an unknown format - accepted media types include: application/json";
            Box::new(StoreReply::json(415, failure(415, "UnsupportedMediaType", why)))
        };
        request.body = protobuf::object(bytes).ok_or_else(refusal)?;
        request.content_type = Some(wire::JSON.to_owned());
    } else if request.content_type.as_deref() == Some(yaml::CONTENT_TYPE) && method != Method::Patch {
        let refusal = |why: String| Box::new(StoreReply::json(400, failure(400, "BadRequest", &why)));
        request.body = yaml::read(bytes).map_err(refusal)?;
        request.content_type = Some(wire::JSON.to_owned());
    } else if !bytes.is_empty() {
        // What is no JSON is handed on as it is: the store knows the server's words for it.
        let raw = |_| Value::String(String::from_utf8_lossy(bytes).into_owned());
        request.body = serde_json::from_slice(bytes).unwrap_or_else(raw);
    }
    Ok(Some(request))
}

fn failure(code: u16, reason: &str, message: &str) -> Value {
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message, "reason": reason,
        "code": code,
    })
}

fn is_custom(world: &World, request: &wire::Request) -> bool {
    world.store.resource_at(&request.path).is_some_and(|resource| resource.is_custom())
}

/// 406, in other words for kinds of our own.
fn not_acceptable(world: &World, request: &wire::Request) -> StoreReply {
    const FORMS: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";
    if is_custom(world, request) {
        let why = format!("only the following media types are accepted: {FORMS}");
        return StoreReply::json(406, failure(406, "NotAcceptable", &why));
    }
    let why = format!("406: Not Acceptable\n\nAvailable representations: {FORMS}");
    let mut status = failure(406, "NotAcceptable", &why);
    status["details"] = json!({});
    StoreReply::json(406, status)
}

fn respond(status: u16, kind: &str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    if let (Ok(kind), false) = (kind.parse(), kind.is_empty()) {
        response.headers_mut().insert(CONTENT_TYPE, kind);
    }
    response
}

fn whole(bytes: Vec<u8>) -> Body {
    Full::new(Bytes::from(bytes)).boxed_unsync()
}

/// The store's answer over HTTP.
pub(crate) fn answer(reply: &StoreReply) -> Response<Body> {
    let mut response = send(reply.clone().into());
    wait_header(&mut response, reply.retry_after);
    response
}

/// The same in YAML.
fn in_yaml(reply: &StoreReply) -> Response<Body> {
    let mut response = send(yaml::page(reply.clone().into()));
    wait_header(&mut response, reply.retry_after);
    response
}

fn send(page: Page) -> Response<Body> {
    let mut response = respond(page.status, &page.content_type, whole(page.body));
    if let Some(mark) = page.etag.and_then(|mark| mark.parse().ok()) {
        response.headers_mut().insert(ETAG, mark);
    }
    for warning in page.warnings {
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

/// Answers one request to the registry of a cluster.
pub(super) async fn registry<B>(cluster: &Cluster, request: &Request<B>) -> Result<Response<Body>, BoxError> {
    let cluster = cluster.clone();
    manifests(request, |verb, vm, tag| async move { cluster.with(|world| world.registry_call(verb, &vm, &tag, None)) })
        .await
}

/// Answers one request to a registry: `/v2/`, and manifests by tag or digest. The repository's last part is the VM.
pub(crate) async fn manifests<B, R>(
    request: &Request<B>,
    answers: impl FnOnce(Verb, String, String) -> R,
) -> Result<Response<Body>, BoxError>
where
    R: Future<Output = Reply>,
{
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
    let mut response = give(answers(verb, vm.to_owned(), reference.to_owned()).await).await?;
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A client that is told when to come back is told so in the header, by the cluster and by a fault alike.
    #[tokio::test]
    async fn who_is_to_wait_is_told_in_the_header() {
        let after = |seconds: u64| Some(Duration::from_secs(seconds));
        let fault = Reply::Http { status: 429, retry_after: after(3), body: b"{}".to_vec(), digest: None };
        let given = give(fault).await.expect("an answer");
        assert_eq!(given.headers()[RETRY_AFTER], "3");
        let reply = StoreReply::json(429, json!({}));
        assert!(answer(&reply).headers().get(RETRY_AFTER).is_none());
        let reply = StoreReply { retry_after: after(7), ..reply };
        for told in [answer(&reply), in_yaml(&reply)] {
            assert_eq!(told.headers()[RETRY_AFTER], "7");
        }
    }
}
