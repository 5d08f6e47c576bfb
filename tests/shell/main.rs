//! The shell over the real client and a real store, in process, on a paused clock: no port, no waiting.

mod cluster;
mod leader;
mod sockets;

use cluster::{Cluster, Meddled, http_reply, registry, sets, until};
use cocoon_operator::core::wire::{Method, Reply, Verb};
use cocoon_operator::shell::Exit;
use cocoon_operator::shell::registry::Local;
use cocoon_operator::sim::faults::{Fault, Pattern, What};
use cocoon_operator::sim::store::{Match, Refusal, Rule};
use cocoon_operator::sim::world::OPERATOR;
use rstest::rstest;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::time::sleep;

fn spec(replicas: u32) -> Value {
    json!({"agent": {"image": "img:1", "mode": "clone", "replicas": replicas}})
}

fn conflict() -> Reply {
    Reply::json(
        409,
        &json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Conflict", "code": 409,
            "message": "the object has been modified"}),
    )
}

/// A set comes up, and then nothing is written any more.
#[tokio::test(start_paused = true)]
async fn a_set_comes_up_and_the_operator_falls_silent() {
    let cluster = Cluster::new();
    let operator = cluster.operator(registry(&cluster));
    cluster.create_set("demo", spec(2));
    until("Running", || cluster.phase("demo") == "Running").await;
    assert_eq!(cluster.pods(), ["demo-0", "demo-1", "demo-2"]);
    assert_eq!((cluster.sent("POST "), operator.errors()), (3, 0));
    sleep(Duration::from_secs(5)).await;
    let writes = cluster.sent("PATCH ");
    sleep(Duration::from_secs(600)).await;
    assert_eq!(cluster.sent("PATCH "), writes, "{:#?}", cluster.requests());
    operator.shows("cocoon_operator_outcomes_total{kind=\"pods\",outcome=\"Done\",verb=\"create\"} 3");
    operator.shows("workqueue_depth{controller=\"cocoonset\",name=\"cocoonset\"} 0");
}

/// Incident A: somebody writes between our look and our write.
#[tokio::test(start_paused = true)]
async fn a_conflict_of_every_write_is_no_error() {
    let (log, _guard) = log_of_errors();
    let cluster = Cluster::new();
    let mut met = std::collections::BTreeSet::new();
    cluster.meddle(move |request| {
        (request.method == Method::Patch && met.insert(request.path.clone())).then(|| Meddled::Answer(conflict()))
    });
    let operator = cluster.operator(registry(&cluster));
    cluster.create_set("demo", spec(1));
    until("Running", || cluster.phase("demo") == "Running").await;
    assert_eq!((operator.errors(), lines(&log)), (0, 0));
    let conflicts = "cocoon_operator_outcomes_total{kind=\"cocoonsets\",outcome=\"Conflict\",verb=\"patch\"} 2";
    operator.shows(conflicts);
}

/// Incident B: the namespace goes, its pods first.
#[tokio::test(start_paused = true)]
async fn a_namespace_that_goes_is_no_error() {
    let (log, _guard) = log_of_errors();
    let cluster = Cluster::new();
    let operator = cluster.operator(registry(&cluster));
    for name in ["a", "b", "c"] {
        cluster.create_set(name, spec(2));
    }
    until("all run", || ["a", "b", "c"].iter().all(|name| cluster.phase(name) == "Running")).await;
    let creates = cluster.sent("POST ");
    cluster.delete("/api/v1/namespaces/ns");
    until("the namespace is gone", || !cluster.has_namespace()).await;
    assert_eq!((operator.errors(), lines(&log)), (0, 0));
    assert_eq!(cluster.sent("POST "), creates, "seen terminating, nothing is tried");
    assert!(cluster.pods().is_empty());
    sleep(Duration::from_secs(60)).await;
    assert!(operator.shell.state.keys().is_empty());
}

/// The same where namespaces may not be watched: one refused wave per set.
#[tokio::test(start_paused = true)]
async fn a_namespace_that_goes_unseen_is_no_error() {
    let (log, _guard) = log_of_errors();
    let cluster = Cluster::new();
    let all = |verbs: &[&str]| verbs.iter().map(|verb| (*verb).to_owned()).collect();
    let namespaces = Match { verbs: all(&["list", "watch"]), resource: Some("namespaces".into()), ..Match::default() };
    let namespaces = Match { user: Some(OPERATOR.into()), ..namespaces };
    cluster.served.with(|world| world.store.add_rule(Rule::new(namespaces, Refusal::Rbac)));
    let operator = cluster.operator(registry(&cluster));
    cluster.create_set("demo", spec(2));
    until("Running", || cluster.phase("demo") == "Running").await;
    assert_eq!(operator.shell.unready(), [""; 0], "ready without namespaces");
    let creates = cluster.sent("POST ");
    cluster.delete("/api/v1/namespaces/ns");
    until("the namespace is gone", || !cluster.has_namespace()).await;
    let tried = cluster.sent("POST ") - creates;
    assert!(tried <= 3, "{tried} creates were tried");
    assert_eq!((operator.errors(), lines(&log)), (0, 0));
}

/// A panic in one object's pass is that object's error, once, and nobody else's.
#[tokio::test(start_paused = true)]
async fn a_panic_stays_with_its_object() {
    let cluster = Cluster::new();
    let probes: Local = Arc::new(|_, vm, _, _| {
        assert!(!vm.contains("-bad-"), "as if a pass had a bug");
        Box::pin(async { http_reply(404) })
    });
    let operator = cluster.operator(probes);
    cluster.create_set("bad", spec(0));
    cluster.create_set("good", spec(0));
    until("the good one runs", || cluster.phase("good") == "Running").await;
    sleep(Duration::from_secs(600)).await;
    assert_eq!(operator.errors(), 1);
    assert!(cluster.phase("bad") != "Running");
    let text = operator.shell.metrics.text();
    let line = text.lines().find(|line| line.starts_with("controller_runtime_reconcile_panics_total")).unwrap_or("");
    let panics: u32 = line.rsplit(' ').next().and_then(|count| count.parse().ok()).unwrap_or(0);
    assert!((5..=15).contains(&panics), "{line}: ten minutes of backoff");
    operator.shows("controller_runtime_active_workers{controller=\"cocoonset\"} 0");
}

/// Who is throttled asks no sooner than told, and then goes on.
#[tokio::test(start_paused = true)]
async fn a_429_is_honoured() {
    let cluster = Cluster::new();
    let begun = tokio::time::Instant::now();
    let refused = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&refused);
    cluster.meddle(move |request| {
        let early = request.method == Method::Post && begun.elapsed() < Duration::from_secs(20);
        early.then(|| {
            count.fetch_add(1, Ordering::Relaxed);
            let left = Duration::from_secs(20) - begun.elapsed();
            let body = b"Too many requests, please try again later.\n".to_vec();
            let retry_after = Some(Duration::from_secs(left.as_secs() + 1));
            Meddled::Answer(Reply::Http { status: 429, retry_after, body, digest: None })
        })
    });
    let operator = cluster.operator(registry(&cluster));
    for name in ["a", "b", "c", "d"] {
        cluster.create_set(name, spec(0));
    }
    until("all run", || ["a", "b", "c", "d"].iter().all(|name| cluster.phase(name) == "Running")).await;
    let refused = refused.load(Ordering::Relaxed);
    assert!((1..=4).contains(&refused), "{refused} creates were sent into a closed flow");
    assert_eq!((operator.errors(), operator.shell.api.width() < 64), (0, true));
}

/// Ready once everything is listed; unready when a watch goes silent; ready again when it speaks.
#[tokio::test(start_paused = true)]
async fn readiness_follows_the_watches() {
    let cluster = Cluster::new();
    let listed = Arc::new(AtomicBool::new(false));
    let may = Arc::clone(&listed);
    cluster.meddle(move |request| {
        let list = request.path == "/api/v1/pods" && !may.load(Ordering::Relaxed);
        list.then(|| Meddled::Answer(http_reply(503)))
    });
    let operator = cluster.operator(registry(&cluster));
    sleep(Duration::from_secs(10)).await;
    assert_eq!(operator.shell.unready(), ["pods were not listed yet"]);
    listed.store(true, Ordering::Relaxed);
    until("ready", || operator.shell.unready().is_empty()).await;
    sleep(Duration::from_secs(1_000)).await;
    assert!(operator.shell.unready().is_empty(), "a quiet cluster is no silent one");
    cluster.meddle(|request| (request.path == "/api/v1/pods").then_some(Meddled::Hang));
    until("unready", || !operator.shell.unready().is_empty()).await;
    assert!(operator.shell.unready()[0].starts_with("the watch of pods was silent for"));
    cluster.stop_meddling();
    until("ready again", || operator.shell.unready().is_empty()).await;
}

/// A server that was restored to an earlier state knows none of the versions that are watched: it is listed anew.
#[tokio::test(start_paused = true)]
async fn a_server_that_starts_over_is_listed_anew() {
    let cluster = Cluster::new();
    let operator = cluster.operator(registry(&cluster));
    for name in ["a", "b", "c"] {
        cluster.create_set(name, spec(1));
    }
    until("all run", || ["a", "b", "c"].iter().all(|name| cluster.phase(name) == "Running")).await;
    cluster.served.with(|world| {
        let mut fresh = cocoon_operator::sim::world::World::new(world.now());
        fresh.store.add_namespace("ns");
        fresh.add_node(cocoon_operator::sim::node::NodeSpec::named("node-a"));
        *world = fresh;
    });
    cluster.create_set("demo", spec(0));
    until("Running on the new server", || cluster.phase("demo") == "Running").await;
    assert_eq!(operator.errors(), 0);
}

/// A watch that is too old lists again, and sees what it missed.
#[tokio::test(start_paused = true)]
async fn a_watch_that_is_too_old_starts_over() {
    let cluster = Cluster::new();
    let operator = cluster.operator(registry(&cluster));
    until("ready", || operator.shell.unready().is_empty()).await;
    let expired = json!({"type": "ERROR", "object": {"kind": "Status", "apiVersion": "v1", "status": "Failure",
        "reason": "Expired", "code": 410, "message": "too old resource version"}});
    let watches = |request: &cocoon_operator::core::wire::Request| {
        request.path.ends_with("/cocoonsets") && request.query.iter().any(|(key, _)| key == "watch")
    };
    let line = expired.to_string();
    cluster.meddle(move |request| watches(request).then(|| Meddled::Line(line.clone())));
    sleep(Duration::from_secs(70)).await;
    let lists = cluster.sent("/cocoonsets?limit=500");
    assert!((2..40).contains(&lists), "{lists} lists in a minute");
    cluster.create_set("demo", spec(0));
    until("Running, by lists alone", || cluster.phase("demo") == "Running").await;
    cluster.stop_meddling();
    assert_eq!(operator.errors(), 0);
}

/// What is no JSON, or has no name, is an oddity and loses nothing.
#[tokio::test(start_paused = true)]
async fn an_odd_line_is_no_failure() {
    let cluster = Cluster::new();
    let mut odd = ["{\"type\":\"ADDED\",\"object\":{\"metadata\":{}}}", "{\"type\":\"ADDED\",\"obj", "<html>"].iter();
    cluster.meddle(move |request| {
        let watches = request.path == "/api/v1/pods" && request.query.iter().any(|(key, _)| key == "watch");
        watches.then(|| odd.next().map(|line| Meddled::Line((*line).to_owned()))).flatten()
    });
    let operator = cluster.operator(registry(&cluster));
    cluster.create_set("demo", spec(1));
    until("Running", || cluster.phase("demo") == "Running").await;
    assert_eq!(operator.errors(), 0);
    operator.shows("cocoon_operator_watch_oddities_total{kind=\"pods\"} 3");
}

/// While the registry is away nothing is created that it might hold a snapshot of; then everything is.
#[tokio::test(start_paused = true)]
async fn a_registry_outage_is_waited_out() {
    let cluster = Cluster::new();
    let away = Arc::new(AtomicBool::new(true));
    let asked = Arc::new(AtomicUsize::new(0));
    let (state, count) = (Arc::clone(&away), Arc::clone(&asked));
    let probes: Local = Arc::new(move |verb, _, _, _| {
        assert_eq!(verb, Verb::RegistryHead);
        count.fetch_add(1, Ordering::Relaxed);
        let reply = if state.load(Ordering::Relaxed) { Reply::TimedOut } else { http_reply(404) };
        Box::pin(async { reply })
    });
    let operator = cluster.operator(probes);
    cluster.create_set("demo", spec(0));
    sleep(Duration::from_secs(300)).await;
    assert!(cluster.pods().is_empty());
    let asked = asked.load(Ordering::Relaxed);
    assert!((3..60).contains(&asked), "{asked} probes in five minutes");
    away.store(false, Ordering::Relaxed);
    until("Running", || cluster.phase("demo") == "Running").await;
    assert_eq!(operator.errors(), 0);
}

/// SIGTERM: what is under way ends, nothing new begins.
#[tokio::test(start_paused = true)]
async fn a_stop_finishes_what_is_under_way() {
    let cluster = Cluster::new();
    let slow: Local = Arc::new(|_, _, _, _| {
        Box::pin(async {
            sleep(Duration::from_secs(5)).await;
            http_reply(404)
        })
    });
    let operator = cluster.operator(slow);
    cluster.create_set("demo", spec(0));
    until("asked", || cluster.sent("PATCH ") > 0).await;
    operator.stopper.stop();
    assert_eq!(operator.task.await.expect("no panic"), Exit::Stopped);
    assert_eq!(cluster.sent("POST "), 1, "the pass was finished");
    assert_eq!(operator.shell.unready(), ["the operator is stopping"]);
    let sent = cluster.requests().len();
    cluster.create_set("late", spec(0));
    sleep(Duration::from_secs(60)).await;
    assert_eq!(cluster.requests().len(), sent);
}

/// A set that is deleted takes its pods, its finalizer and its memory with it.
#[tokio::test(start_paused = true)]
async fn a_deleted_set_leaves_nothing() {
    let cluster = Cluster::new();
    let operator = cluster.operator(registry(&cluster));
    cluster.create_set("demo", spec(1));
    until("Running", || cluster.phase("demo") == "Running").await;
    cluster.patch_set("demo", json!({"spec": {"agent": {"replicas": 0}}}));
    until("one left", || cluster.pods().len() == 1).await;
    cluster.delete(&sets("demo"));
    until("gone", || cluster.set("demo").is_none()).await;
    assert!(cluster.pods().is_empty());
    sleep(Duration::from_secs(5)).await;
    assert_eq!((operator.errors(), operator.shell.state.keys().len()), (0, 0));
    assert_eq!(operator.shell.state.next_due(), None);
}

/// What needs a person is an error when it is entered and once an hour, and no oftener (decision R4).
#[tokio::test(start_paused = true)]
async fn a_lasting_refusal_is_an_error_once_an_hour() {
    let (log, _guard) = log_of_errors();
    let cluster = Cluster::new();
    let pods = Match { verbs: vec!["create".to_owned()], resource: Some("pods".into()), ..Match::default() };
    let pods = Match { user: Some(OPERATOR.into()), ..pods };
    cluster.served.with(|world| world.store.add_rule(Rule::new(pods, Refusal::Rbac)));
    let operator = cluster.operator(registry(&cluster));
    cluster.create_set("demo", spec(0));
    until("refused", || operator.errors() == 1).await;
    sleep(Duration::from_secs(50 * 60)).await;
    assert_eq!((operator.errors(), lines(&log)), (1, 1));
    sleep(Duration::from_secs(60 * 60)).await;
    assert_eq!((operator.errors(), lines(&log)), (2, 2));
    cluster.served.with(|world| world.store.clear_rules());
    until("Running", || cluster.phase("demo") == "Running").await;
    assert_eq!(operator.errors(), 2);
}

/// The same operator on the same cluster sends the same requests in the same order, and counts the same.
#[test]
fn it_does_the_same_every_time() {
    let once = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
        runtime.expect("a runtime").block_on(async {
            let cluster = Cluster::new();
            let operator = cluster.operator(registry(&cluster));
            for name in ["a", "b", "c", "d", "e", "f"] {
                cluster.create_set(name, spec(3));
            }
            sleep(Duration::from_secs(30)).await;
            cluster.delete("/api/v1/namespaces/ns");
            sleep(Duration::from_secs(120)).await;
            let counted = operator.shell.metrics.text();
            cluster.requests().into_iter().chain(counted.lines().map(str::to_owned)).collect::<Vec<_>>()
        })
    };
    let first = once();
    assert!(first.len() > 60, "{}", first.len());
    let second = once();
    let differ = first.iter().zip(&second).position(|(first, second)| first != second);
    let near =
        |all: &[String]| all.iter().skip(differ.unwrap_or(0).saturating_sub(4)).take(12).cloned().collect::<Vec<_>>();
    assert!(first == second, "at {differ:?} of {}: {:#?}\n{:#?}", first.len(), near(&first), near(&second));
}

type Log = Arc<std::sync::Mutex<Vec<u8>>>;

/// What is logged as an error on this thread, for as long as the guard lives.
fn log_of_errors() -> (Log, tracing::subscriber::DefaultGuard) {
    struct Writer(Log);
    impl std::io::Write for Writer {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().expect("not poisoned").extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let log = Log::default();
    let target = Arc::clone(&log);
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::ERROR)
        .with_ansi(false)
        .with_writer(move || Writer(Arc::clone(&target)));
    (log, tracing::subscriber::set_default(subscriber.finish()))
}

fn lines(log: &Log) -> usize {
    let log = log.lock().expect("not poisoned");
    log.iter().filter(|byte| **byte == b'\n').count()
}

/// Each write of a set's life once meets silence or a broken connection, before or after it was carried out: the same
/// end, each pod created once, and no error.
#[rstest]
#[case(What::TimeoutBefore)]
#[case(What::TimeoutAfter)]
#[case(What::Reset { sent: false })]
#[case(What::Reset { sent: true })]
#[case(What::ResetAfter)]
#[tokio::test(start_paused = true)]
async fn a_write_that_is_not_answered_is_looked_after(#[case] what: What) {
    let (log, _guard) = log_of_errors();
    let cluster = Cluster::new();
    let writes = [(Verb::Create, "pods"), (Verb::Patch, "cocoonsets"), (Verb::Patch, "cocoonsets/status")];
    for (verb, kind) in writes.into_iter().chain([(Verb::Delete, "pods"), (Verb::Patch, "pods")]) {
        let fault = Fault::new(Pattern::of(verb, kind), what.clone());
        cluster.served.with(|world| world.faults.add(fault));
    }
    let operator = cluster.operator(registry(&cluster));
    cluster.create_set("demo", spec(2));
    until("Running", || cluster.phase("demo") == "Running").await;
    assert_eq!(cluster.pods(), ["demo-0", "demo-1", "demo-2"]);
    cluster.delete(&sets("demo"));
    until("gone", || cluster.set("demo").is_none() && cluster.pods().is_empty()).await;
    assert_eq!((operator.errors(), lines(&log)), (0, 0));
}
