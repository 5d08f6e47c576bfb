//! Everything the core may want from the world: a question, a change, an announcement, or a wait.

pub use super::announcement::{Announcement, Related};
use super::rule::{Because, RuleId};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// One thing wanted, with the rule that wants it and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Action {
    /// What.
    pub want: Want,
    /// The rule that wants it first.
    pub rule: RuleId,
    /// Why.
    pub because: Because,
    /// Further rules whose wish was merged into this one (decision R12).
    pub also: Vec<RuleId>,
}

/// The four kinds of wish.
#[derive(Clone, Debug, PartialEq)]
pub enum Want {
    /// Learn something that the watch cache cannot show.
    Ask(Question),
    /// Write something.
    Change(Change),
    /// Tell people; nothing depends on it.
    Announce(Announcement),
    /// Nothing to do until something happens.
    Wait(Wait),
}

/// A read that a decision depends on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Question {
    /// Does the registry hold this tag, and under which digest?
    ProbeSnapshot {
        /// VM name, which is the repository.
        vm: String,
        /// `hibernate` or `latest`.
        tag: String,
    },
    /// An uncached read.
    ReadLive(Live),
}

/// What a live read reads.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Live {
    /// The custom resource that this pass is about.
    Object,
    /// One pod of its namespace.
    Pod(String),
    /// Metadata of every pod of its namespace, whatever its labels.
    Pods,
    /// Its namespace.
    Namespace,
    /// One node.
    Node(String),
}

/// A write. Each carries the precondition under which it is right.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Add our finalizer, if the list still reads as `tested` (decision R9).
    AddFinalizer {
        /// The list as seen; `None` where it is absent.
        tested: Option<Vec<String>>,
        /// The list as it will read.
        finalizers: Vec<String>,
    },
    /// Remove our finalizer, if the list still reads as `tested` (decision R9).
    RemoveFinalizer {
        /// The list as seen; `None` where it is absent.
        tested: Option<Vec<String>>,
        /// The list as it will read.
        finalizers: Vec<String>,
    },
    /// Create a pod.
    CreatePod {
        /// Pod name.
        pod: String,
        /// The whole manifest.
        manifest: Value,
        /// Only ask whether it would be admitted.
        dry_run: bool,
    },
    /// Delete a pod with its own grace period.
    DeletePod {
        /// Pod name.
        pod: String,
        /// Precondition.
        uid: String,
        /// Second precondition, where the decision rests on an annotation or on ownership (decision R8).
        resource_version: Option<String>,
    },
    /// Merge-patch labels or annotations of a pod.
    PatchPod {
        /// Pod name.
        pod: String,
        /// Precondition.
        uid: String,
        /// Labels and annotations; `None` removes.
        patch: MetaPatch,
    },
    /// Merge-patch annotations of the custom resource, on the version decided on.
    PatchObject {
        /// Annotations; `None` removes.
        annotations: BTreeMap<String, Option<String>>,
        /// Precondition.
        resource_version: String,
    },
    /// Merge-patch the whole status, on the version decided on (decision R10).
    PatchStatus {
        /// The status as it will read.
        status: Value,
        /// Keys that it lacks and the stored one has; sent as `null`.
        dropped: Vec<String>,
        /// Precondition.
        resource_version: String,
    },
    /// Let a tag go, if it still has this digest (decision R11).
    DeleteSnapshot {
        /// VM name.
        vm: String,
        /// `hibernate` or `latest`.
        tag: String,
        /// The digest that a HEAD in this pass showed.
        digest: Option<String>,
    },
}

/// Labels and annotations to merge; `None` removes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MetaPatch {
    /// Labels.
    pub labels: BTreeMap<String, Option<String>>,
    /// Annotations.
    pub annotations: BTreeMap<String, Option<String>>,
}

/// What to do when there is nothing to do.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wait {
    /// Something else must happen first.
    Await {
        /// What.
        what: String,
        /// Look again after this long even if nothing was seen to happen.
        recheck_after: Option<Duration>,
    },
    /// Nothing more until the object or its surroundings change.
    Stop,
}

macro_rules! kinds {
    ($( $(#[doc = $doc:literal])+ $name:ident, )+) => {
        /// The name of an action, without its arguments: a public interface (`explain -o json`).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum ActionKind { $( $(#[doc = $doc])+ $name, )+ }
        impl ActionKind {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];
            /// The name as printed.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name)),+ }
            }
            /// The kind of this name.
            pub fn parse(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|kind| kind.name() == text)
            }
        }
    };
}

kinds! {
    /// See [`Question::ProbeSnapshot`].
    ProbeSnapshot,
    /// See [`Question::ReadLive`].
    ReadLive,
    /// See [`Change::AddFinalizer`].
    AddFinalizer,
    /// See [`Change::RemoveFinalizer`].
    RemoveFinalizer,
    /// See [`Change::CreatePod`].
    CreatePod,
    /// See [`Change::DeletePod`].
    DeletePod,
    /// See [`Change::PatchPod`].
    PatchPod,
    /// See [`Change::PatchObject`].
    PatchObject,
    /// See [`Change::PatchStatus`].
    PatchStatus,
    /// See [`Change::DeleteSnapshot`].
    DeleteSnapshot,
    /// See [`Announcement`].
    EmitEvent,
    /// See [`Wait::Await`].
    Await,
    /// See [`Wait::Stop`].
    Stop,
}

/// What was tried, on what: the key of attempt counts, of injected faults and of the outcome matrix.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Attempt {
    /// The action.
    pub action: ActionKind,
    /// The pod, `vm:tag`, or what was read; empty for the custom resource itself.
    #[serde(default)]
    pub target: String,
    /// A create that only asks.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
}

impl Attempt {
    /// The attempt that this action is, if it is one that is answered.
    pub fn of(want: &Want) -> Option<Self> {
        let (action, target, dry_run) = match want {
            Want::Ask(Question::ProbeSnapshot { vm, tag }) => (ActionKind::ProbeSnapshot, format!("{vm}:{tag}"), false),
            Want::Ask(Question::ReadLive(live)) => (ActionKind::ReadLive, live.short(), false),
            Want::Change(change) => {
                return Some(Self { action: change.kind(), target: change.target(), dry_run: change.is_dry_run() });
            }
            Want::Announce(_) | Want::Wait(_) => return None,
        };
        Some(Self { action, target, dry_run })
    }
    /// True for the writes that test the list of finalizers (decision R9).
    pub fn is_about_finalizers(&self) -> bool {
        self.action == ActionKind::AddFinalizer || self.action == ActionKind::RemoveFinalizer
    }
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.action.name())?;
        if !self.target.is_empty() {
            write!(f, " {}", self.target)?;
        }
        if self.dry_run { f.write_str(" (dry run)") } else { Ok(()) }
    }
}

impl Live {
    /// `object`, `pod/NAME`, `pods`, `namespace` or `node/NAME`.
    pub fn short(&self) -> String {
        match self {
            Self::Object => "object".to_owned(),
            Self::Pod(name) => format!("pod/{name}"),
            Self::Pods => "pods".to_owned(),
            Self::Namespace => "namespace".to_owned(),
            Self::Node(name) => format!("node/{name}"),
        }
    }
}

impl Change {
    /// The name of this action.
    pub const fn kind(&self) -> ActionKind {
        match self {
            Self::AddFinalizer { .. } => ActionKind::AddFinalizer,
            Self::RemoveFinalizer { .. } => ActionKind::RemoveFinalizer,
            Self::CreatePod { .. } => ActionKind::CreatePod,
            Self::DeletePod { .. } => ActionKind::DeletePod,
            Self::PatchPod { .. } => ActionKind::PatchPod,
            Self::PatchObject { .. } => ActionKind::PatchObject,
            Self::PatchStatus { .. } => ActionKind::PatchStatus,
            Self::DeleteSnapshot { .. } => ActionKind::DeleteSnapshot,
        }
    }
    /// The pod or `vm:tag` it is about; empty for the custom resource.
    pub fn target(&self) -> String {
        match self {
            Self::AddFinalizer { .. }
            | Self::RemoveFinalizer { .. }
            | Self::PatchObject { .. }
            | Self::PatchStatus { .. } => String::new(),
            Self::CreatePod { pod, .. } | Self::DeletePod { pod, .. } | Self::PatchPod { pod, .. } => pod.clone(),
            Self::DeleteSnapshot { vm, tag, .. } => format!("{vm}:{tag}"),
        }
    }
    /// Whether it only asks what would happen.
    pub const fn is_dry_run(&self) -> bool {
        match self {
            Self::CreatePod { dry_run, .. } => *dry_run,
            Self::AddFinalizer { .. }
            | Self::RemoveFinalizer { .. }
            | Self::DeletePod { .. }
            | Self::PatchPod { .. }
            | Self::PatchObject { .. }
            | Self::PatchStatus { .. }
            | Self::DeleteSnapshot { .. } => false,
        }
    }
    /// Where a live read shows whether it happened, or what moved.
    pub fn looked_up_by(&self) -> Question {
        match self {
            Self::AddFinalizer { .. }
            | Self::RemoveFinalizer { .. }
            | Self::PatchObject { .. }
            | Self::PatchStatus { .. } => Question::ReadLive(Live::Object),
            Self::CreatePod { pod, .. } | Self::DeletePod { pod, .. } | Self::PatchPod { pod, .. } => {
                Question::ReadLive(Live::Pod(pod.clone()))
            }
            Self::DeleteSnapshot { vm, tag, .. } => Question::ProbeSnapshot { vm: vm.clone(), tag: tag.clone() },
        }
    }
}

impl MetaPatch {
    /// A patch of one annotation.
    pub fn annotation(key: &str, value: Option<&str>) -> Self {
        let mut patch = Self::default();
        patch.annotations.insert(key.to_owned(), value.map(str::to_owned));
        patch
    }
    /// Takes in another patch; the later one wins where both speak.
    pub fn merge(&mut self, other: Self) {
        self.labels.extend(other.labels);
        self.annotations.extend(other.annotations);
    }
    /// True where it says nothing.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.annotations.is_empty()
    }
    /// As a merge patch.
    pub fn to_json(&self) -> Value {
        let mut metadata = Map::new();
        if !self.annotations.is_empty() {
            metadata.insert("annotations".to_owned(), json!(self.annotations));
        }
        if !self.labels.is_empty() {
            metadata.insert("labels".to_owned(), json!(self.labels));
        }
        json!({ "metadata": metadata })
    }
}

/// Who the actions are about; needed to spell some of them out.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Subject {
    /// `CocoonSet` or `CocoonHibernation`.
    pub kind: &'static str,
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Uid.
    pub uid: String,
}

impl Live {
    /// As the command line spells it: `cocoonset/NAME`, `pod/NAME`, `pods`, `namespace/NAME`, `node/NAME`.
    pub fn spelled(&self, subject: &Subject) -> String {
        match self {
            Self::Object => format!("{}/{}", subject.kind.to_lowercase(), subject.name),
            Self::Namespace => format!("namespace/{}", subject.namespace),
            Self::Pod(_) | Self::Pods | Self::Node(_) => self.short(),
        }
    }
}

impl Action {
    /// The name of this action.
    pub const fn kind(&self) -> ActionKind {
        match &self.want {
            Want::Ask(Question::ProbeSnapshot { .. }) => ActionKind::ProbeSnapshot,
            Want::Ask(Question::ReadLive(_)) => ActionKind::ReadLive,
            Want::Change(change) => change.kind(),
            Want::Announce(_) => ActionKind::EmitEvent,
            Want::Wait(Wait::Await { .. }) => ActionKind::Await,
            Want::Wait(Wait::Stop) => ActionKind::Stop,
        }
    }
}
