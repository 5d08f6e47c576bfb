//! A real control plane on loopback: etcd, API server, controller manager and scheduler, with RBAC, all default
//! admission and an audit log. It ends only what it has started, and keeps the logs of a run that failed.

pub mod binaries;
pub mod certs;
mod kubeconfig;
pub mod leftovers;
pub mod ports;
mod process;

use certs::{Authority, Fault, Identity};
use kubeconfig::write_kubeconfig;
use process::Process;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The API server and etcd have this long to answer.
const START: Duration = Duration::from_secs(60);

/// Everything that is needed to start a program again with the same arguments.
struct Program {
    name: &'static str,
    arguments: Vec<String>,
    process: Option<Process>,
}

/// A running control plane. Dropping it ends it.
pub struct ControlPlane {
    bin: PathBuf,
    /// Certificates, kubeconfigs, data, logs.
    pub folder: PathBuf,
    /// `https://127.0.0.1:PORT`.
    pub server: String,
    authority: Authority,
    programs: Vec<Program>,
    keep: bool,
}

impl ControlPlane {
    /// Starts one in this folder, which is emptied first, and waits until it serves and its controllers run.
    pub fn start(bin: &Path, folder: &Path) -> Result<Self, Fault> {
        Self::start_with(bin, folder, &[])
    }

    /// The same, with more arguments of the API server.
    pub fn start_with(bin: &Path, folder: &Path, more: &[&str]) -> Result<Self, Fault> {
        if folder.exists() {
            std::fs::remove_dir_all(folder)?;
        }
        std::fs::create_dir_all(folder.join("logs"))?;
        let authority = Authority::new(folder)?;
        authority.server("apiserver")?;
        authority.server("etcd")?;
        let ports = ports::free(5)?;
        let server = format!("https://127.0.0.1:{}", ports[2]);
        let mut programs = programs(folder, &ports);
        let server_of = programs.iter_mut().filter(|program| program.name == "kube-apiserver");
        server_of.for_each(|program| program.arguments.extend(more.iter().map(|&one| one.to_owned())));
        let mut plane =
            Self { bin: bin.to_owned(), folder: folder.to_owned(), server, authority, programs, keep: true };
        for (user, group) in [
            ("admin", Some("system:masters")),
            ("system:kube-controller-manager", None),
            ("system:kube-scheduler", None),
        ] {
            plane.kubeconfig(user, group)?;
        }
        std::fs::write(folder.join("audit-policy.yaml"), AUDIT_POLICY)?;
        plane.run("etcd")?;
        plane.run("kube-apiserver")?;
        plane.wait_ready()?;
        plane.run("kube-controller-manager")?;
        plane.run("kube-scheduler")?;
        // The first thing that controllers do of which a namespace's pods need something.
        plane.wait_for(&["get", "serviceaccount", "default", "--namespace=default"], "its controllers run")?;
        Ok(plane)
    }

    /// Writes a kubeconfig for this user and gives its path.
    pub fn kubeconfig(&self, user: &str, group: Option<&str>) -> Result<PathBuf, Fault> {
        let Identity { certificate, key } = self.authority.client(user, group)?;
        let path = self.folder.join(format!("{}.kubeconfig", user.replace(':', "-")));
        write_kubeconfig(
            &path,
            &self.server,
            &self.authority.certificate,
            &kubeconfig::User::Certificate(certificate, key),
        )?;
        Ok(path)
    }

    /// Writes a kubeconfig for the bearer of this token and gives its path.
    pub fn token_kubeconfig(&self, name: &str, token: &str) -> Result<PathBuf, Fault> {
        let path = self.folder.join(format!("{name}.kubeconfig"));
        let user = kubeconfig::User::Token(token.to_owned());
        write_kubeconfig(&path, &self.server, &self.authority.certificate, &user)?;
        Ok(path)
    }

    /// A client that retries nothing by itself, for the user of this kubeconfig. To be called within a runtime.
    pub async fn client(&self, kubeconfig: &Path) -> Result<kube::Client, Fault> {
        connect(kubeconfig).await
    }
    /// The administrator's kubeconfig.
    pub fn admin(&self) -> PathBuf {
        self.folder.join("admin.kubeconfig")
    }
    /// kubectl of the same release.
    pub fn kubectl(&self) -> PathBuf {
        self.bin.join("kubectl")
    }
    /// The audit log: one JSON object a line.
    pub fn audit_log(&self) -> PathBuf {
        self.folder.join("logs/audit.log")
    }

    /// Kills a program at once.
    pub fn kill(&mut self, name: &str) {
        if let Some(mut process) =
            self.programs.iter_mut().find(|program| program.name == name).and_then(|one| one.process.take())
        {
            process.kill();
        }
    }
    /// Starts a program again that was killed.
    pub fn run(&mut self, name: &str) -> Result<(), Fault> {
        let logs = self.folder.join("logs");
        let program = self.programs.iter_mut().find(|program| program.name == name).ok_or("no such program")?;
        program.process = Some(Process::start(&self.bin, program.name, &program.arguments, &logs)?);
        Ok(())
    }

    /// Starts again what has ended by itself, as a kubelet does: a scheduler ends where its cache cannot be right.
    pub fn revive(&mut self) -> Result<(), Fault> {
        let logs = self.folder.join("logs");
        for program in &mut self.programs {
            let over = program.process.as_mut().is_some_and(|process| process.must_run().is_err());
            if over {
                program.process = Some(Process::start(&self.bin, program.name, &program.arguments, &logs)?);
            }
        }
        Ok(())
    }

    /// Waits until the API server says that it is ready.
    pub fn wait_ready(&mut self) -> Result<(), Fault> {
        self.wait_for(&["get", "--raw", "/readyz"], "the API server is ready")
    }

    /// Waits until this is answered, and all programs run.
    fn wait_for(&mut self, question: &[&str], what: &str) -> Result<(), Fault> {
        let until = Instant::now() + START;
        loop {
            for process in self.programs.iter_mut().filter_map(|program| program.process.as_mut()) {
                process.must_run()?;
            }
            let output = std::process::Command::new(self.kubectl())
                .arg("--kubeconfig")
                .arg(self.admin())
                .arg("--request-timeout=2s")
                .args(question)
                .output()?;
            if output.status.success() {
                return Ok(());
            }
            if Instant::now() > until {
                let said = String::from_utf8_lossy(&output.stderr).into_owned();
                let logs = self.programs.iter().filter_map(|program| program.process.as_ref());
                let logs: Vec<String> = logs.map(Process::last_words).collect();
                let logs = logs.join("\n\n");
                return Err(format!("it is not so after {START:?} that {what}: {said}\n{logs}").into());
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// The run went well: data and logs need not be kept.
    pub fn forget(&mut self) {
        self.keep = false;
    }
}

/// A client with the credentials of this file.
pub async fn connect(kubeconfig: &Path) -> Result<kube::Client, Fault> {
    connect_as(kube::config::Kubeconfig::read_from(kubeconfig)?).await
}

/// A client with these credentials; no proxy of the environment stands before loopback.
pub async fn connect_as(kubeconfig: kube::config::Kubeconfig) -> Result<kube::Client, Fault> {
    let mut config = kube::Config::from_custom_kubeconfig(kubeconfig, &Default::default()).await?;
    config.proxy_url = None;
    Ok(cocoon_operator::shell::client::connect(config)?)
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        // In the opposite order, so that nobody complains of one that is gone; etcd last.
        while let Some(program) = self.programs.pop() {
            drop(program.process);
        }
        if self.keep {
            eprintln!("the control plane's logs are kept in {}", self.folder.join("logs").display());
        } else {
            std::fs::remove_dir_all(&self.folder).ok();
        }
    }
}

fn programs(folder: &Path, ports: &[u16]) -> Vec<Program> {
    let at = |name: &str| folder.join(name).display().to_string();
    let url = |port: u16| format!("https://127.0.0.1:{port}");
    let of = |name, arguments: Vec<String>| Program { name, arguments, process: None };
    let etcd = vec![
        format!("--data-dir={}", at("etcd")),
        "--unsafe-no-fsync".to_owned(),
        format!("--listen-client-urls={}", url(ports[0])),
        format!("--advertise-client-urls={}", url(ports[0])),
        format!("--listen-peer-urls=http://127.0.0.1:{}", ports[1]),
        format!("--initial-advertise-peer-urls=http://127.0.0.1:{}", ports[1]),
        format!("--initial-cluster=default=http://127.0.0.1:{}", ports[1]),
        format!("--cert-file={}", at("etcd.crt")),
        format!("--key-file={}", at("etcd.key")),
        format!("--trusted-ca-file={}", at("ca.crt")),
        "--client-cert-auth".to_owned(),
    ];
    let apiserver = vec![
        format!("--etcd-servers={}", url(ports[0])),
        format!("--etcd-cafile={}", at("ca.crt")),
        format!("--etcd-certfile={}", at("apiserver.crt")),
        format!("--etcd-keyfile={}", at("apiserver.key")),
        "--bind-address=127.0.0.1".to_owned(),
        "--advertise-address=127.0.0.1".to_owned(),
        format!("--secure-port={}", ports[2]),
        format!("--tls-cert-file={}", at("apiserver.crt")),
        format!("--tls-private-key-file={}", at("apiserver.key")),
        format!("--client-ca-file={}", at("ca.crt")),
        "--authorization-mode=RBAC".to_owned(),
        "--endpoint-reconciler-type=none".to_owned(),
        "--service-cluster-ip-range=10.96.0.0/16".to_owned(),
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        format!("--service-account-key-file={}", at("sa.pub")),
        format!("--service-account-signing-key-file={}", at("sa.key")),
        format!("--audit-policy-file={}", at("audit-policy.yaml")),
        format!("--audit-log-path={}", at("logs/audit.log")),
        // Nothing is rotated away: the log is evidence.
        "--audit-log-maxsize=1000000".to_owned(),
    ];
    let manager = vec![
        format!("--kubeconfig={}", at("system-kube-controller-manager.kubeconfig")),
        format!("--authentication-kubeconfig={}", at("system-kube-controller-manager.kubeconfig")),
        format!("--authorization-kubeconfig={}", at("system-kube-controller-manager.kubeconfig")),
        format!("--service-account-private-key-file={}", at("sa.key")),
        format!("--root-ca-file={}", at("ca.crt")),
        "--use-service-account-credentials".to_owned(),
        "--leader-elect=false".to_owned(),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--secure-port={}", ports[3]),
    ];
    let scheduler = vec![
        format!("--kubeconfig={}", at("system-kube-scheduler.kubeconfig")),
        format!("--authentication-kubeconfig={}", at("system-kube-scheduler.kubeconfig")),
        format!("--authorization-kubeconfig={}", at("system-kube-scheduler.kubeconfig")),
        "--leader-elect=false".to_owned(),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--secure-port={}", ports[4]),
    ];
    vec![
        of("etcd", etcd),
        of("kube-apiserver", apiserver),
        of("kube-controller-manager", manager),
        of("kube-scheduler", scheduler),
    ]
}

/// Who asked for what, and what came of it: without bodies, and without the reads of the control plane itself.
const AUDIT_POLICY: &str = "\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: None
    users: [system:apiserver, system:kube-controller-manager, system:kube-scheduler]
    verbs: [get, list, watch]
  - level: None
    userGroups: [system:serviceaccounts:kube-system]
    verbs: [get, list, watch]
  - level: None
    nonResourceURLs: ['/readyz*', '/livez*', '/healthz*', '/version', '/openapi/*', '/api', '/api/*', '/apis', '/apis/*']
  - level: Metadata
";
