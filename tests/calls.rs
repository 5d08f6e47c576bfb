//! What the creation of a set costs in calls: each pod once, the finalizer once, the status once a second at most, and
//! nothing once it is quiet.

mod life_common;

use life_common::SECOND;
use life_common::creation::{creation, most_statuses};

#[test]
fn a_set_of_two_sub_agents_and_a_toolbox() {
    costs(2, 1);
}

#[test]
fn a_set_of_sixteen_sub_agents() {
    costs(16, 0);
}

fn costs(replicas: u32, toolboxes: usize) {
    let counted = creation(replicas, toolboxes);
    let pods = 1 + replicas as usize + toolboxes;
    assert_eq!(counted.wrongs, Vec::<String>::new());
    assert_eq!((counted.creates, counted.finalizers, counted.patches, counted.others), (pods, 1, 0, 0), "{counted:?}");
    assert_eq!(counted.probes, pods, "each VM is asked for once: {counted:?}");
    assert_eq!(counted.reads, 0, "the watches show everything: {counted:?}");
    let statuses = &counted.statuses;
    assert!(!statuses.is_empty() && statuses.len() <= most_statuses(counted.took), "{counted:?}");
    assert!(statuses.windows(2).all(|pair| pair[1] - pair[0] >= SECOND), "{counted:?}");
    assert!(counted.took - statuses[statuses.len() - 1] <= SECOND, "the last one says how it ended: {counted:?}");
    assert_eq!((counted.writes_after, counted.reads_after), (0, 0), "an hour at rest: {counted:?}");
}
