//! What the API server wrote down of every request: the evidence of what the operator did and was refused.

use jiff::Timestamp;
use serde_json::Value;
use std::io::{BufRead, BufReader, Seek, SeekFrom};
use std::path::Path;

/// One request, as answered.
#[derive(Clone, Debug)]
pub struct Call {
    /// When it arrived.
    pub at: Timestamp,
    /// Who sent it.
    pub user: String,
    /// `create`, `patch`, `watch`, …
    pub verb: String,
    /// Its API group; empty for the core.
    pub group: String,
    /// Its resource, with the subresource: `cocoonsets/status`.
    pub resource: String,
    /// Its namespace, where it has one.
    pub namespace: String,
    /// The name of the object, where the request names one.
    pub name: String,
    /// How it was answered.
    pub code: u64,
    /// What a refusal says.
    pub message: String,
    /// It may not do that, says RBAC.
    pub forbidden: bool,
}

impl Call {
    fn read(line: &str) -> Option<Self> {
        let event: Value = serde_json::from_str(line).ok()?;
        let text = |pointer: &str| event.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        // A watch is written down twice: when it is open, and when it ends.
        let stage = text("/stage");
        let watch = text("/verb") == "watch";
        let whole = if watch { stage == "ResponseStarted" } else { stage == "ResponseComplete" };
        let code = event.pointer("/responseStatus/code").and_then(Value::as_u64).unwrap_or_default();
        if !(whole || watch && code >= 400) {
            return None;
        }
        let subresource = text("/objectRef/subresource");
        let slash = if subresource.is_empty() { "" } else { "/" };
        Some(Self {
            at: text("/requestReceivedTimestamp").parse().ok()?,
            user: text("/user/username"),
            verb: text("/verb"),
            group: text("/objectRef/apiGroup"),
            resource: format!("{}{slash}{subresource}", text("/objectRef/resource")),
            namespace: text("/objectRef/namespace"),
            name: text("/objectRef/name"),
            code,
            message: text("/responseStatus/message"),
            forbidden: event.get("annotations").and_then(|all| all.get("authorization.k8s.io/decision"))
                == Some(&Value::from("forbid")),
        })
    }

    /// True for what changes something.
    pub fn is_write(&self) -> bool {
        matches!(self.verb.as_str(), "create" | "update" | "patch" | "delete" | "deletecollection")
    }
    /// True for this verb on this resource.
    pub fn is(&self, verb: &str, resource: &str) -> bool {
        self.verb == verb && self.resource == resource
    }
    /// True where it was answered with success.
    pub const fn went_well(&self) -> bool {
        self.code >= 200 && self.code < 300
    }
    /// On one line.
    pub fn line(&self) -> String {
        let Self { at, verb, resource, namespace, name, code, message, .. } = self;
        format!("{at} {verb} {resource} {namespace}/{name}: {code} {message}")
    }
}

/// How far the log is written.
pub fn end(log: &Path) -> u64 {
    std::fs::metadata(log).map_or(0, |meta| meta.len())
}

/// What this user asked for since then.
pub fn since(log: &Path, from: u64, user: &str) -> std::io::Result<Vec<Call>> {
    let mut file = std::fs::File::open(log)?;
    file.seek(SeekFrom::Start(from))?;
    let mut calls = Vec::new();
    for line in BufReader::new(file).split(b'\n') {
        let line = line?;
        calls.extend(Call::read(&String::from_utf8_lossy(&line)).filter(|call| user.is_empty() || call.user == user));
    }
    Ok(calls)
}
