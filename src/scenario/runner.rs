//! Plays a story on a stage: sets the cluster up, does step after step, and holds the claims against what came of it.

use super::embedded::Embedded;
use super::happenings::Happening;
use super::headlines::headline;
use super::in_memory::InMemory;
use super::projection::Picture;
use super::realm::Realm;
use super::script::Script;
use super::stage::{OperatorEvent, QUIET, Stage};
use super::steps::{Crash, Step};
use super::words::told;
use super::{changes, claims, setting, transcript};
use std::time::Duration;

/// What a story came to.
#[derive(Clone, Debug)]
pub struct Played {
    /// The story told.
    pub transcript: String,
    /// Claims that do not hold, each with what is so instead.
    pub failures: Vec<String>,
    /// Everything that happened.
    pub happenings: Vec<Happening>,
    /// When the first step was taken, on the stage's clock.
    pub origin: Duration,
    /// When it was over, on the stage's clock.
    pub took: Duration,
    /// The cluster after each step.
    pub pictures: Vec<Picture>,
}

/// Plays it in memory.
pub fn play(script: &Script) -> Result<Played, String> {
    play_on(script, &mut in_memory(script)?)
}

/// Plays it with the shell, against the served cluster.
pub fn play_embedded(script: &Script) -> Result<Played, String> {
    play_on(script, &mut embedded(script)?)
}

/// The first stage, with the cluster as this story finds it.
pub fn in_memory(script: &Script) -> Result<InMemory, String> {
    let stage = InMemory::new(setting::world(&script.given)?, &setting::refused_kinds(&script.given));
    let settings = &script.given.settings;
    Ok(stage.electing(settings.leader_election).with_dry_run(settings.dry_run))
}

/// The second stage, with the cluster as this story finds it.
pub fn embedded(script: &Script) -> Result<Embedded, String> {
    let world = setting::world(&script.given)?;
    let stage = Embedded::new(world, &setting::refused_kinds(&script.given));
    let stage = stage.map_err(|error| format!("the runtime: {error}"))?;
    let settings = &script.given.settings;
    Ok(stage.electing(settings.leader_election).with_dry_run(settings.dry_run))
}

/// Plays it on a stage whose cluster is as given.
pub fn play_on(script: &Script, stage: &mut impl Stage) -> Result<Played, String> {
    let mut cast = setting::Cast::of(&script.given);
    stage.operator(OperatorEvent::Start);
    if script.given.settled {
        stage.settle();
        drop(stage.take_happenings());
    }
    let origin = stage.now();
    stage.with(|world| cast.meet(world));
    let (mut happenings, mut pictures) = (Vec::new(), Vec::new());
    for (at, step) in script.when.iter().enumerate() {
        happenings.push(Happening::Step(headline(step)));
        perform(stage, &cast, step).map_err(|error| format!("when[{at}] ({}): {error}", headline(step)))?;
        if matches!(step, Step::Wait(_) | Step::Settle) {
            stage.waited(at, matches!(step, Step::Settle));
        }
        happenings.extend(stage.take_happenings());
        if let Some(text) = unsettled(stage, step) {
            happenings.push(Happening::Note { at: stage.now(), text });
        }
        stage.with(|world| cast.meet(world));
        pictures.push(stage.with(Picture::of));
    }
    let failures = stage.with(|world| {
        let ground = claims::Ground { tags: world.tags(), world, cast: &cast, happenings: &happenings };
        script.then.iter().filter_map(|claim| ground.check(&claim.0).err()).collect()
    });
    let transcript = transcript::tell(&script.story, origin, &happenings);
    Ok(Played { transcript, failures, happenings, origin, took: stage.now(), pictures })
}

fn perform(stage: &mut impl Stage, cast: &setting::Cast, step: &Step) -> Result<(), String> {
    match step {
        Step::Settle => stage.settle(),
        Step::Wait(span) => {
            let until = stage.now().saturating_add(span.duration());
            stage.run_until(until);
        }
        Step::Crash(Crash { after, down }) => {
            let down = down.map_or(Duration::ZERO, |span| span.duration());
            stage.operator(OperatorEvent::DieAfter(*after, down));
        }
        Step::Lag(kinds) => {
            kinds.iter().for_each(|(kind, on)| stage.operator(OperatorEvent::Lag(kind.kind(), *on)));
        }
        Step::WatchGap(kinds) => {
            kinds.iter().for_each(|(kind, on)| stage.operator(OperatorEvent::Gap(kind.kind(), *on)));
        }
        Step::SecondOperator(on) => stage.operator(OperatorEvent::Second(*on)),
        Step::Kill => stage.operator(OperatorEvent::Kill),
        Step::CutOff(on) => stage.operator(OperatorEvent::CutOff(*on)),
        Step::Operator(on) => stage.operator(if *on { OperatorEvent::Start } else { OperatorEvent::Stop }),
        Step::Clock(span) => stage.operator(OperatorEvent::Jump(span.0)),
        Step::Apply(_)
        | Step::Edit(_)
        | Step::Delete(_)
        | Step::Annotate(_)
        | Step::Patch(_)
        | Step::CreatePod(_)
        | Step::Create(_)
        | Step::Node(_)
        | Step::Vm(_)
        | Step::BootsFail(_)
        | Step::Registry(_)
        | Step::Quota(_)
        | Step::Refuse(_)
        | Step::Allow
        | Step::Fault(_)
        | Step::Overtake(_)
        | Step::CreateNamespace => return stage.with(|world| changes::change(world, cast, step)),
    }
    Ok(())
}

/// What the story says where `settle` did not come to an end.
fn unsettled(stage: &mut impl Stage, step: &Step) -> Option<String> {
    let due =
        stage.next_work().filter(|due| matches!(step, Step::Settle) && *due <= stage.now().saturating_add(QUIET))?;
    Some(format!("does not settle: something is due again in {}", told(due.saturating_sub(stage.now()))))
}
