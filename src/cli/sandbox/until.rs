//! `--until`: what is waited for, and what is so instead.

use super::super::nearest::hint;
use super::apply::Applied;
use super::progress::{pod_state, set_state};
use crate::core::api::condition::{self, Condition};
use crate::core::api::words::{HibernationPhase, SetPhase};
use crate::core::contract::keys;
use crate::core::meta;
use crate::sim::store::Resource;
use crate::sim::world::World;
use serde_json::Value;

/// What is accepted.
pub(super) const GRAMMAR: &str =
    "KIND/NAME[@NAMESPACE]=PHASE, KIND/NAME[@NAMESPACE]:CONDITION=True, pods=ready or gone";
/// The kind of sets as the store knows it.
pub(super) const SETS: &str = "cocoonsets.cocoonset.cocoonstack.io";
const HIBERNATIONS: &str = "cocoonhibernations.cocoonset.cocoonstack.io";
/// Short names of kinds, as kubectl and the definitions have them.
const SHORT: [(&str, &str); 6] = [
    ("cs", "cocoonset"),
    ("cset", "cocoonset"),
    ("ch", "cocoonhibernation"),
    ("po", "pod"),
    ("no", "node"),
    ("ns", "namespace"),
];
const STATUSES: [&str; 3] = ["True", "False", "Unknown"];

/// One condition, as it was given and as it is understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Until {
    /// As given.
    pub text: String,
    wants: Wants,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Wants {
    Object { resource: String, namespace: String, name: String, wants: Of },
    PodsReady,
    Gone,
}

/// What is wanted of one object.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Of {
    Phase(String),
    Condition { kind: String, status: String },
}

impl Until {
    /// Reads one; an `Err` says what is wrong with it and what is expected.
    pub(super) fn parse(text: &str, kinds: &[Resource]) -> Result<Self, String> {
        let wants = wants(text, kinds).map_err(|wrong| format!("--until {text:?}: {wrong}"))?;
        Ok(Self { text: text.to_owned(), wants })
    }

    /// Whether it holds; an `Err` says what is so instead.
    pub(super) fn check(&self, world: &World, applied: &[Applied]) -> Result<(), String> {
        match &self.wants {
            Wants::Gone => gone(world, applied),
            Wants::PodsReady => pods_ready(world),
            Wants::Object { resource, namespace, name, wants } => {
                let object = world.store.get(resource, namespace, name).ok_or("there is no such object")?;
                // Of a set the numbers are told, too: they say how near it is.
                let numbers = if resource == SETS { format!(", it is {}", set_state(object).0) } else { String::new() };
                wants.check(object).map_err(|instead| instead + &numbers)
            }
        }
    }
}

fn wants(text: &str, kinds: &[Resource]) -> Result<Wants, String> {
    match text {
        "gone" => return Ok(Wants::Gone),
        "pods=ready" => return Ok(Wants::PodsReady),
        _ => {}
    }
    let expected = || format!("expected {GRAMMAR}");
    let (object, value) = text.split_once('=').ok_or_else(expected)?;
    let (object, condition) = match object.split_once(':') {
        Some((object, condition)) => (object, Some(condition)),
        None => (object, None),
    };
    let (kind, name) = object.split_once('/').ok_or_else(expected)?;
    let (name, namespace) = match name.split_once('@') {
        Some((name, namespace)) => (name, Some(namespace)),
        None => (name, None),
    };
    if [kind, name, value, namespace.unwrap_or("-"), condition.unwrap_or("-")].iter().any(|part| part.is_empty()) {
        return Err(expected());
    }
    let resource = resource(kind, kinds)?;
    if !resource.namespaced && namespace.is_some() {
        return Err(format!("a {} is in no namespace; expected KIND/NAME without @NAMESPACE", resource.kind));
    }
    let wants = match condition {
        Some(condition) if STATUSES.contains(&value) => {
            Of::Condition { kind: condition.to_owned(), status: value.to_owned() }
        }
        Some(_) => {
            return Err(format!("{value:?} is no status of a condition; expected one of {}", STATUSES.join(", ")));
        }
        None => Of::Phase(phase(&resource, value)?),
    };
    let namespace = if resource.namespaced { namespace.unwrap_or("default") } else { "" };
    Ok(Wants::Object { resource: resource.qualified(), namespace: namespace.to_owned(), name: name.to_owned(), wants })
}

/// `cocoonset`, `CocoonSets`, `cset`, `cocoonsets.cocoonset.cocoonstack.io`: as kubectl takes them.
fn resource(word: &str, kinds: &[Resource]) -> Result<Resource, String> {
    let lower = word.to_lowercase();
    let lower = SHORT.iter().find(|(short, _)| *short == lower).map_or(lower, |(_, kind)| (*kind).to_owned());
    let names = |kind: &Resource| {
        [kind.kind.to_lowercase(), kind.plural.clone(), kind.qualified_kind().to_lowercase(), kind.qualified()]
    };
    let found = kinds.iter().find(|kind| names(kind).contains(&lower));
    found.cloned().ok_or_else(|| {
        let known: Vec<String> = kinds.iter().map(|kind| kind.kind.to_lowercase()).collect();
        let near = hint(&lower, known.iter().map(String::as_str));
        format!("{word:?} is no kind of the sandbox{near}; expected {GRAMMAR}, e.g. cocoonset/demo=Running")
    })
}

/// A phase that this kind can have: a slip of the finger would be waited for in vain.
fn phase(resource: &Resource, word: &str) -> Result<String, String> {
    let known: Vec<&str> = match resource.qualified().as_str() {
        SETS => SetPhase::ALL.iter().map(SetPhase::as_str).collect(),
        HIBERNATIONS => HibernationPhase::ALL.iter().map(HibernationPhase::as_str).collect(),
        "pods" => vec!["Pending", "Running", "Succeeded", "Failed", "Unknown"],
        "namespaces" => vec!["Active", "Terminating"],
        _ => vec![word],
    };
    if known.contains(&word) {
        return Ok(word.to_owned());
    }
    let near = hint(word, known.iter().copied());
    Err(format!("{word:?} is no phase of a {}{near}; expected one of {}", resource.kind, known.join(", ")))
}

impl Of {
    fn check(&self, object: &Value) -> Result<(), String> {
        let status = object.get("status").unwrap_or(&Value::Null);
        let is = match self {
            Self::Phase(wanted) => match status.get("phase").and_then(Value::as_str).unwrap_or_default() {
                "" => Err("it has no phase yet".to_owned()),
                phase if phase == wanted => Ok(()),
                phase => Err(format!("its phase is {phase}")),
            },
            Self::Condition { kind, status: wanted } => match read(status).find(|(name, _, _)| name == kind) {
                None => Err(format!("it has no condition {kind} yet")),
                Some((_, is, _)) if is == *wanted => Ok(()),
                Some((_, is, said)) => Err(format!("{kind} is {is}{said}")),
            },
        };
        // A status that does not know the newest spec says nothing about it.
        let seen = status.get("observedGeneration").and_then(Value::as_i64);
        let newest = meta::metadata(object).get("generation").and_then(Value::as_i64);
        match (is, seen, newest) {
            (Ok(()), Some(seen), Some(newest)) if seen < newest => {
                Err(format!("its status is of generation {seen}, the spec has {newest}"))
            }
            (is, _, _) => is,
        }
    }
}

/// Name, status, and what is said to it, of every condition.
fn read(status: &Value) -> impl Iterator<Item = (String, String, String)> {
    let list = status.get("conditions").and_then(Value::as_array).into_iter().flatten();
    list.map(|one| {
        let text = |key: &str| one.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let said = match (text("reason"), text("message")) {
            (reason, message) if message.is_empty() => reason,
            (reason, message) => format!("{reason}: {message}"),
        };
        let said = if said.is_empty() { said } else { format!(" ({said})") };
        (text("type"), text("status"), said)
    })
}

/// What troubles an object, in brackets.
fn trouble(object: &Value) -> String {
    degraded(object).map(|said| format!(" ({said})")).unwrap_or_default()
}

/// What a set says that troubles it.
pub(super) fn degraded(object: &Value) -> Option<String> {
    let conditions = Condition::read_all(object.pointer("/status/conditions")?);
    let degraded = condition::find(&conditions, "Degraded").filter(|found| found.is_true())?;
    let said = &degraded.message;
    Some(if said.starts_with(&degraded.reason) { said.clone() } else { format!("{}: {said}", degraded.reason) })
}

/// True where the pod says that it is ready.
pub(super) fn is_ready(pod: &Value) -> bool {
    let status = pod.get("status").unwrap_or(&Value::Null);
    read(status).any(|(kind, is, _)| kind == "Ready" && is == "True")
}

/// Every pod is ready, there is one, and no set is short of pods.
fn pods_ready(world: &World) -> Result<(), String> {
    let pods: Vec<&Value> = world.store.objects("pods", None).collect();
    let is_up = |pod: &Value| is_ready(pod) && meta::text(pod, "deletionTimestamp").is_empty();
    let waiting: Vec<String> = pods
        .iter()
        .filter(|pod| !is_up(pod))
        .map(|pod| format!("{}/{} {}", meta::text(pod, "namespace"), meta::text(pod, "name"), pod_state(pod).0))
        .collect();
    if let Some(first) = waiting.first() {
        return Err(format!("{} of {} pods are not ready: {first}{}", waiting.len(), pods.len(), more(waiting.len())));
    }
    for set in world.store.objects(SETS, None) {
        let (namespace, name, uid) = (meta::text(set, "namespace"), meta::text(set, "name"), meta::text(set, "uid"));
        let have = pods.iter().filter(|pod| is_owned(pod, &uid)).count();
        let want = desired(set);
        if have < want {
            return Err(format!("cocoonset {namespace}/{name} has {have} of {want} pods{}", trouble(set)));
        }
    }
    if pods.is_empty() { Err("there is no pod".to_owned()) } else { Ok(()) }
}

/// How many pods a set wants to have running.
fn desired(set: &Value) -> usize {
    let spec = set.get("spec").unwrap_or(&Value::Null);
    if spec.get("suspend").and_then(Value::as_bool) == Some(true) {
        return 0;
    }
    let replicas = spec.pointer("/agent/replicas").and_then(Value::as_u64).unwrap_or(0);
    let toolboxes = spec.get("toolboxes").and_then(Value::as_array).map_or(0, Vec::len);
    usize::try_from(replicas).unwrap_or(usize::MAX).saturating_add(1).saturating_add(toolboxes)
}

fn is_owned(object: &Value, uid: &str) -> bool {
    meta::owners(object).iter().any(|owner| owner.uid == uid)
}

/// Nothing that was applied is left, nor a pod of it. Each was seen when it was applied.
fn gone(world: &World, applied: &[Applied]) -> Result<(), String> {
    let mut left = Vec::new();
    for Applied { resource, kind, namespace, name, uid } in applied {
        if world.store.get(resource, namespace, name).is_some_and(|object| meta::text(object, "uid") == *uid) {
            let place = if namespace.is_empty() { String::new() } else { format!("{namespace}/") };
            left.push(format!("{kind} {place}{name}"));
        }
    }
    for pod in world.store.objects("pods", None) {
        let (namespace, name) = (meta::text(pod, "namespace"), meta::text(pod, "name"));
        let label = meta::map(pod, "labels", |key| key == keys::NAME);
        let is_of = |one: &Applied| {
            let labelled =
                one.resource == SETS && one.namespace == namespace && label.values().any(|of| *of == one.name);
            is_owned(pod, &one.uid) || (labelled && meta::owners(pod).is_empty())
        };
        if applied.iter().any(is_of) {
            left.push(format!("pod {namespace}/{name}"));
        }
    }
    match left.first() {
        None => Ok(()),
        Some(first) => Err(format!("{} still there: {first}{}", left.len(), more(left.len()))),
    }
}

fn more(count: usize) -> String {
    if count > 1 { format!(" and {} more", count - 1) } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::{Of, Until, Wants};
    use crate::sim::world::World;

    fn parse(text: &str) -> Result<Wants, String> {
        let world = World::new(jiff::Timestamp::UNIX_EPOCH);
        let kinds: Vec<_> = world.store.resources().cloned().collect();
        Until::parse(text, &kinds).map(|until| until.wants)
    }

    #[test]
    fn conditions_are_read() {
        let object = |resource: &str, namespace: &str, name: &str, wants: Of| {
            let (resource, namespace, name) = (resource.to_owned(), namespace.to_owned(), name.to_owned());
            Ok(Wants::Object { resource, namespace, name, wants })
        };
        let phase = |word: &str| Of::Phase(word.to_owned());
        let condition = |kind: &str, status: &str| Of::Condition { kind: kind.to_owned(), status: status.to_owned() };
        assert_eq!(parse("gone"), Ok(Wants::Gone));
        assert_eq!(parse("pods=ready"), Ok(Wants::PodsReady));
        assert_eq!(parse("cocoonset/demo=Running"), object(super::SETS, "default", "demo", phase("Running")));
        assert_eq!(parse("CocoonSets/demo@a=Failed"), object(super::SETS, "a", "demo", phase("Failed")));
        for word in ["cs", "cset", "CSet"] {
            assert_eq!(parse(&format!("{word}/demo=Running")), parse("cocoonset/demo=Running"), "{word}");
        }
        assert_eq!(parse("po/demo-0@a:Ready=True"), parse("pod/demo-0@a:Ready=True"));
        assert_eq!(parse("pod/demo-0@a:Ready=True"), object("pods", "a", "demo-0", condition("Ready", "True")));
        assert_eq!(parse("namespace/a=Terminating"), object("namespaces", "", "a", phase("Terminating")));
        assert_eq!(parse("node/node-a:Ready=Unknown"), object("nodes", "", "node-a", condition("Ready", "Unknown")));
    }

    #[test]
    fn a_bad_condition_is_told_what_is_expected() {
        for (text, expected) in [
            ("", "expected KIND/NAME"),
            ("demo", "expected KIND/NAME"),
            ("demo=Running", "expected KIND/NAME"),
            ("cocoonset/=Running", "expected KIND/NAME"),
            ("cocoonset/demo@=Running", "expected KIND/NAME"),
            ("cocoonset/demo:=True", "expected KIND/NAME"),
            ("cocoonset/demo=", "expected KIND/NAME"),
            ("cocoonste/demo=Running", "did you mean cocoonset?"),
            ("cocoonset/demo=running", "did you mean Running?; expected one of Pending, Running"),
            ("cocoonset/demo:Ready=Yes", "expected one of True, False, Unknown"),
            ("node/node-a@default:Ready=True", "is in no namespace"),
        ] {
            let told = parse(text).expect_err(text);
            assert!(told.starts_with(&format!("--until {text:?}: ")) && told.contains(expected), "{text}: {told}");
        }
    }
}
