//! One seat of the set: a pod name, its VM name, and what has to be true before a pod is created there.
//! Main agent, sub-agents and toolboxes share it.

use super::answers;
use super::budget::{self, Lost, Standing};
use super::costs::Costed;
use super::ended::{self, lost_node, unasked_node};
use super::observed::{Observed, Rival};
use super::rebuild::while_rebuilt;
use crate::core::action::{Change, Live, Question, Want};
use crate::core::contract::keys;
use crate::core::contract::names::{NameFit, Role, check_names};
use crate::core::decide::Gate;
use crate::core::decision::Finding;
use crate::core::fact::Fact;
use crate::core::oddity::Oddity;
use crate::core::pod::drift::{drift, must_recreate};
use crate::core::pod::facts::PodFacts;
use crate::core::pod::render::render;
use crate::core::pod::template::PodTemplate;
use crate::core::rule::Rule;
use crate::core::vanished::Vanished;
use crate::rules;
use std::time::Duration;

rules! {
    /// Wait for the predecessor of this name to be gone. Without it every pass tries a create that can only be refused,
    /// or, under a full quota, is refused for another reason.  (D-27, R31)
    AWAIT_PREDECESSOR = "seat/await-predecessor";
    /// Create nothing under a name that no label, pod or host bears.  (D-33)
    NAME_TOO_LONG = "seat/name-too-long";
    /// Create, probe and delete nothing under a VM name that another live set has more right to: both would share one
    /// registry repository and one hypervisor name, and one tenant would restore or delete the other's VM.  (D-28, D-29, R23)
    NAME_CONFLICT = "seat/name-conflict";
    /// Ask the API server about a pod that left the watch: an edited label looks just like a deletion.  (D-66, R26)
    LOOK_FOR_VANISHED = "seat/look-for-vanished";
    /// Create no second VM while the first may still run on a node that nobody can ask, whoever deleted its pod: without
    /// its node agent a delete stops nothing.  (D-78, R18)
    NODE_LOST = "seat/node-lost";
    /// Read the node live before the next VM of a name boots whose last one nobody saw end. A watch may stand still, and
    /// then a node that is long gone looks as well as ever.  (D-78, R8, R18)
    ASK_NODE = "seat/ask-node";
    /// Leave a pod alone that bears the name and is not ours, say whose it is, and look again from time to time.
    /// Never adopted, never deleted.  (D-26)
    FOREIGN_POD = "seat/foreign-pod";
    /// Look again who has the name: after 30 seconds, doubling to 5 minutes. The watch selects by our label, so that only of a
    /// stranger that bears it the end is seen at once.  (D-26, R26)
    LOOK_AT_FOREIGN = "seat/look-at-foreign";
    /// Ask the registry before a create: the node agent restores whatever tag it finds, so that a leftover one would
    /// roll the VM back, and a fresh boot beside a wanted one would lose it.  (D-05, D-06, D-81)
    ASK_SNAPSHOT = "seat/ask-snapshot";
    /// Create nothing where a snapshot waits that this version does not restore.  (D-81)
    SNAPSHOT_FOUND = "seat/snapshot-found";
    /// Wait between two creates of what keeps disappearing.  (D-46)
    AWAIT_BUDGET = "seat/await-budget";
    /// Pause creating what disappeared too often, and say so: a person has to look, or the spec to change. There is no pod
    /// to look at and nothing to lose, so it is tried again once the budget has aged.  (D-46, D-47)
    EXHAUSTED = "seat/exhausted";
}

/// Between two looks at a pod of another owner.
const FOREIGN_FIRST: Duration = Duration::from_secs(30);
const FOREIGN_MOST: Duration = Duration::from_secs(300);
/// A snapshot that was found is asked for again after this long.
const FOUND_AGAIN: Duration = Duration::from_secs(60);

/// One seat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seat {
    /// Who sits there.
    pub role: Role,
    /// Name of its pod.
    pub pod: String,
    /// Name of its VM.
    pub vm: String,
    /// Whether we manage the VM; a static toolbox's is somebody else's.
    pub managed: bool,
}

/// Whether a pod of ours sits there.
#[derive(Debug)]
pub enum Occupant<'a> {
    /// It does.
    Here(&'a PodFacts),
    /// It does not; this is why, and what it takes.
    Nobody(Step<'a>),
}

/// Where a seat without a pod stands.
#[derive(Debug)]
pub enum Step<'a> {
    /// A pod of ours is on its way out.
    Leaving(&'a PodFacts),
    /// Its names do not fit anywhere.
    Unnameable(Oddity),
    /// Another live set has more right to its VM name.
    Yields(&'a Rival),
    /// Its pod left the watch and nobody knows whether it is gone.
    Vanished,
    /// Its last VM may still run on this node.
    NodeLost(String),
    /// Somebody else's pod bears the name: its owner, whether it is on its way out, and when to look again.
    Foreign(Option<(String, String)>, bool, Option<Duration>),
    /// Somebody else's pod bore the name when last looked at.
    ForeignUnlooked,
    /// Nobody saw its last VM end, and this node was not read live yet.
    NodeUnasked(String),
    /// The registry was not asked yet, or could not say.
    SnapshotUnknown,
    /// A snapshot waits in the registry.
    SnapshotFound,
    /// It disappeared, and it is too early for another create.
    TooEarly(Duration),
    /// It disappeared too often.
    Exhausted(u32),
    /// Free: a pod may be created.
    Vacant,
}

impl Seat {
    /// The seat of a role; unknown roles have none.
    pub fn of(seen: &Observed, role: Role, managed: bool) -> Option<Self> {
        let pod = role.pod_name(&seen.set.name)?.to_string();
        let vm = role.vm_name(&seen.set.namespace, &seen.set.name)?.to_string();
        Some(Self { role, pod, vm, managed })
    }
}

impl<'a> Occupant<'a> {
    /// Recognises who sits there.
    pub fn of(seen: &'a Observed, seat: &Seat) -> Self {
        match seen.pods.get(&seat.pod) {
            Some(pod) if pod.deleting => Self::Nobody(Step::Leaving(pod)),
            Some(pod) => Self::Here(pod),
            None => Self::Nobody(Step::of(seen, seat)),
        }
    }
}

impl<'a> Step<'a> {
    fn of(seen: &'a Observed, seat: &Seat) -> Self {
        if let NameFit::Impossible(oddity) = check_names(&seen.set.namespace, &seen.set.name, &seat.role) {
            return Self::Unnameable(oddity);
        }
        if let Some(rival) = seen.rivals.get(&seat.vm).filter(|rival| yields(seen, seat, rival)) {
            return Self::Yields(rival);
        }
        let vanished = seen.memory.vanished.get(&seat.pod);
        if vanished.is_some_and(|vanished| !vanished.confirmed) {
            return Self::Vanished;
        }
        // Also where a static pod, which boots nothing, is to come there: it would bury what is known of the last VM.
        if let Some(node) = lost_node(seen, &seat.pod) {
            return Self::NodeLost(node);
        }
        let step = foreign(seen, seat).or_else(|| budgeted(seen, seat)).unwrap_or_else(|| Self::snapshot(seen, seat));
        match (step, unasked_node(seen, &seat.pod)) {
            (Self::Vacant, Some(node)) => Self::NodeUnasked(node),
            (step, _) => step,
        }
    }

    fn snapshot(seen: &Observed, seat: &Seat) -> Self {
        if !seat.managed {
            return Self::Vacant;
        }
        match seen.snapshot(&seat.vm, keys::TAG_HIBERNATE) {
            Fact::Known(None) => Self::Vacant,
            Fact::Known(Some(_)) => Self::SnapshotFound,
            Fact::Unasked if found_lately(seen, seat) => Self::SnapshotFound,
            Fact::Unasked | Fact::Unavailable(_) => Self::SnapshotUnknown,
        }
    }
}

fn found_lately(seen: &Observed, seat: &Seat) -> bool {
    let found = seen.memory.found.get(&seat.vm);
    found.is_some_and(|at| seen.mono.saturating_sub(*at) < FOUND_AGAIN)
}

/// Decision R23: whoever has the pod or saved state keeps the name, or the VM that may run on a lost node; else the older.
fn yields(seen: &Observed, seat: &Seat, rival: &Rival) -> bool {
    let has_it = seen.pods.contains_key(&seat.pod) || seen.set.holds(&seat.vm) || lost_node(seen, &seat.pod).is_some();
    match (has_it, rival.has_it) {
        (true, _) => false,
        (false, true) => true,
        (false, false) => (rival.created, rival.uid.as_str()) < (seen.set.created, seen.set.uid.as_str()),
    }
}

/// A stranger that the watch shows is waited for; one that only a live read showed is read again from time to time
/// (decision R26).
fn foreign<'a>(seen: &Observed, seat: &Seat) -> Option<Step<'a>> {
    if let Some(stranger) = seen.strangers.get(&seat.pod).filter(|stranger| stranger.labelled.is_some()) {
        let owner = stranger.owner.clone().map(|(kind, name, _)| (kind, name));
        let leaving = stranger.deleting || is_predecessors(seen, owner.as_ref());
        return Some(Step::Foreign(owner, leaving, None));
    }
    let known = seen.memory.foreign.get(&seat.pod)?;
    let leaving = known.deleting || is_predecessors(seen, known.owner.as_ref());
    let pause = if leaving {
        FOREIGN_FIRST
    } else {
        FOREIGN_FIRST.saturating_mul(1 << known.looks.saturating_sub(1).min(8)).min(FOREIGN_MOST)
    };
    let left = known.last.saturating_add(pause).checked_sub(seen.mono).filter(|left| !left.is_zero());
    Some(match left {
        Some(left) => Step::Foreign(known.owner.clone(), leaving, Some(left)),
        None => Step::ForeignUnlooked,
    })
}

/// Whether this owner is a set of this one's name that is no more: the garbage collector takes its pods in a moment, and
/// there is no conflict for a person to settle (decision R4).
fn is_predecessors(seen: &Observed, owner: Option<&(String, String)>) -> bool {
    owner.is_some_and(|(kind, name)| kind == keys::SET_KIND && *name == seen.set.name)
}

/// A pod that disappeared counts against the rebuild budget (D-46).
fn budgeted<'a>(seen: &Observed, seat: &Seat) -> Option<Step<'a>> {
    // The dead letter said so: whoever deletes its pod grants a fresh budget (D-47).
    let lost = Lost::of(seen, seat).filter(|lost| !lost.given_up)?;
    match budget::of_lost(seen, &seat.role, &lost) {
        // Nobody saw it go: it may only have left the selection while nobody watched (decision R26).
        Standing::Due if lost.uid.is_empty() && !is_known_gone(seen, &seat.pod) => Some(Step::Vanished),
        Standing::Charged | Standing::Due => None,
        Standing::TooEarly(left) => Some(Step::TooEarly(left)),
        Standing::Exhausted(count) => Some(Step::Exhausted(count)),
    }
}

fn is_known_gone(seen: &Observed, pod: &str) -> bool {
    seen.memory.absent.contains(pod) || seen.live.pod.get(pod).and_then(Fact::known) == Some(&None)
}

/// What to do about a seat without a pod. `wanted` is the pod to create, `rule` and `because` whose wish it is.
pub fn fill(seen: &Observed, seat: &Seat, step: Step<'_>, wanted: &PodTemplate, rule: &Rule) -> Costed {
    let Seat { pod, vm, .. } = seat;
    let finding = match step {
        Step::Leaving(_) => {
            let finding = Finding::of(&AWAIT_PREDECESSOR, format!("{pod} is still terminating"));
            while_rebuilt(seen, seat, finding.wait(format!("pod {pod} to be gone"), seen.look_after(pod)))
        }
        Step::Unnameable(oddity) => {
            Finding::of(&NAME_TOO_LONG, oddity.message.clone()).trouble(oddity.reason, oddity.message).stop()
        }
        Step::Yields(rival) => {
            let message = format!("VM name {vm} belongs to CocoonSet {}/{}", rival.namespace, rival.name);
            Finding::of(&NAME_CONFLICT, message.clone())
                .trouble("NameConflict", format!("{message}; rename one of the two"))
                .error_if(true)
                .stop()
        }
        Step::Vanished => Finding::of(&LOOK_FOR_VANISHED, format!("{pod} left the watch without our delete"))
            .ask(Question::ReadLive(Live::Pod(pod.clone()))),
        Step::NodeLost(node) => node_lost(seen, pod, &node),
        Step::NodeUnasked(node) => Finding::of(&ASK_NODE, format!("nobody saw the VM of {pod} end on node {node}"))
            .ask(Question::ReadLive(Live::Node(node))),
        Step::Foreign(owner, deleting, left) => foreign_pod(pod, owner, deleting, left),
        Step::ForeignUnlooked => Finding::of(&LOOK_AT_FOREIGN, format!("another owner had pod {pod}"))
            .ask(Question::ReadLive(Live::Pod(pod.clone()))),
        Step::SnapshotUnknown => snapshot_unknown(seen, seat, wanted),
        Step::SnapshotFound => {
            let found = snapshot_found(seat, &SNAPSHOT_FOUND, "created");
            found.wait(format!("snapshot {vm}:hibernate to be gone"), Some(FOUND_AGAIN))
        }
        Step::TooEarly(left) => {
            let finding = Finding::of(&AWAIT_BUDGET, format!("{pod} disappeared lately"));
            while_rebuilt(seen, seat, finding.wait(format!("the next try of {pod}"), Some(left)))
        }
        Step::Exhausted(0) => {
            Finding::of(&EXHAUSTED, format!("{pod} disappeared, and its rebuild history cannot be read")).stop()
        }
        Step::Exhausted(count) => {
            let message = format!("pod {pod} disappeared or failed {count} times");
            let finding = Finding::of(&EXHAUSTED, message.clone())
                .trouble("RebuildsExhausted", format!("{message}; edit the spec, or clear its rebuild history"));
            match budget::tried_again_in(seen, &seat.role) {
                Some(left) => finding.wait(format!("the budget of {pod} to count no more"), Some(left)),
                None => finding.stop(),
            }
        }
        Step::Vacant => return vacant(seen, seat, wanted, rule),
    };
    finding.into()
}

/// What keeps the successor of a pod that is there from being created: a snapshot, or that nobody can say whether there is
/// one. `ask` is who wants to know, `found` the rule that holds it.
pub fn successor_held(seen: &Observed, seat: &Seat, ask: Finding, found: &Rule) -> Option<Finding> {
    let vm = &seat.vm;
    match Step::snapshot(seen, seat) {
        Step::SnapshotFound => {
            let found = snapshot_found(seat, found, "replaced");
            Some(found.wait(format!("snapshot {vm}:hibernate to be gone"), Some(FOUND_AGAIN)))
        }
        Step::SnapshotUnknown => {
            let known = seen.memory.found.contains_key(vm).then(|| snapshot_found(seat, found, "replaced"));
            Some(asking(seen, vm, known, ask))
        }
        Step::Vacant
        | Step::Leaving(_)
        | Step::Unnameable(_)
        | Step::Yields(_)
        | Step::Vanished
        | Step::NodeLost(_)
        | Step::Foreign(..)
        | Step::ForeignUnlooked
        | Step::NodeUnasked(_)
        | Step::TooEarly(_)
        | Step::Exhausted(_) => None,
    }
}

fn snapshot_found(Seat { pod, vm, .. }: &Seat, rule: &Rule, done: &str) -> Finding {
    let message = format!("snapshot {vm}:hibernate exists, and this version does not restore it");
    Finding::of(rule, message.clone()).trouble("SnapshotFound", format!("{message}; pod {pod} is not {done}"))
}

/// The question; while it may not be asked again, what was found.
fn asking(seen: &Observed, vm: &str, found: Option<Finding>, ask: Finding) -> Finding {
    let question = Question::ProbeSnapshot { vm: vm.to_owned(), tag: keys::TAG_HIBERNATE.to_owned() };
    let is_open = answers::gate(seen, &Want::Ask(question.clone())) == Gate::Open;
    found.filter(|_| !is_open).unwrap_or(ask).ask(question)
}

/// Asks. What was found stays told until the registry says that it is gone: no other answer says so (D-51, D-55).
fn snapshot_unknown(seen: &Observed, seat: &Seat, wanted: &PodTemplate) -> Finding {
    let Seat { pod, vm, .. } = seat;
    let found = seen.memory.found.contains_key(vm).then(|| snapshot_found(seat, &SNAPSHOT_FOUND, "created"));
    // A create that may not be sent yet needs no answer of the registry.
    if let Gate::Held(held) = answers::gate(seen, &Want::Change(create(seen, seat, wanted, false))) {
        let because = format!("{} ({pod} is missing)", held.because).into();
        let trouble = held.trouble.clone().or(found.and_then(|found| found.trouble));
        return Finding { because, trouble, ..*held };
    }
    asking(seen, vm, found, Finding::of(&ASK_SNAPSHOT, format!("{pod} is missing, and a snapshot may wait for it")))
}

fn node_lost(seen: &Observed, pod: &str, node: &str) -> Finding {
    let message = format!("the VM of {pod} may still run on node {node}, which is lost");
    Finding::of(&NODE_LOST, message.clone())
        .trouble("NodeLost", format!("{message}; {}", ended::way_out(seen, node)))
        .wait(format!("node {node} to be back"), ended::look_after(seen, node))
}

fn foreign_pod(pod: &str, owner: Option<(String, String)>, deleting: bool, left: Option<Duration>) -> Finding {
    let owner = owner.map_or_else(|| "nobody".to_owned(), |(kind, name)| format!("{kind} {name}"));
    let message = format!("pod {pod} exists and is owned by {owner}");
    let finding = Finding::of(&FOREIGN_POD, message.clone());
    if deleting {
        return finding.wait(format!("pod {pod} to be gone"), left);
    }
    finding
        .trouble("NameConflict", format!("{message}; delete or rename it"))
        .error_if(true)
        .wait(format!("pod {pod} to be gone"), left)
}

fn vacant(seen: &Observed, seat: &Seat, wanted: &PodTemplate, rule: &Rule) -> Costed {
    let vanished = seen.memory.vanished.get(&seat.pod);
    let lost = Lost::of(seen, seat);
    let because = match (vanished.filter(|gone| !gone.by_us), &lost) {
        (Some(_), _) => format!("{} disappeared", seat.pod),
        (None, Some(_)) => format!("{} disappeared while nobody watched", seat.pod),
        (None, None) => format!("{} is missing", seat.pod),
    };
    let costed = Costed::from(Finding::of(rule, because).change(create(seen, seat, wanted, false)));
    match lost {
        Some(lost) if lost.given_up => costed.forgive(seen, seat),
        Some(lost)
            if !vanished.is_some_and(|gone| was_outdated(gone, wanted))
                && budget::of_lost(seen, &seat.role, &lost) == Standing::Due =>
        {
            costed.charge_lost(seen, seat, &lost)
        }
        Some(_) | None => costed,
    }
}

/// A pod that would have had to be replaced anyway: whoever deleted it, perhaps this operator before a restart, the spec
/// that is wanted now has not failed, and its budget is not charged.
fn was_outdated(vanished: &Vanished, wanted: &PodTemplate) -> bool {
    vanished.carried.as_ref().is_some_and(|carried| must_recreate(&drift(wanted, carried)))
}

/// The create of a seat's pod.
pub fn create(seen: &Observed, seat: &Seat, wanted: &PodTemplate, dry_run: bool) -> Change {
    Change::CreatePod { pod: seat.pod.clone(), manifest: render(wanted, &seen.identity()), dry_run }
}
