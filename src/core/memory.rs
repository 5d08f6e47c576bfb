//! What the operator keeps about one object between passes: what came of its attempts, and what only it has seen.
//! It is lost with the process, and nothing irreversible rests on it.

use super::action::{ActionKind, Attempt, Live, Question};
use super::outcome::{Class, Effect, Outcome};
use super::vanished::Vanished;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// All of it, for one object, under its uid.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Memory {
    /// Attempts that did not come to what was wanted, until they do. A success stands here where it did not stay.
    #[serde(with = "listed", skip_serializing_if = "BTreeMap::is_empty")]
    pub attempts: BTreeMap<Attempt, Record>,
    /// The refusal of a create because the namespace is going (decision R6).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<NamespaceRefusal>,
    /// When the status was last written, since the process started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_status: Option<Duration>,
    /// Pods that we deleted ourselves: name to uid.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub deleted: BTreeMap<String, String>,
    /// Pods that went without our delete, or before anybody saw their VMs end, as last seen: name to facts.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub vanished: BTreeMap<String, Vanished>,
    /// Names of pods that this process never saw, or is done with, and of which a live read said that there is none.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub absent: BTreeSet<String>,
    /// VMs watched since their pod was created: pod uid to what was seen since.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub watched: BTreeMap<String, Watched>,
    /// Pods made to restore a VM that were seen up since: by uid. What befalls them now is no wake.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub woken: BTreeSet<String>,
    /// Times that the rebuild histories state: each with its age when it was first read, and when that was since the
    /// process started. From then on the wall clock is not asked (D-48).
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub stamps: BTreeMap<Timestamp, (Duration, Duration)>,
    /// Pods of other owners under our names: name to when they were looked at.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub foreign: BTreeMap<String, Foreign>,
    /// Snapshots found where a pod was to be created: VM name to when.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub found: BTreeMap<String, Duration>,
    /// Names on record whose tags were found to be there still: VM name to when.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub kept: BTreeMap<String, Duration>,
    /// Nodes that a live read showed lost: name to when.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub lost_nodes: BTreeMap<String, Duration>,
    /// Tags, as `vm:tag`, that the registry said are gone, since the set is being deleted and no pod of it is left.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub collected: BTreeSet<String>,
    /// Live lists in a row that showed nothing but hidden pods on their way out: how many, and when the last was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hidden: Option<(u32, Duration)>,
    /// Writes that were undone twice in a row: in words, to when that last happened.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub undone: BTreeMap<String, Duration>,
    /// The API server drops `nodeName` from status entries: its CRD is an older one (decision R25).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub node_names_pruned: bool,
    /// Uid of the main agent's pod whose failure was counted; empty once one was Ready, none where nobody looked (D-52).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
    /// The same of the two status fields of the scale subresource.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub scale_pruned: bool,
    /// The error that the object is in, and when it was last counted (decision R4).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<(String, Duration)>,
}

/// A map whose keys are no text, as a list of pairs.
mod listed {
    use super::{Attempt, BTreeMap, Record};
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(map: &BTreeMap<Attempt, Record>, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(map)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<Attempt, Record>, D::Error> {
        Vec::deserialize(from).map(|pairs| pairs.into_iter().collect())
    }
}

/// What came of an attempt, and how often.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The last class.
    pub class: Class,
    /// How often in a row.
    pub count: u32,
    /// When the row began, since the process started.
    pub since: Duration,
    /// When it last happened.
    pub last: Duration,
    /// Not before this long after `last`, if the server said so.
    pub retry_after: Option<Duration>,
    /// The server's words.
    pub message: String,
    /// What it was tried on.
    pub target: String,
    /// `metadata.generation` it was tried for: an edit starts a new row.
    pub generation: i64,
    /// Whether the object was read live since.
    pub looked: bool,
    /// Whether what was written had itself been decided on a live read.
    pub on_live: bool,
    /// The list of finalizers that a finalizer write tested.
    pub tested: Option<Vec<String>>,
    /// The same list, read live both times, was tested twice in vain: no other writer is to blame (decision R9).
    pub in_vain: bool,
}

/// The refusal of a create because the namespace is going.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamespaceRefusal {
    /// How often.
    pub count: u32,
    /// When last.
    pub last: Duration,
    /// The server's words.
    pub message: String,
    /// The live read that followed.
    pub live: NamespaceLive,
    /// When the live read was last answered.
    pub asked: Option<Duration>,
}

/// What a live read of the namespace said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum NamespaceLive {
    /// Not asked since the refusal.
    Unasked,
    /// It is being deleted.
    Terminating,
    /// It is not, as far as can be told: of a 404 the watch would have to say more.
    Active,
    /// We may not read namespaces.
    Refused,
}

/// A pod of another owner under one of our names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Foreign {
    /// Kind and name of its controlling owner.
    pub owner: Option<(String, String)>,
    /// It was being deleted.
    pub deleting: bool,
    /// How often it was looked at.
    pub looks: u32,
    /// When last.
    pub last: Duration,
}

/// What was seen of a VM since its pod was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watched {
    /// It was `ready` at least once, or may have been while nobody watched.
    pub ever_ready: bool,
    /// It was marked for hibernation at least once.
    pub ever_marked: bool,
    /// It failed, and was not `ready` since: what its node agent tries meanwhile is no recovery.
    pub failing: bool,
}

impl Memory {
    /// Notes what an attempt came to, when it was not what was wanted.
    pub fn note(&mut self, attempt: &Attempt, outcome: &Outcome, now: Duration, generation: i64, on_live: bool) {
        let scope = scope(attempt, outcome.class);
        // A registry that answers for other tags is not away: then this one has a row of its own.
        if attempt.action == ActionKind::ProbeSnapshot && outcome.class == Class::Unavailable {
            self.note_at(attempt.clone(), attempt, outcome, now, generation, on_live);
        }
        self.note_at(scope, attempt, outcome, now, generation, on_live);
    }
    fn note_at(
        &mut self,
        at: Attempt,
        attempt: &Attempt,
        outcome: &Outcome,
        now: Duration,
        generation: i64,
        on_live: bool,
    ) {
        let known = self.attempts.get(&at).filter(|known| known.generation == generation);
        // What travels side by side is refused for one reason: a wide wave waits no longer than a narrow one.
        let again = |known: &Record| u32::from(known.last != now || known.target == attempt.target);
        let (since, count) = match known {
            Some(known) if known.class == outcome.class => (known.since, known.count.saturating_add(again(known))),
            Some(known) => (now, known.count.saturating_add(again(known))),
            None => (now, 1),
        };
        let record = Record {
            class: outcome.class,
            count,
            since,
            last: now,
            retry_after: outcome.retry_after,
            message: outcome.message.clone(),
            target: attempt.target.clone(),
            generation,
            looked: false,
            on_live,
            tested: None,
            in_vain: false,
        };
        self.attempts.insert(at, record);
    }
    /// Takes in a row as it was kept elsewhere, on this target or on the whole action.
    pub fn keep(&mut self, attempt: &Attempt, record: Record) {
        self.attempts.insert(scope(attempt, record.class), record);
    }
    /// Forgets what came of this attempt, now that it succeeded. A refusal of the whole action is answered by a success
    /// that came after it; one that came beside it says nothing, and one repository's says nothing of another.
    pub fn forget(&mut self, attempt: &Attempt, now: Duration) {
        self.attempts.remove(attempt);
        let answered = |refused: &Record| {
            let per_repository = refused.class == Class::Denied || refused.class == Class::Unsupported;
            refused.target == attempt.target || (refused.last < now && !per_repository)
        };
        if self.attempts.get(&whole(attempt)).is_some_and(answered) {
            self.attempts.remove(&whole(attempt));
        }
    }
    /// What came of this attempt last, on this target or on the whole action.
    pub fn record(&self, attempt: &Attempt) -> Option<&Record> {
        let known = [self.attempts.get(attempt), self.attempts.get(&whole(attempt))];
        known.into_iter().flatten().max_by_key(|record| (record.last, record.count))
    }
    /// The refusal of this attempt, of this target or of the whole action, whatever else was answered since.
    pub fn refusal(&self, attempt: &Attempt) -> Option<&Record> {
        let known = [self.attempts.get(attempt), self.attempts.get(&whole(attempt))];
        known.into_iter().flatten().find(|record| record.class.effect() == Effect::Refused)
    }
    /// Notes that this question was answered.
    pub fn looked(&mut self, question: &Question) {
        for (attempt, record) in &mut self.attempts {
            if looked_up_by(attempt, &record.target).as_ref() == Some(question) {
                record.looked = true;
            }
        }
    }
    /// Forgets everything about pods and tags that are not named here, so that memory is bounded by what exists.
    pub fn retain(&mut self, pods: &dyn Fn(&str) -> bool, uids: &dyn Fn(&str) -> bool, vms: &dyn Fn(&str) -> bool) {
        self.watched.retain(|uid, _| uids(uid));
        self.woken.retain(|uid| uids(uid));
        self.deleted.retain(|pod, _| pods(pod));
        self.vanished.retain(|pod, _| pods(pod));
        self.absent.retain(|pod| pods(pod));
        self.foreign.retain(|pod, _| pods(pod));
        self.found.retain(|vm, _| vms(vm));
        self.kept.retain(|vm, _| vms(vm));
        self.collected.retain(|tag| tag.rsplit_once(':').is_some_and(|(vm, _)| vms(vm)));
        self.attempts.retain(|attempt, record| is_about_any(attempt, &record.target, pods, vms));
    }
    /// The same of nodes, those of pods that are gone apart.
    pub fn retain_nodes(&mut self, nodes: &dyn Fn(&str) -> bool) {
        let gone: BTreeSet<String> = self.vanished.values().filter_map(|gone| gone.node.clone()).collect();
        let keeps = |node: &str| nodes(node) || gone.contains(node);
        self.lost_nodes.retain(|node, _| keeps(node));
        self.attempts.retain(|attempt, _| attempt.target.strip_prefix("node/").is_none_or(keeps));
    }
}

fn is_about_a_tag(attempt: &Attempt) -> bool {
    [ActionKind::ProbeSnapshot, ActionKind::DeleteSnapshot].contains(&attempt.action)
}

/// Whether an attempt on this target is about one of these pods or VMs, or about neither.
fn is_about_any(attempt: &Attempt, target: &str, pods: &dyn Fn(&str) -> bool, vms: &dyn Fn(&str) -> bool) -> bool {
    match attempt.action {
        ActionKind::CreatePod | ActionKind::DeletePod | ActionKind::PatchPod => pods(target),
        ActionKind::ReadLive => target.strip_prefix("pod/").is_none_or(pods),
        ActionKind::ProbeSnapshot | ActionKind::DeleteSnapshot => target.rsplit_once(':').is_none_or(|(vm, _)| vms(vm)),
        ActionKind::AddFinalizer
        | ActionKind::RemoveFinalizer
        | ActionKind::PatchObject
        | ActionKind::PatchStatus
        | ActionKind::EmitEvent
        | ActionKind::Await
        | ActionKind::Stop => true,
    }
}

/// Refusals that say something of the whole action count for all its targets (decision R3). Live reads are of several
/// resources, each with a permission of its own.
fn scope(attempt: &Attempt, class: Class) -> Attempt {
    match class {
        _ if attempt.action == ActionKind::ReadLive => attempt.clone(),
        // A registry that is away is away for every tag.
        Class::Unavailable if is_about_a_tag(attempt) => whole(attempt),
        // What it refuses to delete in one repository says nothing of another, which may not even have been tried.
        Class::Denied | Class::Unsupported if attempt.action == ActionKind::DeleteSnapshot => attempt.clone(),
        Class::QuotaExceeded
        | Class::RbacDenied
        | Class::Unauthorized
        | Class::AdmissionDenied
        | Class::PodSecurityDenied
        | Class::ForbiddenOther
        | Class::Throttled
        | Class::Denied
        | Class::Unsupported => whole(attempt),
        Class::Done
        | Class::Conflict
        | Class::PreconditionFailed
        | Class::AlreadyExists
        | Class::AlreadyExistsTerminating
        | Class::NotFound
        | Class::NamespaceNotFound
        | Class::NotServed
        | Class::NamespaceTerminating
        | Class::FinalizerOnDeleting
        | Class::Immutable
        | Class::Invalid
        | Class::TooLarge
        | Class::BadRequest
        | Class::Unavailable
        | Class::Expired
        | Class::Unknown
        | Class::Fenced
        | Class::Malformed
        | Class::Present
        | Class::Absent => attempt.clone(),
    }
}

fn whole(attempt: &Attempt) -> Attempt {
    Attempt { target: "*".to_owned(), ..attempt.clone() }
}

/// The live read that shows whether this attempt happened, or what moved.
fn looked_up_by(attempt: &Attempt, target: &str) -> Option<Question> {
    match attempt.action {
        ActionKind::AddFinalizer | ActionKind::RemoveFinalizer | ActionKind::PatchObject | ActionKind::PatchStatus => {
            Some(Question::ReadLive(Live::Object))
        }
        ActionKind::CreatePod | ActionKind::DeletePod | ActionKind::PatchPod => {
            Some(Question::ReadLive(Live::Pod(target.to_owned())))
        }
        ActionKind::DeleteSnapshot => {
            target.rsplit_once(':').map(|(vm, tag)| Question::ProbeSnapshot { vm: vm.to_owned(), tag: tag.to_owned() })
        }
        ActionKind::ProbeSnapshot
        | ActionKind::ReadLive
        | ActionKind::EmitEvent
        | ActionKind::Await
        | ActionKind::Stop => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn throttled(memory: &mut Memory, pod: &str, at: Duration) -> u32 {
        let attempt = Attempt { action: ActionKind::CreatePod, target: pod.to_owned(), dry_run: false };
        memory.note(&attempt, &Outcome::of(Class::Throttled), at, 1, false);
        memory.record(&attempt).map_or(0, |record| record.count)
    }

    #[test]
    fn a_wave_that_is_refused_counts_once() {
        let mut memory = Memory::default();
        let wave = |memory: &mut Memory, at| ["a", "b", "c"].map(|pod| throttled(memory, pod, at));
        assert_eq!(wave(&mut memory, SECOND), [1, 1, 1]);
        assert_eq!(wave(&mut memory, SECOND * 2), [2, 2, 2]);
    }

    #[test]
    fn the_same_refused_twice_at_one_moment_counts_twice() {
        let mut memory = Memory::default();
        assert_eq!([throttled(&mut memory, "a", SECOND), throttled(&mut memory, "a", SECOND)], [1, 2]);
    }
}
