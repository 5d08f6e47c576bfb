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

/// Declares the rules of one concern; the doc comments become the text of `rules` and `explain`.
#[macro_export]
macro_rules! rules {
    ($( $(#[doc = $doc:literal])+ $name:ident = $id:literal; )+) => {
        $( $(#[doc = $doc])+
        pub const $name: $crate::core::rule::Rule = $crate::core::rule::Rule {
            id: $id, doc: concat!($($doc, "\n"),+), file: file!(), line: line!(),
        }; )+
        /// Every rule declared in this file, in reading order.
        pub const RULES: &[&$crate::core::rule::Rule] = &[$(&$name),+];
    };
}
