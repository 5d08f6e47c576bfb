//! What people are told of an object, beside its status.

/// The longest note of an event, in bytes (decision R27).
pub const NOTE_MOST: usize = 1_000;

/// A Kubernetes event on the custom resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announcement {
    /// True for `Warning`, false for `Normal`.
    pub warning: bool,
    /// Machine-readable reason.
    pub reason: String,
    /// For people; at most [`NOTE_MOST`] bytes.
    pub message: String,
    /// The pod that it is about as well, if one is.
    pub related: Option<Related>,
}

/// A pod that an event is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Related {
    /// Its name.
    pub pod: String,
    /// Its uid.
    pub uid: String,
}
