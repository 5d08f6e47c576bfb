//! Things to do, each once, in the order of their times; ties go to what was planned first.

use jiff::Timestamp;
use std::collections::BTreeMap;

/// What is planned. Planning a thing again moves it.
#[derive(Clone, Debug)]
pub(super) struct Agenda<W> {
    by_time: BTreeMap<(Timestamp, u64), W>,
    by_work: BTreeMap<W, (Timestamp, u64)>,
    sequence: u64,
}

impl<W> Default for Agenda<W> {
    fn default() -> Self {
        Self { by_time: BTreeMap::new(), by_work: BTreeMap::new(), sequence: 0 }
    }
}

impl<W: Ord + Clone> Agenda<W> {
    /// Plans this, instead of when it was planned before.
    pub fn plan(&mut self, work: W, at: Timestamp) {
        self.cancel(&work);
        self.sequence = self.sequence.saturating_add(1);
        self.by_time.insert((at, self.sequence), work.clone());
        self.by_work.insert(work, (at, self.sequence));
    }
    /// Plans this unless it is planned already.
    pub fn plan_once(&mut self, work: W, at: Timestamp) {
        if !self.by_work.contains_key(&work) {
            self.plan(work, at);
        }
    }
    /// Takes it off.
    pub fn cancel(&mut self, work: &W) {
        if let Some(place) = self.by_work.remove(work) {
            self.by_time.remove(&place);
        }
    }
    /// When the first thing is due.
    pub fn next(&self) -> Option<Timestamp> {
        self.by_time.first_key_value().map(|(place, _)| place.0)
    }
    /// Takes the first thing that is due by then.
    pub fn take(&mut self, then: Timestamp) -> Option<W> {
        let (place, _) = self.by_time.first_key_value().filter(|(place, _)| place.0 <= then)?;
        let place = *place;
        let work = self.by_time.remove(&place)?;
        self.by_work.remove(&work);
        Some(work)
    }
}
