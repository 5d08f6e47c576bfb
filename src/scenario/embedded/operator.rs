//! One operator process, held between two passes.

use crate::scenario::happenings::{Happening, PassStory};
use crate::scenario::process::{Process, Terms};
use crate::shell::telling::Pace;
use futures::FutureExt;
use futures::future::BoxFuture;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, watch};

/// Times that everybody else gets a turn before nothing is believed to be left to do.
const ROUNDS: u32 = 8;
/// A pass that is not over by then hangs.
const LONGEST: Duration = Duration::from_secs(120);

/// A running operator.
#[derive(Debug)]
pub struct Operator {
    /// The process itself.
    pub process: Process,
    turns: Arc<Turns>,
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

impl Operator {
    /// A process that starts now. To be called within the runtime.
    pub fn start(terms: Terms<'_>) -> Self {
        let turns = Arc::new(Turns { workers: Turn::new(), election: Turn::new() });
        let pace = Some(Arc::clone(&turns) as Arc<dyn Pace>);
        Self { process: Process::start(Terms { pace, ..terms }), turns }
    }

    /// The election goes on, if there is something to do and the cluster was seen.
    pub async fn elect(&mut self) -> Option<Elected> {
        self.process.shell.leader.next_due().filter(|due| *due <= self.process.shell.clock.since_start())?;
        let mut asked = self.turns.election.asked.subscribe();
        if *asked.borrow_and_update() == 0 {
            return None;
        }
        let task = self.process.task_mut()?;
        self.turns.election.granted.add_permits(1);
        let over = tokio::select! {
            biased;
            _ = asked.changed() => false,
            _ = task => true,
        };
        if over {
            self.process.ended();
        }
        quiet().await;
        Some(Elected { told: self.process.take_told(), over })
    }

    /// Lets the watches show what they have.
    pub async fn pump(&self) {
        self.process.open(true);
        quiet().await;
        self.process.open(false);
    }

    /// One pass, if there is something to look at.
    pub async fn work(&self) -> Option<Ran> {
        let mut asked = self.turns.workers.asked.subscribe();
        let at_rest = *asked.borrow_and_update() > 0 && self.process.shell.leader.leads();
        let shell = &self.process.shell;
        let due = shell.state.next_due().is_some_and(|due| due <= shell.clock.since_start());
        if !at_rest || (!due && shell.state.stats().depth == 0) {
            return None;
        }
        self.turns.workers.granted.add_permits(1);
        let (died, hangs) = tokio::select! {
            biased;
            () = self.process.died() => (true, false),
            _ = asked.changed() => (false, false),
            () = tokio::time::sleep(LONGEST) => (true, true),
        };
        if died {
            self.process.is_dead();
        }
        Some(Ran { stories: self.process.take(), died, hangs })
    }
}

/// Lets everybody do what they can do without time passing. Each turn runs every task that is ready, and what these
/// make ready.
async fn quiet() {
    for _ in 0..ROUNDS {
        tokio::task::yield_now().await;
    }
}
