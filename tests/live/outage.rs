//! The API server is killed in the middle of work, and comes back with a cold watch cache: nothing is lost, nothing is
//! done twice, and nothing of it is an error of the operator.

use crate::Plane;
use crate::audit::Call;
use crate::incident::check;
use crate::operator::Operator;
use crate::place::{Place, Places, name, pods};
use crate::plane::certs::Fault;
use crate::role::Denied;
use crate::stories::Progress;
use cocoon_operator::scenario::live::Ground;
use jiff::{SignedDuration, Timestamp};
use libtest_mimic::{Failed, Trial};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

const SETS: usize = 30;
const AWAY: Duration = Duration::from_secs(20);
/// It is started anew for so long.
const RESTART: Duration = Duration::from_secs(60);
/// All sets run this long after it is back.
const RECOVERY: Duration = Duration::from_secs(180);
/// What was refused has been told.
const TOLD: SignedDuration = SignedDuration::from_secs(1);

/// The test of this file.
pub fn trials(places: &Places) -> Vec<Trial> {
    vec![places.trial("outage::the_api_server_is_killed", outage)]
}

/// So many stories are over when the API server is killed.
const MIDDLE: usize = 40;
/// They are not waited for any longer than this.
const LONGEST_WAIT: Duration = Duration::from_secs(300);

/// The API server of the stories is killed in the middle of them. They go on and end as they would have: see
/// `stories::in_the_end`. Without all stories there is no middle.
pub fn amid_stories(plane: &Plane, ground: &Ground, progress: &Progress) -> Trial {
    let (plane, ground, progress) = (Arc::clone(plane), ground.clone(), progress.clone());
    Trial::test("outage::the_api_server_of_the_stories_is_killed", move || {
        let begun = Instant::now();
        while progress.told() < MIDDLE && begun.elapsed() < LONGEST_WAIT {
            std::thread::sleep(Duration::from_millis(200));
        }
        let mut plane = plane.lock().map_err(|_| Failed::from("another test panicked"))?;
        let (told, under_way) = (progress.told(), progress.under_way());
        println!("outage: {told} stories are over and {under_way} are under way");
        check(told > 0 && under_way > 0, || "this is not the middle of the stories".to_owned())?;
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
    let mid = |pods: Vec<Value>| pods.len() >= SETS;
    place.wait("it is in the middle", Duration::from_secs(60), || place.list(&pods(ns)).is_ok_and(mid))?;
    let (before, running) = (uids(place, ns)?, place.running(ns)?);
    let killed = Timestamp::now();
    place.plane.kill("kube-apiserver");
    std::thread::sleep(AWAY);
    let back = Instant::now();
    let cold = restart(place)?;
    let ready = back.elapsed();
    all_run(place, ns)?;
    let took = back.elapsed();
    let after = uids(place, ns)?;
    let calls = place.calls(from, "")?;
    println!(
        "outage: {} pods and {running} sets before; ready {ready:?} after the start, all run {took:?} after it",
        before.len(),
    );
    no_error_but_cold(&operator, &calls, &cold)?;
    check(running < SETS, || "it was over before the API server was killed".to_owned())?;
    let lost: Vec<_> = before.iter().filter(|(pod, uid)| after.get(*pod) != Some(uid)).collect();
    check(lost.is_empty(), || format!("pods that are no more what they were: {lost:?}"))?;
    check(after.len() == 3 * SETS, || format!("{} pods", after.len()))?;
    nothing_twice(&calls, killed)
}

/// Starts the API server again, and whatever has ended itself meanwhile: a scheduler whose cache cannot be right does. Gives
/// the time in which it may not have read its roles yet: once it is ready, it has.
fn restart(place: &mut Place) -> Result<Denied, Fault> {
    let (begun, from) = (Instant::now(), Timestamp::now());
    place.plane.run("kube-apiserver")?;
    loop {
        place.plane.revive()?;
        // That is also over where another program ends.
        match place.plane.wait_ready() {
            Ok(()) => break,
            Err(_) if begun.elapsed() < RESTART => std::thread::sleep(Duration::from_secs(1)),
            Err(error) => return Err(error),
        }
    }
    let cold = Denied::everything(from, Timestamp::now());
    place.denied.push(cold.clone());
    Ok(cold)
}

/// Waits until all sets run, and starts again what ends itself.
fn all_run(place: &mut Place, namespace: &str) -> Result<(), Failed> {
    let begun = Instant::now();
    loop {
        place.plane.revive()?;
        match place.all_run(namespace, SETS, Duration::from_secs(2)) {
            Err(error) if begun.elapsed() >= RECOVERY => return Err(error),
            Err(_) => {}
            Ok(_) => return Ok(()),
        }
    }
}

/// No error but that rights were missing, from an API server that had only just started (R4), and of these no more than
/// it has refused.
fn no_error_but_cold(operator: &Operator, calls: &[Call], cold: &Denied) -> Result<(), Failed> {
    let refused = calls.iter().filter(|call| call.forbidden && cold.means(call)).count();
    let is_cold = |line: &String| {
        let at = line.split_whitespace().next().and_then(|at| at.parse::<Timestamp>().ok());
        let begun = at.and_then(|at| at.checked_sub(TOLD).ok());
        line.contains("RbacDenied") && (at.is_some_and(|at| cold.covers(at)) || begun.is_some_and(|at| cold.covers(at)))
    };
    let (excused, others): (Vec<String>, Vec<String>) = operator.lines("ERROR")?.into_iter().partition(is_cold);
    let errors = operator.errors()?;
    println!("outage: {refused} requests met an API server that had not read its roles; {errors} errors of that");
    check(others.is_empty(), || format!("{others:#?}"))?;
    let most = u32::try_from(refused.min(excused.len())).unwrap_or(u32::MAX);
    check(errors <= most.into(), || format!("{errors} errors after {refused} refusals: {excused:#?}"))
}

/// No pod is created twice, and none is deleted. What came before and after is in the same log.
fn nothing_twice(calls: &[Call], killed: Timestamp) -> Result<(), Failed> {
    let creates = calls.iter().filter(|call| call.is("create", "pods") && call.went_well());
    let (mut made, mut later): (BTreeMap<&str, usize>, usize) = Default::default();
    for call in creates {
        *made.entry(&call.name).or_insert(0) += 1;
        later += usize::from(call.at > killed);
    }
    let deletes: Vec<String> = calls.iter().filter(|call| call.is("delete", "pods")).map(Call::line).collect();
    let refused = calls.iter().filter(|call| call.is_write() && call.code >= 400).count();
    println!("outage: {} pods created, {later} of them after it; {refused} writes refused", made.len());
    check(made.values().all(|count| *count == 1), || format!("created more than once: {made:?}"))?;
    // Pods whose creation was under way when it was killed are not in its log.
    check(made.len() > SETS && made.len() <= 3 * SETS, || format!("created: {made:?}"))?;
    check(deletes.is_empty(), || format!("deleted: {deletes:#?}"))
}

fn uids(place: &Place, namespace: &str) -> Result<BTreeMap<String, String>, Failed> {
    let uid = |pod: &Value| pod.pointer("/metadata/uid").and_then(Value::as_str).unwrap_or_default().to_owned();
    Ok(place.list(&pods(namespace))?.iter().map(|pod| (name(pod), uid(pod))).collect())
}
