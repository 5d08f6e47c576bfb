//! Incident A at every write of a set's life: each meets its conflict once, and nothing comes of it but one more write.

use cocoon_operator::core::action::{ActionKind, Attempt};
use cocoon_operator::core::classify::classify;
use cocoon_operator::core::outcome::Class;
use cocoon_operator::core::wire::Verb;
use cocoon_operator::scenario::happenings::Counts;
use cocoon_operator::scenario::runner::{self, Played};
use cocoon_operator::scenario::script::Script;
use cocoon_operator::scenario::stage::Stage;
use cocoon_operator::sim::faults::{Fault, Pattern, What, reply_of_class};
use cocoon_operator::sim::world::World;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

const SET: &str = "demo";

/// What happens in a set's life, one part after another; after each, everything settles.
const LIFE: [&str; 5] = [
    "settle",
    "edit: {spec: {agent: {replicas: 3}}}",
    "edit: {spec: {agent: {replicas: 1}}}",
    "edit: {spec: {agent: {image: 'ghcr.io/cocoonstack/cocoon/ubuntu:25.04'}}}",
    "delete: {set: demo}",
];
/// How many parts it has before the set is deleted.
const ALIVE: usize = LIFE.len() - 1;

fn life(parts: usize) -> Script {
    let steps: String = LIFE.iter().take(parts).map(|part| format!("  - {part}\n  - settle\n")).collect();
    let text = format!(
        "story: A set's life.\ngiven:\n  set: {{set: {SET}, replicas: 1, toolboxes: [{{name: tb, mode: run, image: 'ghcr.io/cocoonstack/cocoon/ubuntu:24.04'}}]}}\nwhen:\n{steps}\
         then:\n  - errors is 0\n  - nothing gave up\n"
    );
    Script::parse("life", &text).expect("a story")
}

/// One write of the life, and the answer that it may meet.
#[derive(Clone, Debug, PartialEq)]
struct Write {
    action: ActionKind,
    verb: Verb,
    resource: &'static str,
    name: String,
    /// The nth of this verb, resource and name.
    nth: u64,
    class: Class,
}

impl Write {
    fn fault(&self) -> Fault {
        let reply = reply_of_class(self.class, self.verb, self.resource, &format!("default/{}", self.name));
        let reply = reply.expect("such an answer exists");
        assert_eq!(classify(self.verb, &reply).class, self.class);
        Fault::new(Pattern::of(self.verb, self.resource).named(&self.name), What::Answer(reply)).nth(self.nth)
    }
}

/// Every write to the API server, in order.
fn writes(played: &Played) -> Vec<Write> {
    let mut counts: BTreeMap<(Verb, &str, String), u64> = BTreeMap::new();
    let mut found = Vec::new();
    for deed in Counts(&played.happenings).deeds().filter(|deed| deed.writes && deed.resource != "snapshots") {
        let verb = [Verb::Create, Verb::Patch, Verb::Delete].into_iter().find(|verb| verb.label() == deed.verb);
        let verb = verb.unwrap_or_else(|| panic!("a write by {}", deed.verb));
        let target = Attempt::of(&deed.action.want).map(|attempt| attempt.target).unwrap_or_default();
        let name = if deed.resource == "pods" { target } else { SET.to_owned() };
        let action = deed.action.kind();
        let resource = if action == ActionKind::PatchStatus { "cocoonsets/status" } else { deed.resource };
        let nth = counts.entry((verb, resource, name.clone())).or_insert(0);
        *nth += 1;
        let class = match (verb, action) {
            (Verb::Create, _) => Class::AlreadyExists,
            (Verb::Delete, _) | (_, ActionKind::AddFinalizer | ActionKind::RemoveFinalizer) => {
                Class::PreconditionFailed
            }
            _ => Class::Conflict,
        };
        found.push(Write { action, verb, resource, name, nth: *nth, class });
    }
    found
}

/// What is there in the end, without what differs from run to run.
fn state(world: &mut World) -> Vec<Value> {
    let resources = ["cocoonsets.cocoonset.cocoonstack.io", "pods"];
    let objects = resources.into_iter().flat_map(|resource| world.store.objects(resource, None)).map(scrubbed);
    // Digests are drawn in the order of the pushes, which is nobody's business.
    objects.chain(world.registry.tags().map(|(vm, tag, _)| Value::String(format!("{vm}:{tag}")))).collect()
}

fn scrubbed(object: &Value) -> Value {
    const VOLATILE: [&str; 8] = [
        "uid",
        "resourceVersion",
        "creationTimestamp",
        "lastTransitionTime",
        "startTime",
        "startedAt",
        "vm.cocoonstack.io/id",
        "managedFields",
    ];
    match object {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(key, _)| !VOLATILE.contains(&key.as_str()));
            Value::Object(kept.map(|(key, value)| (key.clone(), scrubbed(value))).collect::<Map<_, _>>())
        }
        Value::Array(items) => Value::Array(items.iter().map(scrubbed).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => object.clone(),
    }
}

struct Ran {
    played: Played,
    state: Vec<Value>,
    writes: usize,
}

/// Plays so many parts with these faults.
fn run(parts: usize, faults: &[Fault], mut stage: impl Stage<Realm = World>) -> Ran {
    stage.with(|world| faults.iter().for_each(|fault| world.faults.add(fault.clone())));
    let played = runner::play_on(&life(parts), &mut stage).expect("it plays");
    stage.with(|world| {
        let met = world.faults.all().iter().filter(|fault| fault.is_spent()).count();
        assert_eq!(met, faults.len(), "not every conflict was met\n{}", played.transcript);
    });
    let writes = Counts(&played.happenings).calls("write", "any");
    Ran { state: stage.with(state), played, writes }
}

fn in_memory(parts: usize, faults: &[Fault]) -> Ran {
    run(parts, faults, runner::in_memory(&life(parts)).expect("a stage"))
}

fn embedded(parts: usize, faults: &[Fault]) -> Ran {
    run(parts, faults, runner::embedded(&life(parts)).expect("a stage"))
}

/// The same end state, no error, and at most one more write for each conflict.
fn nothing_came_of_it(what: &str, conflicts: usize, ran: &Ran, plain: &Ran) {
    let told = &ran.played.transcript;
    assert!(ran.played.failures.is_empty(), "{what}: {:?}\n{told}", ran.played.failures);
    assert_eq!(ran.state, plain.state, "{what}\n{told}");
    let extra = ran.writes.saturating_sub(plain.writes);
    assert!(extra <= conflicts, "{what}: {extra} more writes\n{told}\n\nwithout\n{}", plain.played.transcript);
}

#[test]
fn the_life_has_every_kind_of_write() {
    let all = writes(&in_memory(LIFE.len(), &[]).played);
    let kinds: std::collections::BTreeSet<ActionKind> = all.iter().map(|write| write.action).collect();
    for kind in [
        ActionKind::AddFinalizer,
        ActionKind::RemoveFinalizer,
        ActionKind::PatchObject,
        ActionKind::PatchStatus,
        ActionKind::CreatePod,
        ActionKind::DeletePod,
        ActionKind::PatchPod,
    ] {
        assert!(kinds.contains(&kind), "{} does not occur in {all:#?}", kind.name());
    }
}

#[test]
fn every_write_may_meet_its_conflict_in_memory() {
    let (alive, whole) = (in_memory(ALIVE, &[]), in_memory(LIFE.len(), &[]));
    let before = writes(&alive.played).len();
    for (at, write) in writes(&whole.played).iter().enumerate() {
        let what = format!("write {at}: {write:?}");
        let (parts, plain) = if at < before { (ALIVE, &alive) } else { (LIFE.len(), &whole) };
        nothing_came_of_it(&what, 1, &in_memory(parts, &[write.fault()]), plain);
    }
}

/// A sample: every third write, by the shell.
#[test]
fn every_write_may_meet_its_conflict_embedded() {
    let (alive, whole) = (embedded(ALIVE, &[]), embedded(LIFE.len(), &[]));
    let before = writes(&alive.played).len();
    for (at, write) in writes(&whole.played).iter().enumerate().step_by(3) {
        let what = format!("write {at}: {write:?}");
        let (parts, plain) = if at < before { (ALIVE, &alive) } else { (LIFE.len(), &whole) };
        nothing_came_of_it(&what, 1, &embedded(parts, &[write.fault()]), plain);
    }
}

/// All in one life: the first write of each action to each object meets its conflict.
#[test]
fn a_life_full_of_conflicts_ends_as_any_other() {
    let whole = embedded(LIFE.len(), &[]);
    let mut first: Vec<Write> = Vec::new();
    for write in writes(&whole.played).into_iter().filter(|write| write.nth == 1) {
        first.push(write);
    }
    let faults: Vec<Fault> = first.iter().map(Write::fault).collect();
    assert!(faults.len() > 8, "{first:#?}");
    nothing_came_of_it("all at once", faults.len(), &embedded(LIFE.len(), &faults), &whole);
    let alive = embedded(ALIVE, &[]);
    let met: Vec<Fault> = writes(&alive.played).iter().filter(|write| write.nth == 1).map(Write::fault).collect();
    nothing_came_of_it("all at once, alive", met.len(), &embedded(ALIVE, &met), &alive);
}
