//! The operator as it runs in a cluster: a process of its own, which is known only by what it writes and serves.

use crate::plane::certs::Fault;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_cocoon-operator");
/// It is ready within this.
const START: Duration = Duration::from_secs(30);
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
        let operator = Self::spawn(kubeconfig, registry, log, more)?;
        operator.wait_ready()?;
        Ok(operator)
    }

    fn spawn(kubeconfig: &Path, registry: SocketAddr, log: &Path, more: &[&str]) -> Result<Self, Fault> {
        let held = [TcpListener::bind("127.0.0.1:0")?, TcpListener::bind("127.0.0.1:0")?];
        let [metrics, probes] = [held[0].local_addr()?, held[1].local_addr()?];
        drop(held);
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
        let operator = Self { child, log: log.to_owned(), metrics };
        let until = Instant::now() + START;
        while !get(probes, "/readyz").is_some_and(|answer| answer.starts_with("HTTP/1.1 200")) {
            if Instant::now() > until {
                return Err(format!("the operator is not ready after {START:?}:\n{}", operator.said()).into());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(operator)
    }

    /// It knows all objects there are.
    fn wait_ready(&self) -> Result<(), Fault> {
        let until = Instant::now() + START;
        while !self.said().contains("the work begins") {
            if Instant::now() > until {
                return Err(format!("the operator does not begin:\n{}", self.said()).into());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    /// Everything it has written.
    pub fn said(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }
    /// The lines of this level.
    pub fn lines(&self, level: &str) -> Vec<String> {
        self.said().lines().filter(|line| line.contains(&format!(" {level} "))).map(str::to_owned).collect()
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

/// True where `run` knows this flag.
pub fn knows(flag: &str) -> bool {
    let output = Command::new(PROGRAM).args(["run", "--help"]).output();
    output.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains(flag))
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
