//! One action and its answer in a few words.

use super::words::listed;
use crate::core::action::{Action, Change, Live, MetaPatch, Question, Subject, Want};
use crate::core::api::condition::Condition;
use crate::core::api::set_status::SetStatus;
use crate::core::cocoonset::observed::NodeFacts;
use crate::core::contract::keys;
use crate::core::control::flow::HELD_BACK;
use crate::core::control::pass::DRY_RUN;
use crate::core::meta;
use crate::core::oddity::excerpt;
use crate::core::outcome::{Answer, Class, Outcome};
use serde_json::Value;

/// Said of one thing; what is said alike of several is one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Phrase {
    mark: char,
    noun: &'static str,
    /// What it is about.
    pub name: String,
    detail: String,
    answer: String,
}

impl Phrase {
    /// True where the head of the rule says it all: a status written without trouble.
    pub fn is_told_by_its_head(&self) -> bool {
        self.noun == "status" && self.answer.is_empty() && !self.detail.contains("Degraded")
    }
    /// Whether the two differ in the name alone.
    pub fn is_like(&self, other: &Self) -> bool {
        let nothing = |phrase: &Self| Self { name: String::new(), ..phrase.clone() };
        !self.name.is_empty() && nothing(self) == nothing(other)
    }
    /// The line for these names.
    pub fn line(&self, names: &[String]) -> String {
        let mut line = format!("{} {}", self.mark, self.noun);
        if !self.name.is_empty() {
            if !self.noun.is_empty() {
                line.push(' ');
            }
            line.push_str(&listed(names));
        }
        line.push_str(&self.detail);
        if !self.answer.is_empty() {
            line.push_str("  → ");
            line.push_str(&self.answer);
        }
        line
    }
}

/// What was done, and what came of it.
pub fn phrase(subject: &Subject, action: &Action, outcome: &Outcome) -> Phrase {
    let (mark, noun, name, detail) = match &action.want {
        Want::Ask(question) => asked(subject, question),
        Want::Change(change) => changed(change),
        Want::Announce(told) => {
            let kind = if told.warning { "Warning" } else { "Normal" };
            ('!', "event", String::new(), format!(" {kind} {}: {}", told.reason, excerpt(&told.message, 120)))
        }
        Want::Wait(_) => ('.', "", String::new(), String::new()),
    };
    Phrase { mark, noun, name, detail, answer: answered(action, outcome) }
}

fn asked(subject: &Subject, question: &Question) -> (char, &'static str, String, String) {
    match question {
        Question::ProbeSnapshot { vm, tag } => ('?', "tag", format!("{vm}:{tag}"), String::new()),
        Question::ReadLive(live) => ('?', "", live.spelled(subject), String::new()),
    }
}

fn changed(change: &Change) -> (char, &'static str, String, String) {
    let none = String::new;
    match change {
        Change::AddFinalizer { .. } => ('+', "finalizer", none(), none()),
        Change::RemoveFinalizer { .. } => ('-', "finalizer", none(), none()),
        Change::CreatePod { pod, manifest, dry_run } => {
            let mark = if *dry_run { '?' } else { '+' };
            (mark, "pod", pod.clone(), created(manifest, *dry_run))
        }
        Change::DeletePod { pod, .. } => ('-', "pod", pod.clone(), none()),
        Change::PatchPod { pod, patch, .. } => ('~', "pod", pod.clone(), format!(": {}", keys_of(patch))),
        Change::PatchObject { annotations, .. } => {
            let patch = MetaPatch { annotations: annotations.clone(), ..MetaPatch::default() };
            ('~', "set", none(), format!(": {}", keys_of(&patch)))
        }
        Change::PatchStatus { status, .. } => ('~', "status", none(), format!(": {}", status_line(status))),
        Change::DeleteSnapshot { vm, tag, .. } => ('-', "tag", format!("{vm}:{tag}"), none()),
    }
}

fn created(manifest: &Value, dry_run: bool) -> String {
    let annotation =
        |key: &str| manifest.pointer("/metadata/annotations").and_then(|map| map.get(key)).and_then(Value::as_str);
    let mut detail = String::new();
    if let Some(source) = annotation(keys::FORK_FROM) {
        detail.push_str(&format!(", a fork of {source}"));
    }
    if annotation(keys::RESTORE).is_some() {
        detail.push_str(", restoring its snapshot");
    }
    if dry_run {
        detail.push_str(", dry run");
    }
    detail
}

fn keys_of(patch: &MetaPatch) -> String {
    let entries = patch.labels.iter().chain(&patch.annotations);
    let said = entries.map(|(key, value)| {
        let short = keys::PREFIXES.iter().find_map(|prefix| key.strip_prefix(prefix)).unwrap_or(key);
        match value {
            None => format!("{short} removed"),
            Some(value) if value.len() <= 40 => format!("{short}={value}"),
            Some(value) => format!("{short}={}", excerpt(value, 40)),
        }
    });
    said.collect::<Vec<_>>().join(", ")
}

fn status_line(status: &Value) -> String {
    let read = SetStatus::read(status);
    let phase = read.phase.as_ref().map_or("no phase", |phase| phase.as_str());
    let mut line = phase.to_owned();
    let degraded = read.conditions.iter().find(|condition| is_degraded(condition));
    if let Some(condition) = degraded {
        line.push_str(&format!(", Degraded: {}", condition.reason));
    }
    line
}

fn is_degraded(condition: &Condition) -> bool {
    condition.kind == "Degraded" && condition.status == "True"
}

/// Empty where the answer is simply "done".
fn answered(action: &Action, outcome: &Outcome) -> String {
    match (&action.want, outcome.class) {
        (Want::Ask(Question::ReadLive(live)), Class::Done) => read(live, &outcome.answer),
        (Want::Change(Change::DeleteSnapshot { .. }), Class::Absent) if outcome.answer != Answer::NotThere => {
            String::new()
        }
        (_, Class::Done) => String::new(),
        (Want::Announce(_), Class::Throttled) if outcome.message.starts_with(HELD_BACK) => "held back".to_owned(),
        (_, Class::Fenced) if outcome.message.starts_with(DRY_RUN) => "not sent (dry run)".to_owned(),
        (_, class) => class.name().to_owned(),
    }
}

fn read(live: &Live, answer: &Answer) -> String {
    match (live, answer) {
        (Live::Namespace, Answer::Object(object)) => {
            object.pointer("/status/phase").and_then(Value::as_str).unwrap_or("no phase").to_owned()
        }
        (Live::Node(_), Answer::Object(object)) => {
            if NodeFacts::of(object).ready { "Ready" } else { "not Ready" }.to_owned()
        }
        (Live::Pods, Answer::List { items, .. }) => match items.len() {
            0 => "none".to_owned(),
            _ => items.iter().map(|pod| meta::text(pod, "name")).collect::<Vec<_>>().join(", "),
        },
        (Live::Pod(_) | Live::Object, Answer::Object(object)) => {
            if meta::time(object, "deletionTimestamp").is_some() { "being deleted" } else { "there" }.to_owned()
        }
        (_, Answer::Nothing | Answer::Object(_) | Answer::List { .. } | Answer::Snapshot { .. } | Answer::NotThere) => {
            String::new()
        }
    }
}
