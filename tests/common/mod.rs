//! What tests of the core share: a cluster as small as a decision needs, and a driver that runs passes over it.

#![allow(dead_code, reason = "each test binary uses its own part")]

pub mod stage;
pub mod world;

use cocoon_operator::core::action::{Action, Announcement, Attempt, Change, Wait, Want};
use cocoon_operator::core::decision::Decision;

/// Namespace of every set that a test does not place elsewhere.
pub const NAMESPACE: &str = "ns";
/// Name of every set that a test does not name.
pub const SET: &str = "demo";
/// Uid of that set.
pub const SET_UID: &str = "set-uid";
/// The node on which pods run.
pub const NODE: &str = "n1";

/// One action in a few words: `CreatePod demo-0 [main/create]`.
pub fn told(action: &Action) -> String {
    let what = match (&action.want, Attempt::of(&action.want)) {
        (Want::Wait(Wait::Await { what, recheck_after: Some(after) }), _) => {
            format!("Await {what}, at most {:.0?}", after)
        }
        (Want::Wait(Wait::Await { what, recheck_after: None }), _) => format!("Await {what}"),
        (Want::Wait(Wait::Stop), _) => "Stop".to_owned(),
        (Want::Announce(Announcement { reason, .. }), _) => format!("EmitEvent {reason}"),
        (Want::Change(Change::PatchStatus { status, .. }), _) => format!("PatchStatus {}", phase(status)),
        (Want::Ask(_) | Want::Change(_), Some(attempt)) => attempt.to_string(),
        (Want::Ask(_) | Want::Change(_), None) => action.kind().name().to_owned(),
    };
    format!("{what} [{}]", action.rule)
}

fn phase(status: &serde_json::Value) -> String {
    let degraded = status["conditions"].as_array().into_iter().flatten().find(|one| one["type"] == "Degraded");
    let degraded = degraded.filter(|one| one["status"] == "True").map(|one| format!(", {}", one["reason"]));
    format!("{}{}", status["phase"].as_str().unwrap_or("unset"), degraded.unwrap_or_default().replace('"', ""))
}

/// A decision on one line: its first actions, and its error if it has one.
pub fn line(decision: &Decision) -> String {
    let mut parts: Vec<String> = decision.actions.iter().take(3).map(told).collect();
    if decision.actions.len() > 3 {
        parts.push(format!("and {} more", decision.actions.len() - 3));
    }
    if parts.is_empty() {
        parts.push("nothing".to_owned());
    }
    if let Some(error) = decision.error() {
        parts.push(format!("ERROR {}", error.reason));
    }
    parts.join("; ")
}
