//! Field numbers of the messages, as Kubernetes' published `generated.proto` files have them.

/// What a field holds.
#[derive(Debug)]
pub(super) enum Kind {
    Text,
    Bytes,
    /// Nought is as good as absent.
    Number,
    /// A number that is only sent where it is meant.
    Stated,
    Flag,
    StatedFlag,
    Message(&'static str),
    Map(&'static Kind),
    Time,
    Quantity,
    NumberOrText,
}

/// One field of a message.
#[derive(Debug)]
pub(super) struct Field {
    pub number: u64,
    pub name: &'static str,
    pub kind: Kind,
    pub many: bool,
}

const fn one(number: u64, name: &'static str, kind: Kind) -> Field {
    Field { number, name, kind, many: false }
}
const fn many(number: u64, name: &'static str, kind: Kind) -> Field {
    Field { number, name, kind, many: true }
}
const fn text(number: u64, name: &'static str) -> Field {
    one(number, name, Kind::Text)
}
const fn metadata() -> Field {
    one(1, "metadata", Kind::Message("ObjectMeta"))
}
const fn spec(message: &'static str) -> Field {
    one(2, "spec", Kind::Message(message))
}

/// The message of a kind.
pub(super) fn message_of(version: &str, kind: &str) -> Option<&'static str> {
    // The options of a deletion come under the version of what is deleted.
    if kind == "DeleteOptions" {
        return Some("DeleteOptions");
    }
    Some(match (version, kind) {
        ("v1", "ConfigMap") => "ConfigMap",
        ("v1", "Namespace") => "Namespace",
        ("v1", "ResourceQuota") => "ResourceQuota",
        ("v1", "Secret") => "Secret",
        ("v1", "Service") => "Service",
        ("v1", "ServiceAccount") => "ServiceAccount",
        ("authentication.k8s.io/v1", "SelfSubjectReview") => "SelfSubjectReview",
        ("authorization.k8s.io/v1", "SelfSubjectAccessReview") => "SelfSubjectAccessReview",
        ("authorization.k8s.io/v1", "SelfSubjectRulesReview") => "SelfSubjectRulesReview",
        ("policy/v1", "Eviction") => "Eviction",
        ("policy/v1", "PodDisruptionBudget") => "PodDisruptionBudget",
        ("scheduling.k8s.io/v1", "PriorityClass") => "PriorityClass",
        _ => return None,
    })
}

/// The fields of a message that are read.
pub(super) fn fields(message: &str) -> &'static [Field] {
    match message {
        "ObjectMeta" => OBJECT_META,
        "OwnerReference" => OWNER_REFERENCE,
        "ConfigMap" => CONFIG_MAP,
        "Namespace" => NAMESPACE,
        "NamespaceSpec" => NAMESPACE_SPEC,
        "ResourceQuota" => RESOURCE_QUOTA,
        "ResourceQuotaSpec" => RESOURCE_QUOTA_SPEC,
        "Secret" => SECRET,
        "Service" => SERVICE,
        "ServiceSpec" => SERVICE_SPEC,
        "ServicePort" => SERVICE_PORT,
        "ServiceAccount" => SERVICE_ACCOUNT,
        "Reference" => REFERENCE,
        "SelfSubjectReview" => SELF_SUBJECT_REVIEW,
        "SelfSubjectAccessReview" => ACCESS_REVIEW,
        "AccessSpec" => ACCESS_SPEC,
        "ResourceAttributes" => RESOURCE_ATTRIBUTES,
        "NonResourceAttributes" => NON_RESOURCE_ATTRIBUTES,
        "SelfSubjectRulesReview" => RULES_REVIEW,
        "RulesSpec" => RULES_SPEC,
        "Eviction" => EVICTION,
        "DeleteOptions" => DELETE_OPTIONS,
        "Preconditions" => PRECONDITIONS,
        "PodDisruptionBudget" => BUDGET,
        "BudgetSpec" => BUDGET_SPEC,
        "LabelSelector" => LABEL_SELECTOR,
        "Requirement" => REQUIREMENT,
        "PriorityClass" => PRIORITY_CLASS,
        _ => &[],
    }
}

const TEXTS: Kind = Kind::Map(&Kind::Text);

const OBJECT_META: &[Field] = &[
    text(1, "name"),
    text(2, "generateName"),
    text(3, "namespace"),
    text(5, "uid"),
    text(6, "resourceVersion"),
    one(7, "generation", Kind::Number),
    one(8, "creationTimestamp", Kind::Time),
    one(9, "deletionTimestamp", Kind::Time),
    one(10, "deletionGracePeriodSeconds", Kind::Stated),
    one(11, "labels", TEXTS),
    one(12, "annotations", TEXTS),
    many(13, "ownerReferences", Kind::Message("OwnerReference")),
    many(14, "finalizers", Kind::Text),
];
const OWNER_REFERENCE: &[Field] = &[
    text(1, "kind"),
    text(3, "name"),
    text(4, "uid"),
    text(5, "apiVersion"),
    one(6, "controller", Kind::StatedFlag),
    one(7, "blockOwnerDeletion", Kind::StatedFlag),
];
const CONFIG_MAP: &[Field] = &[
    metadata(),
    one(2, "data", TEXTS),
    one(3, "binaryData", Kind::Map(&Kind::Bytes)),
    one(4, "immutable", Kind::StatedFlag),
];
const NAMESPACE: &[Field] = &[metadata(), spec("NamespaceSpec")];
const NAMESPACE_SPEC: &[Field] = &[many(1, "finalizers", Kind::Text)];
const RESOURCE_QUOTA: &[Field] = &[metadata(), spec("ResourceQuotaSpec")];
const RESOURCE_QUOTA_SPEC: &[Field] = &[one(1, "hard", Kind::Map(&Kind::Quantity)), many(2, "scopes", Kind::Text)];
const SECRET: &[Field] = &[
    metadata(),
    one(2, "data", Kind::Map(&Kind::Bytes)),
    text(3, "type"),
    one(4, "stringData", TEXTS),
    one(5, "immutable", Kind::StatedFlag),
];
const SERVICE: &[Field] = &[metadata(), spec("ServiceSpec")];
const SERVICE_SPEC: &[Field] = &[
    many(1, "ports", Kind::Message("ServicePort")),
    one(2, "selector", TEXTS),
    text(3, "clusterIP"),
    text(4, "type"),
    text(7, "sessionAffinity"),
    text(10, "externalName"),
];
const SERVICE_PORT: &[Field] = &[
    text(1, "name"),
    text(2, "protocol"),
    one(3, "port", Kind::Stated),
    one(4, "targetPort", Kind::NumberOrText),
    one(5, "nodePort", Kind::Number),
];
const SERVICE_ACCOUNT: &[Field] = &[
    metadata(),
    many(3, "imagePullSecrets", Kind::Message("Reference")),
    one(4, "automountServiceAccountToken", Kind::StatedFlag),
];
const REFERENCE: &[Field] = &[text(1, "name")];
const SELF_SUBJECT_REVIEW: &[Field] = &[metadata()];
const ACCESS_REVIEW: &[Field] = &[metadata(), spec("AccessSpec")];
const ACCESS_SPEC: &[Field] = &[
    one(1, "resourceAttributes", Kind::Message("ResourceAttributes")),
    one(2, "nonResourceAttributes", Kind::Message("NonResourceAttributes")),
];
const RESOURCE_ATTRIBUTES: &[Field] = &[
    text(1, "namespace"),
    text(2, "verb"),
    text(3, "group"),
    text(4, "version"),
    text(5, "resource"),
    text(6, "subresource"),
    text(7, "name"),
];
const NON_RESOURCE_ATTRIBUTES: &[Field] = &[text(1, "path"), text(2, "verb")];
const RULES_REVIEW: &[Field] = &[metadata(), spec("RulesSpec")];
const RULES_SPEC: &[Field] = &[text(1, "namespace")];
const EVICTION: &[Field] = &[metadata(), one(2, "deleteOptions", Kind::Message("DeleteOptions"))];
const DELETE_OPTIONS: &[Field] = &[
    one(1, "gracePeriodSeconds", Kind::Stated),
    one(2, "preconditions", Kind::Message("Preconditions")),
    one(3, "orphanDependents", Kind::StatedFlag),
    text(4, "propagationPolicy"),
    many(5, "dryRun", Kind::Text),
];
const PRECONDITIONS: &[Field] = &[text(1, "uid"), text(2, "resourceVersion")];
const BUDGET: &[Field] = &[metadata(), spec("BudgetSpec")];
const BUDGET_SPEC: &[Field] = &[
    one(1, "minAvailable", Kind::NumberOrText),
    one(2, "selector", Kind::Message("LabelSelector")),
    one(3, "maxUnavailable", Kind::NumberOrText),
];
const LABEL_SELECTOR: &[Field] =
    &[one(1, "matchLabels", TEXTS), many(2, "matchExpressions", Kind::Message("Requirement"))];
const REQUIREMENT: &[Field] = &[text(1, "key"), text(2, "operator"), many(3, "values", Kind::Text)];
const PRIORITY_CLASS: &[Field] = &[
    metadata(),
    one(2, "value", Kind::Number),
    one(3, "globalDefault", Kind::Flag),
    text(4, "description"),
    text(5, "preemptionPolicy"),
];
