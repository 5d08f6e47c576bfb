//! `run`: the operator, in a cluster or beside one.

use crate::core::control::lease::NAME;
use crate::core::wire::{Method, Reply, Request};
use crate::shell::client::{self, Api};
use crate::shell::clock::Clock;
use crate::shell::options::{RunOptions, StartupError};
use crate::shell::registry::Registry;
use crate::shell::registry::credentials::Keyring;
use crate::shell::{Exit, Shell, Stopper, debug, logs, shutdown};
use kube::config::{KubeConfigOptions, Kubeconfig};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tracing::{info, warn};

/// How long the API server may take to answer at the start; after that something is wrong that waiting does not mend.
const PATIENCE: Duration = Duration::from_secs(30);
/// The pause between two tries.
const PAUSE: Duration = Duration::from_secs(2);
/// How often it is said that the start still waits.
const REMINDER: Duration = Duration::from_secs(10);

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
    let client = client::connect(config).map_err(|error| unfit(&error))?;
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
        None if settings.dry_run => info!("a dry run: nothing is written, and no leader is elected"),
        None => info!("no leader is elected: no other replica may run"),
    }
    if let Some(address) = settings.debug.as_ref().filter(|address| !debug::is_local(address)) {
        warn!(%address, "/debug is served beyond this machine, to whoever asks");
    }
    let registry = Registry::http(base, clock.clone())?.with_keyring(keyring).with_causes();
    if let Some(proxy) = registry.proxy() {
        info!(proxy, "the registry is asked through a proxy");
    }
    let shows = settings.debug.is_some();
    let shell = Shell::new(client, registry, settings, clock).recording()?;
    let shell = if shows { with_desk(shell) } else { shell };
    crate::shell::run(Arc::new(shell), shutdown).await
}

/// Keeps the last passes. They are told as stories are, which is part of the sandbox's build.
fn with_desk(shell: Shell) -> Shell {
    #[cfg(feature = "sim")]
    let shell = {
        let ring = crate::scenario::ring::Ring::new(shell.clock.clone());
        shell.with_desk(Arc::new(ring))
    };
    shell
}

/// The file that is named, else the cluster that this process runs in, else the file that kubectl takes.
pub(super) async fn config(named: Option<&str>) -> Result<kube::Config, StartupError> {
    if let Some(paths) = named.filter(|paths| !paths.trim().is_empty()) {
        let refuse =
            |why: kube::config::KubeconfigError| StartupError::Kubeconfig { path: paths.to_owned(), why: misfit(&why) };
        let mut merged = Kubeconfig::default();
        for path in files_of(paths) {
            merged = merged.merge(Kubeconfig::read_from(path).map_err(refuse)?).map_err(refuse)?;
        }
        let proxies = proxies_of(&merged);
        let config = kube::Config::from_custom_kubeconfig(merged, &KubeConfigOptions::default()).await;
        return directly(config.map_err(refuse)?, &proxies);
    }
    match kube::Config::incluster() {
        Ok(config) => directly(config, &[]),
        Err(why) => {
            let proxies = Kubeconfig::read().map(|read| proxies_of(&read)).unwrap_or_default();
            let config = kube::Config::from_kubeconfig(&KubeConfigOptions::default()).await;
            let config = config.map_err(|_| StartupError::NoCluster { why: told(&why) })?;
            directly(config, &proxies)
        }
    }
}

/// The proxies that a kubeconfig names.
fn proxies_of(read: &Kubeconfig) -> Vec<http::Uri> {
    let clusters = read.clusters.iter().filter_map(|named| named.cluster.as_ref());
    clusters.filter_map(|cluster| cluster.proxy_url.as_deref()?.parse().ok()).collect()
}

/// A proxy in the environment stands before the registry and not before the API server; through one of its own kubeconfig
/// nobody goes.
fn directly(mut config: kube::Config, named: &[http::Uri]) -> Result<kube::Config, StartupError> {
    if config.proxy_url.take().is_some_and(|proxy| named.contains(&proxy)) {
        let why = "its kubeconfig has a proxy-url, and no proxy is gone through there".to_owned();
        return Err(StartupError::Environment { what: "the client of the API server", why });
    }
    Ok(config)
}

/// The files of a list, without those that are not there, as kubectl passes them over; all where none is.
fn files_of(paths: &str) -> Vec<PathBuf> {
    let named: Vec<PathBuf> = std::env::split_paths(paths).filter(|path| !path.as_os_str().is_empty()).collect();
    let there: Vec<PathBuf> = named.iter().filter(|path| path.exists()).cloned().collect();
    if there.is_empty() { named } else { there }
}

/// What is wrong with a kubeconfig, in words of whoever wrote it.
fn misfit(why: &kube::config::KubeconfigError) -> String {
    use kube::config::KubeconfigError as Why;
    match why {
        Why::Parse(error) => {
            let misfit = crate::reading::yaml(error);
            let place = misfit.at.map(|(line, column)| format!("line {line}, column {column}: ")).unwrap_or_default();
            format!("{place}no YAML of a kubeconfig: {misfit}")
        }
        Why::ReadConfig(error, _) => format!("cannot be read ({error}); expected a file as kubectl takes it"),
        Why::CurrentContextNotSet => "no context in it is the current one; expected current-context: NAME".to_owned(),
        other => told(other),
    }
}

/// What a client cannot be made of.
fn unfit(error: &kube::Error) -> StartupError {
    StartupError::Environment { what: "the client of the API server", why: told(error) }
}

/// Waits for any answer of the API server: even a refusal shows that it is there. It says what it waits for, and until
/// when.
async fn reachable(client: &kube::Client, clock: &Clock, url: &str, deadline: Duration) -> Result<(), StartupError> {
    let api = Api::new(client.clone(), clock.clone(), deadline.min(PATIENCE), Arc::default());
    let began = clock.since_start();
    let left = || PATIENCE.saturating_sub(clock.since_start().saturating_sub(began));
    info!(cluster = url, "asking the API server for an answer, for at most {} s", PATIENCE.as_secs());
    let mut why = "no answer within the deadline";
    let mut told: Option<(Duration, &str)> = None;
    loop {
        let request = Request::new(Method::Get, "/version");
        let asked = api.send("version", &request);
        tokio::pin!(asked);
        let reply = loop {
            tokio::select! {
                biased;
                reply = &mut asked => break Some(reply),
                () = tokio::time::sleep(left()), if left() < REMINDER => break None,
                () = tokio::time::sleep(REMINDER) => waiting(url, "no answer yet", left()),
            }
        };
        why = match reply {
            Some(Reply::Http { .. }) => return Ok(()),
            Some(Reply::TimedOut) => "no answer within the deadline",
            Some(Reply::Reset { sent: true }) => "the connection broke",
            Some(Reply::Reset { sent: false }) => "no connection could be made",
            Some(Reply::Fenced) => "nothing may be sent",
            None => why,
        };
        if left().is_zero() {
            return Err(StartupError::Unreachable { url: url.to_owned(), why: why.to_owned() });
        }
        let now = clock.since_start();
        if told.is_none_or(|(at, said)| said != why || now.saturating_sub(at) >= REMINDER) {
            waiting(url, why, left());
            told = Some((now, why));
        }
        tokio::time::sleep(PAUSE.min(left())).await;
    }
}

/// A start that takes its time is told of, at once and then now and again.
fn waiting(url: &str, why: &str, left: Duration) {
    let (pause, left) = (PAUSE.as_secs(), left.as_secs());
    warn!(
        cluster = url,
        "the API server does not answer: {why}; asked again every {pause} s, given up after {left} s more"
    );
}

/// What a write beyond the limit of a file's size raises (`SIGXFSZ`).
const FILE_TOO_LARGE: i32 = 25;

/// Ends on SIGTERM, as a node says it, and on Ctrl-C, as a person does. A second one is not waited for. A file that may
/// not grow ends nothing: once somebody listens to that signal, the write fails instead, which whoever writes tells.
pub(super) fn on_signal() -> Result<crate::shell::Shutdown, StartupError> {
    let refuse = |error: std::io::Error| StartupError::Environment { what: "signals", why: error.to_string() };
    let (stopper, wanted) = shutdown();
    let mut terminate = signal(SignalKind::terminate()).map_err(refuse)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(refuse)?;
    drop(signal(SignalKind::from_raw(FILE_TOO_LARGE)).map_err(refuse)?);
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
