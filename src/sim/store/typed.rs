//! Built-in kinds as the server's own types have them: a value that does not fit its type is refused, a field that no
//! type knows is dropped and said.

use super::objects::child_mut;
use super::path::Call;
use super::resource::Resource;
use super::status_error::{FieldError, Refused, bad_request, invalid_patch};
use crate::sim::face::builtin_schemas;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

/// The name of a kind's schema, with all schemas that it refers to.
type Schemas = Option<Arc<(String, Map<String, Value>)>>;

/// The schemas of the kinds that were asked for.
static KNOWN: LazyLock<Mutex<BTreeMap<(String, String), Schemas>>> = LazyLock::new(Mutex::default);

fn schemas(group: &str, kind: &str) -> Schemas {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let entry = known.entry((group.to_owned(), kind.to_owned()));
    entry.or_insert_with(|| builtin_schemas(group, kind).map(Arc::new)).clone()
}

/// What a walk through an object finds.
struct Walk<'a> {
    all: &'a Map<String, Value>,
    /// Paths of fields that no type knows.
    unknown: Vec<String>,
}

/// A type as Go names it, for the field that has it.
fn type_name(schema: &Value, all: &Map<String, Value>) -> String {
    if let Some(name) = reference(schema) {
        let short = name.rsplit('.').next().unwrap_or(name);
        let is_struct = all.get(name).is_some_and(|schema| schema.get("properties").is_some());
        return if is_struct { format!("v1.{short}") } else { short.to_owned() };
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("boolean") => "bool".to_owned(),
        Some("integer") => schema.get("format").and_then(Value::as_str).unwrap_or("int64").to_owned(),
        Some("array") => format!("[]{}", schema.get("items").map_or_else(String::new, |of| type_name(of, all))),
        Some("object") => {
            let of = schema.get("additionalProperties").map_or_else(|| "string".to_owned(), |of| type_name(of, all));
            format!("map[string]{of}")
        }
        Some(other) => other.to_owned(),
        None => "interface {}".to_owned(),
    }
}

/// The name of the schema that this one refers to.
fn reference(schema: &Value) -> Option<&str> {
    let direct = schema.get("$ref").or_else(|| schema.pointer("/allOf/0/$ref"));
    direct?.as_str()?.rsplit('/').next()
}

impl Walk<'_> {
    /// `owner` is the type that has the field `path`; fails with what Go's decoder says of the first misfit.
    fn value(&mut self, schema: &Value, value: &mut Value, owner: &str, path: &str) -> Result<(), String> {
        let all = self.all;
        if let Some(name) = reference(schema) {
            if name.ends_with("Quantity") {
                return quantity(value);
            }
            // Any JSON, such as a default.
            if name.ends_with(".JSON") {
                return Ok(());
            }
            let Some(target) = all.get(name) else { return Ok(()) };
            let short = name.rsplit('.').next().unwrap_or(name);
            if target.get("properties").is_some() && !value.is_object() {
                return misfit(value, owner, path, &format!("v1.{short}"));
            }
            return self.value(target, value, if target.get("properties").is_some() { short } else { owner }, path);
        }
        if value.is_null() || schema.get("x-kubernetes-int-or-string").is_some() {
            return Ok(());
        }
        if let Some(forms) = schema.get("oneOf").and_then(Value::as_array) {
            let is_list = |form: &Value| form.get("type").is_some_and(|kind| kind == "array");
            let form = match value {
                Value::Object(_) => forms.iter().find(|form| reference(form).is_some()),
                Value::Array(_) => forms.iter().find(|form| is_list(form)),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
            };
            return form.map_or(Ok(()), |form| self.value(form, value, owner, path));
        }
        let fits = match schema.get("type").and_then(Value::as_str) {
            Some("string") => value.is_string(),
            Some("boolean") => value.is_boolean(),
            Some("integer") => value.as_f64().is_some_and(|number| number.fract() == 0.0),
            Some("number") => value.is_number(),
            Some("array") => value.is_array(),
            Some("object") => value.is_object(),
            _ => return Ok(()),
        };
        if !fits {
            return misfit(value, owner, path, &type_name(schema, all));
        }
        match value {
            Value::Object(map) => self.members(schema, map, owner, path),
            Value::Array(list) => {
                let Some(items) = schema.get("items") else { return Ok(()) };
                let below = |at: usize| format!("{path}[{at}]");
                list.iter_mut().enumerate().try_for_each(|(at, entry)| self.value(items, entry, owner, &below(at)))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
        }
    }

    fn members(&mut self, schema: &Value, map: &mut Map<String, Value>, owner: &str, path: &str) -> Result<(), String> {
        let join = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        let Some(known) = schema.get("properties").and_then(Value::as_object) else {
            let Some(values) = schema.get("additionalProperties").filter(|values| values.is_object()) else {
                return Ok(());
            };
            // Entries of a map are named by the map.
            return map.values_mut().try_for_each(|child| self.value(values, child, owner, path));
        };
        let strange: Vec<String> = map.keys().filter(|name| !known.contains_key(*name)).cloned().collect();
        for name in strange {
            map.remove(&name);
            self.unknown.push(join(&name));
        }
        map.iter_mut().try_for_each(|(name, child)| match known.get(name) {
            Some(schema) => self.value(schema, child, owner, &join(name)),
            None => Ok(()),
        })
    }
}

fn quantity(value: &Value) -> Result<(), String> {
    if super::quantity::parse(value).is_some() {
        return Ok(());
    }
    Err("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'".to_owned())
}

fn misfit(value: &Value, owner: &str, path: &str, wanted: &str) -> Result<(), String> {
    // Places in lists are not named.
    let mut field = String::new();
    let mut inside = false;
    for c in path.chars() {
        match c {
            '[' => inside = true,
            ']' => inside = false,
            other if !inside => field.push(other),
            _ => {}
        }
    }
    let is = super::patch::kind_of(value);
    Err(format!("json: cannot unmarshal {is} into Go struct field {owner}.{field} of type {wanted}"))
}

/// Checks an object that was sent, drops what its type does not know, and gives the paths of that. Of custom resources
/// these are the fields of their metadata.
fn walk(resource: &Resource, object: &mut Value) -> Result<Vec<String>, String> {
    if resource.is_custom() {
        let Some(known) = schemas("", "Pod") else { return Ok(Vec::new()) };
        let Some(name) = known.1.keys().find(|name| name.ends_with(".ObjectMeta")) else { return Ok(Vec::new()) };
        let Some(schema) = known.1.get(name) else { return Ok(Vec::new()) };
        let mut walk = Walk { all: &known.1, unknown: Vec::new() };
        walk.members(schema, child_mut(object, "metadata"), "ObjectMeta", "")?;
        return Ok(walk.unknown.iter().map(|path| format!("metadata.{path}")).collect());
    }
    let Some(known) = schemas(&resource.group, &resource.kind) else { return Ok(Vec::new()) };
    let Some(schema) = known.1.get(&known.0) else { return Ok(Vec::new()) };
    let mut walk = Walk { all: &known.1, unknown: Vec::new() };
    walk.value(schema, object, &resource.kind, "")?;
    Ok(walk.unknown)
}

/// The warnings for an object that was posted or put, or 400 where it cannot be read.
pub(super) fn decoded(call: &Call<'_>, object: &mut Value) -> Result<Vec<String>, Refused> {
    let resource = call.resource();
    let unknown = walk(resource, object).map_err(|why| {
        let version = super::reply::quoted(&resource.version);
        bad_request(&format!("{0} in version {version} cannot be handled as a {0}: {why}", resource.kind))
    })?;
    super::schema::unknown_fields(call, unknown)
}

/// The same for what a patch has made of an object: 422.
pub(super) fn patched(call: &Call<'_>, object: &mut Value) -> Result<Vec<String>, Refused> {
    let before = object.clone();
    let unknown = walk(call.resource(), object)
        .map_err(|why| invalid_patch(&FieldError::invalid("patch", &Value::from(before.to_string()), &why)))?;
    super::schema::unknown_fields(call, unknown)
}
