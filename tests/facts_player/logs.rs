//! The recorded deletions.
