//! What holds of every word: codes, streams, help, a reader that goes away.

use super::{program, run, set};
use std::process::Stdio;

#[test]
fn wrong_usage_leaves_with_two_and_nothing_on_stdout() {
    for args in [
        &[][..],
        &["explian"],
        &["explain"],
        &["explain", "-f"],
        &["explain", "-f", "-", "-o", "xml"],
        &["explain", "-f", "-", "--object", "x"],
        &["explain", "-f", "-", "--object", "a/b/c"],
        &["explain", "-f", "-", "--what"],
        &["rules", "a", "b"],
        &["rules", "--markdown", "-o", "json"],
        &["crds", "more"],
        &["dump", "-s", "ftp://x", "--all"],
        &["dump", "-s", "http://127.0.0.1:1", "-n", "a/b", "cocoonset/demo"],
    ] {
        let ran = run(args, b"");
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{args:?}: {}", ran.err);
        assert!(!ran.err.is_empty(), "{args:?}");
    }
    assert!(run(&["explian"], b"").err.contains("explain"), "what was meant");
}

/// A proxy in the environment stands before the registry; the API server is asked directly, and one in the kubeconfig is
/// refused in words.
#[test]
fn a_proxy_in_the_environment_is_not_the_api_servers() {
    let dump = |name: &str, more: &str| {
        let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("kubeconfig-{name}"));
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{{name: a, context: {{cluster: a, user: a}}}}]\n\
             users: [{{name: a, user: {{}}}}]\nclusters: [{{name: a, cluster: {{server: 'http://127.0.0.1:1'{more}}}}}]\n"
        );
        std::fs::write(&path, text).expect("written");
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_cocoon-operator"))
            .args(["dump", "--kubeconfig", &path.display().to_string(), "cocoonset/x"])
            .env("HTTPS_PROXY", "http://127.0.0.1:3128")
            .output()
            .expect("runs");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let plain = dump("plain", "");
    assert!(!plain.contains("proxy") && plain.contains("http://127.0.0.1:1"), "{plain}");
    let proxied = dump("proxied", ", proxy-url: 'http://127.0.0.1:3128'");
    assert!(proxied.contains("proxy-url"), "{proxied}");
}

/// What is wrong with a kubeconfig is told as of any other file: once, in one line, without a library's words.
#[cfg(feature = "shell")]
#[test]
fn a_kubeconfig_that_does_not_read_is_told_in_one_line() {
    for (name, text, told) in [
        (
            "open",
            "clusters: [\n",
            "line 1, column 11: no YAML of a kubeconfig: a bracket that is never closed; expected",
        ),
        ("list", "clusters: 5\n", "line 1, column 11: no YAML of a kubeconfig: expected a list"),
        ("empty", "", "expected current-context: NAME"),
    ] {
        let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("kubeconfig-{name}"));
        std::fs::write(&path, text).expect("written");
        let path = path.display().to_string();
        for args in [
            &["dump", "--kubeconfig", &path, "cocoonset/x"][..],
            &["run", "--oci-registry=a.b/c", "--kubeconfig", &path],
        ] {
            let ran = run(args, b"");
            assert_eq!((ran.code, ran.out.as_str(), ran.err.lines().count()), (2, "", 1), "{args:?}: {}", ran.err);
            assert!(
                ran.err.contains(&format!("kubeconfig {path}: ")) && ran.err.contains(told),
                "{args:?}: {}",
                ran.err
            );
        }
    }
    let ran = run(&["dump", "--kubeconfig", "no-such-file", "cocoonset/x"], b"");
    assert!(ran.err.starts_with("kubeconfig no-such-file: cannot be read ("), "{}", ran.err);
}

/// Of several files those that are not there are passed over, as kubectl does.
#[cfg(feature = "shell")]
#[test]
fn a_kubeconfig_of_several_files_may_lack_some() {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("kubeconfig-of-two");
    let text = "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: c, cluster: {server: \"http://127.0.0.1:1\"}}]\n\
                contexts: [{name: c, context: {cluster: c}}]\n";
    std::fs::write(&path, text).expect("written");
    let two = format!("{}:no-such-file", path.display());
    let ran = run(&["dump", "--kubeconfig", &two, "cocoonset/x"], b"");
    assert_eq!(ran.code, 3, "it is read, and nobody answers there: {}", ran.err);
    let ran = run(&["dump", "--kubeconfig", "no-such-file:nor-this", "cocoonset/x"], b"");
    assert!(ran.code == 2 && ran.err.contains("cannot be read ("), "{}", ran.err);
}

#[test]
fn a_directory_that_is_none_is_no_index() {
    let ran = run(&["rules", "--index", "no-such-directory"], b"");
    assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{}", ran.err);
    assert!(ran.err.contains("--index no-such-directory: ") && ran.err.contains("expected a directory"), "{}", ran.err);
}

#[test]
fn help_and_version_are_results() {
    let help = run(&["--help"], b"");
    assert_eq!((help.code, help.err.as_str()), (0, ""));
    for word in ["run", "sandbox", "dump", "explain", "replay", "rules", "graph", "crds", "Exit codes: 0 success; 1"] {
        assert!(help.out.contains(word), "{word}");
    }
    let version = run(&["--version"], b"");
    assert_eq!((version.code, version.out.trim()), (0, concat!("cocoon-operator ", env!("CARGO_PKG_VERSION"))));
}

#[test]
fn crds_prints_the_files() {
    let ran = run(&["crds"], b"");
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    let mut files: Vec<_> = std::fs::read_dir("crds").expect("crds").flatten().map(|entry| entry.path()).collect();
    // The list of them is written by hand.
    files.retain(|path| !path.ends_with("kustomization.yaml"));
    files.sort();
    assert_eq!(files.len(), 2);
    let stored: Vec<String> = files.iter().map(|path| std::fs::read_to_string(path).expect("readable")).collect();
    let mut printed: Vec<String> = ran.out.split("---\n").skip(1).map(|text| format!("---\n{text}")).collect();
    printed.sort();
    let mut sorted = stored;
    sorted.sort();
    assert_eq!(printed, sorted);
}

/// `explain … | head -1`: the reader has seen enough, and nobody complains.
#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("many.json");
    let text: String = (0..400).map(|at| format!("{}\n", set("a", &format!("x{at:03}")))).collect();
    std::fs::write(&file, text).expect("written");
    let mut child = program()
        .args(["explain", "-f"])
        .arg(&file)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("ends");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn no_colour_reaches_a_pipe() {
    let mut command = program();
    command.args(["explain", "-f", "tests/cli/data/kubectl-list.yaml"]).env("TERM", "xterm-256color");
    for no_color in [None, Some("1")] {
        match no_color {
            Some(value) => command.env("NO_COLOR", value),
            None => command.env_remove("NO_COLOR"),
        };
        let output = command.output().expect("runs");
        assert!(output.status.success());
        assert!(!output.stdout.contains(&0x1b), "{no_color:?}");
    }
}
