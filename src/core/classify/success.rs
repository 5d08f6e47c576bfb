//! Answers of the API server that claim success, and whether they show it.

use super::{Http, classify_watch_error, failure};
use crate::core::outcome::{Answer, Class, Outcome};
use crate::core::wire::Verb;
use serde_json::Value;

/// The class of a status from 200 to 299: `Done` only where the body is what the verb returns.
pub(super) fn classify(answer: &Http<'_>) -> Outcome {
    match answer.verb {
        Verb::Watch => watch(answer.body, answer.status),
        Verb::List => known(answer, list),
        Verb::Delete => known(answer, |body| deleted(body).or_else(|| object(body))),
        Verb::Get | Verb::Create | Verb::Update | Verb::Patch => known(answer, object),
        Verb::RegistryHead | Verb::RegistryGet | Verb::RegistryDelete => {
            failure(Class::Malformed, "a registry's answer has no Kubernetes body")
        }
    }
}

fn known(answer: &Http<'_>, read: impl Fn(&Value) -> Option<Answer>) -> Outcome {
    match answer.json.as_ref().and_then(read) {
        Some(answer) => Outcome { answer, ..Outcome::of(Class::Done) },
        None => failure(Class::Malformed, &format!("a success that cannot be read: {}", answer.own_words())),
    }
}

/// An object as stored. A Status is none, whatever its metadata.
fn object(body: &Value) -> Option<Answer> {
    let is_object = body.get("kind").and_then(Value::as_str) != Some("Status") && is_identified(body);
    is_object.then(|| Answer::Object(body.clone()))
}

/// What a delete returns when nothing is left of the object.
fn deleted(body: &Value) -> Option<Answer> {
    let text = |key: &str| body.get(key).and_then(Value::as_str);
    (text("kind") == Some("Status") && text("status") == Some("Success")).then_some(Answer::Nothing)
}

/// A collection. Without `items` or its version it is none: an empty list would read as the absence of everything, and
/// so would an item without a name.
fn list(body: &Value) -> Option<Answer> {
    let items = body.get("items")?.as_array()?;
    let metadata = body.get("metadata")?;
    let version = metadata.get("resourceVersion")?.as_str().filter(|v| !v.is_empty())?;
    let continue_token = match metadata.get("continue") {
        None | Some(Value::Null) => "",
        Some(token) => token.as_str()?,
    };
    items.iter().all(is_identified).then(|| Answer::List {
        items: items.clone(),
        version: version.to_owned(),
        continue_token: continue_token.to_owned(),
    })
}

/// True where the object has a name, and nothing that identifies it or decides whether it lives has a wrong type.
fn is_identified(object: &Value) -> bool {
    let Some(metadata) = object.get("metadata") else { return false };
    let named = metadata.get("name").and_then(Value::as_str).is_some_and(|name| !name.is_empty());
    named
        && ["namespace", "uid", "resourceVersion", "deletionTimestamp"]
            .iter()
            .all(|key| metadata.get(key).is_none_or(|value| value.is_null() || value.is_string()))
}

/// A watch answers with events until it ends; one without any is whole. An ERROR event speaks for the watch.
fn watch(body: &[u8], status: u16) -> Outcome {
    for event in serde_json::Deserializer::from_slice(body).into_iter::<Value>() {
        let Ok(event) = event else {
            return failure(Class::Malformed, &format!("HTTP {status}: a watch event that is no JSON"));
        };
        let object = event.get("object").filter(|object| object.is_object());
        match (event.get("type").and_then(Value::as_str), object) {
            (Some("ERROR"), Some(object)) => return classify_watch_error(object),
            (Some("ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK"), Some(_)) => {}
            _ => return failure(Class::Malformed, &format!("HTTP {status}: a watch event of no known type")),
        }
    }
    Outcome::of(Class::Done)
}
