//! Who asks: Basic, tokens, and what of them is kept.

use crate::server::{Piece, Seen, Server, reply};
use crate::{LEADS, delete, head, present};
use cocoon_operator::core::outcome::Class;
use cocoon_operator::core::wire::Verb;
use cocoon_operator::shell::clock::Clock;
use cocoon_operator::shell::registry::credentials::Keyring;
use rstest::rstest;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// A Docker config with this user and password for every registry of this machine; a file of its own each time.
fn keyring(server: &Server, password: &str) -> (Keyring, PathBuf) {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let directory = std::env::temp_dir().join(format!("cocoon-registry-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory");
    let file = directory.join(format!("{}.json", COUNT.fetch_add(1, Ordering::Relaxed)));
    write(&file, server, password);
    (Keyring::of_file(&file), file)
}

fn write(file: &PathBuf, server: &Server, password: &str) {
    let auths = serde_json::json!({"auths": {server.address.to_string(): {"username": "u", "password": password}}});
    std::fs::write(file, auths.to_string()).expect("written");
}

const BASIC: &str = "Basic dTpwYXNz";

/// A registry that wants user `u` with password `pass`.
fn basic(request: &Seen) -> Vec<Piece> {
    match request.header("authorization") {
        Some(BASIC) => present(request),
        _ => reply(401, &[("WWW-Authenticate", "Basic realm=\"r\"")], ""),
    }
}

/// A registry that wants a token of its own, and how its tokens are given out: by number of those given before.
fn bearer(
    token: impl Fn(&Seen, usize) -> Vec<Piece> + Send + Sync + 'static,
    good: impl Fn(&str) -> bool + Send + Sync + 'static,
) -> impl Fn(&Seen) -> Vec<Piece> + Send + Sync + 'static {
    let given = AtomicUsize::new(0);
    move |request| {
        if request.target.starts_with("/token") {
            return token(request, given.fetch_add(1, Ordering::Relaxed));
        }
        let shown = request.header("authorization").and_then(|value| value.strip_prefix("Bearer "));
        if shown.is_some_and(&good) {
            return present(request);
        }
        let realm = format!("http://{}/token", request.header("host").expect("a host"));
        let offer = format!("Bearer realm=\"{realm}\",service=\"reg\",scope=\"repository:p/vk-a:pull\"");
        reply(401, &[("WWW-Authenticate", &offer)], "")
    }
}

fn numbered(_: &Seen, given: usize) -> Vec<Piece> {
    reply(200, &[], &format!(r#"{{"token": "T{given}", "expires_in": 300}}"#))
}

#[tokio::test]
async fn user_and_password_are_shown_when_asked_and_then_unasked() {
    let server = Server::new(basic).await;
    let registry = server.registry().with_keyring(keyring(&server, "pass").0);
    assert_eq!(head(&registry).await.class, Class::Present);
    assert_eq!(registry.carry_out(Verb::RegistryHead, "vk-b", "latest", None, &LEADS).await.class, Class::Present);
    let (a, b) = ("HEAD /v2/p/vk-a/manifests/hibernate", "HEAD /v2/p/vk-b/manifests/latest");
    assert_eq!(server.told(), [format!("{a} -"), format!("{a} {BASIC}"), format!("{b} {BASIC}")]);
}

#[tokio::test]
async fn a_password_that_is_refused_is_shown_once_and_read_anew_the_next_time() {
    let server = Server::new(basic).await;
    let (keyring, file) = keyring(&server, "wrong");
    let registry = server.registry().with_keyring(keyring);
    assert_eq!(head(&registry).await.class, Class::Denied);
    assert_eq!(server.told().len(), 2);
    write(&file, &server, "pass");
    assert_eq!(head(&registry).await.class, Class::Present);
    // What was accepted is good for a delete too.
    assert_eq!(delete(&registry, None).await.class, Class::Absent);
}

#[tokio::test]
async fn without_a_password_a_registry_that_wants_one_is_denied_and_nothing_is_repeated() {
    let server = Server::new(basic).await;
    assert_eq!(head(&server.registry()).await.class, Class::Denied);
    assert_eq!(server.told().len(), 1);
}

#[tokio::test]
async fn a_token_is_got_once_and_kept() {
    let server = Server::new(bearer(numbered, |shown| shown == "T0")).await;
    let registry = server.registry().with_keyring(keyring(&server, "pass").0);
    for _ in 0..3 {
        assert_eq!(head(&registry).await.class, Class::Present);
    }
    let path = "HEAD /v2/p/vk-a/manifests/hibernate";
    assert_eq!(
        server.told(),
        [
            format!("{path} -"),
            format!("GET /token?service=reg&scope=repository%3Ap%2Fvk-a%3Apull {BASIC}"),
            format!("{path} Bearer T0"),
            format!("{path} Bearer T0"),
            format!("{path} Bearer T0"),
        ]
    );
}

#[tokio::test]
async fn a_delete_asks_for_a_token_that_may_delete() {
    let server = Server::new(bearer(numbered, |shown| shown == "T0")).await;
    assert_eq!(delete(&server.registry(), Some(crate::ONE)).await.class, Class::Absent);
    let told = server.told();
    let scope = "scope=repository%3Ap%2Fvk-a%3Adelete%2Cpull%2Cpush";
    assert!(told[1].contains(scope) && told[1].ends_with(" -"), "{told:#?}");
    assert_eq!(told.len(), 4, "one token for the look and the delete: {told:#?}");
    assert!(told[3].starts_with("DELETE ") && told[3].ends_with("Bearer T0"));
}

#[tokio::test]
async fn a_token_of_one_vm_is_shown_for_no_other() {
    let server = Server::new(bearer(numbered, |_| true)).await;
    let registry = server.registry();
    head(&registry).await;
    registry.carry_out(Verb::RegistryHead, "vk-b", "hibernate", None, &LEADS).await;
    assert!(server.told()[3].ends_with("/vk-b/manifests/hibernate -"), "{:#?}", server.told());
}

#[tokio::test]
async fn a_token_that_runs_out_is_renewed_before_it_is_refused() {
    let server = Server::new(bearer(
        |_, given| reply(200, &[], &format!(r#"{{"access_token": "T{given}", "expires_in": 1}}"#)),
        |_| true,
    ))
    .await;
    let registry = server.registry();
    head(&registry).await;
    tokio::time::sleep(Duration::from_millis(950)).await;
    head(&registry).await;
    let told = server.told();
    assert!(told[3].ends_with(" -") && told[5].ends_with("Bearer T1"), "{told:#?}");
}

#[tokio::test]
async fn a_token_that_is_revoked_is_replaced_once() {
    let revoked = Arc::new(AtomicUsize::new(0));
    let now = Arc::clone(&revoked);
    let good = move |shown: &str| shown == format!("T{}", now.load(Ordering::Relaxed));
    let server = Server::new(bearer(numbered, good)).await;
    let registry = server.registry();
    assert_eq!(head(&registry).await.class, Class::Present);
    revoked.store(1, Ordering::Relaxed);
    assert_eq!(head(&registry).await.class, Class::Present);
    let told = server.told();
    assert!(told[3].ends_with("Bearer T0") && told[5].ends_with("Bearer T1"), "{told:#?}");
    // Never good again: one new token, one more try, and no more.
    revoked.store(99, Ordering::Relaxed);
    assert_eq!(head(&registry).await.class, Class::Denied);
    assert_eq!(server.told().len(), 6 + 3);
}

#[rstest]
#[case::refused(401, "", Class::Denied)]
#[case::forbidden(403, "", Class::Denied)]
#[case::no_such_page(404, "", Class::Denied)]
#[case::bad_scope(400, r#"{"errors": [{"code": "X", "message": "bad scope"}]}"#, Class::Denied)]
#[case::throttled(429, "", Class::Throttled)]
#[case::broken(503, "", Class::Unavailable)]
#[case::a_page(200, "<html>sign in</html>", Class::Unavailable)]
#[case::no_token(200, "{}", Class::Unavailable)]
#[case::a_token_that_is_no_header(200, "{\"token\": \"a\\nb\"}", Class::Denied)]
#[tokio::test]
async fn a_token_that_is_not_given_says_nothing_of_the_tag(
    #[case] status: u16,
    #[case] body: &'static str,
    #[case] class: Class,
) {
    let server = Server::new(bearer(move |_, _| reply(status, &[], body), |_| true)).await;
    let outcome = delete(&server.registry(), None).await;
    assert_eq!(outcome.class, class, "{outcome:?}");
    assert_eq!(server.told().len(), 2, "nothing was deleted: {:#?}", server.told());
}

#[tokio::test]
async fn a_token_giver_that_hangs_means_that_nothing_was_done() {
    let server = Server::new(bearer(|_, _| vec![Piece::Pause(Duration::from_secs(60))], |_| true)).await;
    let outcome = delete(&server.registry().with_deadline(Duration::from_millis(200)), None).await;
    assert_eq!(outcome.class, Class::Unavailable);
}

#[tokio::test]
async fn a_token_is_asked_for_only_where_it_is_protected() {
    let offer = "Bearer realm=\"http://tokens.example/t\"";
    let server = Server::new(move |_| reply(401, &[("WWW-Authenticate", offer)], "")).await;
    let outcome = head(&server.registry().with_keyring(keyring(&server, "pass").0)).await;
    // The registry is plain because it is on loopback; where it sends us is not.
    assert_eq!(outcome.class, Class::Denied);
    assert!(outcome.message.contains("tokens.example, which is not protected"), "{}", outcome.message);
}

#[tokio::test]
async fn what_is_secret_is_in_no_message() {
    let parrot = |request: &Seen| {
        let shown = request.header("authorization").unwrap_or("nothing").to_owned();
        let body = format!(r#"{{"errors": [{{"code": "DENIED", "message": "you showed {shown}"}}]}}"#);
        reply(if shown == "nothing" { 401 } else { 403 }, &[("WWW-Authenticate", "Basic realm=\"r\"")], &body)
    };
    let server = Server::new(parrot).await;
    let registry = server.registry().with_keyring(keyring(&server, "pass").0);
    let outcome = head(&registry).await;
    let told = delete(&registry, None).await;
    assert_eq!((outcome.class, told.class), (Class::Denied, Class::Denied));
    for text in [format!("{outcome:?}"), format!("{told:?}"), format!("{registry:?}")] {
        assert!(!text.contains("dTpwYXNz") && !text.contains("pass"), "{text}");
    }
    let parrot = bearer(
        |request, _| reply(403, &[], &format!("no token for {}", request.header("authorization").unwrap_or("-"))),
        |_| false,
    );
    let server = Server::new(parrot).await;
    let outcome = head(&server.registry().with_keyring(keyring(&server, "pass").0)).await;
    assert!(outcome.message.contains("[redacted]") && !outcome.message.contains("dTpwYXNz"), "{}", outcome.message);
}

#[tokio::test]
async fn a_config_that_does_not_read_is_said_and_not_quoted() {
    let server = Server::new(basic).await;
    let (keyring, file) = keyring(&server, "pass");
    std::fs::write(&file, "{\"auths\": SECRET").expect("written");
    let outcome = head(&server.registry_on(Clock::real()).with_keyring(keyring)).await;
    assert_eq!(outcome.class, Class::Denied);
    assert!(outcome.message.contains("line 1") && !outcome.message.contains("SECRET"), "{}", outcome.message);
}
