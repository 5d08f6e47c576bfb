//! Where log lines go: stderr, as text or JSON, ours at the level asked for and the libraries' only where they warn.

use super::options::{LogFormat, StartupError};
use std::io::IsTerminal;
use tracing::Level;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt};

/// Starts logging for the whole process.
pub fn start(level: Level, format: LogFormat) -> Result<(), StartupError> {
    // The client's own ERROR for a refused connection is an expected outcome here, and told as one.
    let targets = Targets::new()
        .with_default(LevelFilter::WARN)
        .with_target("kube_client", LevelFilter::OFF)
        .with_target("cocoon_operator", level);
    let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let layer = match format {
        LogFormat::Text => fmt::layer().with_writer(std::io::stderr).with_ansi(colour).boxed(),
        LogFormat::Json => fmt::layer().json().flatten_event(true).with_writer(std::io::stderr).boxed(),
    };
    tracing_subscriber::registry()
        .with(layer.with_filter(targets))
        .try_init()
        .map_err(|error| StartupError::Environment { what: "logging", why: error.to_string() })
}
