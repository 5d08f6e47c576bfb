//! The row of a pod. Its status is the most telling word that its phase and its containers have.

use super::{age, list, name, or, since};
use crate::sim::store::objects::{is_deleting, text};
use jiff::Timestamp;
use serde_json::{Value, json};

/// What the containers of a pod come to.
struct Sum {
    ready: usize,
    restarts: i64,
    last_restart: String,
    word: String,
}

/// Name, Ready, Status, Restarts, Age, and in wide tables IP, Node, Nominated Node, Readiness Gates.
pub(super) fn cells(pod: &Value, now: Timestamp) -> Vec<Value> {
    let sum = sum(pod);
    let restarts = match (sum.restarts, sum.last_restart.as_str()) {
        (0, _) | (_, "") => sum.restarts.to_string(),
        (restarts, last) => format!("{restarts} ({} ago)", since(last, now)),
    };
    let of = |pointer: &str| json!(or(text(pod, pointer), "<none>"));
    vec![
        name(pod),
        json!(format!("{}/{}", sum.ready, list(pod, "/spec/containers").len())),
        json!(status(pod, sum.word)),
        json!(restarts),
        age(pod, now),
        of("/status/podIPs/0/ip"),
        of("/spec/nodeName"),
        of("/status/nominatedNodeName"),
        json!(gates(pod)),
    ]
}

fn status(pod: &Value, word: String) -> String {
    let finished = matches!(text(pod, "/status/phase"), "Failed" | "Succeeded");
    match (is_deleting(pod), text(pod, "/status/reason")) {
        (true, "NodeLost") => "Unknown".to_owned(),
        (true, _) if !finished => "Terminating".to_owned(),
        _ => word,
    }
}

fn sum(pod: &Value) -> Sum {
    let conditions = list(pod, "/status/conditions");
    let mut word = or(text(pod, "/status/reason"), text(pod, "/status/phase")).to_owned();
    if conditions.iter().any(|one| text(one, "/reason") == "SchedulingGated") {
        "SchedulingGated".clone_into(&mut word);
    }
    let mut sum = Sum { ready: 0, restarts: 0, last_restart: String::new(), word };
    let mut failed = None;
    for container in list(pod, "/status/containerStatuses").iter().rev() {
        sum.restarts = sum.restarts.saturating_add(container.get("restartCount").and_then(Value::as_i64).unwrap_or(0));
        let ended = text(container, "/lastState/terminated/finishedAt");
        if ended > sum.last_restart.as_str() {
            ended.clone_into(&mut sum.last_restart);
        }
        let waits = text(container, "/state/waiting/reason");
        let ready = container.get("ready").and_then(Value::as_bool) == Some(true);
        if !waits.is_empty() {
            waits.clone_into(&mut sum.word);
        } else if let Some(end) = container.pointer("/state/terminated") {
            sum.word = ending(end);
            if number(end, "exitCode") != 0 {
                failed = Some(sum.word.clone());
            }
        } else if ready && container.pointer("/state/running").is_some() {
            sum.ready += 1;
        }
    }
    if sum.word == "Completed" {
        let ready = |one: &Value| text(one, "/type") == "Ready" && text(one, "/status") == "True";
        sum.word = match (sum.ready > 0, failed) {
            (true, _) if conditions.iter().any(ready) => "Running".to_owned(),
            (_, Some(failed)) => failed,
            (true, None) => "NotReady".to_owned(),
            (false, None) => sum.word,
        };
    }
    sum
}

fn number(value: &Value, field: &str) -> i64 {
    value.get(field).and_then(Value::as_i64).unwrap_or(0)
}

fn ending(end: &Value) -> String {
    match (text(end, "/reason"), number(end, "signal")) {
        ("", 0) => format!("ExitCode:{}", number(end, "exitCode")),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}

fn gates(pod: &Value) -> String {
    let gates = list(pod, "/spec/readinessGates");
    if gates.is_empty() {
        return "<none>".to_owned();
    }
    let holds = |gate: &Value| {
        let of = |one: &&Value| text(one, "/type") == text(gate, "/conditionType");
        list(pod, "/status/conditions").iter().find(of).is_some_and(|one| text(one, "/status") == "True")
    };
    format!("{}/{}", gates.iter().filter(|gate| holds(gate)).count(), gates.len())
}
