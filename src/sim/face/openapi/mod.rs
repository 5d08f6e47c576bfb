//! Schemas as clients ask for them: OpenAPI v3 by group and version, which kubectl reads, and the frame of a v2 document,
//! which it only fetches.

mod builtin;
mod v3;

use super::Page;
use super::page::mark;
use crate::sim::store::{Resource, StoreReply};
use crate::sim::world::World;
use serde_json::{Value, json};

const V2_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// The page under `/openapi`; none where there is none.
pub(super) fn page(world: &World, parts: &[&str], accept: &str) -> Option<Page> {
    let found = match parts {
        ["v2"] if accept.contains("protobuf") => Page::marked(V2_PROTOBUF, v2_protobuf()),
        ["v2"] => Page::document(
            "application/json",
            &json!({"swagger": "2.0", "info": {"title": "Kubernetes", "version": "v1"}, "paths": {}}),
        ),
        ["v3"] => return Some(StoreReply::json(200, index(world)).into()),
        ["v3", "api", version] => Page::document("application/json", &v3::document(world, "", version)?),
        ["v3", "apis", group, version] => Page::document("application/json", &v3::document(world, group, version)?),
        _ => return None,
    };
    Some(found)
}

/// Where the document of each group and version is, with a mark that changes when it does.
fn index(world: &World) -> Value {
    let mut paths = serde_json::Map::new();
    for kind in world.store.resources() {
        let root = if kind.group.is_empty() { "api" } else { "apis" };
        let name = format!("{root}/{}", kind.api_version());
        let text: String = here(world, &kind.group, &kind.version).map(signature).collect();
        let url = format!("/openapi/v3/{name}?hash={}", mark(text.as_bytes()));
        paths.insert(name, json!({"serverRelativeURL": url}));
    }
    json!({"paths": paths})
}

/// What a document depends on.
fn signature(kind: &Resource) -> String {
    let schema = kind.schema.as_ref().map(|schema| schema.raw().to_string()).unwrap_or_default();
    format!("{} {} {} {schema}\n", env!("CARGO_PKG_VERSION"), kind.plural, kind.scale.is_some())
}

fn here<'a>(world: &'a World, group: &'a str, version: &'a str) -> impl Iterator<Item = &'a Resource> {
    world.store.resources().filter(move |kind| kind.group == group && kind.version == version)
}

/// The document above as a `Document` message: the version, and title and version of what it describes.
fn v2_protobuf() -> Vec<u8> {
    let text = |number: u8, text: &str| {
        let length = u8::try_from(text.len().min(127)).unwrap_or(0);
        let mut field = vec![number << 3 | 2, length];
        field.extend(text.bytes().take(usize::from(length)));
        field
    };
    let info = [text(1, "Kubernetes"), text(2, "v1")].concat();
    let length = u8::try_from(info.len().min(127)).unwrap_or(0);
    [text(1, "2.0"), vec![2 << 3 | 2, length], info].concat()
}
