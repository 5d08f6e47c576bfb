//! The operator has the rights that it needs and no others: nothing that it asked for in the whole suite was refused, and
//! whatever it may do it did. This is looked at last.

use crate::Plane;
use crate::audit::{self, Call};
use crate::ground::OPERATOR;
use crate::incident::check;
use crate::place::{Place, Places, Test, pods};
use crate::role::{CLUSTER_ROLE, OWN_ROLE};
use crate::stories::Progress;
use cocoon_operator::core::wire::{JSON, MERGE_PATCH, Method, Request};
use cocoon_operator::scenario::live::outage::Outage;
use libtest_mimic::{Failed, Trial};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// What the admission plugin says to who may not hold up deletion.
const HOLDS_UP: &str = "cannot set blockOwnerDeletion";

/// Group, resource, verb.
type Right = (String, String, String);

/// A right that no request of the suite shows.
struct Unused {
    resource: &'static str,
    verb: &'static str,
    /// What it is for.
    why: &'static str,
    /// What shows that it is right to have it.
    test: (&'static str, Test),
}

const REQUESTS: &str = "requests for hibernation are watched, and nothing is done about one yet; what would be sent is \
                        settled (core/call.rs), and the Go operator has this right";

const UNUSED: [Unused; 4] = [
    Unused {
        resource: "cocoonsets/finalizers",
        verb: "update",
        why: "nothing is sent there: an admission plugin asks for it where a pod names an owner whose deletion waits",
        test: ("rights::who_holds_up_deletion_may_do_so", holds_up),
    },
    Unused {
        resource: "cocoonhibernations",
        verb: "get",
        why: REQUESTS,
        test: ("rights::a_request_for_hibernation_is_read", |place| {
            asked_for(place, "cocoonhibernations", "get", |path| Request::new(Method::Get, path))
        }),
    },
    Unused {
        resource: "cocoonhibernations",
        verb: "patch",
        why: REQUESTS,
        test: ("rights::a_request_for_hibernation_is_patched", |place| {
            asked_for(place, "cocoonhibernations", "patch", |path| {
                let patch = json!({"metadata": {"annotations": {"example.test/seen": "true"}}});
                Request::new(Method::Patch, path).with_body(MERGE_PATCH, patch)
            })
        }),
    },
    Unused {
        resource: "cocoonhibernations/status",
        verb: "patch",
        why: REQUESTS,
        test: ("rights::a_request_for_hibernation_is_answered", |place| {
            asked_for(place, "cocoonhibernations/status", "patch", |path| {
                let patch = json!({"status": {"phase": "Pending"}});
                Request::new(Method::Patch, format!("{path}/status")).with_body(MERGE_PATCH, patch)
            })
        }),
    },
];

/// Tests that are played with the others.
pub fn trials(places: &Places) -> Vec<Trial> {
    let mut trials: Vec<Trial> = UNUSED.iter().map(|Unused { test, .. }| places.trial(test.0, test.1)).collect();
    trials.push(places.trial("rights::a_leader_is_elected", elected));
    trials
}

/// What is looked at when all others are over. Where none was played, there is nothing to look at; where not all were, not
/// all rights were used.
pub fn last(plane: &Plane, places: &Places, outage: &Arc<Outage>, stories: &Progress, whole: bool) -> Vec<Trial> {
    let played =
        Played { stories: stories.told(), operators: places.seen(|place| place.operators()).unwrap_or_default() };
    let nothing = played.stories + played.operators == 0;
    let one = (Plane::clone(plane), places.clone(), Arc::clone(outage));
    let two = (Plane::clone(plane), places.clone(), Arc::clone(outage));
    vec![
        Trial::test("rights::nothing_was_refused", move || nothing_refused(&asked(&one.0, &one.1, &one.2)?, played))
            .with_ignored_flag(nothing),
        Trial::test("rights::everything_was_used", move || everything_used(&asked(&two.0, &two.1, &two.2)?, &two.1))
            .with_ignored_flag(!whole),
    ]
}

/// The operator may ask for this, because it has this right.
fn asked_for(place: &mut Place, resource: &str, verb: &str, request: impl Fn(&str) -> Request) -> Result<(), Failed> {
    let ns = format!("may-{verb}-{}", resource.replace('/', "-"));
    place.namespace(&ns)?;
    let path = format!("/apis/cocoonset.cocoonstack.io/v1/namespaces/{ns}/cocoonhibernations");
    let object = json!({"apiVersion": "cocoonset.cocoonstack.io/v1", "kind": "CocoonHibernation",
        "metadata": {"name": "demo"}, "spec": {"podRef": {"name": "demo-0"}, "desire": "Hibernate"}});
    place.must(&Request::new(Method::Post, path.clone()).with_body(JSON, object))?;
    let (operator, request) = (place.as_operator()?, request(&format!("{path}/demo")));
    let (code, body) = place.ask_as(&operator, &request);
    check(code == 200, || format!("{verb} {resource}: {code} {body}"))?;
    place.without(resource, verb)?;
    let is = |place: &Place, code: u16| place.ask_as(&operator, &request).0 == code;
    place.wait("without the right it is refused", Duration::from_secs(20), || is(place, 403))?;
    place.restore()?;
    place.wait("with the right it is allowed", Duration::from_secs(20), || is(place, 200))?;
    Ok(())
}

/// Without the right to hold up the deletion of a set no pod can be created that does so.
fn holds_up(place: &mut Place) -> Result<(), Failed> {
    let ns = "holds-up";
    place.nodes_take(Duration::from_millis(300), Duration::from_millis(300));
    let operator = place.operator(&[])?;
    place.namespace(ns)?;
    place.without("cocoonsets/finalizers", "update")?;
    let from = place.now();
    place.create_sets(ns, "set", 1, 0)?;
    let refusal = |place: &Place| {
        let calls = place.calls(from, ns).unwrap_or_default();
        calls.into_iter().find(|call| call.is("create", "pods") && call.message.contains(HOLDS_UP))
    };
    place.wait("a pod is refused", Duration::from_secs(20), || refusal(place).is_some())?;
    place.restore()?;
    place.all_run(ns, 1, Duration::from_secs(40))?;
    let made = place.list(&pods(ns))?.len();
    drop(operator);
    check(made == 1, || format!("{made} pods"))
}

/// A leader is elected in the operator's own namespace.
fn elected(place: &mut Place) -> Result<(), Failed> {
    let operator = place.operator(&["--leader-elect=true", "--leader-elect-namespace=cocoon-system"])?;
    let lease = "/apis/coordination.k8s.io/v1/namespaces/cocoon-system/leases/cocoon-operator.cocoonset.cocoonstack.io";
    let first = place.must(&Request::new(Method::Get, lease))?;
    let text = |lease: &Value, field: &str| lease["spec"][field].as_str().map(str::to_owned);
    check(text(&first, "holderIdentity").is_some_and(|holder| !holder.is_empty()), || format!("nobody holds {first}"))?;
    let renewed = text(&first, "renewTime");
    check(renewed.is_some(), || format!("never renewed: {first}"))?;
    place.wait("the lease is renewed", Duration::from_secs(20), || {
        let now = text(&place.ask(&Request::new(Method::Get, lease)).1, "renewTime");
        now.is_some() && now != renewed
    })?;
    drop(operator);
    Ok(())
}

/// What there was to look at.
#[derive(Clone, Copy)]
struct Played {
    stories: usize,
    operators: usize,
}

/// Everything that the operator asked for.
struct Asked {
    /// Of the control plane of the stories.
    of_stories: Vec<Call>,
    /// Of its own.
    here: Vec<Call>,
    /// What of it RBAC refused though no test wanted that.
    refused: Vec<String>,
}

fn asked(plane: &Plane, places: &Places, outage: &Outage) -> Result<Asked, Failed> {
    let log = plane.lock().map_err(|_| Failed::from("a test panicked"))?.audit_log();
    let of_stories = audit::since(&log, 0, OPERATOR)?;
    let there = of_stories.iter().filter(|call| call.forbidden && !outage.is_cold_at(call.at));
    let mut refused: Vec<String> = there.map(Call::line).collect();
    let here = places.seen(|place| {
        let calls = place.calls(0, "")?;
        let wanted = |call: &&Call| place.denied.iter().any(|denied| denied.means(call));
        refused.extend(calls.iter().filter(|call| call.forbidden && !wanted(call)).map(Call::line));
        Ok::<_, Failed>(calls)
    });
    Ok(Asked { of_stories, here: here.transpose()?.unwrap_or_default(), refused })
}

fn nothing_refused(asked: &Asked, played: Played) -> Result<(), Failed> {
    let Asked { of_stories, here, refused } = asked;
    println!(
        "rights: {} requests of the operator in {} stories, {} of {} processes; {} refused by RBAC",
        of_stories.len(),
        played.stories,
        here.len(),
        played.operators,
        refused.len()
    );
    // Each lists and watches five kinds.
    check(of_stories.len() >= 5 * played.stories.min(1), || "the stories' audit log is empty".to_owned())?;
    check(here.len() >= 5 * played.operators, || format!("{} requests of {} operators", here.len(), played.operators))?;
    check(refused.is_empty(), || format!("{refused:#?}"))
}

fn everything_used(asked: &Asked, places: &Places) -> Result<(), Failed> {
    let allowed = asked.of_stories.iter().chain(&asked.here).filter(|call| !call.forbidden).cloned();
    let used: BTreeSet<Right> = allowed.map(|call| (call.group, call.resource, call.verb)).collect();
    let roles = places.seen(|place| [CLUSTER_ROLE, OWN_ROLE].map(|role| place.must(&Request::new(Method::Get, role))));
    let [cluster, own] = roles.ok_or("there was no operator")?;
    let all: BTreeSet<Right> = rights(&cluster?).into_iter().chain(rights(&own?)).collect();
    check(all.len() > 15, || format!("only {} rights", all.len()))?;
    let is = |right: &Right, listed: &Unused| right.1 == listed.resource && right.2 == listed.verb;
    let is_listed = |right: &&Right| UNUSED.iter().any(|listed| is(right, listed));
    let (idle, busy): (Vec<&Right>, Vec<&Right>) = all.iter().partition(|right| !used.contains(*right));
    println!("rights: {} of {} used", busy.len(), all.len());
    UNUSED
        .iter()
        .for_each(|Unused { resource, verb, why, test }| println!("rights: {verb} {resource}: {why}; {}", test.0));
    let surplus: Vec<_> = idle.into_iter().filter(|right| !is_listed(right)).collect();
    check(surplus.is_empty(), || format!("never used: {surplus:?}"))?;
    let wrong: Vec<_> = busy.into_iter().filter(is_listed).collect();
    check(wrong.is_empty(), || format!("listed as unused, and used: {wrong:?}"))?;
    let none = UNUSED.iter().find(|listed| !all.iter().any(|right| is(right, listed)));
    check(none.is_none(), || format!("listed as unused, and no right: {:?}", none.map(|one| (one.verb, one.resource))))
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
