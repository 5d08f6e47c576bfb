//! A control plane where the operator runs as in a cluster: as its service account, with the rights of `deploy/` and no
//! others, beside nodes and a registry that serve everybody. It is started for the first test that needs it; tests have it
//! one after the other, in the order in which they are listed, and each finds it as the first did.

use crate::audit::{self, Call};
use crate::ground::{self, OPERATOR};
use crate::operator::Operator;
use crate::plane::ControlPlane;
use crate::plane::certs::Fault;
use crate::role::{Denied, Taken};
use crate::turns::Turns;
use cocoon_operator::core::wire::{JSON, MERGE_PATCH, Method, Reply, Request};
use cocoon_operator::scenario::live::house::House;
use cocoon_operator::shell::client::Api;
use cocoon_operator::shell::clock::Clock;
use cocoon_operator::sim::node::{NodeSpec, Settings, Timings};
use jiff::Timestamp;
use libtest_mimic::{Failed, Trial};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;

/// Owners that hold up deletion may be named only by who may hold it up: deploy/ has a rule for that.
const ADMISSION: &str = "--enable-admission-plugins=OwnerReferencesPermissionEnforcement";
const NODES: [&str; 3] = ["node-a", "node-b", "node-c"];

/// What a test does to the place.
pub type Test = fn(&mut Place) -> Result<(), Failed>;

/// Where the place will be.
#[derive(Clone)]
pub struct Places {
    state: Arc<Mutex<State>>,
    turns: Turns,
    programs: PathBuf,
    handle: Handle,
}

/// What became of it.
enum State {
    NotYet,
    Open(Box<Place>),
    /// It is not tried again: each attempt takes a minute and empties the folder of the one before.
    Failed(String),
}

impl Places {
    /// Nothing is started yet.
    pub fn new(programs: &Path, handle: &Handle) -> Self {
        let state = Arc::new(Mutex::new(State::NotYet));
        Self { state, turns: Turns::default(), programs: programs.to_owned(), handle: handle.clone() }
    }

    /// A test that has it alone, after all that were listed before.
    pub fn trial(&self, name: &str, test: Test) -> Trial {
        let (places, turn) = (self.clone(), self.turns.next());
        Trial::test(name, move || {
            turn.wait();
            places.with(test)
        })
    }

    /// Starts it where it is not, and tidies it up whatever the test came to.
    fn with(&self, test: Test) -> Result<(), Failed> {
        let mut held = self.held();
        if matches!(*held, State::NotYet) {
            *held = match Place::open(&self.programs, &self.handle) {
                Ok(place) => State::Open(Box::new(place)),
                Err(why) => State::Failed(why.to_string()),
            };
        }
        match &mut *held {
            State::Open(place) => test(Tidied(place).0),
            State::Failed(why) => Err(format!("the operator's control plane did not start: {why}").into()),
            State::NotYet => Err("there is no place".into()),
        }
    }

    /// As it is, if it was ever started.
    pub fn seen<R>(&self, look: impl FnOnce(&mut Place) -> R) -> Option<R> {
        match &mut *self.held() {
            State::Open(place) => Some(look(place)),
            State::NotYet | State::Failed(_) => None,
        }
    }

    fn held(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends it; its logs are kept where something went wrong.
    pub fn end(&self, well: bool) {
        if let State::Open(mut place) = std::mem::replace(&mut *self.held(), State::NotYet)
            && well
        {
            place.plane.forget();
        }
    }
}

/// The place for as long as a test has it.
struct Tidied<'a>(&'a mut Place);

impl Drop for Tidied<'_> {
    fn drop(&mut self) {
        self.0.tidy();
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
    /// What RBAC refused because a test wanted it so.
    pub denied: Vec<Denied>,
    /// What it refuses now.
    pub taken: Option<Taken>,
    /// Paths of what the test has made and nobody has taken away.
    made: Vec<String>,
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
        let api = Arc::new(api(admin.clone()));
        let house = House::open(handle, &admin)?;
        for name in NODES {
            house.add_node(NodeSpec::named(name));
        }
        let (handle, denied, made) = (handle.clone(), Vec::new(), Vec::new());
        let place = Self { house, api, handle, kubeconfig, denied, taken: None, made, plane, started: 0 };
        place.wait("all nodes are ready", Duration::from_secs(30), || {
            let nodes = place.list("/api/v1/nodes").unwrap_or_default();
            let fine = |node: &Value| !node.to_string().contains("node.kubernetes.io/not-ready");
            nodes.len() == NODES.len() && nodes.iter().all(fine)
        })?;
        Ok(place)
    }

    /// How many operators there were.
    pub const fn operators(&self) -> usize {
        self.started
    }
    /// What the administrator asks for in the operator's name, with the rights of its service account. In the audit log that
    /// is the administrator's.
    pub fn as_operator(&self) -> Result<Api, Fault> {
        let mut config: Value = serde_json::from_slice(&std::fs::read(self.plane.admin())?)?;
        config["users"][0]["user"]["as"] = json!(OPERATOR);
        let file = self.plane.folder.join("as-operator.kubeconfig");
        std::fs::write(&file, config.to_string())?;
        Ok(api(ground::client(&self.handle, &file)?))
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
        self.ask_as(&self.api, request)
    }
    /// Asks something as somebody else.
    pub fn ask_as(&self, api: &Api, request: &Request) -> (u16, Value) {
        match self.handle.block_on(api.send("test", request)) {
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
    pub fn list(&self, path: &str) -> Result<Vec<Value>, Failed> {
        let list = self.must(&Request::new(Method::Get, path))?;
        Ok(list["items"].as_array().ok_or_else(|| format!("{path} is no list: {list}"))?.clone())
    }
    /// How this path is answered: whether the object is there.
    pub fn code(&self, path: &str) -> u16 {
        self.ask(&Request::new(Method::Get, path)).0
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

    /// A namespace in which pods can be created. It goes at the end of the test.
    pub fn namespace(&mut self, name: &str) -> Result<(), Failed> {
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        self.made.push(format!("/api/v1/namespaces/{name}"));
        self.must(&Request::new(Method::Post, "/api/v1/namespaces").with_body(JSON, object))?;
        let account = Request::new(Method::Get, format!("/api/v1/namespaces/{name}/serviceaccounts/default"));
        self.wait("the service account", Duration::from_secs(20), || self.ask(&account).0 == 200)?;
        Ok(())
    }
    /// A node beside the others. It goes at the end of the test.
    pub fn node(&mut self, node: NodeSpec) {
        self.made.push(format!("/api/v1/nodes/{}", node.name));
        self.house.add_node(node);
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
    /// How many sets of this namespace (empty: anywhere) are Running as they are now.
    pub fn running(&self, namespace: &str) -> Result<usize, Failed> {
        let fine = |set: &&Value| {
            set.pointer("/status/phase") == Some(&json!("Running"))
                && set.pointer("/status/observedGeneration") == set.pointer("/metadata/generation")
        };
        Ok(self.list(&sets(namespace))?.iter().filter(fine).count())
    }
    /// Waits until so many are.
    pub fn all_run(&self, namespace: &str, count: usize, longest: Duration) -> Result<Duration, Failed> {
        let all = || self.running(namespace).is_ok_and(|running| running == count);
        self.wait("all sets run", longest, all).map_err(|error| {
            let phase = |set: &Value| set.pointer("/status/phase").map_or_else(|| "none".to_owned(), Value::to_string);
            let phases = self.list(&sets(namespace)).map(|all| all.iter().map(phase).collect::<Vec<_>>());
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

    /// Takes away what the test has made and gives back what it has taken, without the operator and without waiting for
    /// the end. What cannot be done the next test shows.
    fn tidy(&mut self) {
        if let Err(error) = self.restore() {
            eprintln!("a right could not be given back: {error:?}");
        }
        for path in std::mem::take(&mut self.made).into_iter().rev() {
            match path.strip_prefix("/api/v1/namespaces/") {
                Some(namespace) => self.wipe(namespace),
                None => drop(self.ask(&Request::new(Method::Delete, path))),
            }
        }
    }

    fn wipe(&self, namespace: &str) {
        let at_once = json!({"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0});
        let delete = |path: String| self.ask(&Request::new(Method::Delete, path).with_body(JSON, at_once.clone()));
        delete(format!("/api/v1/namespaces/{namespace}"));
        for set in self.list(&sets(namespace)).unwrap_or_default() {
            let freed = json!({"metadata": {"finalizers": null}});
            let path = format!("{}/{}", sets(namespace), name(&set));
            self.ask(&Request::new(Method::Patch, path).with_body(MERGE_PATCH, freed));
        }
        for pod in self.list(&pods(namespace)).unwrap_or_default() {
            delete(format!("{}/{}", pods(namespace), name(&pod)));
        }
    }
}

fn api(client: kube::Client) -> Api {
    Api::new(client, Clock::starting_at(Timestamp::now(), 0), Duration::from_secs(20), Arc::default())
}

/// Where the sets of a namespace are, or (empty) all.
pub fn sets(namespace: &str) -> String {
    format!("/apis/cocoonset.cocoonstack.io/v1/{}cocoonsets", within(namespace))
}
/// Where the pods of a namespace are, or (empty) all.
pub fn pods(namespace: &str) -> String {
    format!("/api/v1/{}pods", within(namespace))
}
fn within(namespace: &str) -> String {
    if namespace.is_empty() { String::new() } else { format!("namespaces/{namespace}/") }
}
/// The name of an object.
pub fn name(object: &Value) -> String {
    object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// A path of the project.
pub fn root(path: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path).display().to_string()
}
