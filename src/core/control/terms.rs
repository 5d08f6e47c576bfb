//! What an election is told and what it says.

use crate::core::call::Call;
use crate::core::cocoonset::observed::Lease;
use crate::core::wire::Verb;
use std::time::Duration;

/// A tag delete has no precondition and needs so much of the term (decision R11).
pub const TAG_DELETE_TERM: Duration = Duration::from_secs(5);

/// Who stands for election, and under which terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Where the lease is.
    pub namespace: String,
    /// Unique among all processes there ever are.
    pub identity: String,
    /// So long others wait for a silent holder.
    pub lease: Duration,
    /// So long after its last renewal a holder writes.
    pub renew: Duration,
    /// Between two tries.
    pub retry: Duration,
    /// The longest wait for one answer.
    pub patience: Duration,
    /// Spreads the tries of those who wait; 0 does not.
    pub seed: u64,
}

/// What is to be done next.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Send this; the answer is no longer waited for at that time since the start.
    Send {
        /// The request.
        call: Call,
        /// When the caller has had enough.
        until: Duration,
    },
    /// Nothing before that time since the start.
    Wait(Duration),
    /// It is over.
    Over(Ending),
}

/// How it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It was asked to stop, and holds nothing.
    Stopped,
    /// The lease is lost: the process has to end.
    Lost(String),
}

/// What people should know of, once each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// Somebody else leads.
    Follows(String),
    /// It leads.
    Leads,
    /// A try failed; it goes on.
    Trouble(String),
    /// The lease is lost.
    Lost(String),
    /// The lease was given back.
    Released,
}

impl std::fmt::Display for Told {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Follows(holder) => write!(f, "waits for the lease, which {holder} holds"),
            Self::Leads => f.write_str("holds the lease and leads"),
            Self::Trouble(why) => write!(f, "has trouble with the lease: {why}"),
            Self::Lost(why) => write!(f, "has lost the lease and ends: {why}"),
            Self::Released => f.write_str("gave the lease back"),
        }
    }
}

/// For how long a request with this verb may be waited for; `None` where it must not be sent at all.
pub fn term_for(lease: Lease, verb: Verb) -> Option<Duration> {
    match lease {
        Lease::NotNeeded => Some(Duration::MAX),
        Lease::Lost => None,
        Lease::Held(left) if left.is_zero() => None,
        Lease::Held(left) if verb == Verb::RegistryDelete && left < TAG_DELETE_TERM => None,
        Lease::Held(left) => Some(left),
    }
}
