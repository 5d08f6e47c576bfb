//! One process of the control plane: started, watched and ended by its id; what it says goes to a file.

use super::certs::Fault;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A process that asked to stop gets this long before it is killed.
const GRACE: Duration = Duration::from_secs(8);

/// A running program. Dropping it ends it.
pub struct Process {
    name: &'static str,
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts a program of the folder `bin`; what it says is appended to `LOGS/NAME.log`.
    pub fn start(bin: &Path, name: &'static str, arguments: &[String], logs: &Path) -> Result<Self, Fault> {
        let log = logs.join(format!("{name}.log"));
        let out = File::options().create(true).append(true).open(&log)?;
        let child = Command::new(bin.join(name))
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(out.try_clone()?)
            .stderr(out)
            .spawn()
            .map_err(|error| format!("{}: {error}", bin.join(name).display()))?;
        Ok(Self { name, child, log })
    }

    /// An error with the last of its log where it has ended by itself.
    pub fn must_run(&mut self) -> Result<(), Fault> {
        let Some(status) = self.child.try_wait()? else { return Ok(()) };
        Err(format!("{} ended by itself ({status}):\n{}", self.name, self.last_words()).into())
    }

    /// The last lines of its log.
    pub fn last_words(&self) -> String {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(25)..].join("\n")
    }

    /// Ends it at once, as a machine that loses power would.
    pub fn kill(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }

    /// Asks it to stop, and kills it where it does not.
    pub fn stop(&mut self) {
        if matches!(self.child.try_wait(), Ok(Some(_)) | Err(_)) {
            return;
        }
        let asked = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status();
        let until = Instant::now() + GRACE;
        while asked.as_ref().is_ok_and(|status| status.success()) && Instant::now() < until {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        self.kill();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.stop();
    }
}
