//! Where kubectl is, and one run of it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The words of older ones differ from what was recorded.
const MINOR: u32 = 36;
const HOW: &str = "no kubectl of 1.36 or newer: `make kubectl` builds one, or name one by KUBECTL=/path/to/kubectl";

/// A kubectl with a home of its own, talking to one server.
pub struct Kubectl {
    binary: PathBuf,
    home: PathBuf,
}

/// What a command came to.
#[derive(Debug, PartialEq, Eq)]
pub struct Outcome {
    pub exit: i32,
    pub stdout: String,
    pub stderr: String,
}

/// A kubectl that speaks as recorded. None where there is none, and no CI that insists on it.
pub fn find() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let named = std::env::var_os("KUBECTL").map(PathBuf::from);
    let assets = std::env::var_os("KUBEBUILDER_ASSETS").map(|assets| PathBuf::from(assets).join("kubectl"));
    let built = Some(root.join(".cache/control-plane/bin/kubectl"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).map(|folder| folder.join("kubectl"));
    let known = [named, assets, built].into_iter().flatten();
    let found = known.chain(on_path).find(|binary| binary.is_file() && minor(binary).is_some_and(|it| it >= MINOR));
    if found.is_none() {
        assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "{HOW}");
        eprintln!("left out: {HOW}");
    }
    found
}

fn minor(binary: &Path) -> Option<u32> {
    let run = Command::new(binary).args(["version", "--client", "-o", "json"]).stdin(Stdio::null()).output().ok()?;
    let said: serde_json::Value = serde_json::from_slice(&run.stdout).ok()?;
    let minor = said["clientVersion"]["minor"].as_str()?;
    minor.trim_end_matches('+').parse().ok()
}

impl Kubectl {
    /// One that has never talked to anybody, for the server at this address.
    pub fn new(binary: PathBuf, address: &str) -> Self {
        let home = std::env::temp_dir().join(format!("kubectl-{}-{}", std::process::id(), address.replace(':', "-")));
        std::fs::create_dir_all(&home).expect("a folder");
        let config = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: sandbox\n\
             clusters: [{{name: sandbox, cluster: {{server: \"http://{address}\"}}}}]\n\
             contexts: [{{name: sandbox, context: {{cluster: sandbox}}}}]\n"
        );
        std::fs::write(home.join("config"), config).expect("a file");
        Self { binary, home }
    }

    /// Runs it beside the manifests.
    pub fn run(&self, args: &[String]) -> Outcome {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kubectl/data");
        let mut command = Command::new(&self.binary);
        command.args(args).current_dir(folder).stdin(Stdio::null());
        command.env("HOME", &self.home).env("KUBECONFIG", self.home.join("config"));
        // What `kubectl edit` opens: the change that a person would make.
        command.env("KUBE_EDITOR", "sed -i s/team:.a/team:\\ b/");
        let run = command.output().expect("runs");
        Outcome {
            exit: run.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&run.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&run.stderr).into_owned(),
        }
    }
}

impl Drop for Kubectl {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.home).ok();
    }
}
