//! What a running operator shows of itself: its last passes and its memory; and that with --dry-run it does
//! nothing else.

use crate::cluster::{Cluster, Operator, registry, sets, until};
use crate::spec;
use bytes::Bytes;
use cocoon_operator::core::wire::{Method, Reply, Request, Verb};
use cocoon_operator::shell::http::{Serves, answer};
use cocoon_operator::shell::options::Settings;
use cocoon_operator::sim::store::{Match, Refusal, Rule};
use cocoon_operator::sim::world::OPERATOR;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::sleep;

async fn get(operator: &Operator, target: &str) -> (u16, String) {
    let response = answer(&operator.shell, Serves::Debug, &http::Method::GET, target);
    let status = response.status().as_u16();
    let body: Bytes = response.into_body().collect().await.expect("a body").to_bytes();
    (status, String::from_utf8(body.to_vec()).expect("text"))
}

#[tokio::test(start_paused = true)]
async fn the_last_passes_of_an_object_are_told_as_stories_are() {
    let cluster = Cluster::new();
    let operator = cluster.operator(registry(&cluster));
    cluster.create_set("demo", spec(1));
    until("Running", || cluster.phase("demo") == "Running").await;
    for target in ["/debug/passes?object=ns/demo", "/debug/passes?object=ns%2Fdemo", "/debug/passes/ns/demo"] {
        let (status, told) = get(&operator, target).await;
        assert_eq!(status, 200, "{target}");
        for part in ["claim/add-finalizer", "+ pod demo-1", "status/publish", "── 2026-08-03T12:00:"] {
            assert!(told.contains(part), "no {part} in\n{told}");
        }
    }
    assert_eq!(get(&operator, "/debug/passes").await, (200, "/debug/passes?object=ns/demo\n".to_owned()));
    assert_eq!(get(&operator, "/debug/passes?object=ns/other").await.0, 404);
    assert_eq!(get(&operator, "/debug/passes?object=demo").await.0, 400);
    assert_eq!(get(&operator, "/debug/other").await.0, 404);
    assert_eq!(get(&operator, "/metrics").await.0, 404, "each address serves its own");
    let posted = answer(&operator.shell, Serves::Debug, &http::Method::POST, "/debug/passes");
    assert_eq!(posted.status(), 405);
}

#[tokio::test(start_paused = true)]
async fn the_memory_is_shown_in_ages() {
    let cluster = Cluster::new();
    let refused = Match { verbs: ["create".to_owned()].into(), resource: Some("pods".into()), ..Match::default() };
    cluster.served.with(|world| world.store.add_rule(Rule::new(refused, Refusal::Rbac)));
    let operator = cluster.operator(registry(&cluster));
    cluster.create_set("demo", spec(0));
    sleep(Duration::from_secs(60)).await;
    let (status, body) = get(&operator, "/debug/memory?object=ns/demo").await;
    assert_eq!(status, 200, "{body}");
    let body: Value = serde_json::from_str(&body).expect("JSON");
    assert_eq!(body["outcomes"], json!([]));
    let memory = &body["memory"]["ns/demo"];
    let attempt = &memory["attempts"][0];
    assert_eq!((&attempt["action"], &attempt["class"]), (&json!("CreatePod"), &json!("RbacDenied")));
    assert!(attempt["ageSeconds"].as_f64().expect("an age") < 11.0, "{attempt}");
    assert!(attempt["sinceAgeSeconds"].as_f64().expect("an age") > 55.0, "{attempt}");
    assert_eq!(memory["error"]["reason"], "RbacDenied");
    assert_eq!(memory["uid"], cluster.set("demo").expect("a set")["metadata"]["uid"]);
    assert_eq!(get(&operator, "/debug/memory?object=ns/other").await.0, 404);
    assert_eq!(get(&operator, "/debug/memory").await.0, 400);
}

/// Every write that a busy cluster could make it want.
#[tokio::test(start_paused = true)]
async fn a_dry_run_writes_nothing_whatever_happens() {
    let cluster = Cluster::new();
    let settings = Settings { dry_run: true, ..Settings::default() };
    let first = cluster.operator(registry(&cluster));
    for name in ["a", "b", "c"] {
        cluster.create_set(name, spec(2));
    }
    until("all run", || ["a", "b", "c"].iter().all(|name| cluster.phase(name) == "Running")).await;
    first.stopper.stop();
    first.task.await.expect("it stops");
    let before = cluster.requests().len();
    let dry = cluster.operator_with(registry(&cluster), settings);
    cluster.create_set("new", spec(3));
    cluster.patch_set("a", json!({"spec": {"agent": {"image": "img:2", "replicas": 3}}}));
    cluster.delete("/api/v1/namespaces/ns/pods/b-1");
    cluster.delete(&sets("c"));
    sleep(Duration::from_secs(1_800)).await;
    cluster.delete("/api/v1/namespaces/ns");
    sleep(Duration::from_secs(1_800)).await;
    let sent: Vec<String> = cluster.requests().split_off(before);
    let writes: Vec<&String> = sent.iter().filter(|line| !line.starts_with("GET ")).collect();
    assert!(writes.is_empty(), "{writes:#?}");
    assert!(sent.iter().any(|line| line.starts_with("GET ")), "it looks");
    let (_, told) = get(&dry, "/debug/passes?object=ns/a").await;
    assert!(told.contains("not sent (dry run)"), "{told}");
    assert_eq!(dry.errors(), 0);
    let reconciles: f64 = dry
        .shell
        .metrics
        .text()
        .lines()
        .filter(|line| line.starts_with("controller_runtime_reconcile_total"))
        .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
        .sum();
    assert!(reconciles < 200.0, "{reconciles} passes in an hour: it spins");
}

/// The last door: whoever asks, nothing but reads leaves.
#[tokio::test(start_paused = true)]
async fn a_dry_run_sends_no_write_even_when_asked_to() {
    let cluster = Cluster::new();
    let dry = cluster.operator_with(registry(&cluster), Settings { dry_run: true, ..Settings::default() });
    for method in [Method::Post, Method::Put, Method::Patch, Method::Delete] {
        let request = Request::new(method, "/apis/coordination.k8s.io/v1/namespaces/ns/leases");
        assert_eq!(dry.shell.api.send("leases", &request).await, Reply::Fenced);
    }
    let reply = dry.shell.api.send("pods", &Request::new(Method::Get, "/api/v1/namespaces/ns/pods")).await;
    assert!(matches!(reply, Reply::Http { status: 200, .. }));
    assert!(Verb::Create.writes() && Verb::RegistryDelete.writes());
}

/// Events are forbidden: they are counted, hardly tried, and no error. The log has one line (`tests/logs.rs`).
#[tokio::test(start_paused = true)]
async fn events_that_may_not_be_written_are_no_error() {
    let cluster = Cluster::new();
    let refused = Match {
        verbs: ["create".to_owned()].into(),
        resource: Some("events.events.k8s.io".into()),
        user: Some(OPERATOR.into()),
        ..Match::default()
    };
    cluster.served.with(|world| world.store.add_rule(Rule::new(refused, Refusal::Rbac)));
    let operator = cluster.operator(registry(&cluster));
    for name in ["a", "b", "c"] {
        cluster.create_set(name, spec(1));
    }
    until("all run", || ["a", "b", "c"].iter().all(|name| cluster.phase(name) == "Running")).await;
    for pod in ["a-1", "b-1", "c-1"] {
        cluster.delete(&format!("/api/v1/namespaces/ns/pods/{pod}"));
        sleep(Duration::from_secs(3)).await;
    }
    sleep(Duration::from_secs(30)).await;
    assert_eq!(operator.errors(), 0);
    operator.shows("cocoon_operator_events_total{result=\"failed\"} 1");
    operator.shows("cocoon_operator_events_total{result=\"held_back\"} 2");
    operator.shows("cocoon_operator_outcomes_total{kind=\"events\",outcome=\"RbacDenied\",verb=\"create\"} 1");
}
