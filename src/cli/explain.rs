//! `explain`: what the core decides about the objects of an observation stream, and why.

use super::observation::{Given, Tag};
use super::paint::Paint;
use super::stream::Stream;
use super::{Failure, Format, Report, told};
use crate::core::action::{ActionKind, Attempt, Subject};
use crate::core::cocoonset::observed::Observed;
use crate::core::contract::keys;
use crate::core::contract::names::{is_of_set, vm_prefix};
use crate::core::control::kinds::Kind;
use crate::core::control::view::View;
use crate::core::control::wake::Key;
use crate::core::decide::{self, Observation};
use crate::core::decision::Decision;
use crate::core::fact::Fact;
use crate::core::hibernation;
use crate::core::meta;
use crate::core::outcome::Outcome;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// `explain`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The files hold what `kubectl get cocoonsets,cocoonhibernations,pods -o yaml` prints (JSON too), and may add Namespaces, \
Nodes and one Observation document: see docs/observation.md.")]
pub struct Args {
    /// A file of YAML documents or JSON; - for stdin; may be given several times
    #[arg(short = 'f', long = "file", value_name = "FILE", required = true)]
    pub files: Vec<String>,
    /// Only the objects of this name
    #[arg(long, value_name = "NAMESPACE/NAME")]
    pub object: Option<String>,
    /// How to print it
    #[arg(short, long, value_enum, default_value_t)]
    pub output: Format,
}

/// One object, what came back, and what is decided.
#[derive(Debug)]
pub struct Explained {
    /// Which.
    pub subject: Subject,
    /// The answers that were given for it, as classified.
    pub outcomes: Vec<(Attempt, Outcome)>,
    /// What is decided.
    pub decision: Decision,
    /// What needs a person: a reason and a message (decision R4).
    pub error: Option<(String, String)>,
    /// What was seen; nothing for kinds that are left alone.
    pub seen: Option<Box<Observed>>,
}

/// `explain`.
pub fn run(args: &Args) -> Result<Report, Failure> {
    let wanted = args.object.as_deref().map(wanted).transpose()?;
    let stream = Stream::read(&args.files)?;
    stream.notes.iter().for_each(|note| super::note(note));
    let mut all = explain_all(&stream);
    if all.is_empty() {
        super::note("no CocoonSet or CocoonHibernation in the stream");
    }
    if let Some(key) = wanted {
        let names: Vec<String> = all.iter().take(5).map(|one| key_of(one).to_string()).collect();
        all.retain(|one| key_of(one) == key);
        if all.is_empty() {
            let seen = if names.is_empty() { "none at all".to_owned() } else { names.join(", ") };
            return Err(Failure::Usage(format!(
                "--object {key}: no such CocoonSet or CocoonHibernation in the stream; expected one of its objects ({seen})"
            )));
        }
    }
    match args.output {
        Format::Json => super::json(&all.iter().map(Explained::element).collect::<Vec<_>>()),
        Format::Text => Ok(Report::of(told::tell(&all, stream.now, Paint::for_stdout()))),
    }
}

pub(super) fn wanted(text: &str) -> Result<Key, Failure> {
    let parts: Vec<&str> = text.split('/').collect();
    match parts.as_slice() {
        [namespace, name] if !namespace.is_empty() && !name.is_empty() => Ok(Key::new(namespace, name)),
        _ => Err(Failure::Usage(format!("--object {text}: expected NAMESPACE/NAME"))),
    }
}

fn key_of(one: &Explained) -> Key {
    Key::new(&one.subject.namespace, &one.subject.name)
}

/// Every object of the stream, by kind, namespace and name.
pub fn explain_all(stream: &Stream) -> Vec<Explained> {
    let mut view = stream.view();
    for (key, kept) in &stream.observation.memory {
        let Some(uid) = view.set(key).map(|set| set.uid.clone()) else { continue };
        if kept.uid.as_ref().is_some_and(|owner| *owner != uid) {
            super::note(&format!("memory of {key} is of another uid, and dropped as the operator would drop it"));
        } else {
            view.remember(&uid, kept.memory.clone());
        }
    }
    let requests = stream.objects(Kind::CocoonHibernations).map(|(key, object)| request(stream, key, object));
    let sets = stream.objects(Kind::CocoonSets).filter_map(|(key, _)| set(stream, &view, key));
    requests.chain(sets).collect()
}

/// A CocoonSet: what the operator would see, with the answers taken in, decided once.
fn set(stream: &Stream, view: &View, key: &Key) -> Option<Explained> {
    let mut seen = view.observe(key, stream.clocks())?;
    let kept = stream.observation.memory.get(key);
    let kept = kept.filter(|kept| kept.uid.as_ref().is_none_or(|uid| *uid == seen.set.uid));
    seen.unseen = kept.map(|kept| kept.unseen.clone()).unwrap_or_default();
    add_snapshots(&mut seen, stream, key);
    seen.tried.clear();
    let outcomes: Vec<(Attempt, Outcome)> = given(stream, keys::SET_KIND, key).collect();
    for (attempt, outcome) in &outcomes {
        seen.absorb(attempt, outcome);
    }
    let decision = decide::explain(&seen);
    let broken = seen.broken_law(&decision).map(|law| ("BrokenLaw".to_owned(), law.into_owned()));
    let error = decision.error().map(|trouble| (trouble.reason.to_string(), trouble.message.clone()));
    let subject = Observation::subject(&seen);
    Some(Explained { subject, outcomes, decision, error: broken.or(error), seen: Some(Box::new(seen)) })
}

/// A registry fact is an answer to a probe, of now or of an earlier pass.
fn add_snapshots(seen: &mut Observed, stream: &Stream, key: &Key) {
    let all = &stream.observation.snapshots;
    // A set's VM names begin with its own name, as it is or with its dots as dashes.
    for name in BTreeSet::from([key.name.clone(), key.name.replace('.', "-")]) {
        let prefix = vm_prefix(&key.namespace, &name);
        let range = all.range((prefix.clone(), String::new())..);
        for ((vm, tag), said) in range.take_while(|((vm, _), _)| vm.starts_with(&prefix)) {
            if is_of_set(&key.namespace, &key.name, vm) {
                add_snapshot(seen, vm, tag, said, stream.now);
            }
        }
    }
}

fn add_snapshot(seen: &mut Observed, vm: &str, tag: &str, said: &Tag, now: Timestamp) {
    let (action, target) = (ActionKind::ProbeSnapshot, format!("{vm}:{tag}"));
    seen.absorb(&Attempt { action, target, dry_run: false }, &said.outcome);
    if let Some(snapshot) = seen.snapshots.get_mut(&(vm.to_owned(), tag.to_owned())) {
        let nameless = matches!(&snapshot.fact, Fact::Known(Some(manifest)) if manifest.digest.is_none());
        snapshot.fresh = !nameless && said.checked.is_none_or(|checked| checked >= now);
    }
}

/// A CocoonHibernation.
fn request(stream: &Stream, key: &Key, object: &Value) -> Explained {
    let subject = Subject {
        kind: keys::HIBERNATION_KIND,
        namespace: key.namespace.clone(),
        name: key.name.clone(),
        uid: meta::text(object, "uid"),
    };
    let outcomes = given(stream, keys::HIBERNATION_KIND, key).collect();
    Explained { subject, outcomes, decision: hibernation::explain(), error: None, seen: None }
}

fn given<'a>(stream: &'a Stream, kind: &'a str, key: &'a Key) -> impl Iterator<Item = (Attempt, Outcome)> + 'a {
    let ours = move |given: &&Given| given.kind == kind && given.key == *key;
    stream.observation.outcomes.iter().filter(ours).map(|given| (given.attempt.clone(), given.outcome.clone()))
}

/// One element of `explain -o json`: the names and fields are a public interface.
#[derive(Debug, Serialize)]
pub struct Element<'a> {
    kind: &'a str,
    namespace: &'a str,
    name: &'a str,
    outcomes: Vec<Value>,
    actions: Vec<Value>,
    error: Option<Value>,
}

impl Explained {
    /// As `explain -o json` prints it.
    pub fn element(&self) -> Element<'_> {
        let outcome = |(attempt, outcome): &(Attempt, Outcome)| json!({ "action": attempt.action.name(), "class": outcome.class.name() });
        let error = |(reason, message): &(String, String)| json!({ "reason": reason, "message": message });
        Element {
            kind: self.subject.kind,
            namespace: &self.subject.namespace,
            name: &self.subject.name,
            outcomes: self.outcomes.iter().map(outcome).collect(),
            actions: self.decision.actions_json(&self.subject),
            error: self.error.as_ref().map(error),
        }
    }
}
