//! One request and its answer: redirects followed, the body read as far as it may be.

use super::challenge::{Challenge, choose};
use super::proxy::{Proxies, Ways};
use super::target;
use crate::core::wire::{Reply, retry_after};
use crate::shell::options::StartupError;
use crate::shell::reference::Base;
use crate::shell::transport;
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, LOCATION, RETRY_AFTER, USER_AGENT, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use sha2::{Digest, Sha256};
use std::sync::Arc;
use std::time::Duration;

/// A manifest, a token or an error's body; what is longer is none of them.
const MAX_BODY: usize = 4 << 20;
/// How many redirects are followed.
const MAX_HOPS: usize = 5;
/// What names the digest of a manifest.
const DIGEST: &str = "docker-content-digest";

/// The way to servers.
#[derive(Debug)]
pub(super) struct Wire {
    client: Client<HttpsConnector<Ways>, Empty<Bytes>>,
    /// What is not protected may be asked.
    plain: bool,
    /// Who did not answer, and why, is said.
    pub tells: bool,
}

/// What came back.
#[derive(Debug)]
pub(super) struct Answered {
    /// For the classifier.
    pub reply: Reply,
    /// What a 401 of the server that was asked offers; another server's is not listened to.
    pub challenge: Option<Challenge>,
    /// The answer calls itself a page for people. A HEAD has nothing else to know it by.
    pub markup: bool,
    /// Who did not answer, and why.
    pub cause: Option<String>,
}

impl Answered {
    /// Without an answer.
    pub fn lost(reply: Reply) -> Self {
        Self { reply, challenge: None, markup: false, cause: None }
    }
}

impl Wire {
    /// With the machine's certificates, or those that SSL_CERT_FILE and SSL_CERT_DIR name.
    pub fn new(base: &Base, connect: Duration, proxies: Proxies) -> Result<Self, StartupError> {
        let provider = rustls::crypto::ring::default_provider();
        let mut connector = HttpConnector::new();
        connector.enforce_http(false);
        connector.set_connect_timeout(Some(connect));
        let refused = |error: rustls::Error| StartupError::Tls(error.to_string());
        let tls = match HttpsConnectorBuilder::new().with_provider_and_platform_verifier(provider.clone()) {
            Ok(tls) => tls,
            // A registry that is spoken to without TLS does not need a machine with certificates.
            Err(_) if base.is_plain() => {
                let config = rustls::ClientConfig::builder_with_provider(Arc::new(provider))
                    .with_safe_default_protocol_versions()
                    .map_err(refused)?
                    .with_root_certificates(rustls::RootCertStore::empty())
                    .with_no_client_auth();
                HttpsConnectorBuilder::new().with_tls_config(config)
            }
            Err(error) => return Err(StartupError::Tls(format!("{error}{}", unread_certificates()))),
        };
        let connector = tls.https_or_http().enable_http1().wrap_connector(Ways::new(connector, proxies));
        Ok(Self {
            client: Client::builder(TokioExecutor::new()).build(connector),
            plain: base.is_declared_plain(),
            tells: false,
        })
    }

    /// Asks, and follows where it is sent, with the method kept and the ticket shown to nobody else.
    pub async fn exchange(&self, method: &Method, uri: &Uri, accept: &str, ticket: Option<&HeaderValue>) -> Answered {
        let (mut at, mut hops) = (uri.clone(), 0);
        loop {
            let at_home = target::same_server(uri, &at);
            let request = Request::builder()
                .method(method.clone())
                .uri(at.clone())
                .header(ACCEPT, accept)
                .header(USER_AGENT, concat!("cocoon-operator/", env!("CARGO_PKG_VERSION")));
            let request = match ticket.filter(|_| at_home) {
                Some(ticket) => request.header(AUTHORIZATION, ticket),
                None => request,
            };
            let Ok(request) = request.body(Empty::new()) else { return Answered::lost(Reply::Reset { sent: false }) };
            let response = match self.client.request(request).await {
                Ok(response) => response,
                Err(error) => {
                    let cause = self.tells.then(|| format!("{}: {}", target::told(&at), told(&error)));
                    return Answered { cause, ..Answered::lost(transport::lost(&error)) };
                }
            };
            match self.next(method, &at, &response, hops) {
                Hop::Stay => return read(method, response, at_home).await,
                Hop::To(next) => at = next,
                Hop::Refused(why) => return Answered::lost(refusal(response.status(), &why)),
            }
            hops += 1;
        }
    }

    fn next(&self, method: &Method, at: &Uri, response: &Response<Incoming>, hops: usize) -> Hop {
        let leads = match response.status() {
            StatusCode::MOVED_PERMANENTLY
            | StatusCode::FOUND
            | StatusCode::TEMPORARY_REDIRECT
            | StatusCode::PERMANENT_REDIRECT => true,
            // "See other" is an answer by GET: for a delete it would be no delete.
            StatusCode::SEE_OTHER => *method != Method::DELETE,
            _ => false,
        };
        if !leads {
            return Hop::Stay;
        }
        if hops >= MAX_HOPS {
            return Hop::Refused(format!("more than {MAX_HOPS} redirects"));
        }
        let location = response.headers().get(LOCATION).and_then(|location| location.to_str().ok());
        match location.and_then(|location| target::resolve(at, location)) {
            None => Hop::Refused("a redirect to nowhere".to_owned()),
            Some(next) if target::may_be_asked(&next, self.plain) => Hop::To(next),
            Some(next) => Hop::Refused(format!("a redirect to {}, which is not protected", target::told(&next))),
        }
    }
}

/// Why there was no answer, with what may be behind it.
fn told(error: &hyper_util::client::legacy::Error) -> String {
    let cause = transport::cause(error);
    let more = if cause.contains("certificate") { unread_certificates() } else { String::new() };
    format!("{cause}{more}")
}

/// What to say where the certificates that the environment names are not there.
fn unread_certificates() -> String {
    let named = ["SSL_CERT_FILE", "SSL_CERT_DIR"].into_iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
    let missing = named.filter_map(|(name, path)| Some((name, std::fs::metadata(&path).err()?, path)));
    missing.map(|(name, error, path)| format!("; {name} names {}: {error}", path.display())).collect()
}

enum Hop {
    Stay,
    To(Uri),
    Refused(String),
}

/// The redirect itself as the answer, with our words for a body.
fn refusal(status: StatusCode, why: &str) -> Reply {
    Reply::Http { status: status.as_u16(), retry_after: None, body: why.as_bytes().to_vec(), digest: None }
}

async fn read(method: &Method, response: Response<Incoming>, at_home: bool) -> Answered {
    let (parts, mut incoming) = response.into_parts();
    let challenge = (parts.status == StatusCode::UNAUTHORIZED && at_home)
        .then(|| choose(parts.headers.get_all(WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok())))
        .flatten();
    let markup = text(&parts.headers, CONTENT_TYPE.as_str()).is_some_and(|kind| kind.contains("html"));
    let (mut body, mut broken) = (Vec::new(), None);
    while let Some(frame) = incoming.frame().await {
        match frame.map(http_body::Frame::into_data) {
            Ok(Ok(data)) if body.len() + data.len() <= MAX_BODY => body.extend_from_slice(&data),
            // Trailers are of no interest.
            Ok(Err(_)) => {}
            Ok(Ok(_)) => broken = Some(Reply::Reset { sent: true }),
            Err(error) => broken = Some(transport::lost(&error)),
        }
        if broken.is_some() {
            break;
        }
    }
    // A refusal stands by its code. Presence and absence may hide another word in the part that is missing.
    let leans_on_body = parts.status.is_success() || parts.status == StatusCode::NOT_FOUND;
    let reply = match broken {
        Some(lost) if leans_on_body => lost,
        _ => answer(method, parts.status, &parts.headers, body),
    };
    Answered { reply, challenge, markup, cause: None }
}

fn answer(method: &Method, status: StatusCode, headers: &HeaderMap, body: Vec<u8>) -> Reply {
    let named = text(headers, DIGEST).map(str::to_owned);
    let digest = match (status.is_success() && *method == Method::GET, named) {
        (false, named) => named,
        (true, named) => {
            let computed = sha256(&body);
            // What was changed or cut on the way is not what the tag points at.
            let differs = |named: &String| named.starts_with("sha256:") && named.len() == computed.len();
            if named.as_ref().is_some_and(|named| differs(named) && !named.eq_ignore_ascii_case(&computed)) {
                return Reply::Reset { sent: true };
            }
            named.filter(|named| named.contains(':') && !named.starts_with("sha256:")).or(Some(computed))
        }
    };
    let retry_after = text(headers, RETRY_AFTER.as_str()).and_then(retry_after);
    Reply::Http { status: status.as_u16(), retry_after, body, digest }
}

fn sha256(body: &[u8]) -> String {
    let hex: String = Sha256::digest(body).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}
