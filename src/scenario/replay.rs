//! `replay` of a scenario file.

use super::runner::{self, Played};
use super::script::{Script, ScriptError};
use std::path::Path;

/// Plays a scenario file in memory. An `Err` is one message that names the file and what is expected.
pub fn replay(path: &Path) -> Result<Played, ScriptError> {
    let script = Script::load(path)?;
    runner::play(&script).map_err(|message| ScriptError { file: path.display().to_string(), at: None, message })
}

/// The transcript that stands beside a scenario file, where there is one.
pub fn recorded(path: &Path) -> Option<String> {
    let text = std::fs::read_to_string(path.with_extension("snap")).ok()?;
    // insta's head: between two lines of three dashes.
    let body = text.strip_prefix("---\n")?.split_once("\n---\n")?.1;
    Some(body.trim_end().to_owned())
}

/// What does not hold when the transcript is compared with the one beside the file: claims, then lines.
pub fn differences(path: &Path, played: &Played) -> Vec<String> {
    let mut found = played.failures.clone();
    let Some(recorded) = recorded(path) else {
        found.push(format!("no transcript stands beside {}", path.display()));
        return found;
    };
    let told = played.transcript.trim_end();
    let first = recorded.lines().zip(told.lines()).enumerate().find(|(_, (before, now))| before != now);
    if let Some((at, (before, now))) = first {
        found.push(format!("line {}: recorded `{before}`, now `{now}`", at + 1));
    } else if recorded.lines().count() != told.lines().count() {
        found.push(format!("{} lines recorded, now {}", recorded.lines().count(), told.lines().count()));
    }
    found
}
