//! The election of an operator in memory: the core's machine, asked and answered as the shell does it.

use super::happenings::Happening;
use super::replica::DEADLINE;
use super::requests::OPERATOR_NAMESPACE;
use crate::core::call::Call;
use crate::core::classify::classify;
use crate::core::cocoonset::observed::Lease;
use crate::core::control::election::{Elector, Step, Terms, Told};
use crate::core::wire::Reply;
use crate::shell::options::ElectionSettings;
use crate::sim::world::{OPERATOR, World};
use jiff::{SignedDuration, Timestamp};
use std::time::Duration;

/// Where one process stands.
#[derive(Clone, Debug, Default)]
pub struct Standing {
    elector: Option<Elector>,
    /// It does not reach the API server.
    pub cut_off: bool,
}

/// What an election came to at one moment.
#[derive(Debug)]
pub struct Elected {
    /// What people should know, and how much later than the moment.
    pub told: Vec<(Duration, Told)>,
    /// How long it waited for answers that never came.
    pub waited: Duration,
    /// The process ends.
    pub over: bool,
}

/// Who an operator of a story is in the lease: the how-manieth process it is.
pub fn settings(name: &str, process: u32) -> ElectionSettings {
    let name = if name.is_empty() { "first" } else { name };
    ElectionSettings::usual(OPERATOR_NAMESPACE, &format!("{name}-{process}"))
}

/// The same as the core takes it.
pub fn terms(name: &str, process: u32) -> Terms {
    let ElectionSettings { namespace, identity, lease, renew, retry } = settings(name, process);
    Terms { namespace, identity, lease, renew, retry, patience: DEADLINE, seed: 0 }
}

/// As a story tells it.
pub fn told(at: Duration, operator: &str, told: &Told) -> Happening {
    let which = if operator.is_empty() { String::new() } else { format!("{operator} ") };
    Happening::Note { at, text: format!("the {which}operator {told}") }
}

impl Standing {
    /// Under these terms; without any it leads.
    pub fn under(terms: Option<Terms>) -> Self {
        Self { elector: terms.map(|terms| Elector::new(terms, Duration::ZERO)), cut_off: false }
    }
    /// The right to write.
    pub fn lease(&self, mono: Duration) -> Lease {
        self.elector.as_ref().map_or(Lease::NotNeeded, |elector| elector.lease(mono))
    }
    /// Whether it may work at all.
    pub fn leads(&self) -> bool {
        self.elector.as_ref().is_none_or(Elector::leads)
    }
    /// When there is something to do, since the start.
    pub fn next_due(&self) -> Option<Duration> {
        self.elector.as_ref().and_then(Elector::next_due)
    }

    /// Does what is due.
    pub fn go_on(&mut self, world: &mut World, wall: Timestamp, mono: Duration) -> Option<Elected> {
        self.next_due().filter(|due| *due <= mono)?;
        self.drive(world, wall, mono)
    }
    /// Stops, and gives the lease back.
    pub fn stop(&mut self, world: &mut World, wall: Timestamp, mono: Duration) -> Option<Elected> {
        self.elector.as_mut()?.stop(mono);
        self.drive(world, wall, mono)
    }

    fn drive(&mut self, world: &mut World, wall: Timestamp, mono: Duration) -> Option<Elected> {
        let cut_off = self.cut_off;
        let elector = self.elector.as_mut()?;
        let mut elected = Elected { told: Vec::new(), waited: Duration::ZERO, over: false };
        loop {
            let passed = SignedDuration::try_from(elected.waited).unwrap_or_default();
            let now = mono.saturating_add(elected.waited);
            let step = elector.step(wall.saturating_add(passed).unwrap_or(wall), now);
            elected.told.extend(elector.take_told().into_iter().map(|told| (elected.waited, told)));
            let (call, until) = match step {
                Step::Send { call, until } => (call, until),
                Step::Wait(_) => return Some(elected),
                Step::Over(_) => {
                    elected.over = true;
                    return Some(elected);
                }
            };
            let Call::Api { verb, request, .. } = &call else { return Some(elected) };
            let reply = if cut_off { Reply::TimedOut } else { world.api(OPERATOR, request) };
            if reply == Reply::TimedOut {
                elected.waited = elected.waited.saturating_add(until.saturating_sub(now));
            }
            elector.answered(&classify(*verb, &reply), mono.saturating_add(elected.waited));
            elected.told.extend(elector.take_told().into_iter().map(|told| (elected.waited, told)));
        }
    }
}
