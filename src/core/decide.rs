//! The one judgement: ask each concern in turn, hold back what must wait, merge, and let the status follow.

use super::action::{Action, Attempt, Change, Live, Question, Subject, Wait, Want};
use super::contract::joined::joined;
use super::decision::{Decision, Entry, Finding, Report, Trouble, Verdict};
use super::outcome::Outcome;
use super::rule::{Because, RuleId};
use std::collections::{BTreeMap, BTreeSet};

/// A concern: its name and how it judges.
pub struct Concern<O: Observation> {
    /// As printed in the trace.
    pub name: &'static str,
    /// Its opinion of what is seen.
    pub judge: fn(&O) -> Verdict<O::Phase>,
}

/// Whether a wish may be sent, given what came of it before.
#[derive(Clone, Debug, PartialEq)]
pub enum Gate {
    /// Send it.
    Open,
    /// This stands in its place: a look, or a wait.
    Held(Box<Finding>),
}

/// What a controller brings: its facts, its concerns in order, its status, and how it takes answers in.
pub trait Observation: Clone + 'static {
    /// What `status.phase` may say.
    type Phase: Clone + 'static;
    /// In the order an operator would think of them.
    const CONCERNS: &'static [Concern<Self>];
    /// Who this is about.
    fn subject(&self) -> Subject;
    /// What came of this wish before, and so whether it may be sent. The one place that reads past outcomes.
    fn gate(&self, want: &Want) -> Gate;
    /// The one place that writes the status.
    fn publish(&self, report: Report<Self::Phase>, troubles: &[Trouble]) -> Option<Finding>;
    /// Takes in what an attempt came to.
    fn absorb(&mut self, attempt: &Attempt, outcome: &Outcome);
    /// Whether nobody can be told by an event: its namespace takes no new objects (decision R27).
    fn is_muted(&self) -> bool;
    /// The same, where the wish itself is at hand; true where it succeeded and was undone at once, so that what stands
    /// behind it in the plan rests on nothing.
    fn take_in(&mut self, want: &Want, attempt: &Attempt, outcome: &Outcome) -> bool {
        let _ = want;
        self.absorb(attempt, outcome);
        false
    }
    /// Takes a write as done that is not sent, where it can come to one thing only; false where it cannot, or is taken
    /// so already (decision R30).
    fn suppose(&mut self, want: &Want) -> bool {
        let _ = want;
        false
    }
    /// A law that this decision breaks, if it does.
    fn broken_law(&self, decision: &Decision) -> Option<Because>;
}

/// What should happen now.
pub fn decide<O: Observation>(seen: &O) -> Vec<Action> {
    explain(seen).actions
}

/// What should happen now, and why, and why nothing else.
pub fn explain<O: Observation>(seen: &O) -> Decision {
    let (mut trace, report) = ask_concerns(seen);
    let mut troubles = troubles_of(&trace);
    if !trace.iter().any(sends) {
        let status = seen.publish(report, &troubles);
        trace.extend(status.and_then(|finding| hold_back(seen, finding)).into_iter().flatten().map(Entry::Spoke));
        troubles = troubles_of(&trace);
    }
    if seen.is_muted() {
        trace.iter_mut().for_each(mute);
    }
    Decision { actions: plan(&trace), trace, troubles }
}

/// Takes the events out; whatever else the rule wanted stays, and so does what it said.
fn mute(entry: &mut Entry) {
    match entry {
        Entry::Spoke(finding) => finding.wants.retain(|want| match want {
            Want::Announce(_) => false,
            Want::Ask(_) | Want::Change(_) | Want::Wait(_) => true,
        }),
        Entry::Passed { .. } | Entry::NotAsked { .. } => {}
    }
}

fn ask_concerns<O: Observation>(seen: &O) -> (Vec<Entry>, Report<O::Phase>) {
    let mut trace = Vec::new();
    let mut told_of = Told::default();
    let mut report: Report<O::Phase> = Report::Derived;
    let mut concerns = O::CONCERNS.iter();
    for concern in concerns.by_ref() {
        let (findings, rests) = match (concern.judge)(seen) {
            Verdict::Pass(because) => {
                trace.push(Entry::Passed { concern: concern.name, because });
                continue;
            }
            Verdict::Act(findings) => (findings, None),
            Verdict::Rest { findings, report } => (findings, Some(report)),
        };
        for finding in findings {
            for told in hold_back(seen, finding).into_iter().flatten() {
                if told_of.is_new(&trace, &told) {
                    trace.push(Entry::Spoke(told));
                }
            }
        }
        if let Some(rests) = rests {
            report = rests;
            break;
        }
    }
    trace.extend(concerns.map(|concern| Entry::NotAsked { concern: concern.name }));
    (trace, report)
}

/// The finding up to the first wish that may not be sent, and what stands in that wish's place.
fn hold_back<O: Observation>(seen: &O, mut finding: Finding) -> Option<Vec<Finding>> {
    let held = finding.wants.iter().enumerate().find_map(|(at, want)| match seen.gate(want) {
        Gate::Open => None,
        Gate::Held(instead) => Some((at, *instead)),
    });
    let Some((at, instead)) = held else { return Some(vec![finding]) };
    let because = finding.because.clone();
    finding.wants.truncate(at);
    let mut told = Vec::new();
    if !finding.wants.is_empty() || finding.trouble.is_some() {
        told.push(finding);
    }
    told.push(Finding { because: super::rule::Because::from(join(&instead.because, &because)), ..instead });
    Some(told)
}

/// The reason why it is held, and what for.
fn join(held: &Because, wish: &Because) -> String {
    format!("{held} ({wish})")
}

/// Where lines of the trace stand, by rule and by what is wanted first: of hundreds of seats each has lines of its own,
/// and to compare every line with every other would be most of the work.
#[derive(Default)]
struct Told {
    at: BTreeMap<(RuleId, Option<Attempt>, Option<Wait>), Vec<usize>>,
}

impl Told {
    /// Whether no line of the trace says what this finding does; from now on its end does.
    fn is_new(&mut self, trace: &[Entry], finding: &Finding) -> bool {
        let Some(first) = finding.wants.first() else { return true };
        let wait = match first {
            Want::Wait(wait) => Some(wait.clone()),
            Want::Ask(_) | Want::Change(_) | Want::Announce(_) => None,
        };
        let lines = self.at.entry((finding.rule.clone(), Attempt::of(first), wait)).or_default();
        let is_told = lines.iter().filter_map(|at| trace.get(*at)).any(|entry| repeats(entry, finding));
        if !is_told {
            lines.push(trace.len());
        }
        !is_told
    }
}

/// True where this line says already what the finding would.
fn repeats(entry: &Entry, finding: &Finding) -> bool {
    match entry {
        Entry::Spoke(told) => {
            told.rule == finding.rule
                && !told.wants.is_empty()
                && told.wants == finding.wants
                && told.trouble == finding.trouble
        }
        Entry::Passed { .. } | Entry::NotAsked { .. } => false,
    }
}

/// True where the line asks or changes something: then the status has to wait (decision R10).
fn sends(entry: &Entry) -> bool {
    match entry {
        Entry::Spoke(finding) => finding.wants.iter().any(|want| match want {
            Want::Ask(_) | Want::Change(_) => true,
            Want::Announce(_) | Want::Wait(_) => false,
        }),
        Entry::Passed { .. } | Entry::NotAsked { .. } => false,
    }
}

fn troubles_of(trace: &[Entry]) -> Vec<Trouble> {
    let mut troubles: Vec<Trouble> = Vec::new();
    for entry in trace {
        if let Entry::Spoke(Finding { trouble: Some(trouble), .. }) = entry
            && !troubles.contains(trouble)
        {
            troubles.push(trouble.clone());
        }
    }
    troubles
}

/// The wishes of the trace as one plan: each object written at most once (decision R12), waits last.
fn plan(trace: &[Entry]) -> Vec<Action> {
    let mut actions: Vec<Action> = Vec::new();
    let mut known: BTreeMap<Same<'_>, usize> = BTreeMap::new();
    let mut deleted: BTreeSet<&str> = BTreeSet::new();
    for entry in trace {
        let Entry::Spoke(finding) = entry else { continue };
        for want in &finding.wants {
            deleted.extend(unpatched(want).map(String::as_str));
            let same = Same::of(want);
            let earlier = same.as_ref().and_then(|same| known.get(same)).and_then(|at| actions.get_mut(*at));
            if let Some(earlier) = earlier {
                merge(&mut earlier.want, want);
                if earlier.rule != finding.rule && !earlier.also.contains(&finding.rule) {
                    earlier.also.push(finding.rule.clone());
                }
                continue;
            }
            if let Some(same) = same {
                known.insert(same, actions.len());
            }
            let (rule, because) = (finding.rule.clone(), finding.because.clone());
            actions.push(Action { want: want.clone(), rule, because, also: Vec::new() });
        }
    }
    actions.retain(|action| match &action.want {
        Want::Change(Change::PatchPod { pod, .. }) => !deleted.contains(pod.as_str()),
        Want::Change(_) | Want::Ask(_) | Want::Announce(_) | Want::Wait(_) => true,
    });
    let (waits, mut plan): (Vec<_>, Vec<_>) = actions.into_iter().partition(|action| match action.want {
        Want::Wait(_) => true,
        Want::Ask(_) | Want::Change(_) | Want::Announce(_) => false,
    });
    plan.extend(waits);
    plan
}

/// What makes two wishes one: the same question, the same wait, or a write of the same object.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Same<'a> {
    Question(&'a Question),
    Patch(&'a str),
    Delete(&'a str),
    Object,
    Wait(&'a Wait),
}

impl<'a> Same<'a> {
    fn of(want: &'a Want) -> Option<Self> {
        match want {
            Want::Ask(question) => Some(Self::Question(question)),
            Want::Wait(wait) => Some(Self::Wait(wait)),
            Want::Change(Change::PatchPod { pod, .. }) => Some(Self::Patch(pod)),
            Want::Change(Change::DeletePod { pod, .. }) => Some(Self::Delete(pod)),
            Want::Change(Change::PatchObject { .. }) => Some(Self::Object),
            Want::Change(_) | Want::Announce(_) => None,
        }
    }
}

/// Takes a wish into an earlier one of the same object.
fn merge(into: &mut Want, want: &Want) {
    let (Want::Change(into), Want::Change(change)) = (into, want) else { return };
    if let (Change::PatchPod { patch, .. }, Change::PatchPod { patch: more, .. }) = (&mut *into, change) {
        patch.merge(more.clone());
    }
    if let (Change::PatchObject { annotations, .. }, Change::PatchObject { annotations: more, .. }) = (into, change) {
        for (key, value) in more {
            let earlier = annotations.remove(key);
            let value = if let Some(earlier) = earlier { joined(key, earlier, value.clone()) } else { value.clone() };
            annotations.insert(key.clone(), value);
        }
    }
}

/// A pod that no patch of the same plan is sent for: it goes; or it is asked about because it is to be replaced, and a
/// patch would only move the version that its delete rests on; or it is looked at, and the look comes first.
fn unpatched(want: &Want) -> Option<&String> {
    match want {
        Want::Change(Change::DeletePod { pod, .. } | Change::CreatePod { pod, dry_run: true, .. })
        | Want::Ask(Question::ReadLive(Live::Pod(pod))) => Some(pod),
        Want::Change(_) | Want::Ask(_) | Want::Announce(_) | Want::Wait(_) => None,
    }
}

/// True where two wishes do not depend on one another and may travel side by side.
pub fn independent(first: &Want, second: &Want) -> bool {
    match (first, second) {
        (Want::Ask(Question::ProbeSnapshot { .. }), Want::Ask(Question::ProbeSnapshot { .. })) => true,
        (Want::Ask(_), Want::Ask(_)) => true,
        (Want::Change(first), Want::Change(second)) => {
            first.kind() == second.kind() && first.target() != second.target()
        }
        (Want::Ask(_) | Want::Change(_) | Want::Announce(_) | Want::Wait(_), _) => false,
    }
}
