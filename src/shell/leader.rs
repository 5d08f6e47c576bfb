//! Drives the election: sends what the core's machine says, brings the answers back, and tells what came of it. Without
//! election this process leads from the start, for ever.

use super::Shell;
use super::clock::Clock;
use super::options::ElectionSettings;
use crate::core::call::Call;
use crate::core::classify::classify;
use crate::core::cocoonset::observed::Lease;
use crate::core::control::election::{Elector, Ending, Step, Terms, Told, term_for};
use crate::core::wire::Verb;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tracing::{error, info, warn};

/// Where a pod reads the name of its namespace.
const NAMESPACE_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";
/// The operator's namespace where nothing else is said (spec/observability.md 6).
pub const NAMESPACE: &str = "cocoon-system";

/// The right of this process to write.
#[derive(Debug)]
pub struct Leadership {
    elector: Option<Mutex<Elector>>,
    changed: Notify,
    clock: Clock,
}

impl Leadership {
    /// As the settings say; without any it always leads.
    pub fn new(settings: Option<&ElectionSettings>, http_timeout: Duration, clock: Clock) -> Self {
        let elector = settings.map(|settings| {
            let terms = Terms {
                namespace: settings.namespace.clone(),
                identity: settings.identity.clone(),
                lease: settings.lease,
                renew: settings.renew,
                retry: settings.retry,
                // So that one answer that never comes leaves time for a second try.
                patience: http_timeout.min(settings.renew / 2),
                seed: clock.seed(),
            };
            Mutex::new(Elector::new(terms, clock.since_start()))
        });
        Self { elector, changed: Notify::new(), clock }
    }

    /// The right to write, now.
    pub fn lease(&self) -> Lease {
        let now = self.clock.since_start();
        self.lock().map_or(Lease::NotNeeded, |elector| elector.lease(now))
    }
    /// For how long an answer to this may be waited for; `None` where it must not be sent.
    pub fn term(&self, verb: Verb) -> Option<Duration> {
        term_for(self.lease(), verb)
    }
    /// False where this process needs no lease.
    pub const fn is_needed(&self) -> bool {
        self.elector.is_some()
    }
    /// True where this process leads, or needs no lease.
    pub fn leads(&self) -> bool {
        self.lock().is_none_or(|elector| elector.leads())
    }
    /// When the election has something to do, since the start.
    pub fn next_due(&self) -> Option<Duration> {
        self.lock().and_then(|elector| elector.next_due())
    }
    /// Waits until it leads.
    pub async fn gained(&self) {
        self.until(Elector::leads).await;
    }
    async fn until(&self, holds: impl Fn(&Elector) -> bool) {
        loop {
            let changed = self.changed.notified();
            if self.lock().is_none_or(|elector| holds(&elector)) {
                return;
            }
            changed.await;
        }
    }
    /// Nothing is written any more; the lease is given back.
    pub fn stop(&self) {
        if let Some(mut elector) = self.lock() {
            elector.stop(self.clock.since_start());
        }
        self.changed.notify_waiters();
    }

    fn step(&self) -> Option<Step> {
        Some(self.lock()?.step(self.clock.wall(), self.clock.since_start()))
    }

    fn lock(&self) -> Option<MutexGuard<'_, Elector>> {
        Some(self.elector.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Stands for election until it is over: stopped, or lost. Never comes back where no lease is needed.
pub async fn keep(shell: &Shell) -> Ending {
    shell.metrics.leads(shell.leader.leads());
    if !shell.leader.is_needed() {
        return std::future::pending().await;
    }
    turn(shell, Duration::ZERO).await;
    loop {
        let step = shell.leader.step();
        tell(shell);
        match step {
            None => return std::future::pending().await,
            Some(Step::Over(ending)) => return ending,
            Some(Step::Wait(until)) => turn(shell, until).await,
            Some(Step::Send { call, until }) => send(shell, &call, until).await,
        }
    }
}

/// Waits until then, or until it is to stop. A stage that goes from moment to moment says when.
async fn turn(shell: &Shell, until: Duration) {
    let until = shell.clock.instant(until);
    let due = Box::pin(async move {
        match until {
            Some(until) => tokio::time::sleep_until(until).await,
            None => std::future::pending().await,
        }
    });
    let next = async {
        match &shell.pace {
            Some(pace) => pace.next_election(due).await,
            None => due.await,
        }
    };
    tokio::select! {
        biased;
        () = shell.leader.until(|elector| !elector.stands()) => {}
        () = next => {}
    }
}

async fn send(shell: &Shell, call: &Call, until: Duration) {
    let Call::Api { verb, request, .. } = call else { return };
    let left = until.saturating_sub(shell.clock.since_start());
    let outcome = classify(*verb, &shell.api.send_apart(request, left).await);
    shell.metrics.outcome(*verb, call.resource(), outcome.class);
    if let Some(mut elector) = shell.leader.lock() {
        elector.answered(&outcome, shell.clock.since_start());
    }
    tell(shell);
}

/// Logs and counts what happened, and wakes those who wait for it.
fn tell(shell: &Shell) {
    let Some(told) = shell.leader.lock().map(|mut elector| elector.take_told()) else { return };
    for told in &told {
        match told {
            Told::Leads | Told::Follows(_) | Told::Released => info!("the operator {told}"),
            Told::Trouble(_) => warn!("the operator {told}"),
            Told::Lost(_) => error!("the operator {told}"),
        }
        if let Some(witness) = &shell.witness {
            witness.hears_of_the_lease(told);
        }
    }
    shell.metrics.leads(shell.leader.leads());
    if !told.is_empty() {
        shell.leader.changed.notify_waiters();
    }
}

/// The namespace that this process runs in, else where the operator usually is.
pub fn own_namespace() -> String {
    let read = std::fs::read_to_string(NAMESPACE_FILE).unwrap_or_default();
    let own = read.trim();
    if own.is_empty() { NAMESPACE.to_owned() } else { own.to_owned() }
}

/// The host's name, which is the pod's, and what no other process bears: a pod's container may start anew under the same
/// name while what its predecessor sent is still under way.
pub fn identity() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").ok().or_else(|| std::env::var("HOSTNAME").ok());
    let host = host.map(|host| host.trim().to_owned()).filter(|host| !host.is_empty());
    let random = || RandomState::new().build_hasher().finish();
    format!("{}_{:016x}{:016x}", host.as_deref().unwrap_or("cocoon-operator"), random(), random())
}
