//! `replay`: a scenario played through the core, or a recording decided again, and whether it is still as recorded.

use super::recorded::{self, Telling, Wish};
use super::{Failure, Report, UNMET};
use crate::core::control::wake::Key;
use crate::scenario::from_recording::{self, Verdict};
use crate::scenario::replay::{self, recorded as recorded_transcript};
use crate::scenario::schema::schema_text;
use std::collections::BTreeSet;
use std::path::Path;

/// Unchanged lines shown around a difference.
const AROUND: usize = 2;
/// Longer passages than this are told as a whole instead of line by line.
const MOST_LINES: usize = 4_000;

/// `replay`.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(after_help = "\
A scenario says what is given, what happens, and what must be true in the end; tests/golden has many. A recording is \
what `run --record DIR` wrote: the directory, one of its files (.jsonl), or - for stdin; each of its passes is decided \
again with the answers that came back then.

Exits 1 where a claim of a scenario does not hold, with --check where something is decided differently, and with \
--as-scenario where what it prints cannot be played.")]
pub struct Args {
    /// Scenario files, and recordings
    #[arg(value_name = "FILE", required_unless_present_any = ["schema", "more"])]
    pub files: Vec<String>,
    /// The same, as the other commands take files
    #[arg(short = 'f', long = "file", value_name = "FILE", id = "more")]
    pub more: Vec<String>,
    /// Print nothing where the transcript is the one that stands beside the scenario (.snap), or where every recorded pass
    /// is decided as it was, else the difference, and exit 1
    #[arg(long)]
    pub check: bool,
    /// Only the recorded passes of this object
    #[arg(long, value_name = "NAMESPACE/NAME")]
    pub object: Option<String>,
    /// Print a scenario in which happens what was recorded of one object
    #[arg(long, conflicts_with = "check")]
    pub as_scenario: bool,
    /// Which life of an object that was deleted and made again the scenario is about
    #[arg(long, requires = "as_scenario")]
    pub uid: Option<String>,
    /// Print the JSON schema of scenario files
    #[arg(long, conflicts_with_all = ["files", "more", "check", "as_scenario", "object", "uid"])]
    pub schema: bool,
}

impl Args {
    /// These files, told.
    pub fn of(files: &[&str]) -> Self {
        Self { files: files.iter().map(|file| (*file).to_owned()).collect(), ..Self::default() }
    }
}

/// `replay`.
pub fn run(args: &Args) -> Result<Report, Failure> {
    if args.schema {
        return Ok(Report::of(schema_text()));
    }
    super::source::stdin_at_most_once(args.files.iter().chain(&args.more))?;
    let object = args.object.as_deref().map(super::explain::wanted).transpose()?;
    if args.as_scenario {
        return scenario(args, object);
    }
    let mut report = Report::default();
    let mut telling = Telling::of(Wish { object, check: args.check });
    let mut recordings = false;
    for file in args.files.iter().chain(&args.more) {
        match source(file)? {
            Source::Recording(text) => {
                recordings = true;
                recorded::each_of(file, text.as_deref(), &mut |pass| telling.pass(&pass))?;
            }
            Source::Scenario(_) if args.object.is_some() => {
                let expected = "--object picks among recorded passes; expected a recording with it";
                return Err(Failure::Usage(format!("{file}: is a scenario, and {expected}")));
            }
            Source::Scenario(text) => play(args, file, text.as_deref(), &mut report)?,
        }
    }
    if recordings {
        let told = telling.report()?;
        report.text += &told.text;
        report.code = report.code.max(told.code);
    }
    Ok(report)
}

/// A scenario, and what was recorded. Of stdin the text.
enum Source {
    Scenario(Option<String>),
    Recording(Option<String>),
}

fn source(file: &str) -> Result<Source, Failure> {
    if file != "-" {
        return Ok(if recorded::is_recording(file) { Source::Recording(None) } else { Source::Scenario(None) });
    }
    let text = super::source::read("-")?;
    let is_recording = text.trim_start().starts_with('{');
    Ok(if is_recording { Source::Recording(Some(text)) } else { Source::Scenario(Some(text)) })
}

fn play(args: &Args, file: &str, text: Option<&str>, report: &mut Report) -> Result<(), Failure> {
    if args.check && text.is_some() {
        return Err(Failure::Usage("--check -: no transcript stands beside stdin; expected a file".to_owned()));
    }
    let path = Path::new(file);
    let played = text.map_or_else(|| replay::replay(path), |text| replay::replay_text("stdin", text));
    let played = played.map_err(|error| Failure::Usage(error.to_string()))?;
    if args.check {
        let Some(before) = recorded_transcript(path) else {
            let beside = path.with_extension("snap");
            let beside = beside.display();
            return Err(Failure::Usage(format!("{file}: no transcript is recorded; expected one in {beside}")));
        };
        let found = difference(&before, played.transcript.trim_end());
        if !found.is_empty() {
            report.text += &format!("--- {file}, as recorded\n+++ {file}, now\n{found}");
        }
    } else {
        report.text += &format!("{}\n", played.transcript.trim_end());
    }
    let file = if text.is_some() { "stdin" } else { file };
    for claim in &played.failures {
        report.text += &format!("does not hold in {file}: {claim}\n");
    }
    if !played.failures.is_empty() || (args.check && !report.text.is_empty()) {
        report.code = UNMET;
    }
    Ok(())
}

/// `--as-scenario`.
fn scenario(args: &Args, object: Option<Key>) -> Result<Report, Failure> {
    let (mut passes, mut others) = (Vec::new(), BTreeSet::new());
    for file in args.files.iter().chain(&args.more) {
        let Source::Recording(text) = source(file)? else {
            return Err(Failure::Usage(format!("{file}: is no recording; expected one with --as-scenario")));
        };
        recorded::each_of(file, text.as_deref(), &mut |pass| {
            if object.as_ref().is_none_or(|only| *only == pass.key()) {
                match &args.uid {
                    Some(uid) if *uid != pass.line.uid => drop(others.insert(pass.line.uid)),
                    _ => passes.push((pass.line, pass.held)),
                }
            }
            Ok(())
        })?;
    }
    if let (Some(uid), true, false) = (&args.uid, passes.is_empty(), others.is_empty()) {
        let others: Vec<&str> = others.iter().take(5).map(String::as_str).collect();
        return Err(Failure::Usage(format!(
            "--uid {uid}: no pass of it is recorded; expected one of {}",
            others.join(", ")
        )));
    }
    let written = from_recording::scenario(&passes).map_err(Failure::Usage)?;
    written.notes.iter().for_each(|note| super::note(note));
    let mut report = Report::of(written.text);
    if written.played == Verdict::Fails {
        report.code = UNMET;
    }
    Ok(report)
}

/// One line of a difference.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Line<'a> {
    Same(&'a str),
    Was(&'a str),
    Is(&'a str),
}

/// What is not the same, line by line with a little of what stands around it; empty where nothing is.
fn difference(before: &str, now: &str) -> String {
    let (before, now): (Vec<&str>, Vec<&str>) = (before.lines().collect(), now.lines().collect());
    let lines = compared(&before, &now);
    let near = |at: usize| {
        let around = lines.get(at.saturating_sub(AROUND)..(at + AROUND + 1).min(lines.len())).unwrap_or_default();
        around.iter().any(|line| !matches!(line, Line::Same(_)))
    };
    let mut text = String::new();
    let mut left_out = false;
    for (at, line) in lines.iter().enumerate() {
        if !near(at) {
            left_out = true;
            continue;
        }
        if std::mem::take(&mut left_out) {
            text += "@@\n";
        }
        let (mark, words) = match line {
            Line::Same(words) => (' ', words),
            Line::Was(words) => ('-', words),
            Line::Is(words) => ('+', words),
        };
        text += &format!("{mark}{words}\n");
    }
    text
}

/// The longest common lines stay; the rest was, or is.
fn compared<'a>(before: &[&'a str], now: &[&'a str]) -> Vec<Line<'a>> {
    let head = before.iter().zip(now).take_while(|(was, is)| was == is).count();
    let (rest_before, rest_now) = (before.get(head..).unwrap_or_default(), now.get(head..).unwrap_or_default());
    let tail = rest_before.iter().rev().zip(rest_now.iter().rev()).take_while(|(was, is)| was == is).count();
    let middle = |all: &[&'a str]| all.get(..all.len().saturating_sub(tail)).unwrap_or_default().to_vec();
    let (was, is) = (middle(rest_before), middle(rest_now));
    let mut lines: Vec<Line<'a>> = before.iter().take(head).map(|line| Line::Same(line)).collect();
    if was.len() > MOST_LINES || is.len() > MOST_LINES {
        lines.extend(was.iter().map(|line| Line::Was(line)));
        lines.extend(is.iter().map(|line| Line::Is(line)));
    } else {
        lines.extend(aligned(&was, &is));
    }
    lines.extend(rest_before.iter().skip(was.len()).map(|line| Line::Same(line)));
    lines
}

fn aligned<'a>(was: &[&'a str], is: &[&'a str]) -> Vec<Line<'a>> {
    // common[a][b]: how many lines the rests from a and b have in common.
    let mut common = vec![vec![0_u32; is.len() + 1]; was.len() + 1];
    let at = |common: &[Vec<u32>], a: usize, b: usize| common.get(a).and_then(|row| row.get(b)).copied().unwrap_or(0);
    for (a, left) in was.iter().enumerate().rev() {
        for (b, right) in is.iter().enumerate().rev() {
            let best = if left == right {
                at(&common, a + 1, b + 1) + 1
            } else {
                at(&common, a + 1, b).max(at(&common, a, b + 1))
            };
            if let Some(cell) = common.get_mut(a).and_then(|row| row.get_mut(b)) {
                *cell = best;
            }
        }
    }
    let (mut a, mut b) = (0, 0);
    let mut lines = Vec::new();
    loop {
        match (was.get(a), is.get(b)) {
            (None, None) => return lines,
            (Some(left), Some(right)) if left == right => {
                lines.push(Line::Same(left));
                (a, b) = (a + 1, b + 1);
            }
            (Some(left), right) if right.is_none() || at(&common, a + 1, b) >= at(&common, a, b + 1) => {
                lines.push(Line::Was(left));
                a += 1;
            }
            (_, Some(right)) => {
                lines.push(Line::Is(right));
                b += 1;
            }
            (Some(_), None) => return lines,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::difference;

    #[test]
    fn a_difference_shows_what_was_and_what_is() {
        let before = "a\nb\nc\nd\ne\nf\ng\nh";
        assert_eq!(difference(before, before), "");
        assert_eq!(difference(before, "a\nb\nc\nd\nE\nf\ng\nh"), "@@\n c\n d\n-e\n+E\n f\n g\n");
        assert_eq!(difference("a\nb", "a\nx\nb\ny"), " a\n+x\n b\n+y\n");
        assert_eq!(difference("", "a"), "+a\n");
        assert_eq!(difference("a", ""), "-a\n");
    }
}
