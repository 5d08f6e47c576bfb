//! Where log lines go: stderr, as text or JSON, ours at the level asked for and the libraries' only where they warn.

use super::options::{LogFormat, StartupError};
use std::io::IsTerminal;
use tracing::Level;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt};

/// Starts logging for the whole process.
pub fn start(level: Level, format: LogFormat) -> Result<(), StartupError> {
    let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let layer = layer(level, format, colour, std::io::stderr);
    tracing_subscriber::registry()
        .with(layer)
        .try_init()
        .map_err(|error| StartupError::Environment { what: "logging", why: error.to_string() })
}

/// What is written, and how, wherever it is written to. A line about an object has the fields `controller`, `namespace`,
/// `name` and, where a rule stands behind it, `rule`.
pub fn layer<S, W>(level: Level, format: LogFormat, colour: bool, to: W) -> Box<dyn Layer<S> + Send + Sync>
where
    S: tracing::Subscriber + for<'a> LookupSpan<'a>,
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    // The client's own ERROR for a refused connection is an expected outcome here, and told as one.
    let targets = Targets::new()
        .with_default(LevelFilter::WARN)
        .with_target("kube_client", LevelFilter::OFF)
        .with_target("cocoon_operator", level);
    match format {
        LogFormat::Text => fmt::layer().with_writer(to).with_ansi(colour).with_filter(targets).boxed(),
        LogFormat::Json => fmt::layer().json().flatten_event(true).with_writer(to).with_filter(targets).boxed(),
    }
}
