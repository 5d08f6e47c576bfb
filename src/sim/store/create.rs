//! POST: new objects, and the two subresources of pods that are posted to.

use super::objects::{child_mut, drop_nulls, is_deleting, meta, set_meta, stamp, text, tidy_metadata};
use super::path::Call;
use super::reply::quoted;
use super::status_error::{self as say, Answer, FieldError, Refused, bad_request, status};
use super::{Key, Store, StoreReply, admission, crd, pods, schema};
use serde_json::{Value, json};
use std::sync::Arc;

/// etcd's limit for one write.
const STORAGE_LIMIT: usize = 1_572_864;

/// The posted or put object, once it is known to be of the right kind.
pub(super) fn decode(call: &Call<'_>) -> Result<Value, Refused> {
    let resource = call.resource();
    let body = match &call.request.body {
        Value::String(raw) => return Err(malformed(&resource.kind, raw)),
        Value::Object(_) => call.request.body.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
            return Err(bad_request(&format!(
                "the object provided is unrecognized (must be of type {})",
                resource.kind
            )));
        }
    };
    let (version, kind) = (text(&body, "/apiVersion").to_owned(), text(&body, "/kind").to_owned());
    let expected = resource.api_version();
    if !version.is_empty() && version != expected {
        return Err(bad_request(&format!(
            "the API version in the data ({version}) does not match the expected API version ({expected})"
        )));
    }
    if !kind.is_empty() && kind != resource.kind {
        let shown = quoted(&resource.version);
        return Err(bad_request(&format!("{kind} in version {shown} cannot be handled as a {}", resource.kind)));
    }
    let mut object = body;
    if !resource.is_custom() {
        drop_nulls(&mut object);
    }
    object["apiVersion"] = Value::from(expected);
    object["kind"] = Value::from(resource.kind.clone());
    tidy_metadata(&mut object);
    super::events::stored(resource, &mut object);
    Ok(object)
}

/// 400 for a body that is no JSON; a transport hands such a body over as text.
fn malformed(kind: &str, raw: &str) -> Refused {
    let why = match serde_json::from_str::<Value>(raw) {
        Ok(_) => "cannot unmarshal string into Go value".to_owned(),
        Err(error) => error.to_string(),
    };
    bad_request(&format!(
        "the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; json parse error: \
         {why} ({raw})"
    ))
}

impl Store {
    /// Creates an object.
    pub(super) fn create(&mut self, call: &Call<'_>) -> Answer {
        match (call.resource().is_pod(), call.target.subresource.as_str()) {
            (true, "binding") => return self.bind(call),
            (true, "eviction") => return self.evict(call),
            (_, "") if call.target.name.is_empty() => {}
            _ => return Err(say::method_not_allowed()),
        }
        let resource = Arc::clone(&call.target.resource);
        let mut object = decode(call)?;
        self.check_new(call, &mut object)?;
        admission::admit_create(self, call, &mut object)?;
        let generated = self.name_it(&mut object);
        let mut warnings = self.prepare_new(call, &mut object)?;
        self.validate_new(call, &object)?;
        warnings.extend(admission::rules::at_admission(self, call, &object)?);
        let charges = admission::quota::admit(self, call, &object)?;
        let key =
            Key::new(super::events::storage(&resource.qualified()), &call.target.namespace, meta(&object, "name"));
        if let Some(holder) = self.objects.get(&key) {
            let being_deleted = is_deleting(holder) && !generated;
            return Err(say::already_exists(&resource, &key.name, being_deleted));
        }
        check_size(&object)?;
        admission::quota::charge(self, &call.target.namespace, charges);
        let stored = self.commit(&key, object);
        self.after_create(&key);
        let stored = self.objects.get(&key).map_or(stored, Arc::clone);
        let mut reply = StoreReply::json(201, stored.as_ref().clone());
        reply.warnings = warnings;
        Ok(reply)
    }

    fn check_new(&mut self, call: &Call<'_>, object: &mut Value) -> Result<(), Refused> {
        let (target, stated) = (&call.target.namespace, meta(object, "namespace"));
        if !stated.is_empty() && stated != target {
            return Err(bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
        if call.resource().namespaced && target.is_empty() {
            return Err(say::method_not_allowed());
        }
        if !meta(object, "resourceVersion").is_empty() {
            return Err(status(500, "", "resourceVersion should not be set on objects to be created", None));
        }
        for field in ["deletionTimestamp", "deletionGracePeriodSeconds", "generation"] {
            set_meta(object, field, Value::Null);
        }
        set_meta(object, "namespace", if target.is_empty() { Value::Null } else { Value::from(target.clone()) });
        set_meta(object, "creationTimestamp", stamp(self.now));
        let uid = self.next_uid();
        set_meta(object, "uid", Value::from(uid));
        Ok(())
    }

    /// Gives a name to an object that asks for one; true if it did.
    fn name_it(&mut self, object: &mut Value) -> bool {
        let prefix = meta(object, "generateName").to_owned();
        if !meta(object, "name").is_empty() || prefix.is_empty() {
            return false;
        }
        let kept: String = prefix.chars().take(58).collect();
        let suffix = self.next_suffix();
        set_meta(object, "name", Value::from(format!("{kept}{suffix}")));
        true
    }

    /// Fills in what the kind gives a new object, and gives the warnings.
    fn prepare_new(&mut self, call: &Call<'_>, object: &mut Value) -> Result<Vec<String>, Refused> {
        let resource = call.resource();
        let mut warnings = Vec::new();
        if resource.generation {
            set_meta(object, "generation", json!(1));
        }
        if let Some(schema) = &resource.schema {
            if resource.status
                && let Some(map) = object.as_object_mut()
            {
                map.remove("status");
            }
            let unknown = schema.prune(object);
            warnings.extend(schema::unknown_fields(call, unknown)?);
            schema.default(object);
            warnings.extend(admission::finalizer_warnings(object));
        } else if resource.is_pod() {
            pods::default_new(object);
        } else if resource.is_namespace() {
            prepare_namespace(object);
        } else if resource.is_crd() {
            crd::establish(object, self.now);
        } else if resource.is_quota() {
            object["status"] = json!({});
        }
        Ok(warnings)
    }

    fn validate_new(&self, call: &Call<'_>, object: &Value) -> Result<(), Refused> {
        let resource = call.resource();
        let mut errors = admission::metadata_errors(resource, object);
        if let Some(schema) = &resource.schema {
            errors.extend(schema.errors(object, None));
            errors.extend(super::scale::errors(call, object, &errors));
            errors.extend(admission::rules_broken(schema, object, None, &errors));
        } else if resource.is_pod() {
            errors.extend(pods::errors(object));
        } else if resource.is_crd() {
            errors.extend(crd::errors(object));
        }
        if errors.is_empty() { Ok(()) } else { Err(say::invalid(resource, meta(object, "name"), &errors)) }
    }

    fn after_create(&mut self, key: &Key) {
        if key.resource == "namespaces" && self.settings.service_accounts {
            let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
            self.post(&format!("/api/v1/namespaces/{}/serviceaccounts", key.name), account);
        }
        if key.resource == "customresourcedefinitions.apiextensions.k8s.io" {
            self.serve_crd(key);
        }
    }

    /// POST of a Binding: what a scheduler does.
    fn bind(&mut self, call: &Call<'_>) -> Answer {
        let key = call.key();
        let Some(pod) = self.objects.get(&key) else { return Err(say::not_found(call.resource(), &key.name)) };
        let bound = text(pod, "/spec/nodeName");
        if !bound.is_empty() {
            return Err(say::already_bound(&key.name, bound));
        }
        if is_deleting(pod) {
            let why = format!("pod {} is being deleted, cannot be assigned to a host", key.name);
            return Err(say::conflict(call.resource(), &key.name, &why));
        }
        let node = text(&call.request.body, "/target/name").to_owned();
        if node.is_empty() {
            let error = FieldError::required("target.name", "");
            return Err(say::invalid(call.resource(), &key.name, &[error]));
        }
        let now = stamp(self.now);
        let mut pod = pod.as_ref().clone();
        child_mut(&mut pod, "spec").insert("nodeName".to_owned(), Value::from(node));
        pods::set_condition(&mut pod, json!({"type": "PodScheduled", "status": "True", "lastTransitionTime": now}));
        self.commit(&key, pod);
        Ok(StoreReply::json(
            201,
            json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}),
        ))
    }

    /// POST of an Eviction: a deletion that rules of admission (a PodDisruptionBudget) may refuse.
    fn evict(&mut self, call: &Call<'_>) -> Answer {
        if !self.objects.contains_key(&call.key()) {
            return Err(say::not_found(call.resource(), &call.target.name));
        }
        admission::rules::at_admission(self, call, &call.request.body)?;
        let options = call.request.body.get("deleteOptions").cloned().unwrap_or_default();
        let options = super::delete::Options::of(&options, call);
        self.delete_object(call.resource(), &call.key(), &options)?;
        Ok(StoreReply::json(
            201,
            json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}),
        ))
    }
}

fn prepare_namespace(object: &mut Value) {
    let name = meta(object, "name").to_owned();
    let mut labels = object.pointer("/metadata/labels").cloned().unwrap_or_default();
    super::objects::as_map(&mut labels).insert("kubernetes.io/metadata.name".to_owned(), Value::from(name));
    set_meta(object, "labels", labels);
    object["spec"] = json!({"finalizers": ["kubernetes"]});
    object["status"] = json!({"phase": "Active"});
}

/// 500 without a reason for what is too large for etcd.
pub(super) fn check_size(object: &Value) -> Result<(), Refused> {
    if object.to_string().len() > STORAGE_LIMIT {
        return Err(status(500, "", "etcdserver: request is too large", None));
    }
    Ok(())
}
