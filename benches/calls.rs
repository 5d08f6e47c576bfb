//! What the creation of a set costs in calls, by its size: until it is quiet, and in the hour after.

#[path = "../tests/life_common/mod.rs"]
mod life_common;

use life_common::creation::creation;
use std::process::ExitCode;

const SUB_AGENTS: [u32; 4] = [0, 2, 16, 64];
const TOOLBOXES: [usize; 2] = [0, 2];

fn main() -> ExitCode {
    println!(
        "{:>10} {:>9} {:>7} {:>9} {:>6} {:>7} {:>6} {:>5} {:>8} {:>12} {:>11}",
        "sub-agents",
        "toolboxes",
        "creates",
        "finalizer",
        "status",
        "patches",
        "probes",
        "reads",
        "took",
        "writes after",
        "reads after",
    );
    let mut restless = 0;
    for replicas in SUB_AGENTS {
        for toolboxes in TOOLBOXES {
            let counted = creation(replicas, toolboxes);
            println!(
                "{replicas:10} {toolboxes:9} {:7} {:9} {:6} {:7} {:6} {:5} {:>8} {:12} {:11}",
                counted.creates,
                counted.finalizers,
                counted.statuses.len(),
                counted.patches + counted.others,
                counted.probes,
                counted.reads,
                format!("{:?}", counted.took),
                counted.writes_after,
                counted.reads_after,
            );
            restless += counted.writes_after + counted.wrongs.len();
        }
    }
    if restless == 0 {
        return ExitCode::SUCCESS;
    }
    eprintln!("writes or errors after a set has settled: {restless}");
    ExitCode::FAILURE
}
