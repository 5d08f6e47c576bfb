//! Real time goes on while a machine is busy: what was over in memory when a wait was over may come a little later here,
//! and the next step would meet another cluster than the one that it is about.

use crate::scenario::happenings::Happening;
use crate::scenario::projection::{Marks, Picture, by_step, mark};
use crate::scenario::runner::Played;
use std::collections::BTreeSet;
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

    /// What was so in memory by the end of this step, and is not so here: what had happened, what was gone, and where it had
    /// settled, how everything stood.
    pub fn behind(&self, step: usize, here: &Picture, settled: bool) -> Vec<String> {
        let there = self.there.get(step).into_iter().flatten();
        let late = there.filter(|(mark, times)| self.here.get(*mark).is_none_or(|here| here < *times));
        let mut behind: Vec<String> = late.map(|(mark, _)| mark.clone()).collect();
        let Some(stood) = self.stood.get(step) else { return behind };
        let (now, then) = (objects(here), objects(stood));
        behind.extend(now.difference(&then).map(|object| format!("{object} is gone")));
        if settled {
            behind.extend(stood.lines.difference(&here.lines).cloned());
        }
        behind
    }
}

/// Pods and sets, however they stand, and namespaces that go.
fn objects(picture: &Picture) -> BTreeSet<&str> {
    picture
        .lines
        .iter()
        .filter(|line| !line.starts_with("tag "))
        .filter_map(|line| Some(line.split_once(": ")?.0))
        .collect()
}
