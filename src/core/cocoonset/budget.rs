//! The rebuild budget: how often a seat may be filled again, and how soon. Kept on the set, so that a restart does not
//! grant a fresh one (D-18, D-46, D-47, R21). What is spent of it is written by `costs`.

use super::observed::Observed;
use super::rolling;
use super::seat::Seat;
use crate::core::api::condition;
use crate::core::contract::names::Role;
use crate::core::contract::rebuilds::{Charged, Rebuild, role_key};
use crate::core::oddity::CORRUPT_ANNOTATION;
use crate::core::pod::facts::PodFacts;
use jiff::Timestamp;
use std::collections::BTreeSet;
use std::time::Duration;

/// Rebuilds before a seat is left for a person to look at.
pub const MOST: u32 = 4;
/// What was Ready for so long after its last rebuild has recovered: a later failure is another one (D-18a).
const FORGIVEN_AFTER: Duration = Duration::from_secs(900);
/// A seat that is left without a pod is tried again this long after the last try.
const TRIED_AGAIN_AFTER: Duration = Duration::from_secs(600);
/// Before the first, second, third and fourth rebuild.
const DELAYS: [Duration; 4] = [Duration::ZERO, Duration::from_secs(1), Duration::from_secs(5), Duration::from_secs(30)];

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

/// The last pod of a seat that has none now and that this operator did not delete, as far as it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    /// Its uid; empty where nobody saw it go.
    pub uid: String,
    /// The VM id that the status lists for the seat; empty where it lists none.
    pub vm: String,
    /// Whether it had been given up: whoever deletes such a pod asks for another, with a fresh budget (D-47).
    pub given_up: bool,
}

impl Lost {
    /// What is known of the last pod of this seat: what this process saw, else what the status and the history say. Only
    /// what may have had a VM counts: of a pod that never had a node nothing is lost.
    pub fn of(seen: &Observed, seat: &Seat) -> Option<Self> {
        let listed = seen.set.status.vm_id_of(&seat.pod).unwrap_or_default();
        if !seat.managed {
            return None;
        }
        if let Some(gone) = seen.memory.vanished.get(&seat.pod) {
            // One that was replaced, or not wanted, has not failed.
            if gone.by_us {
                return None;
            }
            let had_none = gone.node.is_none() && !gone.had_vm && !gone.given_up;
            return (!had_none).then(|| Self { uid: gone.uid.clone(), vm: listed.to_owned(), given_up: gone.given_up });
        }
        if seen.pods.contains_key(&seat.pod) || seen.memory.deleted.contains_key(&seat.pod) {
            return None;
        }
        let edited = seen.set.status.observed_generation != seen.set.generation;
        let given_up = rebuild(seen, &seat.role).is_some_and(|rebuild| rebuild.given_up) && !edited;
        let disappeared = !listed.is_empty() && !rolling::may_have_deleted(seen);
        (given_up || disappeared).then(|| Self { uid: String::new(), vm: listed.to_owned(), given_up })
    }
    fn is_paid(&self, rebuild: &Rebuild) -> bool {
        if self.uid.is_empty() { rebuild.vm == self.vm } else { rebuild.uid == self.uid }
    }
}

/// How the seat of this role stands, about the pod with this uid.
pub fn of(seen: &Observed, role: &Role, uid: &str) -> Standing {
    standing(seen, role, |rebuild| rebuild.uid == uid, false)
}

/// How a seat stands, about its last pod. There is no pod to look at and nothing to lose: it is tried again once the
/// last try is long ago.
pub fn of_lost(seen: &Observed, role: &Role, lost: &Lost) -> Standing {
    standing(seen, role, |rebuild| lost.is_paid(rebuild), true)
}

fn standing(seen: &Observed, role: &Role, is_paid: impl Fn(&Rebuild) -> bool, ages: bool) -> Standing {
    let Some((annotation, key)) = role_key(role) else { return Standing::Exhausted(0) };
    let rebuild = match seen.set.rebuilds.of(annotation).of(&key) {
        Charged::Never => return Standing::Due,
        Charged::Unreadable if forgiven(seen, annotation).is_some() => return Standing::Due,
        Charged::Unreadable => return Standing::Exhausted(0),
        Charged::Times(rebuild) => rebuild,
    };
    if is_paid(rebuild) {
        return Standing::Charged;
    }
    let count = counted(seen, rebuild);
    let passed = rebuild.last_deleted.map(|last| since(seen, last));
    if count >= MOST && !(ages && passed.is_some_and(|passed| passed > TRIED_AGAIN_AFTER)) {
        return Standing::Exhausted(count);
    }
    let delay = DELAYS.get(count as usize).copied().unwrap_or(DELAYS[3]);
    match delay.checked_sub(passed.unwrap_or(delay)) {
        Some(left) if !left.is_zero() => Standing::TooEarly(left.min(delay)),
        _ => Standing::Due,
    }
}

/// After how long a seat without a pod is tried again although its budget is spent; `None` where that cannot be read.
pub fn tried_again_in(seen: &Observed, role: &Role) -> Option<Duration> {
    let passed = since(seen, rebuild(seen, role)?.last_deleted?);
    TRIED_AGAIN_AFTER.checked_sub(passed).map(|left| left.saturating_add(Duration::from_secs(1)))
}

/// After how long this pod will have been Ready for so long that earlier failures of its seat count no more; zero where
/// it has. `None` where there is nothing to forgive, or no telling (D-18a).
pub fn forgiven_in(seen: &Observed, role: &Role, pod: &PodFacts) -> Option<Duration> {
    let charged = rebuild(seen, role)?.last_deleted.map(|last| since(seen, last));
    let ready = since(seen, pod.ready_since.filter(|_| pod.ready && !pod.is_terminal())?);
    Some(FORGIVEN_AFTER.saturating_sub(charged.map_or(ready, |charged| charged.min(ready))))
}

/// Takes note of the times that a budget depends on, and how old they are. What lies in the future was just now, and from
/// now on time passes however the wall clock jumps (D-48).
pub fn meet(seen: &mut Observed) {
    let [slots, roles] = seen.set.rebuilds.both();
    let mut stated: BTreeSet<Timestamp> = slots.stamps().chain(roles.stamps()).collect();
    if !slots.is_empty() || !roles.is_empty() {
        stated.extend(seen.pods.values().filter(|pod| pod.ready).filter_map(|pod| pod.ready_since));
    }
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

/// The count that still matters: an edit starts a new one.
pub fn counted(seen: &Observed, rebuild: &Rebuild) -> u32 {
    let edited = rebuild.generation.is_some_and(|generation| generation != seen.set.generation);
    if edited { 0 } else { rebuild.count }
}

/// What the history says of this seat, where it says anything that can be read.
pub fn rebuild<'a>(seen: &'a Observed, role: &Role) -> Option<&'a Rebuild> {
    let (annotation, key) = role_key(role)?;
    match seen.set.rebuilds.of(annotation).of(&key) {
        Charged::Times(rebuild) => Some(rebuild),
        Charged::Never | Charged::Unreadable => None,
    }
}

/// True where the spec was edited since the last charge: whatever was given up on then has a fresh budget (D-47).
pub fn is_edited(seen: &Observed, role: &Role) -> bool {
    let generation = rebuild(seen, role).and_then(|rebuild| rebuild.generation);
    generation.is_some_and(|generation| generation != seen.set.generation)
}

/// How many rebuilds of this seat are charged.
pub fn count(seen: &Observed, role: &Role) -> u32 {
    rebuild(seen, role).map_or(0, |rebuild| counted(seen, rebuild))
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
    seen.set.rebuilds.oddities.keys().filter_map(|key| forgiven(seen, key)).min()
}
