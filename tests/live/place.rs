//! A control plane where the operator runs as in a cluster: as its service account, with the rights of `deploy/` and no
//! others, beside nodes and a registry that serve everybody. It is started for the first test that needs it, and tests
//! have it one after the other.

use crate::audit::{self, Call};
use crate::ground::{self, OPERATOR};
use crate::operator::Operator;
use crate::plane::ControlPlane;
use crate::plane::certs::Fault;
use cocoon_operator::core::wire::{JSON, MERGE_PATCH, Method, Reply, Request};
use cocoon_operator::scenario::live::house::House;
use cocoon_operator::shell::client::Api;
use cocoon_operator::shell::clock::Clock;
use cocoon_operator::sim::node::{NodeSpec, Settings, Timings};
use jiff::Timestamp;
use libtest_mimic::Failed;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;

/// Owners that hold up deletion may be named only by who may hold it up: deploy/ has a rule for that.
const ADMISSION: &str = "--enable-admission-plugins=OwnerReferencesPermissionEnforcement";
const NODES: [&str; 3] = ["node-a", "node-b", "node-c"];

/// Where the place will be.
#[derive(Clone)]
pub struct Places(Arc<Mutex<Option<Place>>>, PathBuf, Handle);

impl Places {
    /// Nothing is started yet.
    pub fn new(programs: &Path, handle: &Handle) -> Self {
        Self(Arc::default(), programs.to_owned(), handle.clone())
    }

    /// Has it alone, and starts it where it is not.
    pub fn with(&self, test: impl FnOnce(&mut Place) -> Result<(), Failed>) -> Result<(), Failed> {
        let mut held = self.held();
        if held.is_none() {
            *held = Some(Place::open(&self.1, &self.2)?);
        }
        held.as_mut().map_or_else(|| Err("there is no place".into()), test)
    }

    /// As it is, if it was ever started.
    pub fn seen<R>(&self, look: impl FnOnce(&mut Place) -> R) -> Option<R> {
        self.held().as_mut().map(look)
    }

    fn held(&self) -> MutexGuard<'_, Option<Place>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends it; its logs are kept where something went wrong.
    pub fn end(&self, well: bool) {
        if let Some(mut place) = self.held().take()
            && well
        {
            place.plane.forget();
        }
    }
}

/// The control plane and what belongs to it. What is named first ends first.
pub struct Place {
    /// Nodes and registry.
    pub house: House,
    /// What the administrator asks for.
    pub api: Arc<Api>,
    /// What everything runs on.
    pub handle: Handle,
    kubeconfig: PathBuf,
    /// When RBAC refused something because a test wanted it so.
    pub denied: Vec<(Timestamp, Timestamp)>,
    /// The programs.
    pub plane: ControlPlane,
    started: usize,
}

impl Place {
    fn open(programs: &Path, handle: &Handle) -> Result<Self, Fault> {
        let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("operator-place-{}", std::process::id()));
        let plane = ControlPlane::start_with(programs, &home, &[ADMISSION])?;
        ground::kubectl(&plane, &["apply", "-k", &root("deploy")])?;
        // The operator runs beside the cluster: see tests/packaging for the Deployment.
        ground::kubectl(&plane, &["-n", "cocoon-system", "scale", "deployment/cocoon-operator", "--replicas=0"])?;
        ground::kubectl(&plane, &["wait", "--for=condition=Established", "--timeout=30s", "crds", "--all"])?;
        let token = ["-n", "cocoon-system", "create", "token", "cocoon-operator", "--duration=2h"];
        let token = ground::kubectl(&plane, &token)?;
        let kubeconfig = plane.token_kubeconfig("operator", token.trim())?;
        let admin = ground::client(handle, &plane.admin())?;
        let clock = Clock::starting_at(Timestamp::now(), 0);
        let api = Arc::new(Api::new(admin.clone(), clock, Duration::from_secs(20), Arc::default()));
        let house = House::open(handle, &admin)?;
        for name in NODES {
            house.add_node(NodeSpec::named(name));
        }
        let place = Self { house, api, handle: handle.clone(), kubeconfig, denied: Vec::new(), plane, started: 0 };
        place.wait("all nodes are ready", Duration::from_secs(30), || {
            let nodes = place.list("/api/v1/nodes");
            let fine = |node: &Value| !node.to_string().contains("node.kubernetes.io/not-ready");
            nodes.len() == NODES.len() && nodes.iter().all(fine)
        })?;
        Ok(place)
    }

    /// Starts the operator, with more flags; it is not elected.
    pub fn operator(&mut self, more: &[&str]) -> Result<Operator, Fault> {
        self.started += 1;
        let log = self.plane.folder.join(format!("logs/operator-{}.log", self.started));
        let elect =
            ["--leader-elect=false"].into_iter().filter(|_| !more.iter().any(|one| one.contains("leader-elect")));
        let flags: Vec<&str> = elect.chain(more.iter().copied()).collect();
        Operator::start(&self.kubeconfig, self.house.registry, &log, &flags)
    }

    /// Nodes where everything takes this long.
    pub fn nodes_take(&self, one: Duration, remove: Duration) {
        let timings = Timings {
            pull: Duration::ZERO,
            fork_source: one,
            boot: one,
            clone: one,
            post_clone: one,
            ip_wait: Duration::ZERO,
            restart: one,
            save: one,
            push: one,
            remove,
        };
        self.house.settings(Settings { timings, ..Settings::default() });
    }

    /// Asks something as the administrator: code and body.
    pub fn ask(&self, request: &Request) -> (u16, Value) {
        match self.handle.block_on(self.api.send("test", request)) {
            Reply::Http { status, body, .. } => (status, serde_json::from_slice(&body).unwrap_or_default()),
            Reply::TimedOut | Reply::Reset { .. } | Reply::Fenced => (0, Value::Null),
        }
    }
    /// Asks something that must succeed.
    pub fn must(&self, request: &Request) -> Result<Value, Failed> {
        match self.ask(request) {
            (200..=299, body) => Ok(body),
            (code, body) => Err(format!("{:?} {}: {code} {body}", request.method, request.path).into()),
        }
    }
    /// The objects at this path.
    pub fn list(&self, path: &str) -> Vec<Value> {
        let (_, list) = self.ask(&Request::new(Method::Get, path));
        list.get("items").and_then(Value::as_array).cloned().unwrap_or_default()
    }

    /// Waits until this is so, and says how long it took.
    pub fn wait(&self, what: &str, longest: Duration, holds: impl Fn() -> bool) -> Result<Duration, Fault> {
        let begun = Instant::now();
        while !holds() {
            if begun.elapsed() > longest {
                return Err(format!("{what}: not within {longest:?}").into());
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(begun.elapsed())
    }

    /// A namespace in which pods can be created.
    pub fn namespace(&self, name: &str) -> Result<(), Failed> {
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        self.must(&Request::new(Method::Post, "/api/v1/namespaces").with_body(JSON, object))?;
        let account = Request::new(Method::Get, format!("/api/v1/namespaces/{name}/serviceaccounts/default"));
        self.wait("the service account", Duration::from_secs(20), || self.ask(&account).0 == 200)?;
        Ok(())
    }
    /// Creates sets that are called `PREFIX00` and so on.
    pub fn create_sets(&self, namespace: &str, prefix: &str, count: usize, replicas: usize) -> Result<(), Failed> {
        for number in 0..count {
            let set = json!({
                "apiVersion": "cocoonset.cocoonstack.io/v1", "kind": "CocoonSet",
                "metadata": {"name": format!("{prefix}{number:02}")},
                "spec": {"snapshotPolicy": "never", "agent": {"image": "linux:24", "replicas": replicas}},
            });
            self.must(&Request::new(Method::Post, sets(namespace)).with_body(JSON, set))?;
        }
        Ok(())
    }
    /// How many sets of this namespace are Running as they are now.
    pub fn running(&self, namespace: &str) -> usize {
        let fine = |set: &&Value| {
            set.pointer("/status/phase") == Some(&json!("Running"))
                && set.pointer("/status/observedGeneration") == set.pointer("/metadata/generation")
        };
        self.list(&sets(namespace)).iter().filter(fine).count()
    }
    /// Waits until so many are.
    pub fn all_run(&self, namespace: &str, count: usize, longest: Duration) -> Result<Duration, Failed> {
        let took = self.wait("all sets run", longest, || self.running(namespace) == count);
        took.map_err(|error| {
            let phase = |set: &Value| set.pointer("/status/phase").map_or_else(|| "none".to_owned(), Value::to_string);
            let phases: Vec<String> = self.list(&sets(namespace)).iter().map(phase).collect();
            format!("{error}: phases {phases:?}").into()
        })
    }

    /// How far the audit log is written.
    pub fn now(&self) -> u64 {
        audit::end(&self.plane.audit_log())
    }
    /// What the operator has asked for since then, in this namespace or (empty) anywhere.
    pub fn calls(&self, from: u64, namespace: &str) -> Result<Vec<Call>, Failed> {
        let mut calls = audit::since(&self.plane.audit_log(), from, OPERATOR)?;
        calls.retain(|call| namespace.is_empty() || call.namespace == namespace);
        Ok(calls)
    }

    /// Takes a namespace away, without the operator and without waiting for the end.
    pub fn wipe(&self, namespace: &str) {
        let at_once = json!({"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0});
        let delete = |path: String| self.ask(&Request::new(Method::Delete, path).with_body(JSON, at_once.clone()));
        delete(format!("/api/v1/namespaces/{namespace}"));
        for set in self.list(&sets(namespace)) {
            let freed = json!({"metadata": {"finalizers": null}});
            let path = format!("{}/{}", sets(namespace), name(&set));
            self.ask(&Request::new(Method::Patch, path).with_body(MERGE_PATCH, freed));
        }
        for pod in self.list(&pods(namespace)) {
            delete(format!("{}/{}", pods(namespace), name(&pod)));
        }
    }
}

/// Where the sets of a namespace are.
pub fn sets(namespace: &str) -> String {
    format!("/apis/cocoonset.cocoonstack.io/v1/namespaces/{namespace}/cocoonsets")
}
/// Where the pods of a namespace are.
pub fn pods(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/pods")
}
/// The name of an object.
pub fn name(object: &Value) -> String {
    object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// A path of the project.
pub fn root(path: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path).display().to_string()
}
