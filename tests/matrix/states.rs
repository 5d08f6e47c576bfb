//! States that rows begin in and that take more than a pod to set up.

use crate::common::stage::Stage;
use crate::common::world::{State, World};
use cocoon_operator::core::contract::keys;
use cocoon_operator::core::contract::names::Role;
use serde_json::json;

fn with_main(annotation: &str, value: &str) -> Stage {
    let mut world = World::of(json!({ "agent": { "image": "img" } }));
    world.add_pod(&Role::Main, State::Ready);
    world.edit(|set| set["metadata"]["annotations"] = json!({ annotation: value }));
    let since = json!("2025-12-31T20:00:00Z");
    world.edit_pod("demo-0", |pod| pod["status"]["conditions"][0]["lastTransitionTime"] = since);
    Stage::new(world)
}

/// One more name than are left alone, none of which anything speaks of.
pub fn many_on_record() -> Stage {
    let names: Vec<String> = (0..33).map(|number| format!("vk-ns-demo-old{number}")).collect();
    with_main(keys::DELETE_VM_NAMES, &names.join(","))
}

/// A main agent that was rebuilt, and has been Ready for hours.
pub fn rebuilt_long_ago() -> Stage {
    let entry = r#"{"main":{"count":2,"lastDeleted":"2025-12-31T19:00:00Z","uid":"an-earlier-one","generation":1}}"#;
    with_main(keys::REBUILD_HISTORY_ROLES, entry)
}

/// A main agent that went while nobody watched: nobody saw its VM end.
pub fn main_went_unwatched() -> Stage {
    let mut world = World::of(json!({ "agent": { "image": "img" } }));
    world.add_pod(&Role::Main, State::Ready);
    let mut before = Stage::new(world);
    before.drive(std::time::Duration::from_secs(60), &mut crate::common::stage::plainly);
    before.world.pods.clear();
    Stage::new(before.world)
}

/// The same, and the set is being deleted.
pub fn deleted_after_its_pod_went_unwatched() -> Stage {
    let mut stage = main_went_unwatched();
    stage.world.delete_set();
    stage
}
