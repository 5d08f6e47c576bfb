//! The headings of the built-in kinds.

use super::{Cells, Heading, more, pods};

const NAME: Heading = ("Name", "string", 0);
const AGE: Heading = ("Age", "string", 0);

const fn text(name: &'static str) -> Heading {
    (name, "string", 0)
}
const fn number(name: &'static str) -> Heading {
    (name, "integer", 0)
}
const fn wide(name: &'static str) -> Heading {
    (name, "string", 1)
}

const PODS: &[Heading] = &[
    NAME,
    text("Ready"),
    text("Status"),
    text("Restarts"),
    AGE,
    wide("IP"),
    wide("Node"),
    wide("Nominated Node"),
    wide("Readiness Gates"),
];
const NODES: &[Heading] = &[
    NAME,
    text("Status"),
    text("Roles"),
    AGE,
    text("Version"),
    wide("Internal-IP"),
    wide("External-IP"),
    wide("OS-Image"),
    wide("Kernel-Version"),
    wide("Container-Runtime"),
];
const EVENTS: &[Heading] = &[
    text("Last Seen"),
    text("Type"),
    text("Reason"),
    text("Object"),
    wide("Subobject"),
    wide("Source"),
    text("Message"),
    wide("First Seen"),
    wide("Count"),
    wide("Name"),
];
const NAMESPACES: &[Heading] = &[NAME, text("Status"), AGE];
const CONFIG_MAPS: &[Heading] = &[NAME, text("Data"), AGE];
const SECRETS: &[Heading] = &[NAME, text("Type"), text("Data"), AGE];
const SERVICES: &[Heading] =
    &[NAME, text("Type"), text("Cluster-IP"), text("External-IP"), text("Port(s)"), AGE, wide("Selector")];
const LEASES: &[Heading] = &[NAME, text("Holder"), AGE];
const QUOTAS: &[Heading] = &[NAME, text("Request"), text("Limit"), AGE];
const DEFINITIONS: &[Heading] = &[NAME, ("Created At", "date", 0)];
const BUDGETS: &[Heading] = &[NAME, text("Min Available"), text("Max Unavailable"), number("Allowed Disruptions"), AGE];
const CLASSES: &[Heading] =
    &[NAME, number("Value"), ("Global-Default", "boolean", 0), AGE, ("PreemptionPolicy", "string", 0)];
const POLICIES: &[Heading] = &[NAME, number("Validations"), text("ParamKind"), AGE];
const BINDINGS: &[Heading] = &[NAME, text("PolicyName"), text("ParamRef"), AGE];
const PLAIN: &[Heading] = &[NAME, AGE];

/// Headings and cells of a built-in kind, by its plural.
pub(super) fn printer(plural: &str) -> (&'static [Heading], Cells) {
    match plural {
        "pods" => (PODS, pods::cells),
        "nodes" => (NODES, more::node),
        "events" => (EVENTS, more::event),
        "namespaces" => (NAMESPACES, more::namespace),
        "configmaps" => (CONFIG_MAPS, more::config_map),
        "secrets" => (SECRETS, more::secret),
        "services" => (SERVICES, more::service),
        "leases" => (LEASES, more::lease),
        "resourcequotas" => (QUOTAS, more::quota),
        "customresourcedefinitions" | "limitranges" => (DEFINITIONS, more::dated),
        "poddisruptionbudgets" => (BUDGETS, more::budget),
        "priorityclasses" => (CLASSES, more::class),
        "validatingadmissionpolicies" => (POLICIES, more::policy),
        "validatingadmissionpolicybindings" => (BINDINGS, more::binding),
        _ => (PLAIN, more::aged),
    }
}
