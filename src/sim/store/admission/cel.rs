//! CEL rules of custom resources.

use super::super::objects::text;
use super::super::schema::Schema;
use super::super::status_error::{FieldError, FieldErrorKind};
use kube_cel::{ErrorKind, ValidationError};
use serde_json::Value;

/// The rules that an object breaks, after the schema has found `errors`. Rules are not asked about an object that
/// is already malformed; the server says so.
pub(in super::super) fn rules_broken(
    schema: &Schema,
    object: &Value,
    old: Option<&Value>,
    errors: &[FieldError],
) -> Vec<FieldError> {
    let Some(rules) = schema.rules() else { return Vec::new() };
    if errors.iter().any(|error| error.kind.blocks_rules()) {
        let message = "Invalid value: null: some validation rules were not checked because the object was invalid; \
                       correct the existing errors to complete validation";
        return vec![FieldError::new(FieldErrorKind::Invalid, "<nil>", message)];
    }
    let Err(broken) = kube_cel::validate_compiled(rules, object, old) else { return Vec::new() };
    let mut broken: Vec<ValidationError> = broken.into_vec();
    broken.retain(|error| !is_forgiven(error, object, old));
    broken.sort_by(|a, b| (&a.field_path, &a.rule).cmp(&(&b.field_path, &b.rule)));
    broken.into_iter().map(|error| field_error(error, object)).collect()
}

/// A rule about what was there before is not held against an update that leaves that part alone (ratcheting); rules
/// about the change itself are.
fn is_forgiven(error: &ValidationError, object: &Value, old: Option<&Value>) -> bool {
    let top = error.field_path.split(['.', '[']).next().unwrap_or("");
    let unchanged = old.is_some_and(|old| !top.is_empty() && old.get(top) == object.get(top));
    unchanged && !error.rule.contains("oldSelf")
}

fn field_error(error: ValidationError, object: &Value) -> FieldError {
    let field = if error.field_path.is_empty() { "<nil>".to_owned() } else { error.field_path.clone() };
    if error.kind != ErrorKind::ValidationFailure {
        return FieldError::new(FieldErrorKind::Invalid, field, format!("Invalid value: {}", error.message));
    }
    let message = error.message.trim();
    match error.reason.as_deref() {
        Some("FieldValueForbidden") => FieldError::forbidden(field, message),
        Some("FieldValueRequired") => FieldError::required(field, message),
        Some("FieldValueDuplicate") => {
            FieldError::new(FieldErrorKind::Duplicate, field, format!("Duplicate value: {message}"))
        }
        // A rule that names a field itself shows no value.
        Some(_) => FieldError::new(FieldErrorKind::Invalid, field, format!("Invalid value: {message}")),
        None => {
            let pointer = format!("/{}", error.field_path.replace(['.', '['], "/").replace(']', ""));
            let shown = match object.pointer(&pointer) {
                // The value of an object is not shown.
                Some(Value::Object(_)) | None => {
                    let message = format!("Invalid value: {message}");
                    return FieldError::new(FieldErrorKind::Invalid, field, message);
                }
                Some(Value::Array(_)) => "\"array\"".to_owned(),
                Some(Value::String(_)) => Value::from(text(object, &pointer)).to_string(),
                Some(other) => other.to_string(),
            };
            FieldError::new(FieldErrorKind::Invalid, field, format!("Invalid value: {shown}: {message}"))
        }
    }
}
