//! Prometheus families, under the names that dashboards know today, and ours. They show and never influence.

use crate::core::api::words::SetPhase;
use crate::core::control::errors::PassResult;
use crate::core::control::queue::{Spans, Stats};
use crate::core::control::wake::Key;
use crate::core::outcome::Class;
use crate::core::wire::{Reply, Verb};
use prometheus::{
    Gauge, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry,
    TextEncoder,
};
use std::time::Duration;

/// The controller's name in labels.
pub const CONTROLLER: &str = "cocoonset";

/// Buckets of reconcile times, as the Go framework has them.
const RECONCILE_BUCKETS: [f64; 40] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25, 1.5,
    1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0,
];
/// Buckets of the work queue, as the Go framework has them.
const QUEUE_BUCKETS: [f64; 12] = [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0, 1_000.0];

/// Everything that is counted, in a registry of its own: two operators in one process do not count into one another.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    reconciles: IntCounterVec,
    errors: IntCounter,
    times: Histogram,
    active: IntGauge,
    workers: IntGaugeVec,
    queue: QueueMetrics,
    requests: IntCounterVec,
    outcomes: IntCounterVec,
    decisions: IntCounterVec,
    panics: IntCounter,
    rebuilds: IntCounterVec,
    dead_letters: IntCounterVec,
    failures: IntCounterVec,
    oddities: IntCounterVec,
    recorded: IntCounterVec,
    leads: IntGauge,
}

#[derive(Debug)]
struct QueueMetrics {
    depth: IntGauge,
    adds: IntCounter,
    retries: IntCounter,
    queued: Histogram,
    worked: Histogram,
    unfinished: Gauge,
    longest: Gauge,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// Every family registered, every series of a closed set of labels at zero.
    pub fn new() -> Self {
        let registry = Registry::new();
        let family = Family(&registry);
        let per_set = &["namespace", "cocoonset"];
        let errors = family.counters("controller_runtime_reconcile_errors_total", "Reconcile errors", &["controller"]);
        let times = family.histograms(
            "controller_runtime_reconcile_time_seconds",
            "Length of passes",
            &["controller"],
            &RECONCILE_BUCKETS,
        );
        let active = family.gauges("controller_runtime_active_workers", "Passes under way", &["controller"]);
        let metrics = Self {
            reconciles: family.counters("controller_runtime_reconcile_total", "Passes", &["controller", "result"]),
            errors: errors.with_label_values(&[CONTROLLER]),
            times: times.with_label_values(&[CONTROLLER]),
            active: active.with_label_values(&[CONTROLLER]),
            workers: family.gauges("controller_runtime_max_concurrent_reconciles", "Workers", &["controller"]),
            queue: QueueMetrics::new(&family),
            requests: family.counters(
                "rest_client_requests_total",
                "Requests to the API server",
                &["code", "method", "host"],
            ),
            outcomes: family.counters(
                "cocoon_operator_outcomes_total",
                "Answers by how they were understood",
                &["verb", "kind", "outcome"],
            ),
            decisions: family.counters("cocoon_operator_decisions_total", "Rules that spoke", &["rule"]),
            panics: family
                .counters("controller_runtime_reconcile_panics_total", "Passes that ended in a panic", &["controller"])
                .with_label_values(&[CONTROLLER]),
            rebuilds: family.counters("cocoon_operator_subagent_rebuild_total", "Sub-agents rebuilt", per_set),
            dead_letters: family.counters("cocoon_operator_subagent_dead_letter_total", "Sub-agents given up", per_set),
            failures: family.counters(
                "cocoon_operator_lifecycle_state_failed_observed_total",
                "Main agents that became failed",
                &["phase"],
            ),
            oddities: family.counters(
                "cocoon_operator_watch_oddities_total",
                "Watch lines that did not read",
                &["kind"],
            ),
            recorded: family.counters(
                "cocoon_operator_recorded_passes_total",
                "Passes that were to be recorded",
                &["result"],
            ),
            leads: family
                .gauges("leader_election_master_status", "Whether this process leads", &["name"])
                .with_label_values(&[crate::core::control::lease::NAME]),
            registry,
        };
        for result in PassResult::ALL {
            metrics.reconciles.with_label_values(&[CONTROLLER, result.label()]);
        }
        metrics
    }

    /// Everything, as the text format.
    pub fn text(&self) -> String {
        TextEncoder::new().encode_to_string(&self.registry.gather()).unwrap_or_default()
    }

    /// How many workers there are.
    pub fn workers(&self, count: usize) {
        self.workers.with_label_values(&[CONTROLLER]).set(i64::try_from(count).unwrap_or(i64::MAX));
    }
    /// A pass begins.
    pub fn pass_begins(&self) {
        self.active.inc();
    }
    /// A pass is over.
    pub fn pass_ends(&self, result: PassResult, took: Duration) {
        self.active.dec();
        self.times.observe(took.as_secs_f64());
        self.reconciles.with_label_values(&[CONTROLLER, result.label()]).inc();
        if result == PassResult::Error {
            self.errors.inc();
        }
    }
    /// Whether this process leads.
    pub fn leads(&self, leads: bool) {
        self.leads.set(leads.into());
    }
    /// A pass panicked.
    pub fn panicked(&self) {
        self.panics.inc();
    }
    /// One answer was understood.
    pub fn outcome(&self, verb: Verb, kind: &str, class: Class) {
        self.outcomes.with_label_values(&[verb.label(), kind, class.name()]).inc();
    }
    /// A rule spoke.
    pub fn decided(&self, rule: &str) {
        self.decisions.with_label_values(&[rule]).inc();
    }
    /// The API server answered, or did not.
    pub fn request(&self, method: &str, reply: &Reply) {
        let code = match reply {
            Reply::Http { status, .. } => status.to_string(),
            Reply::TimedOut | Reply::Reset { .. } | Reply::Fenced => "<error>".to_owned(),
        };
        self.requests.with_label_values(&[code.as_str(), method, "kubernetes"]).inc();
    }
    /// A line of a watch did not read.
    pub fn odd_line(&self, kind: &str) {
        self.oddities.with_label_values(&[kind]).inc();
    }
    /// A main agent was newly found to have failed, while the set was in this phase.
    pub fn failed(&self, phase: &SetPhase) {
        self.failures.with_label_values(&[phase.as_str()]).inc();
    }
    /// A pass was to be recorded.
    pub fn recorded(&self, recorded: Recorded) {
        let result = match recorded {
            Recorded::Written => "written",
            Recorded::Lost => "lost",
        };
        self.recorded.with_label_values(&[result]).inc();
    }
    /// Something happened that is announced: counted on the transition, by its reason.
    pub fn announced(&self, set: &Key, reason: &str) {
        let labels = [set.namespace.as_str(), set.name.as_str()];
        match reason {
            "SubAgentRebuilding" => self.rebuilds.with_label_values(&labels).inc(),
            "SubAgentDeadLetter" => self.dead_letters.with_label_values(&labels).inc(),
            _ => {}
        }
    }
    /// A set is gone, and its series with it (D-53).
    pub fn forget(&self, set: &Key) {
        for family in [&self.rebuilds, &self.dead_letters] {
            // An error says that there was no such series.
            let _ = family.remove_label_values(&[&set.namespace, &set.name]);
        }
    }
    /// The queue as it is now, and the spans since it was last looked at.
    pub fn queue(&self, stats: &Stats, spans: &Spans) {
        let queue = &self.queue;
        queue.depth.set(i64::try_from(stats.depth).unwrap_or(i64::MAX));
        queue.adds.inc_by(stats.adds.saturating_sub(queue.adds.get()));
        queue.retries.inc_by(stats.retries.saturating_sub(queue.retries.get()));
        queue.unfinished.set(stats.unfinished.as_secs_f64());
        queue.longest.set(stats.longest_running.as_secs_f64());
        spans.queued.iter().for_each(|span| queue.queued.observe(span.as_secs_f64()));
        spans.worked.iter().for_each(|span| queue.worked.observe(span.as_secs_f64()));
    }
    /// How often a pass counted as an error.
    pub fn errors(&self) -> u64 {
        self.errors.get()
    }
}

/// What became of a pass that was to be recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recorded {
    /// It stands in a file.
    Written,
    /// The disk could not take it.
    Lost,
}

impl QueueMetrics {
    fn new(family: &Family<'_>) -> Self {
        let labels = &["name", "controller"];
        let values = &[CONTROLLER, CONTROLLER];
        let seconds =
            |name: &str, help: &str| family.histograms(name, help, labels, &QUEUE_BUCKETS).with_label_values(values);
        let gauge = |name: &str, help: &str| {
            let gauges = prometheus::GaugeVec::new(Opts::new(name, help), labels);
            family.register(gauges).with_label_values(values)
        };
        Self {
            depth: family.gauges("workqueue_depth", "Keys waiting", labels).with_label_values(values),
            adds: family.counters("workqueue_adds_total", "Keys added", labels).with_label_values(values),
            retries: family.counters("workqueue_retries_total", "Looks put off", labels).with_label_values(values),
            queued: seconds("workqueue_queue_duration_seconds", "From add to start"),
            worked: seconds("workqueue_work_duration_seconds", "From start to done"),
            unfinished: gauge("workqueue_unfinished_work_seconds", "How long running passes have run, together"),
            longest: gauge("workqueue_longest_running_processor_seconds", "How long the longest running pass has"),
        }
    }
}

/// Makes families and registers them. Names and labels are constants of this file, so that a test finds what is wrong
/// with them.
struct Family<'a>(&'a Registry);

impl Family<'_> {
    #[allow(clippy::expect_used)]
    fn register<C: prometheus::core::Collector + Clone + 'static>(&self, made: prometheus::Result<C>) -> C {
        let collector = made.expect("a family of this file has a valid name and labels");
        self.0.register(Box::new(collector.clone())).expect("a family of this file is registered once");
        collector
    }
    fn counters(&self, name: &str, help: &str, labels: &[&str]) -> IntCounterVec {
        self.register(IntCounterVec::new(Opts::new(name, help), labels))
    }
    fn gauges(&self, name: &str, help: &str, labels: &[&str]) -> IntGaugeVec {
        self.register(IntGaugeVec::new(Opts::new(name, help), labels))
    }
    fn histograms(&self, name: &str, help: &str, labels: &[&str], buckets: &[f64]) -> HistogramVec {
        self.register(HistogramVec::new(HistogramOpts::new(name, help).buckets(buckets.to_vec()), labels))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_are_those_that_dashboards_know() {
        let metrics = Metrics::new();
        metrics.pass_begins();
        metrics.pass_ends(PassResult::Error, Duration::from_millis(7));
        metrics.outcome(Verb::Patch, "cocoonsets", Class::Conflict);
        let text = metrics.text();
        for line in [
            "controller_runtime_reconcile_total{controller=\"cocoonset\",result=\"error\"} 1",
            "controller_runtime_reconcile_total{controller=\"cocoonset\",result=\"success\"} 0",
            "controller_runtime_reconcile_errors_total{controller=\"cocoonset\"} 1",
            "controller_runtime_reconcile_time_seconds_bucket{controller=\"cocoonset\",le=\"0.01\"} 1",
            "workqueue_depth{controller=\"cocoonset\",name=\"cocoonset\"} 0",
            "cocoon_operator_outcomes_total{kind=\"cocoonsets\",outcome=\"Conflict\",verb=\"patch\"} 1",
        ] {
            assert!(text.contains(line), "missing {line} in\n{text}");
        }
    }

    #[test]
    fn a_set_that_is_gone_leaves_no_series() {
        let metrics = Metrics::new();
        let key = Key::new("ns", "demo");
        metrics.announced(&key, "SubAgentRebuilding");
        metrics.announced(&key, "SubAgentDeadLetter");
        assert!(
            metrics.text().contains("cocoon_operator_subagent_rebuild_total{cocoonset=\"demo\",namespace=\"ns\"} 1")
        );
        metrics.forget(&key);
        assert!(!metrics.text().contains("demo"));
    }

    #[test]
    fn the_queue_is_counted_once_however_often_it_is_looked_at() {
        let metrics = Metrics::new();
        let stats = Stats { adds: 3, ..Stats::default() };
        let spans = Spans { queued: vec![Duration::from_secs(1)], worked: Vec::new() };
        metrics.queue(&stats, &spans);
        metrics.queue(&stats, &Spans::default());
        let text = metrics.text();
        assert!(text.contains("workqueue_adds_total{controller=\"cocoonset\",name=\"cocoonset\"} 3"), "{text}");
        assert!(text.contains("workqueue_queue_duration_seconds_count{controller=\"cocoonset\",name=\"cocoonset\"} 1"));
    }
}
