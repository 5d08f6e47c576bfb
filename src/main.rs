//! The command line: parse, call, write the result to stdout and everything else to stderr, leave with a code.

use clap::Parser;
use cocoon_operator::cli::{self, Cli};
use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    match cli::dispatch(Cli::parse().command) {
        Ok(report) => print(&report),
        Err(failure) => {
            // Nothing is left to do where even stderr is gone.
            let _ = writeln!(std::io::stderr(), "{failure}");
            ExitCode::from(failure.code())
        }
    }
}

/// Writes the result in one go. A reader that has seen enough (`| head`) is no failure.
fn print(report: &cli::Report) -> ExitCode {
    let mut out = std::io::stdout().lock();
    match out.write_all(report.text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => ExitCode::from(report.code),
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => ExitCode::from(report.code),
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "cannot write the result: {error}");
            ExitCode::from(cli::ENVIRONMENT)
        }
    }
}
