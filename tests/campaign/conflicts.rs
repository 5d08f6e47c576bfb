//! A whole life in which every write meets its conflict once.

use crate::chapters::{LIFE, empty};
use crate::fault::conflict;
use crate::life_common::state::{difference, state};
use crate::life_common::{Sent, run_for, sent, tell, wrongs};
use crate::run::say;
use cocoon_operator::core::action::ActionKind;
use cocoon_operator::scenario::happenings::Happening;
use cocoon_operator::scenario::in_memory::InMemory;
use cocoon_operator::scenario::stage::Stage;
use cocoon_operator::sim::faults::{Fault, Pattern, What};
use std::collections::BTreeMap;
use std::time::Duration;

/// Each part of a life is over by then.
const PART: Duration = Duration::from_secs(180);

/// The actions that meet a conflict: a tag has no version.
pub const WRITES: [ActionKind; 7] = [
    ActionKind::AddFinalizer,
    ActionKind::RemoveFinalizer,
    ActionKind::CreatePod,
    ActionKind::DeletePod,
    ActionKind::PatchPod,
    ActionKind::PatchObject,
    ActionKind::PatchStatus,
];

/// A life, and how things stand at the end of each part.
pub struct Life {
    pub ends: Vec<Vec<String>>,
    pub happenings: Vec<Happening>,
    pub calls: Vec<Sent>,
}

/// Lives it.
pub fn live(mut stage: InMemory) -> Life {
    let (mut ends, mut happenings) = (Vec::new(), Vec::new());
    for (name, act) in LIFE {
        happenings.push(Happening::Step(name.to_owned()));
        act(&mut stage.world);
        run_for(&mut stage, PART);
        happenings.extend(stage.take_happenings());
        ends.push(state(&stage.world));
    }
    let calls = sent(&happenings);
    Life { ends, happenings, calls }
}

/// A cluster in which each write of this life meets a conflict when it is first tried. Returns how many there are.
pub fn arrange(stage: &mut InMemory, life: &Life) -> usize {
    let mut counts: BTreeMap<(&str, &str, String), u64> = BTreeMap::new();
    let mut faults = 0;
    for call in &life.calls {
        let kind = if call.action == ActionKind::PatchStatus { "cocoonsets/status" } else { call.resource };
        let tried = counts.entry((call.verb.label(), kind, call.object())).or_default();
        *tried += 1;
        if !call.writes {
            continue;
        }
        let Some(reply) = conflict(call) else { continue };
        let matches = Pattern::of(call.verb, kind).named(&call.object());
        stage.world.faults.add(Fault::new(matches, What::Answer(reply)).nth(*tried));
        // The second try goes through.
        *tried += 1;
        faults += 1;
    }
    faults
}

/// Lives without and with a conflict at every write; prints the table and says what is wrong.
pub fn compare() -> Vec<String> {
    let free = live(empty());
    let mut stage = empty();
    let faults = arrange(&mut stage, &free);
    let met = live(stage);
    let mut wrong = wrongs(&met.happenings);
    for ((name, _), (usual, end)) in LIFE.iter().zip(free.ends.iter().zip(&met.ends)) {
        wrong.extend(difference(usual, end).into_iter().map(|line| format!("{name}: {line}")));
    }
    let mut table = format!("{:16} {:>6} {:>9} {:>6}\n", "every write once", "usual", "conflicts", "sent");
    let mut conflicts = 0;
    for action in WRITES {
        let of = |life: &Life, plain: bool| {
            let all = life.calls.iter().filter(|call| call.action == action && call.writes);
            all.filter(|call| plain || is_conflict(call)).count()
        };
        let (usual, hit, sent) = (of(&free, true), of(&met, false), of(&met, true));
        table += &format!("{:16} {usual:6} {hit:9} {sent:6}\n", action.name());
        conflicts += hit;
        if hit == 0 {
            wrong.push(format!("{} met no conflict", action.name()));
        }
        if sent > usual + hit {
            wrong.push(format!("{}: {sent} sent, of {usual} usual and {hit} in vain", action.name()));
        }
    }
    let reads = |life: &Life| life.calls.iter().filter(|call| !call.writes).count();
    table += &format!("{:16} {:6} {:>9} {:6}\n", "reads", reads(&free), "", reads(&met));
    say(&table);
    if conflicts != faults {
        wrong.push(format!("{conflicts} of {faults} conflicts were met"));
    }
    if reads(&met) > reads(&free) + conflicts {
        wrong.push(format!("{} reads for {conflicts} conflicts", reads(&met) - reads(&free)));
    }
    if !wrong.is_empty() {
        wrong.push(tell("every write meets its conflict once", Duration::ZERO, &met.happenings));
    }
    wrong
}

fn is_conflict(call: &Sent) -> bool {
    use cocoon_operator::core::outcome::Class;
    [Class::Conflict, Class::PreconditionFailed, Class::AlreadyExists].contains(&call.class)
}
