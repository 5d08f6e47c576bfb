//! Colour, on a terminal only, and never against the user's wish.

use std::io::IsTerminal;

/// Paints, or leaves as it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Paint(bool);

impl Paint {
    /// As stdout and the environment want it.
    pub(super) fn for_stdout() -> Self {
        let set = |name: &str| std::env::var(name).unwrap_or_default();
        Self(wanted(&set("NO_COLOR"), &set("TERM"), std::io::stdout().is_terminal()))
    }
    /// As stderr and the environment want it.
    #[cfg(feature = "sim")]
    pub(super) fn for_stderr() -> Self {
        let set = |name: &str| std::env::var(name).unwrap_or_default();
        Self(wanted(&set("NO_COLOR"), &set("TERM"), std::io::stderr().is_terminal()))
    }
    fn with(self, code: &str, text: &str) -> String {
        if self.0 { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
    /// What a block is about.
    pub(super) fn title(self, text: &str) -> String {
        self.with("1", text)
    }
    /// The name of a rule.
    pub(super) fn rule(self, text: &str) -> String {
        self.with("36", text)
    }
    /// What is to be done.
    pub(super) fn action(self, text: &str) -> String {
        self.with("32", text)
    }
    /// What is of little interest.
    pub(super) fn faint(self, text: &str) -> String {
        self.with("2", text)
    }
    /// What needs a person.
    pub(super) fn alarm(self, text: &str) -> String {
        self.with("31", text)
    }
}

/// <https://no-color.org>: any value of `NO_COLOR` that is not empty refuses it.
fn wanted(no_color: &str, term: &str, terminal: bool) -> bool {
    terminal && no_color.is_empty() && term != "dumb"
}

#[cfg(test)]
mod tests {
    use super::{Paint, wanted};

    #[test]
    fn colour_needs_a_terminal_and_nobody_against_it() {
        assert!(wanted("", "xterm", true));
        assert!(!wanted("1", "xterm", true) && !wanted("0", "xterm", true));
        assert!(!wanted("", "dumb", true) && !wanted("", "xterm", false));
    }

    #[test]
    fn colour_is_on_or_there_is_no_trace_of_it() {
        assert_eq!(Paint(false).alarm("x"), "x");
        assert_eq!(Paint(true).alarm("x"), "\u{1b}[31mx\u{1b}[0m");
    }
}
