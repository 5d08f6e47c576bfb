//! A real cluster as one story meets it: the story's own namespaces and nodes, its node agents on real time, its
//! registry.

use super::lens::Lens;
use super::line::{Shared, lock, looking};
use super::mirror::{Mirror, Seen};
use crate::core::contract::keys;
use crate::core::meta;
use crate::core::wire::{JSON, MERGE_PATCH, Method, Reply, Request, STRATEGIC_MERGE_PATCH, Verb};
use crate::scenario::given::SettingsGiven;
use crate::scenario::realm::Realm;
use crate::shell::client::Api;
use crate::shell::clock::Clock;
use crate::sim::faults::Faults;
use crate::sim::node::{NodeCondition, NodeSpec, Nodes, Server, Site, Snapshots};
use crate::sim::registry::{Asker, Registry};
use crate::sim::store::{Resource, Rule, Store, StoreReply};
use crate::sim::world::Told;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::time::Instant;

/// A node says so often that it is there.
const HEARTBEAT: Duration = Duration::from_secs(2);
/// What has to happen on the control plane's side before a story can go on happens within this.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long a person's or a node's request may take.
const DEADLINE: Duration = Duration::from_secs(20);
/// A look at what is due, at least so often.
const TICK: Duration = Duration::from_millis(50);

/// The cluster of one story.
pub struct Cluster {
    server: Plane,
    nodes: Nodes,
    shared: Arc<Shared>,
    told: Vec<Told>,
    /// When each node's lease is to be renewed next.
    leases: BTreeMap<String, Instant>,
}

/// The API server as this story's people and nodes meet it.
struct Plane {
    handle: Handle,
    api: Arc<Api>,
    lens: Arc<Lens>,
    mirror: Mirror,
    shared: Arc<Shared>,
    /// What each node said last of how it is.
    said: BTreeMap<String, Request>,
}

/// The registry, shared with the operators.
struct Tags<'a>(&'a Shared);

impl Snapshots for Tags<'_> {
    fn ask(&mut self, verb: Verb, vm: &str, tag: &str) -> Reply {
        lock(&self.0.registry).call(Asker::Node, verb, vm, tag, None)
    }
    fn put(&mut self, vm: &str, tag: &str, base_image: Option<&str>) {
        lock(&self.0.registry).push(vm, tag, base_image);
    }
}

impl Plane {
    fn send(&mut self, request: &Request) -> Reply {
        self.shared.touch();
        let flow = request.path.rsplit('/').nth(1).unwrap_or_default().to_owned();
        let mut reply = self.handle.block_on(self.api.send(&flow, request));
        // People and nodes wait until the control plane is back.
        while !matches!(reply, Reply::Http { status: ..=499, .. }) && self.shared.outage.is_felt() {
            std::thread::sleep(TICK);
            reply = self.handle.block_on(self.api.send_apart(request, DEADLINE));
        }
        self.learn(request, &reply);
        reply
    }

    fn see(&mut self, resource: &str, body: &[u8]) {
        if let Ok(object) = serde_json::from_slice(body) {
            self.mirror.learn(resource, &object);
        }
    }

    /// Nobody is to see less than what a write was answered with.
    fn learn(&mut self, request: &Request, reply: &Reply) {
        let Reply::Http { status: 200..=299, body, .. } = reply else { return };
        if request.method == Method::Get {
            return;
        }
        let Some(about) = lock(&self.shared.rules).about(request) else { return };
        let plural = about.kind.split('/').next().unwrap_or_default();
        let custom = matches!(plural, "cocoonsets" | "cocoonhibernations");
        let resource = if custom { format!("{plural}.{}", keys::GROUP) } else { plural.to_owned() };
        if request.method != Method::Delete {
            return self.see(&resource, body);
        }
        // What a deletion is answered with does not say whether the object is still there.
        let get = Request::new(Method::Get, request.path.clone());
        match self.handle.block_on(self.api.send("look", &get)) {
            Reply::Http { status: 200, body, .. } => self.see(&resource, &body),
            Reply::Http { status: 404, .. } => self.mirror.forget(&resource, &about.namespace, &about.name),
            Reply::Http { .. } | Reply::TimedOut | Reply::Reset { .. } | Reply::Fenced => {}
        }
    }
}

impl Server for Plane {
    fn handle_as(&mut self, _user: &str, request: &Request) -> StoreReply {
        match self.send(request) {
            Reply::Http { status, retry_after, body, .. } => {
                let object = serde_json::from_slice(&body).unwrap_or_default();
                StoreReply { retry_after, ..StoreReply::json(status, object) }
            }
            Reply::TimedOut | Reply::Reset { .. } | Reply::Fenced => StoreReply::json(504, Value::Null),
        }
    }
    fn pod(&self, uid: &str) -> Option<&Value> {
        self.mirror.all("pods", None).find(|pod| meta::text(pod, "uid") == uid).map(Arc::as_ref)
    }
    fn pods(&self) -> Vec<Arc<Value>> {
        self.mirror.all("pods", None).cloned().collect()
    }
    fn has_node(&self, node: &str) -> bool {
        self.mirror.get("nodes", "", node).is_some()
    }
    fn node_says(&mut self, node: &str, condition: &NodeCondition<'_>, now: Timestamp) {
        let now = json!(now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
        let says = json!({"status": {"conditions": [{
            "type": "Ready", "status": condition.status, "reason": condition.reason, "message": condition.message,
            "lastHeartbeatTime": now, "lastTransitionTime": now,
        }]}});
        let path = format!("/api/v1/nodes/{node}/status");
        let says = Request::new(Method::Patch, path).with_body(STRATEGIC_MERGE_PATCH, says);
        self.send(&says);
        self.said.insert(node.to_owned(), says);
    }
    fn node_is_missed(&mut self, _node: &str, _now: Timestamp) -> bool {
        false
    }
}

impl Cluster {
    /// Nothing but the control plane, seen through this lens by its administrator.
    pub fn new(handle: &Handle, admin: &kube::Client, lens: &Arc<Lens>, shared: &Arc<Shared>) -> Self {
        let clock = Clock::starting_at(Timestamp::now(), 0);
        let api = Arc::new(Api::new(looking(admin, lens), clock, DEADLINE, Arc::default()));
        let mirror = Mirror::start(handle, &api);
        let (lens, handle) = (Arc::clone(lens), handle.clone());
        Self {
            server: Plane { handle, api, lens, mirror, shared: Arc::clone(shared), said: BTreeMap::new() },
            nodes: Nodes::new(Timestamp::now()),
            shared: Arc::clone(shared),
            told: Vec::new(),
            leases: BTreeMap::new(),
        }
    }

    /// When an agent has something to do next, counted from now.
    pub fn next_due(&self) -> Option<Duration> {
        let due = self.nodes.next_due()?;
        Some(due.duration_since(Timestamp::now()).try_into().unwrap_or(Duration::ZERO))
    }

    /// True while the control plane has something to do that shows in nothing else.
    pub fn is_dying(&self) -> bool {
        let all = self.server.mirror.all("namespaces", None);
        all.into_iter().any(|namespace| meta::time(namespace, "deletionTimestamp").is_some())
    }

    /// Lets agents see and do what there is, and then waits for a moment, but for no longer than this.
    pub fn tick(&mut self, longest: Duration) {
        self.act();
        let due = self.next_due().unwrap_or(TICK);
        self.server.mirror.wait(longest.min(TICK).min(due));
        self.act();
    }

    fn act(&mut self) {
        let (seen, any) = self.server.mirror.look();
        if any {
            self.shared.touch();
        }
        self.with_nodes(|nodes, site| {
            match seen {
                Seen::Events(events) => nodes.look_at(site, &events),
                Seen::Listed => nodes.list_again(site),
            }
            while nodes.run_next(site) {}
        });
        self.beat();
    }

    /// Every node that is not silent renews its lease, and says again how it is where the control plane has missed it
    /// all the same: after an outage that one looks at its clock before it hears of leases.
    fn beat(&mut self) {
        let names: Vec<String> = self.nodes.names().map(str::to_owned).collect();
        for name in names {
            let due = self.leases.get(&name).is_none_or(|due| *due <= Instant::now());
            if !due || self.nodes.is_silent(&name) || !self.server.has_node(&name) {
                continue;
            }
            self.leases.insert(name.clone(), Instant::now() + HEARTBEAT);
            let missed = self.server.mirror.get("nodes", "", &name).is_some_and(is_missed);
            if let Some(says) = self.server.said.get(&name).filter(|_| missed).cloned() {
                self.server.send(&says);
            }
            let (lens, api) = (Arc::clone(&self.server.lens), Arc::clone(&self.server.api));
            self.server.handle.spawn(async move { renew(&api, &lens.real(&name)).await });
        }
    }

    /// What has happened since the last call.
    pub fn take_told(&mut self) -> Vec<Told> {
        std::mem::take(&mut self.told)
    }

    /// Waits until this is so on the control plane.
    fn wait_for(&mut self, what: &str, holds: impl Fn(&mut Self) -> bool) -> Result<(), String> {
        let until = Instant::now() + PATIENCE;
        while !holds(self) {
            if Instant::now() > until {
                return Err(format!("{what}: not within {PATIENCE:?}"));
            }
            self.tick(TICK);
        }
        Ok(())
    }

    fn read(&mut self, path: &str) -> Option<Value> {
        match self.server.send(&Request::new(Method::Get, path)) {
            Reply::Http { status: 200, body, .. } => serde_json::from_slice(&body).ok(),
            Reply::Http { .. } | Reply::TimedOut | Reply::Reset { .. } | Reply::Fenced => None,
        }
    }

    /// Everything of the story is taken away, without waiting for it.
    pub fn clear(&mut self) {
        let plane = &self.server;
        let objects = |resource: &str, path: &str| -> Vec<String> {
            let place = |one: &Arc<Value>| path.replace("NS", &meta::text(one, "namespace")) + &meta::text(one, "name");
            plane.mirror.all(resource, None).map(place).collect()
        };
        let sets = "cocoonsets.cocoonset.cocoonstack.io";
        let held = objects(sets, "/apis/cocoonset.cocoonstack.io/v1/namespaces/NS/cocoonsets/");
        let pods = objects("pods", "/api/v1/namespaces/NS/pods/");
        let rest = [objects("namespaces", "/api/v1/namespaces/"), objects("nodes", "/api/v1/nodes/")].concat();
        let api = Arc::clone(&plane.api);
        self.server.handle.spawn(async move {
            let freed = json!({"metadata": {"finalizers": null}});
            let at_once = json!({"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0});
            let delete = |path: &String| Request::new(Method::Delete, path.clone()).with_body(JSON, at_once.clone());
            for path in rest.iter().chain(&held).chain(&pods) {
                api.send("clear", &delete(path)).await;
            }
            for path in held.iter().chain(&pods) {
                api.send("clear", &Request::new(Method::Patch, path.clone()).with_body(MERGE_PATCH, freed.clone()))
                    .await;
            }
        });
    }
}

/// The control plane says that it does not know how this node is.
fn is_missed(node: &Value) -> bool {
    let conditions = node.pointer("/status/conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().any(|one| one["type"] == "Ready" && one["status"] == "Unknown")
}

/// Renews the lease of a node, or takes it.
async fn renew(api: &Api, node: &str) {
    let now = json!(Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string());
    let path = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
    let spec = json!({"holderIdentity": node, "leaseDurationSeconds": 40, "renewTime": now});
    let patch = Request::new(Method::Patch, format!("{path}/{node}")).with_body(MERGE_PATCH, json!({ "spec": spec }));
    if let Reply::Http { status: 404, .. } = api.send("leases", &patch).await {
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": spec,
            "metadata": {"name": node, "namespace": "kube-node-lease"},
        });
        api.send("leases", &Request::new(Method::Post, path).with_body(JSON, lease)).await;
    }
}

impl Realm for Cluster {
    fn get(&self, resource: &str, namespace: &str, name: &str) -> Option<&Value> {
        self.server.mirror.get(resource, namespace, name)
    }
    fn all<'a>(&'a self, resource: &'a str, namespace: Option<&'a str>) -> Vec<&'a Value> {
        self.server.mirror.all(resource, namespace).map(Arc::as_ref).collect()
    }
    fn served(&self, api_version: &str, kind: &str) -> Option<Resource> {
        let rules = lock(&self.shared.rules);
        rules.resources().find(|one| one.kind == kind && one.api_version() == api_version).cloned()
    }
    fn ask(&mut self, request: &Request) -> Reply {
        self.server.send(request)
    }

    fn add_namespace(&mut self, name: &str) {
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        self.server.send(&Request::new(Method::Post, "/api/v1/namespaces").with_body(JSON, object));
        // Pods are refused before their service account is there.
        let account = format!("/api/v1/namespaces/{name}/serviceaccounts/default");
        self.wait_for("the service account", |cluster| cluster.read(&account).is_some()).ok();
    }

    fn set_up(&mut self, given: &SettingsGiven) -> Result<(), String> {
        let kinds = given.older_crd || given.loose_crd || !given.ordered_namespace_deletion;
        if kinds || !given.admission_adds.is_null() || !given.admission_strips.is_empty() {
            return Err("one control plane serves all stories: it cannot be set up otherwise for one".to_owned());
        }
        Ok(())
    }

    fn at_once(&mut self) {
        let until = Instant::now() + PATIENCE;
        let counted = |cluster: &mut Self| {
            let namespaces: Vec<String> =
                cluster.all("namespaces", None).iter().map(|one| meta::text(one, "name")).collect();
            namespaces.iter().all(|name| {
                let list = cluster.read(&format!("/api/v1/namespaces/{name}/resourcequotas")).unwrap_or_default();
                let quotas = list.get("items").and_then(Value::as_array).cloned().unwrap_or_default();
                quotas.iter().all(|quota| quota.pointer("/spec/hard") == quota.pointer("/status/hard"))
            })
        };
        let accepted = |cluster: &Self| cluster.all("nodes", None).into_iter().all(is_accepted);
        loop {
            self.tick(TICK);
            let due = self.next_due().is_some_and(|due| due.is_zero());
            let heard = self.server.mirror.has_shown_pods();
            if (heard
                && !due
                && self.shared.quiet_for() > Duration::from_millis(150)
                && accepted(self)
                && counted(self))
                || Instant::now() > until
            {
                return;
            }
        }
    }

    /// Where nothing else decides, the scheduler puts pods on the first node and not where chance has it.
    fn add_node(&mut self, mut spec: NodeSpec) {
        if self.nodes.names().next().is_some() {
            spec.taints.push(("live.example.test/later".to_owned(), String::new(), "PreferNoSchedule".to_owned()));
        }
        self.with_nodes(|nodes, site| nodes.add(site, spec));
    }
    fn nodes(&mut self) -> &mut Nodes {
        &mut self.nodes
    }
    fn with_nodes<T>(&mut self, act: impl FnOnce(&mut Nodes, &mut Site<'_>) -> T) -> T {
        let Self { server, nodes, shared, told, .. } = self;
        nodes.set_now(Timestamp::now());
        act(nodes, &mut Site { server, registry: &mut Tags(shared), told })
    }
    fn registry<T>(&mut self, act: impl FnOnce(&mut Registry) -> T) -> T {
        act(&mut lock(&self.shared.registry))
    }
    fn faults<T>(&mut self, act: impl FnOnce(&mut Faults) -> T) -> T {
        act(&mut lock(&self.shared.faults))
    }
    fn refuse(&mut self, rule: Rule) {
        lock(&self.shared.rules).add_rule(rule);
    }
    fn allow(&mut self) {
        lock(&self.shared.rules).clear_rules();
    }
}

/// The control plane has taken note that this node is ready, if it is.
fn is_accepted(node: &Value) -> bool {
    let list = |pointer: &str| node.pointer(pointer).and_then(Value::as_array).cloned().unwrap_or_default();
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let conditions = list("/status/conditions");
    let ready = conditions.iter().any(|one| text(one, "type") == "Ready" && text(one, "status") == "True");
    let silent = list("/spec/taints").iter().any(|taint| text(taint, "key").starts_with("node.kubernetes.io/"));
    !(ready && silent)
}

/// A cluster without anything in it, for what paths mean and for refusals.
pub fn rules() -> Store {
    let mut store = Store::new(Timestamp::now());
    for crd in crate::core::api::crd::crds() {
        store.install_crd(&crd);
    }
    store
}

/// Time since a moment on the wall.
pub fn since(start: Timestamp, at: Timestamp) -> Duration {
    let span: SignedDuration = at.duration_since(start);
    span.try_into().unwrap_or(Duration::ZERO)
}
