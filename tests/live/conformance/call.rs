//! One call of a script, as data. Text may hold `{ns}` for the case's namespace, and `$uid:NAME`, `$rv:NAME`,
//! `$first-rv:NAME` for what the server has said of the object of that name.

use serde_json::{Value, json};

/// What a call carries.
#[derive(Clone, Debug)]
pub enum Payload {
    None,
    Json(Value),
    /// Sent as it stands.
    Text(String),
    /// What the server last said of the object of this name, with these members merged in.
    Last(String, Value),
}

/// One call.
#[derive(Clone, Debug)]
pub struct Call {
    pub title: String,
    pub method: &'static str,
    pub path: String,
    pub content_type: &'static str,
    pub accept: &'static str,
    pub payload: Payload,
    /// Waits before it is sent for what others do in their time.
    pub once: Option<Until>,
}

/// Something to wait for, so that no answer depends on how much time has passed.
#[derive(Clone, Debug)]
pub enum Until {
    /// The value at this pointer of what stands at this path.
    Stands(String, &'static str, Value),
    /// Nothing stands at this path.
    Gone(String),
    /// A dry run of the call itself is answered so: admission goes by what it was shown of quotas, and that is later
    /// than what can be read.
    Answered(u16),
}

pub const JSON: &str = "application/json";
pub const MERGE: &str = "application/merge-patch+json";
pub const JSON_PATCH: &str = "application/json-patch+json";
pub const STRATEGIC: &str = "application/strategic-merge-patch+json";

impl Call {
    fn new(method: &'static str, path: impl Into<String>, content_type: &'static str, payload: Payload) -> Self {
        let path = path.into();
        Self { title: String::new(), method, path, content_type, accept: JSON, payload, once: None }
    }
    /// What it shows; stands in every report.
    pub fn says(mut self, title: impl Into<String>) -> Self {
        self.title = title.into();
        self
    }
    /// Asks for another form of the answer.
    pub fn accept(mut self, accept: &'static str) -> Self {
        self.accept = accept;
        self
    }
    /// Sent once this value stands there.
    pub fn once(mut self, path: &str, pointer: &'static str, value: Value) -> Self {
        self.once = Some(Until::Stands(path.to_owned(), pointer, value));
        self
    }
    /// Sent once nothing stands there.
    pub fn once_gone(mut self, path: &str) -> Self {
        self.once = Some(Until::Gone(path.to_owned()));
        self
    }
    /// Sent once its dry run is answered so.
    pub fn once_answered(mut self, status: u16) -> Self {
        self.once = Some(Until::Answered(status));
        self
    }
}

pub fn get(path: impl Into<String>) -> Call {
    Call::new("GET", path, "", Payload::None)
}
pub fn post(path: impl Into<String>, body: Value) -> Call {
    Call::new("POST", path, JSON, Payload::Json(body))
}
pub fn put(path: impl Into<String>, body: Value) -> Call {
    Call::new("PUT", path, JSON, Payload::Json(body))
}
/// Writes back what was last seen of `name`, changed.
pub fn put_last(path: impl Into<String>, name: &str, change: Value) -> Call {
    Call::new("PUT", path, JSON, Payload::Last(name.to_owned(), change))
}
pub fn merge(path: impl Into<String>, body: Value) -> Call {
    Call::new("PATCH", path, MERGE, Payload::Json(body))
}
pub fn json_patch(path: impl Into<String>, body: Value) -> Call {
    Call::new("PATCH", path, JSON_PATCH, Payload::Json(body))
}
pub fn strategic(path: impl Into<String>, body: Value) -> Call {
    Call::new("PATCH", path, STRATEGIC, Payload::Json(body))
}
pub fn text(method: &'static str, path: impl Into<String>, content_type: &'static str, body: &str) -> Call {
    Call::new(method, path, content_type, Payload::Text(body.to_owned()))
}
pub fn delete(path: impl Into<String>) -> Call {
    Call::new("DELETE", path, "", Payload::None)
}
/// A deletion with these options.
pub fn delete_with(path: impl Into<String>, options: Value) -> Call {
    let mut body = json!({"kind": "DeleteOptions", "apiVersion": "v1"});
    if let (Some(body), Some(options)) = (body.as_object_mut(), options.as_object()) {
        body.extend(options.clone());
    }
    Call::new("DELETE", path, JSON, Payload::Json(body))
}
