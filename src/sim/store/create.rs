//! POST: new objects, and the two subresources of pods that are posted to.

use super::objects::{child_mut, drop_nulls, is_deleting, meta, set_meta, stamp, text, tidy_metadata};
use super::path::Call;
use super::reply::quoted;
use super::resource::Resource;
use super::status_error::{self as say, Answer, FieldError, Refused, bad_request, status};
use super::{Key, Store, StoreReply, admission, bounds, crd, crd_errors, event_rules, pod_errors, pods, schema, typed};
use serde_json::{Value, json};
use std::sync::Arc;

/// etcd's limit for one write.
const STORAGE_LIMIT: usize = 1_572_864;

/// Media types of objects; the transport turns the last two into JSON.
const OBJECTS: [&str; 3] = ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];

/// The posted or put object, once it is known to be of the right kind, with the warnings that it earns.
pub(super) fn decode(call: &Call<'_>) -> Result<(Value, Vec<String>), Refused> {
    let resource = call.resource();
    let media = call.request.content_type.as_deref().filter(|media| !media.is_empty());
    if media.is_some_and(|media| !OBJECTS.contains(&media)) {
        let accepted = OBJECTS.join(", ");
        let why =
            format!("the body of the request was in an unknown format - accepted media types include: {accepted}");
        return Err(status(415, "UnsupportedMediaType", &why, None));
    }
    let Value::Object(_) = &call.request.body else { return Err(malformed(&resource.kind, &call.request.body)) };
    let mut object = call.request.body.clone();
    check_kind(resource, &object)?;
    if !resource.is_custom() {
        drop_nulls(&mut object);
    }
    object["apiVersion"] = Value::from(resource.api_version());
    object["kind"] = Value::from(resource.kind.clone());
    let mut warnings = typed::decoded(call, &mut object)?;
    warnings.extend(without_doubles(&mut object));
    tidy_metadata(&mut object);
    super::events::stored(resource, &mut object);
    Ok((object, warnings))
}

/// Kind and version of the object against those of its path.
fn check_kind(resource: &Resource, object: &Value) -> Result<(), Refused> {
    let (version, kind) = (text(object, "/apiVersion"), text(object, "/kind"));
    let expected = resource.api_version();
    let (other_version, other_kind) =
        (!version.is_empty() && version != expected, !kind.is_empty() && kind != resource.kind);
    if resource.is_custom() {
        if other_version {
            return Err(bad_request(&format!(
                "the API version in the data ({version}) does not match the expected API version ({expected})"
            )));
        }
        return if other_kind { Err(say::wrong_kind(resource, meta(object, "name"), kind)) } else { Ok(()) };
    }
    if !other_version && !other_kind {
        return Ok(());
    }
    let version = if version.is_empty() { &expected } else { version };
    let kind = if kind.is_empty() { &resource.kind } else { kind };
    let short = quoted(version.rsplit('/').next().unwrap_or(version));
    Err(bad_request(&format!(
        "{kind} in version {short} cannot be handled as a {}: no kind {} is registered for version {} in scheme \
         \"pkg/runtime/scheme.go:111\"",
        resource.kind,
        quoted(kind),
        quoted(version)
    )))
}

/// Takes owners away that are named twice, and warns of them.
pub(super) fn without_doubles(object: &mut Value) -> Option<String> {
    let all = super::objects::owners(object);
    let mut kept: Vec<Value> = Vec::new();
    let mut doubled: Vec<String> = Vec::new();
    for owner in all {
        if !kept.contains(owner) {
            kept.push(owner.clone());
        } else if !doubled.contains(&text(owner, "/uid").to_owned()) {
            doubled.push(text(owner, "/uid").to_owned());
        }
    }
    if doubled.is_empty() {
        return None;
    }
    set_meta(object, "ownerReferences", Value::Array(kept));
    Some(format!(
        ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may \
         reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
        doubled.join(", ")
    ))
}

/// What Go's decoder says of a text that is no JSON.
pub(super) fn json_error(raw: &str) -> String {
    match serde_json::from_str::<Value>(raw) {
        Ok(_) => "json: cannot unmarshal string into Go value".to_owned(),
        Err(error) if error.is_eof() => "unexpected end of JSON input".to_owned(),
        Err(error) => {
            let line = raw.lines().nth(error.line().saturating_sub(1)).unwrap_or("");
            let at = line.chars().nth(error.column().saturating_sub(1)).unwrap_or(' ');
            format!("invalid character '{at}' looking for beginning of value")
        }
    }
}

/// 400 for a body that is no object; a transport hands what is no JSON over as text.
pub(super) fn malformed(kind: &str, body: &Value) -> Refused {
    const HEAD: &str = "json: cannot unmarshal";
    const FIELDS: &str = "struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \
                          \"json:\\\"kind,omitempty\\\"\" }";
    let (why, sent) = match body {
        Value::String(raw) => (json_error(raw), raw.clone()),
        Value::Null => ("unexpected end of JSON input".to_owned(), String::new()),
        other => (format!("{HEAD} {} into Go value of type {FIELDS}", super::patch::kind_of(other)), other.to_string()),
    };
    // The first thirty bytes; in hexadecimal where they do not look like an object.
    let head: Vec<u8> = sent.bytes().take(30).collect();
    let more = if sent.len() > head.len() { " ..." } else { "" };
    let shown = match head.first() {
        None => "<empty>".to_owned(),
        Some(b'{') => String::from_utf8_lossy(&head).into_owned(),
        Some(_) => head.iter().map(|byte| format!("{byte:02x}")).collect(),
    };
    bad_request(&format!(
        "the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; json parse error: \
         {why} ({shown}{more})"
    ))
}

impl Store {
    /// Creates an object.
    pub(super) fn create(&mut self, call: &Call<'_>) -> Answer {
        match (call.resource().is_pod(), call.target.subresource.as_str()) {
            (true, "binding") => return self.bind(call),
            (true, "eviction") => return self.evict(call),
            (_, "") if call.target.name.is_empty() || call.resource().is_custom() => {}
            _ => return Err(say::verb_not_supported(call.resource(), "create")),
        }
        self.create_as(call)
    }

    /// The same, whatever the path names: some kinds are created by a PUT.
    pub(super) fn create_as(&mut self, call: &Call<'_>) -> Answer {
        let resource = Arc::clone(&call.target.resource);
        let (mut object, said) = decode(call)?;
        self.check_new(call, &mut object)?;
        self.check_definition_stays(&resource, meta(&object, "name"))?;
        admission::admit_create(self, call, &mut object)?;
        let generated = self.name_it(&mut object);
        let mut warnings = said;
        warnings.extend(self.prepare_new(call, &mut object)?);
        self.validate_new(call, &object).map_err(|refused| refused.with_warnings(warnings.clone()))?;
        if resource.is_custom() {
            warnings.extend(admission::finalizer_warnings(&object));
        }
        warnings.extend(admission::rules::at_admission(self, call, &object)?);
        let charges = admission::quota::admit(self, call, &object)?;
        let key =
            Key::new(super::events::storage(&resource.qualified()), &call.target.namespace, meta(&object, "name"));
        if let Some(holder) = self.objects.get(&key) {
            let being_deleted = is_deleting(holder) && !generated;
            return Err(say::already_exists(&resource, &key.name, being_deleted));
        }
        check_size(&object)?;
        self.as_stored(&resource, &mut object);
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
            let custom = call.resource().is_custom();
            return Err(if custom { say::no_such_path() } else { say::method_not_allowed() });
        }
        if call.verb == "create" && !meta(object, "resourceVersion").is_empty() {
            return Err(status(500, "", "resourceVersion should not be set on objects to be created", None));
        }
        for field in ["resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"] {
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
        } else if resource.is_pod() {
            pods::default_new(object);
        } else if resource.is_namespace() {
            prepare_namespace(object);
        } else if resource.is_crd() {
            object["status"] = Value::Null;
            self.establish(object);
        } else if resource.is_quota() {
            object["status"] = json!({});
        } else if resource.is_node() {
            default_node(object);
        } else if event_rules::is_event(call) {
            event_rules::complete(object);
        }
        Ok(warnings)
    }

    fn validate_new(&self, call: &Call<'_>, object: &Value) -> Result<(), Refused> {
        let resource = call.resource();
        let mut errors = admission::metadata_errors(resource, object);
        if let Some(schema) = &resource.schema {
            errors.extend(schema.errors(object, None));
            errors.extend(super::scale::errors(call, object));
            errors.extend(admission::rules_broken(schema, object, None, &errors));
        } else if resource.is_pod() {
            errors.extend(pod_errors::errors(object));
        } else if resource.is_crd() {
            errors.extend(crd_errors::errors(object));
        } else if event_rules::is_event(call) {
            errors.extend(event_rules::errors(call, object));
        }
        errors.extend(bounds::errors(resource, object));
        if errors.is_empty() { Ok(()) } else { Err(say::invalid(resource, meta(object, "name"), &errors)) }
    }

    fn after_create(&mut self, key: &Key) {
        if key.resource == "namespaces" && self.settings.service_accounts {
            let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
            self.post(&format!("/api/v1/namespaces/{}/serviceaccounts", key.name), account);
        }
        if key.resource == crd::DEFINITIONS {
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

/// What the server fills in of a node.
pub(super) fn default_node(node: &mut Value) {
    let spec = child_mut(node, "spec");
    if let (Some(range), None) = (spec.get("podCIDR").cloned(), spec.get("podCIDRs")) {
        spec.insert("podCIDRs".to_owned(), json!([range]));
    }
    let status = child_mut(node, "status");
    status.entry("daemonEndpoints").or_insert(json!({"kubeletEndpoint": {"Port": 0}}));
    let info = super::objects::as_map(status.entry("nodeInfo").or_insert(json!({})));
    for field in [
        "machineID",
        "systemUUID",
        "bootID",
        "kernelVersion",
        "osImage",
        "containerRuntimeVersion",
        "kubeletVersion",
        "kubeProxyVersion",
        "operatingSystem",
        "architecture",
    ] {
        info.entry(field).or_insert(json!(""));
    }
    if let (Some(capacity), None) = (status.get("capacity").cloned(), status.get("allocatable")) {
        status.insert("allocatable".to_owned(), capacity);
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
