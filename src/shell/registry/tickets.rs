//! What a registry let us in with, kept for as long as it is good.

use http::HeaderValue;
use std::collections::BTreeMap;
use std::time::Duration;

/// How many are kept; a token is a kilobyte or two.
const MOST: usize = 1_024;

/// What is to be done there. A token for the one is none for the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Access {
    /// Look.
    Pull,
    /// Look and delete. Registries differ in what they want for it: `delete`, or `push`, or both.
    Delete,
}

impl Access {
    /// The actions of a token's scope, in order.
    pub const fn actions(self) -> &'static [&'static str] {
        match self {
            Self::Pull => &["pull"],
            Self::Delete => &["delete", "pull", "push"],
        }
    }
}

/// For what a ticket is good.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    /// The whole registry: user and password.
    Registry,
    /// One repository: a token.
    Repository(String, Access),
}

/// Tickets by place, each with the time until which it is good.
#[derive(Debug, Default)]
pub(super) struct Tickets(BTreeMap<Place, (HeaderValue, Duration)>);

impl Tickets {
    /// A ticket for this that is still good.
    pub fn get(&self, repository: &str, access: Access, now: Duration) -> Option<HeaderValue> {
        let token = self.0.get(&Place::Repository(repository.to_owned(), access));
        let held = token.filter(|(_, until)| *until > now).or_else(|| self.0.get(&Place::Registry));
        held.filter(|(_, until)| *until > now).map(|(ticket, _)| ticket.clone())
    }

    /// Keeps one that was accepted.
    pub fn keep(&mut self, place: Place, ticket: HeaderValue, until: Duration, now: Duration) {
        if self.0.len() >= MOST && !self.0.contains_key(&place) {
            self.0.retain(|_, (_, until)| *until > now);
            let first = self.0.iter().min_by_key(|(_, (_, until))| *until).map(|(place, _)| place.clone());
            if let Some(first) = first.filter(|_| self.0.len() >= MOST) {
                self.0.remove(&first);
            }
        }
        self.0.insert(place, (ticket, until));
    }

    /// Forgets what was refused, wherever it is kept.
    pub fn forget(&mut self, ticket: &HeaderValue) {
        self.0.retain(|_, (held, _)| held != ticket);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: fn(u64) -> Duration = Duration::from_secs;

    fn ticket(text: &str) -> HeaderValue {
        HeaderValue::from_str(text).expect("a value")
    }

    #[test]
    fn a_ticket_is_good_for_its_place_and_its_time() {
        let mut tickets = Tickets::default();
        let place = |name: &str| Place::Repository(name.to_owned(), Access::Pull);
        tickets.keep(place("p/a"), ticket("Bearer a"), AT(10), AT(0));
        assert_eq!(tickets.get("p/a", Access::Pull, AT(9)), Some(ticket("Bearer a")));
        assert_eq!(tickets.get("p/a", Access::Pull, AT(10)), None);
        assert_eq!(tickets.get("p/a", Access::Delete, AT(0)), None);
        assert_eq!(tickets.get("p/b", Access::Pull, AT(0)), None);
        tickets.keep(Place::Registry, ticket("Basic b"), AT(100), AT(0));
        assert_eq!(tickets.get("p/a", Access::Pull, AT(0)), Some(ticket("Bearer a")));
        assert_eq!(tickets.get("p/a", Access::Pull, AT(10)), Some(ticket("Basic b")));
        assert_eq!(tickets.get("p/b", Access::Delete, AT(0)), Some(ticket("Basic b")));
        tickets.forget(&ticket("Basic b"));
        assert_eq!(tickets.get("p/b", Access::Delete, AT(0)), None);
    }

    #[test]
    fn however_many_vms_there_are_memory_is_bounded() {
        let mut tickets = Tickets::default();
        let place = |n: u64| Place::Repository(format!("p/vk-{n}"), Access::Pull);
        for n in 0..3 * MOST as u64 {
            tickets.keep(place(n), ticket("Bearer t"), AT(1_000 + n), AT(0));
        }
        assert_eq!(tickets.0.len(), MOST);
        assert!(tickets.0.contains_key(&place(3 * MOST as u64 - 1)), "the newest is kept");
        tickets.keep(place(0), ticket("Bearer t"), AT(9_000), AT(8_000));
        assert_eq!(tickets.0.len(), 1, "what is over goes first");
    }
}
