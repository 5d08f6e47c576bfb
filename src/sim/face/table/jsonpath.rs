//! The simple JSONPaths of printer columns: fields, indexes, all entries, and entries picked by one field.

use serde_json::Value;

/// One step of a path.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    Field(String),
    Index(i64),
    All,
    /// Entries whose field at this path has this text.
    Where(Vec<String>, String),
}

/// Everything at the path; nothing where the path cannot be read.
pub(super) fn find<'a>(object: &'a Value, path: &str) -> Vec<&'a Value> {
    let Some(steps) = parse(path) else { return Vec::new() };
    steps.iter().fold(vec![object], |found, step| found.into_iter().flat_map(|value| take(value, step)).collect())
}

fn take<'a>(value: &'a Value, step: &Step) -> Vec<&'a Value> {
    let entries = || value.as_array().into_iter().flatten();
    match step {
        Step::Field(name) => value.get(name.as_str()).into_iter().collect(),
        Step::Index(at) => {
            let len = value.as_array().map_or(0, Vec::len);
            let at = if *at < 0 { i64::try_from(len).unwrap_or(0).saturating_add(*at) } else { *at };
            usize::try_from(at).ok().and_then(|at| value.get(at)).into_iter().collect()
        }
        Step::All => match value {
            Value::Object(map) => map.values().collect(),
            _ => entries().collect(),
        },
        Step::Where(path, want) => {
            let has = |entry: &Value| {
                let found = path.iter().try_fold(entry, |value, field| value.get(field.as_str()));
                found.is_some_and(|found| super::plain(found) == *want)
            };
            entries().filter(|entry| has(entry)).collect()
        }
    }
}

fn parse(path: &str) -> Option<Vec<Step>> {
    let path = path.trim().trim_start_matches('{').trim_end_matches('}').trim_start_matches('$');
    let mut steps = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        if let Some(inner) = rest.strip_prefix('[') {
            let (inside, after) = inner.split_once(']')?;
            steps.push(bracket(inside)?);
            rest = after;
        } else {
            let (name, after) = field(rest.strip_prefix('.').unwrap_or(rest));
            if name.is_empty() {
                return None;
            }
            steps.push(if name == "*" { Step::All } else { Step::Field(name) });
            rest = after;
        }
    }
    Some(steps)
}

/// A name up to the next dot or bracket; a backslash takes the next letter as it is.
fn field(text: &str) -> (String, &str) {
    let mut name = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '.' | '[' => return (name, text.get(at..).unwrap_or("")),
            '\\' => name.extend(letters.next().map(|(_, next)| next)),
            _ => name.push(letter),
        }
    }
    (name, "")
}

fn bracket(inside: &str) -> Option<Step> {
    let inside = inside.trim();
    let text = |raw: &str| -> Option<String> {
        let raw = raw.trim();
        let bare = raw.strip_prefix(['"', '\'']).and_then(|raw| raw.strip_suffix(['"', '\'']));
        bare.or_else(|| (!raw.contains(['"', '\''])).then_some(raw)).map(str::to_owned)
    };
    if inside == "*" {
        return Some(Step::All);
    }
    if let Some(test) = inside.strip_prefix("?(").and_then(|test| test.strip_suffix(')')) {
        let (left, right) = test.split_once("==")?;
        let path = left.trim().strip_prefix("@.")?.split('.').map(str::to_owned).collect();
        return Some(Step::Where(path, text(right)?));
    }
    match inside.parse() {
        Ok(at) => Some(Step::Index(at)),
        Err(_) => text(inside).map(Step::Field),
    }
}

#[cfg(test)]
mod tests {
    use super::find;
    use serde_json::{Value, json};

    #[test]
    fn paths_of_columns_are_followed() {
        let object = json!({
            "metadata": {"labels": {"a.b/c": "d"}},
            "status": {"n": 3, "conditions": [{"type": "A", "status": "True"}, {"type": "B", "status": "False"}]},
        });
        let cases: [(&str, &[Value]); 10] = [
            (".status.n", &[json!(3)]),
            ("{.status.n}", &[json!(3)]),
            (".status.conditions[1].type", &[json!("B")]),
            (".status.conditions[-1].type", &[json!("B")]),
            (".status.conditions[*].type", &[json!("A"), json!("B")]),
            (r#".status.conditions[?(@.type=="B")].status"#, &[json!("False")]),
            (r".metadata.labels.a\.b/c", &[json!("d")]),
            (".metadata.labels['a.b/c']", &[json!("d")]),
            (".status.nothing.here", &[]),
            (".status[", &[]),
        ];
        for (path, want) in cases {
            assert_eq!(find(&object, path), want.iter().collect::<Vec<_>>(), "{path}");
        }
    }
}
