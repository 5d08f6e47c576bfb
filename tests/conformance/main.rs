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
    assert!(report.calls >= 1_000, "the script is whole");
    assert!(report.unexplained.is_empty(), "{report}");
}
