//! Recorded answers, damaged on the way.

use super::{Fact, check_shape, expected};
use cocoon_operator::core::outcome::{Class, Effect};
use cocoon_operator::core::wire::Verb;
use serde_json::{Value, json};

/// Every way a body can arrive damaged that does not depend on what it was.
fn replaced() -> Vec<Vec<u8>> {
    let html = "<!DOCTYPE html>\n<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>";
    let bodies = ["", " ", "null", "0", "true", "[]", "{}", "\"text\"", "upstream connect error", html, "\u{feff}{}"];
    let mut all: Vec<Vec<u8>> = bodies.iter().map(|b| b.as_bytes().to_vec()).collect();
    all.push(vec![0xff, 0xfe, 0x00]);
    all.push(b"[".repeat(100_000));
    all
}

#[test]
fn a_body_that_was_replaced_is_no_success_and_no_absence() {
    for fact in Fact::all() {
        for body in replaced() {
            let at = format!("{} with {:?}", fact.name, String::from_utf8_lossy(&body[..body.len().min(40)]));
            let outcome = fact.judge(body.clone());
            check_shape(&outcome, &at);
            let silent_watch = fact.verb == Verb::Watch && body.trim_ascii().is_empty() && fact.succeeded();
            if silent_watch {
                assert_eq!(outcome.class, Class::Done, "{at}: a watch that just ends");
            } else if fact.succeeded() {
                assert_eq!(outcome.class, Class::Malformed, "{at}");
            } else {
                assert!(
                    matches!(outcome.effect(), Effect::Refused | Effect::Moved | Effect::Later | Effect::Unsure),
                    "{at}"
                );
            }
            if fact.verb.writes() && fact.status >= 500 {
                assert_eq!(outcome.class, Class::Unknown, "{at}: a write whose answer nobody can read");
            }
        }
    }
}

#[test]
fn a_truncated_body_is_never_what_the_whole_one_was() {
    let table = expected();
    for fact in Fact::all().into_iter().filter(|f| f.body.is_object()) {
        let whole = fact.wire();
        for length in (1..whole.len()).step_by((whole.len() / 40).max(1)) {
            let outcome = fact.judge(whole[..length].to_vec());
            let at = format!("{} cut to {length} of {} bytes", fact.name, whole.len());
            check_shape(&outcome, &at);
            assert!(!matches!(outcome.class, Class::Done | Class::NotFound | Class::NamespaceNotFound), "{at}");
            if fact.succeeded() {
                assert_eq!(outcome.class, Class::Malformed, "{at}");
            }
            if matches!(table[fact.name.as_str()], Class::NotFound | Class::NamespaceNotFound) {
                assert_eq!(outcome.class, Class::NotServed, "{at}");
            }
        }
    }
}

/// Every value in the tree replaced by every wrong value, and every key removed, one at a time.
fn mutants(value: &Value) -> Vec<(String, Value)> {
    let wrong = [
        json!(null),
        json!(7),
        json!(-1.5),
        json!(true),
        json!("x"),
        json!([]),
        json!([{}]),
        json!({}),
        json!({"x": 1}),
    ];
    let mut all = Vec::new();
    for pointer in pointers(value, String::new(), 4) {
        for other in &wrong {
            let mut mutant = value.clone();
            if let Some(place) = mutant.pointer_mut(&pointer).filter(|place| *place != other) {
                *place = other.clone();
                all.push((format!("{pointer} := {other}"), mutant));
            }
        }
        let (parent, key) = pointer.rsplit_once('/').expect("pointer");
        let mut mutant = value.clone();
        if let Some(Value::Object(map)) = mutant.pointer_mut(parent) {
            map.remove(key);
            all.push((format!("{pointer} removed"), mutant));
        }
    }
    all
}

fn pointers(value: &Value, at: String, depth: usize) -> Vec<String> {
    let children: Vec<(String, &Value)> = match value {
        Value::Object(map) => map.iter().map(|(k, v)| (k.replace('~', "~0").replace('/', "~1"), v)).collect(),
        Value::Array(list) => list.iter().take(2).enumerate().map(|(i, v)| (i.to_string(), v)).collect(),
        _ => Vec::new(),
    };
    let mut all = Vec::new();
    for (key, child) in children.into_iter().filter(|_| depth > 0) {
        let here = format!("{at}/{key}");
        all.extend(pointers(child, here.clone(), depth - 1));
        all.push(here);
    }
    all
}

#[test]
fn wrong_types_in_any_field_of_a_refusal_never_make_a_success_or_an_absence() {
    let table = expected();
    for fact in Fact::all().into_iter().filter(|f| f.body.is_object() && !f.succeeded()) {
        let whole = table[fact.name.as_str()];
        // A create whose 404 has lost the kind is an absence still, if not of the namespace: nothing was created.
        let absent = matches!(whole, Class::NotFound | Class::NamespaceNotFound);
        for (how, body) in mutants(&fact.body) {
            let at = format!("{}: {how}", fact.name);
            let outcome = fact.judge(body.to_string().into_bytes());
            check_shape(&outcome, &at);
            assert_ne!(outcome.class, Class::Done, "{at}");
            assert!(absent || outcome.effect() != Effect::Gone, "{at}: read as absence");
            if fact.verb.writes() && fact.status >= 500 {
                assert!(matches!(outcome.class, Class::Unknown) || outcome.class == whole, "{at}: {}", outcome.class);
            }
        }
    }
}

#[test]
fn wrong_types_in_any_field_of_a_success_are_never_read_as_a_refusal() {
    for fact in Fact::all().into_iter().filter(|f| f.body.is_object() && f.succeeded() && f.verb != Verb::Watch) {
        for (how, body) in mutants(&fact.body) {
            let at = format!("{}: {how}", fact.name);
            let outcome = fact.judge(body.to_string().into_bytes());
            check_shape(&outcome, &at);
            assert!(matches!(outcome.class, Class::Done | Class::Malformed), "{at}: {}", outcome.class);
        }
    }
}

/// The fields without which a success proves nothing, by what was asked.
fn vital(fact: &Fact) -> &'static [&'static str] {
    match (fact.verb, fact.body["kind"].as_str()) {
        (Verb::Delete, Some("Status")) => &["/kind", "/status"],
        (Verb::List, _) => &["/metadata", "/metadata/resourceVersion", "/items", "/items/0/metadata/name"],
        _ => &["/metadata", "/metadata/name"],
    }
}

#[test]
fn a_success_that_lost_a_vital_field_is_malformed() {
    for fact in Fact::all().into_iter().filter(|f| f.body.is_object() && f.succeeded() && f.verb != Verb::Watch) {
        for pointer in vital(&fact) {
            for wrong in [json!(null), json!(7), json!(""), json!({}), json!({"x": 1}), json!([{}]), json!([7])] {
                let mut body = fact.body.clone();
                let Some(place) = body.pointer_mut(pointer) else { continue };
                *place = wrong;
                let outcome = fact.judge(body.to_string().into_bytes());
                assert_eq!(outcome.class, Class::Malformed, "{}: {pointer} in {body}", fact.name);
            }
        }
    }
}

#[test]
fn an_object_whose_identity_has_a_wrong_type_is_malformed() {
    for fact in Fact::all().into_iter().filter(|f| f.succeeded() && f.body["metadata"]["uid"].is_string()) {
        for key in ["uid", "resourceVersion", "deletionTimestamp", "namespace"] {
            let mut body = fact.body.clone();
            body["metadata"][key] = json!(7);
            assert_eq!(fact.judge(body.to_string().into_bytes()).class, Class::Malformed, "{}: {key}", fact.name);
        }
    }
}
