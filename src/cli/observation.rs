//! The one document of a stream that adds what the API server does not hold: time, registry facts, answers, memory.

use super::Failure;
use super::field::Field;
use super::memory::{self, Kept};
use crate::core::action::{ActionKind, Attempt};
use crate::core::classify::classify;
use crate::core::contract::keys;
use crate::core::contract::names::agent_vm;
use crate::core::control::wake::Key;
use crate::core::outcome::{Answer, Class, Outcome};
use crate::core::wire::{Reply, Verb};
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::time::Duration;

/// Of the Observation document.
pub(super) const API_VERSION: &str = "debug.cocoonset.cocoonstack.io/v1alpha1";

/// What the document says.
#[derive(Debug, Default)]
pub(super) struct Observation {
    /// The time to decide at.
    pub now: Option<Timestamp>,
    /// Registry facts, by VM name and tag.
    pub snapshots: BTreeMap<(String, String), Tag>,
    /// What came back in this pass, oldest first.
    pub outcomes: Vec<Given>,
    /// What the operator keeps between passes.
    pub memory: BTreeMap<Key, Kept>,
}

/// What the registry said of one tag.
#[derive(Debug)]
pub(super) struct Tag {
    /// As the classifier would have it.
    pub outcome: Outcome,
    /// When; nothing for now.
    pub checked: Option<Timestamp>,
}

/// One answer.
#[derive(Debug)]
pub(super) struct Given {
    /// `CocoonSet` or `CocoonHibernation`.
    pub kind: &'static str,
    /// Whose pass it belongs to.
    pub key: Key,
    /// What it answers.
    pub attempt: Attempt,
    /// How it was classified.
    pub outcome: Outcome,
}

/// Whether the stream holds an object of this kind and name.
type Holds<'a> = &'a dyn Fn(&str, &Key) -> bool;

impl Observation {
    /// Reads the document. What it says about objects that the stream does not hold is a mistake.
    pub(super) fn read(at: &Field<'_>, holds: Holds<'_>) -> Result<Self, Failure> {
        at.only(&["apiVersion", "kind", "metadata", "now", "snapshots", "outcomes", "memory"])?;
        let now = at.get("now").map(|now| now.time()).transpose()?;
        let mut read = Self { now, ..Self::default() };
        if let Some(snapshots) = at.get("snapshots") {
            for (vm, tags) in snapshots.entries("VM names")? {
                tags.only(&[keys::TAG_HIBERNATE, keys::TAG_LATEST])?;
                for (tag, said) in tags.entries("tags")? {
                    let (outcome, checked) = snapshot(&said)?;
                    read.snapshots.insert((vm.to_owned(), tag.to_owned()), Tag { outcome, checked });
                }
            }
        }
        for outcome in at.get("outcomes").map(|list| list.items("outcomes")).transpose()?.unwrap_or_default() {
            read.outcomes.push(given(&outcome, holds)?);
        }
        if let Some(memory) = at.get("memory") {
            for (name, kept) in memory.entries("objects by NAMESPACE/NAME")? {
                let key = key_of(name).ok_or_else(|| kept.fault("expected the CocoonSet's NAMESPACE/NAME as key"))?;
                if !holds(keys::SET_KIND, &key) {
                    return Err(kept.fault("no such CocoonSet in the stream; expected one that is"));
                }
                read.memory.insert(key, memory::read(&kept)?);
            }
        }
        Ok(read)
    }
}

fn key_of(text: &str) -> Option<Key> {
    let (namespace, name) = text.split_once('/')?;
    (!namespace.is_empty() && !name.is_empty() && !name.contains('/')).then(|| Key::new(namespace, name))
}

/// `absent`, `error`, `present`, or a mapping that says more of what is present.
fn snapshot(at: &Field<'_>) -> Result<(Outcome, Option<Timestamp>), Failure> {
    let present = |digest: Option<&str>, base_image: Option<&str>| Outcome {
        answer: Answer::Snapshot { digest: digest.map(str::to_owned), base_image: base_image.map(str::to_owned) },
        ..Outcome::of(Class::Present)
    };
    if !at.value().is_object() {
        let said = at.word(&[
            ("absent", Class::Absent),
            ("error", Class::Unavailable),
            ("present", Class::Present),
            ("a mapping of digest, baseImage, checkedAt", Class::Present),
        ])?;
        let outcome = match said {
            Class::Present => present(None, None),
            Class::Unavailable => Outcome::of(said).saying("the registry could not say"),
            _ => Outcome::of(said),
        };
        return Ok((outcome, None));
    }
    at.only(&["digest", "baseImage", "checkedAt"])?;
    let text = |key: &str, what: &str| at.get(key).map(|at| at.text(what)).transpose();
    let digest = text("digest", "a digest such as sha256:…")?;
    let base_image = text("baseImage", "an image")?;
    Ok((present(digest, base_image), at.get("checkedAt").map(|at| at.time()).transpose()?))
}

fn given(at: &Field<'_>, holds: Holds<'_>) -> Result<Given, Failure> {
    at.only(&["object", "kind", "action", "target", "dryRun", "status", "retryAfterSeconds", "digest", "body"])?;
    let kinds = [(keys::SET_KIND, keys::SET_KIND), (keys::HIBERNATION_KIND, keys::HIBERNATION_KIND)];
    let kind = at.get("kind").map(|at| at.word(&kinds)).transpose()?.unwrap_or(keys::SET_KIND);
    let object = at.need("object", "NAMESPACE/NAME of the object")?;
    let key = key_of(object.text("NAMESPACE/NAME of the object")?);
    let key = key.ok_or_else(|| object.fault(format_args!("expected NAMESPACE/NAME, found {}", object.value())))?;
    if !holds(kind, &key) {
        return Err(object.fault(format_args!("no {kind} {key} in the stream; expected one that is")));
    }
    let names: Vec<(&str, ActionKind)> = ActionKind::ALL.iter().map(|kind| (kind.name(), *kind)).collect();
    let action = at.need("action", "the name of an action")?;
    let kind_of_action = action.word(&names)?;
    let target = target(at, kind_of_action, kind, &key)?;
    let dry_run = at.get("dryRun").map(|at| at.flag()).transpose()?.unwrap_or(false);
    let verb = verb(kind_of_action, &target)
        .ok_or_else(|| action.fault("is sent to nobody and has no outcome; expected an action that is answered"))?;
    let attempt = Attempt { action: kind_of_action, target, dry_run };
    Ok(Given { kind, key, attempt, outcome: classify(verb, &reply(at)?) })
}

/// What an action asks of the other side.
fn verb(action: ActionKind, target: &str) -> Option<Verb> {
    match action {
        ActionKind::ReadLive if target == "pods" => Some(Verb::List),
        ActionKind::ReadLive => Some(Verb::Get),
        ActionKind::ProbeSnapshot => Some(Verb::RegistryHead),
        ActionKind::DeleteSnapshot => Some(Verb::RegistryDelete),
        ActionKind::CreatePod | ActionKind::EmitEvent => Some(Verb::Create),
        ActionKind::DeletePod => Some(Verb::Delete),
        ActionKind::AddFinalizer
        | ActionKind::RemoveFinalizer
        | ActionKind::PatchPod
        | ActionKind::PatchObject
        | ActionKind::PatchStatus => Some(Verb::Patch),
        ActionKind::Await | ActionKind::Stop => None,
    }
}

/// What the action was tried on, as the core spells it. Without one: the main agent, its `hibernate` tag, or the object.
fn target(at: &Field<'_>, action: ActionKind, kind: &str, key: &Key) -> Result<String, Failure> {
    let given = at.get("target");
    match action {
        ActionKind::CreatePod | ActionKind::DeletePod | ActionKind::PatchPod => match given {
            Some(pod) => Ok(pod.text("the name of the pod")?.to_owned()),
            None => Ok(format!("{}-0", key.name)),
        },
        ActionKind::ProbeSnapshot | ActionKind::DeleteSnapshot => match given {
            Some(tag) => {
                let text = tag.text("VM:TAG")?;
                let fits = text
                    .rsplit_once(':')
                    .is_some_and(|(vm, tag)| !vm.is_empty() && (tag == keys::TAG_HIBERNATE || tag == keys::TAG_LATEST));
                fits.then(|| text.to_owned())
                    .ok_or_else(|| tag.fault(format_args!("expected VM:hibernate or VM:latest, found {text}")))
            }
            None => Ok(format!("{}:{}", agent_vm(&key.namespace, &key.name, 0), keys::TAG_HIBERNATE)),
        },
        ActionKind::ReadLive => {
            let target =
                at.need("target", "what was read: pod/NAME, pods, node/NAME, cocoonset/NAME or namespace/NAME")?;
            read_of(target.text("what was read")?, kind, key).ok_or_else(|| {
                let object = kind.to_lowercase();
                let of = format!("{object}/{}, namespace/{}, node/NAME, pods or pod/NAME", key.name, key.namespace);
                target.fault(format_args!("expected {of}, found {}", target.value()))
            })
        }
        ActionKind::AddFinalizer
        | ActionKind::RemoveFinalizer
        | ActionKind::PatchObject
        | ActionKind::PatchStatus
        | ActionKind::EmitEvent
        | ActionKind::Await
        | ActionKind::Stop => match given {
            Some(target) => {
                Err(target.fault(format_args!("{} is about the object itself; expected no target", action.name())))
            }
            None => Ok(String::new()),
        },
    }
}

fn read_of(text: &str, kind: &str, key: &Key) -> Option<String> {
    let is = |what: &str, name: &str| text.split_once('/') == Some((what, name));
    let named = |prefix: &str| text.strip_prefix(prefix).is_some_and(|name| !name.is_empty());
    if text == "pods" || named("pod/") || named("node/") {
        return Some(text.to_owned());
    }
    if is("namespace", &key.namespace) {
        return Some("namespace".to_owned());
    }
    is(&kind.to_lowercase(), &key.name).then(|| "object".to_owned())
}

/// The reply as it came over the wire.
fn reply(at: &Field<'_>) -> Result<Reply, Failure> {
    let expected = "an HTTP status from 100 to 599, timeout or connection-reset";
    let status = at.need("status", expected)?;
    let retry_after = at.get("retryAfterSeconds").map(|at| at.whole(0, u64::from(u32::MAX))).transpose()?;
    let digest = at.get("digest").map(|at| at.text("a digest such as sha256:…")).transpose()?;
    let body = match at.value().get("body") {
        None | Some(serde_json::Value::Null) => Vec::new(),
        Some(serde_json::Value::String(text)) => text.clone().into_bytes(),
        Some(json) => json.to_string().into_bytes(),
    };
    let number = status.value().as_u64().and_then(|code| u16::try_from(code).ok());
    match (status.value().as_str(), number.filter(|code| (100..600).contains(code))) {
        (Some("timeout"), _) => Ok(Reply::TimedOut),
        (Some("connection-reset"), _) => Ok(Reply::Reset { sent: true }),
        (_, Some(status)) => Ok(Reply::Http {
            status,
            retry_after: retry_after.map(Duration::from_secs),
            body,
            digest: digest.map(str::to_owned),
        }),
        _ => Err(status.fault(format_args!("expected {expected}, found {}", status.value()))),
    }
}
