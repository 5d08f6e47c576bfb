//! How long a story takes where time cannot be made to pass.

use super::runner::Played;
use super::script::Script;
use super::steps::Step;
use super::words::Span;
use jiff::SignedDuration;
use std::time::Duration;

/// On a real cluster no story is waited for longer than this: it would be the whole suite that waits.
pub const LONGEST: Duration = Duration::from_secs(400);
/// How much is watched, at the least, of a last wait in which nothing happens any more.
const WATCHED: Duration = Duration::from_secs(60);

/// When the last thing happens that a transcript tells, since the story's start; how long it waits if nothing does.
pub fn ends(transcript: &str) -> SignedDuration {
    last_told(transcript).max(waits(transcript).into_iter().sum())
}

/// The last wait of a story that would be too long, without what need not be watched of it: in memory nothing is told there
/// any more. What comes before stays as it is, since backoffs and timers depend on it. Nothing where the story is short
/// enough, or ends otherwise.
pub fn last_wait(script: &Script, told: &Played) -> Option<Duration> {
    let Some(Step::Wait(whole)) = script.when.last() else { return None };
    if told.took <= LONGEST {
        return None;
    }
    let begins = told.took.saturating_sub(whole.duration());
    let last = told.origin.saturating_add(last_told(&told.transcript).try_into().unwrap_or_default());
    Some(last.saturating_sub(begins).saturating_add(WATCHED).min(whole.duration()))
}

/// How long the story takes with such a last wait.
pub fn takes(script: &Script, told: &Played) -> Duration {
    match (script.when.last(), last_wait(script, told)) {
        (Some(Step::Wait(whole)), Some(wait)) => told.took.saturating_sub(whole.duration().saturating_sub(wait)),
        _ => told.took,
    }
}

/// The story with such a last wait.
pub fn shortened(mut script: Script, told: &Played) -> Script {
    if let Some(wait) = last_wait(&script, told)
        && let Some(last) = script.when.last_mut()
    {
        *last = Step::Wait(Span(SignedDuration::try_from(wait).unwrap_or(SignedDuration::MAX)));
    }
    script
}

fn time(text: &str) -> Option<SignedDuration> {
    text.parse().ok()
}

fn last_told(transcript: &str) -> SignedDuration {
    transcript.lines().filter_map(|line| time(line.split_whitespace().next()?)).max().unwrap_or_default()
}

fn waits(transcript: &str) -> Vec<SignedDuration> {
    transcript.lines().filter_map(|line| time(line.strip_prefix("── wait ")?)).collect()
}
