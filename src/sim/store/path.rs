//! From a request to what it is about: resource, object, subresource, verb.

use super::resource::Resource;
use super::status_error::{Answer, bad_request, no_such_path, status};
use super::{Key, Store, admission, options, status_error};
use crate::core::wire::{Method, Request, Verb};
use serde_json::Value;
use std::sync::Arc;

/// The largest request body that is read.
const BODY_LIMIT: usize = 3 * 1024 * 1024;

/// What a path names.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub resource: Arc<Resource>,
    /// Empty for cluster-wide objects and for collections over all namespaces.
    pub namespace: String,
    /// Empty for collections.
    pub name: String,
    /// Empty for the object itself.
    pub subresource: String,
}

/// What a request is about, for those who count and tell.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct About {
    /// What it wants.
    pub verb: Verb,
    /// `pods`, `pods/status`, `cocoonsets`: the plural, with the subresource.
    pub kind: String,
    /// Empty for cluster-wide objects.
    pub namespace: String,
    /// Of the object; empty for collections.
    pub name: String,
}

/// One request on its way through the store.
pub(super) struct Call<'a> {
    pub user: &'a str,
    pub request: &'a Request,
    pub target: Target,
    /// As authorization knows it: `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`.
    pub verb: &'static str,
}

impl Call<'_> {
    /// A query parameter; an empty one counts as absent.
    pub fn query(&self, key: &str) -> Option<&str> {
        let mut all = self.request.query.iter();
        all.find(|(name, value)| name == key && !value.is_empty()).map(|(_, value)| value.as_str())
    }
    /// The resource of the target.
    pub fn resource(&self) -> &Resource {
        &self.target.resource
    }
    /// The key of the object that the path names.
    pub fn key(&self) -> Key {
        Key::new(super::events::storage(&self.target.resource.qualified()), &self.target.namespace, &self.target.name)
    }
    /// `pods`, `pods/status`.
    pub fn resource_and_subresource(&self) -> String {
        let plural = &self.target.resource.plural;
        if self.target.subresource.is_empty() {
            plural.clone()
        } else {
            format!("{plural}/{}", self.target.subresource)
        }
    }
}

/// The verb as authorization knows it.
fn verb(request: &Request, named: bool) -> &'static str {
    let watch = Store::asks_to_watch(request);
    match (request.method, named) {
        (Method::Get | Method::Head, false) if watch => "watch",
        (Method::Get | Method::Head, true) => "get",
        (Method::Get | Method::Head, false) => "list",
        (Method::Post, _) => "create",
        (Method::Put, _) => "update",
        (Method::Patch, _) => "patch",
        (Method::Delete, true) => "delete",
        (Method::Delete, false) => "deletecollection",
    }
}

impl Store {
    /// What a request is about; none where nothing is served. A created object's name is read off the body.
    pub fn about(&self, request: &Request) -> Option<About> {
        let target = self.resolve(&request.path)?;
        let verb = match verb(request, !target.name.is_empty()) {
            "get" => Verb::Get,
            "list" => Verb::List,
            "watch" => Verb::Watch,
            "create" => Verb::Create,
            "update" => Verb::Update,
            "patch" => Verb::Patch,
            _ => Verb::Delete,
        };
        let call = Call { user: "", request, target, verb: "" };
        let own =
            if call.target.name.is_empty() { super::objects::meta(&request.body, "name") } else { &call.target.name };
        Some(About {
            verb,
            kind: call.resource_and_subresource(),
            namespace: call.target.namespace.clone(),
            name: own.to_owned(),
        })
    }

    /// True if this request asks for a stream: `open_watch` answers it, `handle` does not. One object cannot be watched
    /// by its name: that is a plain GET.
    pub fn is_watch(&self, request: &Request) -> bool {
        Self::asks_to_watch(request) && self.resolve(&request.path).is_some_and(|target| target.name.is_empty())
    }

    /// The answer to a request whose method the server has never heard of.
    pub fn unknown_method(&self, path: &str) -> super::StoreReply {
        let refused = match self.resolve(path) {
            Some(target) => status_error::verb_not_supported(&target.resource, ""),
            None => self.nowhere(path),
        };
        *refused.0
    }

    /// The answer to whatever is sent to a path at which nothing is served; none where something is.
    pub fn unserved(&self, path: &str) -> Option<super::StoreReply> {
        const KNOWN: [&str; 6] = ["", "status", "scale", "binding", "eviction", "finalize"];
        let refused = match self.resolve(path) {
            None => self.nowhere(path),
            Some(target) if KNOWN.contains(&target.subresource.as_str()) => return None,
            Some(target) => status_error::no_such_subresource(&target.resource, &target.name),
        };
        Some(*refused.0)
    }

    /// 404: built-in groups say it in a Status, everybody else in plain text.
    fn nowhere(&self, path: &str) -> status_error::Refused {
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        // Below an object of a custom kind there is nothing, and it is the object that is said not to be there.
        if let ["apis", _, _, "namespaces", _, _, name, _, ..] = parts.as_slice()
            && let Some(target) = self.resolve(&parts.get(..7).unwrap_or(&[]).join("/"))
            && target.resource.is_custom()
        {
            return status_error::not_found(&target.resource, name);
        }
        let built_in = match parts.as_slice() {
            ["api", _, ..] => true,
            ["apis", group, _, ..] => self.resources.values().any(|kind| kind.group == *group && !kind.is_custom()),
            _ => false,
        };
        if built_in { status_error::no_such_resource() } else { no_such_path() }
    }

    /// The resource whose objects are at this path.
    pub fn resource_at(&self, path: &str) -> Option<Arc<Resource>> {
        self.resolve(path).map(|target| target.resource)
    }

    /// What this path names; none if nothing is served there.
    pub(super) fn resolve(&self, path: &str) -> Option<Target> {
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let (group, version, rest) = match parts.as_slice() {
            ["api", version, rest @ ..] => ("", *version, rest),
            ["apis", group, version, rest @ ..] => (*group, *version, rest),
            _ => return None,
        };
        let (namespace, rest) = match rest {
            ["namespaces", name, last @ ("status" | "finalize")] => ("", vec!["namespaces", *name, *last]),
            ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (*namespace, rest.to_vec()),
            _ => ("", rest.to_vec()),
        };
        let (plural, name, subresource) = match rest.as_slice() {
            [plural] => (*plural, "", ""),
            [plural, name] => (*plural, *name, ""),
            [plural, name, subresource] => (*plural, *name, *subresource),
            _ => return None,
        };
        let qualified = if group.is_empty() { plural.to_owned() } else { format!("{plural}.{group}") };
        let resource = self.resource_in(&qualified, version)?;
        let scoped = resource.namespaced != namespace.is_empty();
        let over_all = resource.namespaced && namespace.is_empty() && name.is_empty();
        (scoped || over_all).then(|| Target {
            resource,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            subresource: subresource.to_owned(),
        })
    }

    /// How the rules in force refuse this request, whatever else there is to say to it.
    pub fn turns_down(&mut self, user: &str, request: &Request) -> Option<super::StoreReply> {
        let target = self.resolve(&request.path)?;
        let verb = verb(request, !target.name.is_empty());
        let call = Call { user, request, target, verb };
        let refused = admission::rules::at_the_door(self, &call);
        let refused = refused.and_then(|()| match request.body {
            Value::Null => Ok(()),
            _ => admission::rules::at_admission(self, &call, &request.body).map(drop),
        });
        refused.err().map(|status_error::Refused(reply)| *reply)
    }

    /// The request with what it is about, once it has passed authentication, flow control and authorization.
    pub(super) fn admit<'a>(&mut self, user: &'a str, request: &'a Request) -> Result<Call<'a>, status_error::Refused> {
        let target = self.resolve(&request.path).ok_or_else(|| self.nowhere(&request.path))?;
        let verb = verb(request, !target.name.is_empty());
        let call = Call { user, request, target, verb };
        admission::rules::at_the_door(self, &call)?;
        Ok(call)
    }

    /// Answers one request.
    pub(super) fn answer(&mut self, user: &str, request: &Request) -> Answer {
        let call = self.admit(user, request)?;
        if !request.body.is_null() && request.body.to_string().len() > BODY_LIMIT {
            let message = format!("Request entity too large: limit is {BODY_LIMIT}");
            return Err(status(413, "RequestEntityTooLarge", &message, None));
        }
        let reply = match call.verb {
            "get" => self.read_one(&call),
            "list" => self.list(&call),
            "watch" => Err(bad_request("a watch has to be opened as a stream")),
            _ if options::check_write(&call)? => self.rehearse(&call),
            _ => self.write(&call),
        };
        reply.map(|reply| super::events::shown_reply(call.resource(), self.reply_in_version(call.resource(), reply)))
    }

    fn write(&mut self, call: &Call<'_>) -> Answer {
        match call.verb {
            "create" => self.create(call),
            "update" | "patch" if call.target.subresource == "scale" => self.write_scale(call),
            "update" => self.replace(call),
            "patch" => self.patch(call),
            "delete" => self.delete(call),
            _ => self.delete_collection(call),
        }
    }

    /// A dry run: the write happens to a copy of the cluster.
    fn rehearse(&mut self, call: &Call<'_>) -> Answer {
        let version = self.get(&call.resource().qualified(), &call.target.namespace, &call.target.name);
        let version = version.map(|object| super::objects::meta(object, "resourceVersion").to_owned());
        let mut copy = self.clone();
        let mut reply = copy.write(call)?;
        if let super::reply::ReplyBody::Json(body) = &mut reply.body
            && body.get("kind").and_then(Value::as_str) != Some("Status")
        {
            let shown = version.map_or(Value::Null, Value::from);
            super::objects::set_meta(body, "resourceVersion", shown);
        }
        Ok(reply)
    }

    fn read_one(&mut self, call: &Call<'_>) -> Answer {
        match call.target.subresource.as_str() {
            "" => {}
            "status" if call.resource().status => {}
            "scale" => return self.read_scale(call),
            _ => return Err(status_error::no_such_subresource(call.resource(), &call.target.name)),
        }
        let Some(object) = self.objects.get(&call.key()) else {
            return Err(status_error::not_found(call.resource(), &call.target.name));
        };
        Ok(super::StoreReply::json(200, object.as_ref().clone()))
    }
}
