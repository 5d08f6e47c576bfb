//! `replay`: transcripts, differences, and what a bad file is told.

use super::run;

const STORY: &str = "tests/golden/creation/main-then-subs-then-toolbox.yaml";

fn copy(name: &str, change: impl Fn(String) -> String, snap: impl Fn(String) -> Option<String>) -> String {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let read = |path: &str| std::fs::read_to_string(path).expect("readable");
    std::fs::write(&path, change(read(STORY))).expect("written");
    if let Some(text) = snap(read(&STORY.replace(".yaml", ".snap"))) {
        std::fs::write(path.with_extension("snap"), text).expect("written");
    }
    path.display().to_string()
}

#[test]
fn the_transcript_is_the_result() {
    let snap = std::fs::read_to_string(STORY.replace(".yaml", ".snap")).expect("readable");
    let recorded = snap.splitn(3, "---\n").nth(2).expect("a transcript");
    for args in [&["replay", STORY][..], &["replay", "-f", STORY]] {
        let ran = run(args, b"");
        assert_eq!((ran.code, ran.err.as_str()), (0, ""));
        assert_eq!(ran.out.trim_end(), recorded.trim_end());
    }
    let ran = run(&["replay", "--check", STORY], b"");
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (0, "", ""));
}

#[test]
fn a_difference_is_printed_and_leaves_with_one() {
    let other = copy("other.yaml", |text| text, |snap| Some(snap.replace("main/create", "main/invent")));
    let ran = run(&["replay", "--check", &other], b"");
    assert_eq!((ran.code, ran.err.as_str()), (1, ""));
    let was = ran.out.lines().find(|line| line.starts_with('-') && line.contains("main/invent"));
    let is = ran.out.lines().find(|line| line.starts_with('+') && line.contains("main/create"));
    assert!(was.is_some() && is.is_some(), "{}", ran.out);
}

#[test]
fn a_claim_that_does_not_hold_leaves_with_one() {
    let wrong = copy("wrong.yaml", |text| text.replace("then:", "then:\n  - phase is Failed"), |_| None);
    let ran = run(&["replay", &wrong], b"");
    assert_eq!(ran.code, 1, "{}", ran.err);
    assert!(ran.out.lines().any(|line| line.starts_with("does not hold in ")), "{}", ran.out);
}

#[test]
fn what_cannot_be_played_leaves_with_two_and_a_reason() {
    let alone = copy("alone.yaml", |text| text, |_| None);
    let phase = copy("phase.yaml", |text| text.replace("then:", "then:\n  - phase is Foo"), |_| None);
    let line = std::fs::read_to_string("tests/golden/recordings/incident-b.jsonl").expect("readable");
    let unknown = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("unknown-kind.jsonl");
    std::fs::write(&unknown, line.replacen("\"kind\":\"CocoonSet\"", "\"kind\":\"Foo\"", 1)).expect("written");
    let unknown = unknown.display().to_string();
    let odd = copy("odd.yaml", |text| text.replace("story:", "tale:"), |_| None);
    for (args, expected) in [
        (&["replay"][..], "FILE"),
        (&["replay", "no-such.yaml"], "no-such.yaml: cannot be read"),
        (&["replay", "tests/golden"], "tests/golden: is a directory; expected a scenario file"),
        (&["replay", "--check", &alone], "no transcript is recorded; expected one in "),
        (&["replay", &odd], "unknown field tale; expected one of "),
        (&["replay", "--schema", "--check"], "--schema"),
        (&["replay", "--object", "a/b", STORY], "is a scenario, and --object picks among recorded passes"),
        (&["replay", &phase], "\"Foo\" is no phase; expected one of Pending, "),
        (&["replay", &unknown], "unknown-kind.jsonl:1: no recorded pass: kind \"Foo\" is none of this operator's"),
        (&["sandbox", "--listen", "127.0.0.1:99999"], "up to 65535"),
    ] {
        let ran = run(args, b"");
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{args:?}: {}", ran.err);
        assert!(ran.err.contains(expected), "{args:?}: {}", ran.err);
    }
}

#[test]
fn a_recording_is_checked_from_a_file_and_from_stdin() {
    let file = "tests/golden/recordings/incident-b.jsonl";
    let text = std::fs::read(file).expect("readable");
    for (args, stdin) in [
        (&["replay", "--check", file][..], &b""[..]),
        (&["replay", "--check", "-f", "-"], &text),
        (&["replay", "--check", "--object", "netconn-test/netprobe-b", file], b""),
    ] {
        let ran = run(args, stdin);
        assert_eq!((ran.code, ran.out.as_str()), (0, ""), "{args:?}: {}", ran.err);
        assert!(ran.err.ends_with(", 0 decided differently\n"), "{}", ran.err);
    }
    let other = String::from_utf8(text).expect("UTF-8").replace("\"rule\":\"main/create\"", "\"rule\":\"main/make\"");
    let ran = run(&["replay", "--check", "-"], other.as_bytes());
    assert_eq!(ran.code, 1, "{}", ran.err);
    assert_eq!(ran.out.matches("- CreatePod by main/make").count(), 3, "{}", ran.out);
    assert!(ran.err.contains("3 decided differently"), "{}", ran.err);
    for args in [
        &["replay", "--check", "--object", "netconn-test/none", file][..],
        &["replay", "--as-scenario", "tests/golden/creation/every-field.yaml"],
        &["replay", "--as-scenario", "--check", file],
        &["replay", "--object", "demo", file],
        &["replay", "--check", "-f", "-", "-f", "-"],
        &["replay", "-f", "no-such.jsonl"],
    ] {
        let ran = run(args, b"");
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{args:?}: {}", ran.err);
        assert!(!ran.err.is_empty());
    }
}

#[test]
fn a_scenario_is_played_from_stdin_and_has_no_transcript_beside_it() {
    let story = std::fs::read("tests/golden/creation/every-field.yaml").expect("readable");
    let ran = run(&["replay", "-"], &story);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    assert_eq!(ran.out, run(&["replay", "tests/golden/creation/every-field.yaml"], b"").out);
    let ran = run(&["replay", "--check", "-"], &story);
    assert_eq!((ran.code, ran.out.as_str()), (2, ""));
    assert!(ran.err.contains("beside stdin"), "{}", ran.err);
}

#[test]
fn the_schema_is_the_file() {
    let ran = run(&["replay", "--schema"], b"");
    assert_eq!(ran.code, 0);
    assert_eq!(ran.out, std::fs::read_to_string("docs/scenario.schema.json").expect("readable"));
}

#[test]
fn a_scenario_may_come_over_stdin() {
    let story = std::fs::read(STORY).expect("readable");
    let of_file = run(&["replay", STORY], b"");
    let ran = run(&["replay", "-f", "-"], &story);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    assert_eq!(ran.out, of_file.out);
    let ran = run(&["replay", "-"], b"story: x\n");
    assert_eq!((ran.code, ran.out.as_str()), (2, ""));
    assert!(ran.err.contains("stdin") && ran.err.contains("given"), "{}", ran.err);
    let ran = run(&["replay", "--check", "-"], &story);
    assert!(ran.code == 2 && ran.err.contains("expected a file"), "{}", ran.err);
    let ran = run(&["replay", "-", "-f", "-"], &story);
    assert!(ran.code == 2 && ran.err.contains("expected it at most once"), "{}", ran.err);
}
