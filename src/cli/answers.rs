//! What came back, in words.

use crate::core::meta;
use crate::core::outcome::{Answer, Class, Outcome};

/// What an answer says beside its class: its own words, or what came where there are none.
pub(super) fn said(outcome: &Outcome) -> Option<String> {
    if !outcome.message.trim().is_empty() {
        return Some(outcome.message.clone());
    }
    match (&outcome.answer, outcome.class) {
        (Answer::Object(object), _) => Some(match meta::text(object, "resourceVersion").as_str() {
            "" => "the object as it is now".to_owned(),
            version => format!("the object as of resourceVersion {version}"),
        }),
        (Answer::List { items, .. }, _) => Some(match items.len() {
            0 => "there are none".to_owned(),
            count => format!("{count} of them"),
        }),
        (Answer::Snapshot { digest, .. }, _) => digest.as_ref().map(|digest| format!("digest {digest}")),
        (Answer::NotThere, _) => Some("no such tag".to_owned()),
        (Answer::Nothing, Class::Done | Class::Present | Class::Absent) => None,
        (Answer::Nothing, _) => Some("without a word of why".to_owned()),
    }
}
