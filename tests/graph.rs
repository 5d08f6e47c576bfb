//! The picture of the phases against what all stories really show.

use cocoon_operator::core::action::{ActionKind, Change, Want};
use cocoon_operator::core::control::wake::Key;
use cocoon_operator::core::graph::{Edge, machines};
use cocoon_operator::core::outcome::Effect;
use cocoon_operator::scenario::happenings::Counts;
use cocoon_operator::scenario::runner;
use cocoon_operator::scenario::script::Script;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// The phase that a story gives each set, by its name.
fn given(text: &str) -> BTreeMap<String, String> {
    let story: Value = serde_saphyr::from_str(text).expect("YAML");
    let given = &story["given"];
    let sets = given["sets"].as_array().into_iter().flatten().chain([&given["set"]]);
    let phase = |set: &Value| {
        let (name, phase) = (set["set"].as_str()?, set.pointer("/status/phase")?.as_str()?);
        Some((name.to_owned(), phase.to_owned()))
    };
    sets.filter_map(phase).collect()
}

/// Every step from one phase to another that an operator of this story takes, and from which phase a set goes.
fn steps_of(path: &std::path::Path) -> BTreeSet<Edge> {
    let text = std::fs::read_to_string(path).expect("readable");
    let script = Script::parse(&path.display().to_string(), &text).expect("a story");
    let given = given(&text);
    let played = runner::play(&script).expect("it plays");
    let mut phases: BTreeMap<Key, String> = BTreeMap::new();
    let mut steps = BTreeSet::new();
    for pass in Counts(&played.happenings).passes() {
        let happened = pass.deeds().filter(|deed| deed.outcome.effect() == Effect::Happened);
        for deed in happened {
            if let Want::Change(Change::PatchStatus { status, .. }) = &deed.action.want {
                let Some(to) = status["phase"].as_str().map(str::to_owned) else { continue };
                // The rule says what it was, as this operator saw it.
                let was = deed.action.because.split_once(", was ").and_then(|(_, rest)| rest.split_once(", "));
                if let Some((from, _)) = was {
                    let from = Some(from.to_owned()).filter(|from| from != "unset");
                    steps.insert(Edge { from, to: Some(to.clone()) });
                }
                phases.insert(pass.key.clone(), to);
            }
            if deed.action.kind() == ActionKind::RemoveFinalizer {
                let from = phases.get(&pass.key).or_else(|| given.get(&pass.key.name)).cloned();
                steps.extend(from.map(|from| Edge { from: Some(from), to: None }));
            }
        }
    }
    steps
}

#[test]
fn every_step_of_a_story_is_drawn_and_every_step_drawn_is_taken() {
    let stories = walkdir::WalkDir::new("tests/golden").into_iter().flatten().map(|entry| entry.into_path());
    let stories: Vec<_> = stories.filter(|path| path.extension().is_some_and(|end| end == "yaml")).collect();
    assert!(stories.len() > 200);
    let taken: BTreeSet<Edge> = stories.iter().flat_map(|path| steps_of(path)).collect();
    let [sets, requests] = machines();
    let drawn: BTreeSet<Edge> = sets.edges.into_iter().collect();
    let told = |edges: Vec<&Edge>| {
        let end = |end: &Option<String>| end.clone().unwrap_or_else(|| "·".to_owned());
        edges.iter().map(|edge| format!("{} → {}", end(&edge.from), end(&edge.to))).collect::<Vec<_>>()
    };
    assert_eq!(told(taken.difference(&drawn).collect()), [""; 0], "taken in a story and not drawn");
    assert_eq!(told(drawn.difference(&taken).collect()), [""; 0], "drawn and taken in no story");
    assert_eq!(requests.edges, [], "a story of a request would have to be looked at here");
}

fn graph(args: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_cocoon-operator")).arg("graph").args(args).output().expect("it runs");
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
fn the_page_is_what_the_code_says() {
    let page = std::fs::read_to_string("docs/graph.md").expect("docs/graph.md");
    assert_eq!(page, graph(&["--markdown"]), "run make docs");
    assert!(page.contains(&format!("```mermaid\n{}```", graph(&[]))));
    assert_eq!(graph(&[]), graph(&["-o", "mermaid"]));
}

/// Both languages say the same.
#[test]
fn every_phase_and_step_is_in_both_pictures() {
    let (mermaid, dot) = (graph(&["-o", "mermaid"]), graph(&["-o", "dot"]));
    for machine in machines() {
        for state in &machine.states {
            assert!(mermaid.contains(&format!(" {}_{} : {}\n", machine.kind, state.name, state.name)));
            assert!(dot.contains(&format!("\"{}/{}\" [label=\"{}", machine.kind, state.name, state.name)));
        }
        for Edge { from, to } in &machine.edges {
            let id = |end: &Option<String>| {
                end.as_ref().map_or_else(|| "[*]".to_owned(), |name| format!("{}_{name}", machine.kind))
            };
            assert!(mermaid.contains(&format!(" {} --> {}\n", id(from), id(to))));
            let id = |end: &Option<String>, none| format!("\"{}/{}\"", machine.kind, end.as_deref().unwrap_or(none));
            assert!(dot.contains(&format!(" {} -> {};\n", id(from, "new"), id(to, "gone"))));
        }
    }
    assert_eq!(mermaid.matches(" --> ").count(), dot.matches(" -> ").count());
    assert_eq!(dot.matches('{').count(), dot.matches('}').count());
}
