//! Texts that do not read, in the words of whoever wrote them: what stands there, and what is expected. The libraries that
//! read speak of scanners, scalars and types of a program.

/// What is wrong, where, and what is expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Misfit {
    /// Line and column from 1, where known.
    pub at: Option<(u64, u64)>,
    /// What stands there.
    pub found: String,
    /// What to write instead.
    pub expected: String,
}

impl std::fmt::Display for Misfit {
    /// Without the place.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.found.is_empty(), self.expected.is_empty()) {
            (true, _) => write!(f, "expected {}", self.expected),
            (false, true) => f.write_str(&self.found),
            (false, false) => write!(f, "{}; expected {}", self.found, self.expected),
        }
    }
}

/// Parts of what parsers say, what they mean, and what to do. The first that fits counts.
const MEANINGS: &[(&str, &str, &str)] = &[
    ("mapping values are not allowed", "a colon where no key can end", "quotes around text that holds a colon"),
    ("a tab", "a tab where spaces have to be", "spaces"),
    ("tabs disallowed", "a tab where spaces have to be", "spaces"),
    ("illegal placement of ':'", "a colon that belongs to no key", "every [ and { closed before it"),
    ("unclosed quote", "a quote that is never closed", "a quote at the end of the text"),
    ("unclosed bracket", "a bracket that is never closed", "a ] or } for every [ or {"),
    ("mismatched bracket", "a bracket that one of another kind closes", "a ] for every [ and a } for every {"),
    ("unexpected end", "it ends too early", "the rest of it"),
    ("misplaced bracket", "a bracket that closes nothing", "a [ or { before it"),
    ("eof while parsing", "it breaks off", "the rest of it: a ] or } for every [ or {"),
    ("unexpected eof", "it breaks off", "the rest of it: a ] or } for every [ or {"),
    ("expected ',' or", "no comma between two entries", "a comma, or a closing bracket"),
    ("expected `,` or", "no comma between two entries", "a comma, or a closing bracket"),
    ("trailing comma", "a comma behind the last entry", "none there"),
    ("trailing characters", "something behind the end", "one JSON object after another"),
    ("expected value", "a word that is no value", "text in double quotes, a number, true, false or null"),
    ("expected ident", "a word that is no value", "text in double quotes, a number, true, false or null"),
    ("key must be a string", "a key that is no text", "keys in double quotes"),
    ("expected `:`", "a key without a colon", "\"KEY\": VALUE"),
    ("control character", "a line break or another control character within text", "\\n for a line break"),
    ("invalid escape", "a backslash that means nothing there", "\\\\ for a backslash"),
    ("number out of range", "a number that is too large", "one that a computer can hold"),
    ("invalid number", "a number that is none", "one such as 5 or 0.5"),
    ("non-finite float", "a number that is too large, or none", "a finite number, or quotes around text"),
    ("recursion limit", "it is nested too deeply", "at most 128 levels"),
    ("budget breached", "it is nested too deeply, or unfolds into too much", "at most 128 levels, and few aliases"),
    ("limit exceeded", "it unfolds into too much", "fewer aliases"),
    ("recursive references", "an anchor that holds itself", "an alias outside of its own anchor"),
    ("unknown anchor", "an alias of an anchor that is not there", "the anchor &NAME before the alias *NAME"),
    ("merge value", "a << of something that is no mapping", "a mapping, or a list of mappings"),
    ("unknown escape", "a backslash that means nothing there", "\\\\ for a backslash, or single quotes"),
    ("hexadecimal", "a backslash that means nothing there", "\\\\ for a backslash, or single quotes"),
    ("surrogate", "half of a character", "the whole of it"),
    ("unexpected character", "a character that no text can begin with unquoted", "quotes around the text"),
    (
        "block scalar",
        "text behind | or > that does not fit",
        "nothing behind | or > in its line, and indented lines below",
    ),
    ("directive", "a line that begins with %", "no such line, or quotes around it"),
    ("yaml major version", "a version of YAML that is not known", "no %YAML line"),
    ("!!binary", "a value with a tag (!…) that does not fit", "a value without a tag"),
    ("tag", "a value with a tag (!…) that does not fit", "a value without a tag"),
    ("anchor or alias", "an & or * without a name", "quotes around text that begins with & or *"),
    ("comments must be separated", "a # without a space before it", "a space before the comment"),
    ("simple key", "a line without a colon among keys", "KEY: VALUE"),
    ("mapping keys are not allowed", "a key where none can stand", "KEY: VALUE on a line of its own"),
    (
        "did not find expected key",
        "a line that does not line up with the keys above",
        "the same indentation for all keys",
    ),
    ("'-' indicator", "a line that does not line up with the list above", "a - at the same indentation"),
    ("sequence entries are not allowed", "a - where no list can stand", "the list on lines of its own"),
    ("ndent", "a line that does not line up with those above", "the same indentation for all that belongs together"),
    ("trailing content", "something behind a closing quote", "one pair of quotes around all of the text"),
    ("document", "something behind the end of a document", "--- on a line of its own between documents"),
    ("node content", "nothing where a value has to be", "a value"),
];

/// Of a YAML reader.
#[must_use]
pub(crate) fn yaml(error: &serde_saphyr::Error) -> Misfit {
    let error = error.without_snippet();
    let at = error.location().map(|at| (at.line(), at.column())).filter(|(line, _)| *line > 0);
    Misfit { at, ..words(&error.render()) }
}

/// Of a JSON reader.
#[must_use]
pub(crate) fn json(error: &serde_json::Error) -> Misfit {
    let (line, column) = (error.line() as u64, error.column() as u64);
    Misfit { at: (line > 0).then_some((line, column)), ..words(&error.to_string()) }
}

/// What we say ourselves of a part goes before a library's words about it: `a set: unknown field …`.
const HEADS: [&str; 6] =
    ["unknown field `", "unknown variant `", "missing field `", "invalid type: ", "invalid value: ", "invalid length "];

/// Of what a library says, without the place that it names.
#[must_use]
pub(crate) fn words(said: &str) -> Misfit {
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let said = said.split(" at line ").next().unwrap_or_default();
    if let Some((part, rest)) = HEADS
        .iter()
        .find_map(|head| said.split_once(&format!(": {head}")).map(|(part, rest)| (part, format!("{head}{rest}"))))
    {
        let inner = words(&rest);
        let found =
            if inner.found.is_empty() { format!("{part} does not fit") } else { format!("{part}: {}", inner.found) };
        return Misfit { found, ..inner };
    }
    let misfit = |found: String, expected: &str| Misfit { at: None, found, expected: expected.to_owned() };
    let plain = |text: &str| text.replace('`', "");
    if let Some(key) = said.strip_prefix("duplicate mapping key") {
        let key = key.split(", set ").next().unwrap_or_default().trim_start_matches(':').trim();
        return misfit(format!("the key {key} twice").replace("  ", " "), "each key once");
    }
    if let Some(("unknown field" | "unknown variant", rest)) = said.split_once(" `").filter(|(head, _)| head.len() < 20)
    {
        let what = if said.starts_with("unknown field") { "unknown field" } else { "unknown word" };
        let (name, expected) = rest.split_once("`, expected ").unwrap_or((rest, ""));
        return misfit(format!("{what} {}", plain(name)), &plain(expected));
    }
    if let Some(name) = said.strip_prefix("missing field ") {
        return misfit(format!("no field {}", plain(name)), "one");
    }
    for head in ["invalid type: ", "invalid value: ", "invalid length "] {
        if let Some((found, expected)) = said.strip_prefix(head).and_then(|rest| rest.split_once(", expected ")) {
            let found = if head.starts_with("invalid length") { format!("{found} entries") } else { value(found) };
            return misfit(String::new(), &format!("{}, found {found}", kind(&plain(expected))));
        }
    }
    let lower = said.to_lowercase();
    // What a field of ours says of itself goes on as it is.
    match MEANINGS.iter().find(|(part, ..)| lower.contains(part)).filter(|_| is_of_a_parser(&lower)) {
        Some((_, found, expected)) => misfit((*found).to_owned(), expected),
        None => match said.strip_prefix("expected ").filter(|expected| is_of_a_parser(expected)) {
            Some(expected) => misfit(String::new(), &kind(expected)),
            None => misfit(said.to_owned(), ""),
        },
    }
}

/// Whether a library says this, and not we ourselves: our words of what is expected stand behind a semicolon.
fn is_of_a_parser(said: &str) -> bool {
    !said.contains("; expected") && !said.contains("expected is")
}

/// A type of a program, as people call it.
fn kind(expected: &str) -> String {
    let word = match expected.trim() {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number from 0",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        "bool" | "boolean" | "a boolean" => "true or false",
        "string" | "a string" | "str" | "string scalar" | "scalar" | "a borrowed string" => "text",
        "sequence" | "a sequence" | "sequence start" => "a list",
        "map" | "a map" | "mapping" | "mapping start" => "a mapping",
        "unit" | "null" => "nothing",
        other if other.starts_with("struct ") => "a mapping",
        other if other.starts_with("enum ") || other.contains("enum") => "one of the words that can stand here",
        other => other,
    };
    word.to_owned()
}

/// A value as a library shows it.
fn value(found: &str) -> String {
    let plain = found.replace('`', "");
    match plain.as_str() {
        "map" => return "a mapping".to_owned(),
        "sequence" => return "a list".to_owned(),
        "null" | "unit value" | "unit" | "Option value" => return "nothing".to_owned(),
        _ => {}
    }
    let heads = ["string ", "integer ", "floating point ", "boolean ", "character "];
    heads.iter().find_map(|head| plain.strip_prefix(head)).unwrap_or(&plain).to_owned()
}

/// The document, from 1, that this line is part of.
#[must_use]
pub(crate) fn document(text: &str, line: u64) -> usize {
    let before = usize::try_from(line).unwrap_or(usize::MAX);
    let (mut number, mut any) = (1, false);
    for line in text.lines().take(before) {
        let parts = line.strip_prefix("---").filter(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace));
        if parts.is_some() {
            number += usize::from(any);
            any = true;
        } else {
            any |= !line.trim().is_empty() && !line.trim_start().starts_with('#');
        }
    }
    number
}

#[cfg(test)]
mod tests {
    use super::{document, words};

    #[test]
    fn what_libraries_say_is_said_in_plain_words() {
        for (said, told) in [
            (
                "a set: unknown field `replica`, expected one of `set`",
                "a set: unknown field replica; expected one of set",
            ),
            (
                "a set: invalid type: map, expected u32",
                "a set does not fit; expected a whole number from 0, found a mapping",
            ),
            (
                "unknown field `tale`, expected one of `story`, `when`",
                "unknown field tale; expected one of story, when",
            ),
            ("unknown variant `wat`, expected `a` or `b` at line 3, column 5", "unknown word wat; expected a or b"),
            ("missing field `kind` at line 1 column 13", "no field kind; expected one"),
            ("invalid type: string \"x\", expected u32", "expected a whole number from 0, found \"x\""),
            ("invalid type: map, expected a sequence", "expected a list, found a mapping"),
            ("expected sequence start at line 2, column 7", "expected a list"),
            (
                "duplicate mapping key: kind, set DuplicateKeyPolicy in Options if acceptable",
                "the key kind twice; expected each key once",
            ),
            (
                "while parsing a block mapping, did not find expected key",
                "a line that does not line up with the keys above; expected the same indentation for all keys",
            ),
            (
                "3 parsecs is no span of time; expected is one like 30s",
                "3 parsecs is no span of time; expected is one like 30s",
            ),
        ] {
            assert_eq!(words(said).to_string(), told);
        }
    }

    #[test]
    fn documents_are_counted_by_the_lines_between_them() {
        let text = "# one\n---\na: 1\n---\nb: 2\n--- # three\nc: 3\n";
        let found: Vec<usize> = (1..=7).map(|line| document(text, line)).collect();
        assert_eq!(found, [1, 1, 1, 2, 2, 3, 3]);
    }
}
