//! The whole cluster on one clock: API server, scheduler, nodes, registry. Plain data that can be forked; whoever owns
//! it says what time it is, and is told what happened.

use super::faults::{Faults, What};
use super::node::{NodeSpec, Nodes, Site};
use super::registry::{Asker, Registry};
use super::scheduler::Scheduler;
use super::store::{About, Change, Ran, Selector, Store, StoreReply, Watch, WatchEvent, WatchQuery};
use crate::core::api::crd::crds;
use crate::core::wire::{Method, Reply, Request, Verb};
use jiff::Timestamp;

/// The user under whom the operator speaks, where a stage names no other.
pub const OPERATOR: &str = "system:serviceaccount:cocoon-system:cocoon-operator";

/// Something that happened in the cluster without the operator's doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// When.
    pub at: Timestamp,
    /// Who did it: a node's name, `scheduler`, `namespace-controller`, `garbage-collector`, …
    pub actor: String,
    /// To what: `namespace/name`, or the name alone for cluster-wide objects.
    pub object: String,
    /// In words that begin with a name.
    pub text: String,
}

/// A cluster. Cloning it forks it.
#[derive(Clone, Debug)]
pub struct World {
    /// The API server.
    pub store: Store,
    /// The nodes and their agents.
    pub nodes: Nodes,
    /// The snapshot registry.
    pub registry: Registry,
    /// What requests meet on their way.
    pub faults: Faults,
    scheduler: Scheduler,
    /// The version up to which scheduler and nodes have looked at the writes.
    seen: u64,
    /// What happened between two runs.
    heard: Vec<Told>,
}

/// What became of a request to open a watch.
#[derive(Debug)]
pub enum Opened {
    /// It is open.
    Watch(Box<Watch>),
    /// It is answered otherwise.
    Refused(Reply),
}

impl World {
    /// A fresh cluster with the project's kinds, at this time, without nodes.
    pub fn new(start: Timestamp) -> Self {
        let mut store = Store::new(start);
        for crd in crds() {
            store.install_crd(&crd);
        }
        let seen = store.version();
        Self {
            store,
            nodes: Nodes::new(start),
            registry: Registry::default(),
            faults: Faults::default(),
            scheduler: Scheduler::default(),
            seen,
            heard: Vec::new(),
        }
    }

    /// What time it is.
    pub fn now(&self) -> Timestamp {
        self.store.now()
    }

    /// Adds a node and starts its agent.
    pub fn add_node(&mut self, spec: NodeSpec) {
        self.with_nodes(|nodes, site| nodes.add(site, spec));
    }

    /// Answers one request of this user that is no watch, with what `faults` have for it.
    pub fn api(&mut self, user: &str, request: &Request) -> Reply {
        let about = self.store.about(request);
        let met = about.and_then(|about| self.faults.meet(user, &about));
        self.meet(met, |world| world.store.handle_as(user, request).into())
    }

    /// The same with headers and content type as the server gave them; an `Err` is a fault's reply.
    pub fn api_full(&mut self, user: &str, request: &Request) -> Result<StoreReply, Reply> {
        let about = self.store.about(request);
        let met = about.and_then(|about| self.faults.meet(user, &about));
        match met {
            None => Ok(self.store.handle_as(user, request)),
            Some(what) => Err(self.meet(Some(what), |world| world.store.handle_as(user, request).into())),
        }
    }

    /// Answers one request of the operator to the registry.
    pub fn registry_call(&mut self, verb: Verb, vm: &str, tag: &str, digest: Option<&str>) -> Reply {
        let name = format!("{vm}:{tag}");
        let about = About { verb, kind: "snapshots".to_owned(), namespace: String::new(), name };
        let met = self.faults.meet(OPERATOR, &about);
        self.meet(met, |world| world.registry.call(Asker::Operator, verb, vm, tag, digest))
    }

    /// Opens a watch for this user.
    pub fn open_watch(&mut self, user: &str, request: &Request) -> Opened {
        let about = self.store.about(request);
        match about.and_then(|about| self.faults.meet(user, &about)) {
            Some(What::Answer(reply)) => return Opened::Refused(reply),
            Some(What::TimeoutBefore | What::TimeoutAfter) => return Opened::Refused(Reply::TimedOut),
            Some(What::Reset { sent }) => return Opened::Refused(Reply::Reset { sent }),
            Some(What::ResetAfter) => return Opened::Refused(Reply::Reset { sent: true }),
            Some(What::Overtaken(request)) => drop(self.store.handle(&request)),
            None => {}
        }
        match self.store.open_watch_as(user, request) {
            Ok(watch) => Opened::Watch(Box::new(watch)),
            Err(reply) => Opened::Refused(reply.into()),
        }
    }

    /// The events of a watch since the last call.
    pub fn poll_watch(&self, watch: &mut Watch) -> Vec<WatchEvent> {
        self.store.poll_watch(watch)
    }

    fn meet(&mut self, met: Option<What>, carry_out: impl FnOnce(&mut Self) -> Reply) -> Reply {
        match met {
            None => carry_out(self),
            Some(What::Answer(reply)) => reply,
            Some(What::TimeoutBefore) => Reply::TimedOut,
            Some(What::Reset { sent }) => Reply::Reset { sent },
            Some(What::TimeoutAfter) => {
                carry_out(self);
                Reply::TimedOut
            }
            Some(What::ResetAfter) => {
                carry_out(self);
                Reply::Reset { sent: true }
            }
            Some(What::Overtaken(request)) => {
                self.store.handle(&request);
                carry_out(self)
            }
        }
    }

    /// When something is due next: now, where a write has not been looked at yet.
    pub fn next_due(&self) -> Option<Timestamp> {
        let unseen = (self.store.version() != self.seen).then(|| self.now());
        [unseen, self.planned()].into_iter().flatten().min()
    }

    fn planned(&self) -> Option<Timestamp> {
        [self.store.next_due(), self.scheduler.next_due(), self.nodes.next_due()].into_iter().flatten().min()
    }

    /// Does everything that is due up to this time, in the order of its times, and makes it this time. The same
    /// world always does the same. Where several things are due at once, controllers go first, then the scheduler,
    /// then the nodes.
    pub fn run_until(&mut self, until: Timestamp) -> Vec<Told> {
        let mut told = std::mem::take(&mut self.heard);
        loop {
            self.look(&mut told);
            let Some(at) = self.planned().map(|at| at.max(self.now())).filter(|at| *at <= until) else { break };
            self.set_now(at);
            if let Some(ran) = self.store.run_next(at) {
                told.extend(ran.changes.iter().filter_map(|(key, change)| tell(&ran, key, *change)));
            } else if !self.scheduler.run(&mut self.store, &mut told) {
                let Self { store, nodes, registry, .. } = self;
                nodes.run_next(&mut Site { server: store, registry, told: &mut told });
            }
        }
        self.set_now(until);
        told
    }

    fn set_now(&mut self, at: Timestamp) {
        let at = at.max(self.now());
        self.store.set_now(at);
        self.nodes.set_now(at);
    }

    /// Lets scheduler and nodes see the writes since they last looked.
    fn look(&mut self, told: &mut Vec<Told>) {
        while self.seen != self.store.version() {
            let since = std::mem::replace(&mut self.seen, self.store.version());
            let of = |resource: &str| WatchQuery {
                resource: resource.to_owned(),
                namespace: None,
                selector: Selector::default(),
            };
            let pods = self.store.watch_from(&of("pods"), since);
            let nodes_changed = self.store.watch_from(&of("nodes"), since).map_or(true, |events| !events.is_empty());
            let now = self.now();
            self.scheduler.look(pods.as_deref().ok(), nodes_changed, now);
            let Self { store, nodes, registry, .. } = self;
            let mut site = Site { server: store, registry, told };
            match pods {
                Ok(events) => nodes.look_at(&mut site, &events),
                // The log no longer says what happened: the agents list again.
                Err(_) => nodes.list_again(&mut site),
            }
        }
    }

    /// The node and its agent are there again: Ready, without the taints of a silent node, registered if its object was
    /// deleted. VMs that outlived the absence are found again.
    pub fn node_back(&mut self, node: &str) {
        self.with_nodes(|nodes, site| nodes.come_back(site, node));
    }
    /// The node says that it is not ready; its agent goes on working.
    pub fn node_not_ready(&mut self, node: &str) {
        self.with_nodes(|nodes, site| nodes.not_ready(site, node));
    }
    /// The node cannot be reached; the control plane notices after 40 s. Its VMs run on.
    pub fn lose_node(&mut self, node: &str) {
        self.with_nodes(|nodes, _| nodes.lose(node));
    }
    /// The node's object is deleted and its agent is silent; its VMs run on. Pod garbage collection follows after 40 s.
    pub fn delete_node(&mut self, node: &str) {
        self.with_nodes(|nodes, _| nodes.agent_down(node));
        self.store.handle(&Request::new(Method::Delete, format!("/api/v1/nodes/{node}")));
    }
    /// The machine starts anew, without any of its VMs.
    pub fn reboot_node(&mut self, node: &str) {
        self.with_nodes(|nodes, site| nodes.reboot(site, node));
    }
    /// The node's agent does not react any more; nothing else shows it. `node_back` starts it again.
    pub fn agent_down(&mut self, node: &str) {
        self.with_nodes(|nodes, _| nodes.agent_down(node));
    }
    /// The node's agent is started anew, and has forgotten what it was doing.
    pub fn restart_agent(&mut self, node: &str) {
        self.with_nodes(|nodes, site| nodes.restart_agent(site, node));
    }
    /// The guest of this VM stops.
    pub fn crash_guest(&mut self, vm: &str) {
        self.with_nodes(|nodes, _| nodes.crash_guest(vm));
    }
    /// This VM vanishes from its node.
    pub fn lose_vm(&mut self, vm: &str) {
        self.with_nodes(|nodes, _| nodes.lose_vm(vm));
    }
    /// The probe of this VM fails from now on, or succeeds again.
    pub fn set_probe(&mut self, vm: &str, ok: bool) {
        self.with_nodes(|nodes, _| nodes.set_probe(vm, ok));
    }

    pub(crate) fn with_nodes<T>(&mut self, act: impl FnOnce(&mut Nodes, &mut Site<'_>) -> T) -> T {
        let Self { store, nodes, registry, heard, .. } = self;
        nodes.set_now(store.now());
        act(nodes, &mut Site { server: store, registry, told: heard })
    }
}

/// A controller's write in words; what is of no interest to a story is left out, and so is a mark on what goes at once.
fn tell(ran: &Ran, key: &super::store::Key, change: Change) -> Option<Told> {
    let kind = match key.resource.as_str() {
        "pods" => "",
        "namespaces" => "namespace ",
        "cocoonsets.cocoonset.cocoonstack.io" => "cocoonset ",
        "cocoonhibernations.cocoonset.cocoonstack.io" => "cocoonhibernation ",
        _ => return None,
    };
    let becomes = match change {
        Change::Marked if ran.changes.iter().any(|(other, then)| other == key && *then == Change::Removed) => {
            return None;
        }
        Change::Marked => "is marked for deletion",
        Change::Removed => "is removed",
        Change::Written => return None,
    };
    let object = if key.namespace.is_empty() { key.name.clone() } else { format!("{}/{}", key.namespace, key.name) };
    let text = format!("{kind}{} {becomes}", key.name);
    Some(Told { at: ran.at, actor: ran.actor.to_owned(), object, text })
}
