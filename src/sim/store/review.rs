//! May this user do that? Asked by those who want to know before they try.

use super::Store;
use super::status_error::Refused;
use crate::core::wire::{Method, Request};

/// What is to be done to what.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// get, list, watch, create, update, patch, delete, deletecollection.
    pub verb: String,
    /// API group, empty for core.
    pub group: String,
    /// The plural.
    pub resource: String,
    /// Empty for the object itself.
    pub subresource: String,
    /// Empty for cluster-wide objects and for all namespaces.
    pub namespace: String,
    /// Empty for collections.
    pub name: String,
}

impl Store {
    /// Why authorization refuses it; none where it does not. Nothing is counted as asked.
    pub fn refuses(&self, user: &str, asked: &Attributes) -> Option<String> {
        let qualified = match asked.group.as_str() {
            "" => asked.resource.clone(),
            group => format!("{}.{group}", asked.resource),
        };
        let resource = self.resource(&qualified)?;
        let (method, one) = match asked.verb.as_str() {
            "create" => (Method::Post, !asked.subresource.is_empty()),
            "update" => (Method::Put, true),
            "patch" => (Method::Patch, true),
            "delete" => (Method::Delete, true),
            "deletecollection" => (Method::Delete, false),
            "list" | "watch" => (Method::Get, false),
            _ => (Method::Get, true),
        };
        // Namespaces are their own place.
        let place = if resource.namespaced { asked.namespace.as_str() } else { "" };
        let name = if asked.name.is_empty() { "any" } else { &asked.name };
        let mut path = resource.path(if one && resource.namespaced && place.is_empty() { "any" } else { place });
        if one {
            path = format!("{path}/{name}");
        }
        if !asked.subresource.is_empty() {
            path = format!("{path}/{}", asked.subresource);
        }
        let mut request = Request::new(method, path);
        if asked.verb == "watch" {
            request = request.with_query("watch", "true");
        }
        // A rule that is good for so many requests does not lose one by this.
        match self.clone().admit(user, &request) {
            Ok(_) => None,
            Err(Refused(reply)) => Some(super::objects::text(reply.value(), "/message").to_owned()),
        }
    }
}
