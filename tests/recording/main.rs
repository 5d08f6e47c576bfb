//! Recordings: written by an operator at work, read back, decided again. And dumps, which hold one moment.

mod disk;
mod dump;
mod incident;
mod night;
mod stage;
