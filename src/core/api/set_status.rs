//! The status of a CocoonSet, exactly as it stands on the wire (api.md 1.5).

use super::condition::Condition;
use super::words::{ConnType, SetPhase, phase};
use serde::Serialize;
use serde_json::Value;

/// `status` of a CocoonSet. `nodeName` in entries, and the two fields of the scale subresource, are additive (R18, R25).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SetStatus {
    /// Generation of the last write.
    #[serde(skip_serializing_if = "is_zero")]
    pub observed_generation: i64,
    /// Absent before the first write.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "phase_text")]
    pub phase: Option<SetPhase>,
    /// Always written, also as 0, like the next three.
    pub ready_agents: i32,
    /// 1 + replicas.
    pub desired_agents: i32,
    /// Ready toolboxes among the desired.
    pub ready_toolboxes: i32,
    /// Toolboxes the spec lists.
    pub desired_toolboxes: i32,
    /// Sub-agents there are: what `kubectl scale` and autoscalers compare with `spec.agent.replicas`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sub_agents: Option<i32>,
    /// The label selector of the sub-agents' pods, for autoscalers.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub selector: String,
    /// Main agent first, then sub-agents by slot.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<AgentEntry>,
    /// By name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub toolboxes: Vec<ToolboxEntry>,
    /// Ours and whoever else's.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// One of `status.agents`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentEntry {
    /// 0 for the main agent.
    pub slot: i32,
    /// `main` or `sub-agent`.
    pub role: String,
    /// The pod.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub pod_name: String,
    /// The VM: teardown collects tags by it (R7).
    #[serde(skip_serializing_if = "String::is_empty")]
    pub vm_name: String,
    /// What the node agent calls it.
    #[serde(rename = "vmID", skip_serializing_if = "String::is_empty")]
    pub vm_id: String,
    /// Its address.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ip: String,
    /// Core pod phase.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub phase: String,
    /// Sub-agents: the VM they are forks of.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub forked_from: String,
    /// Where it is, or was last (R18).
    #[serde(skip_serializing_if = "String::is_empty")]
    pub node_name: String,
}

/// One of `status.toolboxes`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolboxEntry {
    /// The toolbox's name in the spec.
    pub name: String,
    /// The pod.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub pod_name: String,
    /// The VM.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub vm_name: String,
    /// What the node agent calls it.
    #[serde(rename = "vmID", skip_serializing_if = "String::is_empty")]
    pub vm_id: String,
    /// Its address.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ip: String,
    /// Core pod phase.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub phase: String,
    /// How one connects; never a word that the schema refuses (D-71).
    #[serde(skip_serializing_if = "no_word", serialize_with = "conn_text")]
    pub conn_type: Option<ConnType>,
    /// Omitted when 0.
    #[serde(skip_serializing_if = "is_no_port")]
    pub vnc_port: i32,
    /// Where it is, or was last (R18).
    #[serde(skip_serializing_if = "String::is_empty")]
    pub node_name: String,
}

fn is_zero(generation: &i64) -> bool {
    *generation == 0
}
fn is_no_port(port: &i32) -> bool {
    *port <= 0
}
fn no_word(word: &Option<ConnType>) -> bool {
    word.as_ref().is_none_or(|word| !word.is_known())
}
fn phase_text<S: serde::Serializer>(phase: &Option<SetPhase>, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(phase.as_ref().map(SetPhase::as_str).unwrap_or_default())
}
fn conn_text<S: serde::Serializer>(word: &Option<ConnType>, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(word.as_ref().map(ConnType::as_str).unwrap_or_default())
}

impl SetStatus {
    /// Reads any JSON: a field that does not fit reads as its default, an entry without its key is dropped.
    pub fn read(status: &Value) -> Self {
        let list = |key: &str| status.get(key).and_then(Value::as_array).into_iter().flatten();
        Self {
            observed_generation: status.get("observedGeneration").and_then(Value::as_i64).unwrap_or_default(),
            phase: phase(status, SetPhase::of),
            ready_agents: int(status, "readyAgents"),
            desired_agents: int(status, "desiredAgents"),
            ready_toolboxes: int(status, "readyToolboxes"),
            desired_toolboxes: int(status, "desiredToolboxes"),
            sub_agents: status.get("subAgents").and_then(Value::as_i64).and_then(|count| i32::try_from(count).ok()),
            selector: text(status, "selector"),
            agents: list("agents").filter_map(AgentEntry::read).collect(),
            toolboxes: list("toolboxes").filter_map(ToolboxEntry::read).collect(),
            conditions: status.get("conditions").map(Condition::read_all).unwrap_or_default(),
        }
    }
    /// The wire form.
    pub fn to_value(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }
    /// Every VM name that the status lists.
    pub fn vm_names(&self) -> impl Iterator<Item = &str> {
        let agents = self.agents.iter().map(|entry| entry.vm_name.as_str());
        agents.chain(self.toolboxes.iter().map(|entry| entry.vm_name.as_str())).filter(|name| !name.is_empty())
    }
}

impl AgentEntry {
    fn read(at: &Value) -> Option<Self> {
        Some(Self {
            slot: i32::try_from(at.get("slot")?.as_i64()?).ok()?,
            role: text(at, "role"),
            pod_name: text(at, "podName"),
            vm_name: text(at, "vmName"),
            vm_id: text(at, "vmID"),
            ip: text(at, "ip"),
            phase: text(at, "phase"),
            forked_from: text(at, "forkedFrom"),
            node_name: text(at, "nodeName"),
        })
    }
}

impl ToolboxEntry {
    fn read(at: &Value) -> Option<Self> {
        Some(Self {
            name: at.get("name")?.as_str().filter(|name| !name.is_empty())?.to_owned(),
            pod_name: text(at, "podName"),
            vm_name: text(at, "vmName"),
            vm_id: text(at, "vmID"),
            ip: text(at, "ip"),
            phase: text(at, "phase"),
            conn_type: ConnType::known(&text(at, "connType")),
            vnc_port: int(at, "vncPort"),
            node_name: text(at, "nodeName"),
        })
    }
}

fn text(at: &Value, key: &str) -> String {
    at.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}
fn int(at: &Value, key: &str) -> i32 {
    at.get(key).and_then(Value::as_i64).and_then(|number| i32::try_from(number).ok()).unwrap_or_default()
}
