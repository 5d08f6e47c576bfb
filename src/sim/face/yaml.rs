//! YAML instead of JSON, both ways.

use super::Page;
use serde_json::Value;

/// The media type.
pub(in crate::sim) const CONTENT_TYPE: &str = "application/yaml";

/// A body that was sent.
pub(in crate::sim) fn read(bytes: &[u8]) -> Result<Value, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "yaml: invalid leading UTF-8 octet".to_owned())?;
    serde_saphyr::from_str(text).map_err(|error| {
        let misfit = crate::reading::yaml(&error);
        let place = misfit.at.map(|(line, _)| format!("line {line}: ")).unwrap_or_default();
        format!("error converting YAML to JSON: yaml: {place}{misfit}")
    })
}

/// Whether this is the first form of an `Accept` header that is to be had.
pub(in crate::sim) fn is_wanted(accept: &str) -> bool {
    let kinds = accept.split(',').map(|form| form.split(';').next().unwrap_or("").trim());
    let mut known = kinds.filter(|kind| matches!(*kind, CONTENT_TYPE | "application/json" | "application/*" | "*/*"));
    known.next() == Some(CONTENT_TYPE)
}

/// An answer in this form; what is no JSON stays as it is.
pub(in crate::sim) fn page(mut page: Page) -> Page {
    let json = page.content_type.starts_with("application/json");
    let value = json.then(|| serde_json::from_slice::<Value>(&page.body).ok()).flatten();
    if let Some(text) = value.and_then(|value| serde_saphyr::to_string(&value).ok()) {
        page.body = text.into_bytes();
        page.content_type = CONTENT_TYPE.to_owned();
    }
    page
}
