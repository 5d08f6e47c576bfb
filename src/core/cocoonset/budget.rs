//! The rebuild budget: how often a seat may be filled again, and how soon. Kept on the set, so that a restart does not
//! grant a fresh one (D-18, D-46, D-47, R21).

use super::observed::Observed;
use crate::core::action::Change;
use crate::core::api::condition;
use crate::core::contract::keys;
use crate::core::contract::names::Role;
use crate::core::contract::rebuilds::{Charged, Rebuild, Rebuilds, role_key};
use crate::core::oddity::CORRUPT_ANNOTATION;
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Rebuilds before a seat is left for a person to look at.
pub const MOST: u32 = 4;
/// A rebuild this long ago counts no more: what ran so long was no failure of the same kind (D-18a).
const FORGIVEN_AFTER: Duration = Duration::from_secs(600);
/// Before the first, second, third and fourth rebuild.
const DELAYS: [Duration; 4] = [Duration::ZERO, Duration::from_secs(1), Duration::from_secs(5), Duration::from_secs(30)];

/// After how long the spent budget of this role counts no more; `None` where it cannot be read or is not spent.
pub fn forgiven_in(seen: &Observed, role: &Role) -> Option<Duration> {
    let (annotation, key) = role_key(role)?;
    let history = read(seen, annotation);
    let Charged::Times(rebuild) = history.of(&key) else { return None };
    let passed = since(seen, rebuild.last_deleted?);
    FORGIVEN_AFTER.checked_sub(passed).map(|left| left.saturating_add(Duration::from_secs(1)))
}

/// How one seat stands with its budget, about one incarnation of its pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// This incarnation is paid for already.
    Charged,
    /// It may be charged and replaced.
    Due,
    /// Not before this long.
    TooEarly(Duration),
    /// So many are spent; 0 where the history cannot be read.
    Exhausted(u32),
}

/// How the seat of this role stands, about the pod with this uid.
pub fn of(seen: &Observed, role: &Role, uid: &str) -> Standing {
    let Some((annotation, key)) = role_key(role) else { return Standing::Exhausted(0) };
    let history = read(seen, annotation);
    let rebuild = match history.of(&key) {
        Charged::Never => return Standing::Due,
        Charged::Unreadable if forgiven(seen, annotation).is_some() => return Standing::Due,
        Charged::Unreadable => return Standing::Exhausted(0),
        Charged::Times(rebuild) => rebuild,
    };
    if rebuild.uid == uid {
        return Standing::Charged;
    }
    let count = counted(seen, rebuild);
    if count >= MOST {
        return Standing::Exhausted(count);
    }
    let delay = DELAYS.get(count as usize).copied().unwrap_or(DELAYS[3]);
    let passed = rebuild.last_deleted.map_or(delay, |last| since(seen, last));
    match delay.checked_sub(passed) {
        Some(left) if !left.is_zero() => Standing::TooEarly(left.min(delay)),
        _ => Standing::Due,
    }
}

/// Takes note of the times that the histories state, and how old they are. What lies in the future was just now, and
/// from now on time passes however the wall clock jumps (D-48).
pub fn meet(seen: &mut Observed) {
    let histories = [keys::REBUILD_HISTORY, keys::REBUILD_HISTORY_ROLES].map(|key| read(seen, key));
    let stated: BTreeSet<Timestamp> = histories.iter().flat_map(Rebuilds::stamps).collect();
    seen.memory.stamps.retain(|stamp, _| stated.contains(stamp));
    for stamp in stated {
        let age = by_the_wall(seen, stamp);
        seen.memory.stamps.entry(stamp).or_insert((age, seen.mono));
    }
}

fn by_the_wall(seen: &Observed, then: Timestamp) -> Duration {
    Duration::try_from(seen.now.duration_since(then)).unwrap_or(Duration::ZERO)
}

/// Time since then.
fn since(seen: &Observed, then: Timestamp) -> Duration {
    let met = seen.memory.stamps.get(&then);
    met.map_or_else(|| by_the_wall(seen, then), |(age, at)| age.saturating_add(seen.mono.saturating_sub(*at)))
}

/// The count that still matters: an edit or a long healthy run starts a new one.
fn counted(seen: &Observed, rebuild: &Rebuild) -> u32 {
    let old = rebuild.last_deleted.is_some_and(|last| since(seen, last) > FORGIVEN_AFTER);
    let edited = rebuild.generation.is_some_and(|generation| generation != seen.set.generation);
    if old || edited { 0 } else { rebuild.count }
}

/// The write that charges one more rebuild; `None` where the history cannot be written.
pub fn charge(seen: &Observed, role: &Role, uid: &str) -> Option<Change> {
    let (annotation, key) = role_key(role)?;
    let mut history = read(seen, annotation);
    let count = match history.of(&key) {
        Charged::Never => 0,
        Charged::Times(rebuild) => counted(seen, rebuild),
        Charged::Unreadable => {
            if history.is_unreadable() {
                history.start_over();
            } else {
                history.forget(&key);
            }
            0
        }
    };
    let rebuild = Rebuild {
        count: count.saturating_add(1),
        last_deleted: Some(seen.now),
        uid: uid.to_owned(),
        generation: Some(seen.set.generation),
    };
    history.put(&key, rebuild);
    if annotation == keys::REBUILD_HISTORY {
        history.prune_slots(seen.set.spec.agent.replicas);
    } else {
        history.prune(|key| key == "main" || is_listed(seen, key));
    }
    let value = history.write()?;
    Some(Change::PatchObject {
        annotations: BTreeMap::from([(annotation.to_owned(), Some(value))]),
        resource_version: seen.set.resource_version.clone(),
    })
}

/// The write that grants a seat a fresh budget because an edit replaces its pod; `None` where it has one already. An
/// older operator's entry does not say under which generation it was charged (CS-A4).
pub fn fresh(seen: &Observed, role: &Role) -> Option<Change> {
    let (annotation, key) = role_key(role).filter(|_| count(seen, role) > 0)?;
    let mut history = read(seen, annotation);
    history.forget(&key);
    Some(Change::PatchObject {
        annotations: BTreeMap::from([(annotation.to_owned(), Some(history.write()?))]),
        resource_version: seen.set.resource_version.clone(),
    })
}

fn is_listed(seen: &Observed, key: &str) -> bool {
    key.strip_prefix("toolbox/").is_some_and(|name| seen.set.spec.lists_toolbox(name))
}

/// True where the spec was edited since the last charge: whatever was given up on then has a fresh budget (D-47).
pub fn is_edited(seen: &Observed, role: &Role) -> bool {
    let Some((annotation, key)) = role_key(role) else { return false };
    match read(seen, annotation).of(&key) {
        Charged::Times(rebuild) => rebuild.generation.is_some_and(|generation| generation != seen.set.generation),
        Charged::Never | Charged::Unreadable => false,
    }
}

/// How many rebuilds of this seat are charged.
pub fn count(seen: &Observed, role: &Role) -> u32 {
    let Some((annotation, key)) = role_key(role) else { return 0 };
    match read(seen, annotation).of(&key) {
        Charged::Times(rebuild) => counted(seen, rebuild),
        Charged::Never | Charged::Unreadable => 0,
    }
}

/// One of the two histories.
pub fn read(seen: &Observed, annotation: &str) -> Rebuilds {
    Rebuilds::read(annotation, seen.set.annotations.get(annotation).map(String::as_str)).0
}

/// An unreadable history is given up once the generation has moved on from the one it was reported at (decision R21):
/// that generation, if it has.
fn forgiven(seen: &Observed, annotation: &str) -> Option<i64> {
    let reported = condition::find(&seen.set.status.conditions, "Degraded")?;
    let told = reported.message.contains(&format!("{CORRUPT_ANNOTATION}: {annotation}: "));
    (told && reported.observed_generation < seen.set.generation).then_some(reported.observed_generation)
}

/// The generation at which an unreadable history was reported that an edit has forgiven since, and that still stands
/// there: a report that moved on with the edit would take it back before anything could be made of it.
pub fn unspent_edit(seen: &Observed) -> Option<i64> {
    let annotation = |key: &str| seen.set.annotations.get(key).map(String::as_str);
    let keys = [keys::REBUILD_HISTORY, keys::REBUILD_HISTORY_ROLES].into_iter();
    let corrupt = keys.filter(|key| Rebuilds::read(key, annotation(key)).1.is_some());
    corrupt.filter_map(|key| forgiven(seen, key)).min()
}
