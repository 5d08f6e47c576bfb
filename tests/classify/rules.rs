//! What no recording shows: lost answers, codes without a body, webhooks, watches, waits.

use super::http;
use cocoon_operator::core::classify::{MAX_MESSAGE, MAX_RETRY_AFTER, classify, classify_watch_error};
use cocoon_operator::core::outcome::{Class, Outcome};
use cocoon_operator::core::wire::{Reply, Verb, retry_after};
use serde_json::{Value, json};
use std::time::Duration;

pub const READS: [Verb; 3] = [Verb::Get, Verb::List, Verb::Watch];
pub const WRITES: [Verb; 4] = [Verb::Create, Verb::Update, Verb::Patch, Verb::Delete];

fn of(verb: Verb, status: u16, body: &Value) -> Class {
    classify(verb, &Reply::json(status, body)).class
}

/// A Failure without causes.
fn refusal(code: u16, reason: &str, message: &str) -> Value {
    json!({"kind": "Status", "status": "Failure", "reason": reason, "message": message, "code": code})
}

#[test]
fn an_answer_that_never_came_is_unavailable_to_a_read_and_unknown_to_a_write() {
    for verb in READS.into_iter().chain(WRITES).chain([Verb::RegistryHead, Verb::RegistryGet, Verb::RegistryDelete]) {
        let lost = if verb.writes() { Class::Unknown } else { Class::Unavailable };
        assert_eq!(classify(verb, &Reply::TimedOut).class, lost, "{verb:?}");
        assert_eq!(classify(verb, &Reply::Reset { sent: true }).class, lost, "{verb:?}");
        assert_eq!(classify(verb, &Reply::Reset { sent: false }).class, Class::Unavailable, "{verb:?}");
        assert_eq!(classify(verb, &Reply::Fenced).class, Class::Fenced, "{verb:?}");
        for status in [0, 100, 199, 301, 304, 399, 408, 502, 504, 599, 600, 999, u16::MAX] {
            assert_eq!(classify(verb, &http(status, "")).class, lost, "{verb:?} {status}");
        }
    }
}

#[test]
fn a_server_fault_leaves_a_write_open_unless_the_body_proves_that_nothing_was_done() {
    let down = refusal(503, "ServiceUnavailable", "apiserver is shutting down");
    let called = "Internal error occurred: failed calling webhook \"w.x\": failed to call webhook: connection refused";
    for verb in WRITES {
        assert_eq!(of(verb, 503, &down), Class::Unavailable, "{verb:?}");
        assert_eq!(classify(verb, &http(503, "<html>503</html>")).class, Class::Unknown, "{verb:?}");
        assert_eq!(of(verb, 503, &json!({"error": "overloaded"})), Class::Unknown, "{verb:?}");
        assert_eq!(of(verb, 500, &refusal(500, "InternalError", called)), Class::Unavailable, "{verb:?}");
        assert_eq!(
            of(verb, 500, &refusal(500, "InternalError", "etcdserver: leader changed")),
            Class::Unknown,
            "{verb:?}"
        );
        assert_eq!(of(verb, 504, &refusal(504, "Timeout", "request did not complete")), Class::Unknown, "{verb:?}");
        assert_eq!(of(verb, 502, &down), Class::Unknown, "{verb:?}: a 502 is a proxy's, whatever it carries");
        // Conversion runs on the way out as well, when the object is already stored.
        let converted = "Internal error occurred: conversion webhook for x failed: failed calling webhook";
        assert_eq!(of(verb, 500, &refusal(500, "InternalError", converted)), Class::Unknown, "{verb:?}");
    }
    for verb in READS {
        for code in 500..=599 {
            assert_eq!(of(verb, code, &refusal(code, "InternalError", called)), Class::Unavailable, "{verb:?} {code}");
            assert_eq!(classify(verb, &http(code, "")).class, Class::Unavailable, "{verb:?} {code}");
        }
    }
}

#[test]
fn a_webhook_may_refuse_with_any_code_and_is_still_a_webhook() {
    let text = "admission webhook \"quota.example.test\" denied the request: no more today";
    for code in [400, 401, 403, 404, 409, 410, 413, 422, 429, 500, 503, 504] {
        let mut body = refusal(code, "NotFound", text);
        body["details"] = json!({"name": "demo-0", "kind": "pods"});
        assert_eq!(of(Verb::Create, code, &body), Class::AdmissionDenied, "{code}");
    }
    // Quoting the words is not saying them, and saying them in a body of another kind is no refusal of the server.
    let quoted = "Pod \"x\" is invalid: spec.a: Invalid value: \"admission webhook \\\"w\\\" denied the request\"";
    assert_eq!(of(Verb::Create, 422, &refusal(422, "Invalid", quoted)), Class::Invalid);
    assert_eq!(of(Verb::Create, 404, &json!({"message": text, "details": {"name": "x"}})), Class::NotServed);
    let policy = "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no";
    assert_eq!(of(Verb::Delete, 409, &refusal(409, "Conflict", policy)), Class::AdmissionDenied);
}

#[test]
fn a_cause_counts_where_the_message_was_rewritten() {
    let with = |code: u16, cause: &str| {
        let mut body = refusal(code, "Invalid", "several things went wrong");
        body["details"] = json!({"causes": [{ "message": cause }]});
        body
    };
    let policy = "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no";
    assert_eq!(of(Verb::Create, 422, &with(422, policy)), Class::AdmissionDenied);
    let called = "failed calling webhook \"w\": failed to call webhook: context deadline exceeded";
    assert_eq!(of(Verb::Create, 500, &with(500, called)), Class::Unavailable);
    assert_eq!(of(Verb::Create, 500, &with(500, "something about a webhook")), Class::Unknown);
}

/// A read has nothing to lose by asking again, and nothing was refused by admission or for its size.
#[test]
fn a_read_that_met_a_fault_is_unavailable_whatever_the_body_says() {
    for text in ["admission webhook \"w\" denied the request: no", "etcdserver: request is too large"] {
        for verb in READS {
            assert_eq!(of(verb, 500, &refusal(500, "InternalError", text)), Class::Unavailable, "{verb:?} {text}");
        }
    }
}

#[test]
fn a_404_is_absence_only_where_a_status_names_what_is_absent() {
    let named = |kind: &str| {
        let mut body = refusal(404, "NotFound", "not found");
        body["details"] = json!({"name": "x", "kind": kind});
        body
    };
    assert_eq!(of(Verb::Get, 404, &named("pods")), Class::NotFound);
    assert_eq!(of(Verb::Get, 404, &named("namespaces")), Class::NotFound, "a read of the namespace itself");
    assert_eq!(of(Verb::Patch, 404, &named("namespaces")), Class::NotFound);
    assert_eq!(of(Verb::Create, 404, &named("namespaces")), Class::NamespaceNotFound);
    assert_eq!(
        of(Verb::Get, 404, &refusal(404, "NotFound", "the server could not find the requested resource")),
        Class::NotServed
    );
    for (key, value) in [("code", json!(502)), ("reason", json!("InternalError")), ("status", json!("Success"))] {
        let mut body = named("pods");
        body[key] = value;
        assert_eq!(of(Verb::Get, 404, &body), Class::NotServed, "{key} contradicts");
    }
    assert_eq!(classify(Verb::Delete, &http(404, "<html>not here</html>")).class, Class::NotServed);
}

#[test]
fn a_403_is_told_by_its_cause_and_then_by_how_its_ground_begins() {
    let ground = |text: &str| refusal(403, "Forbidden", &format!("pods \"demo-0\" is forbidden: {text}"));
    let terminating = "unable to create new content in namespace n because it is being terminated";
    let mut caused = ground(terminating);
    caused["details"] = json!({"causes": [{"reason": "NamespaceTerminating", "field": "metadata.namespace"}]});
    assert_eq!(of(Verb::Create, 403, &caused), Class::NamespaceTerminating);
    assert_eq!(of(Verb::Create, 403, &ground(terminating)), Class::ForbiddenOther, "the cause decides, not the text");
    for (text, class) in [
        ("insufficient quota to match these scopes: [{PriorityClass In [high]}]", Class::QuotaExceeded),
        ("maximum is 2: exceeded quota: x", Class::ForbiddenOther),
        ("User \"system:serviceaccount:a:b\" cannot create resource \"pods\"", Class::RbacDenied),
        ("cannot set blockOwnerDeletion if an ownerReference refers to a resource", Class::ForbiddenOther),
    ] {
        assert_eq!(of(Verb::Create, 403, &ground(text)), class, "{text}");
    }
    let path = "forbidden: User \"system:anonymous\" cannot get path \"/x\"";
    assert_eq!(of(Verb::Get, 403, &refusal(403, "Forbidden", path)), Class::RbacDenied);
    assert_eq!(classify(Verb::Create, &http(403, "exceeded quota: q")).class, Class::ForbiddenOther, "no Status");
}

#[test]
fn codes_without_a_status_keep_their_meaning() {
    for (code, class) in [
        (400, Class::BadRequest),
        (401, Class::Unauthorized),
        (403, Class::ForbiddenOther),
        (404, Class::NotServed),
        (405, Class::BadRequest),
        (406, Class::BadRequest),
        (409, Class::Conflict),
        (410, Class::Expired),
        (413, Class::TooLarge),
        (415, Class::BadRequest),
        (418, Class::BadRequest),
        (422, Class::Invalid),
        (429, Class::Throttled),
        (499, Class::BadRequest),
    ] {
        for verb in READS.into_iter().chain(WRITES) {
            assert_eq!(classify(verb, &http(code, "plain words")).class, class, "{verb:?} {code}");
        }
    }
}

#[test]
fn a_422_is_told_by_its_causes() {
    let caused = |causes: Value| {
        let mut body = refusal(422, "Invalid", "Pod \"x\" is invalid: several things");
        body["details"] = json!({"name": "x", "kind": "Pod", "causes": causes});
        body
    };
    let uid = json!({"reason": "FieldValueInvalid", "field": "metadata.uid", "message": "Invalid value: \"a\": field is immutable"});
    let other = json!({"reason": "FieldValueInvalid", "field": "spec.a", "message": "Invalid value: 1: must be 2"});
    let finalizer =
        json!({"reason": "FieldValueForbidden", "field": "metadata.finalizers", "message": "Forbidden: no"});
    let bad_finalizer = json!({"reason": "FieldValueInvalid", "field": "metadata.finalizers", "message": "bad name"});
    let cel = json!({"reason": "FieldValueInvalid", "field": "spec.mode", "message": "Invalid value: \"b\": mode is immutable"});
    for (causes, class) in [
        (json!([uid]), Class::PreconditionFailed),
        (json!([uid, other]), Class::Immutable),
        (json!([finalizer, other]), Class::FinalizerOnDeleting),
        (json!([bad_finalizer]), Class::Invalid),
        (json!([cel]), Class::Invalid),
        (json!([]), Class::Invalid),
    ] {
        assert_eq!(of(Verb::Patch, 422, &caused(causes.clone())), class, "{causes}");
    }
    // A refusal that names its ground is no failed test, even if its details were lost.
    let ground = refusal(422, "Invalid", "Pod \"x\" is invalid: spec.a: Required value");
    assert_eq!(of(Verb::Patch, 422, &ground), Class::Invalid);
    // Only a patch has tests that can fail.
    let general = refusal(422, "Invalid", "the server rejected our request due to an error in our request");
    assert_eq!(of(Verb::Patch, 422, &general), Class::PreconditionFailed);
    assert_eq!(of(Verb::Create, 422, &general), Class::Invalid);
}

#[test]
fn a_failure_inside_a_success_is_malformed() {
    let body = refusal(404, "NotFound", "not found");
    for verb in [Verb::Get, Verb::List, Verb::Create, Verb::Update, Verb::Patch, Verb::Delete] {
        assert_eq!(of(verb, 200, &body), Class::Malformed, "{verb:?}");
    }
    let gone = json!({"kind": "Status", "status": "Success"});
    assert_eq!(of(Verb::Delete, 200, &gone), Class::Done);
    assert_eq!(of(Verb::Patch, 200, &gone), Class::Malformed, "a patch returns the object");
}

#[test]
fn a_watch_error_counts_by_the_code_of_its_object() {
    let class = |object: Value| classify_watch_error(&object).class;
    assert_eq!(class(refusal(410, "Expired", "too old")), Class::Expired);
    assert_eq!(class(refusal(429, "TooManyRequests", "slow down")), Class::Throttled);
    assert_eq!(class(refusal(403, "Forbidden", "x is forbidden: User \"a\" cannot watch")), Class::RbacDenied);
    assert_eq!(class(refusal(500, "InternalError", "unable to decode")), Class::Unavailable);
    assert_eq!(class(json!({"kind": "Status", "reason": "Expired"})), Class::Expired, "the reason, where no code is");
    for object in
        [json!(null), json!({}), json!({"kind": "Pod"}), refusal(200, "", ""), json!({"kind": "Status", "code": "410"})]
    {
        assert_eq!(class(object.clone()), Class::Malformed, "{object}");
    }
    let mut waiting = refusal(429, "TooManyRequests", "slow down");
    waiting["details"] = json!({"retryAfterSeconds": 5});
    assert_eq!(classify_watch_error(&waiting).retry_after, Some(Duration::from_secs(5)));
    let event = json!({"type": "ERROR", "object": waiting});
    assert_eq!(classify(Verb::Watch, &Reply::json(200, &event)).retry_after, Some(Duration::from_secs(5)));
}

#[test]
fn the_servers_wait_is_taken_from_header_or_body_and_bounded() {
    let secs = |s| Some(Duration::from_secs(s));
    let with = |header: Option<&str>, detail: Value| -> Outcome {
        let mut body = refusal(429, "TooManyRequests", "later");
        body["details"] = json!({ "retryAfterSeconds": detail });
        let reply = Reply::Http {
            status: 429,
            retry_after: header.and_then(retry_after),
            body: body.to_string().into_bytes(),
            digest: None,
        };
        classify(Verb::Create, &reply)
    };
    for (header, detail, wait) in [
        (Some("1"), json!(9), secs(1)),
        (None, json!(9), secs(9)),
        (Some(" 600 "), json!(null), secs(600)),
        (Some("601"), json!(null), Some(MAX_RETRY_AFTER)),
        (Some("99999999999999999999999"), json!(null), Some(MAX_RETRY_AFTER)),
        (Some("0"), json!(null), None),
        (Some("-1"), json!(null), None),
        (Some("+1"), json!(null), None),
        (Some("soon"), json!(3), secs(3)),
        (Some("Wed, 21 Oct 2026 07:28:00 GMT"), json!(null), None),
        (None, json!("9"), None),
        (None, json!(1.5), None),
        (None, json!(-3), None),
        (None, json!(u64::MAX), Some(MAX_RETRY_AFTER)),
    ] {
        assert_eq!(with(header, detail.clone()).retry_after, wait, "{header:?} {detail}");
    }
}

#[test]
fn words_are_bounded_and_cut_between_characters() {
    let long = refusal(409, "Conflict", &"ä€😀".repeat(1_000));
    let outcome = classify(Verb::Patch, &Reply::json(409, &long));
    assert!(outcome.message.len() <= MAX_MESSAGE && outcome.message.len() > MAX_MESSAGE - 4);
    let page = format!("<html>{}</html>", "x".repeat(1_000_000));
    assert!(classify(Verb::Get, &http(502, page)).message.len() <= MAX_MESSAGE);
    let noisy = classify(Verb::Get, &Reply::json(400, &refusal(400, "BadRequest", "a\u{1b}[31mred\u{0}\nline")));
    assert_eq!(noisy.message, "a [31mred \nline");
    let silent = classify(Verb::Get, &Reply::json(400, &json!({"kind": "Status", "reason": "BadRequest"})));
    assert_eq!(silent.message, "BadRequest");
}
