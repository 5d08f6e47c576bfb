//! The command line: one file per word, and what they share.

mod answers;
pub mod crds;
#[cfg(feature = "shell")]
pub mod dump;
pub mod explain;
mod field;
pub mod graph;
mod memory;
mod metadata;
mod nearest;
mod observation;
mod paint;
#[cfg(feature = "sim")]
pub mod recorded;
#[cfg(feature = "sim")]
pub mod replay;
pub mod rules;
#[cfg(feature = "shell")]
pub mod run;
#[cfg(feature = "sim")]
pub mod sandbox;
mod source;
pub mod stories;
pub mod stream;
mod table;
mod told;

use clap::{Parser, Subcommand};
use std::fmt;

/// Exit code: the thing checked does not hold.
pub const UNMET: u8 = 1;
/// Exit code: bad input or usage.
pub const USAGE: u8 = 2;
/// Exit code: the environment failed.
pub const ENVIRONMENT: u8 = 3;

/// Operator for CocoonSet and CocoonHibernation: a pure core that decides, and a shell that acts.
#[derive(Debug, Parser)]
#[command(name = "cocoon-operator", version, arg_required_else_help = true, after_help = EXIT_CODES)]
pub struct Cli {
    /// The word.
    #[command(subcommand)]
    pub command: Command,
}

const EXIT_CODES: &str = "Exit codes: 0 success; 1 the thing checked does not hold; 2 bad input or usage; \
3 the environment failed.\nResults go to stdout, messages to stderr.";

/// What can be asked for.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the operator against a cluster, until SIGTERM or Ctrl-C
    #[cfg(feature = "shell")]
    Run(Box<crate::shell::options::RunOptions>),
    /// Run the operator against a cluster in the same process; needs nothing installed
    #[cfg(feature = "sim")]
    Sandbox(Box<sandbox::Args>),
    /// Read from a cluster all that a decision about an object depends on, for `explain`; changes nothing
    #[cfg(feature = "shell")]
    Dump(dump::Args),
    /// Say what the core decides about objects in files, and why; needs no cluster
    Explain(explain::Args),
    /// Play scenario files through the core and tell what happens; needs no cluster
    #[cfg(feature = "sim")]
    Replay(replay::Args),
    /// List every rule of the core, or print one in full
    Rules(rules::Args),
    /// Draw the phases of both custom resources and how they follow one another
    Graph(graph::Args),
    /// Print the manifests of both custom resources
    Crds,
}

/// Carries out what was asked for.
pub fn dispatch(command: Command) -> Result<Report, Failure> {
    match command {
        #[cfg(feature = "shell")]
        Command::Run(options) => Ok(Report { text: String::new(), code: run::run(&options) }),
        #[cfg(feature = "sim")]
        Command::Sandbox(args) => sandbox::run(&args),
        #[cfg(feature = "shell")]
        Command::Dump(args) => dump::run(&args),
        Command::Explain(args) => explain::run(&args),
        #[cfg(feature = "sim")]
        Command::Replay(args) => replay::run(&args),
        Command::Rules(args) => rules::run(&args),
        Command::Graph(args) => graph::run(&args),
        Command::Crds => crds::run(),
    }
}

/// What goes to stdout, and with which code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The result; nothing else is ever printed on stdout.
    pub text: String,
    /// 0, or 1 where the thing checked does not hold.
    pub code: u8,
}

impl Report {
    /// A result of a success.
    pub fn of(text: impl Into<String>) -> Self {
        Self { text: text.into(), code: 0 }
    }
}

/// Why there is no result: one message for stderr, and the code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The thing checked does not hold.
    Unmet(String),
    /// Bad input or usage: the message names file, document or line, field, and what is expected.
    Usage(String),
    /// The environment failed.
    Environment(String),
}

impl Failure {
    /// The exit code.
    pub const fn code(&self) -> u8 {
        match self {
            Self::Unmet(_) => UNMET,
            Self::Usage(_) => USAGE,
            Self::Environment(_) => ENVIRONMENT,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unmet(message) | Self::Usage(message) | Self::Environment(message) => f.write_str(message),
        }
    }
}

/// How a result is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// For programs.
    Json,
}

/// A message beside the result.
fn note(message: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "note: {message}");
}

/// A result for programs.
fn json(value: &impl serde::Serialize) -> Result<Report, Failure> {
    let text = serde_json::to_string_pretty(value);
    text.map(|text| Report::of(text + "\n")).map_err(|error| Failure::Environment(format!("cannot print: {error}")))
}
