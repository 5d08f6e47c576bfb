//! What the world made of a request: the closed list of classes, and the shorter list of what they mean for a decision.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;
use std::time::Duration;

macro_rules! classes {
    ($( $(#[doc = $doc:literal])+ $name:ident => $effect:ident, )+) => {
        /// How one answer was understood. The names are a public interface (`explain -o json`, metrics).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum Class { $( $(#[doc = $doc])+ $name, )+ }

        impl Class {
            /// Every class there is, in the order of declaration.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];
            /// The name as printed.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name)),+ }
            }
            /// What it means for a decision, whatever the verb.
            pub const fn effect(self) -> Effect {
                match self { $(Self::$name => Effect::$effect),+ }
            }
        }
    };
}

classes! {
    /// It happened.
    Done => Happened,
    /// The object moved on since it was looked at.
    Conflict => Moved,
    /// A uid or resourceVersion precondition, or a patch's `test`, did not hold.
    PreconditionFailed => Moved,
    /// Another object bears this name.
    AlreadyExists => Taken,
    /// Another object bears this name and is being deleted.
    AlreadyExistsTerminating => Taken,
    /// The object is not there.
    NotFound => Gone,
    /// The namespace is not there.
    NamespaceNotFound => NamespaceGoing,
    /// The kind is not served, or something that is no API server answered. Never absence.
    NotServed => Refused,
    /// Nothing can be created any more: the namespace is being deleted.
    NamespaceTerminating => NamespaceGoing,
    /// A ResourceQuota said no.
    QuotaExceeded => Refused,
    /// PodSecurity admission said no.
    PodSecurityDenied => Refused,
    /// A webhook or an admission policy said no.
    AdmissionDenied => Refused,
    /// We lack the permission.
    RbacDenied => Refused,
    /// Any other 403.
    ForbiddenOther => Refused,
    /// Our credentials were not accepted.
    Unauthorized => Refused,
    /// A finalizer cannot be added to an object that is being deleted.
    FinalizerOnDeleting => Refused,
    /// The field cannot change.
    Immutable => Refused,
    /// What we sent breaks the schema or a validation rule.
    Invalid => Refused,
    /// What we sent is too large.
    TooLarge => Refused,
    /// Any other fault of ours.
    BadRequest => Refused,
    /// Too many requests.
    Throttled => Later,
    /// It certainly did not happen, for no fault of ours.
    Unavailable => Later,
    /// The version or continue token asked for is too old.
    Expired => Later,
    /// It may have happened and may not.
    Unknown => Unsure,
    /// Not sent: the lease was not held, or not long enough.
    Fenced => NotSent,
    /// A success whose body cannot be read.
    Malformed => Unsure,
    /// Registry: the manifest exists.
    Present => Happened,
    /// Registry: there is no such manifest.
    Absent => Happened,
    /// Registry: our credentials do not allow it.
    Denied => Refused,
    /// Registry: it does not know this operation.
    Unsupported => Refused,
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What an answer means for the next decision. Rules match on this, exhaustively; the class is for telling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Effect {
    /// It is so now.
    Happened,
    /// What we looked at is no longer so: look again.
    Moved,
    /// Somebody else bears the name.
    Taken,
    /// It is not there.
    Gone,
    /// Its namespace is going or gone.
    NamespaceGoing,
    /// It was understood and refused.
    Refused,
    /// Not now, for no fault of ours; it did not happen.
    Later,
    /// Nobody can say whether it happened.
    Unsure,
    /// It never left.
    NotSent,
}

/// One answer, understood. Code branches on `class`; `message` is for people.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// How it was understood.
    pub class: Class,
    /// Not before this long from now, if the server said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<Duration>,
    /// The server's words, or ours where it had none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// What the server returned with a success.
    #[serde(default, skip_serializing_if = "Answer::is_nothing")]
    pub answer: Answer,
}

/// What came with a success.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    /// Nothing that can be read on.
    #[default]
    Nothing,
    /// The object as stored.
    Object(Value),
    /// A collection: its items and its resourceVersion.
    List {
        /// As returned; `kind` and `apiVersion` may be missing in each.
        items: Vec<Value>,
        /// `metadata.resourceVersion` of the list.
        version: String,
        /// `metadata.continue`, empty where the list is complete.
        continue_token: String,
    },
    /// A manifest: its digest and recorded base image, where known.
    Snapshot {
        /// `Docker-Content-Digest`.
        digest: Option<String>,
        /// Annotation `cocoonstack.snapshot.baseimage`.
        base_image: Option<String>,
    },
    /// The registry says of what it was to delete that there is no such thing: nothing was deleted.
    NotThere,
}

impl Answer {
    /// True where nothing came with it.
    pub const fn is_nothing(&self) -> bool {
        match self {
            Self::Nothing => true,
            Self::Object(_) | Self::List { .. } | Self::Snapshot { .. } | Self::NotThere => false,
        }
    }
}

impl Outcome {
    /// An outcome of this class with nothing else to say.
    pub fn of(class: Class) -> Self {
        Self { class, retry_after: None, message: String::new(), answer: Answer::Nothing }
    }
    /// A success that returned this object.
    pub fn done(object: Value) -> Self {
        Self { answer: Answer::Object(object), ..Self::of(Class::Done) }
    }
    /// The same with words.
    #[must_use]
    pub fn saying(mut self, message: impl Into<String>) -> Self {
        self.message = message.into();
        self
    }
    /// What it means for a decision.
    pub const fn effect(&self) -> Effect {
        self.class.effect()
    }
}
