//! The second stage: the shell as it runs in a cluster, with its client, watches, workers and deadlines, against the
//! served cluster, in one process and on a paused clock.
//!
//! It goes from moment to moment as the first stage does: the cluster does what is due, then every operator looks, then
//! each makes one pass. Only so do both tell the same story line by line. What the stage holds are the watches' bodies
//! and the worker's next turn; everything between a watch's line and the request that follows from it is the shell's.
//! A lost answer costs the shell its deadline, which is a millisecond here.

mod operator;

use super::happenings::Happening;
use super::process::Terms;
use super::replica::DEADLINE;
use super::stage::{OperatorEvent, Stage};
use super::standing;
use crate::core::control::kinds::Kind;
use crate::shell::metrics::Metrics;
use crate::shell::options::Settings;
use crate::shell::registry::Registry;
use crate::sim::server::Cluster;
use crate::sim::world::World;
use jiff::Timestamp;
use operator::Operator;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::time::Instant;

/// Passes at one moment after which something is hot: time goes on, and the story says so.
const HOT: u32 = 400;

/// Cluster and operators, as in a cluster but for the time.
#[derive(Debug)]
pub struct Embedded {
    runtime: Runtime,
    cluster: Cluster,
    start: Timestamp,
    origin: Instant,
    first: Option<Operator>,
    second: Option<Operator>,
    refused: Vec<Kind>,
    starts_at: Option<Duration>,
    down_for: Duration,
    happenings: Vec<Happening>,
    elects: bool,
    processes: u32,
    /// What every operator counted that ever ran here.
    metrics: Vec<Arc<Metrics>>,
}

impl Embedded {
    /// A stage for this cluster, without an operator yet. The operator may not watch the refused kinds.
    pub fn new(world: World, refused: &[Kind]) -> std::io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build()?;
        let start = world.now();
        let (cluster, origin) = {
            let _within = runtime.enter();
            (Cluster::stepped(world), Instant::now())
        };
        Ok(Self {
            runtime,
            cluster,
            start,
            origin,
            first: None,
            second: None,
            refused: refused.to_vec(),
            starts_at: None,
            down_for: Duration::ZERO,
            happenings: Vec::new(),
            elects: false,
            processes: 0,
            metrics: Vec::new(),
        })
    }

    /// The same, whose operators elect a leader.
    #[must_use]
    pub const fn electing(mut self, elects: bool) -> Self {
        self.elects = elects;
        self
    }

    /// What every operator counted that ever ran here, in the order of their starts.
    pub fn metrics(&self) -> &[Arc<Metrics>] {
        &self.metrics
    }

    fn since_start(&self, at: Timestamp) -> Duration {
        at.duration_since(self.start).try_into().unwrap_or(Duration::ZERO)
    }

    fn start(&mut self, name: &str) -> Operator {
        self.processes = self.processes.saturating_add(1);
        let election = self.elects.then(|| standing::settings(name, self.processes));
        let _within = self.runtime.enter();
        // A watch that a story holds still stays so: its silence is not to be noticed within the story.
        let watch_timeout = Duration::from_secs(86_400);
        let operator = Operator::start(Terms {
            name,
            beyond: Arc::new(self.cluster.clone()),
            refused: &self.refused,
            origin: self.origin,
            now: self.cluster.now(),
            settings: Settings { workers: 1, http_timeout: DEADLINE, watch_timeout, election, ..Settings::default() },
            registry: &|answer, clock| Registry::local(answer, clock).with_deadline(DEADLINE),
            pace: None,
        });
        self.metrics.push(Arc::clone(&operator.process.shell.metrics));
        operator
    }

    /// Lets the cluster do what is due by now.
    fn cluster(&mut self) {
        let told = {
            let _within = self.runtime.enter();
            self.cluster.step()
        };
        for told in told {
            let at = self.since_start(told.at);
            let text = told.text.strip_prefix(&format!("{} ", told.actor)).unwrap_or(&told.text).to_owned();
            self.happenings.push(Happening::World { at, actor: told.actor, text });
        }
    }

    /// The elections go on where something is due. True if anything was.
    fn elections(&mut self) -> bool {
        let mut any = false;
        for operator in [&mut self.first, &mut self.second] {
            let Some(running) = operator else { continue };
            let Some(elected) = self.runtime.block_on(running.elect()) else { continue };
            any = true;
            self.happenings.extend(elected.told);
            if elected.over {
                *operator = None;
            }
        }
        any
    }

    fn stop(&mut self, operator: Option<Operator>) {
        if let Some(operator) = operator {
            let told = self.runtime.block_on(operator.process.stop());
            self.happenings.extend(told);
        }
    }

    /// One pass of each operator. True if one of them did something.
    fn operators(&mut self) -> bool {
        // Both look before either acts: that is how they come to act on the same evidence.
        for operator in [&self.first, &self.second].into_iter().flatten() {
            self.runtime.block_on(operator.pump());
        }
        let mut worked = self.elections();
        let _within = self.runtime.enter();
        for operator in [&mut self.first, &mut self.second] {
            let Some(running) = operator else { continue };
            let Some(ran) = self.runtime.block_on(running.work()) else { continue };
            worked = true;
            self.happenings.extend(ran.stories.into_iter().map(|story| Happening::Pass(Box::new(story))));
            if ran.hangs {
                let at = self.origin.elapsed();
                self.happenings.push(Happening::Note { at, text: "HANGS: a pass did not end".to_owned() });
            }
            if ran.died {
                *operator = None;
                self.starts_at = Some(self.origin.elapsed().saturating_add(self.down_for));
            }
        }
        worked
    }

    fn restart(&mut self) {
        let now = self.now();
        if self.starts_at.is_some_and(|at| at <= now) {
            self.starts_at = None;
            self.first = Some(self.start(""));
            self.happenings.push(Happening::Note { at: now, text: "the operator starts".to_owned() });
        }
    }

    /// Everything that can happen at this moment.
    fn moment(&mut self) {
        for _ in 0..HOT {
            self.cluster();
            self.restart();
            if !self.operators() {
                return;
            }
        }
        let text = format!("HOT: {HOT} passes at one moment");
        self.happenings.push(Happening::Note { at: self.now(), text });
    }

    fn sleep_until(&self, at: Duration) {
        if let Some(at) = self.origin.checked_add(at) {
            self.runtime.block_on(async { tokio::time::sleep_until(at).await });
        }
    }
}

impl Stage for Embedded {
    type Realm = World;

    fn with<R>(&mut self, act: impl FnOnce(&mut World) -> R) -> R {
        let _within = self.runtime.enter();
        self.cluster.with(act)
    }

    fn operator(&mut self, event: OperatorEvent) {
        match event {
            OperatorEvent::Start => self.first = Some(self.start("")),
            OperatorEvent::Stop => {
                let first = self.first.take();
                self.stop(first);
            }
            OperatorEvent::Kill => self.first = None,
            OperatorEvent::CutOff(on) => self.first.iter().for_each(|operator| operator.process.cut_off(on)),
            OperatorEvent::Second(true) => self.second = Some(self.start("second")),
            OperatorEvent::Second(false) => {
                let second = self.second.take();
                self.stop(second);
            }
            OperatorEvent::DieAfter(calls, down) => {
                self.down_for = down;
                self.first.iter().for_each(|operator| operator.process.die_after(calls));
            }
            OperatorEvent::Lag(kind, on) => self.first.iter().for_each(|operator| operator.process.lag(kind, on)),
            OperatorEvent::Gap(kind, on) => self.first.iter().for_each(|operator| operator.process.gap(kind, on)),
            OperatorEvent::Jump(by) => self.first.iter().for_each(|operator| operator.process.shell.clock.jump(by)),
        }
    }

    fn now(&self) -> Duration {
        let _within = self.runtime.enter();
        self.origin.elapsed()
    }

    fn next_due(&mut self) -> Option<Duration> {
        let world = self.with(|world| world.next_due()).map(|at| self.since_start(at));
        let operators =
            [&self.first, &self.second].into_iter().flatten().filter_map(|operator| operator.process.next_due());
        operators.chain(world).chain(self.starts_at).min()
    }

    fn next_work(&mut self) -> Option<Duration> {
        let world = self.with(|world| world.next_due()).map(|at| self.since_start(at));
        let operators =
            [&self.first, &self.second].into_iter().flatten().filter_map(|operator| operator.process.next_work());
        operators.chain(world).chain(self.starts_at).min()
    }

    fn run_until(&mut self, at: Duration) {
        self.moment();
        while let Some(due) = self.next_due().filter(|due| *due <= at) {
            // Something that is due and does not happen must not hold the story up.
            let now = self.now();
            self.sleep_until(due.max(now.saturating_add(Duration::from_millis(1))).min(at.max(now)));
            self.moment();
            if self.now() >= at {
                break;
            }
        }
        self.sleep_until(at);
        self.moment();
    }

    fn take_happenings(&mut self) -> Vec<Happening> {
        std::mem::take(&mut self.happenings)
    }
}
