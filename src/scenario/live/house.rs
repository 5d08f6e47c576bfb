//! Nodes and a snapshot registry that serve a whole control plane, without a story: for an operator that runs as a
//! process of its own. The nodes live on a thread, the registry answers on a port of loopback.

use super::lens::Lens;
use super::line::{Shared, lock};
use super::realm::{self, Cluster};
use crate::scenario::nodes;
use crate::scenario::realm::Realm;
use crate::scenario::steps::NodeEvent;
use crate::sim::http::{accept, manifests};
use crate::sim::node::{NodeSpec, Settings};
use crate::sim::registry::{Asker, Registry};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use tokio::time::Instant;

/// Something that the nodes' thread is to do.
type Act = Box<dyn FnOnce(&mut Cluster) + Send>;

/// A look at what is asked for and due, at least so often.
const TICK: Duration = Duration::from_millis(20);

/// Nodes and registry. Dropping it ends them.
pub struct House {
    acts: Option<Sender<Act>>,
    thread: Option<JoinHandle<()>>,
    shared: Arc<Shared>,
    /// Where the registry answers.
    pub registry: SocketAddr,
    server: AbortHandle,
}

impl House {
    /// Opens it for the control plane of this administrator, with no node yet.
    pub fn open(handle: &Handle, admin: &kube::Client) -> std::io::Result<Self> {
        let shared = Arc::new(Shared::new(realm::rules(), Instant::now(), Arc::default()));
        let listener = handle.block_on(tokio::net::TcpListener::bind("127.0.0.1:0"))?;
        let (registry, tags) = (listener.local_addr()?, Arc::clone(&shared));
        let server = handle.spawn(async move {
            let answer = move |request: http::Request<hyper::body::Incoming>| {
                let tags = Arc::clone(&tags);
                async move {
                    let call = |verb, vm: String, tag: String| async move {
                        lock(&tags.registry).call(Asker::Operator, verb, &vm, &tag, None)
                    };
                    manifests(&request, call).await
                }
            };
            accept(listener, answer).await.ok();
        });
        let (acts, asked) = channel();
        let (on, admin, seen) = (handle.clone(), admin.clone(), Arc::clone(&shared));
        let thread = std::thread::Builder::new().name("nodes".to_owned()).spawn(move || {
            let _within = on.enter();
            live(&mut Cluster::new(&on, &admin, &Arc::new(Lens::whole()), &seen), &asked);
        })?;
        Ok(Self { acts: Some(acts), thread: Some(thread), shared, registry, server: server.abort_handle() })
    }

    /// Does something with the nodes and what they see; none where they are no more.
    pub fn with<R: Send + 'static>(&self, act: impl FnOnce(&mut Cluster) -> R + Send + 'static) -> Option<R> {
        let (sender, done) = channel();
        let act: Act = Box::new(move |cluster| drop(sender.send(act(cluster))));
        self.acts.as_ref()?.send(act).ok()?;
        done.recv().ok()
    }

    /// Adds a node and starts its agent.
    pub fn add_node(&self, spec: NodeSpec) {
        self.with(|cluster| cluster.add_node(spec));
    }

    /// The agent of this node does not react any more; the node still says that it is there.
    pub fn agent_down(&self, node: &'static str) {
        self.with(|cluster| nodes::node(cluster, node, NodeEvent::AgentDown));
    }

    /// How nodes behave from now on.
    pub fn settings(&self, settings: Settings) {
        self.with(|cluster| *cluster.nodes().settings_mut() = settings);
    }

    /// The registry.
    pub fn snapshots<R>(&self, act: impl FnOnce(&mut Registry) -> R) -> R {
        act(&mut lock(&self.shared.registry))
    }
}

/// The nodes live for as long as somebody may ask something of them.
fn live(cluster: &mut Cluster, asked: &Receiver<Act>) {
    use std::sync::mpsc::TryRecvError;
    loop {
        match asked.try_recv() {
            Ok(act) => act(cluster),
            Err(TryRecvError::Empty) => cluster.tick(TICK),
            Err(TryRecvError::Disconnected) => return,
        }
        cluster.take_told();
    }
}

impl Drop for House {
    fn drop(&mut self) {
        self.server.abort();
        drop(self.acts.take());
        self.thread.take().into_iter().for_each(|thread| drop(thread.join()));
    }
}
