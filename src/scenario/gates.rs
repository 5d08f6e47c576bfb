//! The gates that an operator's requests pass, as the shell has them (decision R29): one before the API server, one
//! before the registry. A wave asks for leave as a whole, since its requests leave side by side.

use crate::core::call::Call;
use crate::core::control::flow::{End, Flow, Leave};
use crate::core::wire::Reply;
use crate::shell::limits::held_back;
use std::time::Duration;

/// Flow of everything that the registry is asked.
const SNAPSHOTS: &str = "snapshots";

/// Both gates.
#[derive(Clone, Debug, Default)]
pub struct Gates {
    api: Flow,
    registry: Flow,
}

impl Gates {
    /// Asks for leave to send this.
    pub fn leave(&mut self, call: &Call, now: Duration) -> Leave {
        let (gate, flow) = self.of(call);
        gate.leave(flow, now)
    }

    /// It was answered so.
    pub fn ended(&mut self, call: &Call, reply: &Reply, now: Duration) {
        let end = match reply {
            Reply::Http { status: 429, retry_after, .. } => End::Throttled(*retry_after),
            Reply::Http { .. } | Reply::TimedOut | Reply::Reset { .. } | Reply::Fenced => End::Answered,
        };
        let (gate, flow) = self.of(call);
        gate.ended(flow, end, now);
    }

    /// What is answered in the server's place, where this may not leave; it is asked again where there was no room.
    pub fn holds_back(&mut self, call: &Call, leave: Leave, now: Duration) -> Option<Reply> {
        let leave = if leave == Leave::Full { self.leave(call, now) } else { leave };
        match leave {
            Leave::Granted | Leave::Full => None,
            Leave::Closed(left) => Some(held_back(left)),
        }
    }

    fn of<'a>(&mut self, call: &'a Call) -> (&mut Flow, &'a str) {
        match call {
            Call::Api { resource, .. } => (&mut self.api, resource),
            Call::Registry { .. } => (&mut self.registry, SNAPSHOTS),
        }
    }
}
