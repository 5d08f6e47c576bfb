//! What a person sees of the cluster: a line whenever a set or a pod has become something else.

use super::super::paint::Paint;
use super::until::{SETS, degraded, is_ready};
use crate::core::api::set_status::SetStatus;
use crate::core::contract::lifecycle::{Lifecycle, State};
use crate::core::contract::{Annotations, keys};
use crate::core::meta;
use crate::core::oddity::excerpt;
use crate::sim::world::World;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// Messages are cut after this: the whole of them is one `curl` away.
const LONGEST: usize = 160;

/// How a line is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mood {
    /// On its way.
    Under,
    /// As it should be.
    Well,
    /// Somebody should look.
    Ill,
    /// Nothing is left of it.
    Gone,
}

/// What was last said of each object.
#[derive(Debug)]
pub(super) struct Progress {
    paint: Paint,
    said: BTreeMap<String, String>,
}

impl Progress {
    /// Nothing was said yet.
    pub(super) fn new(paint: Paint) -> Self {
        Self { paint, said: BTreeMap::new() }
    }

    /// The lines for what is new since the last look.
    pub(super) fn look(&mut self, world: &World, since_start: Duration) -> Vec<String> {
        let mut now = BTreeMap::new();
        for pod in world.store.objects("pods", None) {
            now.insert(format!("pod {}", place(pod)), pod_state(pod));
        }
        for set in world.store.objects(SETS, None) {
            now.insert(place(set), set_state(set));
        }
        let mut lines = Vec::new();
        let mut gone: Vec<String> = self.said.keys().filter(|what| !now.contains_key(*what)).cloned().collect();
        // Pods before sets: what happens to a set is what became of its pods.
        gone.sort_by_key(|what| !what.starts_with("pod "));
        for what in gone {
            self.said.remove(&what);
            lines.push(self.line(since_start, &what, "gone", Mood::Gone));
        }
        let mut all: Vec<_> = now.into_iter().collect();
        all.sort_by_key(|(what, _)| !what.starts_with("pod "));
        for (what, (state, mood)) in all {
            if self.said.get(&what) != Some(&state) {
                lines.push(self.line(since_start, &what, &state, mood));
                self.said.insert(what, state);
            }
        }
        lines
    }

    fn line(&self, since_start: Duration, what: &str, state: &str, mood: Mood) -> String {
        let time = self.paint.faint(&format!("{:7.1}s", since_start.as_secs_f64()));
        let (word, rest) = state.split_once(' ').map_or((state, ""), |(word, rest)| (word, rest));
        let word = match mood {
            Mood::Under => word.to_owned(),
            Mood::Well => self.paint.action(word),
            Mood::Ill => self.paint.alarm(word),
            Mood::Gone => self.paint.faint(word),
        };
        format!("{time}  {}  {word} {rest}", self.paint.title(what)).trim_end().to_owned()
    }
}

fn place(object: &Value) -> String {
    format!("{}/{}", meta::text(object, "namespace"), meta::text(object, "name"))
}

fn is_leaving(object: &Value) -> bool {
    !meta::text(object, "deletionTimestamp").is_empty()
}

/// `Running  3/3 agents, 1/1 toolboxes`.
pub(super) fn set_state(set: &Value) -> (String, Mood) {
    let status = SetStatus::read(set.get("status").unwrap_or(&Value::Null));
    let (phase, mood) = match &status.phase {
        _ if is_leaving(set) => ("Terminating".to_owned(), Mood::Under),
        // Left alone, or with a spec of which nothing can be made: it is not on its way to a phase.
        None => match degraded(set) {
            Some(said) => return (excerpt(&said, LONGEST), Mood::Ill),
            None => return ("new".to_owned(), Mood::Under),
        },
        Some(phase) => match phase.as_str() {
            "Running" | "Suspended" => (phase.to_string(), Mood::Well),
            "Failed" => (phase.to_string(), Mood::Ill),
            _ => (phase.to_string(), Mood::Under),
        },
    };
    let mut state = format!("{phase}  {}/{} agents", status.ready_agents, status.desired_agents);
    if status.desired_toolboxes > 0 {
        state += &format!(", {}/{} toolboxes", status.ready_toolboxes, status.desired_toolboxes);
    }
    match degraded(set) {
        Some(said) => (format!("{state}: {}", excerpt(&said, LONGEST)), Mood::Ill),
        None => (state, mood),
    }
}

/// `Ready on node-a (vm vk-default-demo-0)`.
pub(super) fn pod_state(pod: &Value) -> (String, Mood) {
    let text = |pointer: &str| pod.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let annotations: Annotations = meta::map(pod, "annotations", |_| true);
    let vm = match annotations.get(keys::VM_NAME) {
        Some(vm) if !vm.is_empty() => format!(" (vm {vm})"),
        _ => String::new(),
    };
    let node = match text("/spec/nodeName") {
        "" => String::new(),
        node => format!(" on {node}"),
    };
    let lifecycle = Lifecycle::read(&annotations);
    if is_leaving(pod) {
        return (format!("Terminating{node}"), Mood::Under);
    }
    match (text("/status/phase"), &lifecycle.state) {
        ("Failed", _) | (_, State::Failed) => {
            let words = [lifecycle.message.as_str(), text("/status/message"), text("/status/reason")];
            let said = words.iter().find(|words| !words.is_empty()).copied().unwrap_or("no reason is given");
            (format!("Failed{node}: {}", excerpt(said, LONGEST)), Mood::Ill)
        }
        ("Succeeded", _) => (format!("Succeeded{node}"), Mood::Ill),
        _ if is_ready(pod) => (format!("Ready{node}{vm}"), Mood::Well),
        (_, State::Creating) => (format!("Creating{node}{vm}"), Mood::Under),
        (phase, _) if node.is_empty() => match unscheduled(pod) {
            Some(said) => (format!("Unschedulable: {}", excerpt(&said, LONGEST)), Mood::Ill),
            None if phase.is_empty() => ("Pending".to_owned(), Mood::Under),
            None => (phase.to_owned(), Mood::Under),
        },
        (phase, _) => (format!("{phase}{node}"), Mood::Under),
    }
}

/// Why no node takes it.
fn unscheduled(pod: &Value) -> Option<String> {
    let conditions = pod.pointer("/status/conditions")?.as_array()?;
    let text = |one: &Value, key: &str| one.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let refused = |one: &&Value| text(one, "type") == "PodScheduled" && text(one, "status") == "False";
    conditions.iter().find(refused).map(|one| text(one, "message"))
}
