//! The last passes of each object, told as in a transcript: what the debug endpoint of a running operator shows. Bounded
//! in passes and bytes, for each object and for all.

use super::embedded::Recorder;
use super::happenings::{Happening, PassStory};
use super::transcript::tell;
use crate::core::control::wake::Key;
use crate::shell::clock::Clock;
use crate::shell::debug::Desk;
use crate::shell::telling::{Heard, Witness};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::time::Instant;

/// Passes kept of one object.
const PASSES: usize = 20;
/// Bytes kept of one pass; the rest of it is cut.
const PASS_BYTES: usize = 16 << 10;
/// Bytes kept of one object.
const OBJECT_BYTES: usize = 64 << 10;
/// Objects that passes are kept of; those that were not looked at for the longest go first.
const OBJECTS: usize = 2_000;
/// Bytes kept of all.
const BYTES: usize = 16 << 20;

/// Hears passes and keeps the last.
#[derive(Debug)]
pub struct Ring {
    recorder: Recorder,
    clock: Clock,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    objects: BTreeMap<Key, Object>,
    /// By when they were looked at last.
    order: BTreeMap<u64, Key>,
    bytes: usize,
    count: u64,
}

#[derive(Debug, Default)]
struct Object {
    passes: VecDeque<Told>,
    bytes: usize,
    last: u64,
}

/// A pass, and those right after it that were the same word by word.
#[derive(Debug)]
struct Told {
    at: String,
    text: String,
    again: u32,
    until: String,
}

impl Ring {
    /// Keeps nothing yet. To be made within the runtime.
    pub fn new(clock: Clock) -> Self {
        Self { recorder: Recorder::new("", Instant::now()), clock, inner: Mutex::default() }
    }

    /// How many objects, and how many bytes, are kept.
    pub fn sizes(&self) -> (usize, usize) {
        let inner = self.lock();
        (inner.objects.len(), inner.bytes)
    }

    fn keep(&self, story: PassStory) {
        let at = jiff::Timestamp::from_second(self.clock.wall().as_second()).unwrap_or_default().to_string();
        let key = story.key.clone();
        let origin = story.at;
        let told = tell("", origin, &[Happening::Pass(Box::new(story))]);
        let told = told.trim_start_matches('\n').to_owned();
        let told = if told.is_empty() { format!("{:>7}  nothing to do, nothing to say\n", "0s") } else { told };
        self.lock().keep(key, at, &told);
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn keep(&mut self, key: Key, at: String, text: &str) {
        self.count += 1;
        let object = self.objects.entry(key.clone()).or_default();
        self.order.remove(&object.last);
        object.last = self.count;
        self.order.insert(self.count, key);
        let before = object.bytes;
        object.add(at, text);
        self.bytes = (self.bytes + object.bytes).saturating_sub(before);
        while self.objects.len() > OBJECTS || self.bytes > BYTES {
            let Some((_, oldest)) = self.order.pop_first() else { return };
            let gone = self.objects.remove(&oldest).map_or(0, |object| object.bytes);
            self.bytes = self.bytes.saturating_sub(gone);
        }
    }
}

impl Object {
    fn add(&mut self, at: String, text: &str) {
        let mut text = crate::core::oddity::excerpt(text, PASS_BYTES);
        if !text.ends_with('\n') {
            text.push('\n');
        }
        if let Some(last) = self.passes.back_mut().filter(|last| last.text == text) {
            last.again += 1;
            last.until = at;
            return;
        }
        self.bytes += text.len();
        self.passes.push_back(Told { until: at.clone(), at, text, again: 0 });
        while self.passes.len() > PASSES || self.bytes > OBJECT_BYTES {
            let Some(oldest) = self.passes.pop_front() else { return };
            self.bytes = self.bytes.saturating_sub(oldest.text.len());
        }
    }
}

impl Witness for Ring {
    fn hears(&self, key: &Key, heard: Heard<'_>) {
        self.recorder.hears(key, heard);
        if matches!(heard, Heard::Rested { .. } | Heard::GaveUp { .. }) {
            self.recorder.take().into_iter().for_each(|story| self.keep(story));
        }
    }
}

impl Desk for Ring {
    fn told(&self, key: &Key) -> Option<String> {
        let inner = self.lock();
        let object = inner.objects.get(key)?;
        let mut out = format!("The last {} passes over {key}\n", object.passes.len());
        for told in &object.passes {
            out.push_str(&format!("\n── {}\n{}", told.at, told.text));
            if told.again > 0 {
                let times = if told.again == 1 { "once".to_owned() } else { format!("{} times", told.again) };
                out.push_str(&format!("         … and so again, {times}, last at {}\n", told.until));
            }
        }
        Some(out)
    }

    fn keys(&self) -> Vec<Key> {
        self.lock().objects.keys().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_bounded_for_one_and_for_all() {
        let mut inner = Inner::default();
        let long = "é".repeat(PASS_BYTES);
        for pass in 0..100 {
            inner.keep(Key::new("ns", "demo"), pass.to_string(), &format!("{pass} {long}"));
        }
        let object = inner.objects.get(&Key::new("ns", "demo")).expect("it is kept");
        assert!(object.passes.len() == 3 && object.bytes <= OBJECT_BYTES, "{} {}", object.passes.len(), object.bytes);
        assert_eq!(object.passes.back().expect("passes").at, "99");
        for number in 0..3_000 {
            inner.keep(Key::new("ns", &format!("set-{number}")), "now".to_owned(), &long);
        }
        assert!(inner.bytes <= BYTES && inner.objects.len() <= OBJECTS);
        assert!(inner.objects.contains_key(&Key::new("ns", "set-2999")) && inner.order.len() == inner.objects.len());
    }

    #[test]
    fn the_same_again_is_said_once() {
        let mut object = Object::default();
        for at in ["1", "2", "3"] {
            object.add(at.to_owned(), "waits\n");
        }
        assert_eq!((object.passes.len(), object.passes[0].again, object.passes[0].until.as_str()), (1, 2, "3"));
    }
}
