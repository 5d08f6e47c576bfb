//! `rules`: every rule of the core, its meaning, where it stands, where it comes from, and its stories.

use super::nearest::nearest;
use super::table::table;
use super::{Failure, Format, Report, stories};
use crate::core::rule::Rule;
use crate::core::{RETIRED, RULES};
use serde_json::{Value, json};
use std::path::PathBuf;

/// `rules`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// One rule, in full
    #[arg(value_name = "ID")]
    pub id: Option<String>,
    /// How to print it
    #[arg(short, long, value_enum, default_value_t)]
    pub output: Format,
    /// As the page docs/rules.md
    #[arg(long, conflicts_with_all = ["id", "output", "index"])]
    pub markdown: bool,
    /// As the file src/cli/stories.txt: which transcript below this directory names which rule
    #[arg(long, value_name = "DIR", conflicts_with_all = ["id", "output"])]
    pub index: Option<PathBuf>,
}

/// One rule, with what its declaration and the stories say of it.
struct Told {
    rule: &'static Rule,
    controller: &'static str,
    text: String,
    from: Vec<String>,
    stories: Vec<&'static str>,
}

/// `rules`.
pub fn run(args: &Args) -> Result<Report, Failure> {
    if let Some(root) = &args.index {
        let index = stories::index(root);
        let failed = |error| Failure::Usage(format!("--index {}: {error}; expected a directory", root.display()));
        return index.map(Report::of).map_err(failed);
    }
    let all = all();
    if args.markdown {
        return Ok(Report::of(markdown(&all)));
    }
    match (&args.id, args.output) {
        (None, Format::Text) => Ok(Report::of(list(&all))),
        (None, Format::Json) => super::json(&all.iter().map(Told::to_json).collect::<Vec<_>>()),
        (Some(id), format) => {
            let one = all.iter().find(|told| told.rule.id == id).ok_or_else(|| unknown(id, &all))?;
            match format {
                Format::Text => Ok(Report::of(one.in_full())),
                Format::Json => super::json(&one.to_json()),
            }
        }
    }
}

fn unknown(id: &str, all: &[Told]) -> Failure {
    if let Some((_, became)) = RETIRED.iter().find(|(old, _)| *old == id) {
        return Failure::Usage(format!("rule {id} is retired: {became}"));
    }
    let near = nearest(id, all.iter().map(|told| told.rule.id));
    let hint = near.map_or_else(|| "`rules` lists them".to_owned(), |near| format!("did you mean {near}?"));
    Failure::Usage(format!("rule {id}: there is none of this name; expected CONCERN/WHAT-IT-DOES; {hint}"))
}

fn all() -> Vec<Told> {
    let of = |(controller, files): &(&'static str, &'static [&'static [&'static Rule]])| {
        let controller = *controller;
        files.iter().flat_map(|file| file.iter()).map(move |rule| Told::of(controller, rule))
    };
    RULES.iter().flat_map(of).collect()
}

impl Told {
    fn of(controller: &'static str, rule: &'static Rule) -> Self {
        let words = rule.doc.split_whitespace().collect::<Vec<_>>().join(" ");
        let (text, from) = origin(&words);
        Self { rule, controller, text, from, stories: stories::of_rule(rule.id).collect() }
    }
    fn place(&self) -> String {
        format!("{}:{}", self.rule.file, self.rule.line)
    }
    fn first_sentence(&self) -> &str {
        let end = self.text.find(". ").or_else(|| self.text.find(": ").filter(|at| *at > 40));
        end.and_then(|at| self.text.get(..at)).unwrap_or(&self.text).trim_end_matches('.')
    }
    fn to_json(&self) -> Value {
        json!({
            "id": self.rule.id, "controller": self.controller, "text": self.text, "from": self.from,
            "file": self.rule.file, "line": self.rule.line, "stories": self.stories,
        })
    }
    fn in_full(&self) -> String {
        let mut out = format!("{}\n  controller  {}\n  declared    {}\n", self.rule.id, self.controller, self.place());
        if !self.from.is_empty() {
            out.push_str(&format!("  from        {}\n", self.from.join(", ")));
        }
        match self.stories.split_first() {
            None => out.push_str("  stories     none\n"),
            Some((first, rest)) => {
                out.push_str(&format!("  stories     {first}\n"));
                rest.iter().for_each(|story| out.push_str(&format!("              {story}\n")));
            }
        }
        out.push('\n');
        wrapped(&self.text, 96).iter().for_each(|line| out.push_str(&format!("  {line}\n")));
        out
    }
}

/// The text without its last parentheses, and the spec, defect and decision IDs in these.
fn origin(doc: &str) -> (String, Vec<String>) {
    // R6, D-18b, CS-M2, CS-D.
    let is_id = |word: &str| {
        let (letters, rest) = word.split_at(word.find(|c: char| !c.is_ascii_uppercase()).unwrap_or(word.len()));
        let number = rest.strip_prefix('-').unwrap_or(rest);
        !letters.is_empty()
            && (1..=4).contains(&number.len())
            && number.bytes().all(|b| b.is_ascii_alphanumeric())
            && (rest != number || number.bytes().any(|b| b.is_ascii_digit()))
    };
    let parts = doc.strip_suffix(')').and_then(|doc| doc.rsplit_once('('));
    let Some((text, inside)) = parts else { return (doc.to_owned(), Vec::new()) };
    let ids: Vec<String> = inside.split(',').map(|word| word.trim().to_owned()).collect();
    if ids.iter().all(|id| is_id(id)) { (text.trim_end().to_owned(), ids) } else { (doc.to_owned(), Vec::new()) }
}

fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut().filter(|line| line.chars().count() + word.chars().count() < width) {
            Some(line) => {
                line.push(' ');
                line.push_str(word);
            }
            None => lines.push(word.to_owned()),
        }
    }
    lines
}

fn list(all: &[Told]) -> String {
    let head = ["RULE", "CONTROLLER", "DECLARED", "FROM", "STORIES", "MEANING"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for told in all {
        let stories = match told.stories.as_slice() {
            [] => "-".to_owned(),
            [only] => (*only).to_owned(),
            [first, rest @ ..] => format!("{first} +{}", rest.len()),
        };
        let from = if told.from.is_empty() { "-".to_owned() } else { told.from.join(",") };
        let meaning = told.first_sentence().to_owned();
        rows.push(vec![told.rule.id.to_owned(), told.controller.to_owned(), told.place(), from, stories, meaning]);
    }
    table(&rows)
}

/// Without line numbers, which move with every edit.
fn markdown(all: &[Told]) -> String {
    let mut out = "# Rules\n\nEverything the core may say, in the order in which it is asked. Written by `make docs` \
                   from the declarations; the names are lasting and never reused. `cocoon-operator rules ID` prints one \
                   with its line.\n"
        .to_owned();
    let mut last = ("", "");
    for told in all {
        if last != (told.controller, told.rule.file) {
            last = (told.controller, told.rule.file);
            out.push_str(&format!("\n## {} · {}\n", told.controller, told.rule.file));
        }
        out.push_str(&format!("\n### {}\n{}\n", told.rule.id, told.text));
        let from = if told.from.is_empty() { "-".to_owned() } else { told.from.join(", ") };
        let stories = match told.stories.as_slice() {
            [] => "-".to_owned(),
            [a, b, c, rest @ ..] if !rest.is_empty() => format!("{a}, {b}, {c} and {} more", rest.len()),
            few => few.join(", "),
        };
        out.push_str(&format!("\nFrom: {from}. Stories: {stories}\n"));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::origin;

    #[test]
    fn ids_stand_in_the_last_parentheses_or_nowhere() {
        let ids = |doc: &str| origin(doc).1;
        assert_eq!(ids("Wait (a while). (D-24, R6, CS-M2)"), ["D-24", "R6", "CS-M2"]);
        assert_eq!(ids("Wait. (D-18b, CS-D)"), ["D-18b", "CS-D"]);
        assert!(ids("Wait for a tag (OCI)").is_empty());
        assert_eq!(origin("Wait.  (R4)").0, "Wait.");
        assert!(ids("Wait (for a while)").is_empty());
        assert!(ids("Wait").is_empty());
    }
}
