//! What only a socket shows: the registry over HTTP, metrics and probes on ports, the operator against a served API.
//! Real time, so everything here is short.

use crate::cluster::text;
use cocoon_operator::core::outcome::{Answer, Class};
use cocoon_operator::core::wire::{JSON, Method, Reply, Request, Verb};
use cocoon_operator::shell::client::{Api, connect};
use cocoon_operator::shell::clock::Clock;
use cocoon_operator::shell::options::{Address, Settings};
use cocoon_operator::shell::reference::Base;
use cocoon_operator::shell::registry::Registry;
use cocoon_operator::shell::{Exit, Shell, run, shutdown};
use cocoon_operator::sim::node::NodeSpec;
use cocoon_operator::sim::server::Cluster;
use cocoon_operator::sim::world::{OPERATOR, World};
use serde_json::json;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;

const OTHER: &str = "sha256:2222222222222222222222222222222222222222222222222222222222222222";

fn cluster() -> Cluster {
    let mut world = World::new("2026-08-03T12:00:00Z".parse().expect("a time"));
    world.store.add_namespace("ns");
    world.add_node(NodeSpec::named("node-a"));
    let cluster = Cluster::new(world);
    let served = cluster.clone();
    tokio::spawn(async move { served.drive().await });
    cluster
}

async fn port() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    (listener, address)
}

/// A port that nobody listens on any more.
async fn free() -> SocketAddr {
    port().await.1
}

async fn get(address: SocketAddr, path: &'static str) -> Option<String> {
    let blocking = move || {
        let mut stream = TcpStream::connect(address).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(10))).ok()?;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        Some(answer)
    };
    tokio::task::spawn_blocking(blocking).await.expect("no panic")
}

async fn registry(cluster: &Cluster) -> Registry {
    let (listener, address) = port().await;
    let served = cluster.clone();
    tokio::spawn(async move { served.serve_registry(listener).await });
    let base = Base::parse(&format!("{address}/some/path"), None).expect("a base");
    Registry::http(base, Clock::real()).expect("a registry on loopback needs nothing")
}

#[tokio::test]
async fn a_tag_is_looked_up_and_let_go() {
    let cluster = cluster();
    let registry = registry(&cluster).await;
    let digest = cluster.with(|world| world.registry.push("vk-ns-a-0", "hibernate", None)).digest;
    let head = registry.carry_out(Verb::RegistryHead, "vk-ns-a-0", "hibernate", None, &|_| Some(Duration::MAX)).await;
    assert_eq!(head.class, Class::Present);
    assert_eq!(head.answer, Answer::Snapshot { digest: Some(digest.clone()), base_image: None });
    let latest = registry.carry_out(Verb::RegistryHead, "vk-ns-a-0", "latest", None, &|_| Some(Duration::MAX)).await;
    assert_eq!(latest.class, Class::Absent);
    let moved =
        registry.carry_out(Verb::RegistryDelete, "vk-ns-a-0", "hibernate", Some(OTHER), &|_| Some(Duration::MAX)).await;
    assert_eq!(moved.class, Class::Unavailable);
    assert!(moved.message.contains(&digest), "{}", moved.message);
    assert!(cluster.with(|world| world.registry.get("vk-ns-a-0", "hibernate").is_some()));
    let gone = registry
        .carry_out(Verb::RegistryDelete, "vk-ns-a-0", "hibernate", Some(&digest), &|_| Some(Duration::MAX))
        .await;
    assert_eq!(gone.class, Class::Absent);
    assert!(cluster.with(|world| world.registry.get("vk-ns-a-0", "hibernate").is_none()));
    let odd = registry.carry_out(Verb::RegistryHead, "../a", "hibernate", None, &|_| Some(Duration::MAX)).await;
    assert_eq!(odd.class, Class::Unsupported);
}

#[tokio::test]
async fn nobody_there_means_nothing_was_sent() {
    let address = free().await;
    let base = Base::parse(&address.to_string(), None).expect("a base");
    let registry = Registry::http(base, Clock::real()).expect("a registry");
    let delete =
        registry.carry_out(Verb::RegistryDelete, "vk-ns-a-0", "hibernate", None, &|_| Some(Duration::MAX)).await;
    assert_eq!(delete.class, Class::Unavailable);
    let client = client(address);
    let api = Api::new(client, Clock::real(), Duration::from_secs(5), Arc::default());
    let reply =
        api.send("pods", &Request::new(Method::Post, "/api/v1/namespaces/ns/pods").with_body(JSON, json!({}))).await;
    assert_eq!(reply, Reply::Reset { sent: false });
}

#[tokio::test]
async fn the_operator_works_over_ports_and_says_how_it_is() {
    let cluster = cluster();
    let (listener, api) = port().await;
    let served = cluster.clone();
    tokio::spawn(async move { served.serve(listener, OPERATOR).await });
    let (metrics, probes) = (free().await, free().await);
    let at = |address: SocketAddr| Some(Address { host: "127.0.0.1".to_owned(), port: address.port() });
    let settings = Settings { metrics: at(metrics), probes: at(probes), ..Settings::default() };
    let shell = Arc::new(Shell::new(client(api), registry(&cluster).await, settings.clone(), Clock::real()));
    let (stopper, wanted) = shutdown();
    let operator = tokio::spawn(run(Arc::clone(&shell), wanted));
    let set = json!({"apiVersion": "cocoonset.cocoonstack.io/v1", "kind": "CocoonSet",
        "metadata": {"name": "demo", "namespace": "ns"}, "spec": {"agent": {"image": "img:1", "replicas": 1}}});
    let path = "/apis/cocoonset.cocoonstack.io/v1/namespaces/ns/cocoonsets";
    cluster.with(|world| world.store.handle(&Request::new(Method::Post, path).with_body(JSON, set)));
    let pods = |world: &mut World| world.store.objects("pods", Some("ns")).count();
    for _ in 0..200 {
        if cluster.with(pods) > 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    let name =
        cluster.with(|world| world.store.objects("pods", Some("ns")).map(|pod| text(pod, "/metadata/name")).next());
    assert_eq!(name.as_deref(), Some("demo-0"));
    assert!(get(probes, "/healthz").await.expect("an answer").starts_with("HTTP/1.1 200"));
    assert!(get(probes, "/readyz").await.expect("an answer").starts_with("HTTP/1.1 200"));
    assert!(get(probes, "/metrics").await.expect("an answer").starts_with("HTTP/1.1 404"));
    let text = get(metrics, "/metrics").await.expect("an answer");
    assert!(text.contains("content-type: text/plain; version=0.0.4"), "{text}");
    assert!(
        text.contains("cocoon_operator_outcomes_total{kind=\"pods\",outcome=\"Done\",verb=\"create\"} 1"),
        "{text}"
    );
    let taken = run(Arc::new(Shell::new(client(api), registry(&cluster).await, settings, Clock::real())), shutdown().1);
    let taken = taken.await.expect_err("the port is taken");
    assert_eq!(taken.code(), 3);
    assert!(taken.to_string().contains("choose another with --metrics-bind-address"), "{taken}");
    stopper.stop();
    assert_eq!(operator.await.expect("no panic").expect("it had started"), Exit::Stopped);
    assert!(get(probes, "/healthz").await.is_none());
}

fn client(api: SocketAddr) -> kube::Client {
    connect(kube::Config::new(format!("http://{api}").parse().expect("a url"))).expect("a client")
}
