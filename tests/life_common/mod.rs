//! A set's life on the stage in memory, and what the operator sent in it, call by call.

#![allow(dead_code)]

pub mod creation;
pub mod state;

use cocoon_operator::core::action::{ActionKind, Attempt};
use cocoon_operator::core::call::call;
use cocoon_operator::core::outcome::Class;
use cocoon_operator::core::wire::{JSON, MERGE_PATCH, Method, Reply, Request, Verb};
use cocoon_operator::scenario::happenings::{Counts, Happening, PassEnd};
use cocoon_operator::scenario::in_memory::InMemory;
use cocoon_operator::scenario::stage::{OperatorEvent, Stage};
use cocoon_operator::scenario::transcript;
use cocoon_operator::sim::node::NodeSpec;
use cocoon_operator::sim::store::ADMIN;
use cocoon_operator::sim::world::World;
use serde_json::{Value, json};
use std::time::Duration;

pub const NAMESPACE: &str = "ns";
pub const SET: &str = "demo";
pub const IMAGE: &str = "ghcr.io/cocoonstack/cocoon/ubuntu:24.04";
pub const SECOND: Duration = Duration::from_secs(1);

/// A cluster with an empty namespace. Of one node: where pods land would depend on which was first.
pub fn world() -> World {
    let mut world = World::new("2026-08-03T10:00:00Z".parse().expect("a time"));
    world.store.add_namespace(NAMESPACE);
    let mut node = NodeSpec::named("node-a");
    node.capacity_pods = 256;
    world.add_node(node);
    world
}

/// The same on a stage, with an operator that has found nothing to do.
pub fn stage(world: World) -> InMemory {
    let mut stage = InMemory::new(world, &[]);
    stage.operator(OperatorEvent::Start);
    run_for(&mut stage, SECOND);
    drop(stage.take_happenings());
    stage
}

pub fn run_for(stage: &mut InMemory, time: Duration) {
    let until = stage.now() + time;
    stage.run_until(until);
}

fn sets() -> String {
    format!("/apis/cocoonset.cocoonstack.io/v1/namespaces/{NAMESPACE}/cocoonsets")
}

pub fn set_path() -> String {
    format!("{}/{SET}", sets())
}

pub fn pod_path(pod: &str) -> String {
    format!("/api/v1/namespaces/{NAMESPACE}/pods/{pod}")
}

/// A person's request, which has to succeed.
pub fn person(world: &mut World, request: &Request) {
    match world.api(ADMIN, request) {
        Reply::Http { status, .. } if (200..300).contains(&status) => {}
        other => panic!("{} {}: {other:?}", request.method.as_str(), request.path),
    }
}

/// A user creates the set: so many sub-agents, and these toolboxes.
pub fn create_set(world: &mut World, replicas: u32, toolboxes: &[&str], policy: &str) {
    let toolboxes: Vec<Value> = toolboxes.iter().map(|name| json!({ "name": name, "image": IMAGE })).collect();
    let set = json!({
        "apiVersion": "cocoonset.cocoonstack.io/v1", "kind": "CocoonSet",
        "metadata": { "name": SET, "namespace": NAMESPACE },
        "spec": {
            "agent": { "image": IMAGE, "replicas": replicas }, "toolboxes": toolboxes, "snapshotPolicy": policy,
        },
    });
    person(world, &Request::new(Method::Post, sets()).with_body(JSON, set));
}

/// A user merges this into the spec.
pub fn edit(world: &mut World, spec: Value) {
    person(world, &Request::new(Method::Patch, set_path()).with_body(MERGE_PATCH, json!({ "spec": spec })));
}

pub fn delete_set(world: &mut World) {
    person(world, &Request::new(Method::Delete, set_path()));
}

pub fn delete_namespace(world: &mut World) {
    person(world, &Request::new(Method::Delete, format!("/api/v1/namespaces/{NAMESPACE}")));
}

/// One call of the operator, as it went out and came back.
#[derive(Clone, Debug)]
pub struct Sent {
    pub at: Duration,
    pub action: ActionKind,
    pub attempt: Attempt,
    pub verb: Verb,
    pub resource: &'static str,
    pub writes: bool,
    pub class: Class,
}

impl Sent {
    /// What it is about, as faults name it.
    pub fn object(&self) -> String {
        let target = if self.attempt.target.is_empty() { SET } else { &self.attempt.target };
        if self.verb.is_registry() { target.to_owned() } else { format!("{NAMESPACE}/{target}") }
    }
}

/// Every call of the operator, in order.
pub fn sent(happenings: &[Happening]) -> Vec<Sent> {
    let mut all = Vec::new();
    for pass in Counts(happenings).passes() {
        for deed in pass.deeds().filter(|deed| !deed.verb.is_empty()) {
            let Some(call) = call(&pass.subject, deed.action) else { continue };
            // Held back by our own side after a 429: it never went out.
            if deed.outcome.class == Class::Throttled && deed.outcome.message.starts_with("held back") {
                continue;
            }
            let attempt = Attempt::of(&deed.action.want).expect("what is sent is an attempt");
            let (verb, resource, class) = (call.verb(), call.resource(), deed.outcome.class);
            let (action, writes) = (deed.action.kind(), deed.writes);
            all.push(Sent { at: pass.at, action, attempt, verb, resource, writes, class });
        }
    }
    all
}

/// What may never happen, whatever else does: a pass given up, a hot loop, an error.
pub fn wrongs(happenings: &[Happening]) -> Vec<String> {
    let mut wrongs = Vec::new();
    for happening in happenings {
        match happening {
            Happening::Pass(pass) => {
                if let PassEnd::GaveUp(because) = &pass.end {
                    wrongs.push(format!("gave up: {because}"));
                }
                wrongs.extend(pass.error.iter().map(|error| format!("error {error}")));
            }
            Happening::Note { text, .. } if text.starts_with("HOT") => wrongs.push(text.clone()),
            Happening::Note { .. } | Happening::Step(_) | Happening::World { .. } => {}
        }
    }
    wrongs
}

/// When something was last done, by anybody.
pub fn last_deed(happenings: &[Happening]) -> Duration {
    let at = |happening: &Happening| match happening {
        Happening::World { at, .. } => Some(*at),
        Happening::Pass(pass) => pass.deeds().any(|deed| deed.writes).then_some(pass.at),
        Happening::Note { .. } | Happening::Step(_) => None,
    };
    happenings.iter().filter_map(at).max().unwrap_or_default()
}

/// The story of it, for who has to find out what went wrong.
pub fn tell(title: &str, origin: Duration, happenings: &[Happening]) -> String {
    transcript::tell(title, origin, happenings)
}
