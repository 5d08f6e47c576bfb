//! YAML manifests put straight into a cluster: definitions, nodes, whatever a scenario starts with.

use super::objects::{meta, text};
use super::reply::StoreReply;
use super::resource::Resource;
use super::{SYSTEM, Store, Value};
use crate::core::wire::{JSON, Method, Request};

impl Store {
    /// Creates every object of a YAML text, in its order; definitions that exist are replaced. An object without a
    /// namespace goes to `default`. The first thing that cannot be read or is refused ends it.
    pub fn load(&mut self, yaml: &str) -> Result<(), String> {
        let documents: Vec<Value> = serde_saphyr::from_multiple(yaml).map_err(|error| error.to_string())?;
        for document in documents.iter().filter(|document| !document.is_null()) {
            let reply = self.load_object(document)?;
            if !reply.is_success() {
                return Err(text(reply.value(), "/message").to_owned());
            }
        }
        Ok(())
    }

    fn load_object(&mut self, object: &Value) -> Result<StoreReply, String> {
        let (version, kind) = (text(object, "/apiVersion"), text(object, "/kind"));
        let found = self.resources().find(|known| known.kind == kind && known.api_version() == version);
        let Some(resource) = found.cloned() else {
            return Err(format!("no kind {kind} in version {version} is served"));
        };
        if resource.is_crd() {
            return Ok(self.install_crd(object));
        }
        let namespace = match (resource.namespaced, meta(object, "namespace")) {
            (true, "") => "default",
            (true, namespace) => namespace,
            (false, _) => "",
        };
        let request = Request::new(Method::Post, resource.path(namespace)).with_body(JSON, object.clone());
        Ok(self.handle_as(SYSTEM, &request))
    }
}

impl Resource {
    /// The path of a collection; an empty namespace stands for all of them, or for none.
    pub fn path(&self, namespace: &str) -> String {
        let root = if self.group.is_empty() { "/api" } else { "/apis" };
        let place = if namespace.is_empty() { String::new() } else { format!("/namespaces/{namespace}") };
        format!("{root}/{}{place}/{}", self.api_version(), self.plural)
    }
}
