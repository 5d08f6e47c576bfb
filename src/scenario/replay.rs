//! `replay` of a scenario file.

use super::runner::{self, Played};
use super::script::{Script, ScriptError};
use std::path::Path;

/// Plays a scenario file in memory. An `Err` is one message that names the file, the place and what is expected.
pub fn replay(path: &Path) -> Result<Played, ScriptError> {
    let script = Script::load(path)?;
    runner::play(&script).map_err(|message| ScriptError { file: path.display().to_string(), at: None, message })
}

/// Plays the text of a scenario in memory; `file` is only named in messages.
pub fn replay_text(file: &str, text: &str) -> Result<Played, ScriptError> {
    let script = Script::parse(file, text)?;
    runner::play(&script).map_err(|message| ScriptError { file: file.to_owned(), at: None, message })
}

/// The transcript that stands beside a scenario file, where there is one.
pub fn recorded(path: &Path) -> Option<String> {
    let text = std::fs::read_to_string(path.with_extension("snap")).ok()?;
    // insta's head stands between two lines of three dashes.
    let body = text.strip_prefix("---\n")?.split_once("\n---\n")?.1;
    Some(body.trim_end().to_owned())
}
