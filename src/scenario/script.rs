//! The scenario file: a sentence, what is given, what happens, and what must be true in the end.

use super::claim_forms::ClaimText;
use super::given::Given;
use super::steps::Step;
use schemars::JsonSchema;
use serde::Deserialize;
use std::fmt;
use std::path::Path;

/// One story. The transcript of what the operator made of it stands beside it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// What happens, in a sentence.
    pub story: String,
    /// The cluster as the story finds it.
    pub given: Given,
    /// What happens, in order.
    pub when: Vec<Step>,
    /// What must be true at the end. Written by hand: the moral of the story.
    pub then: Vec<ClaimText>,
}

/// Why a file is no scenario: one message that names the file, the line, the field and what is expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ScriptError {
    /// The file.
    pub file: String,
    /// Line and column, where known.
    pub at: Option<(u64, u64)>,
    /// What is wrong, and what is expected.
    pub message: String,
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.file)?;
        if let Some((line, column)) = self.at {
            write!(f, "{line}:{column}:")?;
        }
        write!(f, " {}", self.message)
    }
}

impl Script {
    /// Reads a scenario; `file` is only named in messages.
    pub fn parse(file: &str, text: &str) -> Result<Self, ScriptError> {
        let failed = |at, message: String| ScriptError { file: file.to_owned(), at, message };
        let script: Self = serde_saphyr::from_str(text).map_err(|error| {
            let misfit = crate::reading::yaml(&error);
            failed(misfit.at, misfit.to_string())
        })?;
        if script.story.trim().is_empty() {
            return Err(failed(None, "story: a sentence is expected".to_owned()));
        }
        if script.then.is_empty() {
            return Err(failed(None, "then: at least one claim is expected".to_owned()));
        }
        Ok(script)
    }

    /// Reads a scenario file.
    pub fn load(path: &Path) -> Result<Self, ScriptError> {
        let file = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| ScriptError {
            file: file.clone(),
            at: None,
            message: format!("cannot be read: {error}"),
        })?;
        Self::parse(&file, &text)
    }
}
