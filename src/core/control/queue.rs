//! What to look at next: which key, how urgent, in which lane, and not before when.
//!
//! Nothing here waits. A driver calls [`Queue::next`] until it gives nothing, then sleeps until [`Queue::next_due`] or
//! until somebody adds or finishes a key. Time is a duration since a start that the driver chose; it never runs back
//! (an earlier `now` counts as no time passed).

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How urgent a look is. The greater goes first; within one, the older.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// Nothing is known to have changed: a start or a periodic look.
    Resync,
    /// Something changed in the world, or a wait is over.
    Event,
    /// A person changed what they want. It overtakes thousands of resyncs.
    Edit,
}

/// What a pass says about its key when it is over. Delays are the core's (decision R3); the queue keeps time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// Nothing to do until something changes.
    OnChange,
    /// Look again after this long, whatever happens.
    After(Duration),
}

/// Every `TURNS`th turn goes to the key that has waited longest, if that is more than `PATIENCE`: endless edits delay a
/// resync, but do not starve it.
const TURNS: u64 = 8;
const PATIENCE: Duration = Duration::from_secs(30);

/// How many spans are kept for a driver that does not collect them; later ones are not recorded.
const MAX_SPANS: usize = 1_024;

/// Keys to look at. Each is queued at most once, worked on by at most one worker, and never beside another key of its
/// lane (decision R28).
#[derive(Clone, Debug)]
pub struct Queue<K, L> {
    entries: BTreeMap<K, Entry<L>>,
    /// Waiting keys in the order in which they go.
    ready: BTreeSet<(Reverse<Priority>, u64, K)>,
    /// Waiting keys by age.
    oldest: BTreeSet<(Duration, u64, K)>,
    /// Keys with a delay, by when it is over.
    timers: BTreeSet<(Duration, K)>,
    busy: BTreeSet<L>,
    sequence: u64,
    turns: u64,
    adds: u64,
    retries: u64,
    spans: Spans,
}

#[derive(Clone, Debug)]
struct Entry<L> {
    /// Where its next pass runs.
    lane: L,
    waiting: Option<Waiting>,
    running: Option<Running<L>>,
    /// A delayed add: stays until it is due, whatever happens before.
    alarm: Option<(Duration, Priority)>,
    /// What the last pass asked for: the next pass decides anew.
    rest: Option<Duration>,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    priority: Priority,
    since: Duration,
    sequence: u64,
}

#[derive(Clone, Debug)]
struct Running<L> {
    lane: L,
    since: Duration,
    /// Added again meanwhile: what this pass has seen is already old.
    redo: Option<(Priority, Duration)>,
}

/// What the `workqueue_*` metrics show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Keys added that were not queued already (`workqueue_adds_total`).
    pub adds: u64,
    /// Looks put off (`workqueue_retries_total`).
    pub retries: u64,
    /// Keys waiting (`workqueue_depth`).
    pub depth: usize,
    /// Keys being worked on.
    pub running: usize,
    /// How long all running passes have run, together (`workqueue_unfinished_work_seconds`).
    pub unfinished: Duration,
    /// How long the longest of them has (`workqueue_longest_running_processor_seconds`).
    pub longest_running: Duration,
}

/// Spans since they were last collected, for histograms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spans {
    /// From add to start (`workqueue_queue_duration_seconds`).
    pub queued: Vec<Duration>,
    /// From start to done (`workqueue_work_duration_seconds`).
    pub worked: Vec<Duration>,
}

impl<K, L> Default for Queue<K, L> {
    fn default() -> Self {
        Self {
            entries: BTreeMap::new(),
            ready: BTreeSet::new(),
            oldest: BTreeSet::new(),
            timers: BTreeSet::new(),
            busy: BTreeSet::new(),
            sequence: 0,
            turns: 0,
            adds: 0,
            retries: 0,
            spans: Spans::default(),
        }
    }
}

impl<K: Ord + Clone, L: Ord + Clone> Queue<K, L> {
    /// An empty queue.
    pub fn new() -> Self {
        Self::default()
    }

    /// This key wants a look now, in this lane. One that waits already keeps its place, or moves ahead if this is more
    /// urgent; one that is being worked on is looked at once more.
    pub fn add(&mut self, key: K, lane: L, priority: Priority, now: Duration) {
        let entry = self.entry(&key, lane);
        if let Some(running) = &mut entry.running {
            let fresh = running.redo.is_none();
            let (before, since) = running.redo.unwrap_or((priority, now));
            running.redo = Some((before.max(priority), since));
            self.adds += u64::from(fresh);
        } else if self.enqueue(&key, priority, now) {
            self.adds += 1;
        }
    }

    /// This key wants a look after this long. Of two delays of a key the earlier holds, with the greater urgency.
    pub fn add_after(&mut self, key: K, lane: L, priority: Priority, now: Duration, delay: Duration) {
        if delay.is_zero() {
            return self.add(key, lane, priority, now);
        }
        self.retries += 1;
        let at = now.saturating_add(delay);
        self.change_timers(&key, Some(lane), |entry| {
            entry.alarm = Some(entry.alarm.map_or((at, priority), |(t, p)| (t.min(at), p.max(priority))));
        });
    }

    /// The key to work on now, if any; its lane is taken until [`Queue::done`]. What its last pass asked for is
    /// forgotten: this pass decides anew.
    pub fn next(&mut self, now: Duration) -> Option<K> {
        self.fire(now);
        let key = self.pick(now)?;
        let waiting = self.dequeue(&key)?;
        self.turns += 1;
        record(&mut self.spans.queued, now.saturating_sub(waiting.since));
        self.change_timers(&key, None, |entry| {
            entry.rest = None;
            entry.running = Some(Running { lane: entry.lane.clone(), since: now, redo: None });
        });
        if let Some(running) = self.entries.get(&key).and_then(|entry| entry.running.as_ref()) {
            self.busy.insert(running.lane.clone());
        }
        Some(key)
    }

    /// The pass over this key is over. A key that is not being worked on is left as it is.
    pub fn done(&mut self, key: &K, now: Duration, rest: Rest) {
        let Some(running) = self.entries.get_mut(key).and_then(|entry| entry.running.take()) else { return };
        self.busy.remove(&running.lane);
        record(&mut self.spans.worked, now.saturating_sub(running.since));
        match (running.redo, rest) {
            // The pass that follows will say for itself when to look again.
            (Some((priority, since)), _) => {
                self.enqueue(key, priority, since);
            }
            (None, Rest::After(delay)) => {
                self.retries += 1;
                self.change_timers(key, None, |entry| entry.rest = Some(now.saturating_add(delay)));
            }
            (None, Rest::OnChange) => {}
        }
        self.forget_if_idle(key);
    }

    /// When the next delay is over, if nothing else happens before.
    pub fn next_due(&self) -> Option<Duration> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// True where nothing waits, runs or is due later.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Counters and gauges at this moment.
    pub fn stats(&self, now: Duration) -> Stats {
        let running = self.entries.values().filter_map(|entry| entry.running.as_ref());
        let spans: Vec<Duration> = running.map(|running| now.saturating_sub(running.since)).collect();
        Stats {
            adds: self.adds,
            retries: self.retries,
            depth: self.ready.len(),
            running: spans.len(),
            unfinished: spans.iter().fold(Duration::ZERO, |sum, span| sum.saturating_add(*span)),
            longest_running: spans.iter().max().copied().unwrap_or_default(),
        }
    }

    /// The spans since the last call.
    pub fn take_spans(&mut self) -> Spans {
        std::mem::take(&mut self.spans)
    }

    /// The most urgent key whose lane is free, or the one that has waited too long.
    fn pick(&self, now: Duration) -> Option<K> {
        let free = |key: &K| self.entries.get(key).is_some_and(|entry| !self.busy.contains(&entry.lane));
        if self.turns % TURNS == TURNS - 1 {
            let tired = self.oldest.iter().take_while(|(since, ..)| now.saturating_sub(*since) > PATIENCE);
            if let Some((.., key)) = tired.into_iter().find(|(.., key)| free(key)) {
                return Some(key.clone());
            }
        }
        self.ready.iter().find(|(.., key)| free(key)).map(|(.., key)| key.clone())
    }

    /// Turns every delay that is over into a look. It has waited since it was due, not since somebody noticed.
    fn fire(&mut self, now: Duration) {
        while let Some((at, key)) = self.timers.first().filter(|(at, _)| *at <= now).cloned() {
            let mut priority = Priority::Event;
            self.change_timers(&key, None, |entry| {
                if let Some((_, wanted)) = entry.alarm.take_if(|(due, _)| *due <= at) {
                    priority = wanted;
                }
                if entry.rest.take_if(|due| *due <= at).is_some() {
                    priority = priority.max(Priority::Event);
                }
            });
            if let Some(entry) = self.entries.get(&key) {
                self.add(key, entry.lane.clone(), priority, at);
            }
        }
    }

    /// The entry of this key, made if need be, with its newest lane.
    fn entry(&mut self, key: &K, lane: L) -> &mut Entry<L> {
        let fresh = || Entry { lane: lane.clone(), waiting: None, running: None, alarm: None, rest: None };
        let entry = self.entries.entry(key.clone()).or_insert_with(fresh);
        entry.lane = lane;
        entry
    }

    /// Lets a key wait from now on, or moves it ahead. True if it was not waiting.
    fn enqueue(&mut self, key: &K, priority: Priority, now: Duration) -> bool {
        let before = self.dequeue(key);
        let waiting = before.map_or_else(
            || {
                self.sequence += 1;
                Waiting { priority, since: now, sequence: self.sequence }
            },
            |waiting| Waiting { priority: waiting.priority.max(priority), ..waiting },
        );
        if let Some(entry) = self.entries.get_mut(key) {
            entry.waiting = Some(waiting);
            self.ready.insert((Reverse(waiting.priority), waiting.sequence, key.clone()));
            self.oldest.insert((waiting.since, waiting.sequence, key.clone()));
        }
        before.is_none()
    }

    fn dequeue(&mut self, key: &K) -> Option<Waiting> {
        let waiting = self.entries.get_mut(key)?.waiting.take()?;
        self.ready.remove(&(Reverse(waiting.priority), waiting.sequence, key.clone()));
        self.oldest.remove(&(waiting.since, waiting.sequence, key.clone()));
        Some(waiting)
    }

    /// Changes an entry and keeps `timers` in step with it.
    fn change_timers(&mut self, key: &K, lane: Option<L>, change: impl FnOnce(&mut Entry<L>)) {
        let entry = match lane {
            Some(lane) => self.entry(key, lane),
            None => match self.entries.get_mut(key) {
                Some(entry) => entry,
                None => return,
            },
        };
        let before = entry.due();
        change(entry);
        let after = entry.due();
        if let Some(at) = before {
            self.timers.remove(&(at, key.clone()));
        }
        if let Some(at) = after {
            self.timers.insert((at, key.clone()));
        }
    }

    /// Keeps memory in proportion to what is left to do.
    fn forget_if_idle(&mut self, key: &K) {
        if self.entries.get(key).is_some_and(|e| e.waiting.is_none() && e.running.is_none() && e.due().is_none()) {
            self.entries.remove(key);
        }
    }
}

impl<L> Entry<L> {
    /// When the earlier of its delays is over.
    fn due(&self) -> Option<Duration> {
        [self.alarm.map(|(at, _)| at), self.rest].into_iter().flatten().min()
    }
}

fn record(spans: &mut Vec<Duration>, span: Duration) {
    if spans.len() < MAX_SPANS {
        spans.push(span);
    }
}
