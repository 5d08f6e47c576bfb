//! A recording of one object as a story: the cluster as its first pass found it, then what happened to it in between.
//! The story is played once, and says whether the same is done in it.

use super::happenings::Counts;
use super::recorded_changes::{Change, between, is_seat, own_writes};
use super::runner;
use super::script::Script;
use crate::core::contract::keys;
use crate::core::control::kinds::Kind;
use crate::core::control::mirror::Held;
use crate::core::meta;
use crate::core::recording::{End, Line};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// A story, and what a person should know of it.
#[derive(Clone, Debug)]
pub struct Written {
    /// The scenario file.
    pub text: String,
    /// For stderr.
    pub notes: Vec<String>,
    /// What came of playing it.
    pub played: Verdict,
}

/// What came of playing a story that was written from a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Everything is done in it that was recorded, in the same order.
    Same,
    /// It plays, and something else is done.
    Differs,
    /// It cannot be played.
    Fails,
}

/// One recorded pass, and what was seen at its start.
pub type Passed = (Line, Vec<Held>);

/// The story of these passes, which are all of one object. An `Err` says why there is none.
pub fn scenario(passes: &[Passed]) -> Result<Written, String> {
    let (Some((first, held)), Some((last, _))) = (passes.first(), passes.last()) else {
        return Err("no pass of that object is recorded there; expected at least one".to_owned());
    };
    let names: BTreeSet<String> = passes.iter().map(|(line, _)| line.object()).collect();
    if names.len() > 1 {
        let few: Vec<&str> = names.iter().take(5).map(String::as_str).collect();
        return Err(format!(
            "{} objects are recorded there; expected --object to name one ({})",
            names.len(),
            few.join(", ")
        ));
    }
    let mut lives: Vec<&str> = Vec::new();
    for (line, _) in passes {
        if !lives.contains(&line.uid.as_str()) {
            lives.push(&line.uid);
        }
    }
    if lives.len() > 1 {
        return Err(format!(
            "{} was made anew while it was recorded, so that it has {} uids; expected --uid to name one (in their order: {})",
            first.object(),
            lives.len(),
            lives.join(", ")
        ));
    }
    let story = format!("What was recorded of {} from {} to {}.", first.object(), first.now, last.now);
    let script = json!({
        "story": story, "given": given(first, held)?, "when": when(passes), "then": then(last),
    });
    let text = yaml(&script)?;
    let (note, played) = played(&text, passes);
    Ok(Written { text: format!("# {note}\n{text}"), notes: vec![note], played })
}

fn object<'a>(held: &'a [Held], kind: Kind, name: &str) -> Option<&'a Value> {
    held.iter().find(|(of, key, _)| *of == kind && key.name == name).map(|(_, _, object)| object.as_ref())
}

/// The cluster as the first pass found it.
fn given(first: &Line, held: &[Held]) -> Result<Value, String> {
    let set = object(held, Kind::CocoonSets, &first.name).ok_or("the set is not among what was seen")?;
    let mut given = Map::new();
    given.insert("namespace".to_owned(), json!(first.namespace));
    if first.dry_run {
        given.insert("settings".to_owned(), json!({ "dry-run": true }));
    }
    let mut metadata = json!({ "name": first.name, "namespace": first.namespace });
    for field in ["annotations", "labels"] {
        let marks = meta::map(set, field, |_| true);
        if !marks.is_empty() {
            metadata[field] = json!(marks);
        }
    }
    let finalizers = meta::strings(set, "finalizers").unwrap_or_default();
    let pods = given_pods(first, held);
    // What the operator has seen through already it brings up again, which gives everything its own uids. Nothing is
    // brought up while the set is paused.
    let is_paused = meta::map(set, "annotations", |key| key == keys::PAUSED).values().any(|word| word == "true");
    let settled = first.turns.iter().all(|turn| turn.outcomes.is_empty()) && !pods.is_empty() && !is_paused;
    let mut given_set = json!({
        "apiVersion": keys::API_VERSION, "kind": keys::SET_KIND,
        "spec": set.get("spec").cloned().unwrap_or_default(),
    });
    if !settled {
        if !finalizers.is_empty() {
            metadata["finalizers"] = json!(finalizers);
        }
        if let Some(status) = set.get("status") {
            given_set["status"] = status.clone();
        }
        if !pods.is_empty() {
            given.insert("pods".to_owned(), Value::Object(pods));
        }
    }
    given_set["metadata"] = metadata;
    given.insert("set".to_owned(), given_set);
    let nodes: Map<String, Value> = held
        .iter()
        .filter(|(kind, ..)| *kind == Kind::Nodes)
        .map(|(_, key, _)| (key.name.clone(), json!({})))
        .collect();
    if !nodes.is_empty() {
        given.insert("nodes".to_owned(), Value::Object(nodes));
    }
    if settled {
        given.insert("settled".to_owned(), json!(true));
    }
    Ok(Value::Object(given))
}

/// Pods that were there, as the story language has them.
fn given_pods(first: &Line, held: &[Held]) -> Map<String, Value> {
    let mut pods = Map::new();
    let seats = held.iter().filter(|(kind, key, _)| *kind == Kind::Pods && is_seat(&first.name, held, &key.name));
    for (_, key, pod) in seats {
        let ready = pod.pointer("/status/conditions").and_then(Value::as_array).is_some_and(|all| {
            all.iter().any(|condition| {
                condition.get("type") == Some(&json!("Ready")) && condition.get("status") == Some(&json!("True"))
            })
        });
        let node = pod.pointer("/spec/nodeName").and_then(Value::as_str).unwrap_or_default();
        let mut form = json!({ "of": first.name, "node": node, "ready": ready });
        match meta::controller(pod) {
            Some(owner) if owner.uid == first.uid => {}
            Some(owner) => form["owner"] = json!(format!("{}/{}", owner.kind, owner.name)),
            None => form["owner"] = json!("none"),
        }
        pods.insert(key.name.clone(), form);
    }
    pods
}

/// What happened, and how long it was in between.
fn when(passes: &[Passed]) -> Vec<Value> {
    let mut steps = Vec::new();
    let own = own_writes(passes);
    let mut before: Option<&Passed> = None;
    let mut waited = 0_i64;
    let mut going = false;
    for pass in passes {
        if let Some((line, _)) = before {
            waited = waited.saturating_add(pass.0.now.duration_since(line.now).as_millis().try_into().unwrap_or(0));
        }
        for Change { step, ends } in between(before, pass, &own) {
            if ends && going {
                continue;
            }
            going |= ends;
            // A fault waits for its call; everything else has its time.
            if waited > 0 && step.get("fault").is_none() && step.get("overtake").is_none() {
                steps.push(json!({ "wait": format!("{waited}ms") }));
                waited = 0;
            }
            steps.push(step);
        }
        before = Some(pass);
    }
    steps.push(json!("settle"));
    lasting(&mut steps, passes);
    steps
}

/// What was refused to the end goes on being refused: the first such fault stands for all.
fn lasting(steps: &mut Vec<Value>, passes: &[Passed]) {
    let last = deeds(passes);
    let is_open = |step: &Value| {
        let text = |key: &str| step["fault"].get(key).and_then(Value::as_str).unwrap_or_default();
        // The last call about it came to this answer.
        let about = last.iter().rfind(|deed| deed.split(' ').nth(2) == Some(text("name")));
        text("verb") == "create" && about.is_some_and(|deed| deed.ends_with(&format!(" {}", text("answer"))))
    };
    let mut met: Vec<Value> = Vec::new();
    steps.retain_mut(|step| {
        if !is_open(step) {
            return true;
        }
        let fresh = !met.contains(step);
        met.push(step.clone());
        step["fault"]["times"] = json!(1_000);
        fresh
    });
}

/// What was so in the end, as far as the recording says.
fn then(last: &Line) -> Vec<String> {
    let actions = |name: &str| {
        last.turns
            .iter()
            .flat_map(|turn| turn.actions.iter().zip(&turn.outcomes))
            .any(|(action, _)| action["action"] == name)
    };
    let mut claims = Vec::new();
    if actions("RemoveFinalizer") {
        claims.push("set is gone".to_owned());
    }
    match &last.end {
        End::Rest { .. } => claims.push("nothing gave up".to_owned()),
        End::GaveUp { .. } | End::Panicked { .. } => claims.push("errors is 1".to_owned()),
    }
    claims
}

/// Each thing that was done: the action and its target, but for what only says how things stand. A status is written
/// whenever a node is a moment faster or slower.
fn deeds(passes: &[Passed]) -> Vec<String> {
    let told = ["PatchStatus", "EmitEvent"];
    let mut deeds = Vec::new();
    for (line, _) in passes {
        for (action, outcome) in line.turns.iter().flat_map(|turn| turn.actions.iter().zip(&turn.outcomes)) {
            let text = |key: &str| action.get(key).and_then(Value::as_str).unwrap_or_default();
            if told.contains(&text("action")) {
                continue;
            }
            let target = match text("action") {
                "CreatePod" => {
                    action.pointer("/pod/metadata/name").and_then(Value::as_str).unwrap_or_default().to_owned()
                }
                "ReadLive" => text("of").to_owned(),
                "ProbeSnapshot" | "DeleteSnapshot" => format!("{}:{}", text("vm"), text("tag")),
                _ => text("pod").to_owned(),
            };
            deeds.push(format!("{} {} {target} {}", text("rule"), text("action"), outcome.class));
        }
    }
    deeds
}

/// Plays the story, and holds what is done in it against the recording.
fn played(text: &str, passes: &[Passed]) -> (String, Verdict) {
    let script = match Script::parse("the scenario", text) {
        Ok(script) => script,
        Err(error) => return (format!("does not read: {error}"), Verdict::Fails),
    };
    let played = match runner::play(&script) {
        Ok(played) => played,
        Err(error) => return (format!("does not play: {error}"), Verdict::Fails),
    };
    let subject = passes.first().map(|(line, _)| line.subject());
    let counts = Counts(&played.happenings);
    let mine = counts.passes().filter(|pass| {
        subject.as_ref().is_some_and(|subject| pass.subject.name == subject.name && pass.subject.kind == subject.kind)
    });
    let as_lines: Vec<Passed> = mine
        .filter_map(|pass| {
            let mut line = passes.first()?.0.clone();
            line.turns = pass
                .all_turns()
                .map(|turn| crate::core::recording::Step {
                    actions: turn.decision.actions_json(&pass.subject),
                    outcomes: turn.outcomes.clone(),
                })
                .collect();
            Some((line, Vec::new()))
        })
        .collect();
    let (recorded, now) = (deeds(passes), deeds(&as_lines));
    match recorded.iter().zip(&now).position(|(was, is)| was != is) {
        None if recorded.len() <= now.len() => {
            let more = now.len() - recorded.len();
            let goes_on = if more > 0 { format!(", and goes on with {more} more") } else { String::new() };
            (
                format!("played in memory, it does the same {} things in the same order{goes_on}", recorded.len()),
                Verdict::Same,
            )
        }
        found => {
            let at = found.unwrap_or(recorded.len().min(now.len()));
            let told = |all: &[String]| all.get(at).cloned().unwrap_or_else(|| "nothing more".to_owned());
            let (was, is) = (told(&recorded), told(&now));
            let all = recorded.len();
            (
                format!("played in memory, it is the same for {at} of {all} things: recorded {was}; played {is}"),
                Verdict::Differs,
            )
        }
    }
}

/// As YAML that people edit: the steps and claims one a line, the rest as it comes.
fn yaml(script: &Value) -> Result<String, String> {
    let flow = |value: &Value| serde_json::to_string(value).map_err(|error| error.to_string());
    let mut text = format!("story: {}\ngiven:\n", flow(&script["story"])?);
    for (key, value) in script["given"].as_object().into_iter().flatten() {
        text += &format!("  {key}: {}\n", flow(value)?);
    }
    for part in ["when", "then"] {
        text += &format!("{part}:\n");
        for item in script[part].as_array().into_iter().flatten() {
            text += &format!("  - {}\n", flow(item)?);
        }
    }
    Ok(text)
}
