//! The stories that are not played on a real cluster, each with its reason, and those that are held to their claims alone.

/// A reason, and the stories that it is about.
pub type Group = (&'static str, &'static [&'static str]);

/// They need more waiting than is worth it: the whole suite would wait for them. Backoffs, timers of a node that is lost,
/// quotas that stay full: time cannot be made to pass sooner on a real control plane. A last wait in which nothing happens
/// is cut short, and counts no more than that. Their golden tests see to it that the list is right.
pub const TOO_LONG: &[&str] = &[
    "crash/dead-letter-deleted-while-nobody-watched",
    "deletion/agent-down-then-back",
    "deletion/hidden-pod-under-somebody-elses-finalizer",
    "deletion/its-node-is-lost-and-comes-back",
    "deletion/namespace-while-a-node-is-lost",
    "deletion/while-a-node-is-lost",
    "dry-run/a-busy-cluster",
    "dry-run/a-new-set",
    "events/of-the-main-agent",
    "events/told-once",
    "failure/charged-pod-that-ran-for-long",
    "failure/failed-main-still-runs",
    "failure/forgiven-after-a-long-run",
    "failure/image-cannot-be-pulled",
    "failure/recovers-after-the-dead-letter",
    "failure/recovers-between-charge-and-delete",
    "failure/toolbox-never-comes-up",
    "names/disowned-and-unlabelled",
    "names/hidden-predecessor-stays",
    "names/shared-vm-name-on-a-lost-node",
    "names/shared-vm-name-while-its-vm-is-saved",
    "names/stranger-in-a-watch-gap",
    "nodes/lost-and-back",
    "nodes/our-delete-and-then-the-node-goes",
    "paused/during-create",
    "paused/during-delete",
    "paused/edited-meanwhile",
    "paused/in-a-namespace-that-goes",
    "paused/stays",
    "quota/never-raised",
    "refusals/policy-for-a-quarter-of-an-hour",
    "refusals/webhook-takes-charges-off",
    "rollout/limits-without-requests",
];

/// All others that are not played.
pub const EXCLUDED: &[Group] = &[
    (
        "the operator's rights in its namespace are given with that namespace, before the story begins",
        &["election/without-a-namespace"],
    ),
    (
        "one control plane serves all stories: its kinds and its namespace controller cannot be others for one of them",
        &[
            "incident/b-legacy-order",
            "nodes/lost-and-back-under-an-older-crd",
            "oddities/replicas-unreadable",
            "oddities/replicas-unreadable-and-one-fails",
            "oddities/spec-half-unreadable",
            "refusals/webhook-takes-names-off",
            "rollout/admission-adds-things",
            "status/older-crd",
            "status/older-crd-and-a-stray-is-gone",
        ],
    ),
    (
        "which of two sets of the same second is older is decided by their uids, and those are drawn by chance",
        &["names/shared-vm-name-and-its-pod-lost-its-label"],
    ),
    (
        "steps take no time in memory; here they do, and the operator looks in between",
        &[
            "names/pods-of-a-predecessor",
            "oddities/history-unreadable-and-vm-failed",
            "races/set-gone-unseen-and-its-pods-stay",
            "incident/b-recreated-at-once",
            "deletion/somebody-else-deletes-the-pods",
            "names/hidden-predecessor",
            "paused/goes-on-to-go",
        ],
    ),
    (
        "it needs a scheduler that puts pods where most room for pods is; the real one has other scores",
        &[
            "rollout/taken-back",
            "toolboxes/static-gone-while-we-are-away",
            "nodes/status-wiped-while-lost",
            "nodes/lost-unwanted-and-wanted-again",
            "nodes/unwanted-on-a-lost-node-and-wanted-again",
            "nodes/failed-phase-removed-and-wanted-again",
            "nodes/succeeded-in-word-alone-and-removed",
            "nodes/lost-behind-a-snapshot",
            "deletion/succeeded-in-word-alone",
        ],
    ),
    (
        "the requests of a wave leave side by side: which of them arrive before the operator dies, or take the last room \
         of a quota, is chance",
        &["crash/between-names-and-deletes", "oddities/absurd-replicas"],
    ),
    (
        "an agent tries a failed boot again a second later, and where that try meets the operator's delete, the delete is \
         refused by its precondition: how often a rebuild is told is chance",
        &[
            "events/forbidden",
            "events/lost",
            "failure/an-edit-is-the-remedy",
            "failure/main-failed-and-the-rest-goes-on",
        ],
    ),
    (
        "the garbage collector may take the orphan finalizer away in the middle of a pass; then the pods' deletes are \
         sent, and refused by their precondition",
        &[
            "deletion/orphan",
            "deletion/orphan-while-a-node-is-lost",
            "deletion/orphan-where-nobody-watches-nodes",
            "deletion/orphan-while-the-registry-is-away",
        ],
    ),
    (
        "it dies after so many calls, and news that is one in memory comes in pieces, each with its calls",
        &["crash/charged-before-a-restart"],
    ),
    (
        "what is never answered is waited for 2 s here, and for no time in memory: two such renewals in a row take the term",
        &["election/slow-renewals"],
    ),
    (
        "pods that go in one moment there go one after the other here, and the status is written in between",
        &["deletion/under-somebody-elses-finalizer"],
    ),
    ("it is about a moment in the three seconds of a boot", &["creation/on-its-way"]),
    (
        "over HTTP a HEAD goes before each delete of a tag, and so the second one is another there",
        &["registry/delete-finds-nothing-once"],
    ),
    ("it is about one millisecond of a term", &["races/lease-runs-out-in-a-pass"]),
    (
        "to the one scheduler the nodes of all stories are one cluster: it counts them all, and its words never rest",
        &["status/unschedulable", "status/unschedulable-in-other-words", "failure/gone-ones-are-looked-for-once"],
    ),
    ("which of two watches is back first after a gap is chance", &["scale/while-a-pod-goes-by-itself"]),
];

/// They are played and their claims must hold, but who does what is decided by a race that the simulated cluster always
/// decides alike.
pub const CLAIMS_ONLY: &[Group] = &[
    ("a foreground deletion and the operator both delete the pods, and either is first", &["deletion/foreground"]),
    (
        "the creates of a wave leave side by side: how many of them arrive before the namespace goes is chance",
        &["incident/b-eight-in-flight"],
    ),
    (
        "so do its deletes: which of them was answered before the operator dies is chance",
        &["crash/in-the-middle-of-a-teardown"],
    ),
    (
        "an agent tries a failed boot again a second later, and where that try meets the operator's delete, the delete is \
         refused by its precondition",
        &["failure/rebuilds-come-slower"],
    ),
];

/// Why this story is not played.
pub fn excluded(story: &str) -> Option<&'static str> {
    let too_long = TOO_LONG.contains(&story).then_some("needs too much waiting");
    too_long.or_else(|| found(EXCLUDED, story))
}

/// Why this story is held to its claims alone.
pub fn claims_only(story: &str) -> Option<&'static str> {
    found(CLAIMS_ONLY, story)
}

fn found(groups: &[Group], story: &str) -> Option<&'static str> {
    groups.iter().find(|(_, stories)| stories.contains(&story)).map(|(why, _)| *why)
}
