//! The rows of the outcome matrix: for each rule and each kind of action that it can want, the smallest state in which
//! it wants it.

use crate::common::stage::Stage;
use crate::common::world::{State, World};
use crate::common::{NODE, SET};
use crate::states::{deleted_after_its_pod_went_unwatched, main_went_unwatched, many_on_record, rebuilt_long_ago};
use cocoon_operator::core::action::ActionKind::{self, *};
use cocoon_operator::core::cocoonset::concerns::{
    claim, main_agent, namespace, oddities, stamp, sub_agents, teardown, toolboxes,
};
use cocoon_operator::core::cocoonset::{answers, left_behind, rebuild, recorded, rollout, seat, status};
use cocoon_operator::core::contract::keys;
use cocoon_operator::core::contract::names::Role;
use cocoon_operator::core::outcome::Class;
use cocoon_operator::core::rule::Rule;
use serde_json::{Value, json};

/// One row.
pub struct Row {
    pub rule: &'static Rule,
    pub action: ActionKind,
    /// Tells apart rows of one rule and one action.
    pub about: &'static str,
    pub stage: fn() -> Stage,
    /// Answers that must have come before, each once, in the same pass.
    pub before: &'static [(ActionKind, Class)],
}

impl Row {
    pub fn name(&self) -> String {
        let about = if self.about.is_empty() { String::new() } else { format!("-{}", self.about) };
        format!("{}-{}{about}", self.rule.id.replace('/', "-"), self.action.name())
    }
}

const fn row(rule: &'static Rule, action: ActionKind, stage: fn() -> Stage) -> Row {
    Row { rule, action, about: "", stage, before: &[] }
}
const fn after(
    before: &'static [(ActionKind, Class)],
    rule: &'static Rule,
    action: ActionKind,
    about: &'static str,
    stage: fn() -> Stage,
) -> Row {
    Row { rule, action, about, stage, before }
}
const fn of(about: &'static str, rule: &'static Rule, action: ActionKind, stage: fn() -> Stage) -> Row {
    Row { rule, action, about, stage, before: &[] }
}

pub const ROWS: &[Row] = &[
    row(&claim::ADD_FINALIZER, AddFinalizer, unclaimed),
    row(&stamp::GENERATION, PatchPod, unstamped),
    row(&stamp::LABELS, PatchPod, unlabelled),
    row(&main_agent::CREATE, CreatePod, empty),
    row(&main_agent::CREATE, PatchObject, main_disappeared),
    row(&sub_agents::CREATE, CreatePod, sub_agent_missing),
    row(&sub_agents::CREATE, PatchObject, sub_agent_disappeared),
    row(&sub_agents::SCALE_DOWN, PatchObject, too_many),
    row(&sub_agents::SCALE_DOWN, DeletePod, too_many),
    row(&sub_agents::REMEMBER, PatchObject, gone_and_unwanted),
    row(&toolboxes::CREATE, CreatePod, toolbox_missing),
    of("static", &toolboxes::CREATE, CreatePod, static_toolbox_missing),
    row(&toolboxes::CREATE, PatchObject, toolbox_disappeared),
    row(&toolboxes::REMOVE, PatchObject, toolbox_unlisted),
    row(&toolboxes::REMOVE, DeletePod, toolbox_unlisted),
    row(&seat::ASK_SNAPSHOT, ProbeSnapshot, empty),
    row(&seat::LOOK_FOR_VANISHED, ReadLive, main_disappeared),
    of("relabelled", &seat::LOOK_FOR_VANISHED, ReadLive, main_hidden),
    of("relabelled-and-leaving", &seat::LOOK_FOR_VANISHED, ReadLive, main_hidden_and_leaving),
    row(&seat::ASK_NODE, ReadLive, main_went_unwatched),
    row(&seat::LOOK_AT_FOREIGN, ReadLive, foreign_main),
    row(&rollout::PATCH_IN_PLACE, PatchPod, policy_edited),
    row(&rollout::ADOPT, PatchPod, older_operator),
    row(&rollout::ASK_ADMISSION, ProbeSnapshot, image_edited),
    row(&rollout::ASK_ADMISSION, CreatePod, image_edited),
    row(&rollout::RECREATE, DeletePod, image_edited),
    row(&rollout::FOLLOW, DeletePod, sub_agent_pinned_elsewhere),
    row(&rebuild::REBUILD, PatchObject, sub_agent_failed),
    row(&rebuild::REBUILD, DeletePod, sub_agent_failed),
    of("main", &rebuild::REBUILD, DeletePod, main_failed),
    of("toolbox", &rebuild::REBUILD, DeletePod, toolbox_failed),
    row(&rebuild::REBUILD_CHARGED, DeletePod, failed_and_charged),
    row(&rebuild::DEAD_LETTER, PatchPod, failed_too_often),
    row(&rebuild::DEAD_LETTER, PatchObject, failed_too_often),
    row(&rebuild::RECOVERED, PatchPod, given_up_and_up),
    row(&rebuild::FORGIVE, PatchObject, rebuilt_long_ago),
    row(&recorded::LOOK_FOR_PODS, ReadLive, many_on_record),
    row(&recorded::ASK_TAGS, ProbeSnapshot, many_on_record),
    row(&recorded::FORGET, PatchObject, many_on_record),
    of("a-minute-later", &namespace::LOOK, ReadLive, empty_and_refused),
    row(&namespace::REMEMBER, PatchObject, namespace_going),
    row(&oddities::LOSS_IS_OVER, PatchObject, node_is_back),
    row(&oddities::LOSS_IS_OVER, ReadLive, node_is_back),
    row(&teardown::REMEMBER, PatchObject, deleted),
    of("late", &teardown::REMEMBER, PatchObject, deleted_and_leaving),
    row(&teardown::DELETE_PODS, DeletePod, deleted),
    of("remembered", &teardown::DELETE_PODS, DeletePod, deleted_and_remembered),
    of("hidden", &teardown::DELETE_PODS, DeletePod, deleted_with_hidden_pod),
    row(&teardown::LOOK_FOR_PODS, ReadLive, deleted_without_pods),
    row(&left_behind::ASK_NODES, ReadLive, deleted_after_its_pod_went_unwatched),
    row(&teardown::ASK_TAGS, ProbeSnapshot, deleted_without_pods),
    of("hibernate", &teardown::COLLECT_TAGS, DeleteSnapshot, deleted_with_tag),
    of("latest", &teardown::COLLECT_TAGS, DeleteSnapshot, deleted_with_latest),
    row(&teardown::REMOVE_FINALIZER, RemoveFinalizer, deleted_without_pods),
    row(&teardown::ORPHAN, RemoveFinalizer, orphaned),
    row(&status::PUBLISH, PatchStatus, settled_but_for_status),
    after(&[(CreatePod, Class::NamespaceTerminating)], &namespace::LOOK, ReadLive, "at-once", empty),
    after(&[(AddFinalizer, Class::Conflict)], &answers::LOOK_AGAIN, ReadLive, "object", unclaimed),
    after(&[(CreatePod, Class::AlreadyExists)], &answers::LOOK_AGAIN, ReadLive, "pod", empty),
    after(&[(DeletePod, Class::Unknown)], &answers::LOOK_AGAIN, ReadLive, "deleted", too_many),
    after(&[(RemoveFinalizer, Class::Unknown)], &answers::LOOK_AGAIN, ReadLive, "released", deleted_without_pods),
];

/// Rules that only ever wait, stop, say something, or stand in another's place.
pub const SILENT: &[&str] = &[
    "freshness/gone",
    "freshness/await-own-writes",
    "teardown/not-held",
    "teardown/await-pods",
    "teardown/node-lost",
    "teardown/left-behind",
    "teardown/tags-remain",
    "teardown/tell-first",
    "teardown/contested-stays",
    "teardown/latest-stays",
    "namespace/terminating",
    "namespace/retry",
    "namespace/blind",
    "left-alone/unsupported",
    "paused/hands-off",
    "paused/deletion-waits",
    "oddity/invalid-spec",
    "oddity/clamped",
    "oddity/name-too-long",
    "oddity/corrupt-annotation",
    "oddity/name-mismatch",
    "answer/unreadable",
    "rollout/unreadable-spec",
    "rebuild/failed-but-running",
    "rebuild/back-off",
    "rebuild/await-remedy",
    "rebuild/await-word",
    "rebuild/history-unreadable",
    "rebuild/await-node",
    "main/await-ready",
    "oddity/no-image",
    "sub-agents/await-main",
    "sub-agents/await-ready",
    "sub-agents/split",
    "toolboxes/await-ready",
    "seat/await-predecessor",
    "seat/name-too-long",
    "seat/name-conflict",
    "seat/node-lost",
    "seat/foreign-pod",
    "seat/snapshot-found",
    "seat/await-budget",
    "seat/exhausted",
    "rollout/takes-effect-later",
    "rollout/await-turn",
    "rollout/snapshot-found",
    "rollout/tell-first",
    "sitting/node-unavailable",
    "sitting/unschedulable",
    "sitting/recreate-needed",
    "answer/moved-twice",
    "answer/await-quota",
    "answer/await-permission",
    "answer/await-admission",
    "answer/await-edit",
    "answer/await-server",
    "answer/await-registry",
    "answer/fenced",
    "answer/undone",
    "answer/object-gone",
    "status/pace",
];

fn agent(replicas: i64) -> Value {
    json!({ "agent": { "image": "img", "replicas": replicas } })
}
fn with_toolbox() -> Value {
    json!({ "agent": { "image": "img" }, "toolboxes": [{ "name": "box", "image": "img" }] })
}
fn toolbox() -> Role {
    Role::Toolbox("box".to_owned())
}

/// A set with these pods, all Ready.
fn with(spec: Value, roles: &[Role]) -> World {
    let mut world = World::of(spec);
    for role in roles {
        world.add_pod(role, State::Ready);
    }
    world
}

/// The same after the operator has written its status: nothing is left to do.
fn settled(spec: Value, roles: &[Role]) -> Stage {
    let mut stage = Stage::new(with(spec, roles));
    stage.drive(std::time::Duration::from_secs(5), &mut crate::common::stage::plainly);
    stage.sent.clear();
    stage
}

fn unclaimed() -> Stage {
    let mut world = World::of(agent(0));
    world.edit(|set| drop(set["metadata"].as_object_mut().expect("metadata").remove("finalizers")));
    Stage::new(world)
}
fn empty() -> Stage {
    Stage::new(World::of(agent(0)))
}
fn unstamped() -> Stage {
    let mut world = with(agent(0), &[Role::Main]);
    world.edit_pod("demo-0", |pod| pod["metadata"]["annotations"][keys::GENERATION] = json!("0"));
    Stage::new(world)
}
fn unlabelled() -> Stage {
    let mut world = with(agent(0), &[Role::Main]);
    world.edit_pod("demo-0", |pod| pod["metadata"]["labels"][keys::ROLE] = json!("butler"));
    Stage::new(world)
}
fn disappeared(spec: Value, roles: &[Role], pod: &str) -> Stage {
    let mut stage = settled(spec, roles);
    stage.world.pods.remove(pod);
    stage
}
fn main_disappeared() -> Stage {
    disappeared(agent(0), &[Role::Main], "demo-0")
}
fn main_hidden() -> Stage {
    let mut stage = settled(agent(0), &[Role::Main]);
    stage.world.hidden.insert("demo-0".to_owned());
    stage
}
fn main_hidden_and_leaving() -> Stage {
    let mut stage = main_hidden();
    stage.world.edit_pod("demo-0", |pod| pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:20:00Z"));
    stage
}
fn sub_agent_missing() -> Stage {
    Stage::new(with(agent(1), &[Role::Main]))
}
fn sub_agent_disappeared() -> Stage {
    disappeared(agent(1), &[Role::Main, Role::SubAgent(1)], "demo-1")
}
fn too_many() -> Stage {
    Stage::new(with(agent(0), &[Role::Main, Role::SubAgent(1)]))
}
/// It waits for a node that the main agent has left.
fn sub_agent_pinned_elsewhere() -> Stage {
    let mut world = with(agent(1), &[Role::Main]);
    let pod = world.add_pod(&Role::SubAgent(1), State::Unbound);
    let term = json!({ "matchExpressions": [{ "key": keys::HOSTNAME, "operator": "In", "values": ["gone"] }] });
    let required = json!({ "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": [term] } });
    world.edit_pod(&pod, |pod| pod["spec"]["affinity"] = json!({ "nodeAffinity": required }));
    world.frozen.insert(pod);
    Stage::new(world)
}
fn toolbox_missing() -> Stage {
    Stage::new(with(with_toolbox(), &[Role::Main]))
}
fn static_toolbox_missing() -> Stage {
    let fixed = json!({ "name": "box", "mode": "static", "staticIP": "10.0.0.9", "staticVMID": "vm-9" });
    Stage::new(with(json!({ "agent": { "image": "img" }, "toolboxes": [fixed] }), &[Role::Main]))
}
fn toolbox_disappeared() -> Stage {
    disappeared(with_toolbox(), &[Role::Main, toolbox()], "demo-box")
}
fn toolbox_unlisted() -> Stage {
    Stage::new(with(agent(0), &[Role::Main, toolbox()]))
}
fn foreign_main() -> Stage {
    let mut world = World::of(agent(0));
    let pod = world.add_pod(&Role::Main, State::Ready);
    world.edit_pod(&pod, |pod| pod["metadata"]["ownerReferences"] = json!([]));
    world.frozen.insert(pod.clone());
    world.hidden.insert(pod);
    let mut stage = Stage::new(world);
    stage.drive(std::time::Duration::from_secs(1), &mut crate::common::stage::plainly);
    stage.mono += std::time::Duration::from_secs(600);
    stage.sent.clear();
    stage
}
fn node_is_back() -> Stage {
    let mut world = with(agent(0), &[Role::Main]);
    world.edit(|set| set["metadata"]["annotations"][keys::ACCEPT_NODE_LOSS] = json!(NODE));
    Stage::new(world)
}
fn policy_edited() -> Stage {
    let mut world = with(agent(0), &[Role::Main]);
    world.edit(|set| set["spec"]["snapshotPolicy"] = json!("never"));
    world.edit_pod("demo-0", |pod| pod["metadata"]["annotations"][keys::GENERATION] = json!("2"));
    Stage::new(world)
}
fn older_operator() -> Stage {
    let mut world = with(agent(0), &[Role::Main]);
    world.edit_pod("demo-0", |pod| {
        pod["metadata"]["annotations"].as_object_mut().expect("annotations").remove(keys::TEMPLATE);
    });
    Stage::new(world)
}
fn gone_and_unwanted() -> Stage {
    let mut stage = disappeared(agent(1), &[Role::Main, Role::SubAgent(1)], "demo-1");
    stage.world.edit(|set| set["spec"]["agent"]["replicas"] = json!(0));
    stage
}
fn image_edited() -> Stage {
    let mut world = with(agent(0), &[Role::Main]);
    world.edit(|set| set["spec"]["agent"]["image"] = json!("img2"));
    world.edit_pod("demo-0", |pod| pod["metadata"]["annotations"][keys::GENERATION] = json!("2"));
    Stage::new(world)
}
fn failed(spec: Value, roles: &[Role], pod: &str) -> World {
    let mut world = with(spec, roles);
    world.set_state(pod, State::Failed);
    world
}
fn sub_agent_failed() -> Stage {
    Stage::new(failed(agent(1), &[Role::Main, Role::SubAgent(1)], "demo-1"))
}
fn main_failed() -> Stage {
    Stage::new(failed(agent(0), &[Role::Main], "demo-0"))
}
fn toolbox_failed() -> Stage {
    Stage::new(failed(with_toolbox(), &[Role::Main, toolbox()], "demo-box"))
}
fn charged(count: u32, uid: &str) -> Stage {
    let mut world = failed(agent(1), &[Role::Main, Role::SubAgent(1)], "demo-1");
    let uid = if uid.is_empty() { world.pods["demo-1"]["metadata"]["uid"].clone() } else { json!(uid) };
    let entry = json!({ "1": { "count": count, "lastDeleted": "2026-01-01T00:16:00Z", "uid": uid, "generation": 1 } });
    world.edit(|set| set["metadata"]["annotations"] = json!({ keys::REBUILD_HISTORY: entry.to_string() }));
    Stage::new(world)
}
fn failed_and_charged() -> Stage {
    charged(1, "")
}
fn failed_too_often() -> Stage {
    charged(4, "an-earlier-one")
}
fn given_up_and_up() -> Stage {
    let mut world = with(agent(0), &[Role::Main]);
    world.edit_pod("demo-0", |pod| pod["metadata"]["annotations"][keys::DEAD_LETTER] = json!("true"));
    Stage::new(world)
}
fn empty_and_refused() -> Stage {
    let mut stage = empty();
    stage.sync();
    let mut once = true;
    stage.pass(&mut |world, action, attempt| {
        let refused = attempt.action == CreatePod && std::mem::take(&mut once);
        let look = attempt.action == ReadLive && attempt.target == "namespace";
        let _ = (world, action);
        let class = if refused { Class::NamespaceTerminating } else { Class::Unavailable };
        (refused || look).then(|| cocoon_operator::core::outcome::Outcome::of(class))
    });
    stage.mono += std::time::Duration::from_secs(60);
    stage.sent.clear();
    stage
}
fn namespace_going() -> Stage {
    let mut world = with(agent(0), &[Role::Main]);
    world.frozen.insert("demo-0".to_owned());
    world.edit_pod("demo-0", |pod| pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:20:00Z"));
    let namespace = world.namespace.as_mut().expect("a namespace");
    namespace["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:20:00Z");
    Stage::new(world)
}
fn marked(mut world: World) -> Stage {
    world.delete_set();
    Stage::new(world)
}
fn remembered(mut world: World) -> World {
    world.edit(|set| set["metadata"]["annotations"] = json!({ keys::DELETE_VM_NAMES: "vk-ns-demo-0" }));
    world
}
fn deleted() -> Stage {
    marked(with(agent(0), &[Role::Main]))
}
fn deleted_and_leaving() -> Stage {
    let mut world = with(agent(0), &[Role::Main]);
    world.edit_pod("demo-0", |pod| pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:20:00Z"));
    marked(world)
}
fn deleted_and_remembered() -> Stage {
    marked(remembered(with(agent(0), &[Role::Main])))
}
fn deleted_with_hidden_pod() -> Stage {
    let mut world = remembered(with(agent(0), &[Role::Main]));
    world.hidden.insert("demo-0".to_owned());
    marked(world)
}
fn deleted_without_pods() -> Stage {
    marked(World::of(agent(0)))
}
fn deleted_with_tag() -> Stage {
    let mut world = World::of(agent(0));
    world.tags.insert(format!("vk-ns-{SET}-0:hibernate"), "sha256:d".to_owned());
    marked(world)
}
fn deleted_with_latest() -> Stage {
    let mut spec = agent(0);
    spec["snapshotPolicy"] = json!("never");
    let mut world = World::of(spec);
    world.tags.insert(format!("vk-ns-{SET}-0:latest"), "sha256:d".to_owned());
    marked(world)
}
fn orphaned() -> Stage {
    let mut world = with(agent(0), &[Role::Main]);
    world.edit(|set| set["metadata"]["finalizers"] = json!(["orphan", keys::SET_FINALIZER]));
    world.edit_pod("demo-0", |pod| pod["metadata"]["ownerReferences"] = json!([]));
    assert!(world.nodes.contains_key(NODE));
    marked(world)
}
fn settled_but_for_status() -> Stage {
    Stage::new(with(agent(0), &[Role::Main]))
}
