//! Commands of our own, against the sandbox as people start it (two nodes, the operator and a set: `data/own.txt`), and
//! against a cluster in which nothing happens by itself (`data/bare.txt`). `UPDATE_KUBECTL=1` writes what they print
//! into these files; read the difference.

use crate::binary::{self, Kubectl, Outcome};
use crate::mask::masked;
use crate::served::Served;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

struct Sandbox {
    child: Child,
    address: String,
}

impl Sandbox {
    fn start() -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_cocoon-operator"))
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .args(["sandbox", "-f", "examples/demo.yaml", "--speed", "20", "--listen", "127.0.0.1:0"])
            .args(["--metrics-bind-address=:0", "--health-probe-bind-address=:0"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("starts");
        let mut lines = BufReader::new(child.stderr.take().expect("stderr")).lines();
        let line = lines.by_ref().map_while(Result::ok).find(|line| line.contains("http://")).expect("an address");
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        let address = line.split_once("http://").expect("an address").1;
        let address = address.split(['/', ' ']).next().expect("an address").to_owned();
        Self { child, address }
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// A command line in words; single quotes hold one together.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (at, part) in line.split('\'').enumerate() {
        if at % 2 == 1 {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    words
}

/// The words with what stands in `$(…)` replaced by what that command prints.
fn filled(words: Vec<String>, kubectl: &Kubectl) -> Vec<String> {
    let fill = |word: String| match word.split_once("$(kubectl ").map(|(before, rest)| (before, rest.split_once(')'))) {
        Some((before, Some((inner, after)))) => {
            let args: Vec<String> = inner.split_whitespace().map(str::to_owned).collect();
            format!("{before}{}{after}", kubectl.run(&args).stdout)
        }
        _ => word,
    };
    words.into_iter().map(fill).collect()
}

/// A command and its outcome as the files have them.
fn told(line: &str, outcome: &Outcome) -> String {
    let mut told = format!("$ {line}\n");
    // What goes may be gone before anybody waits for it; then nothing is said.
    let waits_for_an_end = line.contains("--for=delete");
    for out in masked(&outcome.stdout).lines().filter(|out| !(waits_for_an_end && out.ends_with(" condition met"))) {
        writeln!(told, "  {out}").expect("written");
    }
    for error in masked(&outcome.stderr).lines() {
        writeln!(told, "! {error}").expect("written");
    }
    if outcome.exit != 0 {
        writeln!(told, "exit {}", outcome.exit).expect("written");
    }
    told
}

/// Runs the commands of a file and compares what they come to with what it says.
fn play(file: &str, kubectl: &Kubectl) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kubectl/data").join(file);
    let written = std::fs::read_to_string(&path).expect("commands");
    let mut now = String::new();
    for line in written.lines() {
        if let Some(line) = line.strip_prefix("$ ") {
            let args = filled(words(line.strip_prefix("kubectl ").expect("kubectl")), kubectl);
            now.push_str(&told(line, &kubectl.run(&args)));
        } else if line.starts_with('#') || line.is_empty() {
            now.push_str(line);
            now.push('\n');
        }
    }
    if std::env::var_os("UPDATE_KUBECTL").is_some() {
        std::fs::write(&path, &now).expect("written");
        return;
    }
    let (old, new): (Vec<&str>, Vec<&str>) = (written.lines().collect(), now.lines().collect());
    let shorter = old.len().min(new.len());
    let differs = old.iter().zip(&new).position(|(old, new)| old != new);
    if let Some(at) = differs.or((old.len() != new.len()).then_some(shorter)) {
        let from = at.saturating_sub(12);
        let part = |lines: &[&str]| lines.iter().skip(from).take(30).copied().collect::<Vec<_>>().join("\n");
        panic!("{file}, from line {}\n-- written down\n{}\n-- now\n{}", at + 1, part(&old), part(&new));
    }
}

#[test]
fn a_sandbox_with_nodes_and_operator_answers_as_written_down() {
    let Some(binary) = binary::find() else { return };
    let sandbox = Sandbox::start();
    play("own.txt", &Kubectl::new(binary, &sandbox.address));
}

#[test]
fn a_cluster_without_nodes_answers_as_written_down() {
    let Some(binary) = binary::find() else { return };
    let served = Served::start();
    play("bare.txt", &Kubectl::new(binary, &served.address));
}
