//! The node objects: registration, conditions and taints, and what the control plane makes of a node that is silent.

use super::site::NodeCondition;
use super::{Node, Nodes, Site, Work, later};
use crate::core::contract::keys;
use crate::core::wire::{JSON, Method, Request, STRATEGIC_MERGE_PATCH};
use crate::sim::world::Told;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The control plane waits this long for a heartbeat.
const GRACE: Duration = Duration::from_secs(40);

/// A node to add.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeSpec {
    /// Its name, also its hostname.
    pub name: String,
    /// Its pool.
    pub pool: String,
    /// Its snapshot compatibility class.
    pub class: Option<String>,
    /// How many pods it takes.
    pub capacity_pods: u32,
    /// Allocatable CPU, as a quantity.
    pub capacity_cpu: String,
    /// Allocatable memory, as a quantity.
    pub capacity_memory: String,
    /// What `ephemeral-storage` it offers: agents ask for the storage of their VM so.
    pub capacity_storage: String,
    /// Further labels.
    pub labels: BTreeMap<String, String>,
    /// Further taints: key, value, effect.
    pub taints: Vec<(String, String, String)>,
}

impl NodeSpec {
    /// A node of the default pool with room for everything that tests make.
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            pool: "default".to_owned(),
            class: None,
            capacity_pods: 256,
            capacity_cpu: "64".to_owned(),
            capacity_memory: "256Gi".to_owned(),
            capacity_storage: "64Ti".to_owned(),
            labels: BTreeMap::new(),
            taints: Vec::new(),
        }
    }

    fn object(&self) -> Value {
        let mut labels: Map<String, Value> =
            self.labels.iter().map(|(key, value)| (key.clone(), json!(value))).collect();
        let own = [
            (keys::POOL, self.pool.as_str()),
            (keys::VM_NODE, ""),
            ("type", "virtual-kubelet"),
            ("kubernetes.io/role", "agent"),
            (keys::HOSTNAME, self.name.as_str()),
        ];
        labels.extend(own.iter().map(|(key, value)| ((*key).to_owned(), json!(value))));
        if let Some(class) = &self.class {
            labels.insert(keys::CPU_CLASS.to_owned(), json!(class));
        }
        let mut taints = vec![json!({"key": keys::PROVIDER_TAINT, "value": keys::PROVIDER, "effect": "NoSchedule"})];
        taints.extend(
            self.taints.iter().map(|(key, value, effect)| json!({"key": key, "value": value, "effect": effect})),
        );
        json!({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": self.name, "labels": labels},
            "spec": {"taints": taints},
        })
    }

    fn status(&self, index: u64) -> Value {
        let room = json!({
            "pods": self.capacity_pods.to_string(), "cpu": self.capacity_cpu, "memory": self.capacity_memory,
            "ephemeral-storage": self.capacity_storage,
        });
        json!({
            "capacity": room, "allocatable": room,
            "addresses": [
                {"type": "InternalIP", "address": format!("10.0.{}.{}", index / 250, index % 250 + 1)},
                {"type": "Hostname", "address": self.name},
            ],
            "nodeInfo": {"kubeletVersion": "v1.33.0-vk", "operatingSystem": "linux", "architecture": "amd64"},
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        })
    }
}

impl Nodes {
    /// Adds a node, registers it and starts its agent.
    pub(crate) fn add(&mut self, site: &mut Site<'_>, spec: NodeSpec) {
        let index = u64::try_from(self.nodes.len()).unwrap_or(0);
        let name = spec.name.clone();
        let node = Node {
            spec,
            index,
            up: false,
            silent: false,
            vms: BTreeMap::new(),
            snapshots: BTreeSet::new(),
            images: BTreeSet::new(),
        };
        self.nodes.entry(name.clone()).or_insert(node);
        self.come_back(site, &name);
    }

    /// The node is there and its agent runs: registered, Ready, without the taints of a silent one.
    pub(crate) fn come_back(&mut self, site: &mut Site<'_>, node: &str) {
        self.agenda.cancel(&Work::Missed(node.to_owned()));
        let Some(held) = self.nodes.get_mut(node) else { return };
        held.silent = false;
        let (object, status, user) = (held.spec.object(), held.spec.status(held.index), format!("system:node:{node}"));
        if !site.server.has_node(node) {
            site.server.handle_as(&user, &Request::new(Method::Post, "/api/v1/nodes").with_body(JSON, object));
        }
        let patch = Request::new(Method::Patch, format!("/api/v1/nodes/{node}/status"))
            .with_body(STRATEGIC_MERGE_PATCH, json!({ "status": status }));
        site.server.handle_as(&user, &patch);
        self.condition(site, node, "True", "KubeletReady", "the agent is ready");
        self.start_agent(site, node);
    }

    /// The agent does not react any more; nothing else shows it.
    pub(crate) fn agent_down(&mut self, node: &str) {
        self.stop_agent(node);
    }

    /// The machine cannot be reached: its VMs may run on. The control plane notices after 40 s.
    pub(crate) fn lose(&mut self, node: &str) {
        self.stop_agent(node);
        self.nodes.get_mut(node).into_iter().for_each(|held| held.silent = true);
        self.agenda.plan(Work::Missed(node.to_owned()), later(self.now, GRACE));
    }

    /// The machine starts anew: no VM survives.
    pub(crate) fn reboot(&mut self, site: &mut Site<'_>, node: &str) {
        self.stop_agent(node);
        if let Some(held) = self.nodes.get_mut(node) {
            held.vms.clear();
        }
        self.come_back(site, node);
    }

    /// The agent is started anew; what it had begun, it begins again.
    pub(crate) fn restart_agent(&mut self, site: &mut Site<'_>, node: &str) {
        self.stop_agent(node);
        self.start_agent(site, node);
    }

    /// The agent says that its node is not ready; it goes on working.
    pub(crate) fn not_ready(&mut self, site: &mut Site<'_>, node: &str) {
        self.condition(site, node, "False", "KubeletNotReady", "the runtime does not answer");
    }

    /// The control plane has missed the node's heartbeat.
    pub(super) fn missed(&mut self, site: &mut Site<'_>, node: &str) {
        if !site.server.node_is_missed(node, self.now) {
            return;
        }
        site.told.push(Told {
            at: self.now,
            actor: "node-controller".to_owned(),
            object: node.to_owned(),
            text: format!("{node} is not ready"),
        });
    }

    /// The node says how it is.
    fn condition(&mut self, site: &mut Site<'_>, node: &str, status: &str, reason: &str, message: &str) {
        site.server.node_says(node, &NodeCondition { status, reason, message }, self.now);
    }
}
