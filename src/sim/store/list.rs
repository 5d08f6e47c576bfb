//! LIST: selectors, pages, and lists of an older state.

use super::objects::{Key, version_of};
use super::path::Call;
use super::selectors::Selector;
use super::status_error::{self as say, Answer, Refused, bad_request, status};
use super::{Store, StoreReply, options};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

const TOKEN_TOO_OLD: &str = "The provided continue parameter is too old to display a consistent list result. You can \
    start a new list without the continue parameter, or use the continue token in this response to retrieve the \
    remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were \
    created, modified, or deleted between the time the first chunk was returned and now may show up in the list.";
const VERSION_TOO_OLD: &str = "The resourceVersion for the provided list is too old.";

/// Where a page starts.
#[derive(Default)]
struct Start {
    /// The version of the whole list; none for the current one.
    version: Option<u64>,
    /// The last object of the page before: namespace and name.
    after: Option<(String, String)>,
}

/// A resourceVersion of a query; a malformed one is answered with 500, as recorded.
pub(super) fn parse_version(text: Option<&str>) -> Result<Option<u64>, Refused> {
    let Some(text) = text else { return Ok(None) };
    text.parse().map(Some).map_err(|_| {
        let message = format!(
            "resourceVersion: Invalid value: {0}: strconv.ParseUint: parsing {0}: invalid syntax",
            super::reply::quoted(text)
        );
        status(500, "", &message, None)
    })
}

impl Store {
    /// GET of a collection.
    pub(super) fn list(&mut self, call: &Call<'_>) -> Answer {
        let resource = call.resource();
        options::check_list(call)?;
        let labels = call.query("labelSelector").unwrap_or("");
        let selector = Selector::parse(resource, labels, call.query("fieldSelector").unwrap_or(""))?;
        let start = self.start(call)?;
        let version = start.version.unwrap_or(self.version);
        let qualified = resource.qualified();
        let namespace = (!call.target.namespace.is_empty()).then_some(call.target.namespace.as_str());
        let all = self.state_at(version, &qualified, namespace);
        let beyond = |key: &Key| {
            // A token of a namespaced list names no namespace.
            let after = start.after.as_ref().map(|(ns, name)| (namespace.unwrap_or(ns), name.as_str()));
            after.is_none_or(|after| (key.namespace.as_str(), key.name.as_str()) > after)
        };
        let fitting: Vec<(&Key, &Arc<Value>)> =
            all.iter().filter(|(key, object)| beyond(key) && selector.matches(object)).collect();
        let limit = call.query("limit").and_then(|limit| limit.parse::<usize>().ok()).filter(|limit| *limit > 0);
        let page = limit.unwrap_or(fitting.len()).min(fitting.len());
        let mut meta = Map::new();
        meta.insert("resourceVersion".to_owned(), Value::from(version.to_string()));
        if resource.is_custom() {
            meta.insert("continue".to_owned(), Value::from(""));
        }
        let left = fitting.len() - page;
        if let (true, Some((last, _))) = (left > 0, fitting.get(page.wrapping_sub(1))) {
            meta.insert(
                "continue".to_owned(),
                Value::from(token(i128::from(version), last, &qualified, namespace.is_some())),
            );
            if selector.is_empty() {
                meta.insert("remainingItemCount".to_owned(), json!(left));
            }
        }
        let items: Vec<Value> =
            fitting.iter().take(page).map(|(_, object)| item(object, resource.is_custom())).collect();
        Ok(StoreReply::json(
            200,
            json!({"apiVersion": resource.api_version(), "kind": resource.list_kind, "metadata": meta, "items": items}),
        ))
    }

    fn start(&self, call: &Call<'_>) -> Result<Start, Refused> {
        if let Some(text) = call.query("continue") {
            return self.continued(&call.resource().qualified(), text);
        }
        let asked = parse_version(call.query("resourceVersion")).map_err(|Refused(reply)| {
            bad_request(&format!("invalid resource version: {}", super::objects::text(reply.value(), "/message")))
        })?;
        let exact = call.query("resourceVersionMatch") == Some("Exact");
        match asked {
            None | Some(0) => Ok(Start::default()),
            Some(asked) if asked > self.version => Err(say::version_too_large(asked, self.version)),
            Some(asked) if exact && asked < self.log.floor => Err(say::expired(VERSION_TOO_OLD, None)),
            Some(asked) => Ok(Start { version: exact.then_some(asked), after: None }),
        }
    }

    fn continued(&self, resource: &str, text: &str) -> Result<Start, Refused> {
        let (version, after) = read_token(text)
            .map_err(|why| bad_request(&format!("invalid continue token: continue key is not valid: {why}")))?;
        let Ok(version) = u64::try_from(version) else {
            // A token without a version goes on with the current state.
            return Ok(Start { version: None, after: Some(after) });
        };
        if version < self.log.floor {
            let key = Key::new("", &after.0, &after.1);
            let again = token(-1, &key, resource, after.0.is_empty());
            return Err(say::expired(TOKEN_TOO_OLD, Some(&again)));
        }
        Ok(Start { version: Some(version), after: Some(after) })
    }

    /// A collection as it was at this version, read back through the log.
    fn state_at(&self, version: u64, resource: &str, namespace: Option<&str>) -> BTreeMap<Key, Arc<Value>> {
        let mut state: BTreeMap<Key, Arc<Value>> =
            self.entries(resource, namespace).map(|(key, object)| (key.clone(), Arc::clone(object))).collect();
        for entry in self.log.after(version).rev() {
            let here = entry.key.resource == super::events::storage(resource)
                && namespace.is_none_or(|ns| ns == entry.key.namespace);
            if !here {
                continue;
            }
            match &entry.before {
                Some(before) => state.insert(entry.key.clone(), Arc::clone(before)),
                None => state.remove(&entry.key),
            };
        }
        debug_assert!(state.values().all(|object| version_of(object) <= version));
        state
    }
}

/// Items of built-in lists do not repeat their kind.
fn item(object: &Arc<Value>, custom: bool) -> Value {
    let mut object = object.as_ref().clone();
    if let (false, Some(map)) = (custom, object.as_object_mut()) {
        map.remove("apiVersion");
        map.remove("kind");
    }
    object
}

/// A continue token, made like the real ones: those of the watch cache, which all but events have, begin with a slash.
fn token(version: i128, last: &Key, resource: &str, in_namespace: bool) -> String {
    let slash = if resource.starts_with("events") { "" } else { "/" };
    let prefix = if in_namespace { String::new() } else { format!("{}/", last.namespace) };
    let start = format!("{slash}{prefix}{}\u{0}", last.name);
    URL_SAFE_NO_PAD
        .encode(format!("{{\"v\":\"meta.k8s.io/v1\",\"rv\":{version},\"start\":{}}}", super::reply::quoted(&start)))
}

fn read_token(text: &str) -> Result<(i128, (String, String)), String> {
    let bytes = URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).map_err(|error| match error {
        base64::DecodeError::InvalidByte(at, _) | base64::DecodeError::InvalidLastSymbol(at, _) => {
            format!("illegal base64 data at input byte {at}")
        }
        _ => "illegal base64 data at input byte 0".to_owned(),
    })?;
    let first = || match bytes.first() {
        None => "unexpected end of JSON input".to_owned(),
        Some(byte) => format!("invalid character '\\u{byte:04x}' looking for beginning of value"),
    };
    let value: Value = serde_json::from_slice(&bytes).map_err(|_| first())?;
    let start = value.get("start").and_then(Value::as_str).unwrap_or("");
    let start = start.trim_start_matches('/').trim_end_matches('\u{0}');
    let (namespace, name) = start.split_once('/').unwrap_or(("", start));
    let version = value.get("rv").and_then(Value::as_i64).unwrap_or(0);
    Ok((i128::from(version), (namespace.to_owned(), name.to_owned())))
}
