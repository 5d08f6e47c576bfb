//! Answers of the API server that are no success.

use super::lost;
use super::status::{Cause, Status};
use crate::core::outcome::Class;
use crate::core::wire::Verb;

/// The class of a status outside 200..299.
pub(super) fn class(verb: Verb, code: u16, status: Option<Status<'_>>) -> Class {
    // A read that met a server's fault is asked again, whatever the body says.
    if !verb.writes() && code >= 500 {
        return Class::Unavailable;
    }
    // A webhook chooses the code of its refusal, 404 and 500 included: it goes before everything else.
    if (400..600).contains(&code) && status.is_some_and(denied_by_admission) {
        return Class::AdmissionDenied;
    }
    match code {
        401 => Class::Unauthorized,
        403 => status.map_or(Class::ForbiddenOther, forbidden),
        404 => status.map_or(Class::NotServed, |s| not_found(verb, s)),
        408 => lost(verb),
        409 => status.map_or(Class::Conflict, |s| conflict(verb, s)),
        410 => Class::Expired,
        413 => Class::TooLarge,
        422 => status.map_or(Class::Invalid, |s| invalid(verb, s)),
        429 => Class::Throttled,
        400..=499 => Class::BadRequest,
        500 => status.map_or(lost(verb), |s| internal(verb, s)),
        // With a Status it is the API server's own: refused at the door. Without, a proxy may speak of an answer it lost.
        503 if status.is_some() => Class::Unavailable,
        _ => lost(verb),
    }
}

/// `admission webhook "X" denied the request`, or a ValidatingAdmissionPolicy's refusal, which is also its only cause.
/// Only where the sentence begins so: a value that a message merely quotes is not who refused.
fn denied_by_admission(status: Status<'_>) -> bool {
    let webhook =
        status.message().starts_with("admission webhook \"") && status.message().contains("denied the request");
    let policy = |text: &str| text.starts_with("ValidatingAdmissionPolicy '") && text.contains(" denied request");
    webhook || policy(status.ground()) || status.causes().any(|c| c.reason().is_empty() && policy(c.message()))
}

/// A 403 has at least nine meanings. Only the namespace that terminates has a cause with a reason; the others differ by
/// what their message begins with.
fn forbidden(status: Status<'_>) -> Class {
    const QUOTA: [&str; 4] =
        ["exceeded quota: ", "failed quota: ", "status unknown for quota: ", "insufficient quota to "];
    let ground = status.ground();
    if status.causes().any(|c| c.reason() == "NamespaceTerminating") {
        Class::NamespaceTerminating
    } else if QUOTA.iter().any(|words| ground.starts_with(words)) {
        Class::QuotaExceeded
    } else if ground.starts_with("violates PodSecurity \"") {
        Class::PodSecurityDenied
    } else if ground.starts_with("User \"") && ground.contains("\" cannot ") {
        Class::RbacDenied
    } else {
        Class::ForbiddenOther
    }
}

/// Absence needs a witness: a Status that names what is absent and does not contradict itself. Everything else is a
/// kind that is not installed, or a proxy.
fn not_found(verb: Verb, status: Status<'_>) -> Class {
    let contradicts = status.status() == "Success"
        || status.code().is_some_and(|code| code != 404)
        || !matches!(status.reason(), "" | "NotFound");
    if contradicts || status.name().is_empty() {
        Class::NotServed
    } else if verb == Verb::Create && status.kind() == "namespaces" {
        Class::NamespaceNotFound
    } else {
        Class::NotFound
    }
}

fn conflict(verb: Verb, status: Status<'_>) -> Class {
    let message = status.message();
    if status.reason() == "AlreadyExists" {
        // The only difference that the server makes between the two.
        let terminating = message.starts_with("object is being deleted: ");
        if terminating { Class::AlreadyExistsTerminating } else { Class::AlreadyExists }
    } else if verb == Verb::Delete && speaks_of_precondition(message) {
        Class::PreconditionFailed
    } else {
        Class::Conflict
    }
}

/// A delete's preconditions are checked before the storage and again in it; each place has its own words.
fn speaks_of_precondition(message: &str) -> bool {
    ["the UID in the precondition (", "the ResourceVersion in the precondition (", "Precondition failed: "]
        .iter()
        .any(|words| message.contains(words))
}

fn invalid(verb: Verb, status: Status<'_>) -> Class {
    let forbidden_on =
        |field: &'static str| move |c: Cause<'_>| c.reason() == "FieldValueForbidden" && c.field() == field;
    // A JSON patch whose `test` failed: a general sentence, and details that say nothing (facts g1 to g5).
    if verb == Verb::Patch && status.lacks_details() && !status.message().contains(" is invalid: ") {
        return Class::PreconditionFailed;
    }
    if status.causes().next().is_some() && status.causes().all(|c| c.field() == "metadata.uid") {
        Class::PreconditionFailed
    } else if status.causes().any(forbidden_on("metadata.finalizers")) {
        Class::FinalizerOnDeleting
    } else if status.causes().any(|c| forbidden_on("spec")(c) || c.message().ends_with(": field is immutable")) {
        Class::Immutable
    } else {
        Class::Invalid
    }
}

/// The two faults of a write that come before anything is stored: admission that could not be asked, and a request that
/// the storage refuses for its size.
fn internal(verb: Verb, status: Status<'_>) -> Class {
    let message = status.message().trim_start_matches("Internal error occurred: ");
    let uncalled = |text: &str| text.starts_with("failed calling webhook ");
    if uncalled(message) || status.causes().any(|c| uncalled(c.message())) {
        Class::Unavailable
    } else if message.ends_with("request is too large") || message.contains("trying to send message larger than max") {
        Class::TooLarge
    } else {
        lost(verb)
    }
}
