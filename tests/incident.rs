//! The incident of 2026-08-03 and its second half, on the shell against the served cluster: a namespace with three sets
//! goes while its pods take two minutes to terminate.

use cocoon_operator::scenario::happenings::Counts;
use cocoon_operator::scenario::runner;
use cocoon_operator::scenario::script::Script;
use rstest::rstest;
use std::io::Write;
use std::sync::{Arc, Mutex};

const SETS: [&str; 3] = ["netprobe-a", "netprobe-b", "netprobe-c"];

/// What the operator sees of namespaces.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Namespaces {
    Watched,
    /// They are shown only after all is over.
    Late,
    /// 403 on their watch; one by one they may be read.
    NotWatched,
    /// 403 on everything.
    NotReadable,
}

/// The log, as it would be written.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("not poisoned").write(bytes)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Log {
    /// Runs this with the log going here.
    fn keep<T>(&self, run: impl FnOnce() -> T) -> T {
        let log = self.clone();
        let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || log.clone()).finish();
        tracing::subscriber::with_default(subscriber, run)
    }
    fn lines(&self, level: &str) -> Vec<String> {
        let text = String::from_utf8_lossy(&self.0.lock().expect("not poisoned")).into_owned();
        text.lines().filter(|line| line.contains(&format!(" {level} "))).map(str::to_owned).collect()
    }
}

fn story(namespaces: Namespaces, ordered: bool, tags: bool, restart: bool) -> Script {
    let watched = !matches!(namespaces, Namespaces::NotWatched | Namespaces::NotReadable);
    let mut when = Vec::new();
    if tags {
        let vms = SETS.iter().flat_map(|set| (0..3).map(move |slot| format!("vk-netconn-test-{set}-{slot}")));
        when.extend(vms.map(|vm| format!("registry: {{put: '{vm}:hibernate'}}")));
    }
    match namespaces {
        Namespaces::Watched | Namespaces::NotWatched => {}
        Namespaces::Late => when.push("lag: {namespaces: true}".to_owned()),
        Namespaces::NotReadable => when.push("refuse: {by: rbac, verb: get, resource: namespaces}".to_owned()),
    }
    when.push("delete: {namespace: true}".to_owned());
    if restart {
        when.push("wait: 30s".to_owned());
        when.push("operator: false".to_owned());
        when.push("operator: true".to_owned());
    }
    when.push("settle".to_owned());
    if namespaces == Namespaces::Late {
        when.push("lag: {namespaces: false}".to_owned());
        when.push("settle".to_owned());
    }
    let set = |name: &str| format!("{{set: {name}, replicas: 2, spec: {{snapshotPolicy: main-only}}}}");
    let text = format!(
        "story: Three sets in a namespace that goes.
given:
  namespace: netconn-test
  set: {}
  sets: [{}, {}]
  nodes: {{node-a: {{terminate: 2m}}}}
  settings: {{watch-namespaces: {watched}, ordered-namespace-deletion: {ordered}}}
  settled: true
when:
{}
then:
  - namespace is gone
  - netprobe-a: set is gone
  - netprobe-b: set is gone
  - netprobe-c: set is gone
  - tags are vk-netconn-test-netprobe-a-0:latest, vk-netconn-test-netprobe-b-0:latest, vk-netconn-test-netprobe-c-0:latest
  - errors is 0
  - nothing gave up
",
        set(SETS[0]),
        set(SETS[1]),
        set(SETS[2]),
        when.iter().map(|step| format!("  - {step}")).collect::<Vec<_>>().join("\n"),
    );
    Script::parse("incident", &text).expect("a story")
}

/// B: refusals within R6, errors 0, ERROR lines 0, the namespace empty and gone, every tag collected.
#[rstest]
fn a_namespace_that_goes_is_no_error(
    #[values(Namespaces::Watched, Namespaces::Late, Namespaces::NotWatched, Namespaces::NotReadable)]
    namespaces: Namespaces,
    #[values(true, false)] ordered: bool,
    #[values(false, true)] tags: bool,
    #[values(false, true)] restart: bool,
) {
    let script = story(namespaces, ordered, tags, restart);
    let mut stage = runner::embedded(&script).expect("a stage");
    let log = Log::default();
    let played = log.keep(|| runner::play_on(&script, &mut stage)).expect("it plays");
    let told = &played.transcript;
    assert!(played.failures.is_empty(), "{:#?}\n{told}", played.failures);
    assert_eq!(log.lines("ERROR"), [""; 0], "{told}");
    assert_eq!(stage.metrics().len(), 1 + usize::from(restart));
    for metrics in stage.metrics() {
        assert_eq!(metrics.errors(), 0, "{told}");
        assert!(metrics.text().contains("controller_runtime_reconcile_errors_total{controller=\"cocoonset\"} 0"));
    }
    assert!(log.lines("INFO").iter().any(|line| line.contains("decided")), "nothing was logged at all");
    // R6: none where a refusal can be foreseen; else one wave of each set and operator.
    let (creates, refused) = attempts(&played.happenings);
    let blind = namespaces != Namespaces::Watched && !tags;
    let most = if blind { SETS.len() * stage.metrics().len() } else { 0 };
    assert!(refused <= most, "{refused} refused\n{told}");
    assert_eq!(creates, refused, "created in a namespace that goes\n{told}");
    if blind && ordered && !(restart && namespaces == Namespaces::Late) {
        // A watch that lags does so until the operator starts anew.
        assert!(refused > 0, "the case is not the one that is meant\n{told}");
    }
}

/// Creates of pods, and how many were refused.
fn attempts(happenings: &[cocoon_operator::scenario::happenings::Happening]) -> (usize, usize) {
    let counts = Counts(happenings);
    (counts.calls("create", "pods"), counts.refused_creates())
}
