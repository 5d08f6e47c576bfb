//! Colour, on a terminal only, and never against the user's wish.

use std::io::IsTerminal;

/// Paints, or leaves as it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Paint(bool);

impl Paint {
    /// As stdout and the environment want it: <https://no-color.org> asks for any value that is not empty.
    pub(super) fn for_stdout() -> Self {
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
            || std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self(!refused && std::io::stdout().is_terminal())
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

#[cfg(test)]
mod tests {
    use super::Paint;

    #[test]
    fn colour_is_on_or_there_is_no_trace_of_it() {
        assert_eq!(Paint(false).alarm("x"), "x");
        assert_eq!(Paint(true).alarm("x"), "\u{1b}[31mx\u{1b}[0m");
    }
}
