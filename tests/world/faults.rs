//! Faults of the wire: which request meets them, and that every ready-made answer is understood as what it is called.

use crate::setup::*;
use cocoon_operator::core::classify::classify;
use cocoon_operator::core::outcome::Class;
use cocoon_operator::core::wire::{Method, Reply, Request, Verb};
use cocoon_operator::sim::faults::{Fault, Pattern, What, answer, reply_of_class};
use cocoon_operator::sim::world::OPERATOR;
use serde_json::json;

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

#[test]
fn every_ready_made_answer_is_read_as_its_class() {
    for class in Class::ALL {
        let mut any = false;
        for verb in VERBS {
            for (kind, name) in [("pods", "demo-0"), ("cocoonsets", "demo"), ("cocoonsets/status", "demo")] {
                let Some(reply) = reply_of_class(*class, verb, kind, name) else { continue };
                any = true;
                let outcome = classify(verb, &reply);
                assert_eq!(outcome.class, *class, "{verb:?} {kind}: {reply:?}");
            }
        }
        assert!(any, "{class} has no answer at all");
    }
}

#[test]
fn what_a_verb_cannot_be_answered_with_is_not_offered() {
    assert_eq!(reply_of_class(Class::AlreadyExists, Verb::Patch, "pods", "x"), None);
    assert_eq!(reply_of_class(Class::NamespaceTerminating, Verb::Delete, "pods", "x"), None);
    assert_eq!(reply_of_class(Class::Absent, Verb::Get, "pods", "x"), None);
    assert_eq!(reply_of_class(Class::Present, Verb::RegistryDelete, "snapshots", "x:hibernate"), None);
}

#[test]
fn the_other_names_are_read_as_they_should_be() {
    let class = |name: &str, verb: Verb| answer(name, verb, "pods", "demo-0").map(|reply| classify(verb, &reply).class);
    assert_eq!(class("WebhookDenied", Verb::Create), Some(Class::AdmissionDenied));
    assert_eq!(class("WebhookUnreachable", Verb::Create), Some(Class::Unavailable));
    assert_eq!(class("JsonPatchTest", Verb::Patch), Some(Class::PreconditionFailed));
    assert_eq!(class("500", Verb::Create), Some(Class::Unknown));
    assert_eq!(class("500", Verb::Get), Some(Class::Unavailable));
    assert_eq!(class("503", Verb::Create), Some(Class::Unavailable));
    assert_eq!(class("504", Verb::Delete), Some(Class::Unknown));
    assert_eq!(class("429", Verb::Create), Some(Class::Throttled));
    assert_eq!(class("TimedOut", Verb::Patch), Some(Class::Unknown));
    assert_eq!(class("NotSent", Verb::Patch), Some(Class::Unavailable));
    assert_eq!(class("Conflict", Verb::Patch), Some(Class::Conflict));
    assert_eq!(class("nonsense", Verb::Patch), None);
}

fn get_pod(name: &str) -> Request {
    Request::new(Method::Get, format!("/api/v1/namespaces/ns/pods/{name}"))
}

#[test]
fn a_fault_meets_the_nth_of_its_requests_and_nobody_elses() {
    let mut world = world(&[]);
    create(&mut world, pod("demo-0", &[]));
    let reply = answer("Unavailable", Verb::Get, "pods", "demo-0").expect("an answer");
    world.faults.add(Fault::new(Pattern::of(Verb::Get, "pods").named("demo-*"), What::Answer(reply)).nth(2).times(2));
    let mut statuses = Vec::new();
    for user in [OPERATOR, "somebody", OPERATOR, "somebody", OPERATOR, OPERATOR] {
        statuses.push(status_of(&world.api(user, &get_pod("demo-0"))));
    }
    assert_eq!(statuses, [200, 200, 503, 200, 503, 200]);
    assert!(world.faults.all()[0].is_spent());
    assert_eq!(world.faults.count(&Pattern::of(Verb::Get, "pods").named("demo-0")), 4);
}

#[test]
fn a_name_may_say_its_namespace() {
    let mut world = world(&[]);
    create(&mut world, pod("demo-0", &[]));
    world.store.add_namespace("other");
    world.faults.add(Fault::new(Pattern::of(Verb::Get, "pods").named("other/*"), What::TimeoutBefore));
    assert_eq!(status_of(&world.api(OPERATOR, &get_pod("demo-0"))), 200);
    let elsewhere = Request::new(Method::Get, "/api/v1/namespaces/other/pods/demo-0");
    assert_eq!(world.api(OPERATOR, &elsewhere), Reply::TimedOut);
    let reply = answer("NamespaceTerminating", Verb::Create, "pods", "other/demo-0").expect("an answer");
    assert!(
        matches!(reply, Reply::Http { body, .. } if String::from_utf8_lossy(&body).contains("in namespace other because"))
    );
}

#[test]
fn a_timeout_before_does_nothing_and_one_after_has_done_it() {
    for (what, done) in [
        (What::TimeoutBefore, false),
        (What::TimeoutAfter, true),
        (What::Reset { sent: true }, false),
        (What::ResetAfter, true),
    ] {
        let mut world = world(&[]);
        world.faults.add(Fault::new(Pattern::of(Verb::Create, "pods").named("demo-0"), what.clone()));
        let request =
            Request::new(Method::Post, "/api/v1/namespaces/ns/pods").with_body("application/json", pod("demo-0", &[]));
        let reply = world.api(OPERATOR, &request);
        assert_eq!(classify(Verb::Create, &reply).class, Class::Unknown);
        assert_eq!(get(&world, "demo-0").is_some(), done, "{what:?}");
    }
}

#[test]
fn faults_meet_the_registry_and_watches_too() {
    let mut world = world(&[]);
    world.registry.push("vk-ns-demo-0", "hibernate", None);
    let pattern = Pattern::of(Verb::RegistryHead, "snapshots").named("vk-ns-demo-0:hibernate");
    world.faults.add(Fault::new(pattern, What::TimeoutBefore));
    let mut head = || world.registry_call(Verb::RegistryHead, "vk-ns-demo-0", "hibernate", None);
    assert_eq!(head(), Reply::TimedOut);
    assert_eq!(classify(Verb::RegistryHead, &head()).class, Class::Present);
}

#[test]
fn a_status_write_is_its_own_kind() {
    let mut world = world(&[]);
    create(&mut world, pod("demo-0", &[]));
    world.faults.add(Fault::new(Pattern::of(Verb::Patch, "pods/status"), What::TimeoutBefore));
    let path = "/api/v1/namespaces/ns/pods/demo-0";
    let patch = |path: &str| {
        Request::new(Method::Patch, path).with_body("application/merge-patch+json", json!({"status": {"message": "m"}}))
    };
    assert_eq!(status_of(&world.api(OPERATOR, &patch(path))), 200);
    assert_eq!(world.api(OPERATOR, &patch(&format!("{path}/status"))), Reply::TimedOut);
}

#[test]
fn a_tag_is_deleted_by_its_digest_only_where_that_is_its_digest() {
    let mut world = world(&[]);
    let old = world.registry.push("vm", "hibernate", None);
    let new = world.registry.push("vm", "hibernate", None);
    assert_ne!(old.digest, new.digest);
    let reply = world.registry_call(Verb::RegistryDelete, "vm", "hibernate", Some(&old.digest));
    assert_eq!(classify(Verb::RegistryDelete, &reply).class, Class::Unavailable);
    assert!(world.registry.get("vm", "hibernate").is_some());
    let reply = world.registry_call(Verb::RegistryDelete, "vm", "hibernate", Some(&new.digest));
    assert_eq!(classify(Verb::RegistryDelete, &reply).class, Class::Absent);
    assert!(world.registry.get("vm", "hibernate").is_none());
}
