//! Recordings of `run --record`: read line by line, told, and decided again.

use super::nearest::nearest;
use super::{Failure, Report, UNMET, note};
use crate::core::action::ActionKind;
use crate::core::contract::keys::{HIBERNATION_KIND, SET_KIND};
use crate::core::control::mirror::Held;
use crate::core::control::wake::Key;
use crate::core::recording::{Line, Replayed, Shelf, VERSION, replay};
use crate::shell::recorder;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

/// A recorded pass, and where it stands.
#[derive(Debug)]
pub struct Recorded {
    /// The file, and the line in it.
    pub at: String,
    /// The pass.
    pub line: Line,
    /// What was seen at its start.
    pub held: Vec<Held>,
}

impl Recorded {
    /// The object that it is about.
    pub fn key(&self) -> Key {
        Key::new(&self.line.namespace, &self.line.name)
    }
    /// Decides it again.
    pub fn replay(&self) -> Result<Replayed, Failure> {
        replay(&self.line, &self.held).map_err(|why| Failure::Usage(format!("{}: {why}", self.at)))
    }
}

type Visit<'a> = &'a mut dyn FnMut(Recorded) -> Result<(), Failure>;

/// True where this names a recording: a directory, or a file of JSON lines.
pub fn is_recording(path: &str) -> bool {
    let path = Path::new(path);
    path.is_dir() || path.extension().is_some_and(|extension| extension == "jsonl")
}

/// Every pass of a file, or of a directory that `--record` wrote, oldest first.
pub fn each(path: &str, visit: Visit<'_>) -> Result<(), Failure> {
    let unreadable = |error| Failure::Usage(format!("{path}: cannot be read ({error}); expected a recording"));
    let files: Vec<PathBuf> = if Path::new(path).is_dir() {
        recorder::files(Path::new(path)).map_err(unreadable)?.into_iter().map(|(_, file)| file).collect()
    } else {
        vec![PathBuf::from(path)]
    };
    if files.is_empty() {
        return Err(Failure::Usage(format!(
            "{path}: is a directory; expected a scenario file, or a recording in it (passes-NUMBER.jsonl)"
        )));
    }
    for file in files {
        let name = file.display().to_string();
        let opened = File::open(&file);
        let opened = opened
            .map_err(|error| Failure::Usage(format!("{name}: cannot be read ({error}); expected a recording")))?;
        lines(&name, &mut BufReader::new(opened), visit)?;
    }
    Ok(())
}

/// The same of what was read from stdin, where there is something.
pub fn each_of(path: &str, text: Option<&str>, visit: Visit<'_>) -> Result<(), Failure> {
    match text {
        Some(text) => lines("stdin", &mut text.as_bytes(), visit),
        None => each(path, visit),
    }
}

/// Every pass of these lines.
pub fn lines(name: &str, from: &mut dyn BufRead, visit: Visit<'_>) -> Result<(), Failure> {
    let mut shelf = Shelf::default();
    let mut number = 0_usize;
    loop {
        let mut text = Vec::new();
        let read = from.read_until(b'\n', &mut text);
        if read.map_err(|error| Failure::Usage(format!("{name}: cannot be read ({error})")))? == 0 {
            return Ok(());
        }
        number += 1;
        let at = format!("{name}:{number}");
        if text.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let line = match parse(&text) {
            Ok(line) => line,
            // Whoever wrote it was ended in the middle.
            Err(_) if text.last() != Some(&b'\n') => {
                note(&format!("{at}: breaks off; what comes before is whole"));
                return Ok(());
            }
            Err(why) => return Err(Failure::Usage(format!("{at}: no recorded pass: {why}"))),
        };
        let held = shelf.recall(&line).map_err(|why| Failure::Usage(format!("{at}: {why}")))?;
        visit(Recorded { at, line, held })?;
    }
}

/// A recording is one line a pass: the column is all there is to say of the place.
fn misfit(error: serde_json::Error) -> String {
    let misfit = crate::reading::json(&error);
    let column = misfit.at.map(|(_, column)| format!(" (column {column})")).unwrap_or_default();
    format!("{misfit}{column}")
}

fn parse(text: &[u8]) -> Result<Line, String> {
    #[derive(serde::Deserialize)]
    struct Versioned {
        version: u32,
    }
    let Versioned { version } = serde_json::from_slice(text).map_err(misfit)?;
    if version > VERSION {
        return Err(format!("version {version} is of a later operator: this one reads up to {VERSION}"));
    }
    let line: Line = serde_json::from_slice(text).map_err(misfit)?;
    if ![SET_KIND, HIBERNATION_KIND].contains(&line.kind.as_str()) {
        return Err(format!("kind {:?} is none of this operator's ({SET_KIND}, {HIBERNATION_KIND})", line.kind));
    }
    let actions = line.turns.iter().flat_map(|turn| &turn.actions);
    let words = actions.map(|action| action.get("action").and_then(Value::as_str).unwrap_or_default());
    if let Some(word) = words.into_iter().find(|word| ActionKind::parse(word).is_none()) {
        let near = nearest(word, ActionKind::ALL.iter().map(|kind| kind.name()));
        let hint = near.map(|near| format!("; did you mean {near}?")).unwrap_or_default();
        return Err(format!("action {word:?} is none of this operator's{hint}"));
    }
    Ok(line)
}

/// What was asked of a recording.
#[derive(Debug, Default)]
pub struct Wish {
    /// Only the passes of this object.
    pub object: Option<Key>,
    /// Compare, and print what differs.
    pub check: bool,
}

/// Tells of recordings, or checks them, one after another.
#[derive(Debug, Default)]
pub struct Telling {
    wish: Wish,
    report: Report,
    passes: usize,
    differing: usize,
    words: usize,
    objects: BTreeSet<Key>,
}

impl Telling {
    /// Nothing told yet.
    pub fn of(wish: Wish) -> Self {
        Self { wish, ..Self::default() }
    }

    /// One more pass.
    pub fn pass(&mut self, recorded: &Recorded) -> Result<(), Failure> {
        let key = recorded.key();
        if self.wish.object.as_ref().is_some_and(|only| *only != key) {
            return Ok(());
        }
        let line = &recorded.line;
        self.passes += 1;
        if self.wish.check {
            let replayed = recorded.replay()?;
            self.words += usize::from(!replayed.words.is_empty());
            if let Some(difference) = replayed.difference {
                self.differing += 1;
                self.report.code = UNMET;
                self.report.text += &format!("{}: {} {key} at {}\n{difference}", recorded.at, line.kind, line.now);
            }
        } else {
            self.report.text += &format!("{}  {} {key}\n", line.now, line.kind);
            for told in &line.story {
                self.report.text += &format!("  {told}\n");
            }
        }
        self.objects.insert(key);
        Ok(())
    }

    /// All of it.
    pub fn report(self) -> Result<Report, Failure> {
        if self.passes == 0 {
            let only = self.wish.object.map(|key| format!(" of {key}")).unwrap_or_default();
            return Err(Failure::Usage(format!("no pass{only} is recorded there; expected at least one")));
        }
        if self.wish.check {
            let (passes, objects) = (self.passes, self.objects.len());
            note(&format!("{passes} passes over {objects} objects, {} decided differently", self.differing));
            if self.words > 0 {
                note(&format!("{} of them give other reasons for the same decision", self.words));
            }
        }
        Ok(self.report)
    }
}
