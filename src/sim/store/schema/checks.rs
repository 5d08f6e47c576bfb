//! Validation of a value against a structural schema, in the server's words.

use super::super::reply::quoted;
use super::super::status_error::{FieldError, FieldErrorKind};
use super::{flag, join, map_values, properties};
use regex::Regex;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Where a value stands: the field as causes name it, and the name that messages use.
pub(super) struct Place {
    field: String,
    body: String,
}

impl Place {
    /// The root; below a status endpoint causes start with `status`, messages do not.
    pub fn root(field: &str) -> Self {
        Self { field: field.to_owned(), body: String::new() }
    }
    fn member(&self, name: &str) -> Self {
        Self { field: join(&self.field, name), body: join(&self.body, name) }
    }
    fn entry(&self, at: usize) -> Self {
        Self { field: format!("{}[{at}]", self.field), body: format!("{}[{at}]", self.body) }
    }
}

/// One validation.
pub(super) struct Walk<'a> {
    pub patterns: &'a BTreeMap<String, Regex>,
    pub errors: Vec<FieldError>,
}

impl Walk<'_> {
    fn push(&mut self, kind: FieldErrorKind, place: &Place, message: String) {
        let field = if place.field.is_empty() { "<nil>" } else { &place.field };
        self.errors.push(FieldError::new(kind, field, message));
    }

    fn invalid(&mut self, place: &Place, value: &Value, detail: &str) {
        let message = format!("Invalid value: {value}: {} in body {detail}", place.body);
        self.push(FieldErrorKind::Invalid, place, message);
    }

    /// Checks a value and everything below it.
    pub fn value(&mut self, schema: &Value, value: &Value, old: Option<&Value>, place: &Place) {
        if value.is_null() && flag(schema, "nullable") {
            return;
        }
        if !self.has_type(schema, value, place) {
            self.enumeration(schema, value, place);
            self.format(schema, value, place);
            return;
        }
        // What has not changed was accepted once (ratcheting); list types and required fields are not forgiven.
        if old != Some(value) {
            self.constraints(schema, value, place);
        }
        match value {
            Value::Object(map) => self.members(schema, map, old, place),
            Value::Array(list) => self.entries(schema, list, old, place),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn has_type(&mut self, schema: &Value, value: &Value, place: &Place) -> bool {
        if flag(schema, "x-kubernetes-int-or-string") {
            return value.is_string()
                || value.is_i64()
                || value.is_u64()
                || self.wrong_type("integer,string", value, place);
        }
        let Some(wanted) = schema.get("type").and_then(Value::as_str) else { return true };
        // Of a fraction the format is said, not the type.
        let format = schema.get("format").and_then(Value::as_str);
        let wanted_of_number = format.filter(|_| value.is_f64() && wanted == "integer").unwrap_or(wanted);
        let fits = match wanted {
            "string" => value.is_string(),
            "boolean" => value.is_boolean(),
            "object" => value.is_object(),
            "array" => value.is_array(),
            "number" => value.is_number(),
            "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
            _ => true,
        };
        fits || self.wrong_type(wanted_of_number, value, place)
    }

    fn wrong_type(&mut self, wanted: &str, value: &Value, place: &Place) -> bool {
        let is = match value {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Number(number) if number.is_f64() => "float64",
            Value::Number(_) => "integer",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        };
        let message = format!("Invalid value: \"{is}\": {} in body must be of type {wanted}: \"{is}\"", place.body);
        self.push(FieldErrorKind::TypeInvalid, place, message);
        false
    }

    fn constraints(&mut self, schema: &Value, value: &Value, place: &Place) {
        self.enumeration(schema, value, place);
        self.format(schema, value, place);
        match value {
            Value::String(text) => self.text(schema, text, place),
            Value::Number(_) => self.number(schema, value, place),
            Value::Array(list) => self.length(schema, list.len(), place),
            Value::Object(map) => self.size(schema, map.len(), place),
            Value::Null | Value::Bool(_) => {}
        }
    }

    fn enumeration(&mut self, schema: &Value, value: &Value, place: &Place) {
        if let Some(all) = schema.get("enum").and_then(Value::as_array)
            && !all.contains(value)
        {
            let shown: Vec<String> = all.iter().map(Value::to_string).collect();
            let message = format!("Unsupported value: {value}: supported values: {}", shown.join(", "));
            self.push(FieldErrorKind::NotSupported, place, message);
        }
    }

    /// Whether a number is one of its format. The refusal names no field but in its text.
    fn format(&mut self, schema: &Value, value: &Value, place: &Place) {
        let format = schema.get("format").and_then(Value::as_str);
        let Some(number) = value.as_f64().filter(|_| format == Some("int32")) else { return };
        if number.fract() != 0.0 || number < f64::from(i32::MIN) || number > f64::from(i32::MAX) {
            let kind = schema.get("type").and_then(Value::as_str).unwrap_or("integer");
            let body = if place.body.is_empty() { &place.field } else { &place.body };
            let message =
                format!("Invalid value: \"\": Checked value must be of type {kind} with format int32 in {body}");
            self.errors.push(FieldError::new(FieldErrorKind::Invalid, "<nil>", message));
        }
    }

    fn text(&mut self, schema: &Value, text: &str, place: &Place) {
        let length = u64::try_from(text.chars().count()).unwrap_or(u64::MAX);
        let shown = Value::from(text);
        if let Some(most) = limit(schema, "maxLength").filter(|most| length > *most) {
            let message = format!("Too long: may not be more than {most} bytes");
            self.push(FieldErrorKind::TooLong, place, message);
        }
        if let Some(least) = limit(schema, "minLength").filter(|least| length < *least) {
            self.invalid(place, &shown, &format!("should be at least {least} chars long"));
        }
        let pattern = schema.get("pattern").and_then(Value::as_str);
        if let Some(pattern) =
            pattern.filter(|pattern| self.patterns.get(*pattern).is_some_and(|own| !own.is_match(text)))
        {
            self.invalid(place, &shown, &format!("should match '{pattern}'"));
        }
        if schema.get("format").and_then(Value::as_str) == Some("date-time") && text.parse::<jiff::Timestamp>().is_err()
        {
            self.invalid(place, &shown, &format!("must be of type date-time: {}", quoted(text)));
        }
    }

    fn number(&mut self, schema: &Value, value: &Value, place: &Place) {
        let Some(number) = value.as_f64() else { return };
        let bound = |name: &str| schema.get(name).and_then(Value::as_f64);
        let exclusive = |name: &str| flag(schema, name);
        if let Some(most) =
            bound("maximum").filter(|most| number > *most || (exclusive("exclusiveMaximum") && number >= *most))
        {
            let word = if exclusive("exclusiveMaximum") { "less than" } else { "less than or equal to" };
            self.invalid(place, value, &format!("should be {word} {most}"));
        }
        if let Some(least) =
            bound("minimum").filter(|least| number < *least || (exclusive("exclusiveMinimum") && number <= *least))
        {
            let word = if exclusive("exclusiveMinimum") { "greater than" } else { "greater than or equal to" };
            self.invalid(place, value, &format!("should be {word} {least}"));
        }
    }

    fn length(&mut self, schema: &Value, length: usize, place: &Place) {
        let length = u64::try_from(length).unwrap_or(u64::MAX);
        if let Some(most) = limit(schema, "maxItems").filter(|most| length > *most) {
            let message = format!("Too many: {length}: must have at most {most} items");
            self.push(FieldErrorKind::TooMany, place, message);
        }
        if let Some(least) = limit(schema, "minItems").filter(|least| length < *least) {
            self.invalid(place, &Value::from(length), &format!("should have at least {least} items"));
        }
    }

    fn size(&mut self, schema: &Value, size: usize, place: &Place) {
        let size = u64::try_from(size).unwrap_or(u64::MAX);
        if let Some(most) = limit(schema, "maxProperties").filter(|most| size > *most) {
            let message = format!("Too many: {size}: must have at most {most} items");
            self.push(FieldErrorKind::TooMany, place, message);
        }
        if let Some(least) = limit(schema, "minProperties").filter(|least| size < *least) {
            self.invalid(place, &Value::from(size), &format!("should have at least {least} properties"));
        }
    }

    fn members(&mut self, schema: &Value, map: &Map<String, Value>, old: Option<&Value>, place: &Place) {
        for name in schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
            if !map.contains_key(name) {
                let field = place.member(name).field;
                self.errors.push(FieldError::required(field, ""));
            }
        }
        for (name, child) in map {
            let known = properties(schema).and_then(|all| all.get(name)).or_else(|| map_values(schema));
            if let Some(known) = known {
                self.value(known, child, old.and_then(|old| old.get(name)), &place.member(name));
            }
        }
    }

    fn entries(&mut self, schema: &Value, list: &[Value], old: Option<&Value>, place: &Place) {
        let keys: Vec<&str> = schema
            .get("x-kubernetes-list-map-keys")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let identity = |entry: &Value| -> Value {
            if keys.is_empty() {
                return entry.clone();
            }
            let part = |key: &&str| Some(((*key).to_owned(), entry.get(*key)?.clone()));
            Value::Object(keys.iter().filter_map(part).collect())
        };
        let is_set = matches!(schema.get("x-kubernetes-list-type").and_then(Value::as_str), Some("set" | "map"));
        let before = old.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let mut seen: Vec<Value> = Vec::new();
        for (at, entry) in list.iter().enumerate() {
            let id = identity(entry);
            let place = place.entry(at);
            if is_set && seen.contains(&id) {
                self.push(FieldErrorKind::Duplicate, &place, format!("Duplicate value: {id}"));
            }
            if let Some(items) = schema.get("items") {
                let was = if keys.is_empty() { None } else { before.iter().find(|old| identity(old) == id) };
                self.value(items, entry, was, &place);
            }
            seen.push(id);
        }
    }
}

fn limit(schema: &Value, name: &str) -> Option<u64> {
    schema.get(name).and_then(Value::as_u64)
}
