//! One reply, understood: verb, status, body and what became of the connection go in, a class comes out.
//!
//! Never the status alone, never a text alone where a code or a cause decides (decision R1). The rule behind every doubt:
//! what cannot be read is neither a success nor an absence, and a write is called *not done* only where that is certain.

mod refusal;
mod registry;
mod status;
mod success;

use crate::core::outcome::{Class, Outcome};
use crate::core::wire::{Reply, Verb};
use serde_json::Value;
use status::Status;
use std::time::Duration;

/// The longest `Retry-After` that is honoured. A longer one is shortened to this: a server that asks for days is
/// mistaken, and one that asks for ten minutes is taken at its word.
pub const MAX_RETRY_AFTER: Duration = Duration::from_secs(600);

/// The longest message of an outcome, in bytes; longer ones are cut at a character boundary.
pub const MAX_MESSAGE: usize = 1_000;

/// Says what a reply to a request with this verb means. Total: any bytes and any status have a class.
pub fn classify(verb: Verb, reply: &Reply) -> Outcome {
    match reply {
        Reply::Fenced => failure(Class::Fenced, "not sent: the lease was not held, or not long enough"),
        Reply::TimedOut => failure(lost(verb), "no answer within the deadline"),
        Reply::Reset { sent: true } => failure(lost(verb), "the connection broke before the answer"),
        Reply::Reset { sent: false } => failure(Class::Unavailable, "no connection could be made, nothing was sent"),
        Reply::Http { status, retry_after, body, digest } => {
            let answer = Http { verb, status: *status, body, json: serde_json::from_slice(body).ok() };
            let mut outcome =
                if verb.is_registry() { registry::classify(&answer, digest.as_deref()) } else { kubernetes(&answer) };
            outcome.retry_after = wait(&outcome, *retry_after, answer.status_body());
            outcome
        }
    }
}

/// Says what the object of a watch's ERROR event means. The HTTP status of the watch was 200 long ago; what counts is
/// the code that the object itself carries, and its reason only where it carries none.
pub fn classify_watch_error(object: &Value) -> Outcome {
    let Some(status) = Status::of(object) else {
        return failure(Class::Malformed, "the watch ended with an error that is no Status");
    };
    let code = match (status.code(), status.reason()) {
        (Some(code), _) => code,
        (None, "Expired" | "Gone") => 410,
        (None, "TooManyRequests") => 429,
        (None, _) => 0,
    };
    if code < 300 {
        return failure(Class::Malformed, &status.words("the watch ended with an error that has no code"));
    }
    let answer = Http { verb: Verb::Watch, status: code, body: &[], json: Some(object.clone()) };
    let mut outcome = kubernetes(&answer);
    outcome.retry_after = wait(&outcome, None, Some(status));
    outcome
}

/// One HTTP answer with its body read as far as it can be.
struct Http<'a> {
    verb: Verb,
    status: u16,
    body: &'a [u8],
    json: Option<Value>,
}

impl Http<'_> {
    /// The body as a Kubernetes Status, if it is one.
    fn status_body(&self) -> Option<Status<'_>> {
        self.json.as_ref().and_then(Status::of)
    }
    /// The class with the server's words, or ours where it had none.
    fn say(&self, class: Class) -> Outcome {
        let ours = self.own_words();
        failure(class, &self.status_body().map_or_else(|| ours.clone(), |status| status.words(&ours)))
    }
    fn own_words(&self) -> String {
        // A little more than fits, so that a page of HTML is not decoded in full to be thrown away.
        let head = self.body.get(..MAX_MESSAGE).unwrap_or(self.body);
        let text = String::from_utf8_lossy(head);
        match text.trim() {
            "" => format!("HTTP {} without a body", self.status),
            text => format!("HTTP {}: {text}", self.status),
        }
    }
    /// A page made for people, as proxies send them: whoever wrote it is not who was asked.
    fn is_markup(&self) -> bool {
        self.body.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'<')
    }
}

fn kubernetes(answer: &Http<'_>) -> Outcome {
    if (200..300).contains(&answer.status) {
        return success::classify(answer);
    }
    answer.say(refusal::class(answer.verb, answer.status, answer.status_body()))
}

/// The class of a request whose answer never came, or is none: a read can be asked again, a write may have been done.
const fn lost(verb: Verb) -> Class {
    if verb.writes() { Class::Unknown } else { Class::Unavailable }
}

/// A failure with words: trimmed, bounded, on one character boundary, without control characters but line breaks,
/// and never empty.
fn failure(class: Class, words: &str) -> Outcome {
    let mut text = String::new();
    for c in words.trim().chars() {
        let c = if c.is_control() && c != '\n' { ' ' } else { c };
        if text.len() + c.len_utf8() > MAX_MESSAGE {
            break;
        }
        text.push(c);
    }
    if text.trim().is_empty() {
        text = class.name().to_owned();
    }
    Outcome::of(class).saying(text)
}

/// How long the server asks us to wait: its header, else `details.retryAfterSeconds`. Zero says nothing, and what came
/// with a success is not meant for us.
fn wait(outcome: &Outcome, header: Option<Duration>, status: Option<Status<'_>>) -> Option<Duration> {
    if matches!(outcome.class, Class::Done | Class::Present | Class::Absent | Class::Malformed) {
        return outcome.retry_after;
    }
    header
        .or_else(|| status.and_then(|s| s.retry_after()))
        .or(outcome.retry_after)
        .filter(|wait| !wait.is_zero())
        .map(|wait| wait.min(MAX_RETRY_AFTER))
}
