//! The outcome matrix: every action that a rule can want, answered with every class that its verb can be answered with.

#[path = "../common/mod.rs"]
mod common;
mod possible;
mod rows;
mod states;

use cocoon_operator::core::action::{Action, ActionKind, Attempt, Want};
use cocoon_operator::core::call::call;
use cocoon_operator::core::cocoonset::RULES;
use cocoon_operator::core::decision::Decision;
use cocoon_operator::core::outcome::{Answer, Class, Effect, Outcome};
use cocoon_operator::core::wire::Verb;
use common::line;
use common::stage::{Ran, plainly};
use common::world::World;
use rows::{ROWS, Row, SILENT};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::Duration;

/// Calls that one pass, and ten more at the same instant, may make.
const CALLS_WHILE_TIME_STANDS_STILL: usize = 45;
/// How often the answered action itself may be sent meanwhile: once, and once more after a look.
const TRIES_WHILE_TIME_STANDS_STILL: usize = 2;
/// How often it may be sent in ten minutes of the same answer.
const TRIES_IN_TEN_MINUTES: usize = 85;
/// Everything that may be sent in these ten minutes.
const CALLS_IN_TEN_MINUTES: usize = 260;

/// How a column answers.
#[derive(Clone, Copy, PartialEq)]
struct Column {
    class: Class,
    /// The world did what it was asked, and the answer does not say so.
    committed: bool,
}

fn columns(verb: Verb) -> Vec<Column> {
    let mut columns = Vec::new();
    for class in Class::ALL.iter().copied().filter(|class| possible::possible(verb, *class).is_ok()) {
        let doubtful = verb.writes() && (class == Class::Unknown || class == Class::Malformed);
        let truthful = class == Class::Done || (class == Class::Absent && verb == Verb::RegistryDelete);
        if !doubtful || class == Class::Unknown {
            columns.push(Column { class, committed: truthful });
        }
        if doubtful {
            columns.push(Column { class, committed: true });
        }
    }
    columns
}

impl Column {
    fn name(self) -> String {
        let done = self.committed && self.class == Class::Unknown;
        format!("{}{}", self.class, if done { ", done" } else { "" })
    }
    /// The world's own answer where the column tells the truth, else the class with words and what belongs to it.
    fn answer(self, world: &mut World, action: &Action) -> Outcome {
        let truth = if self.committed { Some(world.answer(action)) } else { None };
        if let Some(truth) = truth.filter(|truth| truth.class == self.class || self.class == Class::Done) {
            return truth;
        }
        let answer = match self.class {
            Class::Present => Answer::Snapshot { digest: Some("sha256:x".to_owned()), base_image: None },
            _ => Answer::Nothing,
        };
        Outcome { answer, ..Outcome::of(self.class).saying("so it said") }
    }
}

/// Answers the row's action with the column, at most so often; `tries` counts how often it was sent.
struct Fault<'a> {
    row: &'a Row,
    column: Column,
    most: usize,
    tries: usize,
    target: Option<Attempt>,
    before: Vec<(ActionKind, Class)>,
}

impl<'a> Fault<'a> {
    fn new(row: &'a Row, column: Column, most: usize) -> Self {
        Self { row, column, most, tries: 0, target: None, before: row.before.to_vec() }
    }
    fn interfere(&mut self, world: &mut World, action: &Action, attempt: &Attempt) -> Option<Outcome> {
        let by_rule = is_of(self.row, action);
        if by_rule || self.target.as_ref() == Some(attempt) {
            self.target.get_or_insert_with(|| attempt.clone());
            self.tries += 1;
            return (self.tries <= self.most).then(|| self.column.answer(world, action));
        }
        let at = self.before.iter().position(|(kind, _)| *kind == attempt.action)?;
        Some(Outcome::of(self.before.remove(at).1).saying("before"))
    }
}

fn is_of(row: &Row, action: &Action) -> bool {
    let id = row.rule.id();
    action.kind() == row.action && (action.rule == id || action.also.contains(&id))
}

fn verb_of(row: &Row) -> Verb {
    let mut verb = None;
    let mut before = row.before.to_vec();
    let mut stage = (row.stage)();
    stage.sync();
    stage.pass(&mut |_, action, attempt| {
        if is_of(row, action) && verb.is_none() {
            let subject = cocoon_operator::core::action::Subject {
                kind: "CocoonSet",
                namespace: common::NAMESPACE.to_owned(),
                name: common::SET.to_owned(),
                uid: common::SET_UID.to_owned(),
            };
            verb = call(&subject, action).map(|call| call.verb());
        }
        let at = before.iter().position(|(kind, _)| *kind == attempt.action)?;
        Some(Outcome::of(before.remove(at).1))
    });
    verb.unwrap_or_else(|| panic!("{}: the rule does not fire", row.name()))
}

/// The same thing is wanted in the state that a row says, and what follows from each answer.
fn golden(row: &Row, column: Column) -> String {
    let mut fault = Fault::new(row, column, usize::MAX);
    let mut stage = (row.stage)();
    stage.sync();
    let ran = stage.pass(&mut |world, action, attempt| fault.interfere(world, action, attempt)).expect("a set");
    let name = format!("{} × {}", row.name(), column.name());
    check_pass(&name, &ran, false);
    let at = ran.decisions.iter().position(|decision| decision.actions.iter().any(|action| is_of(row, action)));
    let at = at.unwrap_or_else(|| panic!("{name}: the rule does not fire"));
    let next = |n: usize| ran.decisions.get(at + n).map_or("at rest".to_owned(), line);
    let mut text = format!("{}\n  next: {}\n  then: {}\n", column.name(), next(1), next(2));
    let rest = ran.end.ok().flatten().map_or("until something changes".to_owned(), |after| format!("{after:.0?}"));
    let _ = writeln!(text, "  rest: {rest}");

    for _ in 0..10 {
        stage.sync();
        let Some(ran) = stage.pass(&mut |world, action, attempt| fault.interfere(world, action, attempt)) else {
            break;
        };
        check_pass(&name, &ran, false);
    }
    let truthful = column.committed && column.class != Class::Unknown && column.class != Class::Malformed;
    if !truthful {
        assert!(fault.tries <= TRIES_WHILE_TIME_STANDS_STILL, "{name}: a hot loop: sent {} times", fault.tries);
    }
    assert!(stage.sent.len() <= CALLS_WHILE_TIME_STANDS_STILL, "{name}: {} calls at one instant", stage.sent.len());
    text
}

/// Ten minutes of the same answer.
fn ten_minutes(row: &Row, column: Column) -> (usize, usize) {
    let name = format!("{} × {}", row.name(), column.name());
    let mut fault = Fault::new(row, column, usize::MAX);
    let mut stage = (row.stage)();
    let driven =
        stage.drive(Duration::from_secs(660), &mut |world, action, attempt| fault.interfere(world, action, attempt));
    if let Some(last) = &driven.last {
        check_pass(&name, last, true);
    }
    assert!(fault.tries <= TRIES_IN_TEN_MINUTES, "{name}: {} tries in ten minutes", fault.tries);
    assert!(driven.calls <= CALLS_IN_TEN_MINUTES, "{name}: {} calls in ten minutes", driven.calls);
    (fault.tries, driven.calls)
}

fn words(why: &(dyn std::any::Any + Send)) -> String {
    let text = why.downcast_ref::<String>().cloned();
    text.or_else(|| why.downcast_ref::<&str>().map(ToString::to_string)).unwrap_or_default()
}

fn check_pass(name: &str, ran: &Ran, long: bool) {
    if let Err(because) = &ran.end {
        panic!("{name}: the pass was given up: {because}, {} calls", ran.sent.len());
    }
    for trouble in ran.decisions.iter().filter_map(Decision::error) {
        assert!(is_an_error(&trouble.reason, long), "{name}: {} is no error: {}", trouble.reason, trouble.message);
    }
}

/// Decision R4: at once, or after ten minutes.
fn is_an_error(reason: &str, long: bool) -> bool {
    const AT_ONCE: [&str; 10] = [
        "RbacDenied",
        "Unauthorized",
        "NotServed",
        "BadRequest",
        "Malformed",
        "TooLarge",
        "Invalid",
        "Immutable",
        "NameConflict",
        "CorruptAnnotation",
    ];
    const IN_TIME: [&str; 7] = [
        // Only where no other writer is to blame (R9).
        "PreconditionFailed",
        "AdmissionDenied",
        "PodSecurityDenied",
        "QuotaExceeded",
        "ForbiddenOther",
        "Denied",
        "Unsupported",
    ];
    AT_ONCE.contains(&reason) || (long && IN_TIME.contains(&reason))
}

/// What is left when everything has settled, without what differs from run to run.
fn end_state(row: &Row, column: Option<Column>) -> Value {
    let mut stage = (row.stage)();
    match column {
        None => drop(stage.drive(Duration::from_secs(1800), &mut plainly)),
        Some(column) => {
            let mut fault = Fault::new(row, column, 1);
            stage.drive(Duration::from_secs(1800), &mut |world, action, attempt| {
                fault.interfere(world, action, attempt)
            });
        }
    }
    let mut all = json!({ "set": stage.world.set, "pods": stage.world.pods, "tags": stage.world.tags });
    // What is being deleted is gone soon, and its conditions with it.
    if let Some(set) = all["set"].as_object_mut().filter(|set| set["metadata"]["deletionTimestamp"].is_string()) {
        set.remove("status");
    }
    forget_times(&mut all);
    all
}

fn forget_times(value: &mut Value) {
    match value {
        Value::Object(map) => {
            for key in ["resourceVersion", "uid", "lastTransitionTime", "creationTimestamp", "lastDeleted"] {
                map.remove(key);
            }
            for inner in map.values_mut() {
                forget_times(inner);
            }
        }
        Value::Array(list) => {
            list.iter_mut().for_each(forget_times);
            // Conditions are a map by type: their order says when each was first written.
            if list.iter().all(|entry| entry["type"].is_string()) {
                list.sort_by_key(|entry| entry["type"].to_string());
            }
        }
        Value::String(text) => {
            if let Ok(mut inner @ Value::Object(_)) = serde_json::from_str::<Value>(text) {
                forget_times(&mut inner);
                *text = inner.to_string();
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Where two ends differ.
fn differences(at: &str, wanted: &Value, got: &Value, told: &mut String) {
    if let (Value::Object(one), Value::Object(other)) = (wanted, got) {
        for key in one.keys().chain(other.keys()).collect::<BTreeSet<_>>() {
            differences(&format!("{at}/{key}"), &wanted[key.as_str()], &got[key.as_str()], told);
        }
    } else if wanted != got {
        let _ = write!(told, "\n  {at}: {wanted} became {got}");
    }
}

/// Why a single answer of this class may lead to another end: it is no fault but news.
fn is_news(row: &Row, column: Column) -> Option<&'static str> {
    match (row.action, column.class) {
        (ActionKind::ProbeSnapshot, Class::Present) => Some("a snapshot is there"),
        (ActionKind::ReadLive, Class::NotFound) => Some("it is gone"),
        (ActionKind::ProbeSnapshot | ActionKind::DeleteSnapshot, Class::Absent) => Some("the tag is gone"),
        (
            ActionKind::AddFinalizer | ActionKind::RemoveFinalizer | ActionKind::PatchObject | ActionKind::PatchStatus,
            Class::NotFound,
        ) => Some("the set is gone"),
        (ActionKind::DeleteSnapshot, Class::Denied | Class::Unsupported) if row.about == "latest" => {
            Some("a refused tag `latest` stays (D-08)")
        }
        (ActionKind::DeletePod | ActionKind::PatchPod, Class::NotFound) => Some("the pod is gone"),
        _ => None,
    }
}

#[test]
fn every_cell_is_decided() {
    let mut faults = Vec::new();
    let mut most = (0, String::new());
    let mut busiest = (0, String::new());
    for row in ROWS {
        let mut text = format!("{}: {}\n", row.rule.id, row.action.name());
        for column in columns(verb_of(row)) {
            let cell = std::panic::catch_unwind(|| (golden(row, column), ten_minutes(row, column)));
            let Ok((told, (tries, calls))) = cell.map_err(|why| faults.push(words(&*why))) else { continue };
            text.push_str(&told);
            let _ = writeln!(text, "  ten minutes of it: sent {tries} times, {calls} calls in all");
            most = most.max((tries, format!("{} × {}", row.name(), column.name())));
            busiest = busiest.max((calls, format!("{} × {}", row.name(), column.name())));
        }
        if !faults.is_empty() {
            continue;
        }
        insta::with_settings!({ snapshot_path => ".", prepend_module_to_snapshot => false, omit_expression => true }, {
            insta::assert_snapshot!(row.name(), text);
        });
    }
    assert!(faults.is_empty(), "{} faults\n{}", faults.len(), faults.join("\n"));
    println!("most often sent in ten minutes: {most:?}; most calls: {busiest:?}");
}

#[test]
fn one_answer_of_any_class_changes_nothing_in_the_end() {
    let mut faults = Vec::new();
    for row in ROWS {
        let wanted = end_state(row, None);
        for column in columns(verb_of(row)) {
            if is_news(row, column).is_some() {
                continue;
            }
            let got = end_state(row, Some(column));
            if got != wanted {
                let mut told = format!("{} × {}", row.name(), column.name());
                differences("", &wanted, &got, &mut told);
                faults.push(told);
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn no_class_breaks_a_law_wherever_it_comes() {
    let mut faults = Vec::new();
    for row in ROWS {
        // A success that shows nothing is Malformed: the classifier gives none without its object.
        for class in Class::ALL.iter().filter(|class| class.effect() != Effect::Happened) {
            let column = Column { class: *class, committed: false };
            let mut fault = Fault::new(row, column, usize::MAX);
            let mut stage = (row.stage)();
            stage.sync();
            let name = format!("{} × {class}", row.name());
            let ran = stage.pass(&mut |world, action, attempt| fault.interfere(world, action, attempt));
            let ran = ran.expect("a set");
            faults.extend(std::panic::catch_unwind(|| check_pass(&name, &ran, true)).map_err(|why| words(&*why)).err());
        }
    }
    assert!(faults.is_empty(), "{} faults\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn every_rule_has_a_row_or_never_asks_for_an_answer() {
    let rows: BTreeSet<&str> = ROWS.iter().map(|row| row.rule.id).collect();
    let silent: BTreeSet<&str> = SILENT.iter().copied().collect();
    let all: BTreeSet<&str> = RULES.iter().flat_map(|rules| rules.iter().map(|rule| rule.id)).collect();
    assert_eq!(rows.intersection(&silent).count(), 0);
    assert_eq!(rows.union(&silent).copied().collect::<BTreeSet<_>>(), all);
}

#[test]
fn no_row_is_missing_and_no_silent_rule_speaks() {
    let rows: BTreeSet<(&str, ActionKind)> = ROWS.iter().map(|row| (row.rule.id, row.action)).collect();
    let mut missing = BTreeSet::new();
    for row in ROWS {
        for column in columns(verb_of(row)) {
            let mut fault = Fault::new(row, column, 1);
            let mut stage = (row.stage)();
            stage.drive(Duration::from_secs(120), &mut |world, action, attempt| {
                let answered = matches!(action.want, Want::Ask(_) | Want::Change(_));
                if answered && !rows.contains(&(action.rule.0.as_ref(), action.kind())) {
                    missing.insert((action.rule.to_string(), action.kind()));
                }
                fault.interfere(world, action, attempt)
            });
        }
    }
    assert!(missing.is_empty(), "{missing:?}");
}
