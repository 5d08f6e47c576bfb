//! One operator process of a stage: the shell as it runs in a cluster, what it says of its passes, and the wire between
//! it and the cluster.

mod recorder;
pub mod wire;

pub use recorder::Recorder;

use super::happenings::{Happening, PassStory};
use crate::core::control::election::Told;
use crate::core::control::kinds::Kind;
use crate::core::control::wake::Key;
use crate::shell::clock::Clock;
use crate::shell::options::Settings;
use crate::shell::registry::{Local, Registry};
use crate::shell::telling::{Heard, Pace, Witness};
use crate::shell::{Shell, Stopper, run, shutdown};
use jiff::Timestamp;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use wire::{Beyond, Wire};

/// A running operator.
pub struct Process {
    /// The process itself.
    pub shell: Arc<Shell>,
    wire: Arc<Wire>,
    recorder: Arc<Recorder>,
    stopper: Stopper,
    task: Option<JoinHandle<()>>,
    started: Duration,
}

/// How a process is started.
pub struct Terms<'a> {
    /// Its name; empty for the first.
    pub name: &'a str,
    /// The cluster.
    pub beyond: Arc<dyn Beyond>,
    /// The kinds that it may not watch.
    pub refused: &'a [Kind],
    /// When the story began.
    pub origin: Instant,
    /// What time it is in the cluster.
    pub now: Timestamp,
    /// What it is told at its start.
    pub settings: Settings,
    /// How it reaches its registry, given what answers there.
    pub registry: &'a dyn Fn(Local, Clock) -> Registry,
    /// Who says when its passes may begin, and its watches show only what is pumped; nobody where it runs by itself.
    pub pace: Option<Arc<dyn Pace>>,
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

impl Process {
    /// A process that starts now. To be called within the runtime.
    pub fn start(terms: Terms<'_>) -> Self {
        let wire = Arc::new(Wire::new(terms.refused));
        wire.open(terms.pace.is_none());
        let recorder = Arc::new(Recorder::new(terms.name, terms.origin));
        let clock = Clock::starting_at(terms.now, 0);
        let registry = (terms.registry)(wire.registry(&terms.beyond), clock.clone());
        let witness = Arc::new(Fate { recorder: Arc::clone(&recorder), wire: Arc::clone(&wire) });
        let shell = Shell::new(wire.client(&terms.beyond), registry, terms.settings, clock).with_witness(witness);
        let shell = Arc::new(match terms.pace {
            Some(pace) => shell.with_pace(pace),
            None => shell,
        });
        let (stopper, wanted) = shutdown();
        let running = Arc::clone(&shell);
        let task = tokio::spawn(async move {
            // It takes no port, and so nothing keeps it from starting.
            run(running, wanted).await.ok();
        });
        Self { shell, wire, recorder, stopper, task: Some(task), started: terms.origin.elapsed() }
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
    /// What it runs on, until that has ended.
    pub const fn task_mut(&mut self) -> Option<&mut JoinHandle<()>> {
        self.task.as_mut()
    }
    /// It has ended by itself.
    pub fn ended(&mut self) {
        self.task = None;
    }
    /// What happened to its lease since the last call.
    pub fn take_told(&self) -> Vec<Happening> {
        self.recorder.take_told()
    }

    /// It dies after so many further calls.
    pub fn die_after(&self, calls: u32) {
        self.wire.die_after(calls);
    }
    /// Waits until it dies.
    pub async fn died(&self) {
        self.wire.died().await;
    }
    /// True once it is dead; its passes have ended with it.
    pub fn is_dead(&self) -> bool {
        let dead = self.wire.is_dead();
        if dead {
            self.recorder.dies();
        }
        dead
    }
    /// The passes that are over since the last call.
    pub fn take(&self) -> Vec<PassStory> {
        self.recorder.take()
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
    /// Watches show what they have from now on, or nothing.
    pub fn open(&self, open: bool) {
        self.wire.open(open);
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
    /// True once it has ended by itself: its lease was lost.
    #[cfg(feature = "live")]
    pub fn is_over(&self) -> bool {
        self.task.as_ref().is_some_and(JoinHandle::is_finished)
    }
    /// True while a pass is under way or could begin: who does not lead only gathers what it would do.
    #[cfg(feature = "live")]
    pub fn is_busy(&self) -> bool {
        self.recorder.is_running() || (self.shell.leader.leads() && self.shell.state.stats().depth > 0)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.recorder.dies();
        self.wire.cut();
        if let Some(task) = self.task.take() {
            task.abort();
        }
    }
}

impl std::fmt::Debug for Process {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Process").field("shell", &self.shell).finish()
    }
}
