//! Every single fault at every call of a set's life: the same end, no error, nothing left undone.

mod chapters;
mod fault;
#[path = "../life_common/mod.rs"]
mod life_common;
mod run;

use chapters::CHAPTERS;
use fault::Fault;
use run::{Free, Tally, attempt, each, free, report};

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
