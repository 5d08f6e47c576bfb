//! What came of the comparison.

use super::known::{self, Known};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// What a server said, call by call: the place in the script, and the answer without what no two servers share.
pub type Said = Vec<(String, Value)>;

/// The comparison of two servers.
#[derive(Default)]
pub struct Report {
    /// How many calls and watches were compared.
    pub calls: usize,
    /// Differences that do not matter, by their reason.
    pub explained: BTreeMap<&'static str, usize>,
    used: BTreeSet<&'static Known>,
    /// Those that do, by place.
    pub unexplained: Vec<String>,
}

impl Report {
    /// Compares what the simulated server said with what the real one said.
    pub fn of(here: &Said, there: &Said) -> Self {
        let mut report = Self::default();
        let known: BTreeMap<&str, &Value> = there.iter().map(|(place, answer)| (place.as_str(), answer)).collect();
        for (place, answer) in here {
            report.calls += 1;
            let Some(other) = known.get(place.as_str()) else {
                report.unexplained.push(format!("{place}\n    the real server was not asked"));
                continue;
            };
            let mut left = Vec::new();
            for difference in differences(answer, other) {
                match known::explanation(place, &difference) {
                    Some(known) => {
                        *report.explained.entry(known.why).or_default() += 1;
                        report.used.insert(known);
                    }
                    None => left.push(difference),
                }
            }
            if !left.is_empty() {
                report.unexplained.push(format!("{place}\n    {}", left.join("\n    ")));
            }
        }
        report
    }

    /// What on the list of known differences explains nothing any more, where the whole script was played.
    pub fn idle(&self) -> Vec<String> {
        known::needed().filter(|known| !self.used.contains(known)).map(ToString::to_string).collect()
    }
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let explained: usize = self.explained.values().sum();
        writeln!(
            f,
            "{} calls compared, {explained} differences explained, {} calls differ without an explanation",
            self.calls,
            self.unexplained.len()
        )?;
        for (why, count) in &self.explained {
            writeln!(f, "  {count:4} × {why}")?;
        }
        self.unexplained.iter().try_for_each(|one| writeln!(f, "{one}"))
    }
}

/// Where two answers differ, as pointers.
fn differences(here: &Value, there: &Value) -> Vec<String> {
    let mut found = Vec::new();
    compare("", here, there, &mut found);
    found
}

fn compare(at: &str, here: &Value, there: &Value, found: &mut Vec<String>) {
    match (here, there) {
        (Value::Object(left), Value::Object(right)) => {
            let keys: BTreeSet<&String> = left.keys().chain(right.keys()).collect();
            for key in keys {
                let absent = Value::Null;
                let (one, other) = (left.get(key).unwrap_or(&absent), right.get(key).unwrap_or(&absent));
                compare(&format!("{at}/{}", key.replace('/', "~1")), one, other, found);
            }
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            for (index, (one, other)) in left.iter().zip(right).enumerate() {
                compare(&format!("{at}/{index}"), one, other, found);
            }
        }
        (one, other) if one == other => {}
        (one, other) => found.push(format!("{at}: simulated {one}, real {other}")),
    }
}
