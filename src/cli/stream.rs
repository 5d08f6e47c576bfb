//! The observation stream: what a cluster holds, as files, and beside it what the API server does not hold.

use super::Failure;
use super::field::Field;
use super::observation::Observation;
use super::source::{self, Document};
use crate::core::cocoonset::observed::Lease;
use crate::core::contract::keys;
use crate::core::control::kinds::{Event, Kind};
use crate::core::control::view::{Clocks, View};
use crate::core::control::wake::Key;
use crate::core::meta;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How long the process has been up for a decision on files: no age can be given that reaches further back.
pub const OLDEST: Duration = Duration::from_secs(30 * 24 * 3600);

/// Everything that was read.
#[derive(Debug)]
pub struct Stream {
    objects: BTreeMap<Kind, BTreeMap<Key, Value>>,
    pub(super) observation: Observation,
    /// The time to decide at.
    pub now: Timestamp,
    /// What a person should know about the reading of it.
    pub notes: Vec<String>,
}

impl Stream {
    /// Reads these files; `-` is stdin.
    pub fn read(files: &[String]) -> Result<Self, Failure> {
        let mut reading = Reading::default();
        for document in &source::read_all(files)? {
            reading.document(document)?;
        }
        reading.finish()
    }
    /// Every object of this kind, by namespace and name.
    pub fn objects(&self, kind: Kind) -> impl Iterator<Item = (&Key, &Value)> {
        self.objects.get(&kind).into_iter().flatten()
    }
    /// The cache of an operator that has seen all of it. Kinds that do not occur are unknown, as before a first list.
    pub fn view(&self) -> View {
        let mut view = View::new();
        for kind in Kind::ALL {
            let Some(objects) = self.objects.get(&kind) else { continue };
            let items: Vec<Value> = objects.values().cloned().collect();
            let version = items.iter().filter_map(version).max().unwrap_or_default().to_string();
            view.apply(kind, Event::Listed { items, version });
        }
        view
    }
    /// The clocks of the decision: nothing is spread, so that the same stream gives the same output.
    pub fn clocks(&self) -> Clocks {
        Clocks { now: self.now, mono: OLDEST, seed: 0, lease: Lease::NotNeeded }
    }
}

fn version(object: &Value) -> Option<u64> {
    meta::text(object, "resourceVersion").parse().ok()
}

#[derive(Default)]
struct Reading {
    objects: BTreeMap<Kind, BTreeMap<Key, Value>>,
    observation: Option<(Document, Value)>,
    newest: Option<Timestamp>,
    /// Where each object stands; more than one place is one too many.
    places: BTreeMap<(Kind, Key), Vec<String>>,
    skipped: BTreeMap<String, usize>,
    unlabelled: usize,
    notes: Vec<String>,
}

impl Reading {
    fn document(&mut self, document: &Document) -> Result<(), Failure> {
        self.object(&Field::root(&document.value, "", &document.origin), document, None)
    }

    /// One object, or a list of them; items of a typed list may leave out what they are.
    fn object(&mut self, at: &Field<'_>, document: &Document, of: Option<(&str, &str)>) -> Result<(), Failure> {
        at.entries("fields, with apiVersion and kind")?;
        let kind = match (at.get("kind"), of) {
            (None, Some((_, kind))) => kind,
            _ => at.need("kind", "a kind such as CocoonSet, Pod or List")?.text("a kind")?,
        };
        let api = match (at.get("apiVersion"), of) {
            (None, Some((api, _))) => api,
            _ => at.need("apiVersion", "an apiVersion such as v1")?.text("an apiVersion")?,
        };
        if let Some(item_kind) = kind.strip_suffix("List") {
            return self.list(at, document, (api, item_kind));
        }
        if kind == "Observation" {
            return self.observation(at, document, api);
        }
        match known(kind) {
            Some((known, expected)) if api == expected => self.known(known, at),
            Some((Kind::CocoonSets | Kind::CocoonHibernations, expected)) => {
                Err(at.need("apiVersion", "")?.fault(format_args!("expected {expected} for a {kind}, found {api}")))
            }
            Some(_) | None => {
                *self.skipped.entry(format!("{kind} ({api})")).or_default() += 1;
                Ok(())
            }
        }
    }

    fn list(&mut self, at: &Field<'_>, document: &Document, (api, kind): (&str, &str)) -> Result<(), Failure> {
        let typed = (!kind.is_empty()).then_some((api, kind));
        // `null` is how Go writes an empty list.
        if at.value().get("items").is_none() {
            return Err(at.need("items", "a list of objects").err().unwrap_or_else(|| at.fault("has no items")));
        }
        if let Some((known, expected)) = known(kind)
            && api == expected
        {
            self.objects.entry(known).or_default();
        }
        for item in at.get("items").map(|items| items.items("objects")).transpose()?.unwrap_or_default() {
            self.object(&item, document, typed)?;
        }
        Ok(())
    }

    fn observation(&mut self, at: &Field<'_>, document: &Document, api: &str) -> Result<(), Failure> {
        let expected = super::observation::API_VERSION;
        if api != expected {
            return Err(at.need("apiVersion", expected)?.fault(format_args!("expected {expected}, found {api}")));
        }
        if let Some((first, _)) = &self.observation {
            return Err(
                at.fault(format_args!("a second Observation; expected at most one, and {} is it", first.origin))
            );
        }
        self.observation = Some((document.clone(), at.value().clone()));
        Ok(())
    }

    fn known(&mut self, kind: Kind, at: &Field<'_>) -> Result<(), Failure> {
        let metadata = at.need("metadata", "a mapping with a name")?;
        metadata.entries("name and more")?;
        let name = metadata.need("name", "the name of the object")?.text("the name of the object")?;
        let namespace = metadata.get("namespace").map(|at| at.text("a namespace")).transpose()?;
        super::metadata::check(&metadata)?;
        let mut object = at.value().clone();
        self.newest = newest(&object).into_iter().chain(self.newest).max();
        let key = match kind {
            Kind::Namespaces | Kind::Nodes => Key::new("", name),
            Kind::CocoonSets | Kind::CocoonHibernations | Kind::Pods => Key::new(namespace.unwrap_or("default"), name),
        };
        if kind == Kind::Pods && metadata.get("labels").and_then(|labels| labels.get(keys::NAME)).is_none() {
            self.unlabelled += 1;
            self.objects.entry(kind).or_default();
            return Ok(());
        }
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            if namespace.is_none() && !key.namespace.is_empty() {
                metadata.insert("namespace".to_owned(), json!(key.namespace));
            }
            if kind == Kind::CocoonSets && !metadata.get("uid").is_some_and(Value::is_string) {
                self.notes.push(format!("CocoonSet {key} has no uid: explained as if it had just been created"));
                metadata.insert("uid".to_owned(), json!(format!("unassigned:{key}")));
                metadata.entry("generation").or_insert(json!(1));
            }
        }
        self.places.entry((kind, key.clone())).or_default().push(at.place());
        self.add(kind, key, object);
        Ok(())
    }

    fn add(&mut self, kind: Kind, key: Key, object: Value) {
        let objects = self.objects.entry(kind).or_default();
        if objects.get(&key).is_none_or(|other| version(other) <= version(&object)) {
            objects.insert(key, object);
        }
    }

    fn finish(mut self) -> Result<Stream, Failure> {
        self.distinct_uids()?;
        for ((kind, key), places) in self.places.iter().filter(|(_, places)| places.len() > 1) {
            let (times, places) = (places.len(), places.join("; "));
            let counts = "the one of the highest resourceVersion counts, and of equal ones the last";
            self.notes.push(format!("{} {key} is given {times} times: {places}; {counts}", kind.resource()));
        }
        let keys = |kind: Kind| -> BTreeSet<Key> {
            self.objects.get(&kind).into_iter().flatten().map(|(key, _)| key.clone()).collect()
        };
        let (sets, hibernations) = (keys(Kind::CocoonSets), keys(Kind::CocoonHibernations));
        let observation = match &self.observation {
            Some((document, value)) => {
                let at = Field::root(value, "", &document.origin);
                Observation::read(&at, &|kind, key| {
                    if kind == keys::SET_KIND { sets.contains(key) } else { hibernations.contains(key) }
                })?
            }
            None => Observation::default(),
        };
        if !self.skipped.is_empty() {
            let kinds: Vec<String> = self.skipped.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
            self.notes.push(format!("skipped, no decision looks at them: {}", kinds.join(", ")));
        }
        if self.unlabelled > 0 {
            let count = self.unlabelled;
            self.notes.push(format!("skipped, not watched: {count} Pod without the label {}", keys::NAME));
        }
        let now = observation.now.or(self.newest).unwrap_or_else(|| {
            self.notes.push(format!("no time occurs anywhere: decided as of {}", Timestamp::UNIX_EPOCH));
            Timestamp::UNIX_EPOCH
        });
        Ok(Stream { objects: self.objects, observation, now, notes: self.notes })
    }

    /// What the operator remembers and owns hangs on the uid: a copied manifest must not share it.
    fn distinct_uids(&self) -> Result<(), Failure> {
        let mut uids: BTreeMap<String, &Key> = BTreeMap::new();
        for (key, object) in self.objects.get(&Kind::CocoonSets).into_iter().flatten() {
            let uid = meta::text(object, "uid");
            if let Some(other) = uids.insert(uid.clone(), key) {
                let place = |key: &Key| {
                    let places = self.places.get(&(Kind::CocoonSets, key.clone()));
                    places.and_then(|places| places.last()).cloned().unwrap_or_default()
                };
                let (at, there) = (place(key), place(other));
                return Err(Failure::Usage(format!(
                    "{at}: CocoonSet {key}: metadata.uid: {uid} is the uid of CocoonSet {other} too ({there}); expected a \
                     uid of its own"
                )));
            }
        }
        Ok(())
    }
}

/// A kind that decisions look at, and its apiVersion.
fn known(kind: &str) -> Option<(Kind, &'static str)> {
    match kind {
        keys::SET_KIND => Some((Kind::CocoonSets, keys::API_VERSION)),
        keys::HIBERNATION_KIND => Some((Kind::CocoonHibernations, keys::API_VERSION)),
        "Pod" => Some((Kind::Pods, "v1")),
        "Namespace" => Some((Kind::Namespaces, "v1")),
        "Node" => Some((Kind::Nodes, "v1")),
        _ => None,
    }
}

/// The newest creation, condition or managedFields time of an object.
fn newest(object: &Value) -> Option<Timestamp> {
    let list = |pointer: &str| object.pointer(pointer).and_then(Value::as_array).into_iter().flatten();
    let conditions = list("/status/conditions").filter_map(Value::as_object).flat_map(|condition| condition.values());
    let managed = list("/metadata/managedFields").filter_map(|entry| entry.get("time"));
    let created = object.pointer("/metadata/creationTimestamp");
    let all = created.into_iter().chain(conditions).chain(managed);
    all.filter_map(Value::as_str).filter_map(|text| text.parse().ok()).max()
}
