//! An operator that sees one kind late: nothing is made twice, and nothing newer is deleted.

use crate::life_common::state::{difference, state};
use crate::life_common::{Sent, sent, wrongs};
use crate::run::{Free, LATER, Point, QUIET, story};
use cocoon_operator::core::action::ActionKind;
use cocoon_operator::core::control::kinds::Kind;
use cocoon_operator::core::outcome::Class;
use cocoon_operator::scenario::happenings::Happening;
use cocoon_operator::scenario::in_memory::InMemory;
use cocoon_operator::scenario::stage::{OperatorEvent, Stage};
use std::collections::BTreeMap;
use std::time::Duration;

/// How late.
pub const LAG: Duration = Duration::from_secs(5);

/// From when on the kind is late.
#[derive(Clone, Copy, Debug)]
pub enum From {
    /// It stands still from right before this step, until the lag is over.
    Before(usize),
    /// From right after it.
    After(usize),
    /// Everything of it shows late, in the whole chapter.
    Always,
}

/// Plays a chapter with one kind late; what is wrong with that, and the story of it.
pub fn lagging(free: &Free, kind: Kind, from: From) -> Option<String> {
    let at = match from {
        From::Before(at) | From::After(at) => at,
        From::Always => 0,
    };
    let point = &free.points[at];
    let mut stage = point.stage.clone();
    let mut end = free.start + free.took + LATER;
    match from {
        From::Before(_) => stands_still(&mut stage, kind, point.at),
        From::After(_) => {
            stage.run_until(point.at);
            stands_still(&mut stage, kind, point.at);
        }
        From::Always => {
            stage.show_late(kind, LAG);
            // Each step may wait for the one before to show.
            end += LAG * u32::try_from(free.points.len()).expect("few steps");
        }
    }
    stage.run_until(end);
    let mut happenings = stage.take_happenings();
    let mut wrong = difference(&free.end, &state(&stage.world));
    stage.run_until(end + QUIET);
    let after = stage.take_happenings();
    let late = sent(&after).iter().filter(|call| call.writes).count();
    if late > 0 {
        wrong.push(format!("{late} writes after it should have been quiet"));
    }
    happenings.extend(after);
    wrong.extend(wrongs(&happenings));
    wrong.extend(twice(free, point, &happenings));
    let what = format!("{}: {} {from:?} late by {LAG:?}", free.chapter.name, kind.resource());
    (!wrong.is_empty())
        .then(|| format!("{what}\n    {}\n{}", wrong.join("\n    "), story(free, point, &what, happenings)))
}

fn stands_still(stage: &mut InMemory, kind: Kind, from: Duration) {
    stage.operator(OperatorEvent::Lag(kind, true));
    stage.run_until(from + LAG);
    stage.operator(OperatorEvent::Lag(kind, false));
}

/// Creates that met what was made before, and more creates or deletes that were carried out than without lag: such a
/// delete took what had come in the place of what was to go.
fn twice(free: &Free, point: &Point, happenings: &[Happening]) -> Vec<String> {
    let calls = sent(happenings);
    let mut wrong: Vec<String> = calls
        .iter()
        .filter(|call| call.action == ActionKind::CreatePod && !call.attempt.dry_run)
        .filter(|call| call.class != Class::Done)
        .map(|call| format!("{} came to {}", call.attempt, call.class))
        .collect();
    let count = |calls: &[Sent]| {
        let mut counts: BTreeMap<_, usize> = BTreeMap::new();
        let done = calls.iter().filter(|call| call.class == Class::Done && !call.attempt.dry_run);
        for call in done.filter(|call| [ActionKind::CreatePod, ActionKind::DeletePod].contains(&call.action)) {
            *counts.entry(call.attempt.clone()).or_default() += 1;
        }
        counts
    };
    let usual = count(&free.calls[point.calls..]);
    let more = count(&calls).into_iter().filter(|(attempt, times)| *times > usual.get(attempt).copied().unwrap_or(0));
    wrong.extend(more.map(|(attempt, times)| format!("{attempt} done {times} times")));
    wrong
}
