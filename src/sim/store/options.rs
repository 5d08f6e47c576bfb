//! The options of a request, from its query and, for deletions, its body: what is allowed, and in which words the server
//! says what is not.

use super::path::Call;
use super::reply::quoted;
use super::status_error::{FieldError, FieldErrorKind, Refused, bad_request, invalid_options, status};
use serde_json::Value;

const EXACT: &str = "Exact";
const NOT_OLDER: &str = "NotOlderThan";

fn not_supported(field: &str, value: &str, supported: &str) -> FieldError {
    let message = format!("Unsupported value: {}: supported values: {supported}", quoted(value));
    FieldError::new(FieldErrorKind::NotSupported, field, message)
}

/// Numbers that are none: the server does not get as far as to read the rest.
fn check_numbers(call: &Call<'_>) -> Result<(), Refused> {
    for name in ["limit", "timeoutSeconds"] {
        if let Some(value) = call.query(name).filter(|value| value.parse::<i64>().is_err()) {
            return Err(bad_request(&format!("strconv.ParseInt: parsing {}: invalid syntax", quoted(value))));
        }
    }
    Ok(())
}

/// The options of a LIST, or of the deletion of a collection.
pub(super) fn check_list(call: &Call<'_>) -> Result<(), Refused> {
    check_numbers(call)?;
    let forbidden = |why: &str| FieldError::forbidden("resourceVersionMatch", why);
    let mut errors = Vec::new();
    if let Some(wanted) = call.query("resourceVersionMatch") {
        if call.query("resourceVersion").is_none() {
            errors.push(forbidden("resourceVersionMatch is forbidden unless resourceVersion is provided"));
        }
        if call.query("continue").is_some() {
            errors.push(forbidden("resourceVersionMatch is forbidden when continue is provided"));
        }
        if wanted != EXACT && wanted != NOT_OLDER {
            errors.push(not_supported("resourceVersionMatch", wanted, "\"Exact\", \"NotOlderThan\", \"\""));
        }
        if wanted == EXACT && call.query("resourceVersion") == Some("0") {
            errors.push(forbidden("resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\""));
        }
    }
    if call.query("sendInitialEvents").is_some() {
        errors.push(FieldError::forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"));
    }
    refuse("ListOptions", &errors)
}

/// The options of a WATCH.
pub(super) fn check_watch(call: &Call<'_>) -> Result<(), Refused> {
    check_numbers(call)?;
    let forbidden = |why: &str| FieldError::forbidden("resourceVersionMatch", why);
    let (wanted, initial) = (call.query("resourceVersionMatch"), call.query("sendInitialEvents").is_some());
    let mut errors = Vec::new();
    if initial && wanted != Some(NOT_OLDER) {
        errors.push(forbidden("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"));
    }
    if let Some(wanted) = wanted {
        if !initial {
            errors.push(forbidden("resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"));
        }
        if wanted != NOT_OLDER {
            errors.push(not_supported("resourceVersionMatch", wanted, "\"NotOlderThan\""));
        }
        if call.query("continue").is_some() {
            errors.push(forbidden("resourceVersionMatch is forbidden when continue is provided"));
        }
    }
    refuse("ListOptions", &errors)
}

/// The options of a write, and whether it only asks what would happen.
pub(super) fn check_write(call: &Call<'_>) -> Result<bool, Refused> {
    let deletes = call.verb.starts_with("delete");
    if deletes {
        check_deletion_body(call)?;
    }
    let kind = match call.verb {
        "create" => "CreateOptions",
        "update" => "UpdateOptions",
        "patch" => "PatchOptions",
        _ => "DeleteOptions",
    };
    let in_body = deletes.then(|| call.request.body.get("dryRun")).flatten();
    let mut asked: Vec<String> = super::objects::texts(in_body);
    asked.extend(call.query("dryRun").map(str::to_owned));
    let mut errors = Vec::new();
    if deletes {
        let in_body = call.request.body.get("propagationPolicy").and_then(Value::as_str);
        let policy = in_body.filter(|policy| !policy.is_empty()).or_else(|| call.query("propagationPolicy"));
        if let Some(other) = policy.filter(|policy| !matches!(*policy, "Foreground" | "Background" | "Orphan")) {
            let supported = "\"Foreground\", \"Background\", \"Orphan\", \"nil\"";
            errors.push(not_supported("propagationPolicy", other, supported));
        }
    }
    if asked.iter().any(|value| value != "All") {
        let message = format!("Unsupported value: {}: supported values: \"All\"", Value::from(asked.clone()));
        errors.push(FieldError::new(FieldErrorKind::NotSupported, "dryRun", message));
    }
    let validation = call.query("fieldValidation").unwrap_or("");
    if !deletes && !matches!(validation, "" | "Ignore" | "Strict" | "Warn") {
        errors.push(not_supported("fieldValidation", validation, "\"\", \"Ignore\", \"Strict\", \"Warn\""));
    }
    refuse(kind, &errors)?;
    Ok(!asked.is_empty())
}

fn check_deletion_body(call: &Call<'_>) -> Result<(), Refused> {
    if let Value::String(raw) = &call.request.body {
        let why = super::create::json_error(raw);
        return Err(bad_request(&format!("couldn't get version/kind; json parse error: {why}")));
    }
    Ok(())
}

/// The version that a written object states: what is no version at all is the storage's own error.
pub(super) fn check_stated_version(stated: &str) -> Result<(), Refused> {
    if stated.is_empty() || stated.parse::<u64>().is_ok() {
        return Ok(());
    }
    Err(status(500, "", &format!("strconv.ParseUint: parsing {}: invalid syntax", quoted(stated)), None))
}

fn refuse(kind: &str, errors: &[FieldError]) -> Result<(), Refused> {
    if errors.is_empty() { Ok(()) } else { Err(invalid_options(kind, errors)) }
}
