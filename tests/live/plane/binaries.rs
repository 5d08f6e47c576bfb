//! Where the programs of the control plane are.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The release that the tests are written for; another minor version is refused.
const RELEASE: &str = "v1.36.";
/// What takes longer to say its version says nothing.
const ANSWER: Duration = Duration::from_secs(20);
const PROGRAMS: [&str; 5] = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"];

/// The folder with all programs: that of `KUBEBUILDER_ASSETS`, or what `make control-plane` has built. Where there is
/// none, the text says what to do.
pub fn folder() -> Result<PathBuf, String> {
    let (folder, from) = match std::env::var_os("KUBEBUILDER_ASSETS").filter(|given| !given.is_empty()) {
        Some(given) => (PathBuf::from(given), "KUBEBUILDER_ASSETS"),
        None => {
            (Path::new(env!("CARGO_MANIFEST_DIR")).join(".cache/control-plane/bin"), "what `make control-plane` builds")
        }
    };
    let missing: Vec<&str> = PROGRAMS.into_iter().filter(|program| !folder.join(program).is_file()).collect();
    if !missing.is_empty() {
        return Err(format!(
            "no control plane: {} ({from}) has no {}; run `make control-plane` (needs Go) without KUBEBUILDER_ASSETS, or \
             set that to a folder with all of {}",
            folder.display(),
            missing.join(", "),
            PROGRAMS.join(", ")
        ));
    }
    for program in PROGRAMS {
        let expected = if program == "etcd" { "etcd Version: 3." } else { RELEASE };
        let version = version(&folder.join(program))?;
        if !version.contains(expected) {
            return Err(format!(
                "{} says it is {version:?}, and the tests are for Kubernetes {RELEASE}x with etcd 3: run `make \
                 control-plane` without KUBEBUILDER_ASSETS, or set that to such a release",
                folder.join(program).display()
            ));
        }
    }
    Ok(folder)
}

fn version(program: &Path) -> Result<String, String> {
    let arguments: &[&str] = if program.ends_with("kubectl") { &["version", "--client"] } else { &["--version"] };
    let started = Command::new(program).args(arguments).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let mut child = started.map_err(|error| format!("{} does not start: {error}", program.display()))?;
    let until = Instant::now() + ANSWER;
    while matches!(child.try_wait(), Ok(None)) {
        if Instant::now() > until {
            child.kill().ok();
            return Err(format!("{} does not say its version within {ANSWER:?}", program.display()));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let output = child.wait_with_output().map_err(|error| format!("{}: {error}", program.display()))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
