//! The recorded facts (`tests/facts`), played to the real API server: it still answers as it did when they were
//! recorded, and as the simulated one does in `tests/facts_player`. Setting up, sending and comparing are the same.

#[path = "../facts_player/cases.rs"]
mod cases;
#[path = "../facts_player/cases_more.rs"]
mod cases_more;
#[path = "../facts_player/compare.rs"]
mod compare;
#[path = "../facts_player/server.rs"]
mod server;
#[path = "../facts_player/stage.rs"]
mod stage;
#[path = "../facts_player/table.rs"]
mod table;

use crate::conformance::End;
use crate::conformance::player::{self, Player};
use crate::ground::{client, kubectl};
use crate::place::root;
use crate::plane::certs::Fault;
use crate::plane::{ControlPlane, connect_as};
use cocoon_operator::core::wire::{JSON, MERGE_PATCH, Method, Request};
use cocoon_operator::sim::store::Store;
use kube::config::{AuthInfo, Kubeconfig};
use serde_json::{Value, json};
use server::{Answer, Server, read};
use stage::Stage;
use std::any::Any;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use table::{TABLE, Treatment};
use tokio::runtime::Handle;

/// So many facts are played at once.
const SIDE_BY_SIDE: usize = 6;

/// A new namespace has its service account after this long.
const ACCOUNT: Duration = Duration::from_secs(60);

/// Names of the facts that all would see: each fact has its own of them.
const SHARED: [&str; 10] =
    ["f1-main", "f1-term", "f1-quota", "f2-quota", "f1-fresh", "f1-lr", "f1-psa", "lns", "vap-", "wh.example.test"];

/// What came of it.
#[derive(Default)]
pub struct Report {
    played: usize,
    /// How many facts are not played to a real server, by reason.
    left_out: BTreeMap<&'static str, usize>,
    /// What differs, by fact.
    pub differ: Vec<String>,
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{} facts played, {} differ; left out:", self.played, self.differ.len())?;
        self.left_out.iter().try_for_each(|(why, count)| writeln!(f, "  {count:4} × {why}"))?;
        self.differ.iter().try_for_each(|one| writeln!(f, "{one}"))
    }
}

/// Plays every fact that is played to a real server.
pub fn run(plane: &ControlPlane, handle: &Handle) -> Result<Report, Fault> {
    kubectl(plane, &["apply", "-f", &root("tests/facts/widget-crd.json")])?;
    kubectl(plane, &["wait", "--for=condition=Established", "--timeout=30s", "crd/widgets.example.test"])?;
    let users = users(plane, handle)?;
    let (mut report, mut played) = (Report::default(), Vec::new());
    for (name, treatment) in TABLE {
        match treatment {
            Treatment::Played(prepare) => played.push((*name, *prepare)),
            Treatment::Simulated(_, why) | Treatment::Excused(why) | Treatment::Read(why) => {
                *report.left_out.entry(*why).or_default() += 1;
            }
        }
    }
    report.played = played.len();
    let (left, differ) = (Mutex::new(played), Mutex::new(&mut report.differ));
    std::thread::scope(|scope| {
        for _ in 0..SIDE_BY_SIDE {
            scope.spawn(|| {
                while let Some((name, prepare)) = left.lock().ok().and_then(|mut left| left.pop()) {
                    if let Err(difference) = play(name, prepare, &users, handle)
                        && let Ok(mut differ) = differ.lock()
                    {
                        differ.push(format!("=== {name}: {difference}"));
                    }
                }
            });
        }
    });
    Ok(report)
}

fn play(name: &str, prepare: fn(&mut Stage), users: &Users, handle: &Handle) -> Result<(), String> {
    let fact = std::fs::read_to_string(root("tests/facts") + "/" + name).map_err(|error| error.to_string())?;
    let mark = format!("fact-{}-", name.split('-').next().unwrap_or(name));
    let real = Real { mark, users: users.clone(), handle: handle.clone(), there: Rc::default() };
    let after = real.clone();
    let played = catch_unwind(AssertUnwindSafe(|| {
        let mut stage = Stage::on(Box::new(real));
        prepare(&mut stage);
        compare::play(&fact, stage)
    }));
    let cleared = catch_unwind(AssertUnwindSafe(|| after.clear()));
    played.unwrap_or_else(|why| Err(words(&*why)))?;
    cleared.map_err(|why| words(&*why))
}

/// What a panic says.
fn words(why: &(dyn Any + Send)) -> String {
    why.downcast_ref::<String>().cloned().unwrap_or_else(|| "it could not be set up".to_owned())
}

/// A client for each user of the facts.
type Users = BTreeMap<String, kube::Client>;

fn users(plane: &ControlPlane, handle: &Handle) -> Result<Users, Fault> {
    let mut users = Users::new();
    for (user, kubeconfig) in [
        ("admin", plane.admin()),
        ("alice", plane.kubeconfig("alice", None)?),
        ("nope", plane.token_kubeconfig("nope", "nope")?),
    ] {
        users.insert(user.to_owned(), client(handle, &kubeconfig)?);
    }
    let mut nobody = Kubeconfig::read_from(plane.admin())?;
    for one in &mut nobody.auth_infos {
        one.auth_info = Some(AuthInfo::default());
    }
    let _within = handle.enter();
    users.insert("system:anonymous".to_owned(), handle.block_on(connect_as(nobody))?);
    Ok(users)
}

/// The real server as one fact sees it: with namespaces, policies and webhooks of its own, which are made when they are
/// first spoken of and gone when the fact is over.
#[derive(Clone)]
struct Real {
    /// Stands before every name that others would see.
    mark: String,
    users: Users,
    handle: Handle,
    /// What was made, by its path.
    there: Rc<RefCell<BTreeSet<String>>>,
}

impl Server for Real {
    fn ask(&mut self, user: &str, request: &Request) -> Answer {
        let request = self.marked(request);
        self.have_namespace(&request);
        let answer = self.send(user, &request);
        self.note(&request, &answer);
        self.unmarked(answer)
    }

    fn watch(&mut self, user: &str, request: &Request) -> Result<Vec<Value>, Answer> {
        let request = self.marked(request);
        let mut player = self.player(user);
        let watched = self.handle.block_on(player.watch(&full(&request), &[], &End::Closed));
        let (answer, lines) = watched.unwrap_or_else(|error| panic!("{}: {error}", request.path));
        if answer.status != 200 {
            return Err(self.unmarked(answer_of(answer)));
        }
        // A bookmark on the way comes when it comes; the one that ends the list is marked.
        let timely =
            |line: &&Value| line["type"] != "BOOKMARK" || line.pointer("/object/metadata/annotations").is_some();
        Ok(lines.iter().filter(timely).map(|line| self.plain(line)).collect())
    }

    fn pass(&mut self, time: Duration) {
        std::thread::sleep(time);
    }

    fn store(&mut self) -> Option<&mut Store> {
        None
    }
}

impl Real {
    fn player(&self, user: &str) -> Player {
        let client = self.users.get(user).unwrap_or_else(|| panic!("nobody is called {user}"));
        Player::new(client.clone(), "")
    }

    fn send(&self, user: &str, request: &Request) -> Answer {
        let method = format!("{:?}", request.method).to_uppercase();
        let content = request.content_type.as_deref().unwrap_or_default();
        let body = match &request.body {
            Value::Null => Vec::new(),
            Value::String(text) => text.clone().into_bytes(),
            other => other.to_string().into_bytes(),
        };
        let path = full(request);
        let player = self.player(user);
        let sent = self.handle.block_on(player.send(&method, &path, content, JSON, body));
        answer_of(sent.unwrap_or_else(|error| panic!("{method} {path}: {error}")))
    }

    /// The request in words that only this fact uses.
    fn marked(&self, request: &Request) -> Request {
        let mut marked = request.clone();
        let mut body = request.body.clone();
        // Nobody is to run the pods of a fact: the scheduler knows the nodes of others.
        if let Some(spec) = body.get_mut("spec").and_then(Value::as_object_mut)
            && request.method == Method::Post
            && request.path.ends_with("/pods")
        {
            spec.insert("schedulerName".to_owned(), json!("nobody"));
        }
        let mark =
            |text: String| SHARED.iter().fold(text, |text, name| text.replace(name, &(self.mark.clone() + name)));
        marked.path = mark(request.path.clone());
        marked.body = match body {
            Value::String(text) => Value::String(text),
            other => serde_json::from_str(&mark(other.to_string())).unwrap_or(Value::Null),
        };
        marked
    }

    fn unmarked(&self, answer: Answer) -> Answer {
        let warnings = answer.warnings.iter().map(|text| text.replace(&self.mark, "")).collect();
        Answer { body: self.plain(&answer.body), warnings, ..answer }
    }

    fn plain(&self, body: &Value) -> Value {
        let text = body.to_string().replace(&self.mark, "").replace("\"nobody\"", "\"default-scheduler\"");
        serde_json::from_str(&text).unwrap_or(Value::Null)
    }

    /// Makes the namespace that a request is about, where it is one of the facts' and not there yet.
    fn have_namespace(&mut self, request: &Request) {
        let name = request.path.strip_prefix("/api").and_then(|rest| rest.split_once("/namespaces/"));
        let Some(name) = name.and_then(|(_, rest)| rest.split('/').next()).filter(|name| name.starts_with(&self.mark))
        else {
            return;
        };
        if !self.there.borrow().contains(&format!("{NAMESPACES}/{name}")) {
            let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            let create = Request::new(Method::Post, NAMESPACES).with_body(JSON, object);
            let answer = self.send("admin", &create);
            assert_eq!(answer.status, 201, "{}", answer.body);
            self.note(&create, &answer);
        }
    }

    /// Takes away what was made.
    fn clear(&self) {
        for path in self.there.borrow().iter() {
            self.send("admin", &Request::new(Method::Delete, path));
            if path.starts_with(NAMESPACES) {
                self.let_go(path);
            }
        }
    }

    /// Takes the finalizers off what is in this namespace, so that it can go.
    fn let_go(&self, namespace: &str) {
        let widgets = namespace.replace("/api/v1/", "/apis/example.test/v1/") + "/widgets";
        for collection in [widgets, format!("{namespace}/pods"), format!("{namespace}/configmaps")] {
            let list = self.send("admin", &read(&collection)).body;
            let items = list["items"].as_array().into_iter().flatten();
            for metadata in items.map(|object| &object["metadata"]).filter(|metadata| metadata["finalizers"].is_array())
            {
                let path = format!("{collection}/{}", metadata["name"].as_str().unwrap_or_default());
                let free = json!({"metadata": {"finalizers": null}});
                self.send("admin", &Request::new(Method::Patch, path).with_body(MERGE_PATCH, free));
            }
        }
    }

    /// Keeps in mind what has to be taken away, and waits until pods can be created in a new namespace.
    fn note(&mut self, request: &Request, answer: &Answer) {
        let everybodys = request.path == NAMESPACES || request.path.starts_with("/apis/admissionregistration.k8s.io/");
        if request.method != Method::Post || answer.status != 201 || !everybodys {
            return;
        }
        let made = format!("{}/{}", request.path, answer.body["metadata"]["name"].as_str().unwrap_or_default());
        let account = format!("{made}/serviceaccounts/default");
        self.there.borrow_mut().insert(made);
        let until = Instant::now() + ACCOUNT;
        while request.path == NAMESPACES && self.send("admin", &read(&account)).status != 200 {
            assert!(Instant::now() < until, "{account} does not come");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

const NAMESPACES: &str = "/api/v1/namespaces";

fn full(request: &Request) -> String {
    let query: Vec<String> = request.query.iter().map(|(key, value)| format!("{key}={value}")).collect();
    if query.is_empty() { request.path.clone() } else { format!("{}?{}", request.path, query.join("&")) }
}

fn answer_of(answer: player::Answer) -> Answer {
    Answer {
        status: answer.status,
        content_type: answer.content_type,
        retry_after: answer.retry_after.and_then(|text| text.parse().ok()).map(Duration::from_secs),
        warnings: answer.warnings,
        body: answer.body,
    }
}
