//! Total reading of JSON: every mismatch becomes an oddity and the field its default.

use crate::core::oddity::{Oddity, excerpt};
use serde_json::Value;

/// One JSON value and the path under which people know it.
pub struct Reader<'v> {
    at: &'v Value,
    path: String,
}

/// What stands for "nothing there".
const NOTHING: &Value = &Value::Null;

impl<'v> Reader<'v> {
    /// A reader of this value, called `path` in oddities.
    pub fn new(at: &'v Value, path: impl Into<String>) -> Self {
        Self { at, path: path.into() }
    }
    /// The path of a field of this value.
    pub fn path_of(&self, key: &str) -> String {
        format!("{}.{key}", self.path)
    }
    /// True where nothing is there.
    pub fn is_absent(&self) -> bool {
        self.at.is_null()
    }
    /// The field, where it is there and not null.
    pub fn get(&self, key: &str) -> Option<&'v Value> {
        self.at.get(key).filter(|found| !found.is_null())
    }
    /// The field as a reader; one of another type than object reads as empty.
    pub fn object(&self, key: &str, oddities: &mut Vec<Oddity>) -> Reader<'v> {
        let at = match self.get(key) {
            Some(found) if found.is_object() => found,
            Some(found) => {
                oddities.push(self.mismatch(key, "an object", found));
                NOTHING
            }
            None => NOTHING,
        };
        Reader { at, path: self.path_of(key) }
    }
    /// The field as a list; another type reads as empty.
    pub fn list(&self, key: &str, oddities: &mut Vec<Oddity>) -> &'v [Value] {
        match self.get(key) {
            Some(Value::Array(items)) => items,
            Some(found) => {
                oddities.push(self.mismatch(key, "a list", found));
                &[]
            }
            None => &[],
        }
    }
    /// The field as text, empty where absent.
    pub fn text(&self, key: &str, oddities: &mut Vec<Oddity>) -> String {
        match self.get(key) {
            Some(Value::String(text)) => text.clone(),
            Some(found) => {
                oddities.push(self.mismatch(key, "a string", found));
                String::new()
            }
            None => String::new(),
        }
    }
    /// The field as text, `None` where absent or empty: the API means the same by both.
    pub fn text_if_any(&self, key: &str, oddities: &mut Vec<Oddity>) -> Option<String> {
        Some(self.text(key, oddities)).filter(|text| !text.is_empty())
    }
    /// The field as a truth value, false where absent.
    pub fn flag(&self, key: &str, oddities: &mut Vec<Oddity>) -> bool {
        match self.get(key) {
            Some(Value::Bool(flag)) => *flag,
            Some(found) => {
                oddities.push(self.mismatch(key, "true or false", found));
                false
            }
            None => false,
        }
    }
    /// The field as a whole number, 0 where absent.
    pub fn int(&self, key: &str, oddities: &mut Vec<Oddity>) -> i64 {
        match self.get(key) {
            Some(found) => whole(found).unwrap_or_else(|| {
                oddities.push(self.mismatch(key, "a whole number", found));
                0
            }),
            None => 0,
        }
    }
    /// The field as a whole number within these bounds; outside them the nearer bound, with an oddity.
    pub fn int_within(&self, key: &str, low: i64, high: i64, oddities: &mut Vec<Oddity>) -> i64 {
        let given = self.int(key, oddities);
        if given < low || given > high {
            oddities.push(Oddity::unreadable(self.path_of(key), format!("{given} is not within {low} and {high}")));
        }
        given.clamp(low, high)
    }
    fn mismatch(&self, key: &str, wanted: &str, found: &Value) -> Oddity {
        Oddity::unreadable(self.path_of(key), format!("{} is not {wanted}", excerpt(&found.to_string(), 60)))
    }
}

/// A whole number, also one that a client wrote as `2.0`.
fn whole(found: &Value) -> Option<i64> {
    if let Some(number) = found.as_i64() {
        return Some(number);
    }
    let float = found.as_f64()?;
    // Beyond 2^53 a float no longer names one whole number.
    (float.fract() == 0.0 && float.abs() <= 9_007_199_254_740_992.0).then_some(float as i64)
}
