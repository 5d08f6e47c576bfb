//! The two races that this project began with, a full quota and missing rights, on a real control plane, with the figures
//! that its audit log shows.

use crate::audit::Call;
use crate::bump;
use crate::follow::follow;
use crate::operator::Operator;
use crate::place::{Place, Places, Test, name, pods, sets};
use cocoon_operator::core::contract::keys::DELETE_VM_NAMES;
use cocoon_operator::core::wire::{JSON, MERGE_PATCH, Method, Request};
use cocoon_operator::scenario::realm::Realm;
use jiff::Timestamp;
use libtest_mimic::{Failed, Trial};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

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
    tests.into_iter().map(|(name, test)| places.trial(name, test)).collect()
}

/// No pass was an error, and nothing was logged as one.
pub fn no_error(operator: &Operator) -> Result<(), Failed> {
    let (errors, lines) = (operator.errors()?, operator.lines("ERROR")?);
    if errors == 0.0 && lines.is_empty() { Ok(()) } else { Err(format!("{errors} errors, lines {lines:#?}").into()) }
}

/// Creates of pods that were refused, by set.
fn refused(calls: &[Call]) -> BTreeMap<String, usize> {
    let mut by_set = BTreeMap::new();
    for call in calls.iter().filter(|call| call.is("create", "pods") && call.code == 403) {
        *by_set.entry(set_of(call)).or_insert(0) += 1;
    }
    by_set
}

/// The audit log has no name for what is only to be created; a refusal by admission says it.
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
    let vms = place.list(&pods(ns))?.iter().map(|pod| format!("vk-{ns}-{}", name(pod))).collect::<BTreeSet<_>>();
    place.house.snapshots(|registry| {
        for (vm, tag) in vms.iter().flat_map(|vm| ["hibernate", "latest"].map(|tag| (vm, tag))) {
            registry.push(vm, tag, None);
        }
    });
    let before = tags_of(place, ns)?;
    check(before.len() == 4 * SETS, || format!("tags before: {before:?}"))?;
    // Each set as it was last.
    let ends: Arc<Mutex<BTreeMap<String, Value>>> = Arc::default();
    let seen = Arc::clone(&ends);
    let _watch = follow(place, &sets(ns), move |kind, set| {
        if kind == "DELETED" {
            seen.lock().unwrap_or_else(PoisonError::into_inner).insert(name(&set), set);
        }
    });
    let (from, begun) = (place.now(), Instant::now());
    let path = format!("/api/v1/namespaces/{ns}");
    place.must(&Request::new(Method::Delete, path.clone()))?;
    let gone = place.wait("the namespace is gone", Duration::from_secs(150), || place.code(&path) == 404);
    if let Err(error) = gone {
        let left = (place.ask(&Request::new(Method::Get, path)).1, place.list(&sets(ns)), place.list(&pods(ns)));
        return Err(format!("{error}: {left:?}").into());
    }
    let took = begun.elapsed();
    let tags = tags_of(place, ns)?;
    let calls = place.calls(from, ns)?;
    let marked = marked(place, from, ns)?;
    let ends = ends.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let mut kinds: BTreeMap<(&str, &str, u64), usize> = BTreeMap::new();
    let writes = calls.iter().filter(|call| call.is_write());
    writes.for_each(|call| *kinds.entry((&call.verb, &call.resource, call.code)).or_insert(0) += 1);
    println!("B: up in {up:?}, gone in {took:?}; refused creates {:?}; writes {kinds:?}", refused(&calls));
    no_error(&operator)?;
    check(ends.len() == SETS, || format!("seen to go: {:?}", ends.keys()))?;
    teardown_alone(&calls, &marked, &ends)?;
    nothing_is_lost(&ends, &vms)?;
    check(tags.is_empty(), || format!("tags are left: {tags:?}"))
}

/// The tags of a namespace's VMs.
fn tags_of(place: &Place, namespace: &str) -> Result<Vec<String>, Failed> {
    let mut tags = place.house.with(Realm::tags).ok_or("nodes and registry are no more")?;
    tags.retain(|tag| tag.starts_with(&format!("vk-{namespace}-")));
    Ok(tags)
}

/// Teardown is: the finalizer taken away, once from each set; the names of VMs recorded, once for a set whose status lacks
/// some; pods deleted. Statuses come before the set is marked or not at all, and at most one wave of creates is refused.
fn teardown_alone(
    calls: &[Call],
    marked: &BTreeMap<String, Timestamp>,
    ends: &BTreeMap<String, Value>,
) -> Result<(), Failed> {
    let beyond =
        calls.iter().filter(|call| call.is_write()).filter(|call| match (call.verb.as_str(), call.resource.as_str()) {
            ("delete", "pods") => false,
            ("patch", "cocoonsets") => !call.went_well(),
            ("patch", "cocoonsets/status") => marked.get(&call.name).is_none_or(|at| call.at < *at),
            ("create", "pods") => !call.message.contains("is being terminated"),
            _ => true,
        });
    let beyond: Vec<String> = beyond.map(Call::line).collect();
    check(beyond.is_empty(), || format!("writes beyond teardown: {beyond:#?}"))?;
    for (set, end) in ends {
        let patches = calls.iter().filter(|call| call.is("patch", "cocoonsets") && call.name == *set);
        let patches: Vec<String> = patches.map(Call::line).collect();
        let recorded = usize::from(end["metadata"]["annotations"].get(DELETE_VM_NAMES).is_some());
        check(patches.len() == 1 + recorded, || format!("patches of {set}: {patches:#?}, in the end {end}"))?;
    }
    let refused = refused(calls);
    check(refused.values().all(|count| *count <= 2), || format!("more than a wave was refused: {refused:?}"))
}

/// R7: to its end each set names its VMs, in its status or in the record.
fn nothing_is_lost(ends: &BTreeMap<String, Value>, vms: &BTreeSet<String>) -> Result<(), Failed> {
    let mut named = BTreeSet::new();
    for set in ends.values() {
        let record = set["metadata"]["annotations"][DELETE_VM_NAMES].as_str().unwrap_or_default();
        named.extend(record.split(',').map(str::to_owned));
        let agents = set["status"]["agents"].as_array().into_iter().flatten();
        named.extend(agents.filter_map(|agent| agent["vmName"].as_str()).map(str::to_owned));
    }
    check(vms.is_subset(&named), || format!("named in the end are {named:?} of {vms:?}"))
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
    place.all_run(ns, SETS, Duration::from_secs(180))?;
    let (took, [of_sets, of_pods]) = (begun.elapsed(), bumps.end());
    let calls = place.calls(from, ns)?;
    let conflicts = calls.iter().filter(|call| call.code == 409 && call.verb != "create").count();
    let creates = calls.iter().filter(|call| call.is("create", "pods")).count();
    let writes = calls.iter().filter(|call| call.is_write()).count();
    let bumped = [&of_sets, &of_pods].map(|one| one.iter().sum::<usize>());
    println!(
        "A: {SETS} sets run after {took:?}; {bumped:?} bumps of sets and pods, {writes} writes, {creates} creates, \
         {conflicts} conflicts"
    );
    no_error(&operator)?;
    check((of_sets.len(), of_pods.len()) == (SETS, 2 * SETS), || {
        format!("the second writer saw {} sets and {} pods", of_sets.len(), of_pods.len())
    })?;
    // One of its writes may have met the operator's.
    let often = |counts: &[usize]| counts.iter().all(|count| count + 1 >= bump::AT.len());
    check(often(&of_sets) && often(&of_pods), || format!("bumps of each set {of_sets:?}, of each pod {of_pods:?}"))?;
    check(conflicts > 0, || "the two writers never met".to_owned())?;
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
        let counted = |quota: &Value| quota.pointer("/status/hard/pods") == Some(&json!("10"));
        place.list(&path).is_ok_and(|all| all.iter().any(counted))
    })?;
    let from = place.now();
    place.create_sets(ns, "set", SETS, 2)?;
    std::thread::sleep(Duration::from_secs(30));
    let (before, held) = (place.running(ns)?, place.list(&pods(ns))?.len());
    let raised = Instant::now();
    let more = json!({"spec": {"hard": {"pods": "30"}}});
    place.must(&Request::new(Method::Patch, format!("{path}/pods")).with_body(MERGE_PATCH, more))?;
    place.all_run(ns, SETS, Duration::from_secs(40))?;
    let took = raised.elapsed();
    let refused = refused(&place.calls(from, ns)?);
    let sum: usize = refused.values().sum();
    println!("quota: {held} pods and {before} sets before, all run {took:?} after; {sum} refusals {refused:?}");
    no_error(&operator)?;
    check(held == 10 && before < SETS, || format!("{held} pods and {before} sets: the quota did not bite"))?;
    check((1..100).contains(&sum), || format!("{sum} refusals"))?;
    check(took <= Duration::from_secs(15), || format!("all run {took:?} after the raise"))
}

/// Ten sets whose pods may not be created for twenty seconds. A refusal by RBAC names no pod, so each set has a namespace.
fn rights_missing(place: &mut Place) -> Result<(), Failed> {
    const SETS: usize = 10;
    place.nodes_take(SHORT, SHORT);
    let operator = place.operator(&[])?;
    let all: Vec<String> = (0..SETS).map(|number| format!("rights-{number}")).collect();
    all.iter().try_for_each(|ns| place.namespace(ns))?;
    place.without("pods", "create")?;
    let (from, begun) = (place.now(), Timestamp::now());
    all.iter().try_for_each(|ns| place.create_sets(ns, "set", 1, 2))?;
    std::thread::sleep(Duration::from_secs(20));
    let created = place.list(&pods(""))?.iter().filter(|pod| all.contains(&namespace(pod))).count();
    place.restore()?;
    let back = Instant::now();
    let running = |ns: &String| place.running(ns).is_ok_and(|count| count == 1);
    place.wait("all sets run", Duration::from_secs(40), || all.iter().all(running))?;
    let took = back.elapsed();
    let calls = place.calls(from, "")?;
    let (mut by_time, mut by_set): (BTreeMap<i64, usize>, BTreeMap<&str, usize>) = Default::default();
    for call in calls.iter().filter(|call| call.is("create", "pods") && call.forbidden) {
        *by_time.entry(call.at.duration_since(begun).as_secs()).or_insert(0) += 1;
        *by_set.entry(&call.namespace).or_insert(0) += 1;
    }
    let errors = operator.errors()?;
    println!(
        "rights: all run {took:?} after they are back; refusals {by_set:?}, by second {by_time:?}; errors {errors}"
    );
    check(created == 0, || format!("{created} pods were created without the right to"))?;
    check(by_set.len() == SETS && by_set.values().all(|count| *count <= 5), || format!("refusals: {by_set:?}"))?;
    // R4: each set enters the state once.
    let lines = operator.lines("ERROR")?;
    let denied = lines.iter().filter(|line| line.contains("RbacDenied")).count();
    check((errors, lines.len(), denied) == (10.0, SETS, SETS), || format!("{errors} errors, lines {lines:#?}"))?;
    check(took <= Duration::from_secs(10), || format!("all run {took:?} after the rights are back"))
}

fn namespace(object: &Value) -> String {
    object.pointer("/metadata/namespace").and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// An error with these words unless it holds.
pub fn check(holds: bool, words: impl FnOnce() -> String) -> Result<(), Failed> {
    if holds { Ok(()) } else { Err(words().into()) }
}
