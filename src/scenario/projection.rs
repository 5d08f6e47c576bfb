//! What two stages have to agree on where they cannot agree on every line: step by step, the effects that the operator had
//! on which objects, and how these stand in the end. In which order, how often it looked and what it was told on the way
//! is each stage's own.

use super::happenings::{Deed, Happening};
use super::realm::Realm;
use crate::core::action::{Change, Want};
use crate::core::contract::keys;
use crate::core::control::wake::Key;
use crate::core::meta;
use crate::core::outcome::Effect;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

const SETS: &str = "cocoonsets.cocoonset.cocoonstack.io";

/// How a cluster stands, as far as stages agree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Picture {
    /// Sets, pods and tags, and namespaces that go, each in a line.
    pub lines: BTreeSet<String>,
}

impl Picture {
    /// As it stands now.
    pub fn of(world: &mut impl Realm) -> Self {
        let mut lines: BTreeSet<String> = world.tags().into_iter().map(|tag| format!("tag {tag}")).collect();
        lines.extend(world.all(SETS, None).into_iter().map(set));
        lines.extend(world.all("pods", None).into_iter().map(pod));
        let namespaces = world.all("namespaces", None);
        let going = namespaces.into_iter().filter(|namespace| meta::time(namespace, "deletionTimestamp").is_some());
        lines.extend(going.map(|namespace| format!("namespace {}: going", meta::text(namespace, "name"))));
        Self { lines }
    }
}

fn set(set: &Value) -> String {
    let phase = set.pointer("/status/phase").and_then(Value::as_str).unwrap_or("none");
    let ours = meta::strings(set, "finalizers").unwrap_or_default().iter().any(|one| one == keys::SET_FINALIZER);
    let claimed = if ours { "" } else { ", without our finalizer" };
    format!("set {}: phase {phase}{claimed}{}", Key::of(set), going(set))
}

fn pod(pod: &Value) -> String {
    let conditions = pod.pointer("/status/conditions").and_then(Value::as_array);
    let ready = conditions.into_iter().flatten().any(|one| {
        one.get("type").and_then(Value::as_str) == Some("Ready")
            && one.get("status").and_then(Value::as_str) == Some("True")
    });
    format!("pod {}: {}{}", Key::of(pod), if ready { "ready" } else { "not ready" }, going(pod))
}

fn going(object: &Value) -> &'static str {
    if meta::time(object, "deletionTimestamp").is_some() { ", going" } else { "" }
}

/// The effects of one step, each once.
pub type Effects = BTreeSet<String>;

/// What the operator did in each step that it did not have to do again: created, deleted, patched.
pub fn effects(happenings: &[Happening]) -> Vec<Effects> {
    let mut steps: Vec<Effects> = Vec::new();
    for happening in happenings {
        match happening {
            Happening::Step(_) => steps.push(Effects::new()),
            Happening::Pass(pass) => {
                let Some(step) = steps.last_mut() else { continue };
                step.extend(pass.deeds().filter_map(|deed| effect(&pass.key, &deed)));
            }
            Happening::World { .. } | Happening::Note { .. } => {}
        }
    }
    steps
}

/// What an agent does that steps of a story build on.
const REACHED: [&str; 4] = [" runs", " is ready", " is gone", " is pushed as latest"];

/// What has happened by then that the next step may build on, and how often: effects of the operator, and how far the
/// agents have come.
pub type Marks = BTreeMap<String, usize>;

/// Those of some happenings, added to these.
pub fn mark(marks: &mut Marks, happenings: &[Happening]) {
    for happening in happenings {
        match happening {
            Happening::Pass(pass) => {
                for effect in pass.deeds().filter_map(|deed| effect(&pass.key, &deed)) {
                    *marks.entry(effect).or_default() += 1;
                }
            }
            Happening::World { text, .. } if REACHED.iter().any(|end| text.ends_with(end)) => {
                *marks.entry(text.clone()).or_default() += 1;
            }
            Happening::Step(_) | Happening::World { .. } | Happening::Note { .. } => {}
        }
    }
}

/// What has happened by the end of each step.
pub fn by_step(happenings: &[Happening]) -> Vec<Marks> {
    let begins = |happening: &Happening| matches!(happening, Happening::Step(_));
    let mut so_far = Marks::new();
    let parts = happenings.split(begins).skip(1);
    parts
        .map(|part| {
            mark(&mut so_far, part);
            so_far.clone()
        })
        .collect()
}

fn effect(key: &Key, deed: &Deed<'_>) -> Option<String> {
    // What nobody was told of counts as well: whether it happened is looked at before it is done again.
    if !matches!(deed.outcome.class.effect(), Effect::Happened | Effect::Unsure) {
        return None;
    }
    let Want::Change(change) = &deed.action.want else { return None };
    Some(match change {
        Change::AddFinalizer { .. } => format!("finalizer of {key} added"),
        Change::RemoveFinalizer { .. } => format!("finalizer of {key} removed"),
        Change::CreatePod { dry_run: true, .. } => return None,
        Change::CreatePod { pod, .. } => format!("pod {}/{pod} created", key.namespace),
        Change::DeletePod { pod, .. } => format!("pod {}/{pod} deleted", key.namespace),
        Change::PatchPod { pod, .. } => format!("pod {}/{pod} patched", key.namespace),
        Change::PatchObject { .. } => format!("{key} annotated"),
        Change::DeleteSnapshot { vm, tag, .. } => format!("tag {vm}:{tag} dropped"),
        // How often is each stage's own, and what came of it is in the picture.
        Change::PatchStatus { .. } => return None,
    })
}
