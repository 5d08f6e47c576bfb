//! What a watch shows while a test goes on.

use crate::place::Place;
use cocoon_operator::core::wire::{Method, Request};
use serde_json::Value;
use std::sync::Arc;
use tokio::task::JoinHandle;

/// A watch. Dropping it ends it.
pub struct Follow(JoinHandle<()>);

impl Drop for Follow {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Watches what is at this path now and what comes, with the administrator's rights; `sees` gets the type of each event and
/// its object.
pub fn follow(place: &Place, path: &str, sees: impl Fn(&str, Value) + Send + 'static) -> Follow {
    let (api, request) = (Arc::clone(&place.api), Request::new(Method::Get, path).with_query("watch", "true"));
    Follow(place.handle.spawn(async move {
        let Ok(mut lines) = api.open("a test's watch", &request).await else { return };
        while let Ok(line) = lines.next().await {
            let mut event: Value = serde_json::from_slice(&line).unwrap_or_default();
            let object = event.get_mut("object").map(Value::take).unwrap_or_default();
            sees(event["type"].as_str().unwrap_or_default(), object);
        }
    }))
}
