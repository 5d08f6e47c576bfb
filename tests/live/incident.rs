//! The two races that this project began with, a full quota and missing rights, on a real control plane, with the figures
//! that its audit log shows.

use crate::audit::Call;
use crate::bump;
use crate::operator::Operator;
use crate::place::{Place, Places, name, pods, sets};
use cocoon_operator::core::wire::{JSON, MERGE_PATCH, Method, Request};
use cocoon_operator::scenario::realm::Realm;
use jiff::Timestamp;
use libtest_mimic::{Failed, Trial};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// What a trial does to the place.
type Test = fn(&mut Place) -> Result<(), Failed>;

/// What VMs take to boot here.
const SHORT: Duration = Duration::from_millis(300);

/// The tests of this file.
pub fn trials(places: &Places) -> Vec<Trial> {
    let tests: [(&str, Test); 4] = [
        ("incident::a_namespace_that_goes_is_no_error", namespace_goes),
        ("incident::a_second_writer_is_no_error", second_writer),
        ("incident::a_quota_is_raised", quota),
        ("incident::rights_are_missing_for_a_while", rights_missing),
    ];
    let trial = |(name, test): (&str, Test)| {
        let places = places.clone();
        Trial::test(name, move || places.with(test))
    };
    tests.into_iter().map(trial).collect()
}

/// No pass was an error, and nothing was logged as one.
pub fn no_error(operator: &Operator) -> Result<(), Failed> {
    let (errors, lines) = (operator.errors()?, operator.lines("ERROR"));
    if errors == 0.0 && lines.is_empty() { Ok(()) } else { Err(format!("{errors} errors, lines {lines:#?}").into()) }
}

/// Creates of pods that were refused, by set.
fn refused(calls: &[Call], set_of: impl Fn(&Call) -> String) -> BTreeMap<String, usize> {
    let mut by_set = BTreeMap::new();
    for call in calls.iter().filter(|call| call.is("create", "pods") && call.code == 403) {
        *by_set.entry(set_of(call)).or_insert(0) += 1;
    }
    by_set
}

/// The audit log has no name for what is only to be created; a refusal says it.
fn set_of(call: &Call) -> String {
    let quoted = call.message.split('"').nth(1).unwrap_or(&call.name);
    quoted.rsplit_once('-').map_or(quoted, |(set, _)| set).to_owned()
}

/// B: twenty running sets in a namespace that goes, with pods that take ten seconds to terminate.
fn namespace_goes(place: &mut Place) -> Result<(), Failed> {
    const SETS: usize = 20;
    let ns = "incident-b";
    place.nodes_take(SHORT, Duration::from_secs(10));
    let operator = place.operator(&[])?;
    place.namespace(ns)?;
    place.create_sets(ns, "net", SETS, 1)?;
    let up = place.all_run(ns, SETS, Duration::from_secs(120))?;
    place.house.snapshots(|registry| {
        for pod in place.list(&pods(ns)) {
            let vm = format!("vk-{ns}-{}", name(&pod));
            registry.push(&vm, "hibernate", None);
            registry.push(&vm, "latest", None);
        }
    });
    let (from, begun) = (place.now(), Instant::now());
    let path = format!("/api/v1/namespaces/{ns}");
    place.must(&Request::new(Method::Delete, path.clone()))?;
    let gone = place.wait("the namespace is gone", Duration::from_secs(150), || {
        place.ask(&Request::new(Method::Get, path.clone())).0 == 404
    });
    if let Err(error) = gone {
        let left = (place.ask(&Request::new(Method::Get, path)).1, place.list(&sets(ns)), place.list(&pods(ns)).len());
        return Err(format!("{error}: {left:?}").into());
    }
    let took = begun.elapsed();
    let tags = place.house.with(Realm::tags).unwrap_or_default();
    let calls = place.calls(from, ns)?;
    let writes: Vec<&Call> = calls.iter().filter(|call| call.is_write()).collect();
    let refused = refused(&calls, set_of);
    let most = refused.values().max().copied().unwrap_or_default();
    let mut kinds: BTreeMap<(&str, &str, u64), usize> = BTreeMap::new();
    writes.iter().for_each(|call| *kinds.entry((&call.verb, &call.resource, call.code)).or_insert(0) += 1);
    println!("B: up in {up:?}, gone in {took:?}; refused creates {refused:?}; writes {kinds:?}");
    // Teardown is: pods deleted, names recorded, the finalizer taken away. Statuses come after the set itself is marked.
    let marked = marked(place, from, ns)?;
    let beyond = writes.iter().filter(|call| match (call.verb.as_str(), call.resource.as_str()) {
        ("delete", "pods") | ("patch", "cocoonsets") => false,
        ("patch", "cocoonsets/status") => marked.get(&call.name).is_none_or(|at| call.at < *at),
        ("create", "pods") => call.code != 403,
        _ => true,
    });
    let beyond: Vec<String> = beyond.map(|call| call.line()).collect();
    let mut records: BTreeMap<&str, usize> = BTreeMap::new();
    let patches = writes.iter().filter(|call| call.is("patch", "cocoonsets") && call.went_well());
    patches.for_each(|call| *records.entry(&call.name).or_insert(0) += 1);
    no_error(&operator)?;
    check(beyond.is_empty(), || format!("writes beyond teardown: {beyond:#?}"))?;
    check(most <= 2, || format!("more than a wave was refused: {refused:?}"))?;
    // The record of names, and the finalizer.
    check(records.values().all(|count| *count <= 2), || format!("patches of sets: {records:?}"))?;
    check(tags.is_empty(), || format!("tags are left: {tags:?}"))
}

/// When each set was marked for deletion.
fn marked(place: &Place, from: u64, namespace: &str) -> Result<BTreeMap<String, Timestamp>, Failed> {
    let all =
        crate::audit::since(&place.plane.audit_log(), from, "system:serviceaccount:kube-system:namespace-controller")?;
    let deletes = all.iter().filter(|call| call.namespace == namespace && call.resource == "cocoonsets");
    let at = deletes.filter(|call| call.verb.starts_with("delete")).map(|call| (call.name.clone(), call.at));
    let mut at: BTreeMap<String, Timestamp> = at.collect();
    // All of them by one request that names none.
    if let Some(all) = at.get("").copied() {
        for set in place.calls(from, namespace)?.into_iter().filter(|call| call.resource.starts_with("cocoonsets")) {
            at.entry(set.name).or_insert(all);
        }
    }
    Ok(at)
}

/// A: a hundred sets, and somebody who writes to every object in its first second.
fn second_writer(place: &mut Place) -> Result<(), Failed> {
    const SETS: usize = 100;
    let ns = "incident-a";
    place.nodes_take(SHORT, SHORT);
    let operator = place.operator(&[])?;
    place.namespace(ns)?;
    let bumps = bump::start(place, ns);
    let from = place.now();
    let begun = Instant::now();
    place.create_sets(ns, "set", SETS, 1)?;
    let up = place.all_run(ns, SETS, Duration::from_secs(180));
    let (took, bumped) = (begun.elapsed(), bumps.end());
    let calls = place.calls(from, ns)?;
    let conflicts = calls.iter().filter(|call| call.code == 409).count();
    let creates = calls.iter().filter(|call| call.is("create", "pods")).count();
    let writes = calls.iter().filter(|call| call.is_write()).count();
    println!(
        "A: {SETS} sets run after {took:?}; {bumped} bumps, {writes} writes, {creates} creates, {conflicts} conflicts"
    );
    let whole = no_error(&operator);
    drop(operator);
    place.wipe(ns);
    up?;
    whole?;
    check(bumped >= 3 * SETS, || format!("only {bumped} bumps"))?;
    check(creates == 2 * SETS, || format!("{creates} creates of {} pods", 2 * SETS))
}

/// Eight sets of three pods where ten pods are allowed, until the quota is raised.
fn quota(place: &mut Place) -> Result<(), Failed> {
    const SETS: usize = 8;
    let ns = "quota";
    place.nodes_take(SHORT, SHORT);
    let operator = place.operator(&[])?;
    place.namespace(ns)?;
    let path = format!("/api/v1/namespaces/{ns}/resourcequotas");
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "pods"},
        "spec": {"hard": {"pods": "10"}}});
    place.must(&Request::new(Method::Post, path.clone()).with_body(JSON, quota))?;
    place.wait("the quota is counted", Duration::from_secs(20), || {
        place.list(&path).iter().all(|quota| quota.pointer("/status/hard/pods") == Some(&json!("10")))
    })?;
    let from = place.now();
    place.create_sets(ns, "set", SETS, 2)?;
    std::thread::sleep(Duration::from_secs(30));
    let (before, held) = (place.running(ns), place.list(&pods(ns)).len());
    let raised = Instant::now();
    let more = json!({"spec": {"hard": {"pods": "30"}}});
    place.must(&Request::new(Method::Patch, format!("{path}/pods")).with_body(MERGE_PATCH, more))?;
    let up = place.all_run(ns, SETS, Duration::from_secs(40));
    let took = raised.elapsed();
    let calls = place.calls(from, ns)?;
    let refused = refused(&calls, set_of);
    let sum: usize = refused.values().sum();
    println!("quota: {held} pods and {before} sets before, all run {took:?} after; {sum} refusals {refused:?}");
    let whole = no_error(&operator);
    drop(operator);
    place.wipe(ns);
    up?;
    whole?;
    check(held == 10 && before < SETS, || format!("{held} pods and {before} sets: the quota did not bite"))?;
    check(sum < 100, || format!("{sum} refusals"))?;
    check(took <= Duration::from_secs(15), || format!("all run {took:?} after the raise"))
}

/// Ten sets whose pods may not be created for twenty seconds.
fn rights_missing(place: &mut Place) -> Result<(), Failed> {
    const SETS: usize = 10;
    let ns = "rights";
    place.nodes_take(SHORT, SHORT);
    let operator = place.operator(&[])?;
    place.namespace(ns)?;
    let role = place.without("pods", "create")?;
    let (from, begun) = (place.now(), Timestamp::now());
    place.create_sets(ns, "set", SETS, 2)?;
    std::thread::sleep(Duration::from_secs(20));
    let created = place.list(&pods(ns)).len();
    place.restore(&role)?;
    place.denied.push((begun, Timestamp::now()));
    let back = Instant::now();
    let up = place.all_run(ns, SETS, Duration::from_secs(40));
    let took = back.elapsed();
    let calls = place.calls(from, ns)?;
    let mut by_time: BTreeMap<i64, usize> = BTreeMap::new();
    let forbidden = calls.iter().filter(|call| call.is("create", "pods") && call.forbidden);
    forbidden.for_each(|call| *by_time.entry(call.at.duration_since(begun).as_secs()).or_insert(0) += 1);
    let sum: usize = by_time.values().sum();
    let errors = operator.errors()?;
    println!("rights: all run {took:?} after they are back; {sum} refusals, by second {by_time:?}; errors {errors}");
    drop(operator);
    place.wipe(ns);
    up?;
    check(created == 0, || format!("{created} pods were created without the right to"))?;
    check(sum <= 5 * SETS, || format!("{sum} refusals"))?;
    // R4: each set enters the state once.
    check(errors <= 10.0, || format!("{errors} errors"))?;
    check(took <= Duration::from_secs(10), || format!("all run {took:?} after the rights are back"))
}

/// An error with these words unless it holds.
pub fn check(holds: bool, words: impl FnOnce() -> String) -> Result<(), Failed> {
    if holds { Ok(()) } else { Err(words().into()) }
}

/// The ClusterRole of deploy/.
const ROLE: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles/cocoon-operator";

impl Place {
    /// Takes a right away; gives the role as it was.
    pub fn without(&self, resource: &str, verb: &str) -> Result<Value, Failed> {
        let role = self.must(&Request::new(Method::Get, ROLE))?;
        let mut less = role.clone();
        let rules = less.get_mut("rules").and_then(Value::as_array_mut).ok_or("a role without rules")?;
        let about = |rule: &Value| rule["resources"].as_array().is_some_and(|all| all.contains(&json!(resource)));
        for rule in rules.iter_mut().filter(|rule| about(rule)) {
            rule["verbs"].as_array_mut().into_iter().for_each(|verbs| verbs.retain(|one| *one != json!(verb)));
        }
        rules.retain(|rule| rule["verbs"].as_array().is_some_and(|verbs| !verbs.is_empty()));
        self.set_role(&less)?;
        Ok(role)
    }
    /// Gives all rights back.
    pub fn restore(&self, role: &Value) -> Result<(), Failed> {
        self.set_role(role)
    }
    fn set_role(&self, role: &Value) -> Result<(), Failed> {
        let rules = json!({"rules": role["rules"]});
        self.must(&Request::new(Method::Patch, ROLE).with_body(MERGE_PATCH, rules)).map(drop)
    }
}
