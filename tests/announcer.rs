//! Events as requests: what the API server takes, how often, and what a failure leads to.

use cocoon_operator::core::action::{Action, Announcement, Related, Subject, Want};
use cocoon_operator::core::call::Call;
use cocoon_operator::core::classify::classify;
use cocoon_operator::core::control::announcer::{Announcer, Moment, Sending};
use cocoon_operator::core::outcome::{Class, Outcome};
use cocoon_operator::core::rule::RuleId;
use cocoon_operator::core::wire::{Request, Verb};
use cocoon_operator::sim::store::Store;
use jiff::Timestamp;
use serde_json::Value;
use std::time::Duration;

const START: &str = "2026-08-03T12:00:00Z";

fn start() -> Timestamp {
    START.parse().expect("a time")
}

fn subject() -> Subject {
    Subject { kind: "CocoonSet", namespace: "default".into(), name: "demo".into(), uid: "uid-1".into() }
}

fn told(reason: &str, message: &str) -> Action {
    let related = Some(Related { pod: "demo-1".into(), uid: "pod-uid".into() });
    let want = Want::Announce(Announcement { warning: true, reason: reason.into(), message: message.into(), related });
    Action { want, rule: RuleId("test/rule".into()), because: "why".into(), also: Vec::new() }
}

fn at(seconds: u64) -> Moment {
    let mono = Duration::from_secs(seconds);
    Moment { now: start() + jiff::SignedDuration::try_from(mono).expect("a span"), mono }
}

fn speak(announcer: &mut Announcer, action: &Action, seconds: u64) -> Result<Sending, Outcome> {
    announcer.speak(&subject(), action, at(seconds)).expect("an announcement")
}

fn request(sending: &Sending) -> Request {
    let Call::Api { request, resource, .. } = &sending.call else { panic!("events go to the API server") };
    assert_eq!(*resource, "events");
    request.clone()
}

/// One event through the store; the class it came to, and whether a line was due.
fn carry(announcer: &mut Announcer, store: &mut Store, action: &Action, seconds: u64) -> (Class, bool) {
    let sending = match speak(announcer, action, seconds) {
        Ok(sending) => sending,
        Err(instead) => return (instead.class, false),
    };
    let reply = store.handle(&request(&sending));
    let reply = cocoon_operator::core::wire::Reply::json(reply.status, reply.value());
    let outcome = classify(sending.call.verb(), &reply);
    let line = announcer.answered(sending, &outcome, at(seconds).mono);
    (outcome.class, line)
}

fn events(store: &Store) -> Vec<&Value> {
    store.objects("events", Some("default")).collect()
}

#[test]
fn the_api_server_takes_what_is_said() {
    let (mut announcer, mut store) = (Announcer::new("pod-1"), Store::new(start()));
    for reason in ["SubAgentRebuilding", "PodLifecycleFailed", "Orphaned", "QuotaExceeded"] {
        assert_eq!(carry(&mut announcer, &mut store, &told(reason, "words"), 0).0, Class::Done, "{reason}");
    }
    let event = events(&store)[0].clone();
    assert_eq!(event["involvedObject"]["uid"], "uid-1");
    assert_eq!(event["related"]["name"], "demo-1");
    assert_eq!(event["reportingComponent"], "cocoon-operator");
    assert_eq!(event["reportingInstance"], "pod-1");
    assert_eq!(event["eventTime"], "2026-08-03T12:00:00.000000Z");
    assert!(event["metadata"]["name"].as_str().expect("a name").starts_with("demo."));
}

#[test]
fn the_longest_of_everything_is_taken_too() {
    let (mut announcer, mut store) = (Announcer::new(&"host".repeat(80)), Store::new(start()));
    let mut long = subject();
    long.name = format!("{}-.x", "a".repeat(198));
    let message = "é".repeat(500);
    let action = told("SubAgentRebuilding", &message);
    let sending = announcer.speak(&long, &action, at(0)).expect("an announcement").expect("is sent");
    assert!(store.handle(&request(&sending)).is_success(), "{}", store.handle(&request(&sending)).value());
}

#[test]
fn what_happens_alike_again_is_one_event_with_a_series() {
    let (mut announcer, mut store) = (Announcer::new("a"), Store::new(start()));
    for seconds in [0, 60, 120] {
        assert_eq!(carry(&mut announcer, &mut store, &told("QuotaExceeded", "full"), seconds).0, Class::Done);
    }
    assert_eq!(events(&store).len(), 1);
    assert_eq!(events(&store)[0]["series"]["count"], 3);
    carry(&mut announcer, &mut store, &told("QuotaExceeded", "fuller"), 130);
    assert_eq!(events(&store).len(), 2, "other words are another event");
    carry(&mut announcer, &mut store, &told("QuotaExceeded", "full"), 120 + 360);
    assert_eq!(events(&store).len(), 3, "after six minutes it is news again");
}

#[test]
fn a_series_whose_event_is_gone_begins_anew() {
    let (mut announcer, mut store) = (Announcer::new("a"), Store::new(start()));
    carry(&mut announcer, &mut store, &told("R", "w"), 0);
    let name = events(&store)[0]["metadata"]["name"].as_str().expect("a name").to_owned();
    let path = format!("/api/v1/namespaces/default/events/{name}");
    store.handle(&Request::new(cocoon_operator::core::wire::Method::Delete, path));
    assert_eq!(carry(&mut announcer, &mut store, &told("R", "w"), 1), (Class::NotFound, false));
    assert_eq!(carry(&mut announcer, &mut store, &told("R", "w"), 2).0, Class::Done);
    assert_eq!(events(&store).len(), 1);
}

#[test]
fn one_reason_cannot_flood_the_others() {
    let (mut announcer, mut store) = (Announcer::new("a"), Store::new(start()));
    let classes: Vec<Class> =
        (0..30).map(|n| carry(&mut announcer, &mut store, &told("Flood", &format!("{n}")), 0).0).collect();
    assert_eq!(classes.iter().filter(|class| **class == Class::Done).count(), 25);
    assert_eq!(carry(&mut announcer, &mut store, &told("Other", "w"), 0).0, Class::Done);
    assert_eq!(carry(&mut announcer, &mut store, &told("Flood", "later"), 299).0, Class::Throttled);
    assert_eq!(carry(&mut announcer, &mut store, &told("Flood", "later"), 300).0, Class::Done);
    assert_eq!(carry(&mut announcer, &mut store, &told("Flood", "again"), 301).0, Class::Throttled);
}

#[test]
fn where_events_are_forbidden_few_are_tried_and_one_line_is_written() {
    let mut announcer = Announcer::new("a");
    let (mut sent, mut lines) = (0, 0);
    for second in 0..3_600 {
        let action = told("R", &format!("{second}"));
        let mut other = subject();
        other.uid = format!("uid-{second}");
        if let Some(Ok(sending)) = announcer.speak(&other, &action, at(second)) {
            sent += 1;
            let line = announcer.answered(sending, &Outcome::of(Class::RbacDenied), at(second).mono);
            lines += u32::from(line);
        }
    }
    assert_eq!((sent, lines), (7, 1));
    let sending = speak(&mut announcer, &told("R", "w"), 10_000).expect("is tried");
    assert!(!announcer.answered(sending, &Outcome::of(Class::Done), at(10_000).mono));
    assert!(speak(&mut announcer, &told("R", "w2"), 10_001).is_ok(), "and goes on once it may");
}

#[test]
fn no_class_of_answer_is_sent_again_by_itself_or_closes_what_it_should_not() {
    for class in Class::ALL.iter().copied() {
        let mut announcer = Announcer::new("a");
        let sending = speak(&mut announcer, &told("R", "w"), 0).expect("is sent");
        announcer.answered(sending, &Outcome::of(class), Duration::ZERO);
        let next = speak(&mut announcer, &told("Other", "w"), 1);
        let closes = [Class::RbacDenied, Class::Unauthorized, Class::NotServed].contains(&class);
        assert_eq!(next.is_err(), closes, "{class}");
        let again = speak(&mut announcer, &told("R", "w"), 100).expect("is sent");
        let verb = if class == Class::Done { Verb::Patch } else { Verb::Create };
        assert_eq!(again.call.verb(), verb, "{class}: only what arrived has a series");
    }
}

#[test]
fn what_is_kept_is_bounded() {
    let mut announcer = Announcer::new("a");
    for n in 0..5_000 {
        let mut other = subject();
        other.uid = format!("uid-{n}");
        let sending = announcer.speak(&other, &told("R", "w"), at(n)).expect("an announcement").expect("is sent");
        announcer.answered(sending, &Outcome::of(Class::Done), at(n).mono);
    }
    assert_eq!(announcer.sizes(), (1_024, 1_024));
}
