//! Files and stdin, as documents.

use super::Failure;
use super::field::Origin;
use crate::reading::{self, Misfit};
use serde_json::Value;
use std::io::Read;

/// A dump of a large cluster: the default of 250,000 nodes is a few hundred pods.
const MOST_NODES: usize = 50_000_000;
/// Deeper than any manifest, and safe to read recursively.
const DEEPEST: usize = 128;

/// One document and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Document {
    /// Where.
    pub origin: Origin,
    /// What.
    pub value: Value,
}

/// Reads every document of these files, in order; `-` is stdin.
pub(super) fn read_all(files: &[String]) -> Result<Vec<Document>, Failure> {
    stdin_at_most_once(files)?;
    let mut documents = Vec::new();
    for file in files {
        let found = parse(file, &read(file)?)?;
        if found.is_empty() {
            let name = name(file);
            return Err(Failure::Usage(format!("{name}: no document in it; expected YAML or JSON objects")));
        }
        documents.extend(found);
    }
    Ok(documents)
}

/// Refuses a list of files that names stdin twice.
pub(super) fn stdin_at_most_once<'a>(files: impl IntoIterator<Item = &'a String>) -> Result<(), Failure> {
    if files.into_iter().filter(|file| *file == "-").count() > 1 {
        return Err(Failure::Usage("-f -: stdin can be read once; expected it at most once".to_owned()));
    }
    Ok(())
}

fn name(file: &str) -> &str {
    match file {
        "-" => "stdin",
        "" => "\"\"",
        file => file,
    }
}

/// The text of a file, or of stdin.
pub(super) fn read(file: &str) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    let read = if file == "-" {
        std::io::stdin().lock().read_to_end(&mut bytes)
    } else {
        std::fs::File::open(file).and_then(|mut open| open.read_to_end(&mut bytes))
    };
    let name = name(file);
    read.map_err(|error| Failure::Usage(format!("{name}: cannot be read ({error}); expected a file, or - for stdin")))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let line = error.as_bytes().get(..at).unwrap_or_default().iter().filter(|byte| **byte == b'\n').count() + 1;
        Failure::Usage(format!("{name}: line {line}: not UTF-8; expected YAML or JSON text"))
    })?;
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

/// JSON has a parser of its own: faster, and no budget to run into.
fn parse(file: &str, text: &str) -> Result<Vec<Document>, Failure> {
    if !text.trim_start().starts_with(['{', '[']) {
        return yaml(file, text);
    }
    // What begins like JSON may be YAML in flow style, or JSON between lines of three dashes.
    json(file, text).or_else(|failure| yaml(file, text).map_err(|_| failure))
}

fn json(file: &str, text: &str) -> Result<Vec<Document>, Failure> {
    let mut documents = Vec::new();
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let mut line = Lines::of(text);
    loop {
        let start = stream.byte_offset();
        let Some(next) = stream.next() else { return Ok(documents) };
        let document = documents.len() + 1;
        let value = next.map_err(|error| refused(file, document, &reading::json(&error), "JSON"))?;
        documents.push(Document { origin: Origin { file: file.to_owned(), document, line: line.at(start) }, value });
    }
}

/// Line numbers of rising offsets, each byte counted once.
struct Lines<'a> {
    text: &'a [u8],
    offset: usize,
    line: u64,
}

impl<'a> Lines<'a> {
    fn of(text: &'a str) -> Self {
        Self { text: text.as_bytes(), offset: 0, line: 1 }
    }
    /// The line of the first byte at or after this offset that is no white space.
    fn at(&mut self, offset: usize) -> u64 {
        while let Some(byte) = self.text.get(self.offset) {
            if self.offset >= offset && !byte.is_ascii_whitespace() {
                break;
            }
            self.line += u64::from(*byte == b'\n');
            self.offset += 1;
        }
        self.line
    }
}

fn yaml(file: &str, text: &str) -> Result<Vec<Document>, Failure> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_nodes: MOST_NODES, max_events: MOST_NODES, max_documents: MOST_NODES,
            max_total_scalar_bytes: usize::MAX, max_depth: DEEPEST, max_total_comment_bytes: usize::MAX,
        },
        with_snippet: false,
    };
    let found = serde_saphyr::from_multiple_with_options::<serde_saphyr::Spanned<Value>>(text, options);
    let found = found.map_err(|error| {
        let misfit = reading::yaml(&error);
        refused(file, misfit.at.map_or(1, |(line, _)| reading::document(text, line)), &misfit, "YAML")
    })?;
    let document = |(at, spanned): (usize, serde_saphyr::Spanned<Value>)| {
        let origin = Origin { file: file.to_owned(), document: at + 1, line: spanned.referenced.line() };
        Document { origin, value: spanned.value }
    };
    Ok(found.into_iter().enumerate().map(document).collect())
}

/// One message: where, what stands there, what to write instead.
fn refused(file: &str, document: usize, misfit: &Misfit, language: &str) -> Failure {
    let place = misfit.at.map(|(line, column)| format!(" (line {line}, column {column})")).unwrap_or_default();
    let silent = misfit.expected.is_empty() && !misfit.found.contains("expected");
    let expected = if silent { format!("; expected {language}") } else { String::new() };
    Failure::Usage(format!("{}, document {document}{place}: no {language}: {misfit}{expected}", name(file)))
}
