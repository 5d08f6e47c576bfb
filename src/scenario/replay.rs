//! `replay` of a scenario file.

use super::runner::{self, Played};
use super::script::{Script, ScriptError};
use std::path::Path;

/// Plays a scenario file in memory. An `Err` is one message that names the file, the place and what is expected.
pub fn replay(path: &Path) -> Result<Played, ScriptError> {
    play(&path.display().to_string(), &Script::load(path)?)
}

/// Plays the text of a scenario; `name` is what messages call it.
pub fn replay_text(name: &str, text: &str) -> Result<Played, ScriptError> {
    play(name, &Script::parse(name, text)?)
}

fn play(name: &str, script: &Script) -> Result<Played, ScriptError> {
    runner::play(script).map_err(|message| ScriptError { file: name.to_owned(), at: None, message })
}

/// The transcript that stands beside a scenario file, where there is one.
pub fn recorded(path: &Path) -> Option<String> {
    let text = std::fs::read_to_string(path.with_extension("snap")).ok()?;
    // insta's head stands between two lines of three dashes.
    let body = text.strip_prefix("---\n")?.split_once("\n---\n")?.1;
    Some(body.trim_end().to_owned())
}
