//! `-f`: manifests read, checked against what is served, and applied through the API as a user would.

use super::super::field::{Field, Origin};
use super::super::{Failure, note, source};
use crate::core::meta;
use crate::core::wire::{JSON, MERGE_PATCH, Method, Request};
use crate::sim::store::{ADMIN, Resource, StoreReply};
use crate::sim::world::World;
use serde_json::Value;
use std::collections::BTreeMap;

/// What the API server sets. A manifest may carry it (`kubectl get -o yaml`); a create must not.
const SET_BY_SERVER: [&str; 8] = [
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "managedFields",
    "selfLink",
];

/// One object of a file.
#[derive(Clone, Debug)]
pub(super) struct Manifest {
    origin: Origin,
    /// Where in the document: empty for the whole of it.
    path: String,
    value: Value,
    api: String,
    kind: String,
}

/// An object that was applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Applied {
    /// `pods`, `cocoonsets.cocoonset.cocoonstack.io`.
    pub resource: String,
    /// `pod`, `cocoonset`.
    pub kind: String,
    /// Empty for cluster-wide objects.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// It, and not a namesake.
    pub uid: String,
}

/// Reads every manifest of these files, lists expanded. Definitions and namespaces come first, pods (which others may
/// own) last, the rest as it stands.
pub(super) fn read(files: &[String]) -> Result<Vec<Manifest>, Failure> {
    let mut manifests = Vec::new();
    for document in source::read_all(files)? {
        // `---` before the first and after the last document leaves nothing between.
        if !document.value.is_null() {
            expand(&document.value, String::new(), &document.origin, None, &mut manifests)?;
        }
    }
    doubles(&manifests);
    let rank = |manifest: &Manifest| match manifest.kind.as_str() {
        "CustomResourceDefinition" => 0,
        "Namespace" => 1,
        "Pod" => 3,
        _ => 2,
    };
    manifests.sort_by_key(rank);
    Ok(manifests)
}

/// Says which objects are given more than once, and where: mostly it is one copy too many.
fn doubles(manifests: &[Manifest]) {
    let mut places: BTreeMap<(&str, String, String), Vec<String>> = BTreeMap::new();
    for manifest in manifests {
        let namespace = match meta::text(&manifest.value, "namespace") {
            none if none.is_empty() => "default".to_owned(),
            namespace => namespace,
        };
        let key = (manifest.kind.as_str(), namespace, meta::text(&manifest.value, "name"));
        places.entry(key).or_default().push(manifest.at().place());
    }
    for ((kind, namespace, name), places) in places.iter().filter(|(_, places)| places.len() > 1) {
        let (times, places) = (places.len(), places.join("; "));
        note(&format!(
            "{kind} {name} (namespace {namespace}) is given {times} times: {places}; each is merged into the one before"
        ));
    }
}

/// One object, or the items of a list; items of a typed list may leave out what they are.
fn expand(
    value: &Value,
    path: String,
    origin: &Origin,
    of: Option<(&str, &str)>,
    found: &mut Vec<Manifest>,
) -> Result<(), Failure> {
    let at = Field::root(value, path.clone(), origin);
    at.entries("fields, with apiVersion and kind")?;
    let kind = match (at.get("kind"), of) {
        (None, Some((_, kind))) => kind,
        _ => at.need("kind", "a kind such as CocoonSet")?.text("a kind")?,
    };
    let api = match (at.get("apiVersion"), of) {
        (None, Some((api, _))) => api,
        _ => at.need("apiVersion", "an apiVersion such as v1")?.text("an apiVersion")?,
    };
    if let Some(item_kind) = kind.strip_suffix("List").filter(|_| value.get("items").is_some()) {
        let typed = (!item_kind.is_empty()).then_some((api, item_kind));
        let items = at.get("items").map(|items| items.items("objects")).transpose()?.unwrap_or_default();
        for (index, item) in items.iter().enumerate() {
            let path = if path.is_empty() { format!("items[{index}]") } else { format!("{path}.items[{index}]") };
            expand(item.value(), path, origin, typed, found)?;
        }
        return Ok(());
    }
    let metadata = at.need("metadata", "a mapping with a name")?;
    metadata.entries("name and more")?;
    metadata.need("name", "the name of the object")?.text("the name of the object")?;
    if let Some(namespace) = metadata.get("namespace") {
        namespace.text("a namespace")?;
    }
    let (api, kind) = (api.to_owned(), kind.to_owned());
    found.push(Manifest { origin: origin.clone(), path, value: value.clone(), api, kind });
    Ok(())
}

/// Creates each object, or updates it where it exists.
pub(super) fn apply(world: &mut World, manifests: &[Manifest]) -> Result<Vec<Applied>, Failure> {
    let mut applied: Vec<Applied> = Vec::new();
    // What other objects of the same dump call an owner, and what it is called here.
    let mut uids = BTreeMap::new();
    for manifest in manifests {
        let object = manifest.apply(world, &uids)?;
        uids.insert(meta::text(&manifest.value, "uid"), object.uid.clone());
        if !applied.contains(&object) {
            applied.push(object);
        }
    }
    Ok(applied)
}

impl Manifest {
    fn at(&self) -> Field<'_> {
        Field::root(&self.value, self.path.clone(), &self.origin)
    }

    fn apply(&self, world: &mut World, uids: &BTreeMap<String, String>) -> Result<Applied, Failure> {
        let resource = self.resource(world)?;
        let name = meta::text(&self.value, "name");
        let namespace = match (resource.namespaced, meta::text(&self.value, "namespace")) {
            (false, _) => String::new(),
            (true, namespace) if namespace.is_empty() => "default".to_owned(),
            (true, namespace) => namespace,
        };
        if resource.namespaced && world.store.get("namespaces", "", &namespace).is_none() {
            let reply = world.store.add_namespace(&namespace);
            self.taken(&reply, &format!("namespace {namespace}"))?;
            note(&format!("namespace {namespace} did not exist and was created ({})", self.origin));
        }
        let shown = if namespace.is_empty() {
            format!("{} {name}", self.kind)
        } else {
            format!("{} {namespace}/{name}", self.kind)
        };
        let collection = collection(&resource, &namespace);
        let known = world.store.get(&resource.qualified(), &namespace, &name).is_some();
        let body = as_sent(&self.value, &namespace, uids);
        let request = if known {
            Request::new(Method::Patch, format!("{collection}/{name}")).with_body(MERGE_PATCH, body)
        } else {
            Request::new(Method::Post, collection).with_body(JSON, body)
        };
        // As kubectl asks for it: a misspelt field is refused and not dropped.
        let request = request.with_query("fieldValidation", "Strict");
        let reply = world.api_full(ADMIN, &request);
        let reply = reply.map_err(|_| Failure::Environment(format!("{}: {shown}: no answer", self.origin)))?;
        self.taken(&reply, &shown)?;
        for warning in &reply.warnings {
            note(&format!("{}: {shown}: {warning}", self.origin));
        }
        let uid = meta::text(reply.value(), "uid");
        Ok(Applied { resource: resource.qualified(), kind: self.kind.to_lowercase(), namespace, name, uid })
    }

    /// Which resource it is one of.
    fn resource(&self, world: &World) -> Result<Resource, Failure> {
        let kinds: Vec<&Resource> = world.store.resources().filter(|known| known.kind == self.kind).collect();
        if let Some(found) = kinds.iter().find(|known| known.api_version() == self.api) {
            return Ok((*found).clone());
        }
        if !kinds.is_empty() {
            let expected: Vec<String> = kinds.iter().map(|known| known.api_version()).collect();
            let (expected, kind, api) = (expected.join(" or "), &self.kind, &self.api);
            let words = format!("expected {expected} for a {kind}, found {api}");
            return Err(Field::root(&self.value, self.inner("apiVersion"), &self.origin).fault(words));
        }
        let mut all: Vec<&str> = world.store.resources().map(|known| known.kind.as_str()).collect();
        all.sort_unstable();
        all.dedup();
        let words = format!(
            "the sandbox does not serve {} ({}); expected one of {}, or a CustomResourceDefinition for it",
            self.kind,
            self.api,
            all.join(", ")
        );
        Err(Field::root(&self.value, self.inner("kind"), &self.origin).fault(words))
    }

    fn inner(&self, field: &str) -> String {
        if self.path.is_empty() { field.to_owned() } else { format!("{}.{field}", self.path) }
    }

    /// Nothing where the API server took it, else its refusal in its own words.
    fn taken(&self, reply: &StoreReply, shown: &str) -> Result<(), Failure> {
        if reply.is_success() {
            return Ok(());
        }
        let text = |key: &str| reply.value().get(key).and_then(Value::as_str).unwrap_or_default();
        let bytes = reply.bytes();
        let message = match text("message") {
            "" => String::from_utf8_lossy(&bytes).into_owned(),
            message => message.to_owned(),
        };
        let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
        let answer = format!("{} {}", reply.status, text("reason"));
        Err(self.at().fault(format!("the API server refuses {shown} ({}): {message}", answer.trim_end())))
    }
}

/// The path under which objects of this resource are made.
fn collection(resource: &Resource, namespace: &str) -> String {
    let root = if resource.group.is_empty() { "/api" } else { "/apis" };
    let scope = if namespace.is_empty() { String::new() } else { format!("namespaces/{namespace}/") };
    format!("{root}/{}/{scope}{}", resource.api_version(), resource.plural)
}

/// The manifest without what only the server says, owned by what its owners have become here.
fn as_sent(value: &Value, namespace: &str, uids: &BTreeMap<String, String>) -> Value {
    let mut object = value.as_object().cloned().unwrap_or_default();
    object.remove("status");
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|key, _| !SET_BY_SERVER.contains(&key.as_str()));
        if !namespace.is_empty() {
            metadata.insert("namespace".to_owned(), Value::from(namespace));
        }
        let owners = metadata.get_mut("ownerReferences").and_then(Value::as_array_mut);
        for uid in owners.into_iter().flatten().filter_map(|owner| owner.get_mut("uid")) {
            if let Some(here) = uid.as_str().and_then(|uid| uids.get(uid)) {
                *uid = Value::from(here.as_str());
            }
        }
    }
    Value::Object(object)
}
