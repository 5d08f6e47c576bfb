//! The operator has the rights that it needs and no others: nothing that it asked for in the whole suite was refused, and
//! whatever it may do it did. This is looked at last.

use crate::Plane;
use crate::audit::{self, Call};
use crate::ground::OPERATOR;
use crate::incident::check;
use crate::operator::knows;
use crate::place::{Place, Places, pods};
use cocoon_operator::core::wire::{Method, Request};
use cocoon_operator::scenario::live::outage::Outage;
use libtest_mimic::{Failed, Trial};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

const ROLES: [&str; 2] = [
    "/apis/rbac.authorization.k8s.io/v1/clusterroles/cocoon-operator",
    "/apis/rbac.authorization.k8s.io/v1/namespaces/cocoon-system/roles/cocoon-operator",
];
/// What the admission plugin says to who may not hold up deletion.
const HOLDS_UP: &str = "cannot set blockOwnerDeletion";

/// Group, resource, verb.
type Right = (String, String, String);

/// Rights that no request shows: resource, verb, why.
fn unused() -> Vec<(&'static str, &'static str, &'static str)> {
    let requests = "requests for hibernation are watched, and not yet worked on";
    let ledger = "the list of tags that could not be deleted is written only once there is one";
    let events = "no events are written yet";
    let lease = "nobody is elected yet";
    let mut list = vec![
        ("cocoonsets/finalizers", "update", "no request: see rights::who_holds_up_deletion_may_do_so"),
        ("cocoonhibernations", "get", requests),
        ("cocoonhibernations", "patch", requests),
        ("cocoonhibernations/status", "patch", requests),
        ("configmaps", "create", ledger),
        ("configmaps", "get", ledger),
        ("configmaps", "patch", ledger),
    ];
    if !knows("--dry-run") {
        list.extend([("events", "create", events), ("events", "patch", events)]);
    }
    if !knows("--leader-elect-namespace") {
        list.extend([("leases", "create", lease), ("leases", "get", lease), ("leases", "update", lease)]);
    }
    list
}

/// Tests that are played with the others.
pub fn trials(places: &Places) -> Vec<Trial> {
    let (one, two) = (places.clone(), places.clone());
    vec![
        Trial::test("rights::who_holds_up_deletion_may_do_so", move || one.with(holds_up)),
        Trial::test("rights::a_leader_is_elected", move || two.with(elected))
            .with_ignored_flag(!knows("--leader-elect-namespace")),
    ]
}

/// What is looked at when all others are over. Where not all were played, not all rights were used.
pub fn last(plane: &Plane, places: &Places, outage: &Arc<Outage>, whole: bool) -> Vec<Trial> {
    let one = (Plane::clone(plane), places.clone(), Arc::clone(outage));
    let two = (Plane::clone(plane), places.clone(), Arc::clone(outage));
    vec![
        Trial::test("rights::nothing_was_refused", move || nothing_refused(&one.0, &one.1, &one.2)),
        Trial::test("rights::everything_was_used", move || everything_used(&two.0, &two.1, &two.2))
            .with_ignored_flag(!whole),
    ]
}

/// Without the right to hold up the deletion of a set no pod can be created that does so.
fn holds_up(place: &mut Place) -> Result<(), Failed> {
    let ns = "holds-up";
    place.nodes_take(Duration::from_millis(300), Duration::from_millis(300));
    let operator = place.operator(&[])?;
    place.namespace(ns)?;
    let role = place.without("cocoonsets/finalizers", "update")?;
    let from = place.now();
    place.create_sets(ns, "set", 1, 0)?;
    let refusal = |place: &Place| {
        let calls = place.calls(from, ns).unwrap_or_default();
        calls.into_iter().find(|call| call.is("create", "pods") && call.message.contains(HOLDS_UP))
    };
    let refused = place.wait("a pod is refused", Duration::from_secs(20), || refusal(place).is_some());
    place.restore(&role)?;
    let up = place.all_run(ns, 1, Duration::from_secs(40));
    let made = place.list(&pods(ns)).len();
    drop(operator);
    place.wipe(ns);
    refused?;
    up?;
    check(made == 1, || format!("{made} pods"))
}

/// A leader is elected in the operator's own namespace.
fn elected(place: &mut Place) -> Result<(), Failed> {
    let operator = place.operator(&["--leader-elect=true", "--leader-elect-namespace=cocoon-system"])?;
    let lease = "/apis/coordination.k8s.io/v1/namespaces/cocoon-system/leases/cocoon-operator.cocoonset.cocoonstack.io";
    let (_, first) = place.ask(&Request::new(Method::Get, lease));
    let renewed = |lease: &Value| lease.pointer("/spec/renewTime").cloned();
    let again = place.wait("the lease is renewed", Duration::from_secs(20), || {
        renewed(&place.ask(&Request::new(Method::Get, lease)).1) != renewed(&first)
    });
    drop(operator);
    again?;
    check(first.pointer("/spec/holderIdentity").is_some(), || format!("nobody holds {first}"))
}

/// Everything that the operator asked of both control planes, and what of it was refused though no test wanted that.
fn asked(plane: &Plane, places: &Places, outage: &Outage) -> Result<(Vec<Call>, Vec<String>), Failed> {
    let log = plane.lock().map_err(|_| Failed::from("a test panicked"))?.audit_log();
    let mut calls = audit::since(&log, 0, OPERATOR)?;
    let mut refused: Vec<Call> =
        calls.iter().filter(|call| call.forbidden && !outage.is_cold_at(call.at)).cloned().collect();
    let there = places.seen(|place| {
        let calls = place.calls(0, "")?;
        let wanted = |call: &Call| {
            call.is("create", "pods") && place.denied.iter().any(|(from, to)| (*from..=*to).contains(&call.at))
        };
        refused.extend(calls.iter().filter(|call| call.forbidden && !wanted(call)).cloned());
        Ok::<_, Failed>(calls)
    });
    calls.extend(there.transpose()?.unwrap_or_default());
    Ok((calls, refused.iter().map(Call::line).collect()))
}

fn nothing_refused(plane: &Plane, places: &Places, outage: &Outage) -> Result<(), Failed> {
    let (calls, refused) = asked(plane, places, outage)?;
    println!("rights: {} requests of the operator, {} refused by RBAC", calls.len(), refused.len());
    check(refused.is_empty(), || format!("{refused:#?}"))
}

fn everything_used(plane: &Plane, places: &Places, outage: &Outage) -> Result<(), Failed> {
    let used: BTreeSet<Right> =
        asked(plane, places, outage)?.0.into_iter().map(|call| (call.group, call.resource, call.verb)).collect();
    let roles = places.seen(|place| ROLES.map(|role| place.ask(&Request::new(Method::Get, role)).1));
    let all: BTreeSet<Right> = roles.ok_or("there was no operator")?.iter().flat_map(rights).collect();
    check(all.len() > 15, || format!("only {} rights", all.len()))?;
    let listed = unused();
    let is_listed = |right: &&Right| listed.iter().any(|(resource, verb, _)| right.1 == *resource && right.2 == *verb);
    let (idle, busy): (Vec<&Right>, Vec<&Right>) = all.iter().partition(|right| !used.contains(*right));
    println!("rights: {} of {} used, {} listed as unused", busy.len(), all.len(), listed.len());
    let surplus: Vec<_> = idle.into_iter().filter(|right| !is_listed(right)).collect();
    check(surplus.is_empty(), || format!("never used: {surplus:?}"))?;
    let wrong: Vec<_> = busy.into_iter().filter(is_listed).collect();
    check(wrong.is_empty(), || format!("listed as unused, and used: {wrong:?}"))
}

/// Every single right of a role.
fn rights(role: &Value) -> Vec<Right> {
    let texts = |rule: &Value, key: &str| -> Vec<String> {
        let all = rule.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
        all.iter().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let rules = role.get("rules").and_then(Value::as_array).cloned().unwrap_or_default();
    let mut rights = Vec::new();
    for rule in &rules {
        for group in texts(rule, "apiGroups") {
            for resource in texts(rule, "resources") {
                rights.extend(texts(rule, "verbs").into_iter().map(|verb| (group.clone(), resource.clone(), verb)));
            }
        }
    }
    rights
}
