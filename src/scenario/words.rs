//! Small words of the scenario language: spans of time, quantities.

use jiff::SignedDuration;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

/// A span of time: `30s`, `2m`, `1h30m`, `500ms`; where a clock jumps it may be negative: `-5m`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span(pub SignedDuration);

impl Span {
    /// Reads a span.
    pub fn parse(text: &str) -> Result<Self, String> {
        let expected = || format!("\"{text}\" is no span of time; expected is one like 30s, 2m, 1h30m or 500ms");
        let (negative, mut rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        if rest.is_empty() {
            return Err(expected());
        }
        let mut total = SignedDuration::ZERO;
        while !rest.is_empty() {
            let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(expected)?;
            let (number, after) = rest.split_at(digits);
            let unit = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
            let (unit, after) = after.split_at(unit);
            let number: f64 = number.parse().map_err(|_| expected())?;
            let seconds = match unit {
                "ms" => 0.001,
                "s" => 1.0,
                "m" => 60.0,
                "h" => 3_600.0,
                "d" => 86_400.0,
                _ => return Err(expected()),
            };
            let part = SignedDuration::try_from_secs_f64(number * seconds).map_err(|_| expected())?;
            total = total.checked_add(part).ok_or_else(expected)?;
            rest = after;
        }
        Ok(Self(if negative { -total } else { total }))
    }
    /// Without a sign.
    pub fn duration(self) -> Duration {
        self.0.unsigned_abs()
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Span {
    fn schema_name() -> Cow<'static, str> {
        "Span".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "A span of time: 30s, 2m, 1h30m, 500ms; where a clock jumps it may be negative.",
            "type": "string",
            "pattern": r"^[+-]?(\d+(\.\d+)?(ms|s|m|h|d))+$",
        })
    }
}

/// A span as transcripts print it: `0s`, `1.5s`, `2m5s`, `1h2m`. Less than five thousandths are no part of a story:
/// that is what it costs to wait for an answer that does not come.
pub fn told(span: Duration) -> String {
    let millis = (span.as_millis() + 2) / 5 * 5;
    let (seconds, rest) = (millis / 1_000, millis % 1_000);
    if seconds < 60 {
        if rest == 0 {
            return format!("{seconds}s");
        }
        return format!("{seconds}.{:03}", rest).trim_end_matches('0').to_owned() + "s";
    }
    let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    let mut text = String::new();
    if hours > 0 {
        text.push_str(&format!("{hours}h"));
    }
    if minutes > 0 {
        text.push_str(&format!("{minutes}m"));
    }
    if seconds > 0 {
        text.push_str(&format!("{seconds}s"));
    }
    text
}

/// Quantities by name; a number is as good as its text.
pub fn quantity_map<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, String>, D::Error> {
    let map = BTreeMap::<String, serde_json::Value>::deserialize(deserializer)?;
    Ok(map
        .into_iter()
        .map(|(key, value)| (key, value.as_str().map_or_else(|| value.to_string(), str::to_owned)))
        .collect())
}

/// Names in a line: all of a few, the ends of many.
pub fn listed(names: &[String]) -> String {
    match names {
        [first, second, .., last] if names.len() > 4 => format!("{first}, {second} … {last} ({})", names.len()),
        _ => names.join(", "),
    }
}
