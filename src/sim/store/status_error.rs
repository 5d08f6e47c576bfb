//! Refusals: the `Status` bodies of a real API server, text for text as recorded in `tests/facts`.

use super::reply::{StoreReply, quoted};
use super::resource::Resource;
use serde_json::{Map, Value, json};
use std::time::Duration;

/// A refusal on its way out. Boxed, because most calls succeed.
#[derive(Clone, Debug)]
pub struct Refused(pub Box<StoreReply>);

/// What every handler returns.
pub type Answer = Result<StoreReply, Refused>;

/// Kinds of field errors, named as `details.causes[].reason` names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FieldErrorKind {
    /// A required field is missing.
    Required,
    /// A value breaks a rule.
    Invalid,
    /// A value outside an enumeration.
    NotSupported,
    /// A value of the wrong JSON type.
    TypeInvalid,
    /// A text or map over its length.
    TooLong,
    /// A list over its length.
    TooMany,
    /// Two list entries with one key.
    Duplicate,
    /// A change that is not allowed.
    Forbidden,
}

impl FieldErrorKind {
    const fn reason(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Invalid => "FieldValueInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Forbidden => "FieldValueForbidden",
        }
    }
    /// True for the kinds after which the server does not evaluate CEL rules any more.
    pub const fn blocks_rules(self) -> bool {
        match self {
            Self::Required | Self::NotSupported | Self::TypeInvalid | Self::TooLong | Self::TooMany => true,
            Self::Invalid | Self::Duplicate | Self::Forbidden => false,
        }
    }
}

/// One entry of `details.causes` of a 422.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// What is wrong.
    pub kind: FieldErrorKind,
    /// The path, e.g. `spec.agent.image`.
    pub field: String,
    /// The text after the path.
    pub message: String,
}

impl FieldError {
    /// An error with this text after the path.
    pub fn new(kind: FieldErrorKind, field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { kind, field: field.into(), message: message.into() }
    }
    /// `Required value`, with a detail if there is one.
    pub fn required(field: impl Into<String>, detail: &str) -> Self {
        let message = if detail.is_empty() { "Required value".to_owned() } else { format!("Required value: {detail}") };
        Self::new(FieldErrorKind::Required, field, message)
    }
    /// `Invalid value: <value>: <detail>`.
    pub fn invalid(field: impl Into<String>, value: &Value, detail: &str) -> Self {
        Self::new(FieldErrorKind::Invalid, field, format!("Invalid value: {value}: {detail}"))
    }
    /// `Forbidden: <detail>`.
    pub fn forbidden(field: impl Into<String>, detail: &str) -> Self {
        Self::new(FieldErrorKind::Forbidden, field, format!("Forbidden: {detail}"))
    }
    fn cause(&self) -> Value {
        json!({"reason": self.kind.reason(), "message": self.message, "field": self.field})
    }
}

/// A `Status` of this code; `reason` may be empty, as for errors that come straight from storage.
pub fn status(code: u16, reason: &str, message: &str, details: Option<Value>) -> Refused {
    let mut body = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message, "code": code,
    });
    if !reason.is_empty() {
        body["reason"] = Value::from(reason);
    }
    if let Some(details) = details {
        body["details"] = details;
    }
    Refused(Box::new(StoreReply::json(code, body)))
}

fn details(resource: &Resource, name: &str, kind: &str, causes: Vec<Value>) -> Value {
    let mut map = Map::new();
    if !name.is_empty() {
        map.insert("name".to_owned(), Value::from(name));
    }
    if !resource.group.is_empty() {
        map.insert("group".to_owned(), Value::from(resource.group.clone()));
    }
    map.insert("kind".to_owned(), Value::from(kind));
    if !causes.is_empty() {
        map.insert("causes".to_owned(), Value::Array(causes));
    }
    Value::Object(map)
}

/// 404 for one object.
pub fn not_found(resource: &Resource, name: &str) -> Refused {
    let message = format!("{} {} not found", resource.qualified(), quoted(name));
    status(404, "NotFound", &message, Some(details(resource, name, &resource.plural, Vec::new())))
}

/// 409 for a name that is taken; a terminating holder changes the beginning of the message only.
pub fn already_exists(resource: &Resource, name: &str, being_deleted: bool) -> Refused {
    let prefix = if being_deleted { "object is being deleted: " } else { "" };
    let message = format!("{prefix}{} {} already exists", resource.qualified(), quoted(name));
    status(409, "AlreadyExists", &message, Some(details(resource, name, &resource.plural, Vec::new())))
}

/// 409 of storage: `details.kind` is the resource.
pub fn conflict(resource: &Resource, name: &str, why: &str) -> Refused {
    let message = format!("Operation cannot be fulfilled on {} {}: {why}", resource.qualified(), quoted(name));
    status(409, "Conflict", &message, Some(details(resource, name, &resource.plural, Vec::new())))
}

/// 409 for a stale resourceVersion.
pub fn modified(resource: &Resource, name: &str) -> Refused {
    let why = "the object has been modified; please apply your changes to the latest version and try again";
    conflict(resource, name, why)
}

/// 409 of a precondition on DELETE: `details.kind` is the Kind.
pub fn precondition(resource: &Resource, name: &str, why: &str) -> Refused {
    let message = format!("Operation cannot be fulfilled on {} {}: {why}", resource.qualified_kind(), quoted(name));
    status(409, "Conflict", &message, Some(details(resource, name, &resource.kind, Vec::new())))
}

/// 409 of a binding for a pod that has a node.
pub fn already_bound(name: &str, node: &str) -> Refused {
    let message = format!(
        "Operation cannot be fulfilled on pods/binding {}: pod {name} is already assigned to node {}",
        quoted(name),
        quoted(node)
    );
    status(409, "Conflict", &message, Some(json!({"name": name, "kind": "pods/binding"})))
}

/// 422 under the Kind, as validation of objects gives it.
pub fn invalid(resource: &Resource, name: &str, errors: &[FieldError]) -> Refused {
    invalid_as(&resource.qualified_kind(), &resource.kind, resource, name, errors)
}

/// 422 under the resource, as storage gives it.
pub fn invalid_in_storage(resource: &Resource, name: &str, errors: &[FieldError]) -> Refused {
    invalid_as(&resource.qualified(), &resource.plural, resource, name, errors)
}

fn invalid_as(shown: &str, kind: &str, resource: &Resource, name: &str, errors: &[FieldError]) -> Refused {
    let message = format!("{shown} {} is invalid: {}", quoted(name), aggregate(errors));
    let causes = errors.iter().map(FieldError::cause).collect();
    status(422, "Invalid", &message, Some(details(resource, name, kind, causes)))
}

/// 422 for a patch after which the object cannot be read.
pub fn invalid_patch(error: &FieldError) -> Refused {
    let message = format!(" \"\" is invalid: {}: {}", error.field, error.message);
    status(422, "Invalid", &message, Some(json!({"causes": [error.cause()]})))
}

/// 422 for the options of a request.
pub fn invalid_options(kind: &str, error: &FieldError) -> Refused {
    let message = format!("{kind}.meta.k8s.io \"\" is invalid: {}: {}", error.field, error.message);
    let details = json!({"group": "meta.k8s.io", "kind": kind, "causes": [error.cause()]});
    status(422, "Invalid", &message, Some(details))
}

/// Errors in one line; equal ones are said once, several stand in brackets.
fn aggregate(errors: &[FieldError]) -> String {
    let mut texts: Vec<String> = Vec::new();
    for error in errors {
        let text = format!("{}: {}", error.field, error.message);
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    match texts.as_slice() {
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    }
}

/// 403 of an admission plugin: `<resource> "<name>" is forbidden: <why>`.
pub fn forbidden(resource: &Resource, name: &str, why: &str, causes: Vec<Value>) -> Refused {
    let message = format!("{} {} is forbidden: {why}", resource.qualified(), quoted(name));
    status(403, "Forbidden", &message, Some(details(resource, name, &resource.plural, causes)))
}

/// 403 of the authorizer: without a name where the request names no object.
pub fn unauthorized_action(resource: &Resource, name: &str, why: &str) -> Refused {
    let shown = if name.is_empty() { String::new() } else { format!(" {}", quoted(name)) };
    let message = format!("{}{shown} is forbidden: {why}", resource.qualified());
    status(403, "Forbidden", &message, Some(details(resource, name, &resource.plural, Vec::new())))
}

/// The refusal of a ValidatingAdmissionPolicy: 403's text under the code of its reason.
pub fn policy(resource: &Resource, name: &str, why: &str, code: u16, reason: &str) -> Refused {
    let message = format!("{} {} is forbidden: {why}", resource.qualified(), quoted(name));
    status(code, reason, &message, Some(details(resource, name, &resource.plural, vec![json!({"message": why})])))
}

/// 400.
pub fn bad_request(message: &str) -> Refused {
    status(400, "BadRequest", message, None)
}

/// 422 of a JSON patch that does not apply; nothing says which operation failed.
pub fn patch_does_not_apply() -> Refused {
    status(422, "Invalid", "the server rejected our request due to an error in our request", Some(json!({})))
}

/// 500 with a reason.
pub fn internal(message: &str) -> Refused {
    let text = format!("Internal error occurred: {message}");
    status(500, "InternalError", &text, Some(json!({"causes": [{"message": message}]})))
}

/// 504 of a LIST at a version that does not exist yet.
pub fn version_too_large(asked: u64, current: u64) -> Refused {
    let message = format!("Timeout: Too large resource version: {asked}, current: {current}");
    let details = json!({
        "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
        "retryAfterSeconds": 1,
    });
    let Refused(mut reply) = status(504, "Timeout", &message, Some(details));
    reply.retry_after = Some(Duration::from_secs(1));
    Refused(reply)
}

/// 410; `again` is a token with which a LIST may go on inconsistently.
pub fn expired(message: &str, again: Option<&str>) -> Refused {
    let Refused(mut reply) = status(410, "Expired", message, None);
    if let (Some(token), super::reply::ReplyBody::Json(body)) = (again, &mut reply.body) {
        body["metadata"]["continue"] = Value::from(token);
    }
    Refused(reply)
}

/// 404 of the outer layers: the path leads nowhere.
pub fn no_such_path() -> Refused {
    Refused(Box::new(StoreReply::text(404, "404 page not found\n")))
}

/// 404 for a subresource that the resource does not have: of a custom resource it is said that the object is not there.
pub fn no_such_subresource(resource: &Resource, name: &str) -> Refused {
    if resource.is_custom() {
        return not_found(resource, name);
    }
    no_such_resource()
}

/// 404 of a built-in group that has no such resource.
pub fn no_such_resource() -> Refused {
    status(404, "NotFound", "the server could not find the requested resource", Some(json!({})))
}

/// 405.
pub fn method_not_allowed() -> Refused {
    status(405, "MethodNotAllowed", "the server does not allow this method on the requested resource", Some(json!({})))
}

/// 429 of flow control: plain text.
pub fn too_many_requests(retry_after: Duration) -> Refused {
    let mut reply = StoreReply::text(429, "Too many requests, please try again later.\n");
    reply.retry_after = Some(retry_after);
    Refused(Box::new(reply))
}
