//! Where each watch of an operator in memory stands.

use crate::core::contract::keys;
use crate::core::control::kinds::Kind;
use crate::sim::store::{Selector, WatchQuery};

/// One watch.
#[derive(Clone, Debug, Default)]
pub struct Watching {
    /// How far it has come; nothing before the list.
    pub version: Option<u64>,
    /// It shows nothing for now.
    pub lags: bool,
    /// It is broken, and will have to list anew.
    pub broken: bool,
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
