//! A served cluster on the runtime's clock, and an operator that records what it does.

use cocoon_operator::cli::recorded::{self, Recorded};
use cocoon_operator::core::wire::{JSON, MERGE_PATCH, Method, Request};
use cocoon_operator::shell::clock::Clock;
use cocoon_operator::shell::options::Settings;
use cocoon_operator::shell::recorder::RecordTo;
use cocoon_operator::shell::registry::Registry;
use cocoon_operator::shell::{Exit, Shell, Stopper, run, shutdown};
use cocoon_operator::sim::node::NodeSpec;
use cocoon_operator::sim::server::Cluster;
use cocoon_operator::sim::world::{OPERATOR, World};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;

/// A directory of this test alone, gone with it.
pub struct Dir(PathBuf);

impl Dir {
    pub fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("cocoon-recording-{}-{name}", std::process::id()));
        drop(std::fs::remove_dir_all(&dir));
        std::fs::create_dir_all(&dir).expect("a directory of its own");
        Self(dir)
    }
    pub fn path(&self) -> &Path {
        &self.0
    }
    pub fn text(&self) -> &str {
        self.0.to_str().expect("UTF-8")
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

/// A cluster with these namespaces and nodes, running.
pub fn cluster(namespaces: &[&str], nodes: &[&str]) -> Cluster {
    running(namespaces, nodes, 1.0)
}

/// The same; its nodes are so many times faster than usual.
pub fn running(namespaces: &[&str], nodes: &[&str], speed: f64) -> Cluster {
    let mut world = World::new("2026-08-03T00:00:00Z".parse().expect("a time"));
    world.nodes.settings_mut().speed = speed;
    namespaces.iter().for_each(|name| drop(world.store.add_namespace(name)));
    nodes.iter().for_each(|name| world.add_node(NodeSpec::named(name)));
    let cluster = Cluster::new(world);
    let driven = cluster.clone();
    tokio::spawn(async move { driven.drive().await });
    cluster
}

/// Waits, in virtual time, until this holds.
pub async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..4_800 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
    panic!("not within twenty minutes: {what}");
}

/// One request of the administrator; the status of its answer.
pub fn admin(cluster: &Cluster, method: Method, path: &str, body: Value) -> u16 {
    let content_type = if method == Method::Patch { MERGE_PATCH } else { JSON };
    let request = Request::new(method, path).with_body(content_type, body);
    cluster.with(|world| world.store.handle(&request).status)
}

pub fn set_path(namespace: &str, name: &str) -> String {
    let all = format!("/apis/cocoonset.cocoonstack.io/v1/namespaces/{namespace}/cocoonsets");
    if name.is_empty() { all } else { format!("{all}/{name}") }
}

pub fn create_set(cluster: &Cluster, namespace: &str, name: &str, spec: Value) -> u16 {
    let set = json!({"apiVersion": "cocoonset.cocoonstack.io/v1", "kind": "CocoonSet",
        "metadata": {"name": name, "namespace": namespace}, "spec": spec});
    admin(cluster, Method::Post, &set_path(namespace, ""), set)
}

pub struct Operator {
    pub shell: Arc<Shell>,
    stopper: Stopper,
    task: JoinHandle<Exit>,
}

/// An operator on this cluster, working and recording; its timers are spread.
pub fn operator(cluster: &Cluster, to: RecordTo) -> Operator {
    start(cluster, Some(to))
}

/// The same without a recording.
pub fn operator_without_record(cluster: &Cluster) -> Operator {
    start(cluster, None)
}

fn start(cluster: &Cluster, record: Option<RecordTo>) -> Operator {
    let clock = Clock::starting_at(cluster.now(), 7);
    let served = cluster.clone();
    let local = Arc::new(move |verb, vm: String, tag: String, digest: Option<String>| {
        let reply = served.with(|world| world.registry_call(verb, &vm, &tag, digest.as_deref()));
        let reply: futures::future::BoxFuture<'static, _> = Box::pin(async { reply });
        reply
    });
    let registry = Registry::local(local, clock.clone());
    let settings = Settings { record, ..Settings::default() };
    let shell = Shell::new(cluster.client(OPERATOR, "default"), registry, settings, clock);
    let shell = Arc::new(shell.recording().expect("the directory can be written to"));
    let (stopper, wanted) = shutdown();
    let running = Arc::clone(&shell);
    let task = tokio::spawn(async move { run(running, wanted).await.expect("no port is asked for") });
    Operator { shell, stopper, task }
}

impl Operator {
    /// Stops it; everything is written then.
    pub async fn stop(self) {
        self.stopper.stop();
        self.task.await.expect("it ends");
    }
}

/// Every pass that was recorded.
pub fn passes(path: &str) -> Vec<Recorded> {
    let mut all = Vec::new();
    recorded::each(path, &mut |pass| {
        all.push(pass);
        Ok(())
    })
    .expect("a recording");
    all
}
