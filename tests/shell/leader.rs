//! Two operators on one cluster, in virtual time: whoever leads is the only one that sends, until its term is over.

use crate::cluster::{Cluster, registry, until};
use cocoon_operator::core::cocoonset::observed::Lease;
use cocoon_operator::shell::clock::Clock;
use cocoon_operator::shell::options::{ElectionSettings, Settings};
use cocoon_operator::shell::registry::{Local, Registry};
use cocoon_operator::shell::{Exit, Shell, Stopper, run, shutdown};
use cocoon_operator::sim::world::OPERATOR;
use http::Request;
use kube::client::Body;
use serde_json::json;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

/// One request on its way: sent and, once it was given up or answered, over.
#[derive(Clone, Debug)]
struct Sent {
    who: &'static str,
    line: String,
    at: Instant,
    over: Option<Instant>,
    answered: bool,
}

type Log = Arc<Mutex<Vec<Sent>>>;

/// Notes when a request is no longer waited for, however that comes.
struct Waits(Log, usize);

impl Drop for Waits {
    fn drop(&mut self) {
        self.0.lock().expect("sound")[self.1].over = Some(Instant::now());
    }
}

struct Replica {
    shell: Arc<Shell>,
    stopper: Stopper,
    task: JoinHandle<Exit>,
    /// Nobody answers what it asks the API server; its open watches go on.
    cut_off: Arc<AtomicBool>,
}

fn is_write(line: &str) -> bool {
    !line.starts_with("GET ") && !line.contains("/leases")
}

impl Replica {
    fn start(cluster: &Cluster, who: &'static str, log: &Log) -> Self {
        let cut_off = Arc::new(AtomicBool::new(false));
        let (served, cut, wire) = (cluster.served.clone(), Arc::clone(&cut_off), Arc::clone(log));
        let service = tower::service_fn(move |request: Request<Body>| {
            let (served, cut, log) = (served.clone(), Arc::clone(&cut), Arc::clone(&wire));
            let line = format!("{} {}", request.method(), request.uri());
            let note = {
                let mut sent = log.lock().expect("sound");
                sent.push(Sent { who, line, at: Instant::now(), over: None, answered: false });
                sent.len() - 1
            };
            async move {
                let _waits = Waits(Arc::clone(&log), note);
                if cut.load(Ordering::Relaxed) {
                    std::future::pending::<()>().await;
                }
                let response = served.handle(OPERATOR, request).await;
                log.lock().expect("sound")[note].answered = true;
                response
            }
        });
        let tags: Local = {
            let (inner, log) = (registry(cluster), Arc::clone(log));
            Arc::new(move |verb, vm, tag, digest| {
                let line = format!("{} {vm}:{tag}", verb.label());
                let at = Instant::now();
                log.lock().expect("sound").push(Sent { who, line, at, over: Some(at), answered: true });
                inner(verb, vm, tag, digest)
            })
        };
        let clock = Clock::starting_at(cluster.served.now(), 7);
        let registry = Registry::local(tags, clock.clone());
        let settings = Settings { election: Some(ElectionSettings::usual("ops", who)), ..Settings::default() };
        let shell = Arc::new(Shell::new(kube::Client::new(service, "default"), registry, settings, clock));
        let (stopper, wanted) = shutdown();
        let running = Arc::clone(&shell);
        let task = tokio::spawn(async move { run(running, wanted).await.expect("no port is asked for") });
        Self { shell, stopper, task, cut_off }
    }

    fn leads(&self) -> bool {
        matches!(self.shell.leader.lease(), Lease::Held(_))
    }
    #[track_caller]
    fn shows(&self, status: u8) {
        shows(&self.shell, status);
    }
}

#[track_caller]
fn shows(shell: &Shell, status: u8) {
    let name = "cocoon-operator.cocoonset.cocoonstack.io";
    let line = format!("leader_election_master_status{{name=\"{name}\"}} {status}");
    let text = shell.metrics.text();
    assert!(text.contains(&line), "no {line} in\n{text}");
}

fn cluster() -> Cluster {
    let cluster = Cluster::new();
    cluster.served.with(|world| world.store.add_namespace("ops"));
    cluster
}

fn set(replicas: u32) -> serde_json::Value {
    json!({"agent": {"image": "img:1", "mode": "clone", "replicas": replicas}})
}

fn of(log: &Log, who: &str) -> Vec<Sent> {
    log.lock().expect("sound").iter().filter(|sent| sent.who == who).cloned().collect()
}

/// One that leads, another that follows, and a set of this many sub-agents that runs.
async fn leader_and_follower(cluster: &Cluster, log: &Log, sub_agents: u32) -> (Replica, Replica) {
    let one = Replica::start(cluster, "one", log);
    until("one leads", || one.leads()).await;
    let two = Replica::start(cluster, "two", log);
    cluster.create_set("demo", set(sub_agents));
    until("Running", || cluster.phase("demo") == "Running").await;
    (one, two)
}

/// R11, counted: the leader reaches the registry but not the API server, while there is work for it all the time.
#[tokio::test(start_paused = true)]
async fn a_leader_that_is_cut_off_sends_nothing_after_its_term() {
    let (cluster, log) = (cluster(), Log::default());
    let (one, two) = leader_and_follower(&cluster, &log, 1).await;
    assert_eq!(two.shell.unready(), [""; 0], "a follower is ready");
    assert!(of(&log, "two").iter().all(|sent| sent.line.starts_with("GET ")), "and writes nothing");
    one.shows(1);
    two.shows(0);

    one.cut_off.store(true, Ordering::Relaxed);
    let mut replicas = 2;
    while two.task.is_finished() || !two.leads() {
        cluster.patch_set("demo", json!({"spec": {"agent": {"replicas": replicas}}}));
        replicas = 2 + (replicas + 1) % 3;
        sleep(Duration::from_millis(700)).await;
    }
    let taken = Instant::now();
    let exit = one.task.await.expect("ends");
    assert_eq!((exit, exit.code()), (Exit::LeaseLost, 1));
    until("two works", || of(&log, "two").iter().any(|sent| is_write(&sent.line))).await;
    sleep(Duration::from_secs(60)).await;

    let renewed = of(&log, "one").into_iter().filter(|sent| sent.line.starts_with("PUT ") && sent.answered);
    let end = renewed.map(|sent| sent.at).max().expect("it renewed") + Duration::from_secs(10);
    let late: Vec<Sent> = of(&log, "one").into_iter().filter(|sent| sent.at >= end).collect();
    assert!(late.is_empty(), "sent after the term: {late:#?}");
    let tried = of(&log, "one").iter().filter(|sent| is_write(&sent.line) && !sent.answered).count();
    assert!(tried > 0, "it did try to write while it was cut off");
    let lasting: Vec<Sent> = of(&log, "one")
        .into_iter()
        .filter(|sent| sent.over.is_none_or(|over| over > end))
        .filter(|s| is_write(&s.line))
        .collect();
    assert!(lasting.is_empty(), "waited for beyond the term: {lasting:#?}");
    let first = of(&log, "two").into_iter().find(|sent| is_write(&sent.line)).expect("two works");
    assert!(first.at >= end + Duration::from_secs(3), "{:?} after the term", first.at.duration_since(end));
    assert!(taken.duration_since(end) <= Duration::from_secs(6), "{:?}", taken.duration_since(end));
    two.shows(1);
}

/// Asked to stop, it finishes what is under way, gives the lease back, and the other has it within a retry period.
#[tokio::test(start_paused = true)]
async fn a_leader_that_stops_gives_the_lease_back() {
    let (cluster, log) = (cluster(), Log::default());
    let (one, two) = leader_and_follower(&cluster, &log, 2).await;
    let asked = Instant::now();
    one.stopper.stop();
    assert_eq!(one.task.await.expect("ends"), Exit::Stopped);
    shows(&one.shell, 0);
    until("two leads", || two.leads()).await;
    assert!(asked.elapsed() <= Duration::from_millis(2_250), "{:?}", asked.elapsed());
    cluster.patch_set("demo", json!({"spec": {"agent": {"replicas": 0}}}));
    until("two works", || cluster.pods() == ["demo-0"]).await;
    let last = of(&log, "one").into_iter().next_back().expect("one sent something");
    assert!(last.line.starts_with("PUT ") && last.line.contains("/leases/"), "{last:?}");
}

/// A follower that is asked to stop has nothing to give back, and one that never sees the cluster wants no lease.
#[tokio::test(start_paused = true)]
async fn a_follower_stops_at_once() {
    let (cluster, log) = (cluster(), Log::default());
    let one = Replica::start(&cluster, "one", &log);
    until("one leads", || one.leads()).await;
    let two = Replica::start(&cluster, "two", &log);
    let three = Replica::start(&cluster, "three", &log);
    three.cut_off.store(true, Ordering::Relaxed);
    sleep(Duration::from_secs(30)).await;
    let asked = Instant::now();
    for replica in [two, three] {
        replica.stopper.stop();
        assert_eq!(replica.task.await.expect("ends"), Exit::Stopped);
    }
    assert!(asked.elapsed() < Duration::from_secs(1), "{:?}", asked.elapsed());
    assert!(of(&log, "three").iter().all(|sent| !sent.line.contains("/leases")));
    assert!(one.leads());
}
