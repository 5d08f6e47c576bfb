//! What one decision costs: time and allocations, for a small set and for the largest that may be created, and how the
//! cost grows with the pods.

#[path = "../tests/common/mod.rs"]
mod common;

use cocoon_operator::core::cocoonset::observed::Observed;
use cocoon_operator::core::contract::names::Role;
use cocoon_operator::core::decide::{Observation, explain};
use common::stage::{Stage, plainly};
use common::world::{State, World};
use divan::{AllocProfiler, Bencher};
use serde_json::json;
use std::time::{Duration, Instant};

#[global_allocator]
static ALLOCATIONS: AllocProfiler = AllocProfiler::system();

/// Sub-agents of the set; 4 and the main agent are the five pods of a usual one.
const SUB_AGENTS: [u32; 3] = [4, 64, 256];

fn main() {
    divan::main();
    for (what, state) in [
        ("nothing to do", at_rest as fn(u32) -> Observed),
        ("all to create", to_create),
        ("all to delete", to_delete),
        ("set deleted", to_tear_down),
        ("all failed", to_rebuild),
    ] {
        let (few, many) = (cost(&state(4)), cost(&state(256)));
        let (pods, time) = (257.0 / 5.0, many.as_secs_f64() / few.as_secs_f64());
        println!("{what}: 5 pods {few:?}, 257 pods {many:?}: {pods:.1} times the pods cost {time:.1} times the time");
    }
}

/// A decision and its check against the laws; the best of fifty.
fn cost(seen: &Observed) -> Duration {
    let once = || {
        let start = Instant::now();
        let decision = explain(divan::black_box(seen));
        divan::black_box(seen.broken_law(&decision));
        start.elapsed()
    };
    (0..50).map(|_| once()).min().unwrap_or_default()
}

fn stage(count: u32) -> Stage {
    let mut world = World::of(json!({ "agent": { "image": "img", "replicas": count } }));
    world.add_pod(&Role::Main, State::Ready);
    for slot in 1..=count {
        world.add_pod(&Role::SubAgent(slot), State::Ready);
    }
    Stage::new(world)
}

/// Everything is as wanted, the status included.
fn at_rest(count: u32) -> Observed {
    let mut stage = stage(count);
    stage.drive(Duration::from_secs(5), &mut plainly);
    stage.observe().unwrap_or_else(|| unreachable!("the set is there"))
}

/// Every sub-agent is missing, and the registry has answered for each.
fn to_create(count: u32) -> Observed {
    let mut stage = stage(count);
    stage.world.pods.retain(|name, _| name == "demo-0");
    let mut seen = stage.observe().unwrap_or_else(|| unreachable!("the set is there"));
    for slot in 1..=count {
        let key = (format!("vk-ns-demo-{slot}"), "hibernate".to_owned());
        let fact = cocoon_operator::core::fact::Fact::Known(None);
        seen.snapshots.insert(key, cocoon_operator::core::cocoonset::observed::Snapshot { fact, fresh: true });
    }
    seen
}

/// Every sub-agent is one too many.
fn to_delete(count: u32) -> Observed {
    let mut stage = stage(count);
    stage.world.edit(|set| set["spec"]["agent"]["replicas"] = json!(0));
    stage.observe().unwrap_or_else(|| unreachable!("the set is there"))
}

/// Every sub-agent has failed, and each was rebuilt once before.
fn to_rebuild(count: u32) -> Observed {
    let mut stage = stage(count);
    let entry = json!({ "count": 1, "lastDeleted": "2026-01-01T00:10:00Z", "uid": "an-earlier-one", "generation": 1 });
    let history: serde_json::Map<_, _> = (1..=count).map(|slot| (slot.to_string(), entry.clone())).collect();
    let history = serde_json::Value::from(history).to_string();
    stage
        .world
        .edit(|set| set["metadata"]["annotations"] = json!({ "cocoonset.cocoonstack.io/rebuild-history": history }));
    for slot in 1..=count {
        stage.world.set_state(&format!("demo-{slot}"), State::Failed);
    }
    stage.observe().unwrap_or_else(|| unreachable!("the set is there"))
}

/// The whole set goes.
fn to_tear_down(count: u32) -> Observed {
    let mut stage = stage(count);
    stage.world.delete_set();
    stage.observe().unwrap_or_else(|| unreachable!("the set is there"))
}

#[divan::bench(args = SUB_AGENTS)]
fn nothing_to_do(bencher: Bencher<'_, '_>, count: u32) {
    let seen = at_rest(count);
    bencher.bench_local(|| explain(divan::black_box(&seen)));
}

#[divan::bench(args = SUB_AGENTS)]
fn all_to_create(bencher: Bencher<'_, '_>, count: u32) {
    let seen = to_create(count);
    bencher.bench_local(|| explain(divan::black_box(&seen)));
}

#[divan::bench(args = SUB_AGENTS)]
fn all_to_delete(bencher: Bencher<'_, '_>, count: u32) {
    let seen = to_delete(count);
    bencher.bench_local(|| explain(divan::black_box(&seen)));
}

#[divan::bench(args = SUB_AGENTS)]
fn laws(bencher: Bencher<'_, '_>, count: u32) {
    let seen = to_create(count);
    let decision = explain(&seen);
    bencher.bench_local(|| seen.broken_law(divan::black_box(&decision)));
}

#[divan::bench(args = SUB_AGENTS)]
fn observe(bencher: Bencher<'_, '_>, count: u32) {
    let mut stage = stage(count);
    stage.sync();
    bencher.bench_local(|| stage.view.observe(&Stage::key(), stage.clocks()));
}
