//! Sub-agents, slot by slot: extra, missing, failed, drifted.

use super::{main_agent, stamp};
use crate::core::action::{ActionKind, Attempt, Change, Live, Question, Want};
use crate::core::api::words::SetPhase;
use crate::core::cocoonset::answers;
use crate::core::cocoonset::costs::{self, Costed};
use crate::core::cocoonset::ended;
use crate::core::cocoonset::observed::Observed;
use crate::core::cocoonset::recorded;
use crate::core::cocoonset::rollout;
use crate::core::cocoonset::seat::{self, LOOK_FOR_VANISHED, Occupant, Seat, Step};
use crate::core::cocoonset::sitting::{self, Sitting};
use crate::core::contract::names::{NodeName, Role, VmName, agent_vm};
use crate::core::control::pass::WIDTH_MAX;
use crate::core::decide::Gate;
use crate::core::decision::{Finding, Verdict};
use crate::core::oddity::many;
use crate::core::pod::drift::{drift_of, must_recreate};
use crate::core::pod::facts::PodFacts;
use crate::core::pod::template::{Boot, PodTemplate, wanted_sub_agent};
use crate::core::rule::Rule;
use crate::rules;
use std::collections::BTreeSet;

rules! {
    /// Delete agents beyond the count, the highest slot first, after their names are written down. Never held up by a
    /// create that fails: the delete may free the very quota it waits for.  (CS-A3, D-07, D-25, D-67)
    SCALE_DOWN = "sub-agents/scale-down";
    /// Write down the name of a VM whose pod went by itself while the spec stopped wanting it: its tags are owed still.
    /// (D-07, R7)
    REMEMBER = "sub-agents/remember";
    /// Create a missing sub-agent as a fork of the main agent, on its node.  (CS-A2, D-44)
    CREATE = "sub-agents/create";
    /// Wait with missing sub-agents until the main agent is Ready: they are forks of it.  (CS-M3)
    AWAIT_MAIN = "sub-agents/await-main";
    /// Wait for a sub-agent to be Ready.
    AWAIT_READY = "sub-agents/await-ready";
    /// Say that sub-agents live on another node than the main agent, whose VM they are forks of.  (D-44)
    SPLIT = "sub-agents/split";
}

/// See the rules.
pub fn judge(seen: &Observed) -> Verdict<SetPhase> {
    let gone =
        remember_strays(seen, &REMEMBER, "a VM that the spec no longer wants is gone", |vm| !was_toolbox(seen, vm));
    let strays = gone.into_iter().chain(look_for_strays(seen)).chain(ask_after_strays(seen));
    let mut findings: Vec<Costed> = scale_down(seen).into_iter().chain(strays).map(Costed::from).collect();
    let mut missing = Vec::new();
    let mut sitting = Vec::new();
    for seat in seats(seen) {
        match Occupant::of(seen, &seat) {
            Occupant::Here(pod) => {
                let wanted = wanted(seen, &seat.role);
                sitting.push(Sitting::of(seat, pod, wanted));
            }
            Occupant::Nobody(step) => missing.push(fill(seen, &seat, step)),
        }
    }
    findings.extend(await_main(seen, &mut missing).map(Costed::from));
    ask_in_turn(seen, &mut missing);
    findings.extend(missing);
    let (misplaced, sitting): (Vec<_>, Vec<_>) = sitting.into_iter().partition(|at| is_misplaced(seen, at));
    findings.extend(misplaced.iter().map(|at| Costed::from(rollout::follow(at.pod, &at.wanted))));
    findings.extend(sitting.iter().flat_map(|at| at.tend(seen, &AWAIT_READY)));
    findings.extend(replace_one(seen, &sitting));
    findings.extend(split(seen, &sitting).map(Costed::from));
    if findings.is_empty() {
        return Verdict::pass(format!("{}, and there", wanted_count(seen)));
    }
    Verdict::Act(costs::settle(seen, findings))
}

fn wanted_count(seen: &Observed) -> String {
    let replicas = usize::try_from(seen.set.spec.agent.replicas).unwrap_or_default();
    many(replicas, "sub-agent is wanted", "sub-agents are wanted")
}

/// Seats of this set's sub-agents: those that may be created, and those that exist within the spec's own count.
fn seats(seen: &Observed) -> Vec<Seat> {
    let agent = &seen.set.spec.agent;
    let mut slots: BTreeSet<u32> = (1..=agent.replicas_clamped).collect();
    slots.extend(seen.pods.values().filter_map(|pod| slot_of(seen, pod)).filter(|slot| agent.wants(*slot)));
    slots.into_iter().filter_map(|slot| Seat::of(seen, Role::SubAgent(slot), true)).collect()
}

fn slot_of(seen: &Observed, pod: &PodFacts) -> Option<u32> {
    match seen.role_of(pod) {
        Role::SubAgent(slot) => Some(slot),
        Role::Main | Role::Toolbox(_) | Role::Unknown => None,
    }
}

/// The pod that the spec wants in the seat of this role.
pub fn wanted(seen: &Observed, role: &Role) -> PodTemplate {
    let Role::SubAgent(slot) = role else { return main_agent::wanted(seen) };
    let main = seen.main();
    let vm =
        main.and_then(|main| seen.vm_of(main)).map_or_else(|| agent_vm(&seen.set.namespace, &seen.set.name, 0), VmName);
    let node: Option<&NodeName> = main.and_then(|main| main.node.as_ref());
    wanted_sub_agent(&seen.set.spec, &seen.identity(), *slot, &vm, node, Boot::Fresh)
}

fn scale_down(seen: &Observed) -> Vec<Finding> {
    let surplus = |pod: &&PodFacts| slot_of(seen, pod).is_some() && seen.is_surplus(pod);
    let mut extra: Vec<&PodFacts> = seen.pods.values().filter(|pod| !pod.deleting).filter(surplus).collect();
    extra.sort_by_key(|pod| std::cmp::Reverse(slot_of(seen, pod)));
    let because = format!("{}, and {} there", wanted_count(seen), many(extra.len(), "more is", "more are"));
    delete_after_remembering(seen, &SCALE_DOWN, &because, &extra)
}

/// Writes down the names of these pods' VMs, then deletes them: each delete waits for the names, none for another
/// (decision R8).
pub fn delete_after_remembering(seen: &Observed, rule: &Rule, because: &str, pods: &[&PodFacts]) -> Vec<Finding> {
    let names: BTreeSet<String> =
        pods.iter().filter_map(|pod| seen.vm_of(pod)).filter(|vm| seen.is_of_formula(vm)).collect();
    let delete = |pod: &&PodFacts| {
        Finding::of(rule, because.to_owned()).change(Change::DeletePod {
            pod: pod.name.to_string(),
            uid: pod.uid.to_string(),
            resource_version: None,
        })
    };
    let remember = (!pods.is_empty()).then(|| seen.remember(&names)).flatten();
    if let Some(too_large) = remember.as_ref().and_then(|change| recorded::too_large(rule, change)) {
        return vec![too_large];
    }
    let remember = remember.map(|change| Finding::of(rule, because.to_owned()).change(change));
    let shown: Vec<&PodFacts> = pods.iter().copied().filter(|pod| !stamp::is_hidden_for_now(seen, pod)).collect();
    after_remembering(seen, remember, shown.iter().map(delete))
}

/// The names once, then the deletes; where the names may not be written yet, they alone.
pub fn after_remembering(
    seen: &Observed,
    remember: Option<Finding>,
    deletes: impl Iterator<Item = Finding>,
) -> Vec<Finding> {
    let wants = remember.iter().flat_map(|finding| &finding.wants);
    if wants.clone().any(|want| answers::gate(seen, want) != Gate::Open) {
        return remember.into_iter().collect();
    }
    // The first delete wants the names as well, and so its rule stands beside theirs.
    let wants: Vec<Want> = wants.cloned().collect();
    let mut findings: Vec<Finding> = deletes.collect();
    if let Some(first) = findings.first_mut() {
        first.wants.splice(0..0, wants);
    }
    remember.into_iter().chain(findings).collect()
}

/// VM names that only the status still lists, of these: their pods are gone, and the spec does not want them back.
pub fn remember_strays(seen: &Observed, rule: &Rule, because: &str, of: impl Fn(&str) -> bool) -> Option<Finding> {
    let wanted = seen.set.vm_names();
    let there: BTreeSet<String> = seen.pods.values().filter_map(|pod| seen.vm_of(pod)).collect();
    let listed = seen.set.status.vm_names().filter(|vm| !wanted.contains(*vm) && !there.contains(*vm));
    let strays: BTreeSet<String> = listed.filter(|vm| seen.is_of_formula(vm) && of(vm)).map(str::to_owned).collect();
    let remember = seen.remember(&strays)?;
    if let Some(too_large) = recorded::too_large(rule, &remember) {
        return Some(too_large);
    }
    Some(Finding::of(rule, because.to_owned()).change(remember))
}

/// Whether the status lists this VM as a toolbox's.
pub fn was_toolbox(seen: &Observed, vm: &str) -> bool {
    seen.set.status.toolboxes.iter().any(|entry| entry.vm_name == vm)
}

/// Pods that the spec no longer wants and that left the watch without our delete: one that only lost its label would
/// run for ever (decision R26).
fn look_for_strays(seen: &Observed) -> Option<Finding> {
    let unlooked = |name: &&str| {
        !seen.set.wants_pod(name)
            && !seen.pods.contains_key(*name)
            && !seen.memory.deleted.contains_key(*name)
            && !seen.memory.foreign.contains_key(*name)
            && !seen.memory.absent.contains(*name)
            && seen.live.pod.get(*name).is_none_or(|fact| fact.known().is_none())
    };
    let vanished = seen.memory.vanished.iter().filter(|(_, gone)| !gone.confirmed).map(|(name, _)| name.as_str());
    let confirmed = |name: &&str| seen.memory.vanished.get(*name).is_some_and(|gone| gone.confirmed);
    let listed = seen.set.status.pod_names().filter(|name| !confirmed(name));
    let names: BTreeSet<&str> = vanished.chain(listed).filter(unlooked).collect();
    let first = names.first()?;
    let finding =
        Finding::of(&LOOK_FOR_VANISHED, format!("{first} is not wanted, and left the watch without our delete"));
    Some(names.iter().fold(finding, |finding, name| finding.ask(Question::ReadLive(Live::Pod((*name).to_owned())))))
}

/// Of those that went while nobody watched, whether their VMs may run: once, or their entries would stay for ever.
fn ask_after_strays(seen: &Observed) -> Option<Finding> {
    let strays = ended::strays_unasked(seen);
    let (pod, node) = strays.first()?;
    let finding = Finding::of(&seat::ASK_NODE, format!("nobody saw the VM of {pod} end on node {node}"));
    let nodes: BTreeSet<&String> = strays.iter().map(|(_, node)| node).collect();
    Some(nodes.into_iter().fold(finding, |finding, node| finding.ask(Question::ReadLive(Live::Node(node.clone())))))
}

fn fill(seen: &Observed, seat: &Seat, step: Step<'_>) -> Costed {
    seat::fill(seen, seat, step, &wanted(seen, &seat.role), &CREATE)
}

/// Without a Ready main agent nothing is created or asked for; said once, not once for each slot.
fn await_main(seen: &Observed, missing: &mut Vec<Costed>) -> Option<Finding> {
    if main_agent::settled(seen).is_some() {
        return None;
    }
    let before = missing.len();
    let waits = [CREATE.id(), seat::ASK_SNAPSHOT.id(), seat::ASK_NODE.id()];
    missing.retain(|costed| !waits.contains(&costed.finding.rule));
    if missing.len() == before {
        return None;
    }
    let missing = many(before - missing.len(), "sub-agent is missing", "sub-agents are missing");
    let because = format!("{missing}, and the main agent is not settled");
    Some(Finding::of(&AWAIT_MAIN, because).wait("the main agent to be Ready and as wanted", None))
}

/// Of many missing sub-agents, the registry is asked for as many as are created side by side; for one, where creates
/// were refused lately: the refusal of the first may be that of all.
fn ask_in_turn(seen: &Observed, missing: &mut Vec<Costed>) {
    let any = Attempt { action: ActionKind::CreatePod, target: String::new(), dry_run: false };
    let mut left = if seen.memory.record(&any).is_some() { 1 } else { WIDTH_MAX };
    missing.retain(|costed| {
        let asks = costed.finding.rule == seat::ASK_SNAPSHOT.id();
        let keeps = !asks || left > 0;
        left -= usize::from(asks && keeps);
        keeps
    });
}

/// Decision R20: the highest drifted slot, once the main agent and every other sub-agent is Ready and as wanted.
fn replace_one(seen: &Observed, sitting: &[Sitting<'_>]) -> Option<Costed> {
    let next = sitting.iter().filter(|at| at.is_outdated(seen)).max_by_key(|at| slot_of(seen, at.pod))?;
    let complete = sitting.len() >= seen.set.spec.agent.replicas_clamped as usize;
    if main_agent::settled(seen).is_none() {
        return Some(next.await_turn("the main agent has to be Ready and as wanted").into());
    }
    if !sitting::others_are_ready(sitting) || !complete {
        return Some(next.await_turn("the other sub-agents have to be Ready").into());
    }
    Some(next.replace(seen))
}

/// Pinned to a node that the main agent has left; judged only once that one is where it stays.
fn is_misplaced(seen: &Observed, at: &Sitting<'_>) -> bool {
    main_agent::settled(seen).is_some() && rollout::is_misplaced(at.pod, &at.wanted)
}

/// True while a sub-agent is missing, failed, not Ready or not as wanted.
pub fn are_unsettled(seen: &Observed) -> bool {
    seats(seen).iter().any(|seat| {
        seen.pods.get(&seat.pod).is_none_or(|pod| {
            pod.deleting || !pod.ready || pod.is_terminal() || must_recreate(&drift_of(&wanted(seen, &seat.role), pod))
        })
    })
}

fn split(seen: &Observed, sitting: &[Sitting<'_>]) -> Option<Finding> {
    let main = main_agent::ready(seen)?.node.as_ref()?;
    let away: Vec<&str> = sitting
        .iter()
        .filter(|at| at.pod.node.as_ref().is_some_and(|node| node != main))
        .map(|at| at.pod.name.as_str())
        .collect();
    if away.is_empty() {
        return None;
    }
    let who = many(away.len(), "sub-agent is", "sub-agents are");
    let message = format!("{who} not on the main agent's node {main}: {}", away.join(", "));
    Some(Finding::of(&SPLIT, message.clone()).trouble("SplitAcrossNodes", message))
}
