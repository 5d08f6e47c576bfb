//! Rules: the named things a concern may say, and where their prose lives.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;

/// Why, for people. Constant text costs nothing.
pub type Because = Cow<'static, str>;

/// A rule's lasting name, `concern/what-it-does`: printed, logged, counted, never reused.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RuleId(pub Cow<'static, str>);

impl fmt::Display for RuleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One rule: its name, the prose of its doc comment, and where it stands.
#[derive(Debug, PartialEq, Eq)]
pub struct Rule {
    /// `concern/what-it-does`.
    pub id: &'static str,
    /// The doc comment: what it means, what goes wrong without it, the spec and defect IDs it comes from.
    pub doc: &'static str,
    /// Source file.
    pub file: &'static str,
    /// Line of its declaration.
    pub line: u32,
}

impl Rule {
    /// The name as it travels in decisions.
    pub const fn id(&self) -> RuleId {
        RuleId(Cow::Borrowed(self.id))
    }
}

/// The line of a declaration: its block begins at `first`, and before it stand as many lines as its doc comment and
/// those of the rules before it have, and one for each of these rules. `line!` only knows the block.
pub const fn line_of(first: u32, docs: &[u32], at: usize) -> u32 {
    let (mut line, mut rule) = (first, 0);
    while rule <= at && rule < docs.len() {
        line += docs[rule] + 1;
        rule += 1;
    }
    line
}

/// Where this name stands among these; at the end where it does not.
pub const fn position(names: &[&str], name: &str) -> usize {
    let mut at = 0;
    while at < names.len() && !same(names[at].as_bytes(), name.as_bytes()) {
        at += 1;
    }
    at
}

const fn same(one: &[u8], other: &[u8]) -> bool {
    let mut at = 0;
    while at < one.len() && at < other.len() && one[at] == other[at] {
        at += 1;
    }
    at == one.len() && at == other.len()
}

/// Declares the rules of one concern; the doc comments become the text of `rules` and `explain`.
#[macro_export]
macro_rules! rules {
    ($( $(#[doc = $doc:literal])+ $name:ident = $id:literal; )+) => {
        $( $(#[doc = $doc])+
        pub const $name: $crate::core::rule::Rule = $crate::core::rule::Rule {
            id: $id, doc: concat!($($doc, "\n"),+), file: file!(),
            line: $crate::core::rule::line_of(line!(), DOC_LINES, $crate::core::rule::position(IDS, $id)),
        }; )+
        /// Every rule declared in this file, in reading order.
        pub const RULES: &[&$crate::core::rule::Rule] = &[$(&$name),+];
        const IDS: &[&str] = &[$($id),+];
        const DOC_LINES: &[u32] = &[$([$($doc),+].len() as u32),+];
    };
}
