//! Sends the calls of a case to one server and keeps what it said of each object.

use super::call::{Call, Payload, Until};
use super::normal::Names;
use super::{End, Fault};
use http::Request;
use http_body_util::BodyExt;
use kube::client::Body;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

/// What controllers do in their time, they do within this.
const PATIENCE: Duration = Duration::from_secs(60);

/// An answer as it came.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub content_type: String,
    pub retry_after: Option<String>,
    pub warnings: Vec<String>,
    pub body: Value,
}

impl End {
    /// Whether this line is the last, where `last` was said of the last write.
    fn is_reached(&self, line: &Value, last: Option<&Value>) -> bool {
        let at = |value: &Value| value["metadata"]["resourceVersion"].clone();
        match self {
            Self::Seen(_) => last.is_some_and(|last| at(&line["object"]) == at(last)),
            Self::Listed => line.pointer("/object/metadata/annotations/k8s.io~1initial-events-end").is_some(),
            Self::Closed => false,
        }
    }
}

/// One server in one case.
pub struct Player {
    client: kube::Client,
    namespace: String,
    /// The last and the first that was said of each object, by name.
    last: BTreeMap<String, Value>,
    first: BTreeMap<String, Value>,
    pub names: Names,
}

impl Player {
    pub fn new(client: kube::Client, namespace: &str) -> Self {
        let (last, first) = (BTreeMap::new(), BTreeMap::new());
        Self { client, namespace: namespace.to_owned(), last, first, names: Names::default() }
    }

    /// Sends a call and takes in the answer.
    pub async fn play(&mut self, call: &Call) -> Result<Answer, Fault> {
        if let Some(until) = &call.once {
            self.wait(call, until).await?;
        }
        let answer =
            self.send(call.method, &call.path, call.content_type, call.accept, self.bytes(&call.payload)?).await?;
        self.learn(&answer.body);
        Ok(answer)
    }

    async fn wait(&mut self, call: &Call, until: &Until) -> Result<(), Fault> {
        let started = Instant::now();
        loop {
            let answer = match until {
                Until::Stands(path, ..) | Until::Gone(path) => {
                    self.send("GET", path, "", "application/json", Vec::new()).await?
                }
                Until::Answered(_) => {
                    let path = format!("{}?dryRun=All", call.path);
                    self.send(call.method, &path, call.content_type, call.accept, self.bytes(&call.payload)?).await?
                }
            };
            let holds = match until {
                Until::Stands(_, pointer, value) => {
                    let value: Value = serde_json::from_str(&self.filled(&value.to_string())?)?;
                    answer.body.pointer(pointer).unwrap_or(&Value::Null) == &value
                }
                Until::Gone(_) => answer.status == 404,
                Until::Answered(status) => answer.status == *status,
            };
            if holds {
                self.learn(&answer.body);
                return Ok(());
            }
            if started.elapsed() > PATIENCE {
                return Err(format!("waited for {until:?} and see {}", answer.body).into());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Opens a watch, makes the calls, and gives the lines that it shows up to its end.
    pub async fn watch(&mut self, path: &str, calls: &[Call], end: &End) -> Result<(Answer, Vec<Value>), Fault> {
        let path = self.filled(path)?;
        let request = Request::get(&path).header("Accept", "application/json").body(Body::empty())?;
        let response = self.client.send(request).await?;
        let (head, mut body) = response.into_parts();
        let mut answer = Answer {
            status: head.status.as_u16(),
            content_type: header(&head.headers, "content-type").unwrap_or_default(),
            retry_after: header(&head.headers, "retry-after"),
            warnings: Vec::new(),
            body: Value::Null,
        };
        if answer.status != 200 {
            let bytes = body.collect().await?.to_bytes();
            answer.body = parsed(&bytes);
            return Ok((answer, Vec::new()));
        }
        for call in calls {
            self.play(call).await?;
        }
        let last = match end {
            End::Seen(call) => Some(self.play(call).await?.body),
            End::Listed | End::Closed => None,
        };
        let mut lines: Vec<Value> = Vec::new();
        let mut rest = Vec::new();
        while !lines.last().is_some_and(|line| end.is_reached(line, last.as_ref())) {
            let frame = tokio::time::timeout(PATIENCE, body.frame()).await;
            let Some(frame) = frame.map_err(|_| format!("the watch shows {lines:?} and no end"))? else { break };
            for byte in frame?.data_ref().into_iter().flatten() {
                match byte {
                    b'\n' => lines.push(parsed(&std::mem::take(&mut rest))),
                    other => rest.push(*other),
                }
            }
        }
        if !rest.is_empty() {
            lines.push(parsed(&rest));
        }
        // What others write later may have come with the same bytes.
        if let Some(at) = lines.iter().position(|line| end.is_reached(line, last.as_ref())) {
            lines.truncate(at + 1);
        }
        Ok((answer, lines))
    }

    /// Sends a request with everything filled in.
    pub async fn send(
        &self,
        method: &str,
        path: &str,
        content_type: &str,
        accept: &str,
        body: Vec<u8>,
    ) -> Result<Answer, Fault> {
        let path = self.filled(path)?;
        let mut request = Request::builder().method(method).uri(&path).header("Accept", accept);
        if !content_type.is_empty() {
            request = request.header("Content-Type", content_type);
        }
        let response = self.client.send(request.body(Body::from(body))?).await?;
        let (head, body) = response.into_parts();
        let bytes = body.collect().await?.to_bytes();
        let warnings =
            head.headers.get_all("warning").iter().filter_map(|value| value.to_str().ok().map(str::to_owned));
        Ok(Answer {
            status: head.status.as_u16(),
            content_type: header(&head.headers, "content-type").unwrap_or_default(),
            retry_after: header(&head.headers, "retry-after"),
            warnings: warnings.collect(),
            body: parsed(&bytes),
        })
    }

    fn bytes(&self, payload: &Payload) -> Result<Vec<u8>, Fault> {
        Ok(match payload {
            Payload::None => Vec::new(),
            Payload::Json(body) => self.filled(&body.to_string())?.into_bytes(),
            Payload::Text(text) => self.filled(text)?.into_bytes(),
            Payload::Last(name, change) => {
                let name = &self.filled(name)?;
                let mut object = self.last.get(name).cloned().ok_or_else(|| format!("nothing was said of {name}"))?;
                let change: Value = serde_json::from_str(&self.filled(&change.to_string())?)?;
                merge(&mut object, &change);
                object.to_string().into_bytes()
            }
        })
    }

    /// The text with everything filled in that only this server knows.
    fn filled(&self, text: &str) -> Result<String, Fault> {
        let mut text = text.replace("{ns}", &self.namespace);
        for (mark, field, from) in [
            ("$uid:", "uid", &self.last),
            ("$rv:", "resourceVersion", &self.last),
            ("$first-rv:", "resourceVersion", &self.first),
        ] {
            while let Some(at) = text.find(mark) {
                let rest = &text[at + mark.len()..];
                let end =
                    rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '.')).unwrap_or(rest.len());
                let name = &rest[..end];
                let value = from.get(name).and_then(|object| object["metadata"][field].as_str());
                let value = value.ok_or_else(|| format!("nothing was said of {name}"))?.to_owned();
                text.replace_range(at..at + mark.len() + end, &value);
            }
        }
        Ok(text)
    }

    fn learn(&mut self, body: &Value) {
        let items = body.get("items").and_then(Value::as_array);
        for object in items.into_iter().flatten().chain([body]) {
            let Some(name) = object.pointer("/metadata/name").and_then(Value::as_str) else { continue };
            // What a dry run answers has no version: it is nowhere.
            if object.pointer("/metadata/resourceVersion").is_none() {
                continue;
            }
            let mut object = object.clone();
            for (key, from) in [("apiVersion", "apiVersion"), ("kind", "kind")] {
                let of_list =
                    body.get(from).and_then(Value::as_str).map(|text| text.trim_end_matches("List").to_owned());
                if object.get(key).is_none()
                    && let (Some(map), Some(text)) = (object.as_object_mut(), of_list)
                {
                    map.insert(key.to_owned(), Value::String(text));
                }
            }
            self.first.entry(name.to_owned()).or_insert_with(|| object.clone());
            self.last.insert(name.to_owned(), object);
        }
    }
}

fn header(headers: &http::HeaderMap, name: &str) -> Option<String> {
    headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
}

fn parsed(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap_or_else(|_| Value::String(String::from_utf8_lossy(bytes).into_owned()))
}

/// A merge patch (RFC 7386), for bodies that are made from what was seen.
fn merge(target: &mut Value, change: &Value) {
    let Value::Object(change) = change else {
        *target = change.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Some(map) = target.as_object_mut() else { return };
    for (key, value) in change {
        if value.is_null() {
            map.remove(key);
        } else {
            merge(map.entry(key.clone()).or_insert(Value::Null), value);
        }
    }
}
