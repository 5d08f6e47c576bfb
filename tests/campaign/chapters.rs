//! The parts of a set's life, each with the cluster as it finds it and what somebody does then.

use crate::life_common::{IMAGE, create_set, delete_namespace, delete_set, edit, run_for, stage, world};
use cocoon_operator::scenario::in_memory::InMemory;
use cocoon_operator::scenario::stage::Stage;
use cocoon_operator::sim::node::{Effect, Injection, Step};
use cocoon_operator::sim::world::World;
use serde_json::json;
use std::time::Duration;

/// What somebody does to a cluster.
pub type Act = fn(&mut World);

/// One part of a life.
pub struct Chapter {
    pub name: &'static str,
    /// The cluster as it is found, with an operator at rest.
    pub given: fn() -> InMemory,
    /// What somebody does.
    pub act: Act,
}

pub const CHAPTERS: [Chapter; 8] = [
    Chapter { name: "creation", given: empty, act: |world| create_set(world, 2, &["tools"], "main-only") },
    Chapter { name: "scaling up", given: settled, act: |world| edit(world, json!({ "agent": { "replicas": 4 } })) },
    Chapter {
        name: "scaling down",
        given: scaled_up,
        act: |world| edit(world, json!({ "agent": { "replicas": 1 }, "toolboxes": [] })),
    },
    Chapter {
        name: "image edit",
        given: settled,
        act: |world| edit(world, json!({ "agent": { "image": IMAGE.replace("24.04", "26.04") } })),
    },
    Chapter { name: "rebuild", given: settled, act: a_boot_fails },
    Chapter { name: "teardown", given: with_tags, act: delete_set },
    Chapter { name: "namespace deletion", given: with_tags, act: delete_namespace },
    Chapter { name: "namespace deletion, old order", given: in_the_old_order, act: delete_namespace },
];

/// What somebody does, one after the other, in a whole life.
pub const LIFE: [(&str, Act); 6] = [
    ("creation", |world| create_set(world, 2, &["tools"], "main-only")),
    ("rebuild", a_boot_fails),
    ("scaling up", |world| edit(world, json!({ "agent": { "replicas": 4 } }))),
    ("image edit", |world| edit(world, json!({ "agent": { "image": IMAGE.replace("24.04", "26.04") } }))),
    ("scaling down", |world| edit(world, json!({ "agent": { "replicas": 1 }, "toolboxes": [] }))),
    ("teardown", |world| {
        put_tags(world);
        delete_set(world);
    }),
];

fn rested(mut stage: InMemory, act: impl FnOnce(&mut World)) -> InMemory {
    act(&mut stage.world);
    run_for(&mut stage, Duration::from_secs(180));
    drop(stage.take_happenings());
    stage
}

/// A cluster without a set.
pub fn empty() -> InMemory {
    stage(world())
}

fn settled() -> InMemory {
    rested(empty(), |world| create_set(world, 2, &["tools"], "main-only"))
}

fn scaled_up() -> InMemory {
    rested(settled(), |world| edit(world, json!({ "agent": { "replicas": 4 } })))
}

/// Every VM has left a snapshot behind, as after a hibernation of old.
fn with_tags() -> InMemory {
    rested(settled(), put_tags)
}

fn put_tags(world: &mut World) {
    for slot in ["0", "1", "2", "tools"] {
        world.registry.push(&format!("vk-ns-demo-{slot}"), "hibernate", Some(IMAGE));
    }
}

fn in_the_old_order() -> InMemory {
    let mut world = world();
    world.store.settings_mut().ordered_namespace_deletion = false;
    let stage = rested(stage(world), |world| create_set(world, 2, &["tools"], "main-only"));
    rested(stage, put_tags)
}

/// A third sub-agent is wanted, and its VM does not come up. Its agent does not try again soon: it would be faster than
/// an operator that was answered 429.
fn a_boot_fails(world: &mut World) {
    world.nodes.settings_mut().first_pause = Duration::from_secs(300);
    for step in [Step::Boot, Step::Clone] {
        let effect = Effect::Fails("the guest does not come up".to_owned());
        world.nodes.inject(Injection::new(step, effect).for_pod("demo-3").times(1));
    }
    edit(world, json!({ "agent": { "replicas": 3 } }));
}
