//! One run of a chapter with a fault in it, held against the run without.

use crate::chapters::Chapter;
use crate::fault::{Cost, Fault};
use crate::life_common::state::{difference, state};
use crate::life_common::{Sent, last_deed, sent, tell, wrongs};
use cocoon_operator::scenario::happenings::Happening;
use cocoon_operator::scenario::in_memory::InMemory;
use cocoon_operator::scenario::stage::Stage;
use std::io::Write;
use std::sync::Mutex;
use std::time::Duration;

/// A chapter without faults is over by then, and stays so.
const LONG: Duration = Duration::from_secs(600);
/// How much later than without the fault the end may be reached.
pub const LATER: Duration = Duration::from_secs(35);
/// How long nothing is written afterwards.
pub const QUIET: Duration = Duration::from_secs(600);

/// A chapter as it goes without faults.
pub struct Free {
    pub chapter: &'static Chapter,
    pub start: Duration,
    pub points: Vec<Point>,
    pub calls: Vec<Sent>,
    pub took: Duration,
    pub end: Vec<String>,
    pub happenings: Vec<Happening>,
}

/// A moment at which something is called, from which a run with a fault starts.
pub struct Point {
    /// Everything right before.
    pub stage: InMemory,
    /// When.
    pub at: Duration,
    /// So many calls were made before.
    pub calls: usize,
    /// So much had happened before.
    pub told: usize,
}

/// What a run with a fault came to.
pub struct Tally {
    pub chapter: &'static str,
    pub fault: Fault,
    pub what: String,
    /// More than without the fault.
    pub cost: Cost,
    pub later: Duration,
    pub wrongs: Vec<String>,
    pub story: String,
}

/// Plays a chapter without faults.
pub fn free(chapter: &'static Chapter) -> Free {
    let mut stage = (chapter.given)();
    let start = stage.now();
    (chapter.act)(&mut stage.world);
    let (mut points, mut happenings, mut calls) = (Vec::new(), Vec::new(), Vec::new());
    let mut at = start;
    while at <= start + LONG {
        let point = Point { stage: stage.clone(), at, calls: calls.len(), told: happenings.len() };
        stage.run_until(at);
        let news = stage.take_happenings();
        calls.extend(sent(&news));
        happenings.extend(news);
        if calls.len() > point.calls {
            points.push(point);
        }
        let Some(next) = stage.next_due() else { break };
        at = next.max(at + Duration::from_millis(1));
    }
    assert_eq!(wrongs(&happenings), Vec::<String>::new(), "{}", tell(chapter.name, start, &happenings));
    let took = last_deed(&happenings).saturating_sub(start);
    Free { chapter, start, points, calls, took, end: state(&stage.world), happenings }
}

/// Plays it with a fault at its nth call; none where that call cannot meet it.
pub fn attempt(free: &Free, nth: usize, fault: Fault) -> Option<Tally> {
    let call = free.calls.get(nth - 1)?;
    let point = free.points.iter().rfind(|point| point.calls < nth)?;
    let mut stage = point.stage.clone();
    if !fault.arrange(&mut stage, nth - point.calls, call) {
        return None;
    }
    let what = format!("{}: {fault:?} at call {nth}, {}", free.chapter.name, call.attempt);
    Some(held_against(free, point, stage, (fault, call), what))
}

/// Plays the rest, and says what is not as it should be.
fn held_against(free: &Free, point: &Point, mut stage: InMemory, (fault, call): (Fault, &Sent), what: String) -> Tally {
    let end = free.start + free.took + LATER;
    stage.run_until(end);
    let mut happenings = stage.take_happenings();
    let mut wrong = difference(&free.end, &state(&stage.world));
    stage.run_until(end + QUIET);
    let after = stage.take_happenings();
    let late = sent(&after).iter().filter(|call| call.writes).count();
    if late > 0 {
        wrong.push(format!("{late} writes after it should have been quiet"));
    }
    if wrong.is_empty() {
        wrong = difference(&free.end, &state(&stage.world));
    }
    happenings.extend(after);
    wrong.extend(wrongs(&happenings));
    let cost = Cost::of(&sent(&happenings)).beyond(Cost::of(&free.calls[point.calls..]));
    let one_write = fault != Fault::Conflict || cost.writes() <= 1;
    if !cost.is_within(fault.may_cost(call)) || !one_write {
        wrong.push(format!("costs {cost}"));
    }
    let later = last_deed(&happenings).saturating_sub(free.start + free.took);
    let story = if wrong.is_empty() { String::new() } else { story(free, point, &what, happenings) };
    Tally { chapter: free.chapter.name, fault, what, cost, later, wrongs: wrong, story }
}

/// The whole story of such a run.
pub fn story(free: &Free, point: &Point, what: &str, rest: Vec<Happening>) -> String {
    let mut all = free.happenings[..point.told].to_vec();
    all.extend(rest);
    tell(what, free.start, &all)
}

/// Does this for each case, on every core; results in the order of the cases.
pub fn each<C: Sync, R: Send>(cases: &[C], run: impl Fn(&C) -> R + Sync) -> Vec<R> {
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let next = Mutex::new(0);
    let results = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let at = {
                        let mut next = next.lock().expect("no worker has failed");
                        *next += 1;
                        *next - 1
                    };
                    let Some(case) = cases.get(at) else { return };
                    let result = run(case);
                    results.lock().expect("no worker has failed").push((at, result));
                }
            });
        }
    });
    let mut results = results.into_inner().expect("no worker has failed");
    results.sort_by_key(|(at, _)| *at);
    results.into_iter().map(|(_, result)| result).collect()
}

/// Prints past the capture of the harness.
pub fn say(text: &str) {
    drop(std::io::stderr().write_all(text.as_bytes()));
}

/// Prints the counts; fails with what went wrong.
pub fn report(frees: &[Free], tallies: &[Tally]) {
    let mut text = String::new();
    for free in frees {
        let of = || tallies.iter().filter(|tally| tally.chapter == free.chapter.name);
        let (calls, took) = (free.calls.len(), free.took);
        text += &line(&format!("{}: {calls} calls, took {took:?}", free.chapter.name), of());
    }
    for fault in Fault::ALL {
        text += &line(&format!("{fault:?}"), tallies.iter().filter(|tally| tally.fault == fault));
    }
    let calls: usize = frees.iter().map(|free| free.calls.len()).sum();
    text += &format!("{} runs over {calls} calls\n", tallies.len());
    say(&text);
    let bad: Vec<&Tally> = tallies.iter().filter(|tally| !tally.wrongs.is_empty()).collect();
    let list: Vec<String> =
        bad.iter().map(|tally| format!("{}\n    {}", tally.what, tally.wrongs.join("\n    "))).collect();
    let first = bad.first().map(|tally| tally.story.as_str()).unwrap_or_default();
    assert!(bad.is_empty(), "{} of {} runs went wrong:\n{}\n\n{first}", bad.len(), tallies.len(), list.join("\n"));
}

fn line<'a>(title: &str, tallies: impl Iterator<Item = &'a Tally>) -> String {
    let (mut runs, mut most, mut later) = (0, Cost::default(), Duration::ZERO);
    for tally in tallies {
        (runs, most, later) = (runs + 1, most.max(tally.cost), later.max(tally.later));
    }
    format!("{title:54} {runs:4} runs, at most {most}, {later:?} later\n")
}
