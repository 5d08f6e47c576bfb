//! Conditions whose transition time moves only when their status does (CS-P6).

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// `metav1.Condition` as it stands on the wire (api.md 1.5).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// `Ready`, `Progressing`, `Suspended`, `Degraded` (R10), or somebody else's.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// The generation it was judged at.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub observed_generation: i64,
    /// When `status` last changed, RFC 3339.
    pub last_transition_time: String,
    /// One word.
    pub reason: String,
    /// A sentence.
    pub message: String,
}

/// The schema's limit for a message.
const MESSAGE_LIMIT: usize = 32_768;

fn is_zero(generation: &i64) -> bool {
    *generation == 0
}

impl Condition {
    /// A condition without a transition time: [`merge`] gives it one.
    pub fn new(kind: &str, status: bool, reason: &str, message: impl Into<String>, generation: i64) -> Self {
        let mut message: String = message.into();
        // The schema counts characters; bytes are never fewer.
        let mut end = MESSAGE_LIMIT.min(message.len());
        while !message.is_char_boundary(end) {
            end -= 1;
        }
        message.truncate(end);
        Self {
            kind: kind.to_owned(),
            status: if status { "True" } else { "False" }.to_owned(),
            observed_generation: generation,
            last_transition_time: String::new(),
            reason: reason.to_owned(),
            message,
        }
    }
    /// True where the status is `True`.
    pub fn is_true(&self) -> bool {
        self.status == "True"
    }
    /// Reads the list of a status. Entries that the schema would refuse are dropped: written back as they are, they
    /// would make the whole status invalid.
    pub fn read_all(conditions: &Value) -> Vec<Self> {
        conditions.as_array().into_iter().flatten().filter_map(Self::read).collect()
    }
    fn read(value: &Value) -> Option<Self> {
        let text = |key| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let read = Self {
            kind: text("type"),
            status: text("status"),
            observed_generation: value.get("observedGeneration").and_then(Value::as_i64).unwrap_or_default(),
            last_transition_time: text("lastTransitionTime"),
            reason: text("reason"),
            message: text("message"),
        };
        let is_sound = !read.kind.is_empty()
            && ["True", "False", "Unknown"].contains(&read.status.as_str())
            && !read.reason.is_empty()
            && read.last_transition_time.parse::<Timestamp>().is_ok();
        is_sound.then_some(read)
    }
}

/// The condition of this type.
pub fn find<'a>(conditions: &'a [Condition], kind: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.kind == kind)
}

/// The previous conditions with ours laid over them: types that we do not speak of are kept, order is kept, and a
/// transition time moves to `now` (RFC 3339) only where the status differs.
pub fn merge(previous: &[Condition], ours: Vec<Condition>, now: &str) -> Vec<Condition> {
    let mut merged = previous.to_vec();
    for mut condition in ours {
        match merged.iter_mut().find(|old| old.kind == condition.kind) {
            Some(old) => {
                let keeps = old.status == condition.status && !old.last_transition_time.is_empty();
                condition.last_transition_time = if keeps { old.last_transition_time.clone() } else { now.to_owned() };
                *old = condition;
            }
            None => {
                condition.last_transition_time = now.to_owned();
                merged.push(condition);
            }
        }
    }
    merged
}
