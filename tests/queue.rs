//! The work queue: what goes first, what may not run together, and that nothing is lost.

use cocoon_operator::core::control::queue::{Priority, Queue, Rest, Stats};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::time::Duration;

type Q = Queue<&'static str, &'static str>;

const fn s(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// Adds keys of a lane each, as events.
fn events(queue: &mut Q, keys: &[&'static str], now: Duration) {
    for key in keys {
        queue.add(key, key, Priority::Event, now);
    }
}

fn all(queue: &mut Q, now: Duration) -> Vec<&'static str> {
    std::iter::from_fn(|| queue.next(now)).collect()
}

#[test]
fn keys_go_in_the_order_in_which_they_came_and_once() {
    let mut queue = Q::new();
    events(&mut queue, &["b", "a", "c", "b", "a"], s(0));
    assert_eq!(queue.stats(s(0)).depth, 3);
    assert_eq!(all(&mut queue, s(0)), ["b", "a", "c"]);
    assert_eq!(queue.stats(s(0)).adds, 3);
}

#[test]
fn an_edit_overtakes_events_and_they_overtake_resyncs() {
    let mut queue = Q::new();
    queue.add("resync", "1", Priority::Resync, s(0));
    queue.add("event", "2", Priority::Event, s(1));
    queue.add("later", "3", Priority::Event, s(1));
    queue.add("edit", "4", Priority::Edit, s(2));
    assert_eq!(all(&mut queue, s(2)), ["edit", "event", "later", "resync"]);
}

#[test]
fn a_waiting_key_becomes_as_urgent_as_the_most_urgent_who_asks() {
    let mut queue = Q::new();
    queue.add("a", "a", Priority::Event, s(0));
    queue.add("b", "b", Priority::Resync, s(0));
    queue.add("b", "b", Priority::Edit, s(1));
    queue.add("b", "b", Priority::Resync, s(1));
    assert_eq!(all(&mut queue, s(1)), ["b", "a"]);
    // It has waited since it was first added.
    assert_eq!(queue.take_spans().queued, [s(1), s(1)]);
}

#[test]
fn what_is_added_during_its_own_pass_is_looked_at_once_more() {
    let mut queue = Q::new();
    events(&mut queue, &["a"], s(0));
    assert_eq!(queue.next(s(0)), Some("a"));
    events(&mut queue, &["a", "a"], s(1));
    assert_eq!(queue.next(s(1)), None, "never twice at once");
    queue.done(&"a", s(2), Rest::After(s(60)));
    assert_eq!(queue.next(s(2)), Some("a"));
    queue.done(&"a", s(3), Rest::OnChange);
    assert_eq!(
        (queue.next(s(100)), queue.is_empty()),
        (None, true),
        "the first pass's delay does not outlive the second"
    );
}

#[test]
fn two_keys_of_a_lane_never_run_at_once_and_do_not_hold_up_others() {
    let mut queue = Q::new();
    queue.add("set", "vm", Priority::Event, s(0));
    queue.add("request", "vm", Priority::Edit, s(0));
    queue.add("other", "elsewhere", Priority::Resync, s(0));
    assert_eq!(all(&mut queue, s(0)), ["request", "other"]);
    queue.done(&"other", s(1), Rest::OnChange);
    assert_eq!(queue.next(s(1)), None);
    queue.done(&"request", s(1), Rest::OnChange);
    assert_eq!(queue.next(s(1)), Some("set"));
}

#[test]
fn a_key_that_changes_its_lane_frees_the_one_it_ran_in() {
    let mut queue = Q::new();
    queue.add("request", "old", Priority::Event, s(0));
    assert_eq!(queue.next(s(0)), Some("request"));
    queue.add("request", "new", Priority::Event, s(1));
    queue.add("set", "old", Priority::Event, s(1));
    assert_eq!(queue.next(s(1)), None);
    queue.done(&"request", s(2), Rest::OnChange);
    assert_eq!(all(&mut queue, s(2)), ["set", "request"]);
}

#[test]
fn of_two_delays_the_earlier_holds() {
    let mut queue = Q::new();
    for delay in [30, 10, 20] {
        queue.add_after("a", "a", Priority::Event, s(0), s(delay));
    }
    assert_eq!(queue.next_due(), Some(s(10)));
    assert_eq!(queue.next(s(9)), None);
    assert_eq!(queue.next(s(12)), Some("a"));
    assert_eq!(queue.take_spans().queued, [s(2)], "late by two seconds");
    queue.done(&"a", s(12), Rest::OnChange);
    assert_eq!((queue.next(s(99)), queue.next_due()), (None, None));
    queue.add_after("a", "a", Priority::Edit, s(99), s(0));
    assert_eq!(queue.next(s(99)), Some("a"), "no delay is now");
}

#[test]
fn a_rest_ends_after_its_delay_or_with_the_next_event() {
    let mut queue = Q::new();
    events(&mut queue, &["a"], s(0));
    queue.next(s(0));
    queue.done(&"a", s(1), Rest::After(s(30)));
    assert_eq!((queue.next_due(), queue.next(s(30))), (Some(s(31)), None));
    events(&mut queue, &["a"], s(30));
    assert_eq!(queue.next(s(30)), Some("a"));
    queue.done(&"a", s(30), Rest::OnChange);
    assert_eq!(queue.next(s(31)), None, "the pass in between decided anew");
    assert!(queue.is_empty());
}

#[test]
fn a_delayed_add_outlives_a_pass_that_began_before_it_was_due() {
    let mut queue = Q::new();
    queue.add_after("a", "a", Priority::Event, s(0), s(10));
    events(&mut queue, &["a"], s(1));
    assert_eq!(queue.next(s(1)), Some("a"));
    queue.done(&"a", s(2), Rest::OnChange);
    assert_eq!(queue.next_due(), Some(s(10)));
    assert_eq!(queue.next(s(10)), Some("a"));
}

#[test]
fn endless_edits_delay_a_resync_but_do_not_starve_it() {
    let mut queue = Queue::<u64, u64>::new();
    queue.add(0, 0, Priority::Resync, s(0));
    let ran = (1..1_000).find(|&n| {
        queue.add(n, n, Priority::Edit, s(n));
        let key = queue.next(s(n)).expect("something waits");
        queue.done(&key, s(n), Rest::OnChange);
        key == 0
    });
    assert!(ran.is_some_and(|n| (31..=39).contains(&n)), "{ran:?}");
}

#[test]
fn the_metrics_say_what_waits_and_what_runs() {
    let mut queue = Q::new();
    events(&mut queue, &["a", "b", "c"], s(0));
    queue.next(s(2));
    queue.next(s(4));
    queue.add("a", "a", Priority::Event, s(5));
    let expected = Stats { adds: 4, retries: 0, depth: 1, running: 2, unfinished: s(14), longest_running: s(8) };
    assert_eq!(queue.stats(s(10)), expected);
    queue.done(&"b", s(11), Rest::After(s(5)));
    assert_eq!(queue.stats(s(11)).retries, 1);
    let spans = queue.take_spans();
    assert_eq!((spans.queued, spans.worked), (vec![s(2), s(4)], vec![s(7)]));
    assert_eq!(queue.take_spans(), Default::default());
}

#[test]
fn finishing_what_does_not_run_changes_nothing() {
    let mut queue = Q::new();
    events(&mut queue, &["a"], s(0));
    queue.done(&"a", s(0), Rest::After(s(9)));
    queue.done(&"b", s(0), Rest::After(s(9)));
    assert_eq!((queue.next_due(), queue.next(s(0)), queue.stats(s(0)).retries), (None, Some("a"), 0));
}

#[derive(Clone, Debug)]
enum Step {
    Add(u8, Priority),
    AddAfter(u8, Priority, u64),
    Next,
    Done(usize, Option<u64>),
    Pass(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let priority = || proptest::sample::select(vec![Priority::Resync, Priority::Event, Priority::Edit]);
    let step = prop_oneof![
        3 => (0..8u8, priority()).prop_map(|(k, p)| Step::Add(k, p)),
        2 => (0..8u8, priority(), 0..20u64).prop_map(|(k, p, d)| Step::AddAfter(k, p, d)),
        4 => Just(Step::Next),
        3 => (any::<usize>(), proptest::option::of(0..20u64)).prop_map(|(i, d)| Step::Done(i, d)),
        2 => (1..8u64).prop_map(Step::Pass),
    ];
    proptest::collection::vec(step, 0..120)
}

/// What must be true, kept apart from how the queue does it.
#[derive(Default)]
struct Model {
    now: Duration,
    /// Keys that want a look, and how urgently.
    owed: BTreeMap<u8, Priority>,
    alarms: BTreeMap<u8, (Duration, Priority)>,
    rests: BTreeMap<u8, Duration>,
    running: Vec<u8>,
}

const fn lane(key: u8) -> u8 {
    key % 3
}

impl Model {
    fn owe(&mut self, key: u8, priority: Priority) {
        let owed = self.owed.entry(key).or_insert(priority);
        *owed = priority.max(*owed);
    }
    fn fire(&mut self) {
        let due: Vec<(u8, Priority)> =
            self.alarms.iter().filter(|(_, (at, _))| *at <= self.now).map(|(k, (_, p))| (*k, *p)).collect();
        for (key, priority) in due {
            self.alarms.remove(&key);
            self.owe(key, priority);
        }
        let due: Vec<u8> = self.rests.iter().filter(|(_, at)| **at <= self.now).map(|(k, _)| *k).collect();
        for key in due {
            self.rests.remove(&key);
            self.owe(key, Priority::Event);
        }
    }
    fn free(&self, key: u8) -> bool {
        self.running.iter().all(|other| lane(*other) != lane(key))
    }
    fn next(&mut self, queue: &mut Queue<u8, u8>) -> Result<Option<u8>, TestCaseError> {
        let got = queue.next(self.now);
        self.fire();
        let best = self.owed.iter().filter(|(key, _)| self.free(**key)).map(|(_, priority)| *priority).max();
        match got {
            None => prop_assert_eq!(best, None, "idle while a key of a free lane waits"),
            Some(key) => {
                prop_assert!(self.free(key), "{} runs beside another of its lane", key);
                let priority = self.owed.remove(&key);
                prop_assert!(priority.is_some(), "{} runs though nobody asked, or before its time", key);
                // Whoever has waited for half a minute may go before the more urgent.
                let tired = queue.take_spans().queued.last().is_some_and(|waited| *waited > s(30));
                prop_assert!(tired || priority == best, "{:?} before {:?}", priority, best);
                self.rests.remove(&key);
                self.running.push(key);
            }
        }
        let due = self.alarms.values().map(|(at, _)| *at).chain(self.rests.values().copied()).min();
        prop_assert_eq!(queue.next_due(), due);
        Ok(got)
    }
    fn done(&mut self, queue: &mut Queue<u8, u8>, index: usize, delay: Option<u64>) {
        let key = self.running.remove(index % self.running.len());
        let again = self.owed.contains_key(&key);
        queue.done(&key, self.now, delay.map_or(Rest::OnChange, |d| Rest::After(s(d))));
        if let (Some(delay), false) = (delay, again) {
            self.rests.insert(key, self.now + s(delay));
        }
    }
    fn take(&mut self, queue: &mut Queue<u8, u8>, step: &Step) -> Result<(), TestCaseError> {
        match *step {
            Step::Add(key, priority) => {
                queue.add(key, lane(key), priority, self.now);
                self.owe(key, priority);
            }
            Step::AddAfter(key, priority, 0) => {
                queue.add_after(key, lane(key), priority, self.now, s(0));
                self.owe(key, priority);
            }
            Step::AddAfter(key, priority, delay) => {
                queue.add_after(key, lane(key), priority, self.now, s(delay));
                let (at, p) = *self.alarms.entry(key).or_insert((self.now + s(delay), priority));
                self.alarms.insert(key, (at.min(self.now + s(delay)), p.max(priority)));
            }
            Step::Next => {
                self.next(queue)?;
            }
            Step::Done(index, delay) if !self.running.is_empty() => self.done(queue, index, delay),
            Step::Done(..) => {}
            Step::Pass(secs) => self.now += s(secs),
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_lost_nothing_is_early_and_no_lane_is_shared(steps in steps()) {
        let (mut queue, mut model) = (Queue::new(), Model::default());
        for step in &steps {
            // The queue sees the time only when it is asked, so the model lets delays end at the same moments.
            if matches!(step, Step::Done(..)) {
                model.next(&mut queue)?;
            }
            model.take(&mut queue, step)?;
        }
        for _ in 0..1_000 {
            if model.next(&mut queue)?.is_some() {
                continue;
            }
            if !model.running.is_empty() {
                model.done(&mut queue, 0, None);
            } else if let Some(due) = queue.next_due() {
                model.now = due;
            } else {
                break;
            }
        }
        prop_assert!(model.owed.is_empty() && model.alarms.is_empty() && model.rests.is_empty() && model.running.is_empty());
        prop_assert!(queue.is_empty(), "the queue keeps what nobody needs");
    }
}
