//! Faults of the wire, as data: which request meets what, the how-manieth time. Consulted before a request is carried
//! out and after it was.

mod answers;

pub use answers::{answer, reply_of_class};

use super::store::About;
use crate::core::wire::{Reply, Request, Verb};
use std::collections::BTreeMap;

/// Which requests a fault is about. An absent part fits everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pattern {
    /// The user who asks; none for everybody.
    pub user: Option<String>,
    /// What it wants.
    pub verb: Option<Verb>,
    /// `pods`, `cocoonsets`, `cocoonsets/status`, `snapshots`. Without a subresource it fits the object itself only.
    pub kind: Option<String>,
    /// The object's name, or `namespace/name`; for snapshots `<vm>:<tag>`. A `*` at its end fits any rest.
    pub name: Option<String>,
}

impl Pattern {
    /// Requests of the operator for this, of this kind.
    pub fn of(verb: Verb, kind: &str) -> Self {
        Self {
            user: Some(super::world::OPERATOR.to_owned()),
            verb: Some(verb),
            kind: Some(kind.to_owned()),
            name: None,
        }
    }
    /// Only those about this name.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }
    fn fits(&self, user: &str, about: &About) -> bool {
        self.user.as_deref().is_none_or(|want| want == user)
            && self.verb.is_none_or(|want| want == about.verb)
            && self.kind.as_deref().is_none_or(|want| want == about.kind)
            && self.name.as_deref().is_none_or(|want| fits_name(want, about))
    }
}

fn fits_name(want: &str, about: &About) -> bool {
    let name = match want.split_once('/') {
        Some((namespace, _)) if namespace != about.namespace => return false,
        Some((_, name)) => name,
        None => want,
    };
    match name.strip_suffix('*') {
        Some(start) => about.name.starts_with(start),
        None => name == about.name,
    }
}

/// What happens to a request.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// This is answered instead, and nothing is done.
    Answer(Reply),
    /// It is never carried out, and never answered.
    TimeoutBefore,
    /// It is carried out, and never answered.
    TimeoutAfter,
    /// The connection breaks before anything is done.
    Reset {
        /// Whether the client sent something.
        sent: bool,
    },
    /// It is carried out, and the connection breaks before the answer.
    ResetAfter,
    /// Somebody else's request is carried out just before it: another writer.
    Overtaken(Box<Request>),
}

/// A fault and the requests that it meets.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// The requests.
    pub matches: Pattern,
    /// The first of them that is met, counted from 1.
    pub nth: u64,
    /// How many are met from there on; none for all.
    pub times: Option<u64>,
    /// What they meet.
    pub what: What,
    seen: u64,
}

impl Fault {
    /// Meets the first such request, once.
    pub fn new(matches: Pattern, what: What) -> Self {
        Self { matches, nth: 1, times: Some(1), what, seen: 0 }
    }
    /// Meets the `nth` such request, counted from now.
    #[must_use]
    pub fn nth(mut self, nth: u64) -> Self {
        self.nth = nth;
        self
    }
    /// Meets so many in a row.
    #[must_use]
    pub fn times(mut self, times: u64) -> Self {
        self.times = Some(times);
        self
    }
    /// Meets all from there on.
    #[must_use]
    pub fn always(mut self) -> Self {
        self.times = None;
        self
    }
    /// How many fitting requests it has seen.
    pub fn seen(&self) -> u64 {
        self.seen
    }
    /// True once it will meet no more.
    pub fn is_spent(&self) -> bool {
        self.times.is_some_and(|times| self.seen.saturating_add(1) >= self.nth.saturating_add(times))
    }
    fn meets(&mut self) -> bool {
        self.seen = self.seen.saturating_add(1);
        let past = self.seen.checked_sub(self.nth);
        past.is_some_and(|past| self.times.is_none_or(|times| past < times))
    }
}

/// All faults in force, and how often each request was made.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    faults: Vec<Fault>,
    /// By user and what the request was about.
    counts: BTreeMap<(String, About), u64>,
}

impl Faults {
    /// Adds a fault. Where several meet one request, the first added decides; all of them count it.
    pub fn add(&mut self, fault: Fault) {
        self.faults.push(fault);
    }
    /// Takes all away; the counts stay.
    pub fn clear(&mut self) {
        self.faults.clear();
    }
    /// The faults, spent ones included.
    pub fn all(&self) -> &[Fault] {
        &self.faults
    }
    /// How often this user made this request; an absent part sums over all.
    pub fn count(&self, pattern: &Pattern) -> u64 {
        let fitting = self.counts.iter().filter(|((user, about), _)| pattern.fits(user, about));
        fitting.map(|(_, count)| count).sum()
    }
    /// Every request made so far: by whom, about what, how often.
    pub fn counts(&self) -> impl Iterator<Item = (&str, &About, u64)> {
        self.counts.iter().map(|((user, about), count)| (user.as_str(), about, *count))
    }
    /// Counts one request, and says what it meets.
    pub fn meet(&mut self, user: &str, about: &About) -> Option<What> {
        let count = self.counts.entry((user.to_owned(), about.clone())).or_insert(0);
        *count = count.saturating_add(1);
        let mut met = None;
        for fault in self.faults.iter_mut().filter(|fault| fault.matches.fits(user, about)) {
            if fault.meets() && met.is_none() {
                met = Some(fault.what.clone());
            }
        }
        met
    }
}
