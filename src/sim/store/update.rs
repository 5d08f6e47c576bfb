//! What PUT and PATCH have in common: who may change which part, versions, generations, and the end of an object whose
//! last finalizer goes.

use super::create::{check_size, decode};
use super::objects::{bump_generation, drop_nulls, finalizers, is_deleting, meta, set_meta, tidy_metadata};
use super::path::Call;
use super::resource::Resource;
use super::status_error::{self as say, Answer, FieldError, FieldErrorKind, Refused, bad_request};
use super::{Store, StoreReply, admission, bounds, crd_errors, event_rules, pods, schema};
use serde_json::{Value, json};
use std::sync::Arc;

/// How a proposed object came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    Put,
    Patch,
}

impl Store {
    /// PUT.
    pub(super) fn replace(&mut self, call: &Call<'_>) -> Answer {
        check_subresource(call)?;
        let (proposed, warnings) = decode(call)?;
        let in_path = &call.target.name;
        check_place(call, &proposed)?;
        let missing = !self.objects.contains_key(&call.key());
        if missing && call.resource().is_created_by_put() && call.target.subresource.is_empty() {
            // Who names a uid has seen an object, and it is not there any more.
            let uid = meta(&proposed, "uid");
            if !uid.is_empty() {
                let why = storage_precondition(call, uid, &Value::Null);
                return Err(say::conflict(call.resource(), in_path, &why));
            }
            return self.create_as(call);
        }
        let current = self.current(call)?;
        let uid = meta(&proposed, "uid");
        if !uid.is_empty() && uid != meta(&current, "uid") {
            return Err(say::conflict(call.resource(), in_path, &storage_precondition(call, uid, &current)));
        }
        if meta(&proposed, "resourceVersion").is_empty() && call.resource().insists_on_version() {
            let error = FieldError::invalid("metadata.resourceVersion", &json!(0), "must be specified for an update");
            return Err(say::invalid_in_storage(call.resource(), in_path, &[error]));
        }
        let mut reply = self.finish_update(call, &current, proposed, Origin::Put)?;
        reply.warnings.splice(0..0, warnings);
        Ok(reply)
    }

    /// The object that the path names, or 404.
    pub(super) fn current(&self, call: &Call<'_>) -> Result<Arc<Value>, Refused> {
        let found = self.objects.get(&call.key()).map(Arc::clone);
        found.ok_or_else(|| say::not_found(call.resource(), &call.target.name))
    }

    /// Checks a proposed object against the current one and stores it.
    pub(super) fn finish_update(
        &mut self,
        call: &Call<'_>,
        current: &Arc<Value>,
        mut proposed: Value,
        origin: Origin,
    ) -> Answer {
        let resource = Arc::clone(&call.target.resource);
        if !resource.is_custom() {
            drop_nulls(&mut proposed);
        }
        tidy_metadata(&mut proposed);
        let stated = meta(&proposed, "resourceVersion");
        super::options::check_stated_version(stated)?;
        if !stated.is_empty() && stated != meta(current, "resourceVersion") {
            return Err(say::modified(&resource, &call.target.name));
        }
        let stated_uid = meta(&proposed, "uid").to_owned();
        keep_what_is_not_ours_to_change(&resource, &call.target.subresource, current, &mut proposed);
        let mut warnings = self.prepare_update(call, &mut proposed)?;
        let mut errors = self.update_errors(call, current, &proposed);
        let moves = origin == Origin::Patch && call.target.subresource.is_empty();
        if moves && !stated_uid.is_empty() && stated_uid != meta(current, "uid") {
            let error = FieldError::invalid("metadata.uid", &Value::from(stated_uid), "field is immutable");
            errors.splice(0..0, [error.clone(), error]);
        }
        if !errors.is_empty() {
            return Err(say::invalid(&resource, &call.target.name, &errors).with_warnings(warnings));
        }
        warnings.extend(admission::rules::at_admission(self, call, &proposed)?);
        let mut reply = self.store_update(call, &resource, current, proposed)?;
        reply.warnings = warnings;
        Ok(reply)
    }

    fn prepare_update(&mut self, call: &Call<'_>, proposed: &mut Value) -> Result<Vec<String>, Refused> {
        let mut warnings = Vec::new();
        let resource = call.resource();
        if let Some(schema) = &resource.schema {
            let unknown = schema.prune(proposed);
            warnings.extend(schema::unknown_fields(call, unknown)?);
            schema.default(proposed);
        } else if resource.is_pod() {
            pods::default_spec(proposed);
        } else if resource.is_node() {
            super::create::default_node(proposed);
        } else if resource.is_crd() {
            self.establish(proposed);
        } else if event_rules::is_event(call) {
            event_rules::complete(proposed);
        }
        Ok(warnings)
    }

    fn update_errors(&self, call: &Call<'_>, current: &Value, proposed: &Value) -> Vec<FieldError> {
        let resource = call.resource();
        let mut errors = Vec::new();
        if call.target.subresource.is_empty() {
            errors.extend(finalizer_errors(current, proposed));
            errors.extend(admission::metadata_errors(resource, proposed));
            if resource.is_pod() {
                errors.extend(pods::update_errors(current, proposed));
            } else if resource.is_crd() {
                errors.extend(crd_errors::errors(proposed));
            } else if event_rules::is_event(call) {
                errors.extend(event_rules::update_errors(call, current, proposed));
            }
        }
        // A node is checked as a whole, whoever writes which part of it.
        if call.target.subresource.is_empty() || resource.is_node() {
            errors.extend(bounds::errors(resource, proposed));
        }
        if let Some(schema) = &resource.schema {
            if call.target.subresource == "status" {
                errors.extend(schema.status_errors(proposed, Some(current)));
            } else {
                errors.extend(schema.errors(proposed, Some(current)));
            }
            errors.extend(super::scale::errors(call, proposed));
            errors.extend(admission::rules_broken(schema, proposed, Some(current), &errors));
        }
        errors
    }

    /// Stores the change if there is one, and ends an object that nothing holds any more.
    fn store_update(
        &mut self,
        call: &Call<'_>,
        resource: &Resource,
        current: &Arc<Value>,
        mut proposed: Value,
    ) -> Answer {
        let key = call.key();
        self.as_stored(resource, &mut proposed);
        if resource.generation && spec_changed(resource, current, &proposed) {
            bump_generation(&mut proposed);
        }
        if proposed == **current {
            return Ok(StoreReply::json(200, proposed));
        }
        if is_released(resource, current, &proposed) {
            self.remove(&key);
            return Ok(StoreReply::json(200, proposed));
        }
        check_size(&proposed)?;
        let stored = self.commit(&key, proposed);
        if resource.is_crd() {
            self.serve_crd(&key);
        }
        Ok(StoreReply::json(200, stored.as_ref().clone()))
    }
}

/// True if this write takes away the last thing that holds a terminating object.
pub(super) fn is_released(resource: &Resource, current: &Value, proposed: &Value) -> bool {
    if !is_deleting(current) || !finalizers(proposed).is_empty() {
        return false;
    }
    let grace = proposed.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(0);
    let held_by_spec =
        proposed.pointer("/spec/finalizers").and_then(Value::as_array).is_some_and(|all| !all.is_empty());
    (!resource.is_pod() || grace == 0) && (!resource.is_namespace() || !held_by_spec)
}

pub(super) fn check_subresource(call: &Call<'_>) -> Result<(), Refused> {
    if call.target.name.is_empty() {
        let custom = call.resource().is_custom();
        return Err(if custom { bad_request("name must be provided") } else { say::method_not_allowed() });
    }
    match call.target.subresource.as_str() {
        "" => Ok(()),
        "status" if call.resource().status => Ok(()),
        "finalize" if call.resource().is_namespace() => Ok(()),
        _ => Err(say::no_such_subresource(call.resource(), &call.target.name)),
    }
}

/// The name and namespace that a written object states against those of its path.
pub(super) fn check_place(call: &Call<'_>, object: &Value) -> Result<(), Refused> {
    let (name, in_path) = (meta(object, "name"), &call.target.name);
    if !name.is_empty() && name != in_path {
        return Err(bad_request(&format!(
            "the name of the object ({name}) does not match the name on the URL ({in_path})"
        )));
    }
    let namespace = meta(object, "namespace");
    if !namespace.is_empty() && namespace != call.target.namespace {
        return Err(bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    Ok(())
}

fn storage_precondition(call: &Call<'_>, uid: &str, current: &Value) -> String {
    let resource = call.resource();
    let group = if resource.is_custom() { format!("{}/", resource.group) } else { String::new() };
    // Nodes are still stored under their first name.
    let plural = if resource.is_node() { "minions" } else { &resource.plural };
    let place = if call.target.namespace.is_empty() { String::new() } else { format!("{}/", call.target.namespace) };
    format!(
        "StorageError: invalid object, Code: 4, Key: /registry/{group}{plural}/{place}{}, ResourceVersion: 0, \
         AdditionalErrorMsg: Precondition failed: UID in precondition: {uid}, UID in object meta: {}",
        call.target.name,
        meta(current, "uid"),
    )
}

/// Puts back the parts that this endpoint does not write: status on the object, everything else on `/status`, and the
/// metadata that only the server sets.
fn keep_what_is_not_ours_to_change(resource: &Resource, subresource: &str, current: &Value, proposed: &mut Value) {
    let keep = |proposed: &mut Value, field: &str| match current.get(field) {
        Some(value) => proposed[field] = value.clone(),
        None => {
            if let Some(map) = proposed.as_object_mut() {
                map.remove(field);
            }
        }
    };
    match subresource {
        "status" => {
            let status = proposed.get("status").cloned();
            let metadata = proposed.get("metadata").cloned();
            *proposed = current.clone();
            match status {
                Some(status) => proposed["status"] = status,
                None => {
                    if let Some(map) = proposed.as_object_mut() {
                        map.remove("status");
                    }
                }
            }
            // Built-in kinds let labels and annotations through here; custom resources do not.
            if !resource.is_custom() {
                for field in ["labels", "annotations"] {
                    let value = metadata.as_ref().and_then(|meta| meta.get(field)).cloned().unwrap_or_default();
                    set_meta(proposed, field, value);
                }
            }
        }
        "finalize" => {
            let spec = proposed.get("spec").cloned().unwrap_or_default();
            *proposed = current.clone();
            proposed["spec"] = spec;
        }
        _ => {
            if resource.status {
                keep(proposed, "status");
            }
            if resource.is_namespace() {
                keep(proposed, "spec");
            }
        }
    }
    keep(proposed, "apiVersion");
    keep(proposed, "kind");
    const SERVER_SET: [&str; 9] = [
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generateName",
    ];
    for field in SERVER_SET {
        let value = current.get("metadata").and_then(|meta| meta.get(field)).cloned().unwrap_or_default();
        set_meta(proposed, field, value);
    }
    tidy_metadata(proposed);
}

/// 422 for a finalizer that is new on an object with a deletionTimestamp; two layers say so.
fn finalizer_errors(current: &Value, proposed: &Value) -> Vec<FieldError> {
    if !is_deleting(current) {
        return Vec::new();
    }
    let held = finalizers(current);
    let mut new: Vec<String> = finalizers(proposed).into_iter().filter(|name| !held.contains(name)).collect();
    new.sort();
    if new.is_empty() {
        return Vec::new();
    }
    let shown: Vec<String> = new.iter().map(|name| super::reply::quoted(name)).collect();
    let detail = format!(
        "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
        shown.join(", ")
    );
    let error = FieldError::new(FieldErrorKind::Forbidden, "metadata.finalizers", format!("Forbidden: {detail}"));
    vec![error.clone(), error]
}

/// Whether the part that generation counts has changed: everything but metadata and status.
fn spec_changed(resource: &Resource, current: &Value, proposed: &Value) -> bool {
    if !resource.is_custom() {
        return current.get("spec") != proposed.get("spec");
    }
    let rest = |object: &Value| {
        let mut object = object.clone();
        if let Some(map) = object.as_object_mut() {
            map.remove("metadata");
            if resource.status {
                map.remove("status");
            }
        }
        object
    };
    rest(current) != rest(proposed)
}
