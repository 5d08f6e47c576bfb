//! What a cluster gets: the image and the manifests. Nothing here needs a cluster or a container engine.

mod dockerfile;
mod manifests;
mod rbac;

use serde_json::Value;
use std::path::Path;

/// A file of the repository.
fn text(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The documents of a YAML text.
fn documents(text: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(text).expect("YAML")
}

/// What `kubectl kustomize` makes of a directory, as long as its kustomization only names resources.
fn rendered(directory: &str) -> Vec<Value> {
    let kustomization = &documents(&text(&format!("{directory}/kustomization.yaml")))[0];
    let known = ["apiVersion", "kind", "resources"];
    let keys = kustomization.as_object().expect("a mapping").keys();
    keys.for_each(|key| assert!(known.contains(&key.as_str()), "{key} is not understood by this test"));
    let resources = kustomization["resources"].as_array().expect("a list").iter();
    let names = resources.map(|name| format!("{directory}/{}", name.as_str().expect("a path")));
    names.flat_map(|name| if name.ends_with(".yaml") { documents(&text(&name)) } else { rendered(&name) }).collect()
}

/// The one object of this kind.
fn one(kind: &str) -> Value {
    let mut all: Vec<Value> = rendered("deploy").into_iter().filter(|object| object["kind"] == kind).collect();
    assert_eq!(all.len(), 1, "{kind}");
    all.remove(0)
}
