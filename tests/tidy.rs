//! House rules that a compiler does not know: sizes, nothing put off, no words from elsewhere.

use std::path::{Path, PathBuf};
use syn::spanned::Spanned;
use syn::visit::Visit;

const LONGEST_FILE: usize = 400;
const LONGEST_FUNCTION: usize = 70;

/// Every text of the repository that people write: not what is built, recorded or generated.
fn texts() -> Vec<(PathBuf, String)> {
    let skipped = ["./target", "./.git", "./.cache", "./tests/facts", "./Cargo.lock", "./LICENSE"];
    let endings = ["rs", "md", "toml", "yaml", "yml", "sh", "snap", "json", ""];
    walkdir::WalkDir::new(".")
        .sort_by_file_name()
        .into_iter()
        .filter_entry(|entry| !skipped.iter().any(|s| entry.path() == Path::new(s)))
        .map(|entry| entry.expect("readable"))
        .filter(|entry| entry.file_type().is_file())
        .map(|entry| entry.path().strip_prefix(".").expect("below").to_path_buf())
        .filter(|path| endings.contains(&path.extension().and_then(|e| e.to_str()).unwrap_or_default()))
        .filter_map(|path| std::fs::read_to_string(&path).ok().map(|text| (path, text)))
        .collect()
}

fn rust(root: &str) -> Vec<(PathBuf, String)> {
    texts()
        .into_iter()
        .filter(|(path, _)| path.starts_with(root) && path.extension().is_some_and(|e| e == "rs"))
        .collect()
}

fn none(faults: Vec<String>) {
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

/// `path:line  what` for every line in which a fault is found.
fn by_line(path: &Path, text: &str, fault: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let lines = text.lines().enumerate();
    lines.filter_map(|(n, line)| Some(format!("{}:{}  {}", path.display(), n + 1, fault(line)?))).collect()
}

/// True where the needle stands in the line as a word of its own, in any case.
fn has_word(line: &str, needle: &str) -> bool {
    let (line, needle) = (line.to_lowercase(), needle.to_lowercase());
    let is_part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let open = !needle.starts_with(|c: char| c.is_alphanumeric());
    line.match_indices(&needle).any(|(at, found)| {
        let before = line[..at].chars().next_back();
        let after = line[at + found.len()..].chars().next();
        (open || !is_part(before)) && (needle.ends_with('/') || !is_part(after))
    })
}

#[test]
fn files_are_short_enough_to_be_read() {
    let sources = rust("src");
    assert!(sources.len() > 3, "the sources are not where this test looks for them");
    let lines = |text: &str| text.lines().count();
    none(
        sources
            .iter()
            .filter(|(_, text)| lines(text) > LONGEST_FILE)
            .map(|(path, text)| format!("{}: {} lines, at most {LONGEST_FILE}", path.display(), lines(text)))
            .collect(),
    );
}

struct Functions(Vec<(usize, usize, String)>);

impl Functions {
    fn add(&mut self, name: &syn::Ident, whole: proc_macro2::Span) {
        let length = whole.end().line - whole.start().line + 1;
        self.0.push((whole.start().line, length, name.to_string()));
    }
    fn of(text: &str) -> Vec<(usize, usize, String)> {
        let mut all = Self(Vec::new());
        all.visit_file(&syn::parse_file(text).expect("Rust"));
        all.0
    }
}

impl Visit<'_> for Functions {
    fn visit_item_fn(&mut self, f: &syn::ItemFn) {
        self.add(&f.sig.ident, f.sig.span().join(f.block.span()).unwrap_or_else(|| f.block.span()));
        syn::visit::visit_item_fn(self, f);
    }
    fn visit_impl_item_fn(&mut self, f: &syn::ImplItemFn) {
        self.add(&f.sig.ident, f.sig.span().join(f.block.span()).unwrap_or_else(|| f.block.span()));
        syn::visit::visit_impl_item_fn(self, f);
    }
    fn visit_trait_item_fn(&mut self, f: &syn::TraitItemFn) {
        self.add(&f.sig.ident, f.span());
        syn::visit::visit_trait_item_fn(self, f);
    }
}

#[test]
fn functions_are_short_enough_to_be_read() {
    let long = |(path, text): &(PathBuf, String)| -> Vec<String> {
        let functions = Functions::of(text).into_iter().filter(|(_, length, _)| *length > LONGEST_FUNCTION);
        functions
            .map(|(line, length, name)| {
                format!("{}:{line}  fn {name}: {length} lines, at most {LONGEST_FUNCTION}", path.display())
            })
            .collect()
    };
    none(rust("src").iter().flat_map(long).collect());
}

#[test]
fn nothing_is_put_off() {
    // In pieces, so that this list does not find itself.
    let words = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X"), concat!("HA", "CK")];
    let calls = [concat!("to", "do!("), concat!("unimple", "mented!("), concat!("#[ig", "nore")];
    let fault = |line: &str| {
        let word = words.iter().find(|w| line.split(|c: char| !c.is_ascii_alphanumeric()).any(|part| part == **w));
        word.or_else(|| calls.iter().find(|call| line.contains(**call))).map(|what| (*what).to_owned())
    };
    let proof = Path::new("tests/purity/proof.rs");
    none(
        texts().iter().filter(|(path, _)| path != proof).flat_map(|(path, text)| by_line(path, text, fault)).collect(),
    );
}

/// The repository speaks of the project: not of who wrote it, with what, or on which machine.
#[test]
fn no_word_is_from_elsewhere() {
    let foreign = [
        concat!("clau", "de"),
        concat!("anth", "ropic"),
        concat!("open", "ai"),
        concat!("chat", "gpt"),
        concat!("copi", "lot"),
        concat!("co-authored", "-by"),
        concat!("l", "lm"),
        concat!("l", "lms"),
        concat!("language ", "model"),
        concat!("pro", "mpt"),
        concat!("pro", "mpts"),
        concat!("ses", "sion"),
        concat!("ses", "sions"),
        concat!("work", "tree"),
        concat!("/wo", "rk/"),
        concat!("/tm", "p/"),
        concat!("/ro", "ot/"),
    ];
    let fault = |line: &str| foreign.iter().find(|word| has_word(line, word)).map(|word| (*word).to_owned());
    none(texts().iter().flat_map(|(path, text)| by_line(path, text, fault)).collect());
}

#[test]
fn these_rules_find_what_they_look_for() {
    assert!(has_word("A Word, here", "word") && !has_word("swordfish", "word") && !has_word("words", "word"));
    assert!(has_word("see /a/b/c", "/b/") && !has_word("see /ab/c", "/b/"));
    let long = format!("impl S {{ fn f() {{\n{}}} }}", "g();\n".repeat(LONGEST_FUNCTION));
    assert_eq!(Functions::of(&long), [(1, LONGEST_FUNCTION + 2, "f".to_owned())]);
    assert_eq!(by_line(Path::new("x"), "a\nb", |line| (line == "b").then(|| "no".to_owned())), ["x:2  no"]);
    assert!(texts().iter().any(|(path, _)| path == Path::new("Cargo.toml")));
}
