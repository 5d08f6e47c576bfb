//! The namespace is going: remember names, create nothing.

use crate::core::action::{Live, Question};
use crate::core::api::words::SetPhase;
use crate::core::cocoonset::observed::Observed;
use crate::core::decision::{Finding, Report, Verdict};
use crate::core::memory::{NamespaceLive, NamespaceRefusal};
use crate::rules;
use std::collections::BTreeSet;
use std::time::Duration;

rules! {
    /// Write down the VM names that the status does not list before the pods are gone. On Kubernetes 1.33 and later the
    /// pods die before the set is marked, and teardown would find nobody to collect tags for.  (D-80, R7)
    REMEMBER = "namespace/remember";
    /// Read the namespace live after a refused create: the watch may lag, or the server that refused.  (R6)
    LOOK = "namespace/look";
    /// Create nothing and write nothing while the namespace is being deleted: every create would be refused, for as long
    /// as the pods take to go. The set is looked at again when it is marked itself.  (D-24, R6, R7)
    TERMINATING = "namespace/terminating";
    /// Try again after a while: a create was refused, and yet the namespace is not being deleted. A lagging API server,
    /// or a namespace that was created again within a second.  (R6)
    RETRY = "namespace/retry";
    /// Try again rarely: a create was refused, and we may not ask why. A set that had a pod waits for its deletion.  (R6)
    BLIND = "namespace/blind";
}

/// See the rules.
pub fn judge(seen: &Observed) -> Verdict<SetPhase> {
    if seen.namespace_is_going() {
        return going(seen);
    }
    let Some(refusal) = &seen.memory.namespace else {
        return Verdict::pass("the namespace is not known to be going");
    };
    let look = Finding::of(&LOOK, "a create was refused").ask(Question::ReadLive(Live::Namespace));
    match refusal.live {
        NamespaceLive::Unasked => Verdict::Rest { findings: vec![look, terminating(seen)], report: Report::Silent },
        NamespaceLive::Terminating => going(seen),
        NamespaceLive::Active => retry(seen, refusal),
        NamespaceLive::Refused => blind(seen, refusal),
    }
}

fn terminating(seen: &Observed) -> Finding {
    Finding::of(&TERMINATING, format!("namespace {} is being terminated", seen.set.namespace)).stop()
}

fn going(seen: &Observed) -> Verdict<SetPhase> {
    let mut findings = Vec::new();
    let leaving = seen.pods.values().any(|pod| pod.deleting);
    let listed: BTreeSet<String> = seen.set.status.vm_names().map(str::to_owned).collect();
    let missing: BTreeSet<String> = seen.names_owed().into_iter().filter(|name| !listed.contains(name)).collect();
    if leaving && let Some(remember) = seen.remember(&missing) {
        findings.push(Finding::of(&REMEMBER, "the status does not list every VM that is going").change(remember));
    }
    findings.push(terminating(seen));
    Verdict::Rest { findings, report: Report::Silent }
}

fn retry(seen: &Observed, refusal: &NamespaceRefusal) -> Verdict<SetPhase> {
    let delay = doubled(Duration::from_secs(1), Duration::from_secs(30), refusal.count);
    wait(seen, &RETRY, "a create was refused, and the namespace is active", refusal, delay)
}

fn blind(seen: &Observed, refusal: &NamespaceRefusal) -> Verdict<SetPhase> {
    let had_a_pod = seen.set.status.vm_names().next().is_some() || !seen.pods.is_empty();
    if had_a_pod {
        return Verdict::rest(
            Finding::of(&BLIND, "a create was refused, and we may not read the namespace").stop(),
            Report::Silent,
        );
    }
    let delay = doubled(Duration::from_secs(60), Duration::from_secs(900), refusal.count);
    wait(seen, &BLIND, "a create was refused, and we may not read the namespace", refusal, delay)
}

fn wait(
    seen: &Observed,
    rule: &'static crate::core::rule::Rule,
    because: &'static str,
    refusal: &NamespaceRefusal,
    delay: Duration,
) -> Verdict<SetPhase> {
    match refusal.last.saturating_add(delay).checked_sub(seen.mono) {
        Some(left) if !left.is_zero() => {
            let finding = Finding::of(rule, because).wait("the next try of a create", Some(left));
            Verdict::rest(finding, Report::Keep)
        }
        _ => Verdict::pass("it is time to try a create again"),
    }
}

fn doubled(first: Duration, most: Duration, count: u32) -> Duration {
    first.saturating_mul(1 << count.saturating_sub(1).min(16)).min(most)
}
