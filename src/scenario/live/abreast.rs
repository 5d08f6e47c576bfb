//! Real time goes on while a machine is busy: what was over in memory when a wait was over may come a little later here,
//! and the next step would meet another cluster than the one that it is about.

use crate::scenario::happenings::Happening;
use crate::scenario::projection::{Marks, Picture, by_step, mark};
use crate::scenario::runner::Played;
use std::time::Duration;

/// For how long a story waits for it, over all its steps.
const GRACE: Duration = Duration::from_secs(60);

/// How far the story was in memory, step by step, and how far it is here.
#[derive(Debug)]
pub struct Abreast {
    /// What is left of the time to wait for it.
    pub grace: Duration,
    there: Vec<Marks>,
    stood: Vec<Picture>,
    here: Marks,
}

impl Abreast {
    /// With a story that was told in memory.
    pub fn with(told: &Played) -> Self {
        Self { grace: GRACE, there: by_step(&told.happenings), stood: told.pictures.clone(), here: Marks::new() }
    }

    /// These have happened here.
    pub fn heard(&mut self, happenings: &[Happening]) {
        mark(&mut self.here, happenings);
    }

    /// What had happened in memory by the end of this step, and has not happened here.
    pub fn behind(&self, step: usize) -> Vec<&str> {
        let there = self.there.get(step).into_iter().flatten();
        let late = there.filter(|(mark, times)| self.here.get(*mark).is_none_or(|here| here < *times));
        late.map(|(mark, _)| mark.as_str()).collect()
    }

    /// How everything stood in memory once this step had settled, and does not stand here.
    pub fn unlike(&self, step: usize, here: &Picture) -> Vec<&str> {
        let stood = self.stood.get(step).into_iter().flat_map(|picture| &picture.lines);
        stood.filter(|line| !here.lines.contains(*line)).map(String::as_str).collect()
    }
}
