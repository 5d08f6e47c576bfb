//! Each step in a line: the heads of a transcript.

use super::steps::{Annotate, Cascade, Delete, Edit, Fault, NodeEvent, Overtake, Refuse, Refuser, RegistryEvent, Step};
use super::words::{Span, told};
use crate::core::meta;
use serde_json::Value;

/// The line under which the transcript tells what follows.
pub fn headline(step: &Step) -> String {
    match step {
        Step::Settle => "settle".to_owned(),
        Step::Wait(span) => format!("wait {}", told(span.duration())),
        Step::Apply(set) => {
            format!("apply set {}: {}", meta::text(&set.object, "name"), compact(set.object.get("spec")))
        }
        Step::Edit(Edit { set, spec }) => format!("edit {}: {}", named(set, "the set"), compact(Some(spec))),
        Step::Delete(delete) => deleted(delete),
        Step::Annotate(Annotate { set, pod, annotations, labels }) => {
            let what = pod.as_ref().map_or_else(|| named(set, "the set"), |pod| format!("pod {pod}"));
            let changes = annotations.iter().chain(labels).map(|(key, value)| match value {
                Some(value) => format!("{key}={value}"),
                None => format!("{key} removed"),
            });
            format!("annotate {what}: {}", changes.collect::<Vec<_>>().join(", "))
        }
        Step::Patch(patch) => {
            format!("patch {} {}: {}", patch.resource.plural(), patch.name, compact(Some(&patch.patch)))
        }
        Step::CreatePod(pods) => {
            format!("somebody creates pod {}", pods.keys().cloned().collect::<Vec<_>>().join(", "))
        }
        Step::Create(object) => format!(
            "create {} {}",
            object.get("kind").and_then(Value::as_str).unwrap_or_default(),
            meta::text(object, "name")
        ),
        Step::Node(nodes) => {
            nodes.iter().map(|(node, event)| format!("{node} {}", happens(*event))).collect::<Vec<_>>().join(", ")
        }
        Step::Vm(vms) => {
            vms.iter().map(|(pod, event)| format!("the VM of {pod} {}", event.words())).collect::<Vec<_>>().join(", ")
        }
        Step::BootsFail(fails) => {
            let fail = match fails.times {
                Some(times) => format!("the next {times} boots of {} fail", fails.pod),
                None => format!("boots of {} fail", fails.pod),
            };
            let again = |pause: Span| format!(", and are tried again after {}", told(pause.duration()));
            fail + &fails.pause.map(again).unwrap_or_default()
        }
        Step::Registry(event) => registry_line(event),
        Step::Quota(hard) if hard.is_empty() => "the quota is taken away".to_owned(),
        Step::Quota(hard) => {
            format!("quota {}", hard.iter().map(|(what, most)| format!("{what}={most}")).collect::<Vec<_>>().join(", "))
        }
        Step::Refuse(refuse) => refused(refuse),
        Step::Allow => "everything is allowed again".to_owned(),
        Step::Fault(fault) => faulty(fault),
        Step::Overtake(overtake) => overtaken(overtake),
        Step::Crash(crash) => format!("the operator dies after {} more calls", crash.after),
        Step::Lag(kinds) => switched(kinds.iter().map(|(kind, on)| (*kind, *on)), "stand still", "go on"),
        Step::WatchGap(kinds) => switched(kinds.iter().map(|(kind, on)| (*kind, *on)), "break", "are back"),
        Step::SecondOperator(true) => "a second operator starts".to_owned(),
        Step::SecondOperator(false) => "the second operator stops".to_owned(),
        Step::Operator(true) => "the operator is started".to_owned(),
        Step::Operator(false) => "the operator is stopped".to_owned(),
        Step::Kill => "the operator is killed".to_owned(),
        Step::CutOff(true) => "the operator does not reach the API server any more".to_owned(),
        Step::CutOff(false) => "the operator reaches the API server again".to_owned(),
        Step::Clock(span) => {
            let sign = if span.0.is_negative() { "-" } else { "+" };
            format!("the operator's clock jumps {sign}{}", told(span.duration()))
        }
        Step::CreateNamespace => "the namespace is created".to_owned(),
    }
}

fn named(name: &Option<String>, otherwise: &str) -> String {
    name.clone().unwrap_or_else(|| otherwise.to_owned())
}

fn compact(value: Option<&Value>) -> String {
    crate::core::oddity::excerpt(&value.unwrap_or(&Value::Null).to_string().replace('"', ""), 120)
}

fn deleted(delete: &Delete) -> String {
    let hibernation = delete.hibernation.as_ref().map(|name| format!("the CocoonHibernation {name}"));
    let what = match (&delete.set, &delete.pod, &delete.node) {
        (Some(set), _, _) => format!("set {set}"),
        (_, Some(pod), _) => format!("pod {pod}"),
        (_, _, Some(node)) => format!("node {node}"),
        (None, None, None) => hibernation.unwrap_or_else(|| "the namespace".to_owned()),
    };
    let how = match delete.cascade {
        Some(Cascade::Orphan) => ", leaving its dependents",
        Some(Cascade::Foreground) => ", its dependents first",
        Some(Cascade::Background) | None => "",
    };
    format!("delete {what}{how}{}", if delete.force { ", at once" } else { "" })
}

fn happens(event: NodeEvent) -> &'static str {
    match event {
        NodeEvent::NotReady => "is not Ready",
        NodeEvent::Unreachable => "cannot be reached",
        NodeEvent::Deleted => "is deleted",
        NodeEvent::Reboots => "reboots",
        NodeEvent::Back => "is back",
        NodeEvent::AgentDown => "has no agent any more",
        NodeEvent::AgentRestarts => "has its agent started anew",
    }
}

fn registry_line(event: &RegistryEvent) -> String {
    let mut parts = Vec::new();
    parts.extend(event.put.as_ref().map(|tag| format!("somebody puts tag {tag}")));
    parts.extend(event.delete.as_ref().map(|tag| format!("somebody deletes tag {tag}")));
    parts.extend(event.down.map(|down| if down { "the registry is down" } else { "the registry is back" }.to_owned()));
    parts.extend(event.denied.map(|on| if on { "the registry denies" } else { "the registry is back" }.to_owned()));
    parts.join(", ")
}

fn refused(refuse: &Refuse) -> String {
    let who = match refuse.by {
        Refuser::Rbac => "RBAC",
        Refuser::PodSecurity => "PodSecurity",
        Refuser::LimitRange => "a limit range",
        Refuser::Webhook => "a webhook",
        Refuser::WebhookDown => "a webhook that is down",
        Refuser::Policy => "an admission policy",
        Refuser::FlowControl => "flow control",
        Refuser::Authentication => "authentication",
    };
    let verb = refuse.verb.as_deref().unwrap_or("every request");
    let name = refuse.name.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
    let times = refuse.times.map(|times| format!(", {times} times")).unwrap_or_default();
    format!("{who} refuses: {verb} {}{name}{times}", refuse.resource.plural())
}

fn faulty(fault: &Fault) -> String {
    let times = if fault.times == 1 { String::new() } else { format!(", {} times", fault.times) };
    format!("{} meets {}{times}", call(fault.nth, &fault.verb, &fault.resource, &fault.name), fault.answer)
}

fn overtaken(overtake: &Overtake) -> String {
    let by = [
        overtake.patch.clone().map(|patch| headline(&Step::Patch(patch))),
        overtake.annotate.clone().map(|annotate| headline(&Step::Annotate(annotate))),
        overtake.delete.as_ref().map(deleted),
    ];
    let times = if overtake.times == 1 { String::new() } else { format!(", {} times", overtake.times) };
    let call = call(overtake.nth, &overtake.verb, &overtake.resource, &overtake.name);
    format!("{call} is overtaken{times}: {}", by.into_iter().flatten().collect::<String>())
}

fn call(nth: u32, verb: &str, resource: &Option<String>, name: &Option<String>) -> String {
    let what = [Some(verb), resource.as_deref(), name.as_deref()];
    let what = what.into_iter().flatten().collect::<Vec<_>>().join(" ");
    if nth == 1 { format!("the next {what}") } else { format!("{what} number {nth}") }
}

fn switched(kinds: impl Iterator<Item = (super::steps::WatchedKind, bool)>, on: &str, off: &str) -> String {
    let said = kinds.map(|(kind, is)| format!("watches of {} {}", kind.kind().resource(), if is { on } else { off }));
    said.collect::<Vec<_>>().join(", ")
}
