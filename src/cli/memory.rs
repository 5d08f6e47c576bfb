//! What the operator keeps about an object between passes, as a dump writes it: times as ages, so that it can be
//! decided on again at any time (docs/observation.md).

use super::Failure;
use super::field::Field;
use super::stream::OLDEST;
use crate::core::action::{ActionKind, Attempt};
use crate::core::memory::{Foreign, Memory, NamespaceLive, NamespaceRefusal, Record, Vanished, Watched};
use crate::core::outcome::Class;
use std::time::Duration;

/// The memory of one object.
#[derive(Debug, Default)]
pub(super) struct Kept {
    /// Whose it is; another uid means that it belongs to an object that is gone.
    pub uid: Option<String>,
    /// Own writes that the watch has not shown.
    pub unseen: Vec<String>,
    /// The rest.
    pub memory: Memory,
}

const FIELDS: [&str; 14] = [
    "uid",
    "unseen",
    "attempts",
    "namespaceRefusal",
    "lastStatusAgeSeconds",
    "deleted",
    "vanished",
    "watched",
    "foreign",
    "found",
    "kept",
    "nodeNamesPruned",
    "scalePruned",
    "error",
];

/// Reads one entry of `memory`.
pub(super) fn read(at: &Field<'_>) -> Result<Kept, Failure> {
    at.only(&FIELDS)?;
    let mut kept = Kept { uid: text(at, "uid", "a uid")?, ..Kept::default() };
    for write in list(at, "unseen", "own writes")? {
        kept.unseen.push(write.text("a write such as CreatePod demo-0")?.to_owned());
    }
    let memory = &mut kept.memory;
    for item in list(at, "attempts", "attempts")? {
        let (attempt, record) = attempt(&item)?;
        memory.keep(&attempt, record);
    }
    memory.namespace = at.get("namespaceRefusal").map(|at| refusal(&at)).transpose()?;
    memory.last_status = since(at, "lastStatusAgeSeconds")?;
    for (pod, uid) in map(at, "deleted", "uids by pod")? {
        memory.deleted.insert(pod.to_owned(), uid.text("the uid of the pod")?.to_owned());
    }
    for (pod, gone) in map(at, "vanished", "pods")? {
        memory.vanished.insert(pod.to_owned(), vanished(&gone)?);
    }
    for (uid, watched) in map(at, "watched", "pod uids")? {
        watched.only(&["everReady", "everMarked", "failing"])?;
        let watched = Watched {
            ever_ready: flag(&watched, "everReady")?,
            ever_marked: flag(&watched, "everMarked")?,
            failing: flag(&watched, "failing")?,
        };
        memory.watched.insert(uid.to_owned(), watched);
    }
    for (pod, foreign) in map(at, "foreign", "pods")? {
        memory.foreign.insert(pod.to_owned(), stranger(&foreign)?);
    }
    for (vm, age) in map(at, "found", "ages in seconds by VM name")? {
        memory.found.insert(vm.to_owned(), OLDEST.saturating_sub(age.seconds()?));
    }
    for (vm, age) in map(at, "kept", "ages in seconds by VM name")? {
        memory.kept.insert(vm.to_owned(), OLDEST.saturating_sub(age.seconds()?));
    }
    memory.node_names_pruned = flag(at, "nodeNamesPruned")?;
    memory.scale_pruned = flag(at, "scalePruned")?;
    if let Some(error) = at.get("error") {
        error.only(&["reason", "ageSeconds"])?;
        let reason = error.need("reason", "the reason of the error")?.text("the reason of the error")?;
        memory.error = Some((reason.to_owned(), needed_since(&error, "ageSeconds")?));
    }
    Ok(kept)
}

fn attempt(at: &Field<'_>) -> Result<(Attempt, Record), Failure> {
    at.only(&[
        "action",
        "target",
        "dryRun",
        "class",
        "count",
        "ageSeconds",
        "sinceAgeSeconds",
        "retryAfterSeconds",
        "message",
        "generation",
        "looked",
        "onLive",
        "tested",
        "inVain",
    ])?;
    let tested = at.get("tested").map(|at| at.items("finalizers")).transpose()?;
    let tested = tested.map(|list| list.iter().map(|at| at.text("a finalizer").map(str::to_owned)).collect());
    let actions: Vec<(&str, ActionKind)> = ActionKind::ALL.iter().map(|kind| (kind.name(), *kind)).collect();
    let classes: Vec<(&str, Class)> = Class::ALL.iter().map(|class| (class.name(), *class)).collect();
    let target = text(at, "target", "a pod, VM:TAG, object, pods, pod/NAME or namespace")?.unwrap_or_default();
    let last = needed_since(at, "ageSeconds")?;
    let generation = at.get("generation").map(|at| at.whole(0, i64::MAX.unsigned_abs())).transpose()?;
    let record = Record {
        class: at.need("class", "the class of its last outcome")?.word(&classes)?,
        count: count(at, "count")?,
        since: since(at, "sinceAgeSeconds")?.unwrap_or(last).min(last),
        last,
        retry_after: at.get("retryAfterSeconds").map(|at| at.seconds()).transpose()?,
        message: text(at, "message", "the server's words")?.unwrap_or_default(),
        target: target.clone(),
        generation: generation.and_then(|number| i64::try_from(number).ok()).unwrap_or(0),
        looked: flag(at, "looked")?,
        on_live: flag(at, "onLive")?,
        tested: tested.transpose()?,
        in_vain: flag(at, "inVain")?,
    };
    let action = at.need("action", "the name of an action")?.word(&actions)?;
    Ok((Attempt { action, target, dry_run: flag(at, "dryRun")? }, record))
}

fn refusal(at: &Field<'_>) -> Result<NamespaceRefusal, Failure> {
    at.only(&["count", "ageSeconds", "message", "live", "askedAgeSeconds"])?;
    let live = [
        ("unasked", NamespaceLive::Unasked),
        ("terminating", NamespaceLive::Terminating),
        ("active", NamespaceLive::Active),
        ("refused", NamespaceLive::Refused),
    ];
    Ok(NamespaceRefusal {
        count: count(at, "count")?,
        last: needed_since(at, "ageSeconds")?,
        message: text(at, "message", "the server's words")?.unwrap_or_default(),
        live: at.get("live").map(|at| at.word(&live)).transpose()?.unwrap_or(NamespaceLive::Unasked),
        asked: since(at, "askedAgeSeconds")?,
    })
}

fn stranger(at: &Field<'_>) -> Result<Foreign, Failure> {
    at.only(&["looks", "ageSeconds", "owner", "deleting"])?;
    Ok(Foreign {
        looks: count(at, "looks")?,
        last: needed_since(at, "ageSeconds")?,
        owner: at.get("owner").map(|at| owner(&at)).transpose()?,
        deleting: flag(at, "deleting")?,
    })
}

fn owner(at: &Field<'_>) -> Result<(String, String), Failure> {
    at.only(&["kind", "name"])?;
    let part = |key: &str| at.need(key, "kind and name of the owner")?.text("kind and name of the owner");
    Ok((part("kind")?.to_owned(), part("name")?.to_owned()))
}

fn vanished(at: &Field<'_>) -> Result<Vanished, Failure> {
    at.only(&["uid", "node", "hadVm", "succeeded", "givenUp", "nodeWasReady", "confirmed"])?;
    Ok(Vanished {
        uid: at.need("uid", "the uid of the pod")?.text("the uid of the pod")?.to_owned(),
        node: text(at, "node", "the name of a node")?,
        had_vm: flag(at, "hadVm")?,
        succeeded: flag(at, "succeeded")?,
        given_up: flag(at, "givenUp")?,
        node_was_ready: at.get("nodeWasReady").map(|at| at.flag()).transpose()?,
        confirmed: flag(at, "confirmed")?,
        carried: None,
    })
}

fn text(at: &Field<'_>, key: &str, what: &str) -> Result<Option<String>, Failure> {
    at.get(key).map(|at| at.text(what).map(str::to_owned)).transpose()
}

fn flag(at: &Field<'_>, key: &str) -> Result<bool, Failure> {
    Ok(at.get(key).map(|at| at.flag()).transpose()?.unwrap_or(false))
}

/// How often in a row; once where it is not said.
fn count(at: &Field<'_>, key: &str) -> Result<u32, Failure> {
    let count = at.get(key).map(|at| at.whole(1, u64::from(u32::MAX))).transpose()?;
    Ok(count.and_then(|count| u32::try_from(count).ok()).unwrap_or(1))
}

/// An age as the moment it speaks of, since the process started.
fn since(at: &Field<'_>, key: &str) -> Result<Option<Duration>, Failure> {
    Ok(at.get(key).map(|at| at.seconds()).transpose()?.map(|age| OLDEST.saturating_sub(age)))
}

fn needed_since(at: &Field<'_>, key: &str) -> Result<Duration, Failure> {
    Ok(OLDEST.saturating_sub(at.need(key, "how many seconds ago")?.seconds()?))
}

fn list<'a>(at: &Field<'a>, key: &str, what: &str) -> Result<Vec<Field<'a>>, Failure> {
    Ok(at.get(key).map(|at| at.items(what)).transpose()?.unwrap_or_default())
}

fn map<'a>(at: &Field<'a>, key: &str, what: &str) -> Result<Vec<(&'a str, Field<'a>)>, Failure> {
    Ok(at.get(key).map(|at| at.entries(what)).transpose()?.unwrap_or_default())
}
