//! `replay` of a scenario file.

use super::runner::{self, Played};
use super::script::{Script, ScriptError};
use std::path::Path;

/// What a replay came to.
#[derive(Clone, Debug)]
pub struct Replayed {
    /// The story told.
    pub transcript: String,
    /// What does not hold: claims and, where asked to check, the first difference from the transcript beside the file.
    pub failures: Vec<String>,
}

/// Plays a scenario file in memory; with `check` also compares with the transcript beside it. An `Err` is one message
/// that names the file, the place and what is expected.
pub fn replay(path: &Path, check: bool) -> Result<Replayed, ScriptError> {
    let Played { transcript, mut failures, .. } = play(path)?;
    if check {
        failures.extend(difference(path, &transcript));
    }
    Ok(Replayed { transcript, failures })
}

fn play(path: &Path) -> Result<Played, ScriptError> {
    let script = Script::load(path)?;
    runner::play(&script).map_err(|message| ScriptError { file: path.display().to_string(), at: None, message })
}

/// The transcript that stands beside a scenario file, where there is one.
fn recorded(path: &Path) -> Option<String> {
    let text = std::fs::read_to_string(path.with_extension("snap")).ok()?;
    // insta's head stands between two lines of three dashes.
    let body = text.strip_prefix("---\n")?.split_once("\n---\n")?.1;
    Some(body.trim_end().to_owned())
}

fn difference(path: &Path, transcript: &str) -> Option<String> {
    let Some(recorded) = recorded(path) else {
        return Some(format!("no transcript stands beside {}", path.display()));
    };
    let (before, now): (Vec<&str>, Vec<&str>) = (recorded.lines().collect(), transcript.trim_end().lines().collect());
    let at = before.iter().zip(&now).position(|(before, now)| before != now).unwrap_or(before.len().min(now.len()));
    match (before.get(at), now.get(at)) {
        (None, None) => None,
        (before, now) => {
            let line = |line: Option<&&str>| line.map_or("nothing more".to_owned(), |line| format!("`{line}`"));
            Some(format!("line {}: recorded {}, now {}", at + 1, line(before), line(now)))
        }
    }
}
