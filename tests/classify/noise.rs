//! Whatever arrives, the classifier has an answer, and never a daring one.

use super::{check_shape, http};
use cocoon_operator::core::classify::{classify, classify_watch_error};
use cocoon_operator::core::outcome::{Class, Effect};
use cocoon_operator::core::wire::{Reply, Verb};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::time::Duration;

const VERBS: [Verb; 10] = [
    Verb::Get,
    Verb::List,
    Verb::Watch,
    Verb::Create,
    Verb::Update,
    Verb::Patch,
    Verb::Delete,
    Verb::RegistryHead,
    Verb::RegistryGet,
    Verb::RegistryDelete,
];

fn any_verb() -> impl Strategy<Value = Verb> {
    proptest::sample::select(&VERBS[..])
}

/// Every status there is, those of RFC 9110 more often.
fn any_status() -> impl Strategy<Value = u16> {
    prop_oneof![3 => 100..600u16, 1 => any::<u16>()]
}

/// JSON made of the words that the classifier looks for, in places where they do and do not belong.
fn any_json() -> impl Strategy<Value = Value> {
    let words = [
        "Status",
        "Failure",
        "Success",
        "NotFound",
        "AlreadyExists",
        "Invalid",
        "Forbidden",
        "NamespaceTerminating",
        "FieldValueForbidden",
        "metadata.uid",
        "metadata.finalizers",
        "spec",
        "namespaces",
        "ERROR",
        "ADDED",
        "",
        "x",
        "x is forbidden: exceeded quota: q",
        "failed calling webhook \"x\"",
        "object is being deleted: x",
        "admission webhook \"x\" denied the request",
        "etcdserver: request is too large",
        "x: field is immutable",
    ];
    let keys = [
        "kind",
        "status",
        "message",
        "reason",
        "details",
        "causes",
        "field",
        "name",
        "code",
        "metadata",
        "items",
        "type",
        "object",
        "resourceVersion",
        "continue",
        "retryAfterSeconds",
        "errors",
        "annotations",
        "uid",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (100..600u16).prop_map(Value::from),
        proptest::sample::select(words.to_vec()).prop_map(Value::from),
    ];
    let keys = keys.map(str::to_owned).to_vec();
    leaf.prop_recursive(4, 40, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            proptest::collection::btree_map(proptest::sample::select(keys.clone()), inner, 0..8)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Half of these are a Status, so that the deeper rules are reached.
fn any_body() -> impl Strategy<Value = Vec<u8>> {
    let status = (any_json(), any_json(), any_json()).prop_map(|(details, reason, message)| {
        json!({"kind": "Status", "details": details, "reason": reason, "message": message}).to_string().into_bytes()
    });
    prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..200),
        any_json().prop_map(|v| v.to_string().into_bytes()),
        status,
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn any_answer_has_a_class_and_no_failure_is_a_success(
        verb in any_verb(), status in any_status(), body in any_body(), secs in any::<u64>()
    ) {
        let reply = Reply::Http { status, retry_after: Some(Duration::from_secs(secs)), body: body.clone(), digest: None };
        let outcome = classify(verb, &reply);
        check_shape(&outcome, &format!("{verb:?} {status} {:?}", String::from_utf8_lossy(&body)));
        if !(200..300).contains(&status) {
            prop_assert!(!matches!(outcome.class, Class::Done | Class::Present | Class::Malformed));
            prop_assert!(outcome.class != Class::Absent || status == 404);
            prop_assert!(outcome.effect() != Effect::Gone || status == 404);
        }
        prop_assert_eq!(classify(verb, &reply), outcome, "the same answer is understood the same way");
    }

    #[test]
    fn a_write_with_a_fault_nobody_can_read_is_never_certainly_not_done(
        verb in any_verb().prop_filter("a write", |v| v.writes()), status in 500..600u16, noise in any::<Vec<u8>>()
    ) {
        prop_assume!(serde_json::from_slice::<Value>(&noise).is_err());
        prop_assert_eq!(classify(verb, &http(status, noise)).class, Class::Unknown);
    }

    #[test]
    fn a_write_with_a_fault_is_open_unless_a_status_says_otherwise(
        verb in any_verb().prop_filter("a write", |v| v.writes()), status in 500..600u16, body in any_json()
    ) {
        let is_status = body.get("kind").is_some_and(|kind| kind == "Status");
        let class = classify(verb, &Reply::json(status, &body)).class;
        prop_assert!(is_status || class == Class::Unknown, "{} of {}", class, body);
    }

    #[test]
    fn an_absence_has_a_witness(verb in any_verb(), body in any_body()) {
        let class = classify(verb, &http(404, body.clone())).class;
        if matches!(class, Class::NotFound | Class::NamespaceNotFound) {
            let value: Value = serde_json::from_slice(&body).expect("JSON");
            prop_assert_eq!(&value["kind"], "Status");
            prop_assert!(value["details"]["name"].as_str().is_some_and(|name| !name.is_empty()));
        }
    }

    #[test]
    fn a_watch_error_is_never_a_success(object in any_json()) {
        let outcome = classify_watch_error(&object);
        check_shape(&outcome, "watch error");
        prop_assert!(!matches!(outcome.effect(), Effect::Happened));
    }
}
