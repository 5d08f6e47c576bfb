//! Something the watch cache cannot show, and the core has to ask for.

use super::rule::Because;

/// An answer, or the lack of one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Fact<T> {
    /// Nobody asked yet.
    #[default]
    Unasked,
    /// This is so.
    Known(T),
    /// Asked, and the world could not say. Never to be read as "no".
    Unavailable(Because),
}

impl<T> Fact<T> {
    /// The answer, if there is one.
    pub const fn known(&self) -> Option<&T> {
        match self {
            Self::Known(value) => Some(value),
            Self::Unasked | Self::Unavailable(_) => None,
        }
    }
}
