//! Every single fault at every call of a set's life: the same end, no error, nothing left undone.

mod chapters;
mod conflicts;
mod fault;
mod lag;
#[path = "../life_common/mod.rs"]
mod life_common;
mod run;

use chapters::CHAPTERS;
use cocoon_operator::core::control::kinds::Kind;
use fault::Fault;
use lag::{From, lagging};
use run::{Free, Tally, attempt, each, free, report, say};

/// Chapters in which a kind is late from each single step on.
const STEP_BY_STEP: [&str; 3] = ["creation", "teardown", "namespace deletion"];

#[test]
fn every_single_fault_at_every_call_ends_the_same() {
    let frees: Vec<Free> = CHAPTERS.iter().map(free).collect();
    let mut cases = Vec::new();
    for free in &frees {
        for nth in 1..=free.calls.len() {
            cases.extend(Fault::ALL.map(|fault| (free, nth, fault)));
        }
    }
    let tallies = each(&cases, |(free, nth, fault)| attempt(free, *nth, *fault));
    let tallies: Vec<Tally> = tallies.into_iter().flatten().collect();
    report(&frees, &tallies);
}

#[test]
fn an_operator_that_sees_one_kind_late_makes_nothing_twice_and_deletes_nothing_newer() {
    let frees: Vec<Free> = CHAPTERS.iter().map(free).collect();
    let mut cases = Vec::new();
    for free in &frees {
        for kind in Kind::ALL {
            cases.push((free, kind, From::Always));
            if STEP_BY_STEP.contains(&free.chapter.name) {
                let steps = 0..free.points.len();
                cases.extend(steps.flat_map(|at| [(free, kind, From::Before(at)), (free, kind, From::After(at))]));
            }
        }
    }
    let wrong: Vec<String> =
        each(&cases, |(free, kind, from)| lagging(free, *kind, *from)).into_iter().flatten().collect();
    say(&format!("{} runs with one kind late\n", cases.len()));
    assert!(wrong.is_empty(), "{} of {} runs went wrong:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

#[test]
fn every_write_of_a_life_meets_its_conflict_once_and_costs_one_write_more() {
    let wrong = conflicts::compare();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
