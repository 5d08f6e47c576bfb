//! The classifier against every recorded answer of a real API server, against damaged ones, and against noise.

mod damage;
#[path = "../facts_common/mod.rs"]
mod facts_common;
mod noise;
mod registry;
mod rules;

use cocoon_operator::core::classify::{MAX_MESSAGE, MAX_RETRY_AFTER};
use cocoon_operator::core::outcome::{Answer, Class, Outcome};
use cocoon_operator::core::wire::Reply;
use facts_common::{Fact, expected};
use std::collections::BTreeSet;
use std::time::Duration;

fn http(status: u16, body: impl Into<Vec<u8>>) -> Reply {
    Reply::Http { status, retry_after: None, body: body.into(), digest: None }
}

/// What holds of every outcome, whatever it was made of.
fn check_shape(outcome: &Outcome, at: &str) {
    let fine = matches!(outcome.class, Class::Done | Class::Present | Class::Absent);
    assert!(fine || !outcome.message.trim().is_empty(), "{at}: {} without words", outcome.class);
    assert!(outcome.message.len() <= MAX_MESSAGE, "{at}: {} bytes of message", outcome.message.len());
    assert!(
        outcome.retry_after.is_none_or(|d| !d.is_zero() && d <= MAX_RETRY_AFTER),
        "{at}: {:?}",
        outcome.retry_after
    );
    assert!(fine || outcome.answer == Answer::Nothing, "{at}: {} with an answer", outcome.class);
}

#[test]
fn every_recorded_answer_has_the_class_of_the_table() {
    let (table, facts) = (expected(), Fact::all());
    assert_eq!(facts.len(), 141);
    let seen: BTreeSet<&str> = facts.iter().map(|f| f.name.as_str()).collect();
    assert_eq!(seen, table.keys().copied().collect::<BTreeSet<_>>(), "files and table differ");
    let wrong: Vec<String> = facts
        .iter()
        .map(|f| (f, f.judge(f.wire())))
        .inspect(|(f, outcome)| check_shape(outcome, &f.name))
        .filter(|(f, outcome)| outcome.class != table[f.name.as_str()])
        .map(|(f, o)| format!("{} ({:?}): {} instead of {}", f.name, f.verb, o.class, table[f.name.as_str()]))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_the_server_returned_comes_along() {
    let facts = Fact::all();
    let outcome = |name: &str| facts.iter().find(|f| f.name == name).map(|f| f.judge(f.wire())).expect("recorded");
    let Answer::Object(pod) = outcome("c5-delete-bound-pod").answer else { panic!("no object") };
    assert!(pod["metadata"]["deletionTimestamp"].is_string());
    assert_eq!(outcome("c9-delete-no-finalizer-cr").answer, Answer::Nothing);
    let Answer::List { items, continue_token, .. } = outcome("l4-list-continue-expired").answer else {
        panic!("no list")
    };
    assert!(!items.is_empty(), "{continue_token}");
    let second = Some(Duration::from_secs(1));
    for name in ["r-apf-GET", "r-inflight-POST", "l1-watch-future-rv"] {
        assert_eq!(outcome(name).retry_after, second, "{name}");
    }
    assert!(outcome("a2-pod-in-terminating-ns").message.contains("because it is being terminated"));
    assert_eq!(outcome("r-apf-GET").message, "HTTP 429: Too many requests, please try again later.");
}
