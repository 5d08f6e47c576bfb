//! Answers of the snapshot registry.

use super::{Http, failure, lost};
use crate::core::outcome::{Answer, Class, Outcome};
use crate::core::wire::Verb;
use serde_json::Value;

/// The annotation of a manifest that names the image its VM was started from.
const BASE_IMAGE: &str = "cocoonstack.snapshot.baseimage";

/// The class of any HTTP answer of a registry (registry.md 3 and 6).
///
/// A page of HTML is a proxy's: neither presence nor absence follows from it. A HEAD has no body, so there the code has
/// to do. A tag whose delete succeeded is `Absent`, like one that was not there; the answer tells the two apart.
pub(super) fn classify(answer: &Http<'_>, digest: Option<&str>) -> Outcome {
    if let Some(class) = spoken(answer) {
        return say(answer, class);
    }
    match answer.status {
        200..=299 | 404 if answer.is_markup() => answer.say(lost(answer.verb)),
        200..=299 => succeeded(answer, digest),
        401 | 403 => say(answer, Class::Denied),
        404 if answer.verb == Verb::RegistryDelete => {
            Outcome { answer: Answer::NotThere, ..say(answer, Class::Absent) }
        }
        404 => Outcome::of(Class::Absent),
        408 => say(answer, lost(answer.verb)),
        429 => say(answer, Class::Throttled),
        400..=499 => say(answer, Class::Unsupported),
        _ => say(answer, lost(answer.verb)),
    }
}

fn succeeded(answer: &Http<'_>, digest: Option<&str>) -> Outcome {
    let found = |base_image: Option<String>| Outcome {
        answer: Answer::Snapshot { digest: digest.filter(|d| is_digest(d)).map(str::to_owned), base_image },
        ..Outcome::of(Class::Present)
    };
    match (answer.verb, answer.json.as_ref().filter(|body| body.is_object())) {
        (Verb::RegistryDelete, _) => Outcome::of(Class::Absent),
        (Verb::RegistryHead, _) => found(None),
        (_, Some(manifest)) => {
            let annotation = manifest.get("annotations").and_then(|all| all.get(BASE_IMAGE));
            found(annotation.and_then(Value::as_str).filter(|image| !image.is_empty()).map(str::to_owned))
        }
        (_, None) => failure(Class::Unavailable, &format!("a manifest that cannot be read: {}", answer.own_words())),
    }
}

/// Some registries hide a refusal behind a 404; the error code in the body tells.
fn spoken(answer: &Http<'_>) -> Option<Class> {
    let errors = answer.json.as_ref()?.get("errors")?.as_array()?;
    let says = |words: &[&str]| {
        let code = |e: &Value| e.get("code").and_then(Value::as_str).is_some_and(|code| words.contains(&code));
        errors.iter().any(code)
    };
    match answer.status {
        404 if says(&["DENIED", "UNAUTHORIZED"]) => Some(Class::Denied),
        404 if says(&["TOOMANYREQUESTS"]) => Some(Class::Throttled),
        404 if says(&["UNSUPPORTED"]) => Some(Class::Unsupported),
        // A success with errors in it is none.
        200..=299 if !errors.is_empty() => Some(lost(answer.verb)),
        _ => None,
    }
}

/// `algorithm:hex`, as the distribution specification writes it.
fn is_digest(text: &str) -> bool {
    text.split_once(':').is_some_and(|(algorithm, hex)| {
        !algorithm.is_empty()
            && algorithm.chars().all(|c| c.is_ascii_alphanumeric() || "+._-".contains(c))
            && hex.len() >= 32
            && hex.chars().all(|c| c.is_ascii_hexdigit())
    })
}

/// The class with the first error's words, where the body has any.
fn say(answer: &Http<'_>, class: Class) -> Outcome {
    let first = answer.json.as_ref().and_then(|body| body.get("errors")).and_then(|errors| errors.get(0));
    let words = |key: &str| first.and_then(|e| e.get(key)).and_then(Value::as_str).filter(|w| !w.trim().is_empty());
    match (words("code"), words("message")) {
        (Some(code), Some(message)) => failure(class, &format!("HTTP {}: {code}: {message}", answer.status)),
        (Some(word), None) | (None, Some(word)) => failure(class, &format!("HTTP {}: {word}", answer.status)),
        (None, None) => answer.say(class),
    }
}
