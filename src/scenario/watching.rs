//! Where each watch of an operator in memory stands.

use crate::core::contract::keys;
use crate::core::control::kinds::Kind;
use crate::sim::store::{Selector, WatchQuery};
use std::collections::VecDeque;
use std::time::Duration;

/// One watch.
#[derive(Clone, Debug, Default)]
pub struct Watching {
    /// How far it has come; nothing before the list.
    pub version: Option<u64>,
    /// It shows nothing for now.
    pub lags: bool,
    /// It is broken, and will have to list anew.
    pub broken: bool,
    /// Everything after the list shows this much later.
    pub late: Duration,
    /// What is still to show: when it was written at the latest, and up to which version.
    coming: VecDeque<(Duration, u64)>,
}

impl Watching {
    /// Up to which version it shows now, when the server is at this one.
    pub fn shows(&mut self, now: Duration, version: u64) -> u64 {
        if self.late.is_zero() {
            return version;
        }
        let mut shown = self.version.unwrap_or(version);
        if self.coming.back().map_or(shown, |(_, newest)| *newest) < version {
            self.coming.push_back((now, version));
        }
        while let Some((at, newest)) = self.coming.front().copied()
            && at.saturating_add(self.late) <= now
        {
            shown = shown.max(newest);
            self.coming.pop_front();
        }
        shown
    }
    /// When it shows more.
    pub fn next_due(&self) -> Option<Duration> {
        self.coming.front().map(|(at, _)| at.saturating_add(self.late))
    }
}

/// What is watched of a kind (decision R26).
pub fn query(kind: Kind) -> WatchQuery {
    let group = keys::GROUP;
    let resource = match kind {
        Kind::CocoonSets | Kind::CocoonHibernations => format!("{}.{group}", kind.resource()),
        Kind::Pods | Kind::Namespaces | Kind::Nodes => kind.resource().to_owned(),
    };
    let selector = match kind {
        Kind::Pods => Selector::labels(keys::NAME).unwrap_or_default(),
        Kind::CocoonSets | Kind::CocoonHibernations | Kind::Namespaces | Kind::Nodes => Selector::default(),
    };
    WatchQuery { resource, namespace: None, selector }
}
