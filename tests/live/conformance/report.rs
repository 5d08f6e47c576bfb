//! What came of the comparison.

use super::{differences, known};
use serde_json::Value;
use std::collections::BTreeMap;

/// One call and where the answers differ.
pub struct Compared {
    pub place: String,
    /// Differences without an explanation.
    pub unexplained: Vec<String>,
    /// The explanations that were used.
    pub explained: Vec<&'static str>,
}

impl Compared {
    pub fn of(place: &str, here: &Value, there: &Value) -> Self {
        let (mut unexplained, mut explained) = (Vec::new(), Vec::new());
        for difference in differences(here, there) {
            match known::why(place, &difference) {
                Some(why) => explained.push(why),
                None => unexplained.push(difference),
            }
        }
        Self { place: place.to_owned(), unexplained, explained }
    }
}

/// All of it.
#[derive(Default)]
pub struct Report {
    pub calls: usize,
    pub explained: BTreeMap<&'static str, usize>,
    pub unexplained: Vec<String>,
}

impl Report {
    pub fn add(&mut self, compared: Vec<Compared>) {
        for one in compared {
            self.calls += 1;
            for why in one.explained {
                *self.explained.entry(why).or_default() += 1;
            }
            if !one.unexplained.is_empty() {
                self.unexplained.push(format!("{}\n    {}", one.place, one.unexplained.join("\n    ")));
            }
        }
    }
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{} calls compared, {} differ without an explanation", self.calls, self.unexplained.len())?;
        for (why, count) in &self.explained {
            writeln!(f, "  {count:4} × {why}")?;
        }
        self.unexplained.iter().try_for_each(|one| writeln!(f, "{one}"))
    }
}
