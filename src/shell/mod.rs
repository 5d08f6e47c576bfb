//! Everything that waits: sockets, the clock, the log. It drives the core and decides nothing.

pub mod client;
pub mod clock;
pub mod debug;
mod election_options;
pub mod execute;
pub mod health;
pub mod http;
pub mod leader;
pub mod limits;
pub mod logs;
pub mod metrics;
pub mod options;
pub mod reconcile;
pub mod recorder;
pub mod reference;
pub mod registry;
mod shutdown;
mod startup_error;
pub mod state;
pub mod telling;
pub mod transport;
pub mod watch;
pub mod workers;

pub use shutdown::{Shutdown, Stopper, shutdown};

use crate::core::control::announcer::Announcer;
use crate::core::control::election::Ending;
use crate::core::control::kinds::Kind;
use client::Api;
use clock::Clock;
use debug::Desk;
use health::Health;
use http::Serves;
use leader::Leadership;
use metrics::Metrics;
use options::{Settings, StartupError};
use recorder::Recorder;
use registry::Registry;
use state::State;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use telling::{Pace, Witness};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tracing::{info, warn};

/// How the operator ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// It was asked to stop, and nothing is under way.
    Stopped,
    /// It lost its lease: nothing was sent any more.
    LeaseLost,
}

impl Exit {
    /// The exit code.
    pub const fn code(self) -> u8 {
        match self {
            Self::Stopped => 0,
            Self::LeaseLost => 1,
        }
    }
}

/// One operator: everything that its tasks share.
pub struct Shell {
    /// The API server.
    pub api: Api,
    /// The snapshot registry.
    pub registry: Registry,
    /// View and queue.
    pub state: State,
    /// Who leads.
    pub leader: Leadership,
    /// What the watches were last heard of.
    pub health: Health,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// The time.
    pub clock: Clock,
    /// What it was told at the start.
    pub settings: Settings,
    /// Whoever listens to passes.
    pub witness: Option<Arc<dyn Witness>>,
    /// Whoever keeps the last passes for the debug address.
    pub desk: Option<Arc<dyn Desk>>,
    /// Whoever says when the next pass may begin; without, at once.
    pub pace: Option<Arc<dyn Pace>>,
    announcer: Mutex<Announcer>,
    /// Whoever writes passes down.
    pub recorder: Option<Recorder>,
    stopping: AtomicBool,
}

impl Shell {
    /// An operator that has not started.
    pub fn new(client: kube::Client, registry: Registry, settings: Settings, clock: Clock) -> Self {
        let metrics = Arc::new(Metrics::new());
        Self {
            api: Api::new(client, clock.clone(), settings.http_timeout, Arc::clone(&metrics))
                .read_only(settings.dry_run),
            registry,
            state: State::new(clock.clone()),
            leader: Leadership::new(settings.election.as_ref(), settings.http_timeout, clock.clone()),
            health: Health::new(clock.clone(), settings.watch_timeout),
            metrics,
            clock,
            announcer: Mutex::new(Announcer::new(&settings.instance)),
            settings,
            witness: None,
            desk: None,
            pace: None,
            recorder: None,
            stopping: AtomicBool::new(false),
        }
    }

    /// The same, with somebody who listens to its passes.
    #[must_use]
    pub fn with_witness(mut self, witness: Arc<dyn Witness>) -> Self {
        self.witness = Some(witness);
        self
    }

    /// The same, with somebody who keeps its last passes.
    #[must_use]
    pub fn with_desk(mut self, desk: Arc<dyn Desk>) -> Self {
        self.desk = Some(desk);
        self
    }

    /// The same, with somebody who says when its passes may begin.
    #[must_use]
    pub fn with_pace(mut self, pace: Arc<dyn Pace>) -> Self {
        self.pace = Some(pace);
        self
    }

    /// Who makes events of what is announced.
    pub fn announcer(&self) -> MutexGuard<'_, Announcer> {
        self.announcer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same, recording its passes where its settings say so.
    pub fn recording(mut self) -> Result<Self, StartupError> {
        if let Some(to) = &self.settings.record {
            self.state.keep_objects();
            self.recorder = Some(Recorder::start(to, Arc::clone(&self.metrics))?);
        }
        Ok(self)
    }

    /// Why it is not ready; nothing where it is.
    pub fn unready(&self) -> Vec<String> {
        if self.stopping.load(Ordering::Relaxed) {
            return vec!["the operator is stopping".to_owned()];
        }
        self.health.unready()
    }
}

impl std::fmt::Debug for Shell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shell").field("registry", &self.registry).field("settings", &self.settings).finish()
    }
}

/// Runs an operator until it is asked to stop. Dropping this future ends everything at once, as a crash would.
pub async fn run_operator(
    client: kube::Client,
    registry: Registry,
    settings: Settings,
    clock: Clock,
    shutdown: Shutdown,
) -> Result<Exit, StartupError> {
    run(Arc::new(Shell::new(client, registry, settings, clock).recording()?), shutdown).await
}

/// The same, for whoever wants to look at the running operator.
pub async fn run(shell: Arc<Shell>, shutdown: Shutdown) -> Result<Exit, StartupError> {
    let ports = Ports::take(&shell.settings).await?;
    Ok(run_on(shell, ports, shutdown).await)
}

/// The same, on ports that are taken already.
pub async fn run_on(shell: Arc<Shell>, ports: Ports, mut shutdown: Shutdown) -> Exit {
    let mut servers = ports.serve(&shell);
    let mut watches = JoinSet::new();
    for kind in Kind::ALL {
        let shell = Arc::clone(&shell);
        watches.spawn(async move { watch::keep(&shell, kind).await });
    }
    shell.metrics.workers(shell.settings.workers);
    tokio::select! {
        biased;
        () = shutdown.wanted() => {}
        () = shell.health.settled() => info!("every kind is listed"),
    }
    // Whoever has not seen the cluster has no use for the lease.
    let exit = if shutdown.is_wanted() { Exit::Stopped } else { lead(&shell, shutdown).await };
    watches.shutdown().await;
    servers.shutdown().await;
    if let Some(recorder) = &shell.recorder {
        recorder.close();
    }
    exit
}

/// Waits for the lease, works while it lasts, and gives it back.
async fn lead(shell: &Arc<Shell>, mut shutdown: Shutdown) -> Exit {
    let mut election = {
        let shell = Arc::clone(shell);
        tokio::spawn(async move { leader::keep(&shell).await })
    };
    let mut workers = JoinSet::new();
    let (stopper, stopping) = self::shutdown();
    let exit = loop {
        tokio::select! {
            biased;
            () = shutdown.wanted() => break Exit::Stopped,
            // It does not panic and nobody cancels it: an error cannot mean that the lease is still held.
            ended = &mut election => break exit(ended.ok()),
            () = shell.leader.gained(), if workers.is_empty() => {
                info!("the work begins");
                for _ in 0..shell.settings.workers {
                    let (shell, stopping) = (Arc::clone(shell), stopping.clone());
                    workers.spawn(async move { workers::work(&shell, stopping).await });
                }
            }
        }
    };
    shell.stopping.store(true, Ordering::Relaxed);
    stopper.stop();
    info!("stopping: no more work is taken");
    // The lease is renewed meanwhile, where it is held; where it is lost, nothing leaves any more.
    let finished = async { while workers.join_next().await.is_some() {} };
    let abandoned = tokio::time::timeout(shell.settings.shutdown_timeout, finished).await.is_err();
    if abandoned {
        // Safe: what is in flight is guarded by its precondition, and the next start looks afresh.
        warn!("what was under way did not end in time and is abandoned");
    }
    workers.shutdown().await;
    // What was abandoned may still be on its way: then others wait the lease out.
    if exit == Exit::LeaseLost || !shell.leader.is_needed() || abandoned {
        election.abort();
        return exit;
    }
    shell.leader.stop();
    self::exit(election.await.ok())
}

fn exit(ending: Option<Ending>) -> Exit {
    match ending {
        Some(Ending::Stopped) => Exit::Stopped,
        Some(Ending::Lost(_)) | None => Exit::LeaseLost,
    }
}

/// The ports of one operator, taken before anything else starts.
#[derive(Debug, Default)]
pub struct Ports(Vec<(TcpListener, Serves)>);

impl Ports {
    /// Takes those that the settings name.
    pub async fn take(settings: &Settings) -> Result<Self, StartupError> {
        let mut ports = Self::default();
        for (flag, address, serves) in [
            ("--metrics-bind-address", &settings.metrics, Serves::Metrics),
            ("--health-probe-bind-address", &settings.probes, Serves::Probes),
        ] {
            if let Some(address) = address {
                ports.add(http::listen_as(flag, address).await?, serves);
            }
        }
        if let Some(address) = &settings.debug {
            match http::listen_as("--debug-bind-address", address).await {
                Ok(listener) => ports.add(listener, Serves::Debug),
                // A port that nobody asked for keeps no operator from its work.
                Err(error) if (address.host.as_str(), address.port) == debug::DEFAULT => {
                    warn!("nothing is served for debugging: {error}");
                }
                Err(error) => return Err(error),
            }
        }
        Ok(ports)
    }

    /// One more.
    pub fn add(&mut self, listener: TcpListener, serves: Serves) {
        self.0.push((listener, serves));
    }

    fn serve(self, shell: &Arc<Shell>) -> JoinSet<()> {
        let mut servers = JoinSet::new();
        for (listener, serves) in self.0 {
            if let Ok(address) = listener.local_addr() {
                info!(%address, "serving {serves}");
            }
            servers.spawn(http::serve(Arc::clone(shell), listener, serves));
        }
        servers
    }
}
