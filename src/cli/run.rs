//! `run`: the operator, in a cluster or beside one.

use crate::core::control::lease::NAME;
use crate::core::wire::{Method, Reply, Request};
use crate::shell::client::{self, Api};
use crate::shell::clock::Clock;
use crate::shell::options::{RunOptions, StartupError};
use crate::shell::registry::Registry;
use crate::shell::registry::credentials::Keyring;
use crate::shell::{Exit, Stopper, logs, run_operator, shutdown};
use kube::config::{KubeConfigOptions, Kubeconfig};
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tracing::{info, warn};

/// How long the API server may take to answer at the start; after that something is wrong that waiting does not mend.
const PATIENCE: Duration = Duration::from_secs(30);
/// The pause between two tries.
const PAUSE: Duration = Duration::from_secs(2);

/// Runs the operator until SIGTERM or Ctrl-C; the exit code. What stops it from starting is one line on stderr.
pub fn run(options: &RunOptions) -> u8 {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let result = runtime
        .map_err(|error| StartupError::Environment { what: "the runtime", why: error.to_string() })
        .and_then(|runtime| runtime.block_on(operate(options)));
    match result {
        Ok(exit) => exit.code(),
        Err(error) => {
            eprintln!("cocoon-operator run: {error}");
            error.code()
        }
    }
}

async fn operate(options: &RunOptions) -> Result<Exit, StartupError> {
    let base = options.registry()?;
    let settings = options.settings()?;
    logs::start(options.log_level, options.log_format)?;
    // One provider, whatever other crates bring along; an error says that there is one already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    std::panic::set_hook(Box::new(|panic| warn!("{panic}")));
    if let Some(notice) = base.notice() {
        warn!("{notice}");
    }
    if let Some(notice) = settings.election.as_ref().and_then(|election| election.notice()) {
        warn!("{notice}");
    }
    let keyring = Keyring::of_environment();
    if let Some(notice) = keyring.notice(&base) {
        warn!("{notice}");
    }
    let clock = Clock::real();
    let config = config(options.kubeconfig.as_deref()).await?;
    let url = config.cluster_url.to_string();
    let client = client::connect(config)
        .map_err(|error| StartupError::Environment { what: "the client of the API server", why: error.to_string() })?;
    let mut shutdown = on_signal()?;
    tokio::select! {
        biased;
        () = shutdown.wanted() => return Ok(Exit::Stopped),
        reached = reachable(&client, &clock, &url, settings.http_timeout) => reached?,
    }
    info!(version = env!("CARGO_PKG_VERSION"), cluster = url, registry = %base, workers = settings.workers, "starting");
    match &settings.election {
        Some(election) => {
            let (namespace, identity) = (&election.namespace, &election.identity);
            info!(namespace, lease = NAME, identity, "a leader is elected");
        }
        None => info!("no leader is elected: no other replica may run"),
    }
    let registry = Registry::http(base, clock.clone())?.with_keyring(keyring);
    run_operator(client, registry, settings, clock, shutdown).await
}

/// The file that is named, else the cluster that this process runs in, else the file that kubectl takes.
pub(super) async fn config(named: Option<&str>) -> Result<kube::Config, StartupError> {
    if let Some(paths) = named.filter(|paths| !paths.trim().is_empty()) {
        let refuse =
            |why: kube::config::KubeconfigError| StartupError::Kubeconfig { path: paths.to_owned(), why: told(&why) };
        let mut merged = Kubeconfig::default();
        for path in std::env::split_paths(paths) {
            merged = merged.merge(Kubeconfig::read_from(path).map_err(refuse)?).map_err(refuse)?;
        }
        return kube::Config::from_custom_kubeconfig(merged, &KubeConfigOptions::default()).await.map_err(refuse);
    }
    match kube::Config::incluster() {
        Ok(config) => Ok(config),
        Err(why) => kube::Config::from_kubeconfig(&KubeConfigOptions::default())
            .await
            .map_err(|_| StartupError::NoCluster { why: told(&why) }),
    }
}

/// Waits for any answer of the API server: even a refusal shows that it is there.
async fn reachable(client: &kube::Client, clock: &Clock, url: &str, deadline: Duration) -> Result<(), StartupError> {
    let api = Api::new(client.clone(), clock.clone(), deadline.min(PATIENCE), Arc::default());
    let began = clock.since_start();
    loop {
        let why = match api.send("version", &Request::new(Method::Get, "/version")).await {
            Reply::Http { .. } => return Ok(()),
            Reply::TimedOut => "no answer within the deadline",
            Reply::Reset { sent: true } => "the connection broke",
            Reply::Reset { sent: false } => "no connection could be made",
            Reply::Fenced => "nothing may be sent",
        };
        if clock.since_start().saturating_sub(began) >= PATIENCE {
            return Err(StartupError::Unreachable { url: url.to_owned(), why: why.to_owned() });
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Ends on SIGTERM, as a node says it, and on Ctrl-C, as a person does. A second one is not waited for.
pub(super) fn on_signal() -> Result<crate::shell::Shutdown, StartupError> {
    let refuse = |error: std::io::Error| StartupError::Environment { what: "signals", why: error.to_string() };
    let (stopper, wanted) = shutdown();
    let mut terminate = signal(SignalKind::terminate()).map_err(refuse)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(refuse)?;
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        stop(&stopper);
        interrupt.recv().await;
        std::process::exit(1);
    });
    Ok(wanted)
}

fn stop(stopper: &Stopper) {
    info!("asked to stop");
    stopper.stop();
}

/// An error and what is behind it, on one line.
pub(super) fn told(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let words = cause.to_string();
        if !text.contains(&words) {
            text = format!("{text}: {words}");
        }
        next = cause.source();
    }
    text
}
