//! What people, nodes and faults do to the cluster in a story.

use super::realm::Realm;
use super::requests;
use super::setting::{self, Cast, done};
use super::steps::{Fault, Overtake, Refuse, Refuser, RegistryEvent, Step};
use crate::core::wire::Verb;
use crate::sim::faults::{Fault as WireFault, Pattern, What, answer};
use crate::sim::node::{Effect, Injection, Step as NodeStep};
use crate::sim::registry::{Behaviour, Mood, Registry};
use crate::sim::store::{Match, Refusal, Rule};
use crate::sim::world::OPERATOR;
use std::time::Duration;

/// Does what this step says to the cluster. Steps about time and the operator are not its business.
pub fn change(world: &mut impl Realm, cast: &Cast, step: &Step) -> Result<(), String> {
    match step {
        Step::Apply(set) => setting::create_set(world, &cast.namespace, set),
        Step::Edit(edit) => done(world, requests::edit(cast, edit)),
        Step::Delete(delete) => done(world, requests::delete(cast, delete)?),
        Step::Annotate(annotate) => done(world, requests::annotate(cast, annotate)?),
        Step::Patch(patch) => done(world, requests::patch(cast, patch)),
        Step::CreatePod(pods) => pods.iter().try_for_each(|(name, pod)| setting::create_pod(world, cast, name, pod)),
        Step::Create(object) => setting::create(world, &cast.namespace, object),
        Step::Node(nodes) => nodes.iter().try_for_each(|(name, event)| super::nodes::node(world, name, *event)),
        Step::Vm(vms) => vms.iter().try_for_each(|(pod, event)| super::nodes::vm(world, cast, pod, *event)),
        Step::BootsFail(fails) => {
            for step in [NodeStep::Boot, NodeStep::Clone] {
                let effect = Effect::Fails("the guest does not come up".to_owned());
                let injection =
                    Injection { remaining: fails.times, ..Injection::new(step, effect).for_pod(&fails.pod) };
                world.nodes().inject(injection);
            }
            if let Some(pause) = fails.pause {
                world.nodes().settings_mut().first_pause = pause.duration();
            }
            Ok(())
        }
        Step::Registry(event) => registry(world, event),
        Step::Quota(hard) => setting::set_quota(world, &cast.namespace, hard),
        Step::Refuse(refuse) => {
            world.refuse(rule(refuse));
            Ok(())
        }
        Step::Allow => {
            world.allow();
            Ok(())
        }
        Step::Fault(fault) => self::fault(world, fault),
        Step::Overtake(overtake) => self::overtake(world, cast, overtake),
        Step::CreateNamespace => {
            world.add_namespace(&cast.namespace);
            Ok(())
        }
        Step::Settle
        | Step::Wait(_)
        | Step::Crash(_)
        | Step::Lag(_)
        | Step::WatchGap(_)
        | Step::SecondOperator(_)
        | Step::Operator(_)
        | Step::Kill
        | Step::CutOff(_)
        | Step::Clock(_) => Ok(()),
    }
}

fn registry(world: &mut impl Realm, event: &RegistryEvent) -> Result<(), String> {
    if let Some(tag) = &event.put {
        setting::put_tag(world, tag)?;
    }
    if let Some(tag) = &event.delete {
        let (vm, tag) = tag.rsplit_once(':').ok_or("vm:tag is expected")?;
        world.registry(|registry| registry.drop_tag(vm, tag));
    }
    for (on, does) in [(event.down, Behaviour::Reset), (event.denied, Behaviour::DENIED)] {
        match on {
            Some(true) => world.registry(|registry| registry.behave(Mood::always(does))),
            Some(false) => world.registry(Registry::recover),
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
            violations: words(
                "allowPrivilegeEscalation != false (container \"agent\" must set securityContext.allowPrivilegeEscalation=false)",
            ),
        },
        Refuser::LimitRange => Refusal::LimitRange(words("maximum cpu usage per Container is 1, but limit is 2")),
        Refuser::Webhook => Refusal::WebhookDenied {
            name: "guard.example.test".to_owned(),
            message: Some(words("not today")),
            code: None,
        },
        Refuser::WebhookDown => {
            Refusal::WebhookUnreachable { name: "guard.example.test".to_owned(), error: words("connection refused") }
        }
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

fn verb(label: &str) -> Result<Verb, String> {
    let kubernetes = [Verb::Get, Verb::List, Verb::Create, Verb::Update, Verb::Patch, Verb::Delete];
    let all = [&kubernetes[..], &[Verb::RegistryHead, Verb::RegistryDelete]].concat();
    let found = all.iter().find(|verb| verb.label() == label).copied();
    let labels = || all.iter().map(|verb| verb.label()).collect::<Vec<_>>().join(", ");
    found.ok_or_else(|| format!("verb \"{label}\"; expected is one of {}", labels()))
}

fn pattern(verb: Verb, kind: &Option<String>, name: &Option<String>) -> Pattern {
    Pattern { user: Some(OPERATOR.to_owned()), verb: Some(verb), kind: kind.clone(), name: name.clone() }
}

fn fault(world: &mut impl Realm, fault: &Fault) -> Result<(), String> {
    let verb = verb(&fault.verb)?;
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
    let matches = pattern(verb, &fault.resource, &fault.name);
    let fault = WireFault::new(matches, what).nth(fault.nth.into()).times(fault.times.into());
    world.faults(|faults| faults.add(fault));
    Ok(())
}

fn overtake(world: &mut impl Realm, cast: &Cast, overtake: &Overtake) -> Result<(), String> {
    let request = match (&overtake.patch, &overtake.annotate, &overtake.delete) {
        (Some(patch), None, None) => requests::patch(cast, patch),
        (None, Some(annotate), None) => requests::annotate(cast, annotate)?,
        (None, None, Some(delete)) => requests::delete(cast, delete)?,
        _ => return Err("exactly one of patch, annotate, delete is expected".to_owned()),
    };
    let matches = pattern(verb(&overtake.verb)?, &overtake.resource, &overtake.name);
    let what = What::Overtaken(Box::new(request));
    let fault = WireFault::new(matches, what).nth(overtake.nth.into()).times(overtake.times.into());
    world.faults(|faults| faults.add(fault));
    Ok(())
}
