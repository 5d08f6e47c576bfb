//! The claims of a story, held against what is so in the end.

use super::claim_forms::{Claim, Form};
use super::happenings::{Counts, Happening, PassEnd, fits};
use super::realm::Realm;
use super::setting::Cast;
use crate::core::contract::keys;
use crate::core::control::wake::Key;
use crate::core::meta;
use serde_json::Value;

/// What claims are held against.
pub struct Ground<'a, R> {
    /// The cluster in the end.
    pub world: &'a R,
    /// The tags in the registry in the end.
    pub tags: Vec<String>,
    /// Who the story is about.
    pub cast: &'a Cast,
    /// Everything that happened.
    pub happenings: &'a [Happening],
}

const SETS: &str = "cocoonsets.cocoonset.cocoonstack.io";

impl<R: Realm> Ground<'_, R> {
    /// Whether it holds; if not, what is so instead.
    pub fn check(&self, claim: &Claim) -> Result<(), String> {
        let found = self.found(claim)?;
        let wanted = wanted(claim);
        if found == wanted { Ok(()) } else { Err(format!("`{}` does not hold: {found}", told(claim))) }
    }

    /// What is so, in the words in which the claim wants it; an `Err` where there is nothing to look at.
    fn found(&self, claim: &Claim) -> Result<String, String> {
        match claim.form {
            Form::Phase
            | Form::Condition
            | Form::Reason
            | Form::Message
            | Form::Field
            | Form::FinalizerGone
            | Form::FinalizerThere
            | Form::SetGone => Ok(self.of_set(claim)),
            Form::PodReady
            | Form::PodAbsent
            | Form::PodTerminating
            | Form::PodOn
            | Form::PodField
            | Form::PodReplaced
            | Form::PodKept => Ok(self.of_pod(claim)),
            Form::Pods => Ok(list(self.pods(claim).map(|pod| meta::text(pod, "name")))),
            Form::TagsLeft => Ok(self.tags.len().to_string()),
            Form::Tags => Ok(list(self.tags.iter().cloned())),
            Form::NamespaceGone => {
                Ok(is(self.world.get("namespaces", "", &self.key(claim).namespace).is_none(), "it is there"))
            }
            Form::RefusedCreates
            | Form::RefusedCreatesMost
            | Form::Errors
            | Form::Error
            | Form::Calls
            | Form::CallsMost
            | Form::Answers
            | Form::AnswersMost
            | Form::LastWrites
            | Form::LastPassesMost
            | Form::Event
            | Form::NoEvent
            | Form::EventTimes
            | Form::Fired
            | Form::NotFired
            | Form::FiredTimes
            | Form::FiredMost
            | Form::Before
            | Form::Told
            | Form::NotTold
            | Form::NoGiveUp => Ok(self.of_operator(claim)),
        }
    }

    fn key(&self, claim: &Claim) -> Key {
        self.cast.key(claim.of.as_deref())
    }
    fn set(&self, claim: &Claim) -> Option<&Value> {
        let key = self.key(claim);
        self.world.get(SETS, &key.namespace, &key.name)
    }
    fn pods(&self, claim: &Claim) -> impl Iterator<Item = &Value> {
        let namespace = self.key(claim).namespace;
        self.world.all("pods", None).into_iter().filter(move |pod| meta::text(pod, "namespace") == namespace)
    }

    fn of_set(&self, claim: &Claim) -> String {
        let Some(set) = self.set(claim) else {
            return if claim.form == Form::SetGone { HOLDS.to_owned() } else { "there is no such set".to_owned() };
        };
        let claimed = meta::strings(set, "finalizers").unwrap_or_default().iter().any(|f| f == keys::SET_FINALIZER);
        let condition = |field: &str| condition(set, claim.arg(0), field);
        match claim.form {
            Form::Phase => text_at(set, "/status/phase"),
            Form::Condition => condition("status"),
            Form::Reason => condition("reason"),
            Form::Message => contains(&condition("message"), claim.arg(1)),
            Form::Field => field(set, claim.arg(0)),
            Form::FinalizerGone => is(!claimed, "it bears our finalizer"),
            Form::FinalizerThere => is(claimed, "it does not bear our finalizer"),
            Form::SetGone => "it is there".to_owned(),
            _ => String::new(),
        }
    }

    fn of_pod(&self, claim: &Claim) -> String {
        let (key, name) = (self.key(claim), claim.arg(0));
        let Some(pod) = self.world.get("pods", &key.namespace, name) else {
            return if claim.form == Form::PodAbsent { HOLDS.to_owned() } else { "there is no such pod".to_owned() };
        };
        let deleting = meta::time(pod, "deletionTimestamp").is_some();
        let ready = condition(pod, "Ready", "status") == "True";
        match claim.form {
            Form::PodReady => is(ready && !deleting, "it is not ready"),
            Form::PodAbsent => "it is there".to_owned(),
            Form::PodTerminating => is(deleting, "it is not being deleted"),
            Form::PodOn => text_at(pod, "/spec/nodeName"),
            Form::PodField => field(pod, claim.arg(1)),
            Form::PodReplaced => is(self.cast.is_another(&key.namespace, name, pod), "it is the first of its name"),
            Form::PodKept => is(!self.cast.is_another(&key.namespace, name, pod), "it is another"),
            _ => String::new(),
        }
    }

    fn of_operator(&self, claim: &Claim) -> String {
        let counts = Counts(self.happenings);
        let most = |count: usize| if count <= claim.number() { HOLDS.to_owned() } else { count.to_string() };
        let (first, second) = (claim.arg(0), claim.arg(1));
        match claim.form {
            Form::RefusedCreates => counts.refused_creates().to_string(),
            Form::RefusedCreatesMost => most(counts.refused_creates()),
            Form::Errors => counts.errors().len().to_string(),
            Form::Error => counts.errors().last().map_or("no error", |error| *error).to_owned(),
            Form::Calls => counts.calls(first, second).to_string(),
            Form::CallsMost => most(counts.calls(first, second)),
            Form::Answers => counts.answers(first).to_string(),
            Form::AnswersMost => most(counts.answers(first)),
            Form::LastWrites => counts.last_step().calls("write", "any").to_string(),
            Form::LastPassesMost => most(counts.last_step().passes().count()),
            Form::Event => is(counts.events().contains(first), &list(counts.events().into_iter().map(str::to_owned))),
            Form::NoEvent => is(!counts.events().contains(first), "they do"),
            Form::EventTimes => counts.told(first).to_string(),
            Form::Fired => is(counts.fired(first) > 0, "it did not"),
            Form::NotFired => is(counts.fired(first) == 0, "it did"),
            Form::FiredTimes => counts.fired(first).to_string(),
            Form::FiredMost => most(counts.fired(first)),
            Form::Before => self.before(claim),
            Form::Told => is(counts.notes().any(|note| note.contains(first)), "it is not"),
            Form::NotTold => is(!counts.notes().any(|note| note.contains(first)), "it is"),
            Form::NoGiveUp => {
                let given_up = counts.passes().find_map(|pass| match &pass.end {
                    PassEnd::GaveUp(because) => Some(because.to_string()),
                    PassEnd::Rest(_) | PassEnd::Crashed => None,
                });
                given_up.unwrap_or_else(|| HOLDS.to_owned())
            }
            _ => String::new(),
        }
    }

    fn before(&self, claim: &Claim) -> String {
        let deeds: Vec<_> = Counts(self.happenings).deeds().collect();
        let first = |verb: &str, resource: &str| deeds.iter().position(|deed| fits(deed, verb, resource));
        match (first(claim.arg(0), claim.arg(1)), first(claim.arg(2), claim.arg(3))) {
            (Some(earlier), Some(later)) => is(earlier < later, "it comes after"),
            (None, _) => "the first never happened".to_owned(),
            (_, None) => "the second never happened".to_owned(),
        }
    }
}

/// What is found where a claim without a value of its own holds.
const HOLDS: &str = "holds";

fn is(holds: bool, otherwise: &str) -> String {
    if holds { HOLDS.to_owned() } else { otherwise.to_owned() }
}

fn contains(text: &str, part: &str) -> String {
    is(text.contains(part), text)
}

fn told(claim: &Claim) -> String {
    claim.of.as_ref().map_or_else(|| claim.text.clone(), |of| format!("{of}: {}", claim.text))
}

/// What has to be found for the claim to hold.
fn wanted(claim: &Claim) -> String {
    match claim.form {
        Form::Phase
        | Form::Condition
        | Form::Reason
        | Form::Field
        | Form::PodOn
        | Form::PodField
        | Form::TagsLeft
        | Form::RefusedCreates
        | Form::Errors
        | Form::Error
        | Form::Calls
        | Form::Answers
        | Form::LastWrites
        | Form::EventTimes
        | Form::FiredTimes => claim.args.last().cloned().unwrap_or_default(),
        Form::Pods | Form::Tags => list(claim.arg(0).split(',').map(|name| name.trim().to_owned())),
        Form::Message
        | Form::PodReady
        | Form::PodAbsent
        | Form::PodTerminating
        | Form::PodReplaced
        | Form::PodKept
        | Form::FinalizerGone
        | Form::FinalizerThere
        | Form::SetGone
        | Form::NamespaceGone
        | Form::RefusedCreatesMost
        | Form::CallsMost
        | Form::AnswersMost
        | Form::LastPassesMost
        | Form::Event
        | Form::NoEvent
        | Form::Fired
        | Form::NotFired
        | Form::FiredMost
        | Form::Before
        | Form::Told
        | Form::NotTold
        | Form::NoGiveUp => HOLDS.to_owned(),
    }
}

fn list(names: impl Iterator<Item = String>) -> String {
    let mut names: Vec<String> = names.filter(|name| !name.is_empty()).collect();
    names.sort();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

fn condition(object: &Value, kind: &str, field: &str) -> String {
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    let found = conditions.into_iter().flatten().find(|c| c.get("type").and_then(Value::as_str) == Some(kind));
    found.and_then(|c| c.get(field)).and_then(Value::as_str).unwrap_or("absent").to_owned()
}

fn text_at(object: &Value, pointer: &str) -> String {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or("absent").to_owned()
}

/// A field by its path: `status.readyAgents`, `metadata.annotations[a.b/c]`, `status.agents.0.podName`.
fn field(object: &Value, path: &str) -> String {
    let mut at = object;
    for part in parts(path) {
        let next = match at {
            Value::Array(items) => part.parse::<usize>().ok().and_then(|index| items.get(index)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => at.get(&part),
        };
        match next {
            Some(next) => at = next,
            None => return "absent".to_owned(),
        }
    }
    at.as_str().map_or_else(|| at.to_string(), str::to_owned)
}

fn parts(path: &str) -> Vec<String> {
    let mut parts = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        if let Some((key, after)) = rest.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
            parts.push(key.to_owned());
            rest = after;
        } else {
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            let (key, after) = rest.split_at(end);
            if !key.is_empty() {
                parts.push(key.to_owned());
            }
            rest = after;
        }
        rest = rest.strip_prefix('.').unwrap_or(rest);
    }
    parts
}
