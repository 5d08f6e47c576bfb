//! The registry client against a registry on a port: credentials, redirects, hostile answers. Real time, so everything
//! here is short.

mod auth;
mod hostile;
mod proxy;
mod server;
mod tls;

use cocoon_operator::core::outcome::{Answer, Class, Outcome};
use cocoon_operator::core::wire::Verb;
use cocoon_operator::shell::registry::Registry;
use server::{Piece, Seen, Server, reply};
use std::time::Duration;

pub(crate) const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
pub(crate) const ONE: &str = "sha256:1111111111111111111111111111111111111111111111111111111111111111";
pub(crate) const TWO: &str = "sha256:2222222222222222222222222222222222222222222222222222222222222222";

/// The term of somebody who leads for as long as it takes.
pub(crate) const LEADS: fn(Verb) -> Option<Duration> = |_| Some(Duration::MAX);

pub(crate) async fn head(registry: &Registry) -> Outcome {
    registry.carry_out(Verb::RegistryHead, "vk-a", "hibernate", None, &LEADS).await
}

pub(crate) async fn delete(registry: &Registry, digest: Option<&str>) -> Outcome {
    registry.carry_out(Verb::RegistryDelete, "vk-a", "hibernate", digest, &LEADS).await
}

/// A tag that is there, under digest `ONE`, and can be deleted.
pub(crate) fn present(request: &Seen) -> Vec<Piece> {
    match request.method.as_str() {
        "DELETE" => reply(202, &[], ""),
        _ => reply(200, &[("Docker-Content-Digest", ONE), ("Content-Type", MANIFEST)], ""),
    }
}

fn digest(outcome: &Outcome) -> Option<&str> {
    match &outcome.answer {
        Answer::Snapshot { digest, .. } => digest.as_deref(),
        _ => None,
    }
}

#[tokio::test]
async fn a_head_names_every_kind_of_manifest_and_needs_no_more() {
    let server = Server::new(present).await;
    let outcome = head(&server.registry()).await;
    assert_eq!((outcome.class, digest(&outcome)), (Class::Present, Some(ONE)));
    let seen = server.seen();
    assert_eq!(server.told(), ["HEAD /v2/p/vk-a/manifests/hibernate -"]);
    let accepted = seen[0].header("accept").expect("a list");
    for kind in ["oci.image.manifest.v1", "oci.image.index.v1", "manifest.v2", "manifest.list.v2", "v1+prettyjws"] {
        assert!(accepted.contains(kind), "{accepted}");
    }
}

#[tokio::test]
async fn a_digest_that_is_not_named_is_computed() {
    let manifest = r#"{"schemaVersion":2,"annotations":{"cocoonstack.snapshot.baseimage":"ubuntu:24.04"}}"#;
    for named in [None, Some("nonsense"), Some("sha256:12")] {
        let server = Server::new(move |request| {
            let headers: Vec<(&str, &str)> = named.iter().map(|named| ("Docker-Content-Digest", *named)).collect();
            reply(200, &headers, if request.method == "HEAD" { "" } else { manifest })
        })
        .await;
        let outcome = head(&server.registry()).await;
        let computed = "sha256:e6a9ca1a09963b26e975686d25347aafd4eeaaf1539227fd3a99c3bd064e7976";
        let base_image = Some("ubuntu:24.04".to_owned());
        assert_eq!(outcome.class, Class::Present, "{named:?}");
        assert!(matches!(&outcome.answer, Answer::Snapshot { base_image: found, .. } if *found == base_image));
        assert_eq!(digest(&outcome), Some(computed), "{named:?}");
        assert_eq!(server.told().len(), 2);
    }
}

#[tokio::test]
async fn only_a_tag_that_is_there_is_deleted() {
    let server = Server::new(present).await;
    let outcome = delete(&server.registry(), None).await;
    assert_eq!(outcome.class, Class::Absent);
    let path = "/v2/p/vk-a/manifests/hibernate";
    assert_eq!(server.told(), [format!("HEAD {path} -"), format!("DELETE {path} -")]);
    let nothing = Server::new(|_| reply(404, &[], "")).await;
    assert_eq!(delete(&nothing.registry(), None).await.class, Class::Absent);
    assert_eq!(nothing.told(), [format!("HEAD {path} -")]);
    let other = Server::new(present).await;
    assert_eq!(delete(&other.registry(), Some(TWO)).await.class, Class::Unavailable);
    assert_eq!(other.told().len(), 1, "another digest is somebody else's work");
}

#[tokio::test]
async fn a_delete_that_is_not_to_be_had_is_told_as_such() {
    for (status, code, class) in [
        (405, "UNSUPPORTED", Class::Unsupported),
        (400, "DIGEST_INVALID", Class::Unsupported),
        (403, "DENIED", Class::Denied),
        (404, "NAME_UNKNOWN", Class::Absent),
        (429, "TOOMANYREQUESTS", Class::Throttled),
        (500, "UNKNOWN", Class::Unknown),
    ] {
        let server = Server::new(move |request| match request.method.as_str() {
            "DELETE" => reply(status, &[], &format!(r#"{{"errors":[{{"code":"{code}","message":"no"}}]}}"#)),
            _ => present(request),
        })
        .await;
        assert_eq!(delete(&server.registry(), Some(ONE)).await.class, class, "{status} {code}");
    }
}

#[tokio::test]
async fn a_look_that_takes_the_rest_of_the_term_is_followed_by_no_delete() {
    let server = Server::new(|request| {
        let mut pieces = vec![Piece::Pause(Duration::from_millis(100))];
        pieces.extend(present(request));
        pieces
    })
    .await;
    let end = tokio::time::Instant::now() + Duration::from_millis(5_050);
    let term = |verb| {
        let left = end.saturating_duration_since(tokio::time::Instant::now());
        (verb != Verb::RegistryDelete || left >= Duration::from_secs(5)).then_some(left)
    };
    let registry = server.registry();
    let outcome = registry.carry_out(Verb::RegistryDelete, "vk-a", "hibernate", Some(ONE), &term).await;
    assert_eq!(outcome.class, Class::Fenced);
    assert_eq!(server.told().len(), 1, "only the look: {:#?}", server.told());
}

/// Whoever gives out tokens belongs to the registry: its wish to be left in peace is kept as well.
#[tokio::test]
async fn a_registry_that_is_throttled_is_left_in_peace() {
    let server = Server::new(|request| {
        if request.target.starts_with("/token") {
            return reply(429, &[("Retry-After", "30")], "");
        }
        let realm = format!("http://{}/token", request.header("host").expect("a host"));
        reply(401, &[("WWW-Authenticate", &format!("Bearer realm=\"{realm}\""))], "")
    })
    .await;
    let registry = server.registry();
    let first = head(&registry).await;
    assert_eq!((first.class, first.retry_after), (Class::Throttled, Some(Duration::from_secs(30))));
    assert_eq!(head(&registry).await.class, Class::Throttled);
    assert_eq!(server.told().len(), 2, "the second was not sent: {:#?}", server.told());
}
