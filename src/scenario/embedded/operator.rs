//! One operator process: the shell as it runs in a cluster, held between two passes.

use super::recorder::Recorder;
use super::wire::Wire;
use crate::core::control::election::Told;
use crate::core::control::kinds::Kind;
use crate::core::control::wake::Key;
use crate::scenario::happenings::{Happening, PassStory};
use crate::scenario::replica::DEADLINE;
use crate::shell::clock::Clock;
use crate::shell::options::Settings;
use crate::shell::registry::Registry;
use crate::shell::telling::{Heard, Pace, Witness};
use crate::shell::{Shell, Stopper, run, shutdown};
use crate::sim::server::Cluster;
use futures::FutureExt;
use futures::future::BoxFuture;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// Times that everybody else gets a turn before nothing is believed to be left to do.
const ROUNDS: u32 = 8;
/// A pass that is not over by then hangs.
const LONGEST: Duration = Duration::from_secs(120);

/// A running operator.
pub struct Operator {
    /// The process itself.
    pub shell: Arc<Shell>,
    wire: Arc<Wire>,
    recorder: Arc<Recorder>,
    turns: Arc<Turns>,
    stopper: Stopper,
    task: Option<JoinHandle<()>>,
    started: Duration,
}

/// What a pass came to.
pub struct Ran {
    /// What happened in it; nothing where there was nothing to look at.
    pub stories: Vec<PassStory>,
    /// The operator died in it.
    pub died: bool,
    /// It did not end.
    pub hangs: bool,
}

/// What an election came to.
pub struct Elected {
    /// What people should know.
    pub told: Vec<Happening>,
    /// The operator has ended.
    pub over: bool,
}

/// The turns of the workers, and of the election.
#[derive(Debug)]
struct Turns {
    workers: Turn,
    election: Turn,
}

#[derive(Debug)]
struct Turn {
    granted: Semaphore,
    /// How often somebody has come for a turn.
    asked: watch::Sender<u64>,
}

impl Turn {
    fn new() -> Self {
        Self { granted: Semaphore::new(0), asked: watch::channel(0).0 }
    }
    async fn next(&self) {
        self.asked.send_modify(|count| *count += 1);
        if let Ok(permit) = self.granted.acquire().await {
            permit.forget();
        }
    }
}

impl Pace for Turns {
    fn next_pass(&self) -> BoxFuture<'_, ()> {
        self.workers.next().boxed()
    }
    fn next_election<'a>(&'a self, _due: BoxFuture<'a, ()>) -> BoxFuture<'a, ()> {
        self.election.next().boxed()
    }
}

/// Hears what the recorder hears, and ends the process with its last call.
struct Fate {
    recorder: Arc<Recorder>,
    wire: Arc<Wire>,
}

impl Witness for Fate {
    fn hears_of_the_lease(&self, told: &Told) {
        self.recorder.hears_of_the_lease(told);
    }
    fn hears(&self, key: &Key, heard: Heard<'_>) {
        let answered = matches!(heard, Heard::Answered(..));
        self.recorder.hears(key, heard);
        if answered && self.wire.was_last() && !self.wire.is_dead() {
            self.recorder.dies();
            self.wire.cut();
        }
    }
}

impl Operator {
    /// A process that starts now, which may not watch the refused kinds. To be called within the runtime.
    pub fn start(name: &str, cluster: &Cluster, refused: &[Kind], origin: Instant, settings: Settings) -> Self {
        let wire = Arc::new(Wire::new(refused));
        let recorder = Arc::new(Recorder::new(name, origin));
        let turns = Arc::new(Turns { workers: Turn::new(), election: Turn::new() });
        let clock = Clock::starting_at(cluster.now(), 0);
        let registry = Registry::local(wire.registry(cluster), clock.clone()).with_deadline(DEADLINE);
        // A watch that a story holds still stays so: its silence is not to be noticed within the story.
        let watch_timeout = Duration::from_secs(86_400);
        let settings = Settings { workers: 1, http_timeout: DEADLINE, watch_timeout, ..settings };
        let witness = Arc::new(Fate { recorder: Arc::clone(&recorder), wire: Arc::clone(&wire) });
        let shell = Shell::new(wire.client(cluster), registry, settings, clock);
        let shell = Arc::new(shell.with_witness(witness).with_pace(Arc::clone(&turns) as Arc<dyn Pace>));
        let (stopper, wanted) = shutdown();
        let running = Arc::clone(&shell);
        let task = tokio::spawn(async move {
            // It takes no port, and so nothing keeps it from starting.
            run(running, wanted).await.ok();
        });
        Self { shell, wire, recorder, turns, stopper, task: Some(task), started: origin.elapsed() }
    }

    /// It is asked to stop, and stops; what is told of that.
    pub async fn stop(mut self) -> Vec<Happening> {
        self.stopper.stop();
        if let Some(task) = self.task.take() {
            task.await.ok();
        }
        self.recorder.take_told()
    }

    /// It does not reach the API server, or does again.
    pub fn cut_off(&self, on: bool) {
        self.wire.cut_off(on);
    }

    /// The election goes on, if there is something to do and the cluster was seen.
    pub async fn elect(&mut self) -> Option<Elected> {
        self.shell.leader.next_due().filter(|due| *due <= self.shell.clock.since_start())?;
        let mut asked = self.turns.election.asked.subscribe();
        if *asked.borrow_and_update() == 0 {
            return None;
        }
        let task = self.task.as_mut()?;
        self.turns.election.granted.add_permits(1);
        let over = tokio::select! {
            biased;
            _ = asked.changed() => false,
            _ = task => true,
        };
        if over {
            self.task = None;
        }
        quiet().await;
        Some(Elected { told: self.recorder.take_told(), over })
    }

    /// It dies after so many further calls.
    pub fn die_after(&self, calls: u32) {
        self.wire.die_after(calls);
    }
    /// What this kind's watch shows stands still, or goes on.
    pub fn lag(&self, kind: Kind, on: bool) {
        self.wire.hold(kind, on);
    }
    /// This kind's watch is broken, or is back: then it lists anew.
    pub fn gap(&self, kind: Kind, on: bool) {
        self.wire.hold(kind, on);
        if !on {
            self.wire.expire(kind);
        }
    }

    /// Lets the watches show what they have.
    pub async fn pump(&self) {
        self.wire.open(true);
        quiet().await;
        self.wire.open(false);
    }

    /// When it would look again by itself.
    pub fn next_due(&self) -> Option<Duration> {
        let election = self.shell.leader.next_due().map(|due| due.saturating_add(self.started));
        election.into_iter().chain(self.next_work()).min()
    }
    /// The same but for the lease.
    pub fn next_work(&self) -> Option<Duration> {
        let due = self.shell.state.next_due().filter(|_| self.shell.leader.leads());
        due.map(|due| due.saturating_add(self.started))
    }

    /// One pass, if there is something to look at.
    pub async fn work(&self) -> Option<Ran> {
        let mut asked = self.turns.workers.asked.subscribe();
        let at_rest = *asked.borrow_and_update() > 0 && self.shell.leader.leads();
        let due = self.shell.state.next_due().is_some_and(|due| due <= self.shell.clock.since_start());
        if !at_rest || (!due && self.shell.state.stats().depth == 0) {
            return None;
        }
        self.turns.workers.granted.add_permits(1);
        let (died, hangs) = tokio::select! {
            biased;
            () = self.wire.died() => (true, false),
            _ = asked.changed() => (false, false),
            () = tokio::time::sleep(LONGEST) => (true, true),
        };
        if died {
            self.recorder.dies();
        }
        Some(Ran { stories: self.recorder.take(), died, hangs })
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        self.recorder.dies();
        self.wire.cut();
        if let Some(task) = self.task.take() {
            task.abort();
        }
    }
}

impl std::fmt::Debug for Operator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Operator").field("shell", &self.shell).finish()
    }
}

/// Lets everybody do what they can do without time passing. Each turn runs every task that is ready, and what these
/// make ready.
async fn quiet() {
    for _ in 0..ROUNDS {
        tokio::task::yield_now().await;
    }
}
