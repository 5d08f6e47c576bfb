//! The API server is killed in the middle of work, and comes back with a cold watch cache: nothing is lost, nothing is
//! done twice, and nothing of it is an error of the operator.

use crate::Plane;
use crate::incident::{check, no_error};
use crate::place::{Place, Places, name, pods};
use crate::stories::Progress;
use cocoon_operator::scenario::live::Ground;
use libtest_mimic::{Failed, Trial};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

const SETS: usize = 30;
const AWAY: Duration = Duration::from_secs(20);

/// The test of this file.
pub fn trials(places: &Places) -> Vec<Trial> {
    let places = places.clone();
    vec![Trial::test("outage::the_api_server_is_killed", move || places.with(outage))]
}

/// So many stories are over when the API server is killed.
const MIDDLE: usize = 100;
/// Where it is not the whole suite that is run there are fewer, and they are not waited for any longer than this.
const LONGEST_WAIT: Duration = Duration::from_secs(300);

/// The API server of the stories is killed in the middle of them. They go on and end as they would have: see
/// `stories::in_the_end`.
pub fn amid_stories(plane: &Plane, ground: &Ground, progress: &Progress) -> Trial {
    let (plane, ground, progress) = (Arc::clone(plane), ground.clone(), progress.clone());
    Trial::test("outage::the_api_server_of_the_stories_is_killed", move || {
        let begun = Instant::now();
        while progress.told() < MIDDLE && begun.elapsed() < LONGEST_WAIT {
            std::thread::sleep(Duration::from_millis(200));
        }
        let mut plane = plane.lock().map_err(|_| Failed::from("another test panicked"))?;
        println!("outage: {} stories are over and {} are under way", progress.told(), progress.under_way());
        ground.outage.begin();
        // Its machine goes down with all that runs there. A controller manager that lives through it pauses before it looks
        // again, and takes nodes for lost meanwhile, at random: `outage` below has that.
        const MACHINE: [&str; 3] = ["kube-apiserver", "kube-controller-manager", "kube-scheduler"];
        MACHINE.iter().for_each(|program| plane.kill(program));
        std::thread::sleep(AWAY);
        let back = Instant::now();
        let ready = plane.run("kube-apiserver").and_then(|()| plane.wait_ready());
        let rest = MACHINE.iter().skip(1).try_for_each(|program| plane.run(program));
        ground.outage.end();
        rest?;
        println!("outage: it is ready {:?} after its start", back.elapsed());
        ready?;
        while ground.outage.is_felt() {
            plane.revive()?;
            std::thread::sleep(Duration::from_secs(1));
        }
        Ok(())
    })
}

fn outage(place: &mut Place) -> Result<(), Failed> {
    let ns = "outage";
    place.nodes_take(Duration::from_millis(300), Duration::from_millis(300));
    let operator = place.operator(&[])?;
    place.namespace(ns)?;
    let from = place.now();
    place.create_sets(ns, "set", SETS, 2)?;
    let mid = |count: usize| count >= SETS;
    place.wait("it is in the middle", Duration::from_secs(60), || mid(place.list(&pods(ns)).len()))?;
    let (before, running) = (uids(place, ns), place.running(ns));
    place.plane.kill("kube-apiserver");
    std::thread::sleep(AWAY);
    let back = Instant::now();
    place.plane.run("kube-apiserver")?;
    place.plane.wait_ready()?;
    let ready = back.elapsed();
    let up = place.all_run(ns, SETS, Duration::from_secs(120));
    let took = back.elapsed();
    let after = uids(place, ns);
    let calls = place.calls(from, ns)?;
    let mut made: BTreeMap<&str, usize> = BTreeMap::new();
    let creates = calls.iter().filter(|call| call.is("create", "pods") && call.went_well());
    creates.for_each(|call| *made.entry(&call.name).or_insert(0) += 1);
    let deletes: Vec<String> = calls.iter().filter(|call| call.is("delete", "pods")).map(|call| call.line()).collect();
    let refused = calls.iter().filter(|call| call.is_write() && call.code >= 400).count();
    println!(
        "outage: {} pods and {running} sets before; ready {ready:?} after the start, all run {took:?} after it; \
         {} creates, {} deletes, {refused} writes refused",
        before.len(),
        made.len(),
        deletes.len()
    );
    let whole = no_error(&operator);
    drop(operator);
    place.wipe(ns);
    up?;
    whole?;
    check(running < SETS, || "it was over before the API server was killed".to_owned())?;
    let lost: Vec<_> = before.iter().filter(|(pod, uid)| after.get(*pod) != Some(uid)).collect();
    check(lost.is_empty(), || format!("pods that are no more what they were: {lost:?}"))?;
    check(after.len() == 3 * SETS, || format!("{} pods", after.len()))?;
    check(made.values().all(|count| *count == 1), || format!("created more than once: {made:?}"))?;
    check(deletes.is_empty(), || format!("deleted: {deletes:#?}"))
}

fn uids(place: &Place, namespace: &str) -> BTreeMap<String, String> {
    let uid = |pod: &Value| pod.pointer("/metadata/uid").and_then(Value::as_str).unwrap_or_default().to_owned();
    place.list(&pods(namespace)).iter().map(|pod| (name(pod), uid(pod))).collect()
}
