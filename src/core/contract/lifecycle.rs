//! State, observed generation, message: the triple that the node agent changes in one patch (contract 2.2).

use super::{AnnotationPatch, Annotations, int, keys, text};

/// What the node agent does with the VM.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// Nothing said yet.
    #[default]
    Unset,
    /// Being brought up, fresh or restored.
    Creating,
    /// Up.
    Ready,
    /// Being saved and pushed.
    Hibernating,
    /// Saved, pushed and removed.
    Hibernated,
    /// Something went wrong; the VM may run all the same (R16).
    Failed,
    /// A word that this version does not know.
    Unknown(String),
}

impl State {
    /// Reads the annotation's value.
    pub fn of(text: &str) -> Self {
        match text {
            "" => Self::Unset,
            "creating" => Self::Creating,
            "ready" => Self::Ready,
            "hibernating" => Self::Hibernating,
            "hibernated" => Self::Hibernated,
            "failed" => Self::Failed,
            _ => Self::Unknown(text.to_owned()),
        }
    }
    /// As it stands in the annotation.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Unset => "",
            Self::Creating => "creating",
            Self::Ready => "ready",
            Self::Hibernating => "hibernating",
            Self::Hibernated => "hibernated",
            Self::Failed => "failed",
            Self::Unknown(text) => text,
        }
    }
    /// True for the states that a client may wait for.
    pub fn is_terminal(&self) -> bool {
        match self {
            Self::Ready | Self::Hibernated | Self::Failed => true,
            Self::Unset | Self::Creating | Self::Hibernating | Self::Unknown(_) => false,
        }
    }
}

/// The triple.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lifecycle {
    /// What it does.
    pub state: State,
    /// The stamp that it knew when it said so; 0 where absent or no number.
    pub observed_generation: i64,
    /// Words to it.
    pub message: String,
}

impl Lifecycle {
    /// Reads it off a pod.
    pub fn read(from: &Annotations) -> Self {
        Self {
            state: State::of(text(from, keys::LIFECYCLE_STATE)),
            observed_generation: int(from, keys::LIFECYCLE_GENERATION),
            message: text(from, keys::LIFECYCLE_MESSAGE).to_owned(),
        }
    }
    /// The one patch that states it: always three keys, an empty message deletes its key.
    pub fn patch(&self) -> AnnotationPatch {
        AnnotationPatch::from([
            (keys::LIFECYCLE_STATE.to_owned(), Some(self.state.as_str().to_owned())),
            (keys::LIFECYCLE_GENERATION.to_owned(), Some(self.observed_generation.to_string())),
            (keys::LIFECYCLE_MESSAGE.to_owned(), Some(self.message.clone()).filter(|said| !said.is_empty())),
        ])
    }
    /// The same, on annotations at hand.
    pub fn apply(&self, to: &mut Annotations) {
        for (key, value) in self.patch() {
            match value {
                Some(value) => drop(to.insert(key, value)),
                None => drop(to.remove(&key)),
            }
        }
    }
    /// Equal keys, equal triples: state, NUL, generation, NUL, message.
    pub fn equality_key(&self) -> String {
        format!("{}\0{}\0{}", self.state.as_str(), self.observed_generation, self.message)
    }
    /// True where the state was said in knowledge of this generation (contract 2.2).
    pub fn answers(&self, state: &State, generation: i64) -> bool {
        self.state == *state && self.observed_generation >= generation
    }
}
