//! The status, from what is seen; the one place that writes it.

use super::concerns::main_agent;
use super::concerns::{paused, toolboxes};
use super::entries::{agents, keep_open_agents, keep_open_toolboxes, toolbox_entries};
use super::leaving;
use super::observed::Observed;
use super::rolling;
use super::seat::Seat;
use super::sitting;
use super::standing::Standing;
use crate::core::action::Change;
use crate::core::api::condition::{self, Condition};
use crate::core::api::set_status::SetStatus;
use crate::core::api::words::SetPhase;
use crate::core::contract::keys;
use crate::core::contract::names::Role;
use crate::core::decision::{Finding, Report, Trouble};
use crate::core::pod::facts::PodFacts;
use crate::rules;
use serde_json::Value;
use std::time::Duration;

rules! {
    /// Write the status when it reads differently, on the version decided on. A stale decision cannot overwrite a newer
    /// status, and a settled set is not written to at all.  (CS-P, D-21, D-22, D-64, D-74, R10)
    PUBLISH = "status/publish";
    /// Write the status at most once a second while things change, and once a minute where only words of the scheduler do.
    /// Without it a pod that fits on no node of a busy cluster costs a write a second, for ever.  (D-57)
    PACE = "status/pace";
}

/// Between two writes.
const PACE_OF_WRITES: Duration = Duration::from_secs(1);
/// Between two writes that differ in words of others alone.
const PACE_OF_QUOTES: Duration = Duration::from_secs(60);

/// Reason of Degraded while a VM may run on a node that is lost.
const NODE_LOST_REASON: &str = "NodeLost";

/// The write that is due, if one is.
pub fn publish(seen: &Observed, report: Report<SetPhase>, troubles: &[Trouble]) -> Option<Finding> {
    let wanted = match report {
        Report::Silent => return None,
        Report::Keep => kept(seen, troubles),
        Report::Only(condition) => only(seen, *condition),
        Report::Phase(phase) => whole(seen, phase, troubles),
        Report::Derived => whole(seen, Standing::of(seen).phase(), troubles),
    };
    let value = wanted.to_value();
    if reads_alike(&value, &seen.set.raw_status) {
        return None;
    }
    let (pace, since, what) = if only_quotes_differ(seen, &wanted, troubles) {
        let since = "less than a minute ago, and reads the same but for words of the scheduler";
        (PACE_OF_QUOTES, since, "a minute to pass")
    } else {
        (PACE_OF_WRITES, "less than a second ago", "a second to pass")
    };
    if let Some(left) = paced(seen, pace) {
        return Some(Finding::of(&PACE, format!("it was written {since}")).wait(what, Some(left)));
    }
    let because = told(&seen.set.status, &wanted);
    let mut finding = Finding::of(&PUBLISH, because).change(Change::PatchStatus {
        dropped: dropped(&seen.set.raw_status, &value),
        status: value,
        resource_version: seen.set.resource_version.clone(),
    });
    for (warning, reason, message, pod) in transitions(seen, &wanted) {
        finding = finding.announce(warning, &reason, message);
        finding = pod.into_iter().fold(finding, Finding::about);
    }
    Some(finding)
}

fn paced(seen: &Observed, pace: Duration) -> Option<Duration> {
    let due = seen.memory.last_status?.saturating_add(pace);
    due.checked_sub(seen.mono).filter(|left| !left.is_zero())
}

/// True where nothing is new but how the scheduler puts it. It counts nodes, all of them and those that do not fit for
/// each of its reasons, and so has other words whenever a node comes, goes or is not ready for a moment.
fn only_quotes_differ(seen: &Observed, wanted: &SetStatus, troubles: &[Trouble]) -> bool {
    let wordless = |status: &SetStatus| {
        let mut status = status.clone();
        status.conditions.iter_mut().for_each(|condition| condition.message.clear());
        status
    };
    troubles.iter().any(|trouble| trouble.reason == sitting::UNSCHEDULABLE_REASON)
        && wordless(wanted) == wordless(&seen.set.status)
}

/// Phase, entries, counts and observedGeneration stay; conditions move. Only what says where a VM may run comes back.
fn kept(seen: &Observed, troubles: &[Trouble]) -> SetStatus {
    let mut status = seen.set.status.clone();
    keep_open_agents(seen, &mut status.agents);
    keep_open_toolboxes(seen, &mut status.toolboxes);
    let degraded = degraded(seen, troubles);
    let told = condition::find(&status.conditions, "Degraded").is_some_and(Condition::is_true);
    let resumed = resumed(seen);
    // That nothing is wrong at this generation either is not worth a write.
    let is_due = told || degraded.is_true() || leaving::outlives_us(seen);
    if is_due || resumed.is_some() {
        let mut ours: Vec<Condition> = resumed.into_iter().chain(is_due.then_some(degraded)).collect();
        if seen.set.deleting.is_some() {
            status.observed_generation = seen.set.generation;
            leaving::follow(seen, &mut status);
            ours.extend(terminating(seen.set.generation));
        }
        status.conditions = condition::merge(&status.conditions, ours, &stamp(seen));
        // Every write of ours has them, so that an answer without them says that they are pruned.
        if status.selector.is_empty() {
            show_scale(seen, &mut status);
        }
    }
    status
}

/// Everything stays but one condition.
fn only(seen: &Observed, condition: Condition) -> SetStatus {
    let mut status = seen.set.status.clone();
    status.conditions = condition::merge(&status.conditions, vec![condition], &stamp(seen));
    status
}

/// What Progressing says once a pause is over and nothing else moves.
fn resumed(seen: &Observed) -> Option<Condition> {
    let was = condition::find(&seen.set.status.conditions, "Progressing")?;
    let phase = seen.set.status.phase.clone().unwrap_or(SetPhase::Pending);
    (was.reason == paused::REASON).then(|| progressing(&phase, seen.set.generation))
}

/// A deletion that is held up is neither ready nor at rest. One that is not is over too soon to be worth a write.
fn terminating(generation: i64) -> [Condition; 2] {
    let message = "the set is being deleted";
    [
        Condition::new("Ready", false, leaving::REASON, message, generation),
        Condition::new("Progressing", true, leaving::REASON, message, generation),
    ]
}

fn whole(seen: &Observed, phase: SetPhase, troubles: &[Trouble]) -> SetStatus {
    let counts = Counts::of(seen);
    let conditions = vec![
        counts.condition(seen.set.generation),
        rolling::condition(seen, phase.as_str()).unwrap_or_else(|| progressing(&phase, seen.set.generation)),
        suspended(&phase, seen.set.generation),
        degraded(seen, troubles),
    ];
    let mut status = SetStatus {
        observed_generation: seen.set.generation,
        phase: Some(phase),
        ready_agents: counts.ready_agents,
        desired_agents: counts.desired_agents,
        ready_toolboxes: counts.ready_toolboxes,
        desired_toolboxes: counts.desired_toolboxes,
        agents: agents(seen),
        toolboxes: toolbox_entries(seen),
        conditions: condition::merge(&seen.set.status.conditions, conditions, &stamp(seen)),
        sub_agents: None,
        selector: String::new(),
    };
    show_scale(seen, &mut status);
    status
}

/// The two fields of the scale subresource, unless an older CRD prunes them (R25).
fn show_scale(seen: &Observed, status: &mut SetStatus) {
    if !seen.memory.scale_pruned {
        status.sub_agents = Some(sub_agents(seen));
        status.selector = selector(seen);
    }
}

/// Every sub-agent that has a pod, also one that is surplus or on its way out: it is there.
pub(super) fn sub_agents(seen: &Observed) -> i32 {
    let count = seen.pods.values().filter(|pod| matches!(seen.role_of(pod), Role::SubAgent(_))).count();
    i32::try_from(count).unwrap_or(i32::MAX)
}

/// The pods that scaling is about, as label selectors are written.
fn selector(seen: &Observed) -> String {
    format!("{}={},{}={}", keys::NAME, seen.set.name, keys::ROLE, Role::SubAgent(1).label())
}

/// Desired seats only: a pod beyond the count makes nothing ready (D-64).
pub(super) struct Counts {
    pub(super) ready_agents: i32,
    desired_agents: i32,
    pub(super) ready_toolboxes: i32,
    desired_toolboxes: i32,
}

impl Counts {
    pub(super) fn of(seen: &Observed) -> Self {
        let agent = &seen.set.spec.agent;
        let ready = |pod: &&PodFacts| pod.ready && !pod.deleting && !pod.is_terminal();
        let (mut agents, mut toolboxes) = (0, 0);
        for pod in seen.pods.values().filter(ready) {
            match seen.role_of(pod) {
                Role::Main => agents += 1,
                Role::SubAgent(slot) if agent.wants(slot) => agents += 1,
                Role::Toolbox(name) if seen.set.spec.lists_toolbox(&name) => toolboxes += 1,
                Role::SubAgent(_) | Role::Toolbox(_) | Role::Unknown => {}
            }
        }
        Self {
            ready_agents: agents,
            // How many are wanted was known once, and is not changed by a word that nobody can read.
            desired_agents: match agent.replicas_unreadable {
                true => seen.set.status.desired_agents.max(1),
                false => seen.set.spec.desired_agents(),
            },
            ready_toolboxes: toolboxes,
            desired_toolboxes: i32::try_from(seen.set.spec.toolboxes.len()).unwrap_or(i32::MAX),
        }
    }
    fn complete(&self) -> bool {
        self.ready_agents >= self.desired_agents && self.ready_toolboxes >= self.desired_toolboxes
    }
    fn condition(&self, generation: i64) -> Condition {
        let Self { ready_agents, desired_agents, ready_toolboxes, desired_toolboxes } = self;
        let message = format!(
            "{ready_agents}/{desired_agents} agents ready, {ready_toolboxes}/{desired_toolboxes} toolboxes ready"
        );
        let reason = if self.complete() { "AllAgentsReady" } else { "AgentsNotReady" };
        Condition::new("Ready", self.complete(), reason, message, generation)
    }
}

/// Whether every desired agent and toolbox is Ready.
pub fn is_complete(seen: &Observed) -> bool {
    Counts::of(seen).complete()
}

fn progressing(phase: &SetPhase, generation: i64) -> Condition {
    let (status, reason) = match phase {
        SetPhase::Pending | SetPhase::Scaling => (true, "Reconciling"),
        SetPhase::Suspending => (true, "Suspending"),
        SetPhase::Waking => (true, "Waking"),
        SetPhase::Migrating => (true, "Migrating"),
        SetPhase::Failed => (false, "Failed"),
        SetPhase::Running | SetPhase::Suspended | SetPhase::Unknown(_) => (false, "Stable"),
    };
    Condition::new("Progressing", status, reason, phase.as_str(), generation)
}

fn suspended(phase: &SetPhase, generation: i64) -> Condition {
    let is = *phase == SetPhase::Suspended;
    let reason = if is { "Suspended" } else { "NotSuspended" };
    Condition::new("Suspended", is, reason, phase.as_str(), generation)
}

/// Every other condition is a reason of Degraded; the message lists all (decision R10).
fn degraded(seen: &Observed, troubles: &[Trouble]) -> Condition {
    let mut ranked: Vec<&Trouble> = troubles.iter().collect();
    ranked.sort_by_key(|trouble| rank(trouble));
    let Some(first) = ranked.first() else {
        return Condition::new("Degraded", false, "AsWanted", "", seen.set.generation);
    };
    let lines: Vec<String> = ranked.iter().map(|trouble| format!("{}: {}", trouble.reason, trouble.message)).collect();
    let generation = super::budget::unspent_edit(seen).unwrap_or(seen.set.generation);
    Condition::new("Degraded", true, &first.reason, lines.join("; "), generation)
}

/// What needs a person stands first, then a VM that may run where nobody can ask: a person alone can end that wait too, and
/// the reason of the condition is what the event tells (D-51, R10).
fn rank(trouble: &Trouble) -> u8 {
    match (trouble.error, trouble.reason.as_ref()) {
        (true, _) => 0,
        (false, NODE_LOST_REASON) => 1,
        (false, _) => 2,
    }
}

/// Equal but for what an older CRD prunes or a Go client writes as null.
fn reads_alike(wanted: &Value, stored: &Value) -> bool {
    wanted == stored || *wanted == SetStatus::read(stored).to_value()
}

fn dropped(stored: &Value, wanted: &Value) -> Vec<String> {
    let keys = stored.as_object().into_iter().flatten().map(|(key, _)| key);
    keys.filter(|key| wanted.get(key.as_str()).is_none()).cloned().collect()
}

fn told(before: &SetStatus, after: &SetStatus) -> String {
    let phase = |status: &SetStatus| status.phase.as_ref().map_or("unset", SetPhase::as_str).to_owned();
    let (was, is) = (phase(before), phase(after));
    let counts = format!(
        "{}/{} agents, {}/{} toolboxes",
        after.ready_agents, after.desired_agents, after.ready_toolboxes, after.desired_toolboxes
    );
    if condition::find(&after.conditions, "Progressing").is_some_and(|now| now.reason == paused::REASON) {
        return format!("{is}, paused");
    }
    if was == is { format!("{is}, {counts}") } else { format!("{is}, was {was}, {counts}") }
}

/// Events go out with the write that makes them true: at most once for each transition (D-51).
fn transitions<'a>(seen: &'a Observed, after: &SetStatus) -> Vec<(bool, String, String, Option<&'a PodFacts>)> {
    let mut events = Vec::new();
    let before = &seen.set.status;
    let failed = |status: &SetStatus| status.phase == Some(SetPhase::Failed);
    if failed(after) && !failed(before) {
        if let Some(main) = seen.main() {
            let reported = main.lifecycle.state == crate::core::contract::lifecycle::State::Failed;
            let reason = if reported { "PodLifecycleFailed" } else { "MainAgentFailed" };
            let message = format!("main pod {}/{}: {}", seen.set.namespace, main.name, super::rebuild::reason(main));
            events.push((true, reason.to_owned(), message, Some(main)));
        }
    } else if failed(before) && !failed(after) && main_agent::ready(seen).is_some() {
        let name = seen.main().map(|main| main.name.to_string()).unwrap_or_default();
        let message = format!("main pod {}/{name} is Ready again", seen.set.namespace);
        events.push((false, "RecoveredFromFailure".to_owned(), message, seen.main()));
    }
    let degraded = |status: &SetStatus| condition::find(&status.conditions, "Degraded").cloned();
    // What held a living set up is known; that it holds up the deletion as well is not.
    let begins_to_go = is_going(after) && !is_going(before);
    if let Some(now) = degraded(after).filter(Condition::is_true)
        && degraded(before).is_none_or(|was| {
            !was.is_true() || was.reason != now.reason || (begins_to_go && was.message != now.message)
        })
    {
        let message = now.message.strip_prefix(&format!("{}: ", now.reason)).unwrap_or(&now.message);
        events.push((true, now.reason.clone(), message.to_owned(), None));
    }
    events
}

fn is_going(status: &SetStatus) -> bool {
    condition::find(&status.conditions, "Progressing").is_some_and(|told| told.reason == leaving::REASON)
}

/// As Kubernetes writes the times of conditions: whole seconds.
fn stamp(seen: &Observed) -> String {
    jiff::Timestamp::from_second(seen.now.as_second()).unwrap_or(seen.now).to_string()
}

/// Every seat that the spec asks for.
pub fn desired_seats(seen: &Observed) -> Vec<Seat> {
    let agents = (0..=seen.set.spec.agent.replicas_clamped)
        .filter_map(|slot| Seat::of(seen, if slot == 0 { Role::Main } else { Role::SubAgent(slot) }, true));
    let toolboxes = seen.set.spec.creatable_toolboxes().filter_map(|toolbox| toolboxes::seat(seen, toolbox));
    agents.chain(toolboxes).collect()
}
