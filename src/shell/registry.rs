//! The snapshot registry: does a tag exist, and let it go. Anonymous, by tag, each call with a deadline.

use super::clock::Clock;
use super::limits::{Limits, held_back};
use super::options::StartupError;
use super::reference::Base;
use super::transport;
use crate::core::classify::classify;
use crate::core::outcome::{Answer, Class, Outcome};
use crate::core::wire::{Reply, Verb, retry_after};
use bytes::Bytes;
use futures::future::BoxFuture;
use http::header::{ACCEPT, RETRY_AFTER, USER_AGENT};
use http_body_util::{BodyExt, Empty, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use std::sync::Arc;
use std::time::Duration;

/// Connect and response together (registry.md 6).
pub const DEADLINE: Duration = Duration::from_secs(10);
/// A manifest or an error's body; what is longer is neither.
const MAX_BODY: usize = 4 << 20;
/// Every kind of manifest that a tag may point at.
const MANIFESTS: &str = "application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json, \
    application/vnd.docker.distribution.manifest.v2+json, application/vnd.docker.distribution.manifest.list.v2+json, \
    application/vnd.docker.distribution.manifest.v1+json, application/vnd.docker.distribution.manifest.v1+prettyjws";

/// A registry in the same process: answers one whole call for a VM's tag. A delete that names a digest it carries out
/// only under that digest.
pub type Local = Arc<dyn Fn(Verb, String, String, Option<String>) -> BoxFuture<'static, Reply> + Send + Sync>;

/// For how long an answer may be waited for, as the lease stands when it is asked; `None` where nothing may be sent.
pub type Term<'a> = &'a (dyn Fn(Verb) -> Option<Duration> + Send + Sync);

/// The registry.
pub struct Registry {
    backend: Backend,
    limits: Limits,
    deadline: Duration,
}

enum Backend {
    Http { base: Base, client: HttpClient },
    Local(Local),
}

type HttpClient = Client<HttpsConnector<HttpConnector>, Empty<Bytes>>;

impl Registry {
    /// Over HTTP, at this base.
    pub fn http(base: Base, clock: Clock) -> Result<Self, StartupError> {
        let provider = rustls::crypto::ring::default_provider();
        let mut connector = HttpConnector::new();
        connector.enforce_http(false);
        connector.set_connect_timeout(Some(DEADLINE));
        let tls = if base.is_plain() {
            // No certificate is ever looked at, so a machine without any will do.
            let config = rustls::ClientConfig::builder_with_provider(Arc::new(provider))
                .with_safe_default_protocol_versions()
                .map_err(tls_refused)?
                .with_root_certificates(rustls::RootCertStore::empty())
                .with_no_client_auth();
            HttpsConnectorBuilder::new().with_tls_config(config)
        } else {
            HttpsConnectorBuilder::new().with_provider_and_platform_verifier(provider).map_err(tls_refused)?
        };
        let connector = tls.https_or_http().enable_http1().wrap_connector(connector);
        let client = Client::builder(TokioExecutor::new()).build(connector);
        Ok(Self { backend: Backend::Http { base, client }, limits: Limits::new(clock), deadline: DEADLINE })
    }

    /// In the same process.
    pub fn local(answer: Local, clock: Clock) -> Self {
        Self { backend: Backend::Local(answer), limits: Limits::new(clock), deadline: DEADLINE }
    }

    /// The same, with another deadline of its calls.
    #[must_use]
    pub fn with_deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Carries out one call of the core and understands the answer.
    ///
    /// A delete that expects a digest is sent only right after a HEAD that showed it: by tag it has no precondition of
    /// its own (decision R11). A HEAD that shows another digest, or fails, is the delete's outcome: `Unavailable` or a
    /// refusal, since nothing was sent and so nothing happened; the next decision probes again.
    ///
    /// Each request is sent only where the term allows it at that very moment, and waited for no longer than it lasts.
    pub async fn carry_out(&self, verb: Verb, vm: &str, tag: &str, digest: Option<&str>, term: Term<'_>) -> Outcome {
        match &self.backend {
            Backend::Http { base, client } => {
                if let (Verb::RegistryDelete, Some(expected)) = (verb, digest) {
                    let head = self.ask(base, client, Verb::RegistryHead, vm, tag, term).await;
                    if let Some(instead) = held_by(head, expected) {
                        return instead;
                    }
                }
                self.ask(base, client, verb, vm, tag, term).await
            }
            Backend::Local(answer) => {
                // Not begun before the gate lets it through.
                let answer = async { answer(verb, vm.to_owned(), tag.to_owned(), digest.map(str::to_owned)).await };
                self.gate(verb, answer, term).await
            }
        }
    }

    async fn ask(&self, base: &Base, client: &HttpClient, verb: Verb, vm: &str, tag: &str, term: Term<'_>) -> Outcome {
        match base.manifest(vm, tag) {
            Some(url) => self.gate(verb, exchange(client, verb, url), term).await,
            None => {
                let words = format!("{vm}:{tag} is no reference that a registry could have");
                Outcome::of(Class::Unsupported).saying(words)
            }
        }
    }

    async fn gate(&self, verb: Verb, call: impl Future<Output = Reply>, term: Term<'_>) -> Outcome {
        let reply = match self.limits.leave("snapshots").await {
            Ok(permit) => match term(verb) {
                Some(left) => {
                    let deadline = self.deadline.min(left);
                    let reply = tokio::time::timeout(deadline, call).await.unwrap_or(Reply::TimedOut);
                    permit.answered(&reply);
                    reply
                }
                None => Reply::Fenced,
            },
            Err(left) => held_back(left),
        };
        classify(verb, &reply)
    }
}

fn tls_refused(error: impl std::fmt::Display) -> StartupError {
    StartupError::Tls(error.to_string())
}

/// What stands in the place of a delete that expects this digest, after this HEAD; nothing where it may be sent.
fn held_by(head: Outcome, expected: &str) -> Option<Outcome> {
    let unsent = |words: String| Some(Outcome::of(Class::Unavailable).saying(words));
    match (head.class, &head.answer) {
        (Class::Present, Answer::Snapshot { digest: Some(found), .. }) if found == expected => None,
        (Class::Present, Answer::Snapshot { digest: Some(found), .. }) => {
            unsent(format!("not deleted: the tag has digest {found}, {expected} was expected"))
        }
        (Class::Present, _) => {
            unsent(format!("not deleted: the registry names no digest of the tag, {expected} was expected"))
        }
        _ => Some(head),
    }
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.backend {
            Backend::Http { base, .. } => write!(f, "Registry({base})"),
            Backend::Local(_) => f.write_str("Registry(local)"),
        }
    }
}

async fn exchange(client: &HttpClient, verb: Verb, url: String) -> Reply {
    let method = match verb {
        Verb::RegistryHead => http::Method::HEAD,
        Verb::RegistryDelete => http::Method::DELETE,
        // The core asks nothing else of a registry; a GET changes nothing.
        Verb::RegistryGet
        | Verb::Get
        | Verb::List
        | Verb::Watch
        | Verb::Create
        | Verb::Update
        | Verb::Patch
        | Verb::Delete => http::Method::GET,
    };
    let request = http::Request::builder()
        .method(method)
        .uri(url)
        .header(ACCEPT, MANIFESTS)
        .header(USER_AGENT, concat!("cocoon-operator/", env!("CARGO_PKG_VERSION")))
        .body(Empty::new());
    let Ok(request) = request else { return Reply::Reset { sent: false } };
    let response = match client.request(request).await {
        Ok(response) => response,
        Err(error) => return transport::lost(&error),
    };
    let (parts, body) = response.into_parts();
    let header = |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok());
    match Limited::new(body, MAX_BODY).collect().await {
        Ok(body) => Reply::Http {
            status: parts.status.as_u16(),
            retry_after: header(RETRY_AFTER.as_str()).and_then(retry_after),
            digest: header("docker-content-digest").map(str::to_owned),
            body: body.to_bytes().into(),
        },
        Err(error) => transport::lost(error.as_ref()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "sha256:1111111111111111111111111111111111111111111111111111111111111111";
    const TWO: &str = "sha256:2222222222222222222222222222222222222222222222222222222222222222";

    /// What stands in the place of a delete that expects `ONE`, after a HEAD that is answered so.
    fn after_head(reply: Reply) -> Option<Class> {
        held_by(classify(Verb::RegistryHead, &reply), ONE).map(|outcome| outcome.class)
    }

    fn head(status: u16, digest: Option<&str>) -> Reply {
        Reply::Http { status, retry_after: None, body: Vec::new(), digest: digest.map(str::to_owned) }
    }

    #[test]
    fn a_tag_is_deleted_only_under_the_digest_that_was_decided_on() {
        assert_eq!(after_head(head(200, Some(ONE))), None);
        assert_eq!(after_head(head(200, Some(TWO))), Some(Class::Unavailable));
        assert_eq!(after_head(head(200, None)), Some(Class::Unavailable));
        assert_eq!(after_head(head(404, None)), Some(Class::Absent));
    }

    #[test]
    fn a_look_that_failed_is_no_delete() {
        assert_eq!(after_head(head(500, None)), Some(Class::Unavailable));
        assert_eq!(after_head(head(403, None)), Some(Class::Denied));
        assert_eq!(after_head(head(429, None)), Some(Class::Throttled));
        assert_eq!(after_head(Reply::TimedOut), Some(Class::Unavailable));
    }

    #[tokio::test(start_paused = true)]
    async fn a_registry_that_hangs_is_given_up() {
        let hangs: Local = Arc::new(|_, _, _, _| Box::pin(std::future::pending()));
        let registry = Registry::local(hangs, Clock::starting_at(jiff::Timestamp::UNIX_EPOCH, 0));
        let outcome =
            registry.carry_out(Verb::RegistryDelete, "vk-a", "hibernate", None, &|_| Some(Duration::MAX)).await;
        assert_eq!(outcome.class, Class::Unknown);
        let outcome = registry.carry_out(Verb::RegistryDelete, "vk-a", "hibernate", None, &|_| None).await;
        assert_eq!(outcome.class, Class::Fenced);
    }
}
