//! `explain` for people: the object, what was seen, what each concern said, and what is awaited.

use super::answers;
use super::explain::Explained;
use super::paint::Paint;
use super::table::table;
use crate::core::action::{Attempt, Change, MetaPatch, Subject, Wait, Want};
use crate::core::api::condition;
use crate::core::cocoonset::observed::Observed;
use crate::core::decision::{Decision, Entry, Finding};
use crate::core::oddity::{Oddity, excerpt};
use crate::core::outcome::Outcome;
use jiff::Timestamp;
use serde_json::Value;
use std::time::Duration;

/// Pods, tags and the like that are told one by one; the rest is counted.
const MOST_LINES: usize = 20;
/// The longest reason or message on one line.
const LONGEST: usize = 300;

/// All of it. More than one object: a table first.
pub(super) fn tell(all: &[Explained], now: Timestamp, paint: Paint) -> String {
    let mut out = String::new();
    if all.len() > 1 {
        out.push_str(&overview(all, paint));
        out.push('\n');
    }
    for (at, one) in all.iter().enumerate() {
        if at > 0 {
            out.push('\n');
        }
        object(&mut out, one, now, paint);
    }
    out
}

fn overview(all: &[Explained], paint: Paint) -> String {
    let head = ["KIND", "NAMESPACE", "NAME", "PHASE", "PODS", "NEXT", "RULE", "PERSON"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for one in all {
        let seen = one.seen.as_deref();
        let ready = |seen: &Observed| seen.pods.values().filter(|pod| pod.ready && !pod.deleting).count();
        let next = one.decision.actions.first();
        let more = one.decision.actions.len().saturating_sub(1);
        let next_name = next.map(|action| action.kind().name().to_owned());
        rows.push(vec![
            one.subject.kind.to_owned(),
            one.subject.namespace.clone(),
            one.subject.name.clone(),
            seen.and_then(phase).unwrap_or_else(dash),
            seen.map_or_else(dash, |seen| format!("{}/{}", ready(seen), seen.pods.len())),
            next_name.map_or_else(dash, |name| if more > 0 { format!("{name} +{more}") } else { name }),
            next.map_or_else(dash, |action| action.rule.to_string()),
            one.error.as_ref().map_or_else(dash, |(reason, _)| reason.clone()),
        ]);
    }
    let text = table(&rows);
    let (head, rest) = text.split_once('\n').unwrap_or((&text, ""));
    format!("{}\n{rest}", paint.title(head))
}

fn dash() -> String {
    "-".to_owned()
}

fn phase(seen: &Observed) -> Option<String> {
    seen.set.status.phase.as_ref().map(ToString::to_string)
}

fn object(out: &mut String, one: &Explained, now: Timestamp, paint: Paint) {
    let subject = &one.subject;
    let title = format!("{} {}/{}", subject.kind, subject.namespace, subject.name);
    let trouble = headline(one).map(|trouble| format!(": {}", paint.alarm(&short(&trouble)))).unwrap_or_default();
    line(out, 0, &format!("{}{trouble}", paint.title(&title)));
    if let Some(seen) = &one.seen {
        line(out, 2, &summary(seen, now));
        let facts = surroundings(seen, now);
        section(out, "seen", &facts, paint);
    }
    let answer = |(attempt, outcome): &(Attempt, Outcome)| {
        let words = answers::said(outcome).map(|words| format!(" ({})", short(&words))).unwrap_or_default();
        format!("{}: {}{words}", spelled(attempt, subject), outcome.class)
    };
    let answers: Vec<String> = one.outcomes.iter().map(answer).collect();
    section(out, "came back", &answers, paint);
    let nothing = if one.decision.actions.is_empty() { ": nothing is to be done" } else { "" };
    line(out, 2, &format!("{}{nothing}", paint.title("decided")));
    trace(out, &one.decision, subject, paint);
    let plan: Vec<String> = one.decision.actions.iter().map(|action| wish(&action.want, subject)).collect();
    if plan.len() > 1 {
        line(out, 2, &paint.title("in this order"));
        for (at, step) in plan.iter().enumerate() {
            line(out, 4, &format!("{}. {}", at + 1, paint.action(step)));
        }
    }
    for trouble in one.decision.troubles.iter().filter(|trouble| !trouble.error) {
        line(out, 2, &format!("people should know: {}: {}", trouble.reason, short(&trouble.message)));
    }
    let unsaid = unsaid(one);
    for oddity in &unsaid {
        line(out, 2, &format!("people should know: {}: {}", oddity.reason, short(&placed(oddity))));
    }
    match &one.error {
        Some((reason, message)) => {
            line(out, 2, &paint.alarm(&format!("needs a person: {reason}: {}", short(message))));
        }
        None if one.decision.troubles.is_empty() && unsaid.is_empty() => line(out, 2, "needs nobody"),
        None => {}
    }
}

/// What does not read as it should and no rule came to speak of.
fn unsaid(one: &Explained) -> Vec<&Oddity> {
    let said = |oddity: &&Oddity| {
        let troubles = &one.decision.troubles;
        !troubles.iter().any(|trouble| trouble.reason == oddity.reason && trouble.message == placed(oddity))
    };
    let oddities = one.seen.as_ref().map(|seen| seen.oddities.as_slice()).unwrap_or_default();
    oddities.iter().filter(said).collect()
}

/// An oddity as its rule says it.
fn placed(oddity: &Oddity) -> String {
    format!("{}: {}", oddity.field, oddity.message)
}

/// What is wrong, if something is: what needs a person, what people should know, why nothing more is done, or what the
/// status says where the reason is not seen here.
fn headline(one: &Explained) -> Option<String> {
    // Some messages begin with their reason.
    let both = |reason: &str, message: &str| {
        if message.starts_with(reason) { message.to_owned() } else { format!("{reason}: {message}") }
    };
    if let Some((reason, message)) = &one.error {
        return Some(both(reason, message));
    }
    if let Some(trouble) = one.decision.troubles.first() {
        return Some(both(&trouble.reason, &trouble.message));
    }
    if let Some(oddity) = unsaid(one).first() {
        return Some(both(oddity.reason, &placed(oddity)));
    }
    let stops = |want: &Want| *want == Want::Wait(Wait::Stop);
    let stop = one.decision.actions.iter().find(|action| stops(&action.want));
    if let Some(action) = stop.filter(|_| one.decision.actions.len() == 1 && one.seen.is_some()) {
        return Some(action.because.to_string());
    }
    let conditions = one.seen.as_ref().map(|seen| seen.set.status.conditions.as_slice()).unwrap_or_default();
    let degraded = condition::find(conditions, "Degraded").filter(|condition| condition.is_true())?;
    Some(format!("{} (as its status says)", both(&degraded.reason, &degraded.message)))
}

fn line(out: &mut String, indent: usize, text: &str) {
    out.push_str(&" ".repeat(indent));
    out.push_str(text);
    out.push('\n');
}

fn section(out: &mut String, title: &str, lines: &[String], paint: Paint) {
    if lines.is_empty() {
        return;
    }
    line(out, 2, &paint.title(title));
    for told in lines {
        line(out, 4, told);
    }
}

fn short(text: &str) -> String {
    excerpt(&text.split_whitespace().collect::<Vec<_>>().join(" "), LONGEST)
}

/// One line about the object itself.
fn summary(seen: &Observed, now: Timestamp) -> String {
    let set = &seen.set;
    let mut parts = vec![
        format!("generation {} (status speaks of {})", set.generation, set.status.observed_generation),
        phase(seen).map_or_else(|| "no phase yet".to_owned(), |phase| format!("phase {phase}")),
        format!("agents wanted {}, toolboxes wanted {}", set.spec.desired_agents(), set.spec.toolboxes.len()),
    ];
    if let Some(created) = set.created {
        parts.push(format!("created {created}{}", ago(created, now)));
    }
    if let Some(deleting) = set.deleting {
        parts.push(format!("being deleted since {deleting}{}", ago(deleting, now)));
    }
    if set.claims() == 0 {
        parts.push("without our finalizer".to_owned());
    }
    parts.join(", ")
}

fn ago(then: Timestamp, now: Timestamp) -> String {
    let seconds = now.duration_since(then).as_secs();
    u64::try_from(seconds).map(|seconds| format!(" ({} ago)", span(Duration::from_secs(seconds)))).unwrap_or_default()
}

/// A span of time, as coarse as people want it.
fn span(span: Duration) -> String {
    let seconds = span.as_secs();
    match seconds {
        0 if !span.is_zero() => format!("{} ms", span.as_millis()),
        0..=119 => format!("{seconds} s"),
        120..=7199 => format!("{} min", seconds / 60),
        7200..=172_799 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86400),
    }
}

/// What the object has around it, a line each.
fn surroundings(seen: &Observed, now: Timestamp) -> Vec<String> {
    use crate::core::cocoonset::observed::{NamespaceSeen, NodeSeen};
    let namespace = match &seen.namespace {
        NamespaceSeen::Unknown => "not given",
        NamespaceSeen::Active { .. } => "active",
        NamespaceSeen::Terminating { .. } => "being terminated",
    };
    let mut lines = vec![format!("as of {now}; namespace {}: {namespace}", seen.set.namespace)];
    let pods: Vec<String> = seen.pods.values().map(pod).collect();
    if pods.is_empty() {
        lines.push("no pods of its own".to_owned());
    }
    add(&mut lines, pods);
    let stranger = |pod: &crate::core::cocoonset::observed::LivePod| {
        let owner = pod.owner.as_ref().map_or("nobody".to_owned(), |(kind, name, _)| format!("{kind} {name}"));
        format!("pod {}: not its own, controlled by {owner}", pod.name)
    };
    add(&mut lines, seen.strangers.values().map(stranger).collect());
    let node = |(name, node): (&String, &NodeSeen)| match node {
        NodeSeen::There(_) => Some(format!("node {name}: {}", if node.is_ready() { "Ready" } else { "not Ready" })),
        NodeSeen::Gone | NodeSeen::Refused => None,
    };
    add(&mut lines, seen.nodes.iter().flatten().filter_map(node).collect());
    add(&mut lines, seen.snapshots.iter().map(|((vm, tag), snapshot)| tag_line(vm, tag, &snapshot.fact)).collect());
    add(&mut lines, remembered(seen));
    let oddity = |odd: &crate::core::oddity::Oddity| format!("odd: {}: {}", odd.field, short(&odd.message));
    add(&mut lines, seen.oddities.iter().map(oddity).collect());
    lines
}

fn add(lines: &mut Vec<String>, more: Vec<String>) {
    let hidden = more.len().saturating_sub(MOST_LINES);
    lines.extend(more.into_iter().take(MOST_LINES));
    if hidden > 0 {
        lines.push(format!("… and {hidden} more of these"));
    }
}

fn pod(pod: &crate::core::pod::facts::PodFacts) -> String {
    let mut parts = vec![pod.phase.as_str().to_owned(), if pod.ready { "Ready" } else { "not Ready" }.to_owned()];
    if let Some(node) = &pod.node {
        parts.push(format!("on {node}"));
    }
    if pod.deleting {
        parts.push("being deleted".to_owned());
    }
    if pod.hibernate {
        parts.push("marked to hibernate".to_owned());
    }
    if let Some(why) = &pod.unschedulable {
        parts.push(format!("not scheduled: {}", short(why)));
    }
    format!("pod {}: {}", pod.name, parts.join(", "))
}

fn tag_line(
    vm: &str,
    tag: &str,
    fact: &crate::core::fact::Fact<Option<crate::core::cocoonset::observed::Manifest>>,
) -> String {
    use crate::core::fact::Fact;
    let said = match fact {
        Fact::Unasked => "not asked".to_owned(),
        Fact::Unavailable(why) => format!("the registry could not say ({})", short(why)),
        Fact::Known(None) => "absent".to_owned(),
        Fact::Known(Some(manifest)) => {
            format!("present, {}", manifest.digest.as_deref().unwrap_or("digest not given"))
        }
    };
    format!("snapshot {vm}:{tag}: {said}")
}

/// What stands in memory of earlier passes, and of the answers just taken in.
fn remembered(seen: &Observed) -> Vec<String> {
    let age = |at: Duration| span(seen.mono.saturating_sub(at));
    let mut lines: Vec<String> = seen.unseen.iter().map(|write| format!("own write not seen yet: {write}")).collect();
    for (attempt, record) in &seen.memory.attempts {
        let times = if record.count == 1 { "once".to_owned() } else { format!("{} times", record.count) };
        let what = Attempt { target: record.target.clone(), ..attempt.clone() };
        lines.push(format!("{what} came to {} {times}, last {} ago", record.class, age(record.last)));
    }
    if let Some(refusal) = &seen.memory.namespace {
        let times = if refusal.count == 1 { "once".to_owned() } else { format!("{} times", refusal.count) };
        lines.push(format!("a create was refused for the namespace {times}, last {} ago", age(refusal.last)));
    }
    for (name, gone) in &seen.memory.vanished {
        let node = gone.node.as_deref().unwrap_or("no node");
        lines.push(format!("pod {name} went without our delete, last seen on {node}"));
    }
    lines
}

fn trace(out: &mut String, decision: &Decision, subject: &Subject, paint: Paint) {
    let mut not_asked = Vec::new();
    for entry in &decision.trace {
        match entry {
            Entry::Passed { concern, because } => {
                line(out, 4, &format!("{concern}: {}", paint.faint(&format!("nothing to do, {}", short(because)))));
            }
            Entry::Spoke(finding) => spoke(out, finding, subject, paint),
            Entry::NotAsked { concern } => not_asked.push(*concern),
        }
    }
    if !not_asked.is_empty() {
        line(out, 4, &paint.faint(&format!("not asked: {}", not_asked.join(", "))));
    }
}

fn spoke(out: &mut String, finding: &Finding, subject: &Subject, paint: Paint) {
    line(out, 4, &format!("{}: {}", paint.rule(&finding.rule.0), short(&finding.because)));
    for want in &finding.wants {
        line(out, 6, &format!("→ {}", paint.action(&wish(want, subject))));
    }
}

/// An attempt, with its target as the command line spells it.
pub(super) fn spelled(attempt: &Attempt, subject: &Subject) -> String {
    let target = match attempt.target.as_str() {
        "object" => format!("{}/{}", subject.kind.to_lowercase(), subject.name),
        "namespace" => format!("namespace/{}", subject.namespace),
        other => other.to_owned(),
    };
    Attempt { target, ..attempt.clone() }.to_string()
}

/// One wish on one line.
fn wish(want: &Want, subject: &Subject) -> String {
    match want {
        Want::Ask(_) => Attempt::of(want).map(|attempt| spelled(&attempt, subject)).unwrap_or_default(),
        Want::Change(change) => {
            let attempt = Attempt { action: change.kind(), target: change.target(), dry_run: change.is_dry_run() };
            format!("{attempt}{}", details(change))
        }
        Want::Announce(event) => {
            let kind = if event.warning { "Warning" } else { "Normal" };
            format!("EmitEvent {kind} {}: {}", event.reason, short(&event.message))
        }
        Want::Wait(Wait::Await { what, recheck_after: None }) => format!("Await {what}"),
        Want::Wait(Wait::Await { what, recheck_after: Some(after) }) => {
            format!("Await {what}, look again after {}", span(*after))
        }
        Want::Wait(Wait::Stop) => "Stop until the object or its surroundings change".to_owned(),
    }
}

fn details(change: &Change) -> String {
    let keys = |patch: &MetaPatch| {
        let all = patch.labels.iter().chain(&patch.annotations);
        all.map(|(key, value)| match value {
            Some(value) => format!("{key}={}", excerpt(value, 60)),
            None => format!("{key} removed"),
        })
        .collect::<Vec<_>>()
        .join(", ")
    };
    match change {
        Change::AddFinalizer { finalizers, .. } | Change::RemoveFinalizer { finalizers, .. } => {
            format!(", the list then reads [{}]", finalizers.join(", "))
        }
        Change::CreatePod { .. } => String::new(),
        Change::DeletePod { uid, .. } => format!(", uid {uid}"),
        Change::PatchPod { patch, .. } => format!(": {}", keys(patch)),
        Change::PatchObject { annotations, .. } => {
            let patch = MetaPatch { annotations: annotations.clone(), ..MetaPatch::default() };
            format!(": {}", keys(&patch))
        }
        Change::PatchStatus { status, .. } => {
            let text = |key: &str| {
                status.get(key).map(|value| match value {
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                })
            };
            let said = ["phase", "readyAgents", "desiredAgents", "observedGeneration"];
            let said: Vec<String> = said.iter().filter_map(|key| Some(format!("{key} {}", text(key)?))).collect();
            format!(": {}", said.join(", "))
        }
        Change::DeleteSnapshot { digest, .. } => {
            digest.as_ref().map(|digest| format!(", if it still is {digest}")).unwrap_or_default()
        }
    }
}
