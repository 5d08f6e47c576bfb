//! Sends a recorded request and compares the answer with the recorded one.

use super::server::{Answer, is_error};
use super::stage::Stage;
use cocoon_operator::core::wire::{Method, Request};
use serde_json::{Value, json};
use std::time::Duration;

fn method(text: &str) -> Method {
    match text {
        "GET" => Method::Get,
        "POST" => Method::Post,
        "PUT" => Method::Put,
        "PATCH" => Method::Patch,
        "DELETE" => Method::Delete,
        other => panic!("no such method: {other}"),
    }
}

fn request(fact: &Value, body: Option<Value>) -> Request {
    let recorded = &fact["request"];
    let full = recorded["path"].as_str().expect("a path");
    let (path, query) = full.split_once('?').unwrap_or((full, ""));
    let mut request = Request::new(method(recorded["method"].as_str().expect("a method")), path);
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        request = request.with_query(key, value);
    }
    let content_type = recorded.pointer("/headers/Content-Type").and_then(Value::as_str);
    request.content_type = content_type.map(str::to_owned);
    request.body = body.unwrap_or_else(|| recorded["body"].clone());
    request
}

/// Plays one fact; the differences, or none.
pub fn play(fact: &str, mut stage: Stage) -> Result<(), String> {
    let mut text = fact.to_owned();
    for (recorded, here) in &stage.swaps {
        text = text.replace(recorded, here);
    }
    let fact: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let request = request(&fact, stage.body.take());
    if request.query.iter().any(|(key, _)| key == "watch") {
        return play_watch(&fact, &mut stage, &request);
    }
    let status = fact["status"].as_u64().and_then(|status| status.try_into().ok()).unwrap_or_default();
    stage.settle(&request, status, fact["headers"].get("Warning").is_some());
    // A real server is written to by others, too.
    let version = |stage: &mut Stage| stage.server.store().map(|store| store.version());
    let before = version(&mut stage);
    let answer = stage.ask(&request);
    compare_answer(&fact, &stage, &answer)?;
    let writes = !matches!(request.method, Method::Get) && answer.is_success();
    let dry = request.query.iter().any(|(key, _)| key == "dryRun");
    if (!writes || dry) && version(&mut stage) != before {
        return Err("the store has changed".to_owned());
    }
    if writes && !dry { stored(&mut stage, &request, &answer.body) } else { Ok(()) }
}

/// What was answered is what can be read back, unless it is gone.
fn stored(stage: &mut Stage, request: &Request, answer: &Value) -> Result<(), String> {
    let meta = |field: &str| answer["metadata"][field].as_str().unwrap_or("");
    let unheld = !meta("deletionTimestamp").is_empty() && answer["metadata"].get("finalizers").is_none();
    let waits = answer["kind"] == "Namespace" || answer["metadata"]["deletionGracePeriodSeconds"].as_i64() > Some(0);
    let released = answer["kind"] == "Status" || (unheld && !waits);
    let path = request.path.trim_end_matches("/status");
    let path = if request.method == Method::Post { format!("{path}/{}", meta("name")) } else { path.to_owned() };
    let read = stage.get(&path);
    let expected = if released { 404 } else { 200 };
    // What controllers have made of a namespace since then is theirs.
    let theirs = stage.server.store().is_none() && answer["kind"] == "Namespace";
    if read.status != expected || (!released && !theirs && read.body != *answer) {
        return Err(format!("read back {}: {}", read.status, read.body));
    }
    Ok(())
}

fn play_watch(fact: &Value, stage: &mut Stage, request: &Request) -> Result<(), String> {
    let user = stage.user.clone();
    let frames = match stage.server.watch(&user, request) {
        Ok(frames) => frames,
        Err(answer) => return compare_answer(fact, stage, &answer),
    };
    if fact["status"] != json!(200) {
        return Err("the watch was opened".to_owned());
    }
    let ended = frames.iter().any(is_error);
    let mut frames: Vec<Value> = frames.iter().map(|frame| masked(frame, stage)).collect();
    let expected = masked(&fact["body"], stage);
    let got = match (ended, frames.len()) {
        (true, 1) => frames.remove(0),
        _ => Value::Array(frames),
    };
    same("events", &expected, &got)
}

fn same(what: &str, expected: &Value, got: &Value) -> Result<(), String> {
    if expected == got {
        return Ok(());
    }
    let pretty = |value: &Value| serde_json::to_string_pretty(value).unwrap_or_default();
    Err(format!("{what}\n--- recorded\n{}\n--- here\n{}", pretty(expected), pretty(got)))
}

fn compare_answer(fact: &Value, stage: &Stage, answer: &Answer) -> Result<(), String> {
    let body = masked(&answer.body, stage);
    same("status", &fact["status"], &json!(answer.status)).map_err(|error| format!("{error}\n{body}"))?;
    let header = |name: &str| fact["headers"].get(name).and_then(Value::as_str);
    let retry = header("Retry-After").and_then(|value| value.parse().ok()).map(Duration::from_secs);
    if retry != answer.retry_after {
        return Err(format!("Retry-After: recorded {retry:?}, here {:?}", answer.retry_after));
    }
    if header("Content-Type").is_some_and(|recorded| recorded != answer.content_type) {
        return Err(format!("content type {}", answer.content_type));
    }
    let warnings: Vec<String> = header("Warning").map(str::to_owned).into_iter().collect();
    if warnings != answer.warnings {
        return Err(format!("warnings {warnings:?} {:?}", answer.warnings));
    }
    same("body", &masked(&fact["body"], stage), &body)
}

/// Takes out of an answer what no two servers share: uids, versions, times, field managers, the token volume.
fn masked(value: &Value, stage: &Stage) -> Value {
    let mut value = value.clone();
    mask(&mut value);
    if let Some(until) = stage.message_until {
        cut_messages(&mut value, until);
    }
    if let Some(causes) = value.pointer_mut("/details/causes").and_then(Value::as_array_mut)
        && stage.any_order
    {
        causes.sort_by_key(|cause| cause["field"].to_string());
    }
    value
}

fn cut_messages(value: &mut Value, until: &str) {
    match value {
        Value::Object(map) => {
            for (key, child) in map {
                match child {
                    Value::String(text) if key == "message" => {
                        let end = text.find(until).unwrap_or(text.len());
                        text.truncate(end);
                    }
                    _ => cut_messages(child, until),
                }
            }
        }
        Value::Array(list) => list.iter_mut().for_each(|child| cut_messages(child, until)),
        _ => {}
    }
}

fn mask(value: &mut Value) {
    match value {
        Value::Object(map) => {
            let generated = map.contains_key("generateName");
            if map.contains_key("creationTimestamp") || map.contains_key("resourceVersion") {
                map.remove("managedFields");
            }
            // Go writes `lastProbeTime: null`; null and absent say the same.
            map.retain(|_, child| !child.is_null());
            for (key, child) in map.iter_mut() {
                let fixed = matches!(
                    key.as_str(),
                    "uid"
                        | "resourceVersion"
                        | "creationTimestamp"
                        | "deletionTimestamp"
                        | "lastTransitionTime"
                        | "continue"
                );
                if (fixed && child.is_string() && child != "") || (generated && key == "name") {
                    *child = json!("masked");
                } else {
                    mask(child);
                }
            }
            for list in ["volumes", "volumeMounts"] {
                if let Some(entries) = map.get_mut(list).and_then(Value::as_array_mut) {
                    entries.retain(|entry| !entry["name"].as_str().unwrap_or("").starts_with("kube-api-access"));
                }
                if map.get(list) == Some(&json!([])) {
                    map.remove(list);
                }
            }
        }
        Value::Array(list) => list.iter_mut().for_each(mask),
        _ => {}
    }
}
