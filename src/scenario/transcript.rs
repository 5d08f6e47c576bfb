//! A story told: what happened, line by line, for people and for golden files.
//!
//! Marks: `+` create, `-` delete, `~` change, `?` ask, `!` announce; `→` only where the answer is not simply "done".

use super::happenings::{Happening, PassEnd, PassStory, standing};
use super::phrases::{Phrase, phrase};
use super::words::{listed, told};
use crate::core::action::{Action, Want};
use crate::core::control::pass::Turn;
use crate::core::control::wake::Key;
use crate::core::outcome::Outcome;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Columns of the rule's name.
const RULE: usize = 26;

/// The whole story; time is counted from the origin.
pub fn tell(story: &str, origin: Duration, happenings: &[Happening]) -> String {
    let keys: BTreeSet<&Key> = happenings
        .iter()
        .filter_map(|happening| match happening {
            Happening::Pass(pass) => Some(&pass.key),
            Happening::Step(_) | Happening::World { .. } | Happening::Note { .. } => None,
        })
        .collect();
    let namespaces: BTreeSet<&str> = keys.iter().map(|key| key.namespace.as_str()).collect();
    let mut teller = Teller {
        out: format!("{}\n", story.trim()),
        many: keys.len() > 1,
        namespaces: namespaces.len() > 1,
        standing: BTreeMap::new(),
        said: BTreeSet::new(),
        origin,
        waiting: None,
        lines: Vec::new(),
        before: Vec::new(),
        again: Vec::new(),
    };
    for happening in happenings {
        teller.happening(happening);
    }
    teller.flush();
    teller.out
}

struct Teller {
    out: String,
    /// More than one object: each line says which.
    many: bool,
    /// More than one namespace.
    namespaces: bool,
    /// What each operator said last of each object without doing anything.
    standing: BTreeMap<(String, Key), BTreeSet<(String, String)>>,
    /// What was said so in this step already.
    said: BTreeSet<(Key, String, String)>,
    /// When the story begins.
    origin: Duration,
    /// What the cluster did last: it may do the same to more than one.
    waiting: Option<Doing>,
    /// The lines of the pass that is being told: times and texts.
    lines: Vec<(String, String)>,
    /// What was told of the pass before, if nothing else came after it.
    before: Vec<String>,
    /// When that happened again, line by line alike.
    again: Vec<String>,
}

/// Something that the cluster does to several things at once.
#[derive(PartialEq)]
struct Doing {
    at: Duration,
    actor: String,
    names: Vec<String>,
    does: String,
}

/// Actions of one rule, one after another, with the same kind of answer.
struct Group<'a> {
    action: &'a Action,
    becauses: Vec<&'a str>,
    phrases: Vec<(Phrase, &'a Outcome)>,
}

impl Teller {
    fn line(&mut self, text: &str) {
        self.flush();
        self.out.push_str(text.trim_end());
        self.out.push('\n');
    }

    /// Tells the lines of a pass, or only that it was the same as before.
    fn block(&mut self) {
        let lines = std::mem::take(&mut self.lines);
        let Some((at, _)) = lines.first().cloned() else { return };
        let texts: Vec<String> = lines.iter().map(|(_, text)| text.clone()).collect();
        if self.waiting.is_none() && texts == self.before {
            self.again.push(at);
            return;
        }
        for (at, text) in lines {
            self.line(&format!("{at:>7}  {text}"));
        }
        self.before = texts;
    }

    fn happening(&mut self, happening: &Happening) {
        match happening {
            Happening::Step(text) => {
                self.said.clear();
                self.line(&format!("\n── {text}"));
            }
            Happening::World { at, actor, text } => self.world(*at, actor, text),
            Happening::Note { at, text } => {
                let at = self.time(*at);
                self.line(&format!("{at:>7}  {text}"));
            }
            Happening::Pass(pass) => self.pass(pass),
        }
    }

    fn time(&self, at: Duration) -> String {
        told(at.saturating_sub(self.origin))
    }

    fn world(&mut self, at: Duration, actor: &str, text: &str) {
        let (name, does) = text.split_once(' ').unwrap_or((text, ""));
        if let Some(doing) = self.waiting.as_mut().filter(|doing| doing.at == at && doing.actor == actor)
            && doing.does == does
        {
            if !doing.names.iter().any(|known| known == name) {
                doing.names.push(name.to_owned());
            }
            return;
        }
        self.flush();
        let (actor, does) = (actor.to_owned(), does.to_owned());
        self.waiting = Some(Doing { at, actor, names: vec![name.to_owned()], does });
    }

    fn flush(&mut self) {
        let again = std::mem::take(&mut self.again);
        if !again.is_empty() {
            let times = if again.len() > 1 { format!(" ({} times)", again.len()) } else { String::new() };
            self.out.push_str(&format!("{:9}… and so again at {}{times}\n", "", listed_times(&again)));
        }
        self.before.clear();
        if let Some(Doing { at, actor, names, does }) = self.waiting.take() {
            let at = self.time(at);
            self.out.push_str(&format!("{at:>7}  {actor}: {} {does}\n", listed(&names)));
        }
    }

    fn pass(&mut self, pass: &PassStory) {
        for turn in pass.all_turns() {
            self.turn(pass, turn);
        }
        match &pass.end {
            PassEnd::Crashed => self.lines.push((self.time(pass.at), "the operator dies".to_owned())),
            PassEnd::GaveUp(because) => {
                self.header(pass, "gave up", because);
            }
            PassEnd::Rest(_) => self.rest(pass),
        }
        if let Some(reason) = &pass.error {
            self.lines.push((String::new(), format!("  ERROR {reason}")));
        }
        self.block();
    }

    fn turn(&mut self, pass: &PassStory, turn: &Turn) {
        for group in groups(pass, turn) {
            let because = match group.becauses.as_slice() {
                [] => String::new(),
                [one] => (*one).to_owned(),
                [first, rest @ ..] => format!("{first} (and {} more)", rest.len()),
            };
            let mut rule = group.action.rule.to_string();
            for also in &group.action.also {
                rule.push_str(&format!(" + {also}"));
            }
            self.header(pass, &rule, &because);
            for line in lines(&group) {
                self.lines.push((String::new(), format!("  {line}")));
            }
        }
    }

    fn header(&mut self, pass: &PassStory, rule: &str, because: &str) {
        let mut who = String::new();
        if !pass.operator.is_empty() {
            who.push_str(&format!("[{}] ", pass.operator));
        }
        if self.namespaces {
            who.push_str(&format!("{}  ", pass.key));
        } else if self.many {
            who.push_str(&format!("{}  ", pass.key.name));
        }
        self.lines.push((self.time(pass.at), format!("{who}{rule:<RULE$}  {because}")));
    }

    /// What it now waits for, and what it says without doing anything; only what is new.
    fn rest(&mut self, pass: &PassStory) {
        let standing = standing(&pass.last.decision);
        let now: BTreeSet<(String, String)> =
            standing.iter().map(|(rule, because, _)| (rule.to_string(), because.to_string())).collect();
        let at = (pass.operator.clone(), pass.key.clone());
        let before = self.standing.insert(at, now).unwrap_or_default();
        let mut by_rule: Vec<(String, Vec<String>, Option<Duration>)> = Vec::new();
        for (rule, because, timer) in &standing {
            let (rule, because) = (rule.to_string(), because.to_string());
            let fresh = self.said.insert((pass.key.clone(), rule.clone(), because.clone()));
            if !fresh || before.contains(&(rule.clone(), because.clone())) {
                continue;
            }
            match by_rule.iter_mut().find(|(known, ..)| *known == rule) {
                Some((_, becauses, shortest)) => {
                    becauses.push(because);
                    *shortest = [*shortest, *timer].into_iter().flatten().min();
                }
                None => by_rule.push((rule, vec![because], *timer)),
            }
        }
        for (rule, becauses, timer) in by_rule {
            let more = if becauses.len() > 1 { format!(" (and {} more)", becauses.len() - 1) } else { String::new() };
            let again = timer.map(|timer| format!("; looks again in {}", told(timer))).unwrap_or_default();
            let first = becauses.first().map(String::as_str).unwrap_or_default();
            self.header(pass, &rule, &format!("{first}{more}{again}"));
        }
    }
}

/// Times in a line: the ends of many.
fn listed_times(times: &[String]) -> String {
    match times {
        [first, second, .., last] if times.len() > 4 => format!("{first}, {second} … {last}"),
        _ => times.join(", "),
    }
}

/// What was carried out of one turn, in groups.
fn groups<'a>(pass: &PassStory, turn: &'a Turn) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'a>> = Vec::new();
    for (action, outcome) in turn.decision.actions.iter().zip(&turn.outcomes) {
        let phrase = phrase(&pass.subject, action, outcome);
        let because = action.because.as_ref();
        // What follows from the same rule for the same reason, or does the same to another, stands under one head.
        let joins = groups.last().is_some_and(|group| {
            group.action.rule == action.rule
                && group.action.also == action.also
                && (group.becauses == [because] || group.phrases.last().is_some_and(|(last, _)| last.is_like(&phrase)))
        });
        match groups.last_mut().filter(|_| joins) {
            Some(group) => {
                if !group.becauses.contains(&because) {
                    group.becauses.push(because);
                }
                group.phrases.push((phrase, outcome));
            }
            None => groups.push(Group { action, becauses: vec![because], phrases: vec![(phrase, outcome)] }),
        }
    }
    groups
}

/// The lines of a group: what is done alike to several things stands in one.
fn lines(group: &Group<'_>) -> Vec<String> {
    let mut lines: Vec<(Phrase, Vec<String>, String)> = Vec::new();
    for (phrase, _) in group.phrases.iter().filter(|(phrase, _)| !phrase.is_told_by_its_head()) {
        match lines.last_mut() {
            Some((last, names, _)) if last.is_like(phrase) => names.push(phrase.name.clone()),
            Some(_) | None => lines.push((phrase.clone(), vec![phrase.name.clone()], String::new())),
        }
    }
    lines.into_iter().map(|(phrase, names, _)| phrase.line(&names)).collect()
}

/// True where the action only tells people.
pub fn is_announcement(action: &Action) -> bool {
    match &action.want {
        Want::Announce(_) => true,
        Want::Ask(_) | Want::Change(_) | Want::Wait(_) => false,
    }
}
