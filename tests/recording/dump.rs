//! A set in trouble, dumped from a served cluster and explained: the first line names the reason.

use crate::stage::{Dir, admin, create_set, operator, operator_without_record, passes, running, set_path};
use cocoon_operator::cli::{Failure, Format, dump, explain};
use cocoon_operator::core::wire::Method;
use cocoon_operator::shell::recorder::RecordTo;
use cocoon_operator::sim::server::Cluster;
use cocoon_operator::sim::store::ADMIN;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::time::Duration;
use tokio::net::TcpListener;

fn spec(replicas: u32) -> Value {
    json!({"agent": {"image": "img:1", "mode": "clone", "replicas": replicas}})
}

/// A served cluster whose nodes are quick, and its address.
async fn served() -> (Cluster, String) {
    let cluster = running(&["ns", "other"], &["node-a"], 200.0);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let api = cluster.clone();
    tokio::spawn(async move { api.serve(listener, ADMIN).await });
    (cluster, url)
}

async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..1_500 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("not within 30 s: {what}");
}

fn args(url: &str, object: Option<&str>) -> dump::Args {
    dump::Args {
        object: object.map(str::to_owned),
        namespace: "ns".to_owned(),
        all: object.is_none(),
        server: Some(url.to_owned()),
        kubeconfig: None,
        from: None,
        oci_registry: None,
    }
}

async fn dumped(args: dump::Args) -> Result<String, Failure> {
    tokio::task::spawn_blocking(move || dump::run(&args).map(|report| report.text)).await.expect("no panic")
}

/// What `explain` says of a dump.
fn explained(name: &str, stream: &str, output: Format) -> String {
    let dir = Dir::new(name);
    let file = dir.path().join("dump.json");
    std::fs::write(&file, stream).expect("written");
    let args = explain::Args { files: vec![file.display().to_string()], object: None, output };
    explain::run(&args).expect("reads").text
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

fn phase(cluster: &Cluster, name: &str) -> String {
    let of = |set: &Value| set.pointer("/status/phase").and_then(Value::as_str).unwrap_or_default().to_owned();
    cluster.with(|world| world.store.get("cocoonsets.cocoonset.cocoonstack.io", "ns", name).map(of)).unwrap_or_default()
}

fn degraded(cluster: &Cluster, name: &str) -> String {
    let of = |set: &Value| {
        let all = set.pointer("/status/conditions").and_then(Value::as_array).cloned().unwrap_or_default();
        let found = all.into_iter().find(|one| one["type"] == "Degraded" && one["status"] == "True");
        found.map(|one| one["reason"].as_str().unwrap_or_default().to_owned()).unwrap_or_default()
    };
    cluster.with(|world| world.store.get("cocoonsets.cocoonset.cocoonstack.io", "ns", name).map(of)).unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_quota_is_named_in_the_first_line() {
    let (cluster, url) = served().await;
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "small"},
        "spec": {"hard": {"pods": "1"}}});
    assert_eq!(admin(&cluster, Method::Post, "/api/v1/namespaces/ns/resourcequotas", quota), 201);
    let operator = operator_without_record(&cluster);
    create_set(&cluster, "ns", "demo", spec(2));
    until("the quota is met", || degraded(&cluster, "demo").contains("Quota")).await;
    let text = explained("quota", &dumped(args(&url, Some("cocoonset/demo"))).await.expect("a dump"), Format::Text);
    assert!(first_line(&text).starts_with("CocoonSet ns/demo: ") && first_line(&text).contains("quota"), "{text}");

    // With what the operator remembers, it is the decision itself that says so.
    let memory = json!({"memory": {"ns/demo": {"attempts": [{"action": "CreatePod", "target": "demo-1",
        "class": "QuotaExceeded", "count": 3, "ageSeconds": 1, "generation": 1, "message": "exceeded quota: small"}]}}});
    let from = endpoint(&memory);
    let with = dumped(dump::Args { from: Some(from), ..args(&url, Some("cocoonset/demo")) }).await.expect("a dump");
    let text = explained("quota-memory", &with, Format::Text);
    assert!(first_line(&text).contains("quota"), "{text}");
    assert!(text.contains("came to QuotaExceeded 3 times"), "{text}");
    operator.stop().await;
}

/// A server that answers every request with this.
fn endpoint(answer: &Value) -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let body = answer.to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            let mut asked = vec![0; 4096];
            let read = stream.read(&mut asked).expect("a request");
            let asked = String::from_utf8_lossy(&asked[..read]).into_owned();
            assert!(asked.starts_with("GET /debug/memory?object=ns%2Fdemo "), "{asked}");
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
            drop(stream.write_all(format!("{head}{body}").as_bytes()));
        }
    });
    url
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_of_somebody_else_is_named_in_the_first_line_whether_a_watch_shows_it_or_not() {
    let (cluster, url) = served().await;
    for (set, labels) in [("seen", json!({"cocoonset.cocoonstack.io/name": "seen"})), ("hidden", json!({}))] {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": format!("{set}-0"), "labels": labels},
            "spec": {"containers": [{"name": "c", "image": "i", "env": [{"name": "TOKEN", "value": "hunter2"}]}]}});
        assert_eq!(admin(&cluster, Method::Post, "/api/v1/namespaces/ns/pods", pod), 201);
        create_set(&cluster, "ns", set, spec(0));
        let stream = dumped(args(&url, Some(&format!("cocoonset/{set}")))).await.expect("a dump");
        assert!(!stream.contains("hunter2") && !stream.contains("managedFields"), "{stream}");
        let text = explained(set, &stream, Format::Text);
        // Before its first pass the set has no finalizer: that comes first, and then the pod is met.
        let operator = operator_without_record(&cluster);
        until("it is met", || !degraded(&cluster, set).is_empty()).await;
        operator.stop().await;
        let stream = dumped(args(&url, Some(&format!("cocoonset/{set}")))).await.expect("a dump");
        let later = explained(set, &stream, Format::Text);
        assert!(first_line(&later).contains(&format!("{set}-0")), "{set}\n{text}\n{later}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_namespace_that_is_going_is_named_in_the_first_line() {
    let (cluster, url) = served().await;
    let operator = operator_without_record(&cluster);
    create_set(&cluster, "ns", "demo", spec(1));
    until("Running", || phase(&cluster, "demo") == "Running").await;
    operator.stop().await;
    // Held up by the finalizer of a set that nobody tends any more.
    assert!(admin(&cluster, Method::Delete, "/api/v1/namespaces/ns", json!({})) < 300);
    let text = explained("going", &dumped(args(&url, Some("cocoonset/demo"))).await.expect("a dump"), Format::Text);
    assert!(first_line(&text).contains("namespace ns is being terminated") || text.contains("being deleted"), "{text}");
    assert!(first_line(&text).contains("terminat"), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dump_is_decided_on_as_the_operator_decides() {
    let (cluster, url) = served().await;
    let running = operator_without_record(&cluster);
    create_set(&cluster, "ns", "demo", spec(1));
    create_set(&cluster, "ns", "more", spec(1));
    until("Running", || phase(&cluster, "demo") == "Running" && phase(&cluster, "more") == "Running").await;
    running.stop().await;
    let path = set_path("ns", "demo");
    assert_eq!(admin(&cluster, Method::Patch, &path, json!({"spec": {"agent": {"replicas": 3}}})), 200);
    let one = explained("one", &dumped(args(&url, Some("cs/demo"))).await.expect("a dump"), Format::Json);
    let one: Value = serde_json::from_str(&one).expect("JSON");
    assert_eq!(one.as_array().map(Vec::len), Some(1));
    let all = explained("all", &dumped(args(&url, None)).await.expect("a dump"), Format::Json);
    let all: Value = serde_json::from_str(&all).expect("JSON");
    assert_eq!(all.as_array().map(Vec::len), Some(2));
    assert_eq!(all[0]["actions"], one[0]["actions"]);

    // With what the registry says, there is nothing left to ask it.
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let base = Some(format!("{}/base", listener.local_addr().expect("an address")));
    let registry = cluster.clone();
    tokio::spawn(async move { registry.serve_registry(listener).await });
    let stream = dumped(dump::Args { oci_registry: base, ..args(&url, Some("cs/demo")) }).await.expect("a dump");
    assert_eq!(stream.matches("\"hibernate\": \"absent\"").count(), 4, "{stream}");
    assert!(!explained("facts", &stream, Format::Json).contains("ProbeSnapshot"));

    // An operator that starts now, and so remembers as little.
    let dir = Dir::new("as-decided");
    let recorded = operator(&cluster, RecordTo::dir(dir.path()));
    until("it is stamped", || {
        let stamped = |pod: &Value| pod["metadata"]["annotations"]["cocoonset.cocoonstack.io/generation"] == "2";
        cluster.with(|world| world.store.get("pods", "ns", "demo-0").is_some_and(stamped))
    })
    .await;
    recorded.stop().await;
    let all = passes(dir.text());
    let first = all.iter().find(|pass| pass.line.name == "demo").expect("it was looked at");
    assert_eq!(Value::from(first.line.turns[0].actions.clone()), one[0]["actions"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_there_and_what_does_not_answer_have_codes_of_their_own() {
    let (cluster, url) = served().await;
    create_set(&cluster, "ns", "demo", spec(1));
    let missing = dumped(args(&url, Some("cocoonset/dmeo"))).await.expect_err("none of that name");
    assert_eq!(missing.code(), 1);
    assert!(missing.to_string().contains("demo"), "{missing}");
    assert_eq!(dumped(args(&url, Some("pod/demo"))).await.expect_err("no such kind").code(), 2);
    assert_eq!(dumped(args("nowhere", Some("cocoonset/demo"))).await.expect_err("no address").code(), 2);
    let closed = TcpListener::bind("127.0.0.1:0").await.expect("a port").local_addr().expect("an address");
    let away = dumped(args(&format!("http://{closed}"), Some("cocoonset/demo"))).await.expect_err("nobody there");
    assert_eq!(away.code(), 3, "{away}");
    let from = Some(format!("http://{closed}"));
    let away = dumped(dump::Args { from, ..args(&url, Some("cocoonset/demo")) }).await.expect_err("nobody there");
    assert_eq!(away.code(), 3, "{away}");
    assert!(away.to_string().contains("--from"), "{away}");
}
