//! The snapshot registry's answers.

use super::http;
use cocoon_operator::core::classify::classify;
use cocoon_operator::core::outcome::{Answer, Class};
use cocoon_operator::core::wire::{Reply, Verb};
use serde_json::{Value, json};
use std::time::Duration;

const ALL: [Verb; 3] = [Verb::RegistryHead, Verb::RegistryGet, Verb::RegistryDelete];

fn error(code: &str) -> Value {
    json!({"errors": [{"code": code, "message": "as the registry says"}]})
}

#[test]
fn a_manifest_is_present_with_its_digest_and_base_image() {
    let digest = format!("sha256:{}", "ab".repeat(32));
    let manifest = json!({"schemaVersion": 2, "annotations": {"cocoonstack.snapshot.baseimage": "ubuntu:24.04"}});
    let reply = |body: &[u8], digest: &str| Reply::Http {
        status: 200,
        retry_after: None,
        body: body.to_vec(),
        digest: Some(digest.to_owned()),
    };
    let head = classify(Verb::RegistryHead, &reply(b"", &digest));
    assert_eq!(head.class, Class::Present);
    assert_eq!(head.answer, Answer::Snapshot { digest: Some(digest.clone()), base_image: None });
    let get = classify(Verb::RegistryGet, &reply(manifest.to_string().as_bytes(), &digest));
    let base_image = Some("ubuntu:24.04".to_owned());
    assert_eq!(get.answer, Answer::Snapshot { digest: Some(digest), base_image });
    for wrong in ["", "latest", "sha256:", "sha256:xyz", ":abcd"] {
        let outcome = classify(Verb::RegistryHead, &reply(b"", wrong));
        assert_eq!(outcome.answer, Answer::Snapshot { digest: None, base_image: None }, "{wrong}");
    }
    let odd = json!({"annotations": {"cocoonstack.snapshot.baseimage": 7}});
    let outcome = classify(Verb::RegistryGet, &reply(odd.to_string().as_bytes(), ""));
    assert_eq!((outcome.class, outcome.answer), (Class::Present, Answer::Snapshot { digest: None, base_image: None }));
}

#[test]
fn every_code_of_the_registry_has_its_class() {
    for (status, class) in [
        (401, Class::Denied),
        (403, Class::Denied),
        (404, Class::Absent),
        (400, Class::Unsupported),
        (405, Class::Unsupported),
        (429, Class::Throttled),
    ] {
        for verb in ALL {
            assert_eq!(classify(verb, &http(status, "")).class, class, "{verb:?} {status}");
        }
    }
    for status in [500, 502, 503, 504, 522] {
        assert_eq!(classify(Verb::RegistryHead, &http(status, "")).class, Class::Unavailable);
        assert_eq!(classify(Verb::RegistryGet, &http(status, "")).class, Class::Unavailable);
        // A Status is the API server's word, and proves nothing here.
        let body = json!({"kind": "Status", "code": status}).to_string();
        assert_eq!(classify(Verb::RegistryDelete, &http(status, body)).class, Class::Unknown);
    }
    for status in [200, 202, 204] {
        assert_eq!(classify(Verb::RegistryDelete, &http(status, "")).class, Class::Absent);
    }
    for code in ["MANIFEST_UNKNOWN", "NAME_UNKNOWN"] {
        assert_eq!(classify(Verb::RegistryDelete, &Reply::json(404, &error(code))).class, Class::Absent, "{code}");
    }
}

#[test]
fn what_hides_behind_a_404_or_a_200_is_neither_absence_nor_presence() {
    let page = "\n <!DOCTYPE html><html>sign in</html>";
    for status in [200, 404] {
        assert_eq!(classify(Verb::RegistryGet, &http(status, page)).class, Class::Unavailable);
        assert_eq!(classify(Verb::RegistryDelete, &http(status, page)).class, Class::Unknown);
    }
    assert_eq!(classify(Verb::RegistryGet, &Reply::json(404, &error("DENIED"))).class, Class::Denied);
    assert_eq!(classify(Verb::RegistryDelete, &Reply::json(404, &error("TOOMANYREQUESTS"))).class, Class::Throttled);
    assert_eq!(classify(Verb::RegistryDelete, &Reply::json(200, &error("UNKNOWN"))).class, Class::Unknown);
    for body in ["", "text", "[]", "7", "{\"schemaVersion\":"] {
        assert_eq!(classify(Verb::RegistryGet, &http(200, body)).class, Class::Unavailable, "{body}");
    }
}

#[test]
fn the_registrys_words_and_wait_come_along() {
    let body = error("TOOMANYREQUESTS").to_string().into_bytes();
    let wait = Some(Duration::from_secs(7));
    let outcome = classify(Verb::RegistryHead, &Reply::Http { status: 429, retry_after: wait, body, digest: None });
    assert_eq!(outcome.retry_after, wait);
    assert_eq!(outcome.message, "HTTP 429: TOOMANYREQUESTS: as the registry says");
}
