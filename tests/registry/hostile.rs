//! Answers that are none: proxies, portals, broken lines, redirects to the wrong place.

use crate::server::{Piece, Seen, Server, reply};
use crate::{MANIFEST, ONE, TWO, delete, head, present};
use cocoon_operator::core::outcome::Class;
use rstest::rstest;
use std::time::{Duration, Instant};

const PAGE: &str = "<!doctype html><html>Welcome to the airport</html>";
const HTML: (&str, &str) = ("Content-Type", "text/html; charset=utf-8");

/// What a look comes to where every request is answered so.
async fn looked(answers: impl Fn(&Seen) -> Vec<Piece> + Send + Sync + 'static) -> Class {
    head(&Server::new(answers).await.registry()).await.class
}

/// What a delete comes to where the look shows the tag and the delete is answered so.
async fn deleted(answers: impl Fn() -> Vec<Piece> + Send + Sync + 'static) -> Class {
    let server = Server::new(move |request| if request.method == "DELETE" { answers() } else { present(request) });
    delete(&server.await.registry(), Some(ONE)).await.class
}

fn body_of<'a>(request: &Seen, body: &'a str) -> &'a str {
    if request.method == "HEAD" { "" } else { body }
}

#[rstest]
#[case::a_portal_says_yes(200, &[HTML], PAGE, Class::Unavailable)]
#[case::a_portal_says_no(404, &[HTML], PAGE, Class::Unavailable)]
#[case::a_portal_that_hides_what_it_is(200, &[], PAGE, Class::Unavailable)]
#[case::a_registry_whose_404_is_a_page_and_then_is_not(404, &[HTML], "", Class::Absent)]
#[case::no_json(200, &[("Content-Type", "text/plain")], "hello", Class::Unavailable)]
#[case::nothing_at_all(200, &[("Content-Type", MANIFEST)], "", Class::Unavailable)]
#[case::an_empty_list(200, &[("Content-Type", MANIFEST)], "[]", Class::Unavailable)]
#[case::half_a_manifest(200, &[("Content-Type", MANIFEST)], "{\"schemaVersion\":", Class::Unavailable)]
#[case::errors_under_a_success(200, &[], "{\"errors\": [{\"code\": \"DENIED\"}]}", Class::Unavailable)]
#[case::an_odd_type(200, &[("Content-Type", "application/octet-stream"), ("Docker-Content-Digest", ONE)], "{}",
    Class::Present)]
#[case::a_refusal_behind_a_404(404, &[HTML], "{\"errors\": [{\"code\": \"DENIED\"}]}", Class::Denied)]
#[tokio::test]
async fn a_look_that_is_answered_by_somebody_else_is_no_look(
    #[case] status: u16,
    #[case] headers: &'static [(&'static str, &'static str)],
    #[case] body: &'static str,
    #[case] class: Class,
) {
    assert_eq!(looked(move |request| reply(status, headers, body_of(request, body))).await, class);
}

#[rstest]
#[case::a_page(reply as Reply, 200, &[HTML], PAGE, Class::Unknown)]
#[case::a_page_that_is_not_there(reply as Reply, 404, &[HTML], PAGE, Class::Unknown)]
#[case::a_body_that_ends_early(reply as Reply, 202, &[("Content-Length", "100")], "short", Class::Unknown)]
#[case::an_absence_that_ends_early(reply as Reply, 404, &[("Content-Length", "100")], "", Class::Unknown)]
#[case::a_refusal_that_ends_early(reply as Reply, 403, &[("Content-Length", "100")], "", Class::Denied)]
#[case::no_http(garbage as Reply, 0, &[], "", Class::Unknown)]
#[case::hanging_up(silence as Reply, 0, &[], "", Class::Unknown)]
#[case::without_end(drip as Reply, 0, &[], "", Class::Unknown)]
#[case::no_answer(hang as Reply, 0, &[], "", Class::Unknown)]
#[case::another_place_by_get(reply as Reply, 303, &[("Location", "/elsewhere")], "", Class::Unknown)]
#[tokio::test]
async fn a_delete_whose_answer_is_none_may_have_happened(
    #[case] answers: Reply,
    #[case] status: u16,
    #[case] headers: &'static [(&'static str, &'static str)],
    #[case] body: &'static str,
    #[case] class: Class,
) {
    let began = Instant::now();
    assert_eq!(deleted(move || answers(status, headers, body)).await, class);
    assert!(began.elapsed() < Duration::from_secs(5), "given up in time");
}

type Reply = fn(u16, &[(&str, &str)], &str) -> Vec<Piece>;

fn garbage(_: u16, _: &[(&str, &str)], _: &str) -> Vec<Piece> {
    vec![Piece::Bytes(b"SSH-2.0-OpenSSH_9.9\r\n\r\n".to_vec())]
}

fn silence(_: u16, _: &[(&str, &str)], _: &str) -> Vec<Piece> {
    Vec::new()
}

fn hang(_: u16, _: &[(&str, &str)], _: &str) -> Vec<Piece> {
    vec![Piece::Pause(Duration::from_secs(60))]
}

/// A byte now and then, for longer than anybody waits.
fn drip(_: u16, _: &[(&str, &str)], _: &str) -> Vec<Piece> {
    let head = b"HTTP/1.1 202 X\r\nContent-Length: 100000\r\n\r\n".to_vec();
    let drops = (0..600).flat_map(|_| [Piece::Bytes(b" ".to_vec()), Piece::Pause(Duration::from_millis(100))]);
    std::iter::once(Piece::Bytes(head)).chain(drops).collect()
}

#[tokio::test]
async fn a_body_without_end_is_not_read_to_it() {
    let huge = || {
        let head = Piece::Bytes(b"HTTP/1.1 200 X\r\nConnection: close\r\n\r\n{\"a\":\"".to_vec());
        std::iter::once(head).chain((0..9).map(|_| Piece::Bytes(vec![b'x'; 1 << 20]))).collect::<Vec<_>>()
    };
    let manifest = looked(move |request| if request.method == "HEAD" { reply(200, &[], "") } else { huge() });
    assert_eq!(manifest.await, Class::Unavailable);
    assert_eq!(deleted(huge).await, Class::Unknown);
}

#[tokio::test]
async fn a_manifest_that_was_changed_on_the_way_is_not_believed() {
    let changed = |request: &Seen| match request.method.as_str() {
        "HEAD" => reply(200, &[], ""),
        _ => reply(200, &[("Docker-Content-Digest", TWO)], "{\"schemaVersion\":2}"),
    };
    assert_eq!(looked(changed).await, Class::Unavailable);
}

#[rstest]
#[case::relative("../../other/manifests/hibernate")]
#[case::absolute_path("/v2/p/other/manifests/hibernate")]
#[tokio::test]
async fn a_redirect_is_followed_with_its_method(#[case] to: &'static str) {
    for status in [301, 302, 307, 308] {
        let server = Server::new(move |request| {
            if request.target.contains("other") { present(request) } else { reply(status, &[("Location", to)], "") }
        })
        .await;
        assert_eq!(delete(&server.registry(), Some(ONE)).await.class, Class::Absent, "{status}");
        let deletes = server.told().iter().filter(|told| told.starts_with("DELETE ")).count();
        assert_eq!(deletes, 2, "{:#?}", server.told());
    }
}

#[tokio::test]
async fn another_server_sees_no_token_and_its_401_is_not_listened_to() {
    let other = Server::new(|_| reply(401, &[("WWW-Authenticate", "Basic realm=\"phish\"")], "")).await;
    let to = format!("http://{}/x", other.address);
    let server = Server::new(move |request| {
        let realm = format!("http://{}/token", request.header("host").expect("a host"));
        match (request.target.starts_with("/token"), request.header("authorization")) {
            (true, _) => reply(200, &[], r#"{"token": "T"}"#),
            (false, None) => reply(401, &[("WWW-Authenticate", &format!("Bearer realm=\"{realm}\""))], ""),
            (false, Some(_)) => reply(307, &[("Location", &to)], ""),
        }
    })
    .await;
    assert_eq!(head(&server.registry()).await.class, Class::Denied);
    assert_eq!(other.told(), ["HEAD /x -"]);
    assert_eq!(server.told().len(), 3);
}

#[rstest]
#[case::in_circles("/v2/p/vk-a/manifests/hibernate", 6)]
#[case::unprotected("http://registry.example/x", 1)]
#[case::no_web("file:///etc/passwd", 1)]
#[case::with_a_user("http://u:p@127.0.0.1/x", 1)]
#[tokio::test]
async fn a_redirect_to_nowhere_is_not_followed(#[case] to: &'static str, #[case] requests: usize) {
    let server = Server::new(move |_| reply(302, &[("Location", to)], "")).await;
    let outcome = head(&server.registry()).await;
    assert_eq!(outcome.class, Class::Unavailable, "{outcome:?}");
    assert_eq!(server.told().len(), requests);
}
