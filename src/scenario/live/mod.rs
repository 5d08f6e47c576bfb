//! The third stage: the shell as it runs in a cluster, against a real control plane, with the nodes and the registry of
//! `sim` as its nodes and its registry. Time is real, and so are the control plane's controllers and its scheduler.

mod abreast;
pub mod house;
pub mod lens;
mod line;
mod mirror;
pub mod outage;
pub mod realm;
mod registry;
mod rights;

use super::happenings::Happening;
use super::process::wire::Beyond;
use super::process::{Process, Terms};
use super::projection::Picture;
use super::runner::Played;
use super::script::Script;
use super::setting;
use super::stage::{OperatorEvent, QUIET, Stage};
use super::standing;
use crate::core::control::kinds::Kind;
use crate::shell::clock::Clock;
use crate::shell::options::Settings;
use crate::shell::registry::{Local, Registry};
use abreast::Abreast;
use jiff::Timestamp;
use lens::{Lens, namespaces};
use line::{Line, Shared, lock};
use outage::Outage;
use realm::Cluster;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// A call that is not answered is given up after this long.
const DEADLINE: Duration = Duration::from_secs(2);
/// Nothing has happened for this long: whoever acts on something has acted.
const STILL: Duration = Duration::from_millis(1_500);
/// The same while a namespace goes: its controller looks again by itself, and says nothing before. Where pods outlast
/// their grace period it does so after pauses that double up to a minute.
const STILL_DYING: Duration = Duration::from_secs(65);
/// The second operator of an election starts this much later than the first, or once that one leads.
const HEAD_START: Duration = Duration::from_secs(1);
/// A story is given so much longer than in memory before it goes on without having settled.
const LONGER: Duration = Duration::from_secs(40);

/// A control plane that stories are played on.
#[derive(Clone)]
pub struct Ground {
    /// What watches and operators run on.
    pub handle: Handle,
    /// The client of the administrator: people and nodes.
    pub admin: kube::Client,
    /// The client of the operator.
    pub operator: kube::Client,
    /// Roles and bindings that are the operator's in its own namespace.
    pub rights: Arc<[serde_json::Value]>,
    /// When the control plane was away.
    pub outage: Arc<Outage>,
}

/// One story's part of it.
pub struct Live {
    ground: Ground,
    cluster: Cluster,
    line: Arc<dyn Beyond>,
    shared: Arc<Shared>,
    start: Timestamp,
    origin: Instant,
    first: Option<Process>,
    second: Option<Process>,
    refused: Vec<Kind>,
    starts_at: Option<Duration>,
    down_for: Duration,
    /// Operators write nothing.
    dry_run: bool,
    /// Operators elect a leader.
    elects: bool,
    /// Operators started so far.
    processes: u32,
    /// Settling ends after this long, whether it is settled or not.
    longest: Duration,
    happenings: Vec<Happening>,
    abreast: Abreast,
    /// The registries that are served.
    servers: Mutex<Vec<JoinHandle<()>>>,
}

impl Live {
    /// The cluster as this story finds it. The number is the story's own; it was told in memory, and should take as long as
    /// `expected`.
    pub fn new(
        ground: &Ground,
        script: &Script,
        number: usize,
        told: &Played,
        expected: Duration,
    ) -> Result<Self, String> {
        let _within = ground.handle.enter();
        let (start, origin) = (Timestamp::now(), Instant::now());
        let namespaces = namespaces(script);
        let only = Some(script.given.namespace.as_str()).filter(|_| namespaces.len() == 1);
        let lens = Arc::new(Lens::new(number, only));
        let shared = Arc::new(Shared::new(realm::rules(), origin, Arc::clone(&ground.outage)));
        let cluster = Cluster::new(&ground.handle, &ground.admin, &lens, &shared);
        let seen = Arc::clone(&lens);
        let line: Arc<dyn Beyond> = Arc::new(Line {
            lens,
            operator: ground.operator.clone(),
            people: ground.admin.clone(),
            shared: Arc::clone(&shared),
        });
        let mut live = Self {
            ground: ground.clone(),
            cluster,
            line,
            shared,
            start,
            origin,
            first: None,
            second: None,
            refused: setting::refused_kinds(&script.given),
            starts_at: None,
            down_for: Duration::ZERO,
            dry_run: script.given.settings.dry_run,
            elects: script.given.settings.leader_election,
            processes: 0,
            longest: expected.saturating_add(LONGER),
            happenings: Vec::new(),
            abreast: Abreast::with(told),
            servers: Mutex::default(),
        };
        setting::set_up(&mut live.cluster, &script.given)?;
        if live.elects {
            rights::give(&mut live.cluster, &seen, &ground.rights)?;
        }
        live.cluster.take_told();
        Ok(live)
    }

    fn start(&mut self, name: &str) -> Process {
        self.processes = self.processes.saturating_add(1);
        let election = self.elects.then(|| standing::settings(name, self.processes));
        let _within = self.ground.handle.enter();
        // A watch that a story holds still stays so: its silence is not to be noticed within the story.
        let watch_timeout = Duration::from_secs(3_600);
        let settings = Settings {
            instance: name.to_owned(),
            dry_run: self.dry_run,
            http_timeout: DEADLINE,
            watch_timeout,
            election,
            ..Settings::default()
        };
        Process::start(Terms {
            name,
            beyond: Arc::clone(&self.line),
            refused: &self.refused,
            origin: self.origin,
            now: Timestamp::now(),
            settings,
            registry: &|answer, clock| self.registry(answer, clock),
            pace: None,
        })
    }

    /// The registry of one operator, on a port of its own.
    fn registry(&self, answer: Local, clock: Clock) -> Registry {
        let registry = match registry::serve(answer, clock.clone()) {
            Ok((registry, server)) => {
                lock(&self.servers).push(server);
                registry
            }
            Err(error) => registry::none(&error.to_string(), clock),
        };
        registry.with_deadline(DEADLINE)
    }

    fn operators(&self) -> impl Iterator<Item = &Process> {
        [&self.first, &self.second].into_iter().flatten()
    }

    /// One moment, for no longer than this.
    fn moment(&mut self, longest: Duration) {
        self.cluster.tick(longest);
        if self.first.as_ref().is_some_and(Process::is_dead) {
            self.hear();
            self.first = None;
            self.starts_at = Some(self.now().saturating_add(self.down_for));
        }
        if self.ground.outage.is_felt() {
            self.start_again();
        }
        let now = self.now();
        if self.starts_at.is_some_and(|at| at <= now) {
            self.starts_at = None;
            let operator = self.start("");
            self.first = Some(operator);
            self.happenings.push(Happening::Note { at: now, text: "the operator starts".to_owned() });
            self.shared.touch();
        }
    }

    /// Moment by moment, until then.
    fn pass(&mut self, until: Duration) {
        loop {
            let left = until.saturating_sub(self.now());
            self.moment(left);
            if left.is_zero() {
                return;
            }
        }
    }

    /// Who lost its lease because nobody could renew one is started anew, as a Deployment does it.
    fn start_again(&mut self) {
        if self.first.as_ref().is_some_and(Process::is_over) {
            self.hear();
            let operator = self.start("");
            self.first = Some(operator);
        }
        if self.second.as_ref().is_some_and(Process::is_over) {
            self.hear();
            let operator = self.start("second");
            self.second = Some(operator);
        }
    }

    /// Takes note of what has happened.
    fn hear(&mut self) {
        let stories: Vec<_> = self.operators().flat_map(Process::take).collect();
        let mut heard: Vec<Happening> = stories.into_iter().map(|story| Happening::Pass(Box::new(story))).collect();
        heard.extend(self.operators().flat_map(Process::take_told));
        heard.extend(self.cluster.take_told().into_iter().map(|told| {
            let text = told.text.strip_prefix(&format!("{} ", told.actor)).unwrap_or(&told.text).to_owned();
            Happening::World { at: realm::since(self.start, told.at), actor: told.actor, text }
        }));
        self.abreast.heard(&heard);
        self.happenings.extend(heard);
    }

    /// For how long nothing has happened; not at all while a pass is under way.
    fn still_for(&self) -> Duration {
        if self.operators().any(Process::is_busy) { Duration::ZERO } else { self.shared.quiet_for() }
    }

    fn stop(&mut self, second: bool) {
        let operator = if second { self.second.take() } else { self.first.take() };
        if let Some(operator) = operator {
            self.happenings.extend(operator.take().into_iter().map(|story| Happening::Pass(Box::new(story))));
            let told = self.ground.handle.block_on(operator.stop());
            self.happenings.extend(told);
        }
    }

    /// What a watch has to show, it shows now.
    fn show(operator: &Process) {
        operator.open(true);
    }
}

impl Stage for Live {
    type Realm = Cluster;

    fn with<R>(&mut self, act: impl FnOnce(&mut Cluster) -> R) -> R {
        self.shared.touch();
        act(&mut self.cluster)
    }

    fn operator(&mut self, event: OperatorEvent) {
        self.shared.touch();
        match event {
            OperatorEvent::Start => {
                let operator = self.start("");
                self.first = Some(operator);
            }
            OperatorEvent::Stop => self.stop(false),
            OperatorEvent::Kill => {
                self.hear();
                self.first = None;
            }
            OperatorEvent::CutOff(on) => self.first.iter().for_each(|operator| operator.cut_off(on)),
            OperatorEvent::Second(true) => {
                // Who comes second finds the lease taken, where it can be.
                let until = self.now().saturating_add(HEAD_START);
                while self.first.as_ref().is_some_and(|first| !first.shell.leader.leads()) && self.now() < until {
                    self.moment(Duration::from_millis(20));
                }
                let operator = self.start("second");
                self.second = Some(operator);
            }
            OperatorEvent::Second(false) => self.stop(true),
            OperatorEvent::DieAfter(calls, down) => {
                self.down_for = down;
                self.first.iter().for_each(|operator| operator.die_after(calls));
            }
            OperatorEvent::Lag(kind, on) => self.first.iter().for_each(|operator| {
                operator.lag(kind, on);
                Self::show(operator);
            }),
            OperatorEvent::Gap(kind, on) => self.first.iter().for_each(|operator| {
                operator.gap(kind, on);
                Self::show(operator);
            }),
            OperatorEvent::Jump(by) => self.first.iter().for_each(|operator| operator.shell.clock.jump(by)),
        }
    }

    fn now(&self) -> Duration {
        self.origin.elapsed()
    }

    fn next_due(&mut self) -> Option<Duration> {
        let now = self.now();
        let nodes = self.cluster.next_due().map(|due| now.saturating_add(due));
        self.operators().filter_map(Process::next_due).chain(nodes).chain(self.starts_at).min()
    }

    fn next_work(&mut self) -> Option<Duration> {
        let now = self.now();
        let nodes = self.cluster.next_due().map(|due| now.saturating_add(due));
        self.operators().filter_map(Process::next_work).chain(nodes).chain(self.starts_at).min()
    }

    /// Longer where the control plane is away meanwhile.
    fn run_until(&mut self, at: Duration) {
        self.pass(at);
        while self.ground.outage.is_felt() {
            self.moment(Duration::from_millis(100));
        }
    }

    fn waited(&mut self, step: usize, settled: bool) {
        let begun = self.now();
        loop {
            self.hear();
            let stands = Picture::of(&mut self.cluster);
            let behind = self.abreast.behind(step, &stands, settled);
            if behind.is_empty() {
                self.abreast.grace = self.abreast.grace.saturating_sub(self.now().saturating_sub(begun));
                return;
            }
            if self.now().saturating_sub(begun) >= self.abreast.grace {
                let text = format!("has not come yet: {}", behind.join(", "));
                self.happenings.push(Happening::Note { at: self.now(), text });
                self.abreast.grace = Duration::ZERO;
                return;
            }
            self.moment(Duration::from_millis(100));
        }
    }

    fn settle(&mut self) {
        let begun = self.now();
        loop {
            let longest = self.longest.saturating_add(self.ground.outage.allowance(self.origin));
            let end = begun.saturating_add(longest);
            self.pass(self.now().saturating_add(Duration::from_millis(100)));
            let wanted = if self.cluster.is_dying() { STILL_DYING } else { STILL };
            let now = self.now();
            if now > end {
                return;
            }
            if self.still_for() < wanted || self.ground.outage.is_felt() {
                continue;
            }
            match self.next_work() {
                Some(due) if due <= now.saturating_add(QUIET) => self.pass(due.min(end)),
                Some(_) | None => return,
            }
        }
    }

    fn take_happenings(&mut self) -> Vec<Happening> {
        self.hear();
        let mut happened = std::mem::take(&mut self.happenings);
        happened.sort_by_key(|happening| match happening {
            Happening::World { at, .. } | Happening::Note { at, .. } => *at,
            Happening::Pass(pass) => pass.at,
            Happening::Step(_) => Duration::ZERO,
        });
        happened
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.first = None;
        self.second = None;
        lock(&self.servers).iter().for_each(JoinHandle::abort);
        self.cluster.clear();
    }
}
