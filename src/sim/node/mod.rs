//! The nodes and their agents, as spec/node-agent.md describes them: machines that are told the time and write through
//! the API server like everybody else.

mod agent;
mod create;
mod delete;
mod events;
mod health;
mod report;
mod settings;
mod site;
mod vm;

pub use health::NodeSpec;
pub use settings::{Effect, Injection, Settings, Step, Strays, Timings};
pub use site::{NodeCondition, Server, Site, Snapshots};
pub use vm::Vm;

use super::agenda::Agenda;
use super::world::Told;
use crate::core::contract::lifecycle::Lifecycle;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// Something an agent has planned.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Work {
    /// The next step with the pod of this uid.
    Pod(String),
    /// A probe of this pod's VM has changed its mind.
    Probe(String),
    /// Look why this pod's VM does not run.
    Look(String),
    /// A guest that was started again is up.
    Restarted(String),
    /// Say again what the API server has not taken or somebody has changed.
    Reconcile(String),
    /// The control plane misses this node's heartbeat.
    Missed(String),
}

/// Where the VM of a pod comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Source {
    /// A machine that others run: id and ip are given.
    Given { id: String, ip: String },
    /// Its own `hibernate` snapshot.
    Restore,
    /// A directory of the host.
    Directory,
    /// The running VM of this name.
    Fork(String),
    /// An image that is booted.
    Image,
    /// A snapshot that is cloned.
    Snapshot,
}

/// How far an agent is with a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Stage {
    /// Not begun, or failed and to be begun again.
    Waiting,
    /// The VM is being made.
    Bringing { source: Source, steps: VecDeque<Step> },
    /// The VM runs and is not ready yet: done in the background.
    Settling { steps: VecDeque<Step> },
    /// Nothing to do.
    Resting,
    /// The pod is being deleted.
    Leaving { steps: VecDeque<Step> },
}

/// A pod as its agent knows it.
#[derive(Clone, Debug)]
struct Pod {
    node: String,
    namespace: String,
    name: String,
    uid: String,
    vm: String,
    managed: bool,
    stage: Stage,
    /// Whether a VM of this agent stands for it.
    has_vm: bool,
    /// The pod object is gone or going; noticed while something else was being done.
    leaving: bool,
    /// The pod object is gone.
    object_gone: bool,
    /// The object as last seen: what a deletion goes by once it is gone.
    object: Arc<Value>,
    tries: u32,
    /// What was last said, and whether the API server has taken it.
    lifecycle: Lifecycle,
    unsaid: u32,
    /// The status as last published.
    status: Option<Value>,
    probe_ok: bool,
    ready_since: Option<Timestamp>,
    started: Timestamp,
    restarted: Option<Timestamp>,
}

impl Pod {
    fn place(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }
    fn is_busy(&self) -> bool {
        match &self.stage {
            Stage::Bringing { .. } | Stage::Leaving { .. } => true,
            Stage::Waiting | Stage::Settling { .. } | Stage::Resting => false,
        }
    }
}

/// One node: what it has, and what runs on it.
#[derive(Clone, Debug)]
struct Node {
    spec: NodeSpec,
    /// Numbers addresses.
    index: u64,
    /// Whether the agent runs.
    up: bool,
    /// Whether the machine cannot be reached.
    silent: bool,
    vms: BTreeMap<String, Vm>,
    /// Local snapshots by name.
    snapshots: BTreeSet<String>,
    /// Images and snapshots fetched.
    images: BTreeSet<String>,
}

/// All nodes. Cloning forks them.
#[derive(Clone, Debug)]
pub struct Nodes {
    nodes: BTreeMap<String, Node>,
    pods: BTreeMap<String, Pod>,
    agenda: Agenda<Work>,
    settings: Settings,
    injections: Vec<Injection>,
    /// VMs whose probe fails.
    unwell: BTreeSet<String>,
    now: Timestamp,
    /// VMs made so far: numbers ids.
    made: u64,
    /// Events written so far: numbers their names.
    events: u64,
}

impl Nodes {
    pub(crate) fn new(now: Timestamp) -> Self {
        Self {
            nodes: BTreeMap::new(),
            pods: BTreeMap::new(),
            agenda: Agenda::default(),
            settings: Settings::default(),
            injections: Vec::new(),
            unwell: BTreeSet::new(),
            now,
            made: 0,
            events: 0,
        }
    }

    /// How agents behave and how long things take.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }
    /// The same, to be changed.
    pub fn settings_mut(&mut self) -> &mut Settings {
        &mut self.settings
    }
    /// Lets something go otherwise than usual; what was injected last goes first.
    pub fn inject(&mut self, injection: Injection) {
        self.injections.push(injection);
    }
    /// Takes all injections away; what hung goes on.
    pub fn heal(&mut self) {
        self.injections.clear();
        let stuck: Vec<String> = self
            .pods
            .values()
            .filter(|pod| pod.is_busy() || matches!(pod.stage, Stage::Settling { .. }))
            .map(|pod| pod.uid.clone())
            .collect();
        for uid in stuck {
            self.agenda.plan_once(Work::Pod(uid), self.now);
        }
    }
    /// The names of the nodes.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.nodes.keys().map(String::as_str)
    }
    /// Every VM: node, VM name, VM.
    pub fn vms(&self) -> impl Iterator<Item = (&str, &str, &Vm)> {
        let all = self.nodes.iter().flat_map(|(node, held)| held.vms.iter().map(move |(vm, is)| (node, vm, is)));
        all.map(|(node, vm, is)| (node.as_str(), vm.as_str(), is))
    }
    /// The VM of this name on this node.
    pub fn vm(&self, node: &str, vm: &str) -> Option<&Vm> {
        self.nodes.get(node).and_then(|node| node.vms.get(vm))
    }
    /// The local snapshots of a node.
    pub fn snapshots(&self, node: &str) -> impl Iterator<Item = &str> {
        self.nodes.get(node).into_iter().flat_map(|node| node.snapshots.iter().map(String::as_str))
    }
    /// True where this node's agent runs.
    pub fn is_agent_up(&self, node: &str) -> bool {
        self.nodes.get(node).is_some_and(|node| node.up)
    }
    /// True where this node cannot be reached, and so is not heard of.
    pub fn is_silent(&self, node: &str) -> bool {
        self.nodes.get(node).is_some_and(|node| node.silent)
    }
    /// When an agent has something to do next.
    pub fn next_due(&self) -> Option<Timestamp> {
        self.agenda.next()
    }

    pub(crate) fn set_now(&mut self, now: Timestamp) {
        self.now = self.now.max(now);
    }

    /// Does the next thing that is due by now; false if there is none.
    pub(crate) fn run_next(&mut self, site: &mut Site<'_>) -> bool {
        let Some(work) = self.agenda.take(self.now) else { return false };
        match work {
            Work::Pod(uid) => self.step(site, &uid),
            Work::Probe(uid) => self.probe(site, &uid),
            Work::Look(uid) => self.look(site, &uid),
            Work::Restarted(uid) => self.restarted(site, &uid),
            Work::Reconcile(uid) => self.reconcile(site, &uid),
            Work::Missed(node) => self.missed(site, &node),
        }
        true
    }

    fn tell(&self, site: &mut Site<'_>, pod: &Pod, text: &str) {
        site.told.push(Told {
            at: self.now,
            actor: pod.node.clone(),
            object: pod.place(),
            text: format!("{} {text}", pod.name),
        });
    }

    /// The work with this pod that is planned for the next time: after a step's duration, or never if it hangs.
    fn plan_step(&mut self, uid: &str, step: Step) {
        let work = Work::Pod(uid.to_owned());
        match self.duration(uid, step) {
            Some(duration) => self.agenda.plan(work, later(self.now, duration)),
            None => self.agenda.cancel(&work),
        }
    }

    /// How long this step takes with this pod; none if it hangs.
    fn duration(&mut self, uid: &str, step: Step) -> Option<Duration> {
        let pod = self.pods.get(uid)?;
        let special = |one: &Injection| matches!(one.effect, Effect::Takes(_) | Effect::Hangs) && one.fits(pod, step);
        let Some(injection) = self.injections.iter_mut().rev().find(|one| special(one)) else {
            return Some(self.settings.scaled(self.settings.timings.of(step)));
        };
        injection.used();
        match &injection.effect {
            Effect::Takes(duration) => Some(self.settings.scaled(*duration)),
            Effect::Hangs | Effect::Fails(_) => None,
        }
    }

    /// Whether this step fails now, and with which words.
    fn failure(&mut self, uid: &str, step: Step) -> Option<String> {
        let pod = self.pods.get(uid)?;
        let fails = |one: &Injection| matches!(one.effect, Effect::Fails(_)) && one.fits(pod, step);
        let injection = self.injections.iter_mut().rev().find(|one| fails(one))?;
        injection.used();
        match &injection.effect {
            Effect::Fails(words) => Some(words.clone()),
            Effect::Takes(_) | Effect::Hangs => None,
        }
    }
}

/// That much later, within what can be represented.
fn later(at: Timestamp, after: Duration) -> Timestamp {
    let span = SignedDuration::try_from(after).unwrap_or(SignedDuration::MAX);
    at.checked_add(span).unwrap_or(Timestamp::MAX)
}
