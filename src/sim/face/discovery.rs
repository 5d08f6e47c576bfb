//! Which groups, versions and resources there are: one by one, and aggregated as kubectl asks for it.

use super::Page;
use crate::sim::store::{Resource, StoreReply, by_preference};
use crate::sim::world::World;
use serde_json::{Value, json};

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const VERBS: [&str; 8] = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
/// In the order in which the API server lists those of custom resources.
const CUSTOM_VERBS: [&str; 8] = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
const CHANGE: [&str; 3] = ["get", "patch", "update"];

/// What is served that no object is stored of.
const QUESTIONS: [(&str, &str, &str); 3] = [
    ("authentication.k8s.io", "selfsubjectreviews", "SelfSubjectReview"),
    ("authorization.k8s.io", "selfsubjectaccessreviews", "SelfSubjectAccessReview"),
    ("authorization.k8s.io", "selfsubjectrulesreviews", "SelfSubjectRulesReview"),
];

/// One resource as discovery tells of it.
struct Entry {
    custom: bool,
    group: String,
    version: String,
    name: String,
    singular: String,
    kind: String,
    namespaced: bool,
    verbs: Vec<&'static str>,
    short: Vec<String>,
    categories: Vec<String>,
    below: Vec<Below>,
}

/// A subresource.
struct Below {
    name: &'static str,
    /// Group, version and kind; group and version are empty where they are those of the resource.
    kind: (&'static str, &'static str, String),
    verbs: &'static [&'static str],
}

impl Entry {
    /// A kind that is answered with; those of custom resources always say where they belong.
    fn response(&self, group: &str, version: &str, kind: &str) -> Value {
        let own = self.custom && version.is_empty();
        let (group, version) = if own { (self.group.as_str(), self.version.as_str()) } else { (group, version) };
        json!({"group": group, "version": version, "kind": kind})
    }
}

/// The page at this path; none where nothing is told there.
pub(super) fn page(world: &World, parts: &[&str], accept: &str) -> Option<Page> {
    let entries = entries(world);
    let aggregated = wants_aggregated(accept);
    let body = match parts {
        ["api" | "apis"] if aggregated => {
            let list = groups(&entries, parts == ["api"]).into_iter().map(|group| discovered(&entries, &group));
            let body = json!({
                "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {},
                "items": list.collect::<Vec<_>>(),
            });
            return Some(Page::document(AGGREGATED, &body));
        }
        ["api"] => json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}),
        ["apis"] => {
            let list: Vec<Value> = groups(&entries, false).iter().map(|group| described(&entries, group)).collect();
            json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": list})
        }
        ["apis", group] => {
            let mut found =
                groups(&entries, false).iter().find(|one| one == group).map(|_| described(&entries, group))?;
            found["kind"] = json!("APIGroup");
            found["apiVersion"] = json!("v1");
            found
        }
        ["api", version] => listed(&entries, "", version)?,
        ["apis", group, version] => listed(&entries, group, version)?,
        _ => return None,
    };
    Some(StoreReply::json(200, body).into())
}

/// True if the first form that the client can take is the aggregated one.
fn wants_aggregated(accept: &str) -> bool {
    let first = accept.split(',').next().unwrap_or("");
    first.contains("as=APIGroupDiscoveryList") && first.contains("g=apidiscovery.k8s.io")
}

fn entries(world: &World) -> Vec<Entry> {
    let mut entries: Vec<Entry> = world.store.resources().map(entry).collect();
    entries.push(Entry {
        short: vec!["cs".to_owned()],
        ..question("", "v1", "componentstatuses", "ComponentStatus", vec!["get", "list"])
    });
    for (group, name, kind) in QUESTIONS {
        entries.push(question(group, "v1", name, kind, vec!["create"]));
    }
    entries.sort_by(|one, other| (&one.group, &one.name).cmp(&(&other.group, &other.name)));
    entries
}

fn question(group: &str, version: &str, name: &str, kind: &str, verbs: Vec<&'static str>) -> Entry {
    Entry {
        custom: false,
        group: group.to_owned(),
        version: version.to_owned(),
        name: name.to_owned(),
        singular: kind.to_lowercase(),
        kind: kind.to_owned(),
        namespaced: false,
        verbs,
        short: Vec::new(),
        categories: Vec::new(),
        below: Vec::new(),
    }
}

fn entry(kind: &Resource) -> Entry {
    let verbs: &[&str] = if kind.is_custom() { &CUSTOM_VERBS } else { &VERBS };
    // A collection of namespaces cannot be deleted.
    let verbs = verbs.iter().copied().filter(|verb| !kind.is_namespace() || *verb != "deletecollection").collect();
    Entry {
        custom: kind.is_custom(),
        group: kind.group.clone(),
        version: kind.version.clone(),
        name: kind.plural.clone(),
        singular: kind.singular.clone(),
        kind: kind.kind.clone(),
        namespaced: kind.namespaced,
        verbs,
        short: kind.short_names.clone(),
        categories: kind.categories.clone(),
        below: below(kind),
    }
}

fn below(kind: &Resource) -> Vec<Below> {
    let own =
        |name: &'static str, verbs: &'static [&'static str]| Below { name, kind: ("", "", kind.kind.clone()), verbs };
    let mut found = Vec::new();
    if kind.is_pod() {
        found.push(Below { name: "binding", kind: ("", "", "Binding".to_owned()), verbs: &["create"] });
        found.push(Below { name: "eviction", kind: ("policy", "v1", "Eviction".to_owned()), verbs: &["create"] });
        found.push(own("log", &["get"]));
    }
    if kind.is_namespace() {
        found.push(own("finalize", &["update"]));
    }
    if kind.status {
        found.push(own("status", &CHANGE));
    }
    if kind.scale.is_some() {
        found.push(Below { name: "scale", kind: ("autoscaling", "v1", "Scale".to_owned()), verbs: &CHANGE });
    }
    found
}

/// The names of the groups: the core one, or all others.
fn groups(entries: &[Entry], core: bool) -> Vec<String> {
    let mut names: Vec<String> =
        entries.iter().map(|entry| entry.group.clone()).filter(|group| group.is_empty() == core).collect();
    names.dedup();
    names
}

fn versions<'a>(entries: &'a [Entry], group: &str) -> Vec<&'a str> {
    let mut found: Vec<&str> =
        entries.iter().filter(|entry| entry.group == group).map(|entry| entry.version.as_str()).collect();
    found.sort_unstable_by(|one, other| by_preference(one, other));
    found.dedup();
    found
}

fn described(entries: &[Entry], group: &str) -> Value {
    let all: Vec<Value> = versions(entries, group)
        .iter()
        .map(|version| json!({"groupVersion": format!("{group}/{version}"), "version": version}))
        .collect();
    json!({"name": group, "versions": all, "preferredVersion": all.first()})
}

fn discovered(entries: &[Entry], group: &str) -> Value {
    let resources = |version: &str| -> Vec<Value> {
        let here = entries.iter().filter(|entry| entry.group == group && entry.version == version);
        here.map(|entry| {
            let mut resource = json!({
                "resource": entry.name, "responseKind": entry.response("", "", &entry.kind),
                "scope": if entry.namespaced { "Namespaced" } else { "Cluster" }, "singularResource": entry.singular,
                "verbs": entry.verbs,
            });
            names(&mut resource, entry);
            if !entry.below.is_empty() {
                let shown = entry.below.iter().map(|below| {
                    let (group, version, kind) = &below.kind;
                    let kind = entry.response(group, version, kind);
                    json!({"subresource": below.name, "responseKind": kind, "verbs": below.verbs})
                });
                resource["subresources"] = shown.collect();
            }
            resource
        })
        .collect()
    };
    let all: Vec<Value> = versions(entries, group)
        .iter()
        .map(|version| json!({"version": version, "resources": resources(version), "freshness": "Current"}))
        .collect();
    let metadata = if group.is_empty() { json!({}) } else { json!({"name": group}) };
    json!({"metadata": metadata, "versions": all})
}

fn names(resource: &mut Value, entry: &Entry) {
    if !entry.short.is_empty() {
        resource["shortNames"] = json!(entry.short);
    }
    if !entry.categories.is_empty() {
        resource["categories"] = json!(entry.categories);
    }
}

fn listed(entries: &[Entry], group: &str, version: &str) -> Option<Value> {
    let mut list = Vec::new();
    for entry in entries.iter().filter(|entry| entry.group == group && entry.version == version) {
        let mut resource = json!({
            "name": entry.name, "singularName": entry.singular, "namespaced": entry.namespaced, "kind": entry.kind,
            "verbs": entry.verbs,
        });
        names(&mut resource, entry);
        list.push(resource);
        for below in &entry.below {
            let (group, version, kind) = &below.kind;
            let mut resource = json!({
                "name": format!("{}/{}", entry.name, below.name), "singularName": "", "namespaced": entry.namespaced,
                "kind": kind, "verbs": below.verbs,
            });
            if !version.is_empty() {
                resource["group"] = json!(group);
                resource["version"] = json!(version);
            }
            list.push(resource);
        }
    }
    let name = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    let body = json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": name, "resources": list});
    body["resources"].as_array().is_some_and(|all| !all.is_empty()).then_some(body)
}
