//! Recordings: written by an operator at work, read back, decided again.

mod night;
mod stage;
