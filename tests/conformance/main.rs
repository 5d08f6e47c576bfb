//! The simulated API server against what a real one said to the same script of calls, as on record in `real.jsonl`; and
//! that this comparison finds what it is there to find.

mod faults;
#[path = "../live/conformance/mod.rs"]
mod script;

use script::report::{Report, Said};
use script::{cases, play_simulated};

fn recorded() -> Said {
    include_str!("real.jsonl").lines().map(|line| serde_json::from_str(line).expect("a line of the record")).collect()
}

#[test]
fn it_says_what_a_real_server_says() {
    let here = play_simulated(&cases(), |cluster| cluster.client("admin", "default")).expect("the script plays");
    let report = Report::of(&here, &recorded());
    println!("{report}");
    assert_eq!(report.calls, recorded().len(), "calls of the script and calls on record");
    assert!(report.calls >= 1_000, "the script is whole");
    let told = format!("one script of {},{:03} calls and watches", report.calls / 1_000, report.calls % 1_000);
    assert!(include_str!("../../docs/testing.md").contains(&told), "docs/testing.md does not speak of {told}");
    assert!(report.unexplained.is_empty(), "{report}");
    assert_eq!(report.idle(), Vec::<String>::new(), "known differences that are none any more");
}

#[test]
fn a_known_difference_that_is_none_is_noticed() {
    let record = recorded();
    let none = Report::of(&record, &record);
    assert!(none.unexplained.is_empty());
    assert!(!none.idle().is_empty(), "a script without differences needs no list of them");
}
