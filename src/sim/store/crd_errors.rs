//! What is wrong with a CustomResourceDefinition, in the server's words and as far as serving it depends on it: names,
//! patterns, and rules that do not compile.

use super::cel_check::{self, Wanted};
use super::objects::{meta, text};
use super::reply::quoted;
use super::resource;
use super::status_error::{FieldError, FieldErrorKind};
use super::{crd_names, crd_shape};
use regex::Regex;
use serde_json::{Value, json};
use std::collections::BTreeSet;

const RULES: &str = "x-kubernetes-validations";
const REASONS: [&str; 4] = ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];

/// What is wrong with a definition.
pub(super) fn errors(crd: &Value) -> Vec<FieldError> {
    let Some(kind) = resource::from_crd(crd, 0) else {
        return vec![FieldError::required("spec", "group, names and versions")];
    };
    let mut errors = Vec::new();
    if meta(crd, "name") != kind.qualified() {
        let detail = "must be spec.names.plural+\".\"+spec.group";
        errors.push(FieldError::invalid("metadata.name", &Value::from(meta(crd, "name")), detail));
    }
    let versions = crd.pointer("/spec/versions").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    errors.extend(crd_names::errors(crd, versions));
    errors.extend(version_errors(crd, versions));
    let schema = |version: &Value| version.pointer("/schema/openAPIV3Schema").cloned();
    // One schema of all versions is checked once, and named where older definitions had it.
    let same = versions.iter().all(|version| Some(schema(version)) == versions.first().map(schema));
    for (at, version) in versions.iter().enumerate().take(if same { 1 } else { versions.len() }) {
        let place = if same { "spec.validation".to_owned() } else { format!("spec.versions[{at}].schema") };
        if let Some(schema) = version.pointer("/schema/openAPIV3Schema") {
            errors.extend(root_error(schema, &format!("{place}.openAPIV3Schema.type")));
            errors.extend(crd_shape::default_errors(schema, &format!("{place}.openAPIV3Schema")));
            let mut walk = Walk { shape: Vec::new(), rules: Vec::new() };
            walk.schema(schema, &format!("{place}.openAPIV3Schema"), true);
            // The compiler is not asked about a schema that is wrong itself.
            errors.extend(if walk.shape.is_empty() { walk.rules } else { walk.shape });
        } else {
            let place = format!("spec.versions[{at}].schema.openAPIV3Schema");
            errors.push(FieldError::required(place, "schemas are required"));
        }
    }
    errors
}

/// What is wrong with the scope and the list of versions.
fn version_errors(crd: &Value, versions: &[Value]) -> Vec<FieldError> {
    let mut errors = Vec::new();
    errors.extend(not_among("spec.scope", text(crd, "/spec/scope"), &["Cluster", "Namespaced"]));
    let shown = Value::from(versions);
    let names: BTreeSet<&str> = versions.iter().map(|version| text(version, "/name")).collect();
    if names.len() < versions.len() {
        errors.push(FieldError::invalid("spec.versions", &shown, "must contain unique version names"));
    }
    let stored = versions.iter().filter(|version| version.get("storage").and_then(Value::as_bool) == Some(true));
    if stored.count() != 1 {
        let why = "must have exactly one version marked as storage version";
        errors.push(FieldError::invalid("spec.versions", &shown, why));
    }
    errors
}

fn root_error(schema: &Value, place: &str) -> Option<FieldError> {
    match text(schema, "/type") {
        "object" => None,
        "" => Some(FieldError::required(place, "must not be empty at the root")),
        other => Some(FieldError::invalid(place, &Value::from(other), "must be object at the root")),
    }
}

pub(super) fn not_among(place: &str, value: &str, all: &[&str]) -> Option<FieldError> {
    let supported: Vec<String> = all.iter().map(|one| quoted(one)).collect();
    let message = format!("Unsupported value: {}: supported values: {}", quoted(value), supported.join(", "));
    (!value.is_empty() && !all.contains(&value)).then(|| FieldError::new(FieldErrorKind::NotSupported, place, message))
}

/// What is found on the way through a schema.
struct Walk {
    shape: Vec<FieldError>,
    rules: Vec<FieldError>,
}

impl Walk {
    fn schema(&mut self, schema: &Value, place: &str, root: bool) {
        self.shape.extend(crd_shape::errors(schema, place, root));
        for (at, rule) in schema.get(RULES).and_then(Value::as_array).into_iter().flatten().enumerate() {
            self.rule(rule, schema, &format!("{place}.{RULES}[{at}]"), root);
        }
        if let Some(pattern) = schema.get("pattern").and_then(Value::as_str)
            && let Err(error) = Regex::new(pattern)
        {
            let told = error.to_string();
            let why = told.lines().last().unwrap_or_default().trim_start_matches("error: ");
            let detail = format!("must be a valid regular expression, but isn't: error parsing regexp: {why}");
            self.shape.push(FieldError::invalid(format!("{place}.pattern"), &Value::from(pattern), &detail));
        }
        self.shape.extend(not_among(&format!("{place}.type"), text(schema, "/type"), &TYPES));
        for (name, child) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            self.schema(child, &format!("{place}.properties[{name}]"), false);
        }
        for one in ["items", "additionalProperties", "not"] {
            if let Some(child) = schema.get(one).filter(|child| child.is_object()) {
                self.schema(child, &format!("{place}.{one}"), false);
            }
        }
        for many in ["allOf", "anyOf", "oneOf"] {
            for (at, child) in schema.get(many).and_then(Value::as_array).into_iter().flatten().enumerate() {
                self.schema(child, &format!("{place}.{many}[{at}]"), false);
            }
        }
    }

    fn rule(&mut self, rule: &Value, schema: &Value, place: &str, root: bool) {
        let of = |field: &str| text(rule, &format!("/{field}"));
        let broken = |text: &str| text.contains(['\n', '\r']);
        let (source, message) = (of("rule"), of("message").trim());
        let mut shape = |error: FieldError| self.shape.push(error);
        if source.trim().is_empty() {
            shape(FieldError::required(format!("{place}.rule"), "rule is not specified"));
            return;
        }
        let blank = |field: &str| !of(field).is_empty() && of(field).trim().is_empty();
        if blank("message") {
            let why = "must be non-empty if specified";
            shape(FieldError::invalid(format!("{place}.message"), &Value::from(of("message")), why));
        } else if broken(message) {
            let why = "must not contain line breaks";
            shape(FieldError::invalid(format!("{place}.message"), &Value::from(of("message")), why));
        } else if broken(source.trim()) && message.is_empty() {
            let why = "message must be specified if rule contains line breaks";
            shape(FieldError::required(format!("{place}.message"), why));
        }
        if blank("messageExpression") {
            let why = "messageExpression must be non-empty if specified";
            shape(FieldError::required(format!("{place}.messageExpression"), why));
        }
        not_among(&format!("{place}.reason"), of("reason"), &REASONS).into_iter().for_each(&mut shape);
        let optional = rule.get("optionalOldSelf").and_then(Value::as_bool) == Some(true);
        if let Some(why) = cel_check::fault(source, schema, root, optional, Wanted::Truth) {
            self.rules.push(refused(format!("{place}.rule"), rule, &why));
        } else if !of("messageExpression").trim().is_empty()
            && let Some(why) = cel_check::fault(of("messageExpression"), schema, root, optional, Wanted::Text)
        {
            self.rules.push(refused(format!("{place}.messageExpression"), rule, &why));
        }
    }
}

/// The rule is shown as Go writes its own type as JSON.
fn refused(place: String, rule: &Value, why: &str) -> FieldError {
    let text = |field: &str| rule.get(field).and_then(Value::as_str).unwrap_or_default();
    let fields = [
        ("Rule", json!(text("rule"))),
        ("Message", json!(text("message"))),
        ("MessageExpression", json!(text("messageExpression"))),
        ("Reason", rule.get("reason").cloned().unwrap_or_default()),
        ("FieldPath", json!(text("fieldPath"))),
        ("OptionalOldSelf", rule.get("optionalOldSelf").cloned().unwrap_or_default()),
    ];
    let members: Vec<String> = fields.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
    let shown = format!("{{{}}}", members.join(","));
    let shown = shown.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026");
    FieldError::new(FieldErrorKind::Invalid, place, format!("Invalid value: {shown}: {why}"))
}
