//! Admission of creates that looks at other objects: the namespace, the service account, the priority class.

use super::super::objects::{child_mut, is_deleting, text};
use super::super::path::Call;
use super::super::reply::quoted;
use super::super::status_error::{self as say, Refused};
use super::super::strategic;
use super::super::{Store, Value};
use super::rules::shown_name;
use serde_json::json;

/// Refuses what the namespace or a missing neighbour forbids, and fills in what they provide.
pub(in super::super) fn admit_create(store: &Store, call: &Call<'_>, object: &mut Value) -> Result<(), Refused> {
    namespace(store, call, object)?;
    if call.resource().is_pod() {
        if store.settings().admission_adds.is_object() {
            // What a setting adds names its entries.
            strategic::merge(object, &store.settings().admission_adds).ok();
        }
        service_account(store, call, object)?;
        priority(store, call, object)?;
    }
    Ok(())
}

/// 404 for a missing namespace, 403 with a cause of its own for a terminating one.
fn namespace(store: &Store, call: &Call<'_>, object: &Value) -> Result<(), Refused> {
    let name = &call.target.namespace;
    if name.is_empty() {
        return Ok(());
    }
    let Some(found) = store.get("namespaces", "", name) else {
        let namespaces = store.resource("namespaces").ok_or_else(say::no_such_path)?;
        return Err(say::not_found(&namespaces, name));
    };
    if !is_deleting(found) {
        return Ok(());
    }
    let why = format!("unable to create new content in namespace {name} because it is being terminated");
    let cause = json!({
        "reason": "NamespaceTerminating", "message": format!("namespace {name} is being terminated"),
        "field": "metadata.namespace",
    });
    Err(say::forbidden(call.resource(), shown_name(call, object), &why, vec![cause]))
}

fn service_account(store: &Store, call: &Call<'_>, object: &mut Value) -> Result<(), Refused> {
    let namespace = &call.target.namespace;
    let spec = child_mut(object, "spec");
    let named = ["serviceAccountName", "serviceAccount"].iter().find_map(|field| spec.get(*field)?.as_str());
    let account = named.filter(|name| !name.is_empty()).unwrap_or("default").to_owned();
    spec.insert("serviceAccountName".to_owned(), Value::from(account.clone()));
    spec.insert("serviceAccount".to_owned(), Value::from(account.clone()));
    if store.get("serviceaccounts", namespace, &account).is_some() {
        return Ok(());
    }
    let shown = quoted(&account);
    let why = format!("error looking up service account {namespace}/{account}: serviceaccount {shown} not found");
    Err(say::forbidden(call.resource(), shown_name(call, object), &why, Vec::new()))
}

fn priority(store: &Store, call: &Call<'_>, object: &mut Value) -> Result<(), Refused> {
    let class = text(object, "/spec/priorityClassName").to_owned();
    let found = store.get("priorityclasses.scheduling.k8s.io", "", &class);
    if !class.is_empty() && found.is_none() {
        let why = format!("no PriorityClass with name {class} was found");
        return Err(say::forbidden(call.resource(), shown_name(call, object), &why, Vec::new()));
    }
    let default = |field: &str, other: Value| found.and_then(|class| class.get(field)).cloned().unwrap_or(other);
    let (value, preemption) = (default("value", json!(0)), default("preemptionPolicy", json!("PreemptLowerPriority")));
    let spec = child_mut(object, "spec");
    spec.insert("priority".to_owned(), value);
    spec.insert("preemptionPolicy".to_owned(), preemption);
    Ok(())
}
