//! `sandbox`: the operator and a whole cluster in one process.

mod apply;
mod ports;
mod progress;
mod until;

use super::paint::Paint;
use super::run::on_signal;
use super::{Failure, Report};
use crate::scenario::ring::Ring;
use crate::shell::clock::Clock;
use crate::shell::leader::NAMESPACE;
use crate::shell::options::{RunOptions, StartupError};
use crate::shell::registry::{Local, Registry};
use crate::shell::{Shell, Stopper, logs, run_on, shutdown};
use crate::sim::node::NodeSpec;
use crate::sim::server::Cluster;
use crate::sim::store::{ADMIN, Resource};
use crate::sim::world::{OPERATOR, World};
use apply::{Applied, Manifest};
use ports::{Listening, SandboxPorts};
use progress::Progress;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;
use until::Until;

/// The nodes: both of the default pool, the first one of the class that `examples/full.yaml` asks for.
const NODES: [(&str, Option<&str>); 2] = [("node-a", Some("n2-cascade-lake-v1")), ("node-b", None)];
/// What happens at once is told at once: a burst of writes is looked at when it has been this long under way.
const BURST: Duration = Duration::from_millis(50);
/// How long the operator may take at the end. Nothing outlives the sandbox, so that nothing is lost.
const GOODBYE: Duration = Duration::from_millis(1_000);

const HELP: &str = "\
A namespace that a manifest names and that does not exist is created, and stderr says so. Objects that exist are \
updated. Unknown fields are refused, as kubectl does.

COND is one of
  KIND/NAME[@NAMESPACE]=PHASE            cocoonset/demo=Running
  KIND/NAME[@NAMESPACE]:CONDITION=True   cocoonset/demo@team-a:Ready=True   (False and Unknown, too)
  pods=ready                             there are pods, all are ready, and no set is short of them
  gone                                   nothing of what -f applied is left, nor a pod of it
Several hold when all hold at the same time. The namespace is default where none is named.

With --until: 0 once it holds, 1 at the timeout or when interrupted before. Without: 0 at Ctrl-C or SIGTERM. \
3 where a port is taken; only the default ports of metrics, probes and debugging give way to free ones, which stderr names.

The sandbox has a registry of its own and no kubeconfig: those flags of run mean nothing here, and with --no-operator \
none of them does; --record and --dry-run are refused then. See docs/sandbox.md.";

/// `sandbox`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = HELP,
    mut_arg("log_level", |arg| arg.default_value("warn")),
    mut_arg("oci_registry", |arg| arg.hide(true)),
    mut_arg("oci_registry_plain_http", |arg| arg.hide(true)),
    mut_arg("leader_elect", |arg| arg.default_value("false")),
    mut_arg("kubeconfig", |arg| arg.hide(true)))]
pub struct Args {
    /// Apply the manifests of this file at the start (YAML or JSON, several documents, lists); - for stdin; may be given
    /// several times
    #[arg(short = 'f', long = "file", value_name = "FILE")]
    pub files: Vec<String>,
    /// End once this holds, see below; may be given several times
    #[arg(long, value_name = "COND")]
    pub until: Vec<String>,
    /// Longest wait for --until, e.g. 30s or 5m
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = patience, requires = "until")]
    pub timeout: Duration,
    /// Where the Kubernetes API is served; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8001")]
    pub listen: String,
    /// Serve the snapshot registry here, e.g. 127.0.0.1:5001
    #[arg(long, value_name = "ADDRESS")]
    pub registry_listen: Option<String>,
    /// How many times faster than usual the simulated nodes work
    #[arg(long, value_name = "N", default_value = "1", value_parser = speed)]
    pub speed: f64,
    /// Serve the cluster alone, for an operator started beside it
    #[arg(long)]
    pub no_operator: bool,
    /// Those of `run`.
    #[command(flatten, next_help_heading = "Options of run")]
    pub run: RunOptions,
}

/// How a stay ended.
enum End {
    Held,
    TimedOut,
    Interrupted,
    Broke(Failure),
}

/// `sandbox`.
pub fn run(args: &Args) -> Result<Report, Failure> {
    check(args)?;
    let manifests = apply::read(&args.files)?;
    if args.files.is_empty() && args.until.iter().any(|text| text == "gone") {
        return Err(Failure::Usage("--until \"gone\": nothing was applied; expected -f FILE with it".to_owned()));
    }
    logs::start(args.run.log_level, args.run.log_format).map_err(failure)?;
    std::panic::set_hook(Box::new(|panic| tracing::warn!("{panic}")));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::Environment(format!("the runtime: {error}")))?;
    let ended = runtime.block_on(Sandbox::start_and_stay(args, &manifests));
    runtime.shutdown_background();
    ended
}

/// Refuses what would be passed over without a word where no operator runs.
fn check(args: &Args) -> Result<(), Failure> {
    let wishes = [
        ("--record", args.run.record.is_some(), "there are no passes to record"),
        ("--dry-run", args.run.dry_run, "nothing is decided that could be held back"),
    ];
    match wishes.iter().find(|(_, given, _)| *given && args.no_operator) {
        None => Ok(()),
        Some((flag, _, why)) => Err(Failure::Usage(format!(
            "{flag}: with --no-operator {why}; expected it without --no-operator, or with the operator beside the sandbox"
        ))),
    }
}

/// A cluster that is served, and what is waited for.
struct Sandbox<'a> {
    args: &'a Args,
    cluster: Cluster,
    applied: Vec<Applied>,
    until: Vec<Until>,
    began: Instant,
    /// Ends only when something broke.
    tasks: JoinSet<Failure>,
}

impl<'a> Sandbox<'a> {
    async fn start_and_stay(args: &'a Args, manifests: &[Manifest]) -> Result<Report, Failure> {
        let ports = SandboxPorts::parse(args).map_err(failure)?;
        let mut world = world(args);
        let applied = apply::apply(&mut world, manifests)?;
        let kinds: Vec<Resource> = world.store.resources().cloned().collect();
        let until = args.until.iter().map(|text| Until::parse(text, &kinds));
        let until = until.collect::<Result<Vec<_>, String>>().map_err(Failure::Usage)?;
        let wanted = on_signal().map_err(failure)?;
        let listening = ports.take().await.map_err(failure)?;
        // Between the manifests and here nothing was driven: the cluster's time begins now.
        let cluster = Cluster::new(world);
        let mut sandbox = Self { args, cluster, applied, until, began: Instant::now(), tasks: JoinSet::new() };
        say(&listening.told(&sandbox.applied));
        let operator = sandbox.serve(listening)?;
        let end = sandbox.stay(wanted).await;
        if let Some((stopper, mut running)) = operator {
            stopper.stop();
            let finished = async { while running.join_next().await.is_some() {} };
            // Cut off in the middle is safe: the cluster goes at the same moment.
            tokio::time::timeout(GOODBYE, finished).await.ok();
        }
        sandbox.report(end)
    }

    /// Starts everything; what comes back ends the operator, where there is one.
    fn serve(&mut self, listening: Listening) -> Result<Option<(Stopper, JoinSet<()>)>, Failure> {
        let driver = self.cluster.clone();
        self.tasks.spawn(async move {
            driver.drive().await;
            Failure::Environment("the cluster stood still".to_owned())
        });
        let api = self.cluster.clone();
        self.tasks.spawn(async move { broke("the API", api.serve(listening.api, ADMIN).await) });
        if let Some(listener) = listening.registry {
            let registry = self.cluster.clone();
            self.tasks.spawn(async move { broke("the registry", registry.serve_registry(listener).await) });
        }
        let Some((ports, settings)) = listening.operator else { return Ok(None) };
        let clock = Clock::real();
        let registry = Registry::local(local(&self.cluster), clock.clone());
        let ring = Arc::new(Ring::new(clock.clone()));
        let shell = Shell::new(self.cluster.client(OPERATOR, "default"), registry, settings, clock);
        let shell = shell.recording().map_err(failure)?.with_desk(ring);
        let (stopper, wanted) = shutdown();
        let mut running = JoinSet::new();
        running.spawn(async move {
            run_on(Arc::new(shell), ports, wanted).await;
        });
        Ok(Some((stopper, running)))
    }

    /// Tells what happens until it is over.
    async fn stay(&mut self, mut wanted: crate::shell::Shutdown) -> End {
        let mut progress = Progress::new(Paint::for_stderr());
        let mut changes = self.cluster.changes();
        let deadline = self.began.checked_add(self.args.timeout).filter(|_| !self.until.is_empty());
        loop {
            changes.borrow_and_update();
            // In one look, so that what ends the wait has been told.
            let (lines, unmet) =
                self.cluster.with(|world| (progress.look(world, self.began.elapsed()), self.unmet(world)));
            lines.iter().for_each(|line| say(line));
            // What is told here is told above; it must not pile up.
            drop(self.cluster.take_told());
            if !self.until.is_empty() && unmet.is_empty() {
                return End::Held;
            }
            let over = async {
                match deadline {
                    Some(deadline) => tokio::time::sleep_until(deadline).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = wanted.wanted() => return End::Interrupted,
                Some(broken) = self.tasks.join_next() => {
                    let lost = |error: tokio::task::JoinError| Failure::Environment(format!("a server ended: {error}"));
                    return End::Broke(broken.unwrap_or_else(lost));
                }
                () = over => return End::TimedOut,
                _ = changes.changed() => tokio::time::sleep(BURST).await,
            }
        }
    }

    /// What does not hold, each with what is so instead.
    fn unmet(&self, world: &World) -> Vec<String> {
        let check =
            |until: &Until| until.check(world, &self.applied).err().map(|instead| format!("{}: {instead}", until.text));
        self.until.iter().filter_map(check).collect()
    }

    fn report(&self, end: End) -> Result<Report, Failure> {
        let unmet = match end {
            End::Broke(failure) => return Err(failure),
            End::Interrupted if self.until.is_empty() => return Ok(Report::default()),
            End::Held => Vec::new(),
            // The last moment counts.
            End::TimedOut | End::Interrupted => self.cluster.with(|world| self.unmet(world)),
        };
        if unmet.is_empty() {
            let passed = self.began.elapsed().as_secs_f64();
            let lines = self.until.iter().map(|until| format!("{} after {passed:.1}s\n", until.text));
            return Ok(Report::of(lines.collect::<String>()));
        }
        let why = match end {
            End::TimedOut => format!("not within {}s", self.args.timeout.as_secs_f64()),
            End::Interrupted | End::Held | End::Broke(_) => "interrupted before it held".to_owned(),
        };
        let lines: Vec<String> = unmet.iter().map(|unmet| format!("--until {unmet} ({why})")).collect();
        Err(Failure::Unmet(lines.join("\n")))
    }
}

fn world(args: &Args) -> World {
    let mut world = World::new(jiff::Timestamp::now());
    world.nodes.settings_mut().speed = args.speed;
    // Where the lease of an operator beside it lies.
    world.store.add_namespace(NAMESPACE);
    for (name, class) in NODES {
        world.add_node(NodeSpec { class: class.map(str::to_owned), ..NodeSpec::named(name) });
    }
    world
}

/// The sandbox's registry as the operator in the same process asks it.
fn local(cluster: &Cluster) -> Local {
    let cluster = cluster.clone();
    Arc::new(move |verb, vm, tag, digest| {
        let reply = cluster.with(|world| world.registry_call(verb, &vm, &tag, digest.as_deref()));
        Box::pin(async { reply })
    })
}

fn broke(what: &str, ended: std::io::Result<()>) -> Failure {
    let why = ended.err().map(|error| format!(": {error}")).unwrap_or_default();
    Failure::Environment(format!("{what} is served no more{why}"))
}

/// A line for whoever watches; nothing is to be done where nobody does.
fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

fn failure(error: StartupError) -> Failure {
    let message = error.to_string();
    if error.code() == super::USAGE { Failure::Usage(message) } else { Failure::Environment(message) }
}

fn patience(text: &str) -> Result<Duration, String> {
    let expected = || "expected a duration from 1s to 24h, e.g. 30s or 5m".to_owned();
    let parsed: jiff::SignedDuration = text.trim().parse().map_err(|_| expected())?;
    let duration = Duration::try_from(parsed).map_err(|_| expected())?;
    if (1..=86_400).contains(&duration.as_secs()) { Ok(duration) } else { Err(expected()) }
}

fn speed(text: &str) -> Result<f64, String> {
    let number = text.trim().parse().ok().filter(|number: &f64| (0.001..=100_000.0).contains(number));
    number.ok_or_else(|| "expected a number from 0.001 to 100000; 1 is the usual pace".to_owned())
}
