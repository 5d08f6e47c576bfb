//! What the operator keeps about an object between passes, as a dump writes it: times as ages, so that it can be
//! decided on again at any time (docs/observation.md).

use super::Failure;
use super::field::Field;
use super::stream::OLDEST;
use crate::core::action::{ActionKind, Attempt};
use crate::core::memory::{Foreign, Memory, NamespaceLive, NamespaceRefusal, Record, Watched};
use crate::core::outcome::Class;
use crate::core::vanished::Vanished;
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

const FIELDS: [&str; 21] = [
    "uid",
    "unseen",
    "attempts",
    "namespaceRefusal",
    "lastStatusAgeSeconds",
    "deleted",
    "vanished",
    "absent",
    "watched",
    "woken",
    "stamps",
    "foreign",
    "found",
    "kept",
    "lostNodes",
    "collected",
    "hidden",
    "undone",
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
    for pod in list(at, "absent", "names of pods")? {
        memory.absent.insert(pod.text("the name of a pod")?.to_owned());
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
    for uid in list(at, "woken", "uids of pods")? {
        memory.woken.insert(uid.text("the uid of a pod")?.to_owned());
    }
    for (stamp, age) in map(at, "stamps", "ages in seconds by timestamp")? {
        let stamp =
            stamp.parse().map_err(|_| age.fault("expected a timestamp such as 2026-01-31T12:00:00Z as its key"))?;
        memory.stamps.insert(stamp, (age.seconds()?, OLDEST));
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
    for (node, age) in map(at, "lostNodes", "ages in seconds by node")? {
        memory.lost_nodes.insert(node.to_owned(), OLDEST.saturating_sub(age.seconds()?));
    }
    for tag in list(at, "collected", "tags")? {
        memory.collected.insert(tag.text("VM:TAG")?.to_owned());
    }
    if let Some(hidden) = at.get("hidden") {
        hidden.only(&["looks", "ageSeconds"])?;
        memory.hidden = Some((count(&hidden, "looks")?, needed_since(&hidden, "ageSeconds")?));
    }
    for (what, age) in map(at, "undone", "ages in seconds by what was written")? {
        memory.undone.insert(what.to_owned(), OLDEST.saturating_sub(age.seconds()?));
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
    let target =
        text(at, "target", "a pod, VM:TAG, object, pods, pod/NAME, node/NAME or namespace")?.unwrap_or_default();
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
    at.only(&["uid", "node", "hadVm", "succeeded", "givenUp", "vmId", "nodeWasReady", "byUs", "confirmed"])?;
    Ok(Vanished {
        uid: at.need("uid", "the uid of the pod")?.text("the uid of the pod")?.to_owned(),
        node: text(at, "node", "the name of a node")?,
        had_vm: flag(at, "hadVm")?,
        succeeded: flag(at, "succeeded")?,
        given_up: flag(at, "givenUp")?,
        vm_id: text(at, "vmId", "the id of its VM")?.unwrap_or_default(),
        by_us: flag(at, "byUs")?,
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

#[cfg(test)]
mod tests {
    use super::super::field::Origin;
    use super::*;
    use crate::core::cocoonset::observed::{Observed, SetFacts};
    use crate::core::memory_json;
    use serde_json::json;

    const fn ago(seconds: u64) -> Duration {
        OLDEST.saturating_sub(Duration::from_secs(seconds))
    }

    fn attempts() -> Vec<(Attempt, Record)> {
        let kinds = [ActionKind::CreatePod, ActionKind::AddFinalizer, ActionKind::ProbeSnapshot];
        let classes = Class::ALL.iter().enumerate();
        let record = |class: Class, target: &str| Record {
            class,
            count: 3,
            since: ago(900),
            last: ago(2),
            retry_after: Some(Duration::from_millis(1_500)),
            message: "words".to_owned(),
            target: target.to_owned(),
            generation: 7,
            looked: true,
            on_live: false,
            tested: Some(vec!["a".to_owned()]),
            in_vain: true,
        };
        let all = classes.map(|(n, class)| {
            let target = format!("pod-{n}:hibernate");
            let action = kinds.get(n % kinds.len()).copied().unwrap_or(ActionKind::CreatePod);
            (Attempt { action, target: target.clone(), dry_run: n % 2 == 0 }, record(*class, &target))
        });
        all.collect()
    }

    #[test]
    fn what_is_written_reads_back_the_same() {
        let set = json!({ "metadata": { "name": "x", "namespace": "a", "uid": "u" } });
        let mut seen = Observed::of(SetFacts::of(&set), jiff::Timestamp::UNIX_EPOCH, OLDEST);
        seen.unseen = vec!["CreatePod x-0".to_owned()];
        let memory = &mut seen.memory;
        for (attempt, record) in attempts() {
            memory.keep(&attempt, record);
        }
        memory.namespace = Some(NamespaceRefusal {
            count: 2,
            last: ago(5),
            message: "going".to_owned(),
            live: NamespaceLive::Active,
            asked: Some(ago(4)),
        });
        memory.last_status = Some(OLDEST.saturating_sub(Duration::from_millis(400)));
        memory.deleted.insert("x-1".to_owned(), "u1".to_owned());
        memory.vanished.insert(
            "x-2".to_owned(),
            Vanished {
                uid: "u2".to_owned(),
                node: Some("n".to_owned()),
                had_vm: true,
                succeeded: false,
                given_up: true,
                vm_id: "v2".to_owned(),
                by_us: true,
                node_was_ready: Some(false),
                confirmed: true,
                carried: None,
            },
        );
        memory.absent.insert("x-6".to_owned());
        memory.watched.insert("u0".to_owned(), Watched { ever_ready: true, ever_marked: false, failing: true });
        let owner = Some(("ReplicaSet".to_owned(), "r".to_owned()));
        memory.foreign.insert("x-3".to_owned(), Foreign { owner, deleting: true, looks: 4, last: ago(9) });
        memory.found.insert("vk-a-x-4".to_owned(), ago(30));
        memory.kept.insert("vk-a-x-5".to_owned(), ago(40));
        memory.lost_nodes.insert("n".to_owned(), ago(50));
        memory.collected.insert("vk-a-x-5:latest".to_owned());
        memory.hidden = Some((3, ago(50)));
        memory.undone.insert("PatchPod x-0: taken off".to_owned(), ago(60));
        memory.woken.insert("u9".to_owned());
        memory.stamps.insert(jiff::Timestamp::UNIX_EPOCH, (Duration::from_secs(70), OLDEST));
        memory.node_names_pruned = true;
        memory.scale_pruned = true;
        memory.error = Some(("QuotaExceeded".to_owned(), ago(60)));
        let written = memory_json::entry(&seen);
        let origin = Origin { file: "-".to_owned(), document: 1, line: 0 };
        let read = read(&Field::root(&written, "memory", &origin)).expect("it reads");
        assert_eq!((read.uid.as_deref(), &read.unseen), (Some("u"), &seen.unseen));
        assert_eq!(read.memory, seen.memory);
    }

    #[test]
    fn nothing_kept_is_nothing_written() {
        let seen = Observed::of(SetFacts::of(&json!({})), jiff::Timestamp::UNIX_EPOCH, Duration::ZERO);
        assert_eq!(memory_json::entry(&seen), json!({ "uid": "" }));
    }
}
