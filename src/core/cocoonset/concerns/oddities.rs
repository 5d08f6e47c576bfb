//! What did not read: said aloud, and acted around as long as there is something left to go by.

use super::paused;
use crate::core::action::{Change, Live, Question};
use crate::core::api::words::SetPhase;
use crate::core::cocoonset::ended;
use crate::core::cocoonset::observed::Observed;
use crate::core::contract::keys;
use crate::core::contract::names::{NameFit, Role, check_names};
use crate::core::contract::records::Records;
use crate::core::decision::{Finding, Report, Verdict};
use crate::core::oddity::{CLAMPED, CORRUPT_ANNOTATION, NAME_MISMATCH, NAME_TOO_LONG, Oddity};
use crate::core::rule::Rule;
use crate::rules;
use std::collections::{BTreeMap, BTreeSet};

rules! {
    /// Say which part of the spec cannot be acted on, and act on the rest.  (D-24, D-58, D-71)
    INVALID_SPEC = "oddity/invalid-spec";
    /// Create, replace and delete nothing while the spec names no image: such a pod can only fail, and a spec that is gone
    /// is no wish to have no VM. Finalizer, stamp and deletion go on; an edit is the way out.  (D-58, R25)
    NO_IMAGE = "oddity/no-image";
    /// Say that more was asked for than one set may create. Pods that exist within the spec's own count stay.  (D-34, R25)
    CLAMPED_SPEC = "oddity/clamped";
    /// Say which name is too long for a label, a pod or a host.  (D-33)
    LONG_NAME = "oddity/name-too-long";
    /// Say which annotation of ours cannot be read, and what it counts as meanwhile.  (D-18c, D-31, R21)
    CORRUPT = "oddity/corrupt-annotation";
    /// Take the acceptance of a lost node off once the node is Ready, and say so: it is back, or was never meant. Without it
    /// the next loss, months later, would be accepted beforehand, and its VMs made twice. The node is read live before: a
    /// watch may stand still.  (D-78, R8, R18)
    LOSS_IS_OVER = "oddity/loss-is-over";
    /// Say which pod carries a VM name that is not its own. Nothing is decided in the registry under that name.  (D-32, R22)
    MISMATCH = "oddity/name-mismatch";
}

/// See the rules.
pub fn judge(seen: &Observed) -> Verdict<SetPhase> {
    let mut findings: Vec<Finding> = all(seen).into_iter().map(finding).chain(loss_is_over(seen)).collect();
    if !seen.set.spec.can_create_agents() {
        findings
            .push(Finding::of(&NO_IMAGE, "the spec names no image: nothing is created, replaced or deleted").stop());
        return Verdict::Rest { findings, report: Report::Keep };
    }
    if findings.is_empty() { Verdict::pass("everything reads as it should") } else { Verdict::Act(findings) }
}

fn loss_is_over(seen: &Observed) -> Option<Finding> {
    let is_shown_ready = |node: &str| seen.node_shown(node).is_some_and(|shown| shown.is_ready());
    let mut shown = seen.set.accepted_losses().filter(|node| is_shown_ready(node));
    if let Some(node) = shown.find(|node| ended::is_ready(seen, node).is_none()) {
        let because = format!("the loss of node {node} is accepted, and the watch shows it Ready");
        return Some(Finding::of(&LOSS_IS_OVER, because).ask(Question::ReadLive(Live::Node(node.to_owned()))));
    }
    let is_over = |node: &&str| is_shown_ready(node) && ended::is_ready(seen, node) == Some(true);
    let (over, rest): (Vec<&str>, Vec<&str>) = seen.set.accepted_losses().partition(is_over);
    if over.is_empty() {
        return None;
    }
    let rest = (!rest.is_empty()).then(|| rest.join(","));
    let off = Change::PatchObject {
        annotations: BTreeMap::from([(keys::ACCEPT_NODE_LOSS.to_owned(), rest)]),
        resource_version: seen.set.resource_version.clone(),
    };
    let (over, are, their) = match over.as_slice() {
        [node] => (format!("node {node}"), "is", "its"),
        nodes => (format!("nodes {}", nodes.join(", ")), "are", "their"),
    };
    let message = format!("{over} {are} not lost: the acceptance of {their} loss is taken off");
    let because = format!("{over} {are} Ready: {their} next loss is another");
    Some(Finding::of(&LOSS_IS_OVER, because).change(off).announce(false, "NodeNotLost", message))
}

/// Annotations of ours that cannot be read: whatever else is done about a set, a person has to mend them.
pub fn corrupt(seen: &Observed) -> impl Iterator<Item = Finding> {
    all(seen).into_iter().filter(|oddity| oddity.reason == CORRUPT_ANNOTATION).map(finding)
}

fn finding(oddity: Oddity) -> Finding {
    let message = format!("{}: {}", oddity.field, oddity.message);
    let corrupt = oddity.reason == CORRUPT_ANNOTATION;
    Finding::of(rule(oddity.reason), message.clone()).trouble(oddity.reason, message).error_if(corrupt)
}

fn rule(reason: &str) -> &'static Rule {
    match reason {
        CLAMPED => &CLAMPED_SPEC,
        NAME_TOO_LONG => &LONG_NAME,
        CORRUPT_ANNOTATION => &CORRUPT,
        NAME_MISMATCH => &MISMATCH,
        _ => &INVALID_SPEC,
    }
}

fn all(seen: &Observed) -> BTreeSet<Oddity> {
    let annotation = |key: &str| seen.set.annotations.get(key).map(String::as_str);
    let mut all: BTreeSet<Oddity> = seen.oddities.iter().cloned().collect();
    all.extend(seen.set.rebuilds.oddities.values().cloned());
    all.extend(Records::read(annotation(keys::VM_RECORDS), &seen.set.uid).1);
    all.extend(seen.set.recorded.oddity.clone());
    all.extend(long_names(seen));
    all.extend(paused::garbled(&seen.set));
    for pod in seen.pods.values() {
        all.extend(pod.oddities.iter().cloned());
        let said = pod.oddities.iter().any(|oddity| oddity.reason == NAME_MISMATCH);
        if !said && pod.managed && pod.accepted_vm_name().is_none() {
            let message = format!("pod {} carries VM name {:?}", pod.name, pod.vm_name.as_str());
            all.insert(Oddity::new(NAME_MISMATCH, keys::VM_NAME, message));
        }
    }
    all
}

/// VM names that hosts may not bear; of the agents, whose names differ in the slot alone, the longest.
fn long_names(seen: &Observed) -> impl Iterator<Item = Oddity> {
    let spec = &seen.set.spec;
    let agent = match spec.agent.replicas_clamped {
        0 => Role::Main,
        slots => Role::SubAgent(slots),
    };
    let toolboxes = spec.creatable_toolboxes().filter(|toolbox| toolbox.is_managed());
    let roles = std::iter::once(agent).chain(toolboxes.map(|toolbox| Role::Toolbox(toolbox.name.clone())));
    roles.filter_map(|role| match check_names(&seen.set.namespace, &seen.set.name, &role) {
        NameFit::Long(oddity) => Some(oddity),
        NameFit::Fits | NameFit::Impossible(_) => None,
    })
}
