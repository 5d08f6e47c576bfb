//! Differences that do not matter, each with its reason. Everything else is a fault.

/// Where a difference is forgiven: the case and the title begin so, the difference begins so and has this in it.
struct Known {
    case: &'static str,
    difference: &'static str,
    with: &'static str,
    why: &'static str,
}

const fn known(case: &'static str, difference: &'static str, with: &'static str, why: &'static str) -> Known {
    Known { case, difference, with, why }
}

const NODE_CONTROLLERS: &str = "what controllers add to a node that no kubelet reports for (taints, the ttl annotation) \
    comes in their time; simulated nodes report for themselves";
const POD_DIFF: &str = "after its own words the server shows what differs in the fields of its Go types";
const QUOTA_CONTROLLER: &str = "whether a quota that was just made is counted yet is a matter of moments";
const RANDOM_ORDER: &str = "several errors of one object come in the order of a Go map, another one each time";

const COLUMNS: &str =
    "what a column of a built-in table means, in the words of the API's documentation: it is not shown";
const HASHES: &str = "a hash of where a kind is stored, which only a migration of the storage reads";

const POD_COLLECTOR: &str =
    "the pod collector fails pods that go and are on no node; it comes by every 20 s, in the middle of a life or not";

const ALL: [Known; 12] = [
    known("forms", "/body/columnDefinitions/", "/description: ", COLUMNS),
    known("about-the-api: our kinds", "/body/resources/", "/storageVersionHash: ", HASHES),
    known("life-node", "/body/spec/taints", "node.kubernetes.io/", NODE_CONTROLLERS),
    known("life-node", "/body/items/", "/spec/taints", NODE_CONTROLLERS),
    known("life-node", "/body/", "node.alpha.kubernetes.io", NODE_CONTROLLERS),
    known(
        "life-node",
        "/body/",
        "/metadata/resourceVersion: simulated \"as it was\", real \"moved on\"",
        NODE_CONTROLLERS,
    ),
    known("life-pod", "/body/status/phase: simulated \"Running\", real \"Failed\"", "", POD_COLLECTOR),
    known("life-pod", "/body/status/observedGeneration: simulated null, real ", "", POD_COLLECTOR),
    known("life-resourcequota: a collection deleted", "/body/items/0/", "", QUOTA_CONTROLLER),
    known("pods-", "/body/", "previously negative)\\n@@", POD_DIFF),
    known("schema-specs: spec: everything wrong at once", "/body/details/causes/", "", RANDOM_ORDER),
    known("schema-specs: spec: everything wrong at once", "/body/message", "", RANDOM_ORDER),
];

/// Why this difference does not matter.
pub fn why(place: &str, difference: &str) -> Option<&'static str> {
    let (case, title) = place.split_once(": ").unwrap_or((place, ""));
    let case = case.split(' ').next().unwrap_or("");
    let place = format!("{case}: {title}");
    let fits = |known: &&Known| {
        place.starts_with(known.case) && difference.starts_with(known.difference) && difference.contains(known.with)
    };
    ALL.iter().find(fits).map(|known| known.why)
}
