//! The sandbox as a person and a script use it: real processes, real ports, the cluster's nodes at many times their pace.
#![cfg(feature = "sim")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// No wait of these tests is longer.
const PATIENCE: Duration = Duration::from_secs(40);
const SETS: &str = "/apis/cocoonset.cocoonstack.io/v1/namespaces/default/cocoonsets";

/// A process, with its stderr as it comes.
struct Process {
    child: Child,
    said: Arc<Mutex<Vec<String>>>,
}

/// What a process left behind.
struct Left {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Process {
    fn start(args: &[&str], env: &[(&str, &str)]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cocoon-operator"));
        command.current_dir(env!("CARGO_MANIFEST_DIR")).args(args).envs(env.iter().copied());
        let piped = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = piped.spawn().expect("starts");
        let said = Arc::new(Mutex::new(Vec::new()));
        let (lines, to) = (BufReader::new(child.stderr.take().expect("stderr")).lines(), Arc::clone(&said));
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(|line| to.lock().expect("sound").push(line)));
        Self { child, said }
    }

    /// A sandbox on free ports.
    fn sandbox(args: &[&str]) -> Self {
        let ports = ["--listen", "127.0.0.1:0", "--metrics-bind-address=:0", "--health-probe-bind-address=:0"];
        Self::start(&[&["sandbox"], &ports[..], args].concat(), &[])
    }

    fn said(&self) -> String {
        self.said.lock().expect("sound").join("\n")
    }

    /// The first line that contains this.
    fn line(&self, part: &str) -> String {
        let since = Instant::now();
        while since.elapsed() < PATIENCE {
            let found = self.said.lock().expect("sound").iter().find(|line| line.contains(part)).cloned();
            if let Some(line) = found {
                return line;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("never said: {part}\n{}", self.said());
    }

    /// `host:port` of a line of the head.
    fn port(&self, label: &str) -> String {
        let line = self.line(label);
        let address = line.split_once("http://").expect("an address").1;
        address.split(['/', ' ']).next().expect("an address").to_owned()
    }

    fn terminate(&self) {
        self.signal("-TERM");
    }

    fn signal(&self, signal: &str) {
        let status = Command::new("kill").arg(signal).arg(self.child.id().to_string()).status().expect("kill");
        assert!(status.success());
    }

    fn end(mut self) -> Left {
        let since = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("waits") {
                break status;
            }
            assert!(since.elapsed() < PATIENCE, "does not end\n{}", self.said());
            std::thread::sleep(Duration::from_millis(20));
        };
        let mut out = String::new();
        self.child.stdout.take().expect("stdout").read_to_string(&mut out).expect("text");
        // The reader of stderr is a moment behind.
        std::thread::sleep(Duration::from_millis(100));
        Left { code: status.code(), out, err: self.said() }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Gone already, where the test went well.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn http(address: &str, method: &str, path: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("connected");
    let length = body.len();
    let head = format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n");
    let head = format!("{head}Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n");
    stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes())).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("text");
    answer
}

fn file(name: &str, text: &str) -> String {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).expect("written");
    path.display().to_string()
}

/// A kubeconfig for this API; its path.
fn kubeconfig(name: &str, api: &str) -> String {
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: sandbox\n\
         clusters: [{{name: sandbox, cluster: {{server: \"http://{api}\"}}}}]\n\
         contexts: [{{name: sandbox, context: {{cluster: sandbox}}}}]\n"
    );
    file(name, &text)
}

fn ended(args: &[&str]) -> Left {
    Process::sandbox(args).end()
}

#[test]
fn every_example_reaches_running() {
    let files = ["demo", "full", "toolboxes"].map(|name| format!("examples/{name}.yaml"));
    let mut args: Vec<&str> = files.iter().flat_map(|file| ["-f", file]).collect();
    let conditions = ["demo", "full", "tools"].map(|name| format!("cocoonset/{name}=Running"));
    args.extend(conditions.iter().flat_map(|condition| ["--until", condition]));
    args.extend(["--until", "pods=ready", "--until", "cocoonset/demo:Ready=True", "--timeout", "30s", "--speed", "20"]);
    let left = ended(&args);
    assert_eq!(left.code, Some(0), "{}", left.err);
    let held: Vec<&str> = left.out.lines().map(|line| line.split(' ').next().unwrap_or("")).collect();
    assert_eq!(held[..3], conditions, "stdout is the result and nothing else");
    assert_eq!(held[3..], ["pods=ready", "cocoonset/demo:Ready=True"]);
    for line in ["default/demo  Running  3/3 agents, 1/1 toolboxes", "pod default/full-0  Ready on node-a (vm vk-"] {
        assert!(left.err.contains(line), "{line}\n{}", left.err);
    }
    assert!(!left.err.contains('\u{1b}') && !left.err.contains("ERROR"), "{}", left.err);
}

#[test]
fn gone_is_reached_when_the_set_is_deleted_over_http() {
    let sandbox = Process::sandbox(&["-f", "examples/demo.yaml", "--until", "gone", "--speed", "20"]);
    sandbox.line("default/demo  Running");
    let delete = sandbox.line("curl -X DELETE http://");
    let (address, path) = delete.split_once("http://").expect("an address").1.split_once('/').expect("a path");
    let answer = http(address, "DELETE", &format!("/{path}"), "");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let left = sandbox.end();
    assert_eq!(left.code, Some(0), "{}", left.err);
    assert!(left.out.starts_with("gone after "), "{}", left.out);
    assert!(left.err.contains("pod default/demo-2  gone") && left.err.contains("default/demo  gone"), "{}", left.err);
}

/// `run` in a process of its own, against the served API and the served registry, without credentials.
#[test]
fn an_operator_beside_it_does_the_same() {
    let args = ["-f", "examples/demo.yaml", "--until", "gone", "--no-operator", "--registry-listen", "127.0.0.1:0"];
    let sandbox = Process::sandbox(&[&args[..], &["--speed", "20", "--timeout", "50s"]].concat());
    let (api, registry) = (sandbox.port("Kubernetes API"), sandbox.port("Registry"));
    let kubeconfig = kubeconfig("kubeconfig.yaml", &api);
    let base = format!("{registry}/base");
    let ports = ["--metrics-bind-address=127.0.0.1:0", "--health-probe-bind-address=0"];
    let operator = Process::start(
        &[&["run", "--leader-elect=false"], &ports[..]].concat(),
        &[("KUBECONFIG", &kubeconfig), ("OCI_REGISTRY", &base)],
    );
    sandbox.line("default/demo  Running  3/3 agents, 1/1 toolboxes");
    assert!(http(&api, "DELETE", &format!("{SETS}/demo"), "").starts_with("HTTP/1.1 200"));
    let left = sandbox.end();
    assert_eq!(left.code, Some(0), "{}\n{}", left.err, operator.said());
    operator.terminate();
    let left = operator.end();
    assert_eq!(left.code, Some(0), "{}", left.err);
    assert!(left.err.contains("serving /metrics") && !left.err.contains("ERROR"), "{}", left.err);
}

/// Replicas in processes of their own: one leads. It is killed, frozen, or stopped, and each time another goes on.
#[test]
fn one_of_several_operators_leads() {
    let args = ["-f", "examples/demo.yaml", "--until", "gone", "--no-operator", "--registry-listen", "127.0.0.1:0"];
    let sandbox = Process::sandbox(&[&args[..], &["--speed", "50", "--timeout", "100s"]].concat());
    let (api, base) = (sandbox.port("Kubernetes API"), format!("{}/base", sandbox.port("Registry")));
    let kubeconfig = kubeconfig("replicas.yaml", &api);
    let start = || {
        let terms = ["--leader-elect-lease-duration=8s", "--leader-elect-renew-deadline=7s"];
        let ports = ["--leader-elect-retry-period=1s", "--metrics-bind-address=127.0.0.1:0"];
        let probes = ["--health-probe-bind-address=127.0.0.1:0"];
        let args = [&["run"], &terms[..], &ports[..], &probes[..]].concat();
        Process::start(&args, &[("KUBECONFIG", &kubeconfig), ("OCI_REGISTRY", &base)])
    };
    let scale = |replicas: u32| {
        let set = http(&api, "GET", &format!("{SETS}/demo"), "");
        let body = set.split_once("\r\n\r\n").expect("a body").1;
        let mut set: serde_json::Value = serde_json::from_str(body).expect("JSON");
        set["spec"]["agent"]["replicas"] = replicas.into();
        let answer = http(&api, "PUT", &format!("{SETS}/demo"), &set.to_string());
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    };
    let leads = "holds the lease and leads";
    let first = start();
    first.line(leads);
    let second = start();
    second.line("waits for the lease, which ");
    let probes = second.line("serving /healthz and /readyz");
    let probes = probes.split("address=").nth(1).expect("an address").split_whitespace().next().expect("an address");
    assert!(http(probes, "GET", "/readyz", "").ends_with("ok\n"), "a follower is ready");
    sandbox.line("default/demo  Running  3/3 agents");

    drop(first);
    scale(3);
    second.line(leads);
    sandbox.line("default/demo  Running  4/4 agents");
    let third = start();
    third.line("waits for the lease, which ");

    second.signal("-STOP");
    scale(1);
    third.line(leads);
    sandbox.line("default/demo  Running  2/2 agents");
    second.signal("-CONT");
    let left = second.end();
    assert_eq!(left.code, Some(1), "{}", left.err);
    assert!(left.err.contains("has lost the lease and ends"), "{}", left.err);

    let fourth = start();
    fourth.line("waits for the lease, which ");
    let asked = Instant::now();
    third.terminate();
    fourth.line(leads);
    assert!(asked.elapsed() < Duration::from_secs(4), "{:?}", asked.elapsed());
    let left = third.end();
    assert_eq!(left.code, Some(0), "{}", left.err);
    assert!(left.err.contains("gave the lease back"), "{}", left.err);
    assert!(http(&api, "DELETE", &format!("{SETS}/demo"), "").starts_with("HTTP/1.1 200"));
    let left = sandbox.end();
    assert_eq!(left.code, Some(0), "{}\n{}", left.err, fourth.said());
}

#[test]
fn without_a_condition_it_stays_until_it_is_told_to_end() {
    let sandbox = Process::sandbox(&["-f", "examples/demo.yaml", "--speed", "20"]);
    sandbox.line("default/demo  Running");
    let health = http(&sandbox.port("Probes"), "GET", "/readyz", "");
    assert!(health.ends_with("ok\n"), "{health}");
    let metrics = http(&sandbox.port("Metrics"), "GET", "/metrics", "");
    assert!(metrics.contains("controller_runtime_reconcile_total"), "{metrics}");
    let told = Instant::now();
    sandbox.terminate();
    let left = sandbox.end();
    assert!(told.elapsed() < Duration::from_secs(2), "{:?}", told.elapsed());
    assert_eq!((left.code, left.out.as_str()), (Some(0), ""), "{}", left.err);
}

#[test]
fn a_timeout_and_an_end_before_the_condition_say_what_was_seen() {
    let until = ["--until", "cocoonset/demo=Running"];
    let left = ended(&[&["-f", "examples/demo.yaml", "--no-operator", "--timeout", "1s"], &until[..]].concat());
    assert_eq!((left.code, left.out.as_str()), (Some(1), ""));
    assert!(left.err.contains("cocoonset/demo=Running: it has no phase yet"), "{}", left.err);
    assert!(left.err.ends_with("(not within 1s)"), "{}", left.err);
    let left = ended(&["--timeout", "1s", "--until", "pod/x:Ready=True", "--until", "pods=ready"]);
    assert_eq!(left.code, Some(1));
    assert!(left.err.contains("there is no such object") && left.err.contains("there is no pod"), "{}", left.err);
    let sandbox = Process::sandbox(&until);
    sandbox.line("Stop");
    sandbox.terminate();
    let left = sandbox.end();
    assert_eq!(left.code, Some(1));
    assert!(left.err.contains("(interrupted before it held)"), "{}", left.err);
}

#[test]
fn a_port_that_is_taken_is_named() {
    let held = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = held.local_addr().expect("an address").to_string();
    for flag in ["--listen", "--registry-listen", "--metrics-bind-address", "--health-probe-bind-address"] {
        let defaults = [("--listen", "127.0.0.1:0"), ("--metrics-bind-address", "0")];
        let mut args = vec!["sandbox", flag, &address];
        args.extend(defaults.iter().filter(|(other, _)| *other != flag).flat_map(|(other, port)| [*other, *port]));
        let left = Process::start(&args, &[]).end();
        assert_eq!(left.code, Some(3), "{flag}: {}", left.err);
        let words = format!("cannot listen on {address}");
        assert!(left.err.contains(&words) && left.err.contains(flag), "{flag}: {}", left.err);
    }
}

/// Two sandboxes side by side, or anything else on 8080: the default port was not asked for.
#[test]
fn the_default_ports_give_way() {
    // Held by this test or by somebody else: taken in any case.
    let held = TcpListener::bind("[::]:8080").or_else(|_| TcpListener::bind("0.0.0.0:8080"));
    let sandbox = Process::start(&["sandbox", "--listen", ":0", "--health-probe-bind-address", "0"], &[]);
    let line = sandbox.line("Metrics");
    assert!(line.ends_with("(port 8080 is taken)"), "{line}");
    sandbox.line("Stop");
    let metrics = sandbox.port("Metrics");
    assert!(http(&metrics, "GET", "/metrics", "").starts_with("HTTP/1.1 200"));
    drop(held);
}

#[test]
fn bad_input_names_file_document_and_field() {
    let set = |spec: &str| {
        let head = "apiVersion: cocoonset.cocoonstack.io/v1\nkind: CocoonSet\nmetadata: {name: x}\n";
        format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: a}}\n---\n{head}{spec}")
    };
    for (name, text, expected) in [
        (
            "refused.yaml",
            set("spec: {agent: {}}"),
            vec!["document 2 (line 5)", "422 Invalid", "spec.agent.image: Required"],
        ),
        ("typo.yaml", set("spec: {agent: {image: i, replica: 3}}"), vec!["document 2", "spec.agent.replica"]),
        (
            "kind.yaml",
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}".into(),
            vec!["document 1 (line 1): kind: the sandbox does not serve Deployment (apps/v1)", "CocoonSet"],
        ),
        (
            "version.yaml",
            "apiVersion: v2\nkind: Pod\nmetadata: {name: x}".into(),
            vec!["apiVersion: expected v1 for a Pod"],
        ),
        ("name.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {}".into(), vec!["metadata.name: expected the name"]),
        (
            "list.yaml",
            "apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: Pod}]".into(),
            vec!["document 1 (line 1): items[0]", "metadata"],
        ),
        ("broken.yaml", "a: [".into(), vec!["line "]),
        (
            "namespace.yaml",
            "apiVersion: v1\nkind: Pod\nmetadata: {name: x, namespace: A_B}".into(),
            vec!["the API server refuses namespace A_B (422 Invalid)"],
        ),
    ] {
        let path = file(name, &text);
        let left = ended(&["-f", &path]);
        assert_eq!((left.code, left.out.as_str()), (Some(2), ""), "{name}: {}", left.err);
        assert!(left.err.starts_with(&path), "{name}: {}", left.err);
        for part in expected {
            assert!(left.err.contains(part), "{name}: {part} in {}", left.err);
        }
    }
}

#[test]
fn bad_usage_leaves_with_two() {
    for args in [
        &["--until", "demo"][..],
        &["--until", "cocoonset/demo=running"],
        &["--until", "gone"],
        &["--timeout", "30s"],
        &["--until", "pods=ready", "--timeout", "30"],
        &["--speed", "0"],
        &["--speed", "fast"],
        &["--registry-listen", "5001"],
        &["--registry-listen", "0"],
        &["-f", "no-such-file.yaml"],
    ] {
        let left = ended(args);
        assert_eq!((left.code, left.out.as_str()), (Some(2), ""), "{args:?}: {}", left.err);
    }
}

/// Namespaces are made as needed, order does not matter, what exists is updated, and what a server adds is no obstacle.
/// What nobody would carry out is not passed over.
#[test]
fn wishes_without_an_operator_are_refused() {
    let dir = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("nothing-to-record").display().to_string();
    for flags in [&["--record", dir.as_str()][..], &["--dry-run"]] {
        let left = ended(&[&["--no-operator"], flags].concat());
        assert_eq!((left.code, left.out.as_str(), left.err.lines().count()), (Some(2), "", 1), "{}", left.err);
        assert!(
            left.err.starts_with(flags[0]) && left.err.contains("expected it without --no-operator"),
            "{}",
            left.err
        );
    }
    assert!(!std::path::Path::new(&dir).exists(), "nothing was begun");
}

#[test]
fn a_manifest_that_is_given_twice_is_said_with_its_places() {
    let set = "apiVersion: cocoonset.cocoonstack.io/v1\nkind: CocoonSet\nmetadata: { name: twin }\nspec: { agent: { image: a } }\n";
    let path = file(
        "twice.yaml",
        &format!("{set}---\n{}", set.replace("metadata: { name", "metadata: { namespace: default, name")),
    );
    let left = ended(&["-f", &path, "--until", "cocoonset/twin=Running", "--timeout", "30s", "--speed", "1000"]);
    assert_eq!(left.code, Some(0), "{}", left.err);
    let told = format!(
        "CocoonSet twin (namespace default) is given 2 times: {path}, document 1 (line 1); {path}, document 2 (line 6);"
    );
    assert_eq!(left.err.lines().filter(|line| line.contains(&told)).count(), 1, "{}", left.err);
}

/// An API server that is away at the start is waited for, and who waits says so at once.
#[test]
fn a_start_that_waits_says_what_for() {
    let free = TcpListener::bind("127.0.0.1:0").expect("a port");
    let api = free.local_addr().expect("bound").to_string();
    drop(free);
    let config = kubeconfig("away.yaml", &api);
    let args = ["run", "--metrics-bind-address=0", "--health-probe-bind-address=0", "--debug-bind-address=0"];
    let run = Process::start(&args, &[("KUBECONFIG", &config), ("OCI_REGISTRY", "127.0.0.1:1/base")]);
    let asking = run.line("asking the API server for an answer, for at most 30 s");
    assert!(asking.contains("INFO") && asking.contains(&api), "{asking}");
    let waiting = run.line("the API server does not answer: no connection could be made; asked again every 2 s");
    assert!(waiting.contains("WARN") && waiting.contains("given up after "), "{waiting}");
    assert!(!run.said().contains("ERROR"), "{}", run.said());
    run.terminate();
    assert_eq!(run.end().code, Some(0));
}

#[test]
fn manifests_are_applied_as_they_are_met() {
    let text = r#"
apiVersion: v1
kind: ConfigMapList
items:
  - {metadata: {name: one, namespace: made, uid: u-1, resourceVersion: "7"}, data: {a: "1"}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: one, namespace: made}
data: {b: "2"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: two, namespace: named}
---
apiVersion: v1
kind: Namespace
metadata: {name: named, labels: {mine: "yes"}}
"#;
    let sandbox = Process::sandbox(&["-f", &file("many.yaml", text), "--no-operator"]);
    sandbox.line("Stop");
    let api = sandbox.port("Kubernetes API");
    let one = http(&api, "GET", "/api/v1/namespaces/made/configmaps/one", "");
    assert!(one.contains(r#""a":"1""#) && one.contains(r#""b":"2""#) && !one.contains("u-1"), "{one}");
    let named = http(&api, "GET", "/api/v1/namespaces/named", "");
    assert!(named.contains(r#""mine":"yes""#), "{named}");
    let notes: Vec<String> =
        sandbox.said().lines().filter(|line| line.starts_with("note: ")).map(str::to_owned).collect();
    assert!(
        matches!(notes.as_slice(), [twice, made] if twice.contains("ConfigMap one (namespace made) is given 2 times")
            && made.contains("namespace made did not exist and was created")),
        "{notes:?}"
    );
}

/// What `kubectl get -o yaml` prints has uids of another cluster; the pods must not be taken for orphans.
#[test]
fn a_dump_comes_up_with_the_pods_it_has() {
    let left = ended(&["-f", "tests/cli/data/kubectl-list.yaml", "--until", "pods=ready", "--speed", "20"]);
    assert_eq!(left.code, Some(0), "{}", left.err);
    assert!(left.err.contains("pod team-a/demo-0  Ready") && !left.err.contains("ERROR"), "{}", left.err);
}

/// The limit is on every file of the process: its signal must not end an operator that can do without the recording.
#[test]
fn a_recording_that_may_not_grow_is_lost_and_nothing_else() {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("recording-of-a-limit");
    // Not there, the first time.
    std::fs::remove_dir_all(&dir).ok();
    let listen = ["--listen", "127.0.0.1:0", "--metrics-bind-address=0", "--health-probe-bind-address=0"];
    let mut command = Command::new("sh");
    command.current_dir(env!("CARGO_MANIFEST_DIR")).args(["-c", "ulimit -f 4; exec \"$0\" \"$@\""]);
    command.arg(env!("CARGO_BIN_EXE_cocoon-operator")).arg("sandbox").args(listen).arg("--record").arg(&dir);
    command.args(["--speed", "50", "-f", "examples/demo.yaml", "--until", "cocoonset/demo=Running"]);
    let output = command.output().expect("runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{:?}\n{said}", output.status);
    assert!(said.contains("passes are not recorded for now"), "{said}");
}

#[test]
fn a_dump_of_a_namespace_has_nothing_of_another() {
    let set = |namespace: &str, name: &str| {
        format!(
            "apiVersion: cocoonset.cocoonstack.io/v1\nkind: CocoonSet\nmetadata: {{name: {name}, namespace: {namespace}}}\n\
             spec: {{agent: {{image: registry.example/agent:1}}}}\n---\n"
        )
    };
    let sets = file("two-places.yaml", &(set("east", "one") + &set("east", "two") + &set("west", "three")));
    let sandbox = Process::sandbox(&["-f", &sets, "--no-operator"]);
    let server = format!("http://{}", sandbox.port("Kubernetes API"));
    let dump = |args: &[&str]| {
        let left = Process::start(&[&["dump", "-s", &server, "--all"], args].concat(), &[]).end();
        assert_eq!(left.code, Some(0), "{}", left.err);
        ["\"one\"", "\"two\"", "\"three\"", "\"west\""].map(|word| left.out.contains(word))
    };
    assert_eq!(dump(&["-n", "east"]), [true, true, false, false]);
    assert_eq!(dump(&["-n", "south"]), [false; 4]);
    assert_eq!(dump(&[]), [true; 4]);
    sandbox.terminate();
    assert_eq!(sandbox.end().code, Some(0));
}

#[test]
fn a_set_without_a_phase_is_told_with_what_troubles_it() {
    let spec = "spec: {suspend: true, agent: {image: registry.example/agent:1}}\n";
    let head = "apiVersion: cocoonset.cocoonstack.io/v1\nkind: CocoonSet\nmetadata: {name: kept}\n";
    let kept = file("kept.yaml", &format!("{head}{spec}"));
    let left = ended(&["-f", &kept, "--timeout", "3s", "--until", "cocoonset/kept=Running"]);
    assert_eq!(left.code, Some(1));
    let lines = |part: &str| left.err.lines().filter(|line| line.contains(part)).count();
    assert_eq!(lines("default/kept  Unsupported: spec.suspend is true"), 1, "{}", left.err);
    assert_eq!(lines("Running: it has no phase yet, it is Unsupported: spec.suspend is true"), 1, "{}", left.err);
}
