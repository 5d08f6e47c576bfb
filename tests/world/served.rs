//! The world behind HTTP: with a real client on a paused clock, and on a port.

use crate::setup::*;
use cocoon_operator::core::wire::Verb;
use cocoon_operator::sim::faults::{Fault, Pattern, What, answer};
use cocoon_operator::sim::server::Cluster;
use cocoon_operator::sim::world::OPERATOR;
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, ListParams, PostParams, WatchEvent, WatchParams};
use kube::runtime::{WatchStreamExt, watcher};
use serde_json::json;
use std::time::Duration;

fn driven(nodes: &[&str]) -> (Cluster, tokio::task::JoinHandle<()>) {
    let cluster = Cluster::new(world(nodes));
    let driver = cluster.clone();
    let task = tokio::spawn(async move { driver.drive().await });
    (cluster, task)
}

fn typed(name: &str) -> Pod {
    serde_json::from_value(pod(name, &[])).expect("a pod")
}

#[tokio::test(start_paused = true)]
async fn a_client_creates_watches_and_deletes_on_virtual_time() {
    let (cluster, driver) = driven(&["node-a"]);
    let pods: Api<Pod> = Api::namespaced(cluster.client("admin", "ns"), "ns");
    let stream = watcher(pods.clone(), watcher::Config::default()).applied_objects();
    let mut stream = std::pin::pin!(stream);
    pods.create(&PostParams::default(), &typed("demo-0")).await.expect("created");
    let ready = |pod: &Pod| {
        let state = pod.metadata.annotations.as_ref().and_then(|all| all.get("vm.cocoonstack.io/lifecycle-state"));
        state.is_some_and(|state| state == "ready")
    };
    while let Some(pod) = stream.try_next().await.expect("a watch") {
        if ready(&pod) {
            break;
        }
    }
    assert_eq!(cluster.now().duration_since(start()).as_millis(), 3600, "the clock stood where the agent was");
    pods.delete("demo-0", &DeleteParams::default()).await.expect("deleted");
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(pods.get_opt("demo-0").await.expect("an answer").is_none());
    let told = lines(&cluster.take_told());
    assert_eq!(told.last().map(String::as_str), Some("+4.6 node-a: demo-0 is gone"));
    driver.abort();
}

#[tokio::test(start_paused = true)]
async fn the_served_world_does_what_the_same_world_does_in_memory() {
    let mut alone = world(&["node-a", "node-b"]);
    let (cluster, driver) = driven(&["node-a", "node-b"]);
    let pods: Api<Pod> = Api::namespaced(cluster.client("admin", "ns"), "ns");
    let mut told = Vec::new();
    for name in ["demo-0", "demo-1"] {
        create(&mut alone, pod(name, &[]));
        told.extend(pass(&mut alone, 2));
        pods.create(&PostParams::default(), &typed(name)).await.expect("created");
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
    delete(&mut alone, "demo-0");
    told.extend(pass(&mut alone, 60));
    pods.delete("demo-0", &DeleteParams::default()).await.expect("deleted");
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(lines(&cluster.take_told()), lines(&told));
    let left = |world: &cocoon_operator::sim::world::World| get(world, "demo-1").cloned();
    assert_eq!(cluster.with(|world| left(world)), left(&alone));
    driver.abort();
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_too_old_is_open_and_says_410() {
    let (cluster, driver) = driven(&[]);
    let pods: Api<Pod> = Api::namespaced(cluster.client("admin", "ns"), "ns");
    let version =
        pods.list(&ListParams::default()).await.expect("a list").metadata.resource_version.expect("a version");
    for name in ["a", "b"] {
        pods.create(&PostParams::default(), &typed(name)).await.expect("created");
    }
    cluster.with(|world| world.store.compact(world.store.version()));
    let mut stream = pods.watch(&WatchParams::default(), &version).await.expect("open").boxed();
    let event = stream.next().await.expect("one event").expect("readable");
    assert!(matches!(event, WatchEvent::Error(status) if status.code == 410));
    assert!(stream.next().await.is_none(), "and then it is closed");
    driver.abort();
}

#[tokio::test(start_paused = true)]
async fn a_watch_ends_with_its_time_and_after_a_bookmark() {
    let (cluster, driver) = driven(&["node-a"]);
    let client = cluster.client("admin", "ns");
    let pods: Api<Pod> = Api::namespaced(client.clone(), "ns");
    let version =
        pods.list(&ListParams::default()).await.expect("a list").metadata.resource_version.expect("a version");
    cluster.with(|world| world.store.add_namespace("elsewhere"));
    let asked = tokio::time::Instant::now();
    let params = WatchParams::default().timeout(30);
    let events: Vec<_> = pods.watch(&params, &version).await.expect("open").collect().await;
    assert_eq!(asked.elapsed(), Duration::from_secs(30));
    assert!(matches!(events.as_slice(), [Ok(WatchEvent::Bookmark(_))]), "{events:?}");
    driver.abort();
}

#[tokio::test(start_paused = true)]
async fn held_watches_are_silent_and_cut_ones_end() {
    let (cluster, driver) = driven(&[]);
    let pods: Api<Pod> = Api::namespaced(cluster.client("admin", "ns"), "ns");
    let version =
        pods.list(&ListParams::default()).await.expect("a list").metadata.resource_version.expect("a version");
    let mut stream = pods.watch(&WatchParams::default(), &version).await.expect("open").boxed();
    cluster.hold_watches("pods", true);
    pods.create(&PostParams::default(), &typed("a")).await.expect("created");
    assert!(tokio::time::timeout(Duration::from_secs(20), stream.next()).await.is_err(), "nothing while it is held");
    cluster.hold_watches("pods", false);
    assert!(matches!(stream.next().await, Some(Ok(WatchEvent::Added(_)))));
    let cut = tokio::time::Instant::now();
    cluster.cut_watches();
    while let Some(event) = stream.next().await {
        event.expect("what was on its way");
    }
    assert_eq!(cut.elapsed(), Duration::ZERO);
    driver.abort();
}

#[tokio::test(start_paused = true)]
async fn faults_reach_the_client_as_answers_silence_and_broken_connections() {
    let (cluster, driver) = driven(&[]);
    let pods: Api<Pod> = Api::namespaced(cluster.client(OPERATOR, "ns"), "ns");
    cluster.with(|world| {
        let terminating = answer("NamespaceTerminating", Verb::Create, "pods", "a").expect("an answer");
        let pattern = Pattern::of(Verb::Create, "pods");
        world.faults.add(Fault::new(pattern.clone().named("a"), What::Answer(terminating)));
        world.faults.add(Fault::new(pattern.clone().named("b"), What::TimeoutAfter));
        world.faults.add(Fault::new(pattern.named("c"), What::Reset { sent: true }));
    });
    let refused = pods.create(&PostParams::default(), &typed("a")).await.expect_err("refused");
    assert!(matches!(refused, kube::Error::Api(status) if status.code == 403));
    let params = PostParams::default();
    let (b, c) = (typed("b"), typed("c"));
    let silent = tokio::time::timeout(Duration::from_secs(30), pods.create(&params, &b)).await;
    assert!(silent.is_err());
    assert!(pods.get_opt("b").await.expect("an answer").is_some(), "it was done all the same");
    assert!(matches!(pods.create(&params, &c).await, Err(kube::Error::Service(_))));
    driver.abort();
}

async fn say(port: u16, request: &str) -> String {
    use std::io::{Read, Write};
    let request = request.to_owned();
    let exchange = move || {
        let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).expect("connected");
        stream.write_all(request.as_bytes()).expect("sent");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("answered");
        String::from_utf8_lossy(&answer).into_owned()
    };
    tokio::task::spawn_blocking(exchange).await.expect("no panic")
}

async fn port() -> (tokio::net::TcpListener, u16) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    (listener, port)
}

#[tokio::test]
async fn on_a_port_it_answers_plain_requests() {
    let (cluster, driver) = driven(&["node-a"]);
    let (api, api_port) = port().await;
    let (registry, registry_port) = port().await;
    let (one, two) = (cluster.clone(), cluster.clone());
    let api = tokio::spawn(async move { one.serve(api, "admin").await });
    let registry = tokio::spawn(async move { two.serve_registry(registry).await });
    let digest = cluster.with(|world| world.registry.push("vk-ns-demo-0", "hibernate", Some("img")).digest);

    let get = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    assert!(say(api_port, &get("/healthz")).await.ends_with("ok"));
    assert!(say(api_port, &get("/version")).await.contains("v1.36.0"));
    let group = say(api_port, &get("/apis/cocoonset.cocoonstack.io/v1")).await;
    assert!(group.contains("\"cocoonsets/status\""), "{group}");
    let list = say(api_port, &get("/api/v1/namespaces/ns/pods?&limit=500&labelSelector=a%3Db")).await;
    assert!(list.starts_with("HTTP/1.1 200") && list.contains("\"PodList\""), "{list}");
    assert!(say(api_port, &get("/nothing")).await.contains("404 page not found"));
    let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}).to_string();
    let post = format!(
        "POST /api/v1/namespaces/ns/configmaps HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nConnection: close\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    assert!(say(api_port, &post).await.starts_with("HTTP/1.1 201"));
    assert!(say(api_port, &post).await.starts_with("HTTP/1.1 409"));
    let broken = "POST /api/v1/namespaces/ns/configmaps HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n\
        Connection: close\r\nContent-Length: 5\r\n\r\n{nope";
    assert!(say(api_port, broken).await.starts_with("HTTP/1.1 400"));

    let manifest = "/v2/base/vk-ns-demo-0/manifests/hibernate HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    let head = say(registry_port, &format!("HEAD {manifest}")).await;
    assert!(head.starts_with("HTTP/1.1 200") && head.contains(&digest), "{head}");
    assert!(say(registry_port, &format!("GET {manifest}")).await.contains("cocoonstack.snapshot.baseimage"));
    assert!(say(registry_port, &format!("DELETE {manifest}")).await.starts_with("HTTP/1.1 202"));
    assert!(say(registry_port, &format!("HEAD {manifest}")).await.starts_with("HTTP/1.1 404"));
    assert!(say(registry_port, &get("/v2/")).await.starts_with("HTTP/1.1 200"));
    for task in [api, registry] {
        task.abort();
    }
    driver.abort();
}

#[tokio::test]
async fn yaml_is_read_and_written() {
    let (cluster, driver) = driven(&[]);
    let (api, port) = port().await;
    let served = cluster.clone();
    let api = tokio::spawn(async move { served.serve(api, "admin").await });
    let ask = |method: &str, path: &str, headers: &str, body: &str| {
        format!(
            "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    let maps = "/api/v1/namespaces/ns/configmaps";
    let body = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\ndata:\n  a: \"1\"\n";
    let made = say(port, &ask("POST", maps, "Content-Type: application/yaml", body)).await;
    assert!(made.starts_with("HTTP/1.1 201") && made.contains("content-type: application/json"), "{made}");
    let seen = say(port, &ask("GET", &format!("{maps}/c"), "Accept: application/yaml, application/json", "")).await;
    assert!(seen.contains("content-type: application/yaml") && seen.contains("\nkind: ConfigMap\n"), "{seen}");
    let sets = "/apis/cocoonset.cocoonstack.io/v1/namespaces/ns/cocoonsets";
    let body = "apiVersion: cocoonset.cocoonstack.io/v1\nkind: CocoonSet\nmetadata: {name: demo}\n\
                spec: {agent: {image: a}}\n";
    let made = say(port, &ask("POST", sets, "Content-Type: application/yaml", body)).await;
    assert!(made.starts_with("HTTP/1.1 201"), "{made}");
    let put = body.replace("name: demo", "name: other").replace("image: a", "image: a, replicas: 1");
    assert!(say(port, &ask("POST", sets, "Content-Type: application/yaml", &put)).await.starts_with("HTTP/1.1 201"));
    let refused = say(port, &ask("GET", &format!("{sets}/nope"), "Accept: application/yaml", "")).await;
    assert!(refused.starts_with("HTTP/1.1 404") && refused.contains("\nkind: Status\n"), "{refused}");
    let broken = say(port, &ask("POST", sets, "Content-Type: application/yaml", "a: [")).await;
    assert!(broken.starts_with("HTTP/1.1 400") && broken.contains("error converting YAML to JSON"), "{broken}");
    let groups = say(port, &ask("GET", "/apis", "Accept: application/yaml", "")).await;
    assert!(groups.contains("content-type: application/yaml") && groups.contains("kind: APIGroupList"), "{groups}");
    // No custom resource is written in protobuf, and no watch in YAML.
    let protobuf = say(port, &ask("GET", sets, "Accept: application/vnd.kubernetes.protobuf", "")).await;
    assert!(protobuf.starts_with("HTTP/1.1 406"), "{protobuf}");
    let watch = say(port, &ask("GET", &format!("{sets}?watch=1"), "Accept: application/yaml", "")).await;
    assert!(watch.starts_with("HTTP/1.1 406"), "{watch}");
    api.abort();
    driver.abort();
}
