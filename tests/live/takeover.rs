//! Taking over from the Go operator: its sets, as it leaves them on a real API server, are adopted without a pod being
//! deleted or made anew, and after the first pass there is nothing to write.

use crate::audit::Call;
use crate::incident::{check, no_error};
use crate::place::{Place, Places, name, pods, root, sets};
use cocoon_operator::core::wire::{JSON, MERGE_PATCH, Method, Request};
use cocoon_operator::scenario::realm::Realm;
use cocoon_operator::sim::node::NodeSpec;
use libtest_mimic::{Failed, Trial};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

const NS: &str = "takeover";
/// Where the pods run; its agent does nothing more, so that everything stays as it is written.
const NODE: &str = "node-old";
const FILES: [&str; 6] = ["running", "scaled", "failed", "dead-lettered", "deleting", "later"];
/// What the sets are in afterwards.
const PHASES: [(&str, &str); 8] = [
    ("full", "Running"),
    ("scaled", "Running"),
    ("failed", "Failed"),
    ("dead", "Scaling"),
    ("asleep", "Suspended"),
    ("released", "Suspended"),
    ("waking", "Waking"),
    ("moving", "Migrating"),
];
/// Left alone: nothing of them may be written but what people are told.
const LATER: [&str; 4] = ["asleep", "released", "waking", "moving"];
/// Being deleted: the one has no pods any more, those of the other terminate.
const LEAVING: [&str; 2] = ["gone", "going"];
/// For what is known by the end of a pass.
const TELLS_PASSES: &str = "--log-level=debug";
/// Pods in the files.
const PODS: usize = 18;
/// Nothing is written for this long.
const QUIET: Duration = Duration::from_secs(30);

/// The test of this file.
pub fn trials(places: &Places) -> Vec<Trial> {
    vec![places.trial("takeover::from_the_go_operator", take_over)]
}

fn take_over(place: &mut Place) -> Result<(), Failed> {
    let mut node = NodeSpec::named(NODE);
    node.taints.push(("example.test/old".to_owned(), String::new(), "NoSchedule".to_owned()));
    place.node(node);
    place.house.agent_down(NODE);
    place.namespace(NS)?;
    for file in FILES {
        put(place, &std::fs::read_to_string(root(&format!("tests/live/takeover/{file}.yaml")))?)?;
    }
    let shown = dry_run(place)?;
    adopt(place, &shown)
}

/// All sets.
fn all() -> Vec<&'static str> {
    PHASES.iter().map(|(set, _)| *set).chain(LEAVING).collect()
}

/// What it would write to, beforehand: these sets.
fn dry_run(place: &mut Place) -> Result<BTreeSet<String>, Failed> {
    let from = place.now();
    let mut operator = place.operator(&["--dry-run", TELLS_PASSES])?;
    let took = operator.settles(NS, &all())?;
    let calls = place.calls(from, "")?;
    let writes: Vec<String> = calls.iter().filter(|call| call.is_write()).map(Call::line).collect();
    let said = operator.said()?;
    let shown = said.lines().filter(|line| line.contains("(not sent: dry run)"));
    let name = |line: &str| Some(line.split_once(" name=\"")?.1.split_once('"')?.0.to_owned());
    let shown: BTreeSet<String> = shown.filter_map(name).collect();
    println!("takeover: a dry run is at rest after {took:?}, and would write to {shown:?}");
    no_error(&operator)?;
    check(!calls.is_empty(), || "a dry run asked for nothing".to_owned())?;
    check(writes.is_empty(), || format!("a dry run wrote: {writes:#?}"))?;
    Ok(shown)
}

fn adopt(place: &mut Place, shown: &BTreeSet<String>) -> Result<(), Failed> {
    let before = uids(place)?;
    let from = place.now();
    let mut operator = place.operator(&[TELLS_PASSES])?;
    let took = operator.settles(NS, &all())?;
    let first = writes(place, from)?;
    let quiet = place.now();
    std::thread::sleep(QUIET);
    let later = writes(place, quiet)?;
    let after = uids(place)?;
    let mut kinds: BTreeMap<(&str, &str, u64), usize> = BTreeMap::new();
    first.iter().for_each(|call| *kinds.entry((&call.verb, &call.resource, call.code)).or_insert(0) += 1);
    println!(
        "takeover: {} pods; first passes, {took:?}: {kinds:?}; {} writes in the {QUIET:?} after",
        before.len(),
        later.len()
    );
    check(before.len() == PODS, || format!("pods before: {before:?}"))?;
    let is_going = |pod: &str| pod.starts_with("going-");
    let lost: Vec<_> = before.iter().filter(|(pod, uid)| !is_going(pod) && after.get(*pod) != Some(uid)).collect();
    check(lost.is_empty(), || format!("pods that are no more what they were: {lost:?}"))?;
    let lines = |calls: &[&Call]| calls.iter().map(|call| call.line()).collect::<Vec<_>>();
    let creates: Vec<&Call> = first.iter().filter(|call| call.is("create", "pods")).collect();
    check(creates.is_empty(), || format!("created: {:#?}", lines(&creates)))?;
    let deletes = first.iter().filter(|call| call.is("delete", "pods") && !is_going(&call.name));
    let deletes: Vec<&Call> = deletes.collect();
    check(deletes.is_empty(), || format!("deleted: {:#?}", lines(&deletes)))?;
    let of_later = |call: &&Call| LATER.iter().any(|set| call.name == format!("{set}-0") || call.name == *set);
    let touched: Vec<&Call> =
        first.iter().filter(of_later).filter(|call| call.resource != "cocoonsets/status").collect();
    check(touched.is_empty(), || format!("not left alone: {:#?}", lines(&touched)))?;
    check(later.is_empty(), || {
        format!("written after the first passes: {:#?}", lines(&later.iter().collect::<Vec<_>>()))
    })?;
    as_shown(&first, shown)?;
    phases(place)?;
    gone(place)?;
    no_error(&operator)
}

/// What was written to is what the dry run had shown.
fn as_shown(first: &[Call], shown: &BTreeSet<String>) -> Result<(), Failed> {
    let all = all();
    let set_of = |call: &Call| {
        let of = |set: &&&str| call.name == **set || call.name.starts_with(&format!("{set}-"));
        all.iter().find(of).map(|set| (*set).to_owned())
    };
    let written: BTreeSet<String> = first.iter().filter_map(set_of).collect();
    check(written.contains("gone"), || format!("written to: {written:?}"))?;
    check(written == *shown, || format!("a dry run showed {shown:?}, and {written:?} were written to"))
}

/// Every set is what it was.
fn phases(place: &Place) -> Result<(), Failed> {
    let all = place.list(&sets(NS))?;
    for (set, phase) in PHASES {
        let found = all.iter().find(|one| name(one) == set).ok_or_else(|| format!("{set} is gone"))?;
        check(found["status"]["phase"] == phase, || format!("{set} is {}, and was {phase}", found["status"]))?;
    }
    Ok(())
}

/// Deletions that were begun come to their end: the one at once, the other when its pods are gone.
fn gone(place: &Place) -> Result<(), Failed> {
    let code = |set: &str| place.code(&format!("{}/{set}", sets(NS)));
    check(code("gone") == 404, || "the set without pods is still there".to_owned())?;
    check(code("going") == 200, || "a set is gone before its pods".to_owned())?;
    for pod in ["going-0", "going-1"] {
        let at_once = json!({"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0});
        place.must(&Request::new(Method::Delete, format!("{}/{pod}", pods(NS))).with_body(JSON, at_once))?;
    }
    let took = place.wait("the set goes after its pods", Duration::from_secs(30), || code("going") == 404)?;
    let tags = place.house.with(Realm::tags).ok_or("nodes and registry are no more")?;
    println!("takeover: the teardown ends {took:?} after the last pod; tags {tags:?}");
    // Policy main-only keeps what a deleted main agent left.
    let kept = format!("vk-{NS}-gone-0:latest");
    check(tags.contains(&kept), || format!("{kept} is gone"))?;
    check(tags.iter().filter(|tag| tag.contains("-gone-")).count() == 1, || format!("tags are left: {tags:?}"))
}

fn writes(place: &Place, from: u64) -> Result<Vec<Call>, Failed> {
    Ok(place.calls(from, NS)?.into_iter().filter(Call::is_write).collect())
}

fn uids(place: &Place) -> Result<BTreeMap<String, String>, Failed> {
    Ok(place.list(&pods(NS))?.iter().map(|pod| (name(pod), pod["metadata"]["uid"].to_string())).collect())
}

/// Puts a file's objects on the server as they stand there, status and deletion included.
fn put(place: &Place, text: &str) -> Result<(), Failed> {
    let mut owner = Value::Null;
    let mut leaving = Vec::new();
    for part in text.split("\n---\n") {
        let mut object: Value = serde_saphyr::from_str(part).map_err(|error| error.to_string())?;
        let status = object.as_object_mut().and_then(|fields| fields.remove("status"));
        let path = match object["kind"].as_str() {
            Some("Tags") => {
                let tags = object["tags"].as_array().into_iter().flatten().filter_map(Value::as_str);
                let tags = tags.filter_map(|tag| tag.split_once(':'));
                place.house.snapshots(|registry| tags.for_each(|(vm, tag)| drop(registry.push(vm, tag, None))));
                continue;
            }
            Some("CocoonSet") => sets(NS),
            _ => pods(NS),
        };
        if let Some(owners) = object["metadata"].get_mut("ownerReferences") {
            owners[0]["uid"] = owner.clone();
        }
        let one = format!("{path}/{}", name(&object));
        if object["metadata"].get("deletionTimestamp").is_some() {
            leaving.push(one.clone());
        }
        let generation = object["metadata"]["generation"].as_i64().unwrap_or(1);
        let made = place.must(&Request::new(Method::Post, path).with_body(JSON, object.clone()))?;
        if object["kind"] == "CocoonSet" {
            owner = made["metadata"]["uid"].clone();
        }
        // The generation counts edits, here one that is taken back.
        for edit in 1..generation {
            let suspend = if edit % 2 == 1 { json!(true) } else { Value::Null };
            let patch = json!({"spec": {"suspend": suspend}});
            place.must(&Request::new(Method::Patch, one.clone()).with_body(MERGE_PATCH, patch))?;
        }
        if let Some(status) = status {
            let status = Request::new(Method::Patch, format!("{one}/status"))
                .with_body(MERGE_PATCH, json!({ "status": status }));
            place.must(&status)?;
        }
    }
    for one in leaving {
        place.must(&Request::new(Method::Delete, one))?;
    }
    Ok(())
}
