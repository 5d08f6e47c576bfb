//! What people, nodes and faults do to the cluster in a story.

use super::setting::{self, Cast, done};
use super::steps::{Annotate, Cascade, Delete, Edit, Fault, NodeEvent, PatchStep, Refuse, Refuser, RegistryEvent, Step};
use super::words::told;
use crate::core::action::MetaPatch;
use crate::core::contract::keys;
use crate::core::meta;
use crate::core::wire::{JSON, MERGE_PATCH, Method, Request, Verb};
use crate::sim::faults::{Fault as WireFault, Pattern, What, answer};
use crate::sim::node::{Effect, Injection, Step as NodeStep};
use crate::sim::registry::{Behaviour, Mood};
use crate::sim::store::{Match, Refusal, Rule};
use crate::sim::world::{OPERATOR, World};
use serde_json::{Value, json};
use std::time::Duration;

/// Does what this step says to the cluster. Steps about time and the operator are not its business.
pub fn change(world: &mut World, cast: &Cast, step: &Step) -> Result<(), String> {
    match step {
        Step::Apply(set) => setting::create_set(world, &cast.namespace, set),
        Step::Edit(edit) => merge(world, &set_path(cast, edit.set.as_deref()), json!({ "spec": edit.spec })),
        Step::Delete(delete) => self::delete(world, cast, delete),
        Step::Annotate(annotate) => self::annotate(world, cast, annotate),
        Step::Patch(patch) => self::patch(world, cast, patch),
        Step::CreatePod(pods) => {
            pods.iter().try_for_each(|(name, pod)| setting::create_pod(world, cast, name, pod))
        }
        Step::Create(object) => setting::create(world, &cast.namespace, object),
        Step::Node(nodes) => nodes.iter().try_for_each(|(name, event)| super::nodes::node(world, name, *event)),
        Step::Vm(vms) => vms.iter().try_for_each(|(pod, event)| super::nodes::vm(world, cast, pod, *event)),
        Step::BootsFail(fails) => {
            for step in [NodeStep::Boot, NodeStep::Clone] {
                let effect = Effect::Fails("the guest does not come up".to_owned());
                let injection = Injection { remaining: fails.times, ..Injection::new(step, effect).for_pod(&fails.pod) };
                world.nodes.inject(injection);
            }
            Ok(())
        }
        Step::Registry(event) => registry(world, event),
        Step::Quota(hard) => setting::set_quota(world, &cast.namespace, hard),
        Step::Refuse(refuse) => {
            world.store.add_rule(rule(refuse));
            Ok(())
        }
        Step::Allow => {
            world.store.clear_rules();
            Ok(())
        }
        Step::Fault(fault) => self::fault(world, fault),
        Step::CreateNamespace => {
            world.store.add_namespace(&cast.namespace);
            Ok(())
        }
        Step::Settle
        | Step::Wait(_)
        | Step::Crash(_)
        | Step::Lag(_)
        | Step::WatchGap(_)
        | Step::SecondOperator(_)
        | Step::Operator(_)
        | Step::Clock(_) => Ok(()),
    }
}

fn set_path(cast: &Cast, set: Option<&str>) -> String {
    let key = cast.key(set);
    format!("/apis/{}/{}/namespaces/{}/cocoonsets/{}", keys::GROUP, keys::VERSION, key.namespace, key.name)
}

fn pod_path(cast: &Cast, pod: &str) -> String {
    let key = cast.key(Some(pod));
    format!("/api/v1/namespaces/{}/pods/{}", key.namespace, key.name)
}

fn merge(world: &mut World, path: &str, body: Value) -> Result<(), String> {
    done(world, Request::new(Method::Patch, path).with_body(MERGE_PATCH, body))
}

fn delete(world: &mut World, cast: &Cast, delete: &Delete) -> Result<(), String> {
    let path = match (&delete.set, &delete.pod, &delete.node, delete.namespace) {
        (Some(set), None, None, false) => set_path(cast, Some(set)),
        (None, Some(pod), None, false) => pod_path(cast, pod),
        (None, None, Some(node), false) => format!("/api/v1/nodes/{node}"),
        (None, None, None, true) => format!("/api/v1/namespaces/{}", cast.namespace),
        _ => return Err("exactly one of set, pod, node, namespace is expected".to_owned()),
    };
    let mut options = json!({ "kind": "DeleteOptions", "apiVersion": "v1" });
    if let Some(cascade) = delete.cascade {
        options["propagationPolicy"] = json!(match cascade {
            Cascade::Background => "Background",
            Cascade::Foreground => "Foreground",
            Cascade::Orphan => "Orphan",
        });
    }
    if delete.force {
        options["gracePeriodSeconds"] = json!(0);
    }
    done(world, Request::new(Method::Delete, path).with_body(JSON, options))
}

fn annotate(world: &mut World, cast: &Cast, annotate: &Annotate) -> Result<(), String> {
    let path = match (&annotate.set, &annotate.pod) {
        (set, None) => set_path(cast, set.as_deref()),
        (None, Some(pod)) => pod_path(cast, pod),
        (Some(_), Some(_)) => return Err("one of set and pod is expected".to_owned()),
    };
    let patch = MetaPatch { annotations: annotate.annotations.clone(), labels: annotate.labels.clone() };
    merge(world, &path, patch.to_json())
}

fn patch(world: &mut World, cast: &Cast, patch: &PatchStep) -> Result<(), String> {
    use super::steps::Resource;
    let path = match patch.resource {
        Resource::Cocoonsets | Resource::CocoonsetsStatus => set_path(cast, Some(&patch.name)),
        Resource::Cocoonhibernations => {
            set_path(cast, Some(&patch.name)).replace("/cocoonsets/", "/cocoonhibernations/")
        }
        Resource::Pods => pod_path(cast, &patch.name),
        Resource::Namespaces | Resource::Nodes => format!("/api/v1/{}/{}", patch.resource.plural(), patch.name),
    };
    let status = patch.status || patch.resource == Resource::CocoonsetsStatus;
    merge(world, &format!("{path}{}", if status { "/status" } else { "" }), patch.patch.clone())
}

fn registry(world: &mut World, event: &RegistryEvent) -> Result<(), String> {
    if let Some(tag) = &event.put {
        setting::put_tag(world, tag)?;
    }
    if let Some(tag) = &event.delete {
        let (vm, tag) = tag.rsplit_once(':').ok_or("vm:tag is expected")?;
        world.registry.drop_tag(vm, tag);
    }
    for (on, does) in [(event.down, Behaviour::Reset), (event.denied, Behaviour::DENIED)] {
        match on {
            Some(true) => world.registry.behave(Mood::always(does)),
            Some(false) => world.registry.recover(),
            None => {}
        }
    }
    Ok(())
}

fn rule(refuse: &Refuse) -> Rule {
    let when = Match {
        user: Some(OPERATOR.to_owned()),
        verbs: refuse.verb.iter().cloned().collect(),
        resource: Some(refuse.resource.qualified().to_owned()),
        name: refuse.name.clone(),
        ..Match::default()
    };
    let words = |default: &str| refuse.message.clone().unwrap_or_else(|| default.to_owned());
    let refusal = match refuse.by {
        Refuser::Rbac => Refusal::Rbac,
        Refuser::PodSecurity => Refusal::PodSecurity {
            level: "restricted:latest".to_owned(),
            violations: words("allowPrivilegeEscalation != false (container \"agent\" must set securityContext.allowPrivilegeEscalation=false)"),
        },
        Refuser::LimitRange => Refusal::LimitRange(words("maximum cpu usage per Container is 1, but limit is 2")),
        Refuser::Webhook => Refusal::WebhookDenied {
            name: "guard.example.test".to_owned(),
            message: Some(words("not today")),
            code: None,
        },
        Refuser::WebhookDown => Refusal::WebhookUnreachable {
            name: "guard.example.test".to_owned(),
            error: words("connection refused"),
        },
        Refuser::Policy => Refusal::Policy {
            name: "naming.example.test".to_owned(),
            message: words("not in this namespace"),
            reason: None,
        },
        Refuser::FlowControl => Refusal::TooManyRequests(Duration::from_secs(1)),
        Refuser::Authentication => Refusal::Unauthorized,
    };
    let rule = Rule::new(when, refusal);
    Rule { remaining: refuse.times, ..rule }
}

fn fault(world: &mut World, fault: &Fault) -> Result<(), String> {
    let all = [Verb::Get, Verb::List, Verb::Create, Verb::Patch, Verb::Delete, Verb::RegistryHead, Verb::RegistryDelete];
    let verb = all.into_iter().find(|verb| verb.label() == fault.verb).ok_or_else(|| {
        format!("verb \"{}\"; expected is one of {}", fault.verb, all.map(Verb::label).join(", "))
    })?;
    let what = match fault.answer.as_str() {
        "timeout-before" => What::TimeoutBefore,
        "timeout-after" => What::TimeoutAfter,
        "reset-before" => What::Reset { sent: true },
        "reset-after" => What::ResetAfter,
        class => {
            let resource = fault.resource.as_deref().unwrap_or("pods");
            let object = fault.name.as_deref().unwrap_or("demo-0");
            let reply = answer(class, verb, resource, object)
                .ok_or_else(|| format!("\"{class}\" is nothing that {} is answered with", fault.verb))?;
            What::Answer(reply)
        }
    };
    let matches = Pattern {
        user: Some(OPERATOR.to_owned()),
        verb: Some(verb),
        kind: fault.resource.clone(),
        name: fault.name.clone(),
    };
    world.faults.add(WireFault::new(matches, what).nth(fault.nth.into()).times(fault.times.into()));
    Ok(())
}

/// The line under which the transcript tells what follows.
pub fn headline(step: &Step) -> String {
    match step {
        Step::Settle => "settle".to_owned(),
        Step::Wait(span) => format!("wait {}", told(span.duration())),
        Step::Apply(set) => format!("apply set {}: {}", meta::text(&set.object, "name"), compact(set.object.get("spec"))),
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
        Step::Patch(patch) => format!("patch {} {}: {}", patch.resource.plural(), patch.name, compact(Some(&patch.patch))),
        Step::CreatePod(pods) => format!("somebody creates pod {}", pods.keys().cloned().collect::<Vec<_>>().join(", ")),
        Step::Create(object) => format!(
            "create {} {}",
            object.get("kind").and_then(Value::as_str).unwrap_or_default(),
            meta::text(object, "name")
        ),
        Step::Node(nodes) => nodes.iter().map(|(node, event)| format!("{node} {}", happens(*event))).collect::<Vec<_>>().join(", "),
        Step::Vm(vms) => vms.iter().map(|(pod, event)| format!("the VM of {pod} {}", event.words())).collect::<Vec<_>>().join(", "),
        Step::BootsFail(fails) => match fails.times {
            Some(times) => format!("the next {times} boots of {} fail", fails.pod),
            None => format!("boots of {} fail", fails.pod),
        },
        Step::Registry(event) => registry_line(event),
        Step::Quota(hard) if hard.is_empty() => "the quota is taken away".to_owned(),
        Step::Quota(hard) => {
            format!("quota {}", hard.iter().map(|(what, most)| format!("{what}={most}")).collect::<Vec<_>>().join(", "))
        }
        Step::Refuse(refuse) => refused(refuse),
        Step::Allow => "everything is allowed again".to_owned(),
        Step::Fault(fault) => faulty(fault),
        Step::Crash(crash) => format!("the operator dies after {} more calls", crash.after),
        Step::Lag(kinds) => switched(kinds.iter().map(|(kind, on)| (*kind, *on)), "stand still", "go on"),
        Step::WatchGap(kinds) => switched(kinds.iter().map(|(kind, on)| (*kind, *on)), "break", "are back"),
        Step::SecondOperator(true) => "a second operator starts".to_owned(),
        Step::SecondOperator(false) => "the second operator stops".to_owned(),
        Step::Operator(true) => "the operator is started".to_owned(),
        Step::Operator(false) => "the operator is stopped".to_owned(),
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
    let what = match (&delete.set, &delete.pod, &delete.node) {
        (Some(set), ..) => format!("set {set}"),
        (_, Some(pod), _) => format!("pod {pod}"),
        (.., Some(node)) => format!("node {node}"),
        (None, None, None) => "the namespace".to_owned(),
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
    let what = [Some(fault.verb.as_str()), fault.resource.as_deref(), fault.name.as_deref()];
    let what = what.into_iter().flatten().collect::<Vec<_>>().join(" ");
    let nth = if fault.nth == 1 { "the next".to_owned() } else { format!("number {} of", fault.nth) };
    let times = if fault.times == 1 { String::new() } else { format!(", {} times", fault.times) };
    format!("{nth} {what} meets {}{times}", fault.answer)
}

fn switched(kinds: impl Iterator<Item = (super::steps::WatchedKind, bool)>, on: &str, off: &str) -> String {
    let said = kinds.map(|(kind, is)| format!("watches of {} {}", kind.kind().resource(), if is { on } else { off }));
    said.collect::<Vec<_>>().join(", ")
}
