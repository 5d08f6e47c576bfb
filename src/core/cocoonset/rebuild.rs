//! A VM that has failed: replaced within a budget, or left for a person. Main agent, sub-agents and toolboxes share it.

use super::budget::{self, Standing};
use super::concerns::stamp::patch_pod;
use super::costs::Costed;
use super::ended;
use super::observed::Observed;
use super::rollout;
use super::seat::Seat;
use crate::core::action::{Change, MetaPatch};
use crate::core::contract::keys;
use crate::core::contract::lifecycle::State;
use crate::core::contract::names::Role;
use crate::core::decision::Finding;
use crate::core::pod::drift::{FieldDrift, must_recreate};
use crate::core::pod::facts::PodFacts;
use crate::core::pod::template::PodTemplate;
use crate::core::rule::Rule;
use crate::rules;

rules! {
    /// Leave a failed VM alone while it runs: its push or hibernation failed, and its work is still in it. A spec edit or a
    /// person's delete is the way out.  (D-77, R16)
    FAILED_BUT_RUNNING = "rebuild/failed-but-running";
    /// Wait before the next rebuild: the first is at once, then 1, 5 and 30 seconds.  (CS-A6, D-48)
    BACK_OFF = "rebuild/back-off";
    /// Charge the budget, then delete the failed pod: a count that is written afterwards is lost with a crash.  (CS-A7, D-18, R8)
    REBUILD = "rebuild/rebuild";
    /// Delete the failed pod that is charged already: only the delete did not happen.  (D-11, D-52)
    REBUILD_CHARGED = "rebuild/rebuild-charged";
    /// Give up on a seat whose budget is spent, and say so on the pod.  (CS-A5, D-47)
    DEAD_LETTER = "rebuild/dead-letter";
    /// Leave a dead-lettered pod for a person to look at, or for an edit to replace.  (CS-A4, D-47)
    AWAIT_REMEDY = "rebuild/await-remedy";
    /// Delete no pod whose VM may run on a node that nobody can ask, neither to rebuild nor to replace it: a delete stops
    /// nothing there, and a second VM of the name would boot beside the first.  (D-78, R18)
    AWAIT_NODE = "rebuild/await-node";
    /// Delete no pod that its phase says is at its end while nothing says so of its VM: the API server removes such a pod at
    /// once, without waiting for the node agent, and a second VM of the name would boot beside the first. A node agent at
    /// work puts the phase right within half a minute, or deletes the pod.  (D-77, D-78, R16, R18)
    AWAIT_WORD = "rebuild/await-word";
    /// Take the dead letter off a pod that came up after all: with it the first probe that fails would cost a VM at work.
    /// (D-47, R16)
    RECOVERED = "rebuild/recovered";
    /// Forget the rebuilds of a seat whose pod has been Ready for a quarter of an hour: it has recovered, and a failure
    /// long after is another one. The time since the last rebuild alone says nothing: a VM that never comes up may be slow
    /// to say so.  (D-18a)
    FORGIVE = "rebuild/forgive";
    /// Leave a failed pod alone while its rebuild history cannot be read: it counts as exhausted.  (R21)
    HISTORY_UNREADABLE = "rebuild/history-unreadable";
}

/// Whether a pod is at its end: it has failed, or its rebuild is charged and only the delete did not happen. Its node
/// agent goes on trying meanwhile, and only success takes that back: a VM that it calls ready is at work, whatever its
/// probe says at the moment.
pub fn is_due(seen: &Observed, seat: &Seat, pod: &PodFacts) -> bool {
    let not_up = !pod.ready && pod.lifecycle.state != State::Ready;
    pod.is_terminal() || (not_up && budget::of(seen, &seat.role, pod.uid.as_str()) == Standing::Charged)
}

/// A node that is lost while it has a VM of this pod: nothing that is done about the pod stops the VM.
pub fn lost_node(seen: &Observed, pod: &PodFacts) -> Option<String> {
    let node = pod.node.as_ref().filter(|_| pod.has_vm())?;
    let is_lost = ended::is_shown_lost(seen, node.as_str()) && !seen.set.accepts_loss_of(node.as_str());
    is_lost.then(|| node.to_string())
}

/// What a delete of such a pod waits for.
pub fn await_node(seen: &Observed, pod: &PodFacts, node: &str) -> Finding {
    let message = format!("the VM of {} may still run on node {node}, which is lost", pod.name);
    Finding::of(&AWAIT_NODE, message.clone())
        .trouble("NodeLost", format!("{message}; {}", ended::way_out(seen, node)))
        .wait(format!("node {node} to be back"), None)
}

/// What a delete of a pod waits for whose VM may run although the pod has ended.
pub fn await_word(pod: &PodFacts) -> Finding {
    let message = format!("the phase of pod {} is {}, and its VM may run", pod.name, pod.phase.as_str());
    let way_out = "its node agent has to say that it does not; or end it there, and delete the pod";
    Finding::of(&AWAIT_WORD, message.clone())
        .trouble("VMFailedButRunning", format!("{message}: {way_out}"))
        .wait(format!("the node agent to put {} right", pod.name), None)
}

/// The dead letter of a pod that came up after all.
pub fn recovered(pod: &PodFacts) -> Option<Finding> {
    let up = pod.dead_letter && pod.ready && !pod.is_terminal();
    let patch = patch_pod(pod, MetaPatch::annotation(keys::DEAD_LETTER, None));
    up.then(|| Finding::of(&RECOVERED, format!("{} came up after it was given up", pod.name)).change(patch))
}

/// What to do about a pod that is at its end.
pub fn failed(seen: &Observed, seat: &Seat, pod: &PodFacts, wanted: &PodTemplate, drifts: &[FieldDrift]) -> Costed {
    if let Some(node) = lost_node(seen, pod) {
        return await_node(seen, pod, &node).into();
    }
    if pod.may_outlive_its_end() {
        return await_word(pod).into();
    }
    if must_recreate(drifts) {
        return rollout::replace(seen, seat, pod, wanted, drifts);
    }
    let why = reason(pod);
    if pod.dead_letter && !budget::is_edited(seen, &seat.role) {
        // Without the reason of the moment: the node agent goes on trying, and the status would flap with it.
        let message = format!("pod {} exhausted its rebuilds", pod.name);
        return Finding::of(&AWAIT_REMEDY, message.clone())
            .trouble("DeadLetter", format!("{message}; edit the spec, or delete the pod"))
            .stop()
            .into();
    }
    if runs(seen, pod) {
        let message = format!("pod {} reports failure and its VM runs: {why}", pod.name);
        return Finding::of(&FAILED_BUT_RUNNING, message.clone())
            .trouble("VMFailedButRunning", format!("{message}; edit the spec, or delete the pod"))
            .stop()
            .into();
    }
    if seen.set.spec.unreadable {
        return rollout::unreadable(pod).into();
    }
    match budget::of(seen, &seat.role, pod.uid.as_str()) {
        Standing::Charged => {
            let finding = Finding::of(&REBUILD_CHARGED, format!("{} failed and is charged already", pod.name));
            told(finding.change(delete(pod)), &seat.role, pod, budget::count(seen, &seat.role), &why).into()
        }
        Standing::TooEarly(left) => {
            let finding = Finding::of(&BACK_OFF, format!("{} failed again: {why}", pod.name));
            while_rebuilt(seen, seat, finding.wait(format!("the next rebuild of {}", pod.name), Some(left))).into()
        }
        Standing::Due => rebuild(seen, seat, pod, &why),
        Standing::Exhausted(0) => Finding::of(&HISTORY_UNREADABLE, format!("{} failed: {why}", pod.name)).stop().into(),
        Standing::Exhausted(count) => Costed::from(dead_letter(pod, count, &why)).give_up(seen, seat),
    }
}

/// Waits for a pod to be Ready. One that was rebuilt is degraded until then, whatever the node agent tries meanwhile: a
/// condition that came and went with each try would be an event each time.
pub fn await_ready(seen: &Observed, seat: &Seat, pod: &PodFacts, rule: &Rule) -> Finding {
    let finding = Finding::of(rule, format!("{} is not Ready", pod.name));
    while_rebuilt(seen, seat, finding.wait(format!("{} to be Ready", pod.name), None))
}

/// The same for whatever else a seat waits for between its rebuild and being Ready.
pub fn while_rebuilt(seen: &Observed, seat: &Seat, finding: Finding) -> Finding {
    match budget::count(seen, &seat.role) {
        0 => finding,
        count => {
            let message = format!("pod {} was rebuilt, {count} of {} times", seat.pod, budget::MOST);
            finding.trouble("Rebuilding", message)
        }
    }
}

fn rebuild(seen: &Observed, seat: &Seat, pod: &PodFacts, why: &str) -> Costed {
    let attempt = budget::count(seen, &seat.role) + 1;
    let finding = Finding::of(&REBUILD, format!("{} failed: {why}", pod.name)).change(delete(pod));
    Costed::from(told(finding, &seat.role, pod, attempt, why)).charge(seen, seat, pod.uid.as_str())
}

/// What its pod does for the budget of a seat by being Ready.
pub fn forgive(seen: &Observed, seat: &Seat, pod: &PodFacts) -> Option<Costed> {
    let left = budget::forgiven_in(seen, &seat.role, pod)?;
    if left.is_zero() {
        let finding = Finding::of(&FORGIVE, format!("{} has been Ready for a quarter of an hour", pod.name));
        return Some(Costed::from(finding).forgive(seen, seat));
    }
    let finding = Finding::of(&FORGIVE, format!("{} was rebuilt, and is Ready", pod.name));
    Some(finding.wait(format!("{} to have been Ready for a quarter of an hour", pod.name), Some(left)).into())
}

/// The delete that makes a rebuild, said to people.
fn told(finding: Finding, role: &Role, pod: &PodFacts, attempt: u32, why: &str) -> Finding {
    let (event, what) = match role {
        Role::SubAgent(slot) => ("SubAgentRebuilding", format!("slot {slot}")),
        Role::Main => ("MainRebuilding", "main".to_owned()),
        Role::Toolbox(name) => ("ToolboxRebuilding", format!("toolbox {name}")),
        Role::Unknown => ("Rebuilding", pod.name.to_string()),
    };
    finding.announce(false, event, format!("{what} attempt {attempt}/{}: {why}", budget::MOST)).about(pod)
}

fn dead_letter(pod: &PodFacts, count: u32, why: &str) -> Finding {
    let message = format!("pod {} exhausted {count} rebuilds: {why}", pod.name);
    let event = match pod.role {
        Role::SubAgent(_) => "SubAgentDeadLetter",
        Role::Main => "MainDeadLetter",
        Role::Toolbox(_) => "ToolboxDeadLetter",
        Role::Unknown => "DeadLetter",
    };
    Finding::of(&DEAD_LETTER, message.clone())
        .trouble("DeadLetter", format!("{message}; edit the spec, or delete the pod"))
        .change(patch_pod(pod, MetaPatch::annotation(keys::DEAD_LETTER, Some("true"))))
        .announce(true, event, message)
        .about(pod)
}

/// Decision R16: a failed VM with an id runs, unless it was nobody's work yet.
fn runs(seen: &Observed, pod: &PodFacts) -> bool {
    pod.lifecycle.state == State::Failed && is_at_work(seen, pod)
}

/// A VM with an id that may hold somebody's work: it was ready once, or nobody watched it from the start.
pub fn is_at_work(seen: &Observed, pod: &PodFacts) -> bool {
    let never_worked = seen.memory.watched.get(pod.uid.as_str()).is_some_and(|w| !w.ever_ready && !w.ever_marked)
        && !pod.ready
        && !pod.hibernate;
    pod.has_vm() && !never_worked && !pod.post_clone_failed
}

/// The delete of a failed pod: it rests on annotations, so on this very version of it.
fn delete(pod: &PodFacts) -> Change {
    Change::DeletePod {
        pod: pod.name.to_string(),
        uid: pod.uid.to_string(),
        resource_version: Some(pod.resource_version.clone()),
    }
}

/// Why it is at its end, in the node agent's words where it has any.
pub fn reason(pod: &PodFacts) -> String {
    if pod.lifecycle.state == State::Failed && !pod.lifecycle.message.is_empty() {
        return crate::core::oddity::excerpt(&pod.lifecycle.message, 300);
    }
    if pod.lifecycle.state == State::Failed {
        return "the node agent reports failure".to_owned();
    }
    if pod.dead_letter {
        return "it was given up before the edit".to_owned();
    }
    if pod.is_terminal() {
        return format!("its phase is {}", pod.phase.as_str());
    }
    "it failed before".to_owned()
}
