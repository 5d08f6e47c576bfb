//! The user's page: each of its commands, run as it stands there, in its order.
#![cfg(feature = "sim")]

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
const BINARY: &str = env!("CARGO_BIN_EXE_cocoon-operator");

/// A shell in a directory of its own, where the program is found by its name.
struct Desk {
    dir: PathBuf,
    port: String,
}

impl Desk {
    fn new() -> Self {
        let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("guide");
        drop(std::fs::remove_dir_all(&dir));
        std::fs::create_dir_all(&dir).expect("a directory of its own");
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port");
        Self { dir, port: free.port().to_string() }
    }

    fn command(&self, line: &str) -> Command {
        let (examples, address) = (format!("{ROOT}/examples/"), format!("127.0.0.1:{}", self.port));
        let mut line = line.replace("examples/", &examples).replace("127.0.0.1:8001", &address);
        if line.starts_with("cocoon-operator sandbox") {
            line += &format!(" --listen {address} --metrics-bind-address=0 --health-probe-bind-address=:0");
        }
        let bin = Path::new(BINARY).parent().expect("a directory").display().to_string();
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new("sh");
        command.arg("-c").arg(line).current_dir(&self.dir).env("PATH", format!("{bin}:{path}"));
        command.env("KUBECONFIG", "of-another-cluster").env_remove("OCI_REGISTRY").stdin(Stdio::null());
        command
    }

    fn run(&self, line: &str) -> Output {
        let output = self.command(line).output().expect("starts");
        let err = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{line}: {}\n{err}", output.status);
        output
    }

    /// in the background: it goes on while others run.
    fn start(&self, line: &str) -> Child {
        // The shell gives its place to the program, so that a signal to it is a signal to the program.
        let mut command = self.command(line);
        let line = command.get_args().nth(1).expect("the line").to_string_lossy().into_owned();
        let mut with_exec = Command::new("sh");
        with_exec.arg("-c").arg(format!("exec {line}")).current_dir(&self.dir).stdin(Stdio::null());
        with_exec.envs(command.get_envs().filter_map(|(key, value)| Some((key, value?))));
        command = with_exec;
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("starts")
    }
}

/// Every line that a person types.
fn commands() -> Vec<String> {
    let page = std::fs::read_to_string(format!("{ROOT}/docs/guide.md")).expect("the page");
    page.lines().filter_map(|line| line.strip_prefix("$ ")).map(str::to_owned).collect()
}

/// Kills it, whatever becomes of the test.
struct Running(Child);

impl Running {
    /// As Ctrl-C does.
    fn interrupt(mut self) {
        let sent = Command::new("kill").arg("-INT").arg(self.0.id().to_string()).status().expect("kill");
        assert!(sent.success());
        let since = Instant::now();
        while self.0.try_wait().expect("waits").is_none() {
            assert!(since.elapsed() < Duration::from_secs(20), "it does not end");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

#[test]
fn every_command_of_the_guide_does_what_the_page_says() {
    let desk = Desk::new();
    let mut sandbox = None;
    let commands = commands();
    assert!(commands.len() > 8, "{commands:?}");
    for line in &commands {
        assert!(line.starts_with("cocoon-operator "), "{line}");
        if let Some(line) = line.strip_suffix(" &") {
            sandbox = Some(Running(desk.start(line)));
            continue;
        }
        if line.contains(" dump ") {
            // "After some seconds."
            let since = Instant::now();
            loop {
                let tried = desk.command(line).output().expect("starts");
                let dump = std::fs::read_to_string(desk.dir.join("demo.dump")).unwrap_or_default();
                if tried.status.success() && dump.contains("exceeded quota") {
                    break;
                }
                assert!(since.elapsed() < Duration::from_secs(40), "no quota in\n{dump}");
                std::thread::sleep(Duration::from_millis(200));
            }
            continue;
        }
        if line.contains(" replay ") {
            sandbox.take().into_iter().for_each(Running::interrupt);
        }
        let output = desk.run(line);
        let out = String::from_utf8_lossy(&output.stdout);
        let first = out.lines().next().unwrap_or_default();
        match line.split_whitespace().collect::<Vec<_>>().as_slice() {
            [_, "explain", ..] => assert!(first.contains("quota"), "{out}"),
            [_, "replay", "--check", ..] => assert_eq!(out, ""),
            [_, "replay", "--as-scenario", ..] => {
                let story = std::fs::read_to_string(desk.dir.join("story.yaml")).expect("the story");
                assert!(story.contains("QuotaExceeded"), "{story}");
            }
            [_, "replay", ..] => assert!(out.contains("QuotaExceeded"), "{out}"),
            _ => assert!(!out.is_empty()),
        }
    }
}
