//! Differences that do not matter, each with its reason. Everything else is a fault.

/// Where a difference is forgiven: the case and the title begin so, the difference begins so and has this in it.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub struct Known {
    case: &'static str,
    difference: &'static str,
    with: &'static str,
    pub why: &'static str,
    shows: Shows,
}

/// Whether the difference is there every time.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Shows {
    /// A whole script in which it is not there needs the entry no more.
    Always,
    /// It is there or not by chance: the order of a map, the moment at which a controller comes by.
    Sometimes,
}

use Shows::{Always, Sometimes};

const fn known(
    shows: Shows,
    case: &'static str,
    difference: &'static str,
    with: &'static str,
    why: &'static str,
) -> Known {
    Known { case, difference, with, why, shows }
}

impl std::fmt::Display for Known {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} … {} … {}", self.case, self.difference, self.with)
    }
}

const NODE_CONTROLLERS: &str = "what controllers add to a node that no kubelet reports for (taints, the ttl annotation) \
    comes in their time; simulated nodes report for themselves";
const POD_DIFF: &str = "after its own words the server shows what differs in the fields of its Go types";
const RANDOM_ORDER: &str = "several errors of one object come in the order of a Go map, another one each time";

const COLUMNS: &str =
    "what a column of a built-in table means, in the words of the API's documentation: it is not shown";
const HASHES: &str = "a hash of where a kind is stored, which only a migration of the storage reads";

const POD_COLLECTOR: &str =
    "the pod collector fails pods that go and are on no node; it comes by every 20 s, in the middle of a life or not";

static ALL: [Known; 11] = [
    known(Always, "forms", "/body/columnDefinitions/", "/description: ", COLUMNS),
    known(Always, "about-the-api: our kinds", "/body/resources/", "/storageVersionHash: ", HASHES),
    known(Sometimes, "life-node", "/body/spec/taints", "node.kubernetes.io/", NODE_CONTROLLERS),
    known(Sometimes, "life-node", "/body/items/", "/spec/taints", NODE_CONTROLLERS),
    known(Sometimes, "life-node", "/body/", "node.alpha.kubernetes.io", NODE_CONTROLLERS),
    known(
        Sometimes,
        "life-node",
        "/body/",
        "/metadata/resourceVersion: simulated \"as it was\", real \"moved on\"",
        NODE_CONTROLLERS,
    ),
    known(Sometimes, "life-pod", "/body/status/phase: simulated \"Running\", real \"Failed\"", "", POD_COLLECTOR),
    known(Sometimes, "life-pod", "/body/status/observedGeneration: simulated null, real ", "", POD_COLLECTOR),
    known(Always, "pods-", "/body/", "previously negative)\\n@@", POD_DIFF),
    known(Sometimes, "schema-specs: spec: everything wrong at once", "/body/details/causes/", "", RANDOM_ORDER),
    known(Sometimes, "schema-specs: spec: everything wrong at once", "/body/message", "", RANDOM_ORDER),
];

/// What explains this difference.
pub fn explanation(place: &str, difference: &str) -> Option<&'static Known> {
    let (case, title) = place.split_once(": ").unwrap_or((place, ""));
    let case = case.split(' ').next().unwrap_or("");
    let place = format!("{case}: {title}");
    let fits = |known: &&Known| {
        place.starts_with(known.case) && difference.starts_with(known.difference) && difference.contains(known.with)
    };
    ALL.iter().find(fits)
}

/// What should explain something in every whole script.
pub fn needed() -> impl Iterator<Item = &'static Known> {
    ALL.iter().filter(|known| known.shows == Always)
}
