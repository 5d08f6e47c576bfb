//! Scenario files: what is accepted, and what a bad one is told.

use cocoon_operator::scenario::claim_forms::{Claim, Form};
use cocoon_operator::scenario::replay::replay;
use cocoon_operator::scenario::schema::schema_text;
use cocoon_operator::scenario::script::Script;
use cocoon_operator::scenario::words::{Span, told};
use rstest::rstest;
use std::time::Duration;

#[test]
fn the_schema_file_is_what_the_types_say() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/scenario.schema.json");
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        std::fs::write(path, schema_text()).unwrap();
    }
    let stored = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(stored, schema_text(), "run UPDATE_SCHEMA=1 cargo test --test scripts");
}

const GOOD: &str = "story: A set comes up.\ngiven: {set: demo}\nwhen: [settle]\nthen: [phase is Running]\n";

#[test]
fn a_short_story_reads() {
    let script = Script::parse("a.yaml", GOOD).unwrap();
    assert_eq!(script.when.len(), 1);
}

#[rstest]
#[case::unknown_field("given: {set: demo}", "given: {sett: demo}", "unknown field sett; expected one of ")]
#[case::unknown_step("when: [settle]", "when: [setle]", "unknown word setle; expected one of ")]
#[case::no_then("then: [phase is Running]", "then: []", "then: at least one claim is expected")]
#[case::missing_then("then: [phase is Running]", "", "no field then; expected one")]
#[case::bad_claim("phase is Running", "phase equals Running", "is no claim; expected is one of: phase is PHASE")]
#[case::bad_number("phase is Running", "errors is few", "is no number")]
#[case::bad_span("when: [settle]", "when: [{wait: 3 parsecs}]", "is no span of time; expected is one like 30s")]
#[case::bad_set(
    "given: {set: demo}",
    "given: {set: {set: demo, replica: 2}}",
    "unknown field replica; expected one of "
)]
#[case::no_story("story: A set comes up.", "story: ''", "story: a sentence is expected")]
fn a_bad_script_is_told_in_one_line_with_its_place(#[case] good: &str, #[case] bad: &str, #[case] expected: &str) {
    let text = GOOD.replace(good, bad);
    assert_ne!(text, GOOD);
    let told = Script::parse("stories/a.yaml", &text).unwrap_err().to_string();
    assert!(told.starts_with("stories/a.yaml:"), "{told}");
    assert!(told.contains(expected), "{told}");
    assert!(!told.contains('\n'), "{told}");
}

#[test]
fn a_bad_field_is_told_with_its_line() {
    let text = "story: x\ngiven:\n  set: demo\n  colour: red\nwhen: [settle]\nthen: [set is gone]\n";
    let error = Script::parse("a.yaml", text).unwrap_err();
    assert_eq!(error.at.map(|(line, _)| line), Some(4), "{error}");
}

#[rstest]
#[case("refused creates is at most 2", Form::RefusedCreatesMost)]
#[case("refused creates is 2", Form::RefusedCreates)]
#[case("calls of create pods is at most 9", Form::CallsMost)]
#[case("pods are demo-0, demo-1", Form::Pods)]
#[case("pods are none", Form::Pods)]
#[case("pod demo-0 is ready", Form::PodReady)]
#[case("pod demo-0 is on node-a", Form::PodOn)]
#[case("rule main/create did not fire", Form::NotFired)]
fn claims_are_read(#[case] text: &str, #[case] form: Form) {
    assert_eq!(Claim::parse(None, text).unwrap().form, form);
}

#[test]
fn every_claim_is_read_as_itself() {
    for form in Form::ALL {
        let text = form.words().replace("NUMBER", "3").replace("PHASE", "Running");
        assert_eq!(Claim::parse(None, &text).unwrap().form, *form, "{text}");
    }
}

#[rstest]
#[case(0, "0s")]
#[case(1_500, "1.5s")]
#[case(59_000, "59s")]
#[case(125_000, "2m5s")]
#[case(3_720_000, "1h2m")]
fn spans_are_told(#[case] millis: u64, #[case] text: &str) {
    assert_eq!(told(Duration::from_millis(millis)), text);
    assert_eq!(Span::parse(text).unwrap().duration(), Duration::from_millis(millis));
}

#[test]
fn a_story_is_told_the_same_twice() {
    let story = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/scale/from-2-to-11-to-9.yaml");
    assert_eq!(replay(&story).unwrap().transcript, replay(&story).unwrap().transcript);
}
