//! The first stage: cluster and operators in one thread, on virtual time, without sockets.

use super::happenings::Happening;
use super::replica::Replica;
use super::stage::{OperatorEvent, Stage};
use super::standing;
use crate::core::control::kinds::Kind;
use crate::sim::world::World;
use jiff::{SignedDuration, Timestamp};
use std::time::Duration;

/// Passes at one moment after which something is hot: time goes on, and the story says so.
const HOT: u32 = 400;

/// Cluster and operators in memory. Cloning it forks the story.
#[derive(Clone, Debug)]
pub struct InMemory {
    /// The cluster.
    pub world: World,
    start: Timestamp,
    now: Duration,
    first: Option<Replica>,
    second: Option<Replica>,
    refused: Vec<Kind>,
    starts_at: Option<Duration>,
    down_for: Duration,
    happenings: Vec<Happening>,
    elects: bool,
    processes: u32,
}

impl InMemory {
    /// A stage for this cluster, without an operator yet. The operator may not watch the refused kinds.
    pub fn new(world: World, refused: &[Kind]) -> Self {
        Self {
            start: world.now(),
            world,
            now: Duration::ZERO,
            first: None,
            second: None,
            refused: refused.to_vec(),
            starts_at: None,
            down_for: Duration::ZERO,
            happenings: Vec::new(),
            elects: false,
            processes: 0,
        }
    }

    /// The same, whose operators elect a leader.
    #[must_use]
    pub fn electing(mut self, elects: bool) -> Self {
        self.elects = elects;
        self
    }

    fn start(&mut self, name: &str) -> Replica {
        self.processes = self.processes.saturating_add(1);
        let terms = self.elects.then(|| standing::terms(name, self.processes));
        Replica::start(name, self.now, &self.refused).electing(terms)
    }

    /// The elections go on where something is due. True if anything was.
    fn elections(&mut self) -> bool {
        let mut any = false;
        for replica in [&mut self.first, &mut self.second] {
            let Some(running) = replica else { continue };
            let Some(elected) = running.elect(&mut self.world, self.now) else { continue };
            any = true;
            let (now, name) = (self.now, running.name.clone());
            let told = elected.told.iter().map(|(late, told)| standing::told(now.saturating_add(*late), &name, told));
            self.happenings.extend(told);
            self.now = now.saturating_add(elected.waited);
            if elected.over {
                *replica = None;
            }
        }
        any
    }

    /// It stops as when it is asked to.
    fn stop(&mut self, replica: Option<Replica>) {
        let Some(mut replica) = replica else { return };
        let Some(elected) = replica.stop(&mut self.world, self.now) else { return };
        let (now, name) = (self.now, replica.name.as_str());
        let told = elected.told.iter().map(|(late, told)| standing::told(now.saturating_add(*late), name, told));
        self.happenings.extend(told);
        self.now = now.saturating_add(elected.waited);
    }

    /// What the operator sees of this kind it sees this much later, until it starts anew.
    pub fn show_late(&mut self, kind: Kind, by: Duration) {
        self.first.iter_mut().for_each(|replica| replica.late(kind, by));
    }

    fn wall(&self, at: Duration) -> Timestamp {
        SignedDuration::try_from(at).ok().and_then(|at| self.start.checked_add(at).ok()).unwrap_or(Timestamp::MAX)
    }

    fn since_start(&self, at: Timestamp) -> Duration {
        at.duration_since(self.start).try_into().unwrap_or(Duration::ZERO)
    }

    /// Lets the cluster do what is due by now.
    fn cluster(&mut self) {
        for told in self.world.run_until(self.wall(self.now)) {
            let at = self.since_start(told.at);
            let text = told.text.strip_prefix(&format!("{} ", told.actor)).unwrap_or(&told.text).to_owned();
            self.happenings.push(Happening::World { at, actor: told.actor, text });
        }
    }

    /// One pass of each operator. True if one of them did something.
    fn operators(&mut self) -> bool {
        let now = self.now;
        // Both look before either acts: that is how they come to act on the same evidence.
        for replica in [&mut self.first, &mut self.second].into_iter().flatten() {
            replica.pump(&self.world, now);
        }
        let (mut worked, mut waited) = (self.elections(), Duration::ZERO);
        let now = self.now;
        for replica in [&mut self.first, &mut self.second] {
            let Some(running) = replica else { continue };
            let Some(ran) = running.work(&mut self.world, now) else { continue };
            worked = true;
            waited = waited.max(ran.waited);
            self.happenings.extend(ran.story.map(|story| Happening::Pass(Box::new(story))));
            if ran.died {
                *replica = None;
                self.starts_at = Some(now.saturating_add(waited).saturating_add(self.down_for));
            }
        }
        self.now = now.saturating_add(waited);
        worked
    }

    fn restart(&mut self) {
        if self.starts_at.is_some_and(|at| at <= self.now) {
            self.starts_at = None;
            self.first = Some(self.start(""));
            self.happenings.push(Happening::Note { at: self.now, text: "the operator starts".to_owned() });
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
        self.happenings.push(Happening::Note { at: self.now, text });
    }
}

impl Stage for InMemory {
    type Realm = World;

    fn with<R>(&mut self, act: impl FnOnce(&mut World) -> R) -> R {
        act(&mut self.world)
    }

    fn operator(&mut self, event: OperatorEvent) {
        match event {
            OperatorEvent::Start => self.first = Some(self.start("")),
            OperatorEvent::Stop => {
                let first = self.first.take();
                self.stop(first);
            }
            OperatorEvent::Kill => self.first = None,
            OperatorEvent::CutOff(on) => self.first.iter_mut().for_each(|replica| replica.cut_off(on)),
            OperatorEvent::Second(true) => self.second = Some(self.start("second")),
            OperatorEvent::Second(false) => {
                let second = self.second.take();
                self.stop(second);
            }
            OperatorEvent::DieAfter(calls, down) => {
                self.down_for = down;
                if let Some(replica) = &mut self.first {
                    replica.dies_after = Some(calls);
                }
            }
            OperatorEvent::Lag(kind, on) => self.first.iter_mut().for_each(|replica| replica.lag(kind, on)),
            OperatorEvent::Gap(kind, on) => self.first.iter_mut().for_each(|replica| replica.gap(kind, on)),
            OperatorEvent::Jump(by) => {
                if let Some(replica) = &mut self.first {
                    replica.skew = replica.skew.saturating_add(by);
                }
            }
        }
    }

    fn now(&self) -> Duration {
        self.now
    }

    fn next_due(&mut self) -> Option<Duration> {
        let world = self.world.next_due().map(|at| self.since_start(at));
        let operators = [&self.first, &self.second].into_iter().flatten().filter_map(Replica::next_due);
        operators.chain(world).chain(self.starts_at).min()
    }

    fn next_work(&mut self) -> Option<Duration> {
        let world = self.world.next_due().map(|at| self.since_start(at));
        let operators = [&self.first, &self.second].into_iter().flatten().filter_map(Replica::next_work);
        operators.chain(world).chain(self.starts_at).min()
    }

    fn run_until(&mut self, at: Duration) {
        self.moment();
        while let Some(due) = self.next_due().filter(|due| *due <= at) {
            // Something that is due and does not happen must not hold the story up.
            self.now = due.max(self.now.saturating_add(Duration::from_millis(1))).min(at.max(self.now));
            self.moment();
            if self.now >= at {
                break;
            }
        }
        self.now = at.max(self.now);
        self.moment();
    }

    fn take_happenings(&mut self) -> Vec<Happening> {
        std::mem::take(&mut self.happenings)
    }
}
