//! Reads one file of the core and names what has no business there.

use proc_macro2::{Delimiter, Ident, Spacing, TokenStream, TokenTree};
use std::collections::BTreeSet;
use std::path::Path;
use syn::visit::Visit;

/// The crates that the core may use, `std` apart.
pub const CRATES: &[&str] = &["jiff", "schemars", "serde", "serde_json", "sha2", "thiserror"];

/// What it may use of `std`, and where that is less than all of a module, which names.
const STD: &[(&str, &[&str])] = &[
    ("array", &[]),
    ("ascii", &[]),
    ("borrow", &[]),
    ("boxed", &[]),
    ("char", &[]),
    ("cmp", &[]),
    ("collections", &[]),
    ("convert", &[]),
    ("default", &[]),
    ("error", &[]),
    ("fmt", &[]),
    ("hash", &["Hash", "Hasher"]),
    ("iter", &[]),
    ("marker", &[]),
    ("mem", &[]),
    ("net", &["IpAddr", "Ipv4Addr", "Ipv6Addr"]),
    ("num", &[]),
    ("ops", &[]),
    ("option", &[]),
    ("rc", &["Rc"]),
    ("result", &[]),
    ("slice", &[]),
    ("str", &[]),
    ("string", &[]),
    ("sync", &["Arc"]),
    ("time", &["Duration"]),
    ("vec", &[]),
    ("concat", &[]),
    ("format", &[]),
    ("matches", &[]),
    ("stringify", &[]),
    ("write", &[]),
    ("writeln", &[]),
];

/// What it may use of this crate.
const CRATE: &[&str] = &["core", "rules"];

/// Words that have no innocent use, wherever they stand.
const WORDS: &[&str] = &[
    "async",
    "await",
    "extern",
    "static",
    "unsafe",
    "HashMap",
    "HashSet",
    "DefaultHasher",
    "RandomState",
    "Instant",
    "SystemTime",
    "Mutex",
    "RwLock",
    "Condvar",
    "RefCell",
    "UnsafeCell",
    "OnceCell",
    "OnceLock",
    "LazyCell",
    "LazyLock",
];

/// Macros that print, look around, hide state, pull in other text, or put off a decision.
const MACROS: &[&str] = &[
    "print",
    "println",
    "eprint",
    "eprintln",
    "dbg",
    "thread_local",
    "env",
    "option_env",
    "include",
    "todo",
    "unimplemented",
];

const PRIMITIVES: &[&str] = &[
    "bool", "char", "f32", "f64", "i8", "i16", "i32", "i64", "i128", "isize", "str", "u8", "u16", "u32", "u64", "u128",
    "usize",
];

/// Every fault of this file as `line  what`; `path` is relative to `src`.
pub fn faults(path: &Path, text: &str) -> Vec<String> {
    let file = match syn::parse_file(text) {
        Ok(file) => file,
        Err(error) => return vec![format!("{}  does not parse: {error}", error.span().start().line)],
    };
    let mut names = Names::default();
    names.visit_file(&file);
    let depth = path.with_extension("").iter().filter(|part| *part != "mod").count();
    let mut scan = Scan { depth, known: names.known, faults: names.faults };
    // What `syn` has accepted is made of tokens; reading those sees into macros as well.
    let tokens: TokenStream = text.parse().expect("tokens");
    scan.stream(tokens, &[]);
    scan.faults.into_iter().map(|(line, what)| format!("{line}  {what}")).collect()
}

type Faults = BTreeSet<(usize, String)>;

/// Names that the file itself brings into scope, and attributes that would lift a fence.
#[derive(Default)]
struct Names {
    known: BTreeSet<String>,
    faults: Faults,
}

impl Visit<'_> for Names {
    fn visit_item_mod(&mut self, item: &syn::ItemMod) {
        self.known.insert(item.ident.to_string());
        syn::visit::visit_item_mod(self, item);
    }
    fn visit_use_path(&mut self, path: &syn::UsePath) {
        if let syn::UseTree::Group(group) = &*path.tree
            && group.items.iter().any(|tree| matches!(tree, syn::UseTree::Name(name) if name.ident == "self"))
        {
            self.known.insert(path.ident.to_string());
        }
        syn::visit::visit_use_path(self, path);
    }
    fn visit_use_name(&mut self, name: &syn::UseName) {
        self.known.insert(name.ident.to_string());
    }
    fn visit_use_rename(&mut self, name: &syn::UseRename) {
        self.known.insert(name.rename.to_string());
    }
    fn visit_attribute(&mut self, attribute: &syn::Attribute) {
        let tokens = attribute.meta.require_list().map(|list| list.tokens.to_string()).unwrap_or_default();
        let lifts = attribute.path().is_ident("allow") || attribute.path().is_ident("expect");
        let line = attribute.pound_token.span.start().line;
        if lifts && ["disallowed_", "wildcard_enum_match_arm", "clippy :: all"].iter().any(|lint| tokens.contains(lint))
        {
            self.faults.insert((line, format!("lifts a fence: {tokens}")));
        }
        if attribute.path().is_ident("path") {
            self.faults.insert((line, "a module whose text stands elsewhere".to_owned()));
        }
    }
}

struct Scan {
    /// How many modules deep this file lies in the crate.
    depth: usize,
    known: BTreeSet<String>,
    faults: Faults,
}

/// Where a path leads after its last name.
enum End {
    Name,
    Glob,
    Group(TokenStream),
}

impl Scan {
    /// Every path of a stream, each behind this prefix (of the `use` group in which it stands).
    fn stream(&mut self, stream: TokenStream, prefix: &[String]) {
        let tokens: Vec<TokenTree> = stream.into_iter().collect();
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            let before = at.checked_sub(1).and_then(|i| tokens.get(i));
            match token {
                TokenTree::Ident(first) => {
                    let (path, end, next) = path_from(&tokens, at, first);
                    // Neither a lifetime nor a macro's own variable is a name of anything.
                    if !is_punct(before, '\'') && (!is_punct(before, '$') || *first == "crate") {
                        self.path(first, &path, end, tokens.get(next), prefix);
                    }
                    at = next.max(at + 1);
                }
                TokenTree::Group(group) => {
                    self.stream(group.stream(), &[]);
                    at += 1;
                }
                TokenTree::Punct(star) if star.as_char() == '*' && !prefix.is_empty() => {
                    self.check(star.span().start().line, prefix, true);
                    at += 1;
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => at += 1,
            }
        }
    }

    fn path(&mut self, first: &Ident, path: &[String], end: End, next: Option<&TokenTree>, prefix: &[String]) {
        let line = first.span().start().line;
        let full: Vec<String> = prefix.iter().chain(path).cloned().collect();
        for word in path {
            let atomic = word.strip_prefix("Atomic").is_some_and(|kind| !kind.is_empty());
            if atomic || WORDS.contains(&word.as_str()) {
                self.faults.insert((line, word.clone()));
            }
        }
        let name = path.last().map(String::as_str).unwrap_or_default();
        if is_punct(next, '!') && MACROS.contains(&name) {
            self.faults.insert((line, format!("{name}!")));
        }
        // Another name for a root would hide what is reached through it.
        let renamed = matches!(next, Some(TokenTree::Ident(word)) if *word == "as");
        let roots = ["std", "alloc", "crate", "super", "self"];
        if matches!(end, End::Name) && full.len() == 1 && (full[0] == "std" || renamed && roots.contains(&name)) {
            self.faults.insert((line, format!("{name} under another name")));
        }
        match end {
            End::Name => self.check(line, &full, false),
            End::Glob => self.check(line, &full, true),
            End::Group(group) => self.stream(group, &full),
        }
    }

    fn check(&mut self, line: usize, path: &[String], glob: bool) {
        let reached = if glob { format!("{}::*", path.join("::")) } else { path.join("::") };
        if !self.allows(path, glob) {
            self.faults.insert((line, reached));
        }
    }

    fn allows(&self, path: &[String], glob: bool) -> bool {
        let names: Vec<&str> = path.iter().map(String::as_str).collect();
        let (Some(&first), rest) = (names.first(), names.get(1..).unwrap_or_default()) else { return true };
        if rest.is_empty() && !glob {
            return true;
        }
        // Whatever its type is called, it reads the clock or the machine.
        if matches!(names.last(), Some(&"now")) || names.ends_with(&["TimeZone", "system"]) {
            return false;
        }
        match first {
            "std" | "core" | "alloc" => allows_of_std(rest, glob),
            "crate" => rest.first().is_some_and(|name| CRATE.contains(name)),
            "super" => {
                let ups = names.iter().take_while(|name| **name == "super").count();
                ups < self.depth || names.get(ups).is_some_and(|name| ups == self.depth && CRATE.contains(name))
            }
            "self" | "Self" => true,
            _ => {
                first.starts_with(char::is_uppercase)
                    || CRATES.contains(&first)
                    || PRIMITIVES.contains(&first)
                    || self.known.contains(first)
                    || first == "clippy"
            }
        }
    }
}

fn allows_of_std(rest: &[&str], glob: bool) -> bool {
    let Some((module, below)) = rest.split_first() else { return false };
    let Some((_, names)) = STD.iter().find(|(name, _)| name == module) else { return false };
    match below.first() {
        Some(name) => names.is_empty() || *name == "self" || names.contains(name),
        None => !glob || names.is_empty() && *module != "collections",
    }
}

/// The names of a path that starts at this token, what it ends in, and where the next token stands.
fn path_from(tokens: &[TokenTree], start: usize, first: &Ident) -> (Vec<String>, End, usize) {
    let (mut path, mut at) = (vec![first.to_string()], start + 1);
    loop {
        let joined =
            matches!(tokens.get(at), Some(TokenTree::Punct(p)) if p.as_char() == ':' && p.spacing() == Spacing::Joint);
        if !joined || !is_punct(tokens.get(at + 1), ':') {
            return (path, End::Name, at);
        }
        match tokens.get(at + 2) {
            Some(TokenTree::Ident(name)) => path.push(name.to_string()),
            Some(TokenTree::Punct(star)) if star.as_char() == '*' => return (path, End::Glob, at + 3),
            Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
                return (path, End::Group(group.stream()), at + 3);
            }
            _ => return (path, End::Name, at + 2),
        }
        at += 3;
    }
}

fn is_punct(token: Option<&TokenTree>, which: char) -> bool {
    matches!(token, Some(TokenTree::Punct(p)) if p.as_char() == which)
}
