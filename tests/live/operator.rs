//! The operator as it runs in a cluster: a process of its own, which is known only by what it writes and serves.

use crate::plane::certs::Fault;
use crate::plane::ports;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_cocoon-operator");
/// It is ready within this.
const START: Duration = Duration::from_secs(30);
/// What it says once it knows all objects there are.
const BEGINS: &str = "the work begins";
/// It has nothing to do once it has had nothing to do for this long: its own writes come back to it sooner.
const CALM: Duration = Duration::from_secs(2);
/// It comes to rest within this.
const SETTLE: Duration = Duration::from_secs(60);
/// It ends within this when it is asked to.
const GRACE: Duration = Duration::from_secs(25);

/// A running operator. Dropping it ends it.
pub struct Operator {
    child: Child,
    log: PathBuf,
    metrics: SocketAddr,
}

impl Operator {
    /// Starts one and waits until it is ready.
    pub fn start(kubeconfig: &Path, registry: SocketAddr, log: &Path, more: &[&str]) -> Result<Self, Fault> {
        let mut operator = Self::spawn(kubeconfig, registry, log, more)?;
        operator.wait_ready()?;
        Ok(operator)
    }

    fn spawn(kubeconfig: &Path, registry: SocketAddr, log: &Path, more: &[&str]) -> Result<Self, Fault> {
        let ports = ports::free(2)?;
        let [metrics, probes] = [ports[0], ports[1]].map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
        let child = Command::new(PROGRAM)
            .env_clear()
            .arg("run")
            .args(["--kubeconfig".as_ref(), kubeconfig.as_os_str()])
            .args(["--oci-registry", &format!("{registry}/vms")])
            .args(["--metrics-bind-address", &metrics.to_string()])
            .args(["--health-probe-bind-address", &probes.to_string()])
            .args(more)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(log)?)
            .spawn()?;
        let mut operator = Self { child, log: log.to_owned(), metrics };
        operator.until(START, "ready", |_| {
            Ok(get(probes, "/readyz").is_some_and(|answer| answer.starts_with("HTTP/1.1 200")))
        })?;
        Ok(operator)
    }

    /// It knows all objects there are.
    fn wait_ready(&mut self) -> Result<(), Fault> {
        self.until(START, "at work", |operator| Ok(operator.said()?.contains(BEGINS)))
    }

    /// Waits until this is so, for as long as it runs.
    fn until(
        &mut self,
        longest: Duration,
        what: &str,
        holds: impl Fn(&Self) -> Result<bool, Fault>,
    ) -> Result<(), Fault> {
        let until = Instant::now() + longest;
        while !holds(self)? {
            if let Some(status) = self.child.try_wait()? {
                return Err(format!("the operator ended by itself ({status}):\n{}", self.said()?).into());
            }
            if Instant::now() > until {
                return Err(format!("the operator is not {what} after {longest:?}:\n{}", self.said()?).into());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    /// Waits until it has looked at each of these objects and come to rest, and has had nothing to do since for `CALM`.
    pub fn settles(&mut self, namespace: &str, names: &[&str]) -> Result<Duration, Fault> {
        let begun = Instant::now();
        let looked_at = |operator: &Self| {
            let at_rest = operator.lines("DEBUG")?;
            let namespace = format!("namespace=\"{namespace}\"");
            let is_of = |line: &String, name: &str| {
                line.contains("at rest") && line.contains(&namespace) && line.contains(&format!(" name=\"{name}\""))
            };
            Ok(names.iter().all(|name| at_rest.iter().any(|line| is_of(line, name))))
        };
        self.until(SETTLE, "at rest on everything", looked_at)?;
        let (mut passes, mut since) = (self.passes()?, Instant::now());
        let until = Instant::now() + SETTLE;
        while since.elapsed() < CALM {
            if Instant::now() > until {
                return Err(format!("the operator has no rest:\n{}", self.said()?).into());
            }
            std::thread::sleep(Duration::from_millis(100));
            let is_idle = self.metric("workqueue_depth")? + self.metric("controller_runtime_active_workers")? == 0.0;
            let now = self.passes()?;
            if now != passes || !is_idle {
                (passes, since) = (now, Instant::now());
            }
        }
        Ok(begun.elapsed())
    }

    /// How many passes are over.
    fn passes(&self) -> Result<f64, Fault> {
        self.metric("controller_runtime_reconcile_total")
    }
    /// Everything it has written.
    pub fn said(&self) -> Result<String, Fault> {
        Ok(std::fs::read_to_string(&self.log)?)
    }
    /// The lines of this level.
    pub fn lines(&self, level: &str) -> Result<Vec<String>, Fault> {
        let (said, level) = (self.said()?, format!(" {level} "));
        if !said.lines().any(|line| line.contains(" INFO ") && line.contains(BEGINS)) {
            return Err(format!("this is no log of an operator at work:\n{said}").into());
        }
        Ok(said.lines().filter(|line| line.contains(&level)).map(str::to_owned).collect())
    }
    /// The sum of all series of a metric.
    pub fn metric(&self, name: &str) -> Result<f64, Fault> {
        let text = get(self.metrics, "/metrics").ok_or("no metrics are served")?;
        let series =
            text.lines().filter(|line| line.starts_with(&format!("{name}{{")) || line.starts_with(&format!("{name} ")));
        let values: Vec<f64> = series.filter_map(|line| line.rsplit_once(' ')?.1.parse().ok()).collect();
        if values.is_empty() { Err(format!("no metric {name} in\n{text}").into()) } else { Ok(values.iter().sum()) }
    }
    /// How often a pass was an error.
    pub fn errors(&self) -> Result<f64, Fault> {
        self.metric("controller_runtime_reconcile_errors_total")
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status().ok();
        let until = Instant::now() + GRACE;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(20));
        }
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// One whole answer, with its head.
fn get(address: SocketAddr, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(2)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(10))).ok()?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    Some(String::from_utf8_lossy(&answer).into_owned())
}
