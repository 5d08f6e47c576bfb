//! `dump`: all that a decision depends on, read from a live cluster and written as an observation stream.

mod reading;
mod tags;

use super::run::{config, told};
use super::{Failure, Report, note};
use crate::core::cocoonset::observed::{Lease, LivePod, Observed};
use crate::core::contract::names::{agent_pod, toolbox_pod};
use crate::core::control::kinds::{Event, Kind};
use crate::core::control::mirror::{Held, without_secrets};
use crate::core::control::view::{Clocks, View};
use crate::core::control::wake::Key;
use crate::shell::clock::Clock;
use crate::shell::options::StartupError;
use crate::shell::reference::Base;
use crate::shell::registry::Registry;
use crate::shell::registry::credentials::Keyring;
use jiff::Timestamp;
use reading::{Cluster, Reach};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// `dump`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Reads only; writes what `explain -f -` takes. Values of environment variables and managedFields are left out. Registry \
facts are asked for only where OCI_REGISTRY is set. What the running operator remembers comes with --from.

Exits 1 where there is no such object, 3 where the cluster, or what --from names, cannot be reached.")]
pub struct Args {
    /// cocoonset/NAME or cocoonhibernation/NAME
    #[arg(value_name = "KIND/NAME", required_unless_present = "all", conflicts_with = "all")]
    pub object: Option<String>,
    /// Namespace of the object; with --all, the one namespace whose objects are wanted [default: default, with --all every one]
    #[arg(short = 'n', long, value_name = "NAMESPACE", value_parser = namespace)]
    pub namespace: Option<String>,
    /// Every object, of every namespace or of the one that -n names
    #[arg(long)]
    pub all: bool,
    /// Address of the API server, e.g. http://127.0.0.1:8001 for the sandbox, whatever KUBECONFIG says; without it as kubectl finds it
    #[arg(short = 's', long, value_name = "URL")]
    pub server: Option<String>,
    /// Kubeconfig file
    #[arg(long = "kubeconfig", env = "KUBECONFIG", value_name = "FILE", id = "kubeconfig_flag")]
    pub kubeconfig: Option<String>,
    /// Where the running operator serves /debug, e.g. http://127.0.0.1:8082: adds what only it remembers
    #[arg(long, value_name = "URL")]
    pub from: Option<String>,
    /// Registry of VM snapshots, to ask for the tags of the object's VMs
    #[arg(long, env = "OCI_REGISTRY", value_name = "BASE")]
    pub oci_registry: Option<String>,
}

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Wanted {
    All,
    Within(String),
    One(Kind, Key),
}

/// `dump`.
pub fn run(args: &Args) -> Result<Report, Failure> {
    let wanted = wanted(args)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::Environment(format!("the runtime: {error}")))?;
    runtime.block_on(dump(args, &wanted))
}

fn wanted(args: &Args) -> Result<Wanted, Failure> {
    let Some(text) = &args.object else {
        return Ok(args.namespace.clone().map_or(Wanted::All, Wanted::Within));
    };
    let expected = || Failure::Usage(format!("{text}: expected cocoonset/NAME or cocoonhibernation/NAME"));
    let (kind, name) = text.split_once('/').ok_or_else(expected)?;
    let kind = match kind.to_ascii_lowercase().split('.').next().unwrap_or_default() {
        "cocoonset" | "cocoonsets" | "cs" => Kind::CocoonSets,
        "cocoonhibernation" | "cocoonhibernations" => Kind::CocoonHibernations,
        _ => return Err(expected()),
    };
    if name.is_empty() || name.contains('/') {
        return Err(expected());
    }
    Ok(Wanted::One(kind, Key::new(args.namespace.as_deref().unwrap_or("default"), name)))
}

fn namespace(text: &str) -> Result<String, String> {
    let is_name = (1..=63).contains(&text.len())
        && text.bytes().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-')
        && !text.starts_with('-')
        && !text.ends_with('-');
    if is_name { Ok(text.to_owned()) } else { Err("expected the name of one namespace".to_owned()) }
}

async fn dump(args: &Args, wanted: &Wanted) -> Result<Report, Failure> {
    let failed = |error: StartupError| {
        let message = error.to_string();
        if error.code() == super::USAGE { Failure::Usage(message) } else { Failure::Environment(message) }
    };
    // One provider, whatever other crates bring along; an error says that there is one already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let config = match &args.server {
        Some(url) => kube::Config::new(address("--server", url)?),
        None => config(args.kubeconfig.as_deref()).await.map_err(failed)?,
    };
    let registry = match args.oci_registry.as_deref().filter(|base| !base.trim().is_empty()) {
        Some(base) => {
            let base = Base::parse(base, None).map_err(failed)?;
            let registry = Registry::http(base, Clock::real()).map_err(failed)?;
            Some(registry.with_keyring(Keyring::of_environment()).with_causes())
        }
        None => None,
    };
    let operator = args.from.as_deref().map(|url| Cluster::connect(kube::Config::new(address("--from", url)?)));
    let operator = operator.transpose()?;
    let stream = read(&Cluster::connect(config)?, wanted, registry.as_ref()).await?;
    let observation = complete(stream.observation, &stream.keys, operator.as_ref()).await?;
    let mut text = String::new();
    for document in stream.lists.iter().chain([&observation]) {
        text += &serde_json::to_string_pretty(document)
            .map_err(|error| Failure::Environment(format!("cannot print: {error}")))?;
        text.push('\n');
    }
    Ok(Report::of(text))
}

fn address(flag: &str, url: &str) -> Result<http::Uri, Failure> {
    let parsed = url.trim().trim_end_matches('/').parse::<http::Uri>().ok();
    let spoken = |uri: &http::Uri| matches!(uri.scheme_str(), Some("http" | "https"));
    let whole = parsed.filter(|uri| spoken(uri) && uri.authority().is_some());
    whole.ok_or_else(|| Failure::Usage(format!("{flag} {url}: expected an address such as http://127.0.0.1:8082")))
}

/// What was read.
struct Stream {
    lists: Vec<Value>,
    observation: Map<String, Value>,
    keys: Vec<Key>,
}

async fn read(cluster: &Cluster, wanted: &Wanted, registry: Option<&Registry>) -> Result<Stream, Failure> {
    let reach = match wanted {
        Wanted::All => Reach::Everywhere,
        Wanted::Within(namespace) => Reach::AtLeast(namespace.clone()),
        Wanted::One(_, key) => Reach::AtLeast(key.namespace.clone()),
    };
    let mut view = View::new();
    view.keep_objects();
    let mut read: BTreeMap<Kind, Vec<Value>> = BTreeMap::new();
    for kind in Kind::ALL {
        let Some((items, version)) = cluster.list(kind, &reach).await? else { continue };
        read.insert(kind, items.clone());
        view.apply(kind, Event::Listed { items, version });
    }
    let now = Timestamp::now();
    let keys = subjects(&view, wanted, &read)?;
    if let Wanted::Within(namespace) = wanted {
        nothing_within(namespace, &read).iter().for_each(|words| note(words));
    }
    let clocks = Clocks { now, mono: Duration::ZERO, seed: 0, lease: Lease::NotNeeded };
    let observed: Vec<Observed> = keys.iter().filter_map(|key| view.observe(key, clocks)).collect();
    let held = match wanted {
        Wanted::All => None,
        Wanted::Within(namespace) => {
            let own = [Kind::CocoonSets, Kind::CocoonHibernations].into_iter().flat_map(|kind| {
                let all = read.get(&kind).into_iter().flatten().map(Key::of);
                all.filter(|key| key.namespace == *namespace).map(move |key| (kind, key))
            });
            Some(around(&view, &observed, own))
        }
        Wanted::One(kind, key) => Some(around(&view, &observed, [(*kind, key.clone())])),
    };
    let mut observation = Map::new();
    observation.insert("apiVersion".to_owned(), json!(super::observation::API_VERSION));
    observation.insert("kind".to_owned(), json!("Observation"));
    observation.insert("now".to_owned(), json!(now));
    let mut outcomes = Vec::new();
    let mut snapshots = Map::new();
    for seen in &observed {
        outcomes.extend(hidden_pods(cluster, seen).await?);
        if let Some(registry) = registry {
            snapshots.extend(tags::tags(registry, seen, now).await);
        }
    }
    if registry.is_some() {
        observation.insert("snapshots".to_owned(), Value::Object(snapshots));
    }
    if !outcomes.is_empty() {
        observation.insert("outcomes".to_owned(), Value::Array(outcomes));
    }
    Ok(Stream { lists: lists(&view, &read, held.as_deref()), observation, keys })
}

/// What to say of a namespace that holds nothing of ours.
fn nothing_within(namespace: &str, read: &BTreeMap<Kind, Vec<Value>>) -> Option<String> {
    let ours = [Kind::CocoonSets, Kind::CocoonHibernations].into_iter().filter_map(|kind| read.get(&kind)).flatten();
    if ours.map(Key::of).any(|key| key.namespace == namespace) {
        return None;
    }
    // Who may not list namespaces does not know.
    let known = read.get(&Kind::Namespaces).map(|all| all.iter().any(|one| Key::of(one).name == namespace));
    Some(match known {
        Some(false) => format!("-n {namespace}: there is no such namespace; nothing of it is dumped"),
        Some(true) | None => format!("-n {namespace}: no CocoonSet and no CocoonHibernation is there"),
    })
}

/// The sets whose surroundings are wanted.
fn subjects(view: &View, wanted: &Wanted, read: &BTreeMap<Kind, Vec<Value>>) -> Result<Vec<Key>, Failure> {
    let (kind, key) = match wanted {
        Wanted::All => return Ok(view.keys().cloned().collect()),
        Wanted::Within(namespace) => {
            return Ok(view.keys().filter(|key| key.namespace == *namespace).cloned().collect());
        }
        Wanted::One(kind, key) => (kind, key),
    };
    let objects = read.get(kind).into_iter().flatten();
    let Some(object) = objects.clone().find(|object| Key::of(object) == *key) else {
        let near: Vec<String> = objects
            .map(Key::of)
            .filter(|other| other.namespace == key.namespace)
            .map(|other| other.name)
            .take(5)
            .collect();
        let near = if near.is_empty() { "none at all".to_owned() } else { near.join(", ") };
        let (kind, namespace) = (kind.resource(), &key.namespace);
        return Err(Failure::Unmet(format!("{kind} {key}: there is none; namespace {namespace} has {near}")));
    };
    if *kind == Kind::CocoonSets {
        return Ok(vec![key.clone()]);
    }
    // A request is decided on together with the set of its pod.
    let (spec, _) = crate::core::api::hibernation::HibernationSpec::read(object.get("spec").unwrap_or(&Value::Null));
    let of_namespace = view.keys().filter(|set| set.namespace == key.namespace);
    let owner = of_namespace.filter(|set| view.set(set).is_some_and(|facts| facts.speaks_of(&spec.pod)));
    Ok(owner.cloned().collect())
}

/// Everything that decisions about these objects depend on.
fn around(view: &View, observed: &[Observed], of: impl IntoIterator<Item = (Kind, Key)>) -> Vec<Held> {
    let mut held: BTreeMap<(Kind, Key), Held> = BTreeMap::new();
    let own = of.into_iter().flat_map(|(kind, key)| {
        let namespace = view.held(Kind::Namespaces, &Key::new("", &key.namespace));
        view.held(kind, &key).into_iter().chain(namespace)
    });
    let behind = observed.iter().flat_map(|seen| view.behind(seen).into_iter().chain(view.behind_rivals(seen)));
    for one in own.chain(behind) {
        held.insert((one.0, one.1.clone()), one);
    }
    held.into_values().collect()
}

/// A list of each kind that was read, so that what is not in it is known to be absent.
fn lists(view: &View, read: &BTreeMap<Kind, Vec<Value>>, held: Option<&[Held]>) -> Vec<Value> {
    let list = |kind: Kind| {
        let items: Vec<Value> = match held {
            Some(held) => {
                held.iter().filter(|(of, ..)| *of == kind).map(|(_, _, object)| object.as_ref().clone()).collect()
            }
            None => {
                let keys = read.get(&kind).into_iter().flatten().map(Key::of);
                keys.filter_map(|key| view.held(kind, &key)).map(|(_, _, object)| object.as_ref().clone()).collect()
            }
        };
        let (api, name) = kind.type_meta();
        json!({ "apiVersion": api, "kind": format!("{name}List"), "items": items })
    };
    Kind::ALL.into_iter().filter(|kind| read.contains_key(kind)).map(list).collect()
}

/// Pods under names of the set's formula that no watch shows, since they lack the label: the operator would meet them at
/// its next create, and read them live.
async fn hidden_pods(cluster: &Cluster, seen: &Observed) -> Result<Vec<Value>, Failure> {
    let mut found = Vec::new();
    let name = &seen.set.name;
    let agents = (0..=seen.set.spec.agent.replicas_clamped).map(|slot| agent_pod(name, slot));
    let toolboxes = seen.set.spec.toolboxes.iter().map(|toolbox| toolbox_pod(name, &toolbox.name));
    let wanted: BTreeSet<String> = agents.chain(toolboxes).map(|pod| pod.to_string()).collect();
    for pod in wanted.iter().filter(|pod| !seen.pods.contains_key(*pod) && !seen.strangers.contains_key(*pod)) {
        let Some(object) = cluster.pod(&seen.set.namespace, pod).await? else { continue };
        if LivePod::of(&object).labelled.is_some() {
            // It came while this was read.
            continue;
        }
        let body = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": without_secrets(&object).get("metadata") });
        let key = Key::new(&seen.set.namespace, &seen.set.name).to_string();
        found.push(
            json!({ "object": key, "action": "ReadLive", "target": format!("pod/{pod}"), "status": 200, "body": body }),
        );
    }
    Ok(found)
}

/// Adds what the running operator remembers.
async fn complete(
    mut observation: Map<String, Value>,
    keys: &[Key],
    operator: Option<&Cluster>,
) -> Result<Value, Failure> {
    let Some(operator) = operator else {
        note("what the running operator remembers is missing; --from URL adds it");
        return Ok(Value::Object(observation));
    };
    let mut memory = Map::new();
    for key in keys {
        let said = operator.memory(key).await?;
        let name = key.to_string();
        let own = said.get("memory").cloned().unwrap_or_else(|| json!({}));
        // By object, as the document has it, or of this object alone.
        let own = own.get(&name).cloned().unwrap_or(own);
        memory.insert(name, own);
        let more = said.get("outcomes").and_then(Value::as_array).cloned().unwrap_or_default();
        if let Value::Array(outcomes) = observation.entry("outcomes").or_insert_with(|| json!([])) {
            outcomes.extend(more);
        }
    }
    observation.insert("memory".to_owned(), Value::Object(memory));
    Ok(Value::Object(observation))
}

/// What happened, with what is behind it.
fn because(error: &dyn std::error::Error) -> String {
    told(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_that_holds_nothing_is_said() {
        let named = |kind: &str, namespace: &str, name: &str| json!({"kind": kind, "metadata": {"namespace": namespace, "name": name}});
        let mut read = BTreeMap::from([(Kind::CocoonSets, vec![named("CocoonSet", "ns", "demo")])]);
        assert_eq!(nothing_within("ns", &read), None);
        let told = |read: &BTreeMap<Kind, Vec<Value>>| nothing_within("other", read).expect("said");
        assert!(told(&read).contains("no CocoonSet and no CocoonHibernation"));
        read.insert(Kind::Namespaces, vec![named("Namespace", "", "ns")]);
        assert!(told(&read).contains("there is no such namespace"));
    }
}
