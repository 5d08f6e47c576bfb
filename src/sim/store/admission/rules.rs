//! Refusals that a test or a scenario sets: authorization, flow control, PodSecurity, limits, policies, webhooks. They
//! answer exactly as recorded in `tests/facts`.

use super::super::path::Call;
use super::super::reply::quoted;
use super::super::selectors::Selector;
use super::super::status_error::{self as say, Refused};
use super::super::{Store, StoreReply};
use serde_json::{Value, json};
use std::time::Duration;

/// Which requests a rule is about. An absent part fits everything.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Match {
    /// The user who asks.
    pub user: Option<String>,
    /// Verbs as authorization knows them: get, list, watch, create, update, patch, delete, deletecollection.
    pub verbs: Vec<String>,
    /// `pods`, `pods/status`, `widgets.example.test`, `widgets.example.test/status`. Without a subresource it fits the
    /// main resource only; `*` fits all.
    pub resource: Option<String>,
    /// The namespace.
    pub namespace: Option<String>,
    /// The name: `metadata.name` or, for creates without one, `generateName`.
    pub name: Option<String>,
    /// Labels of the object that is written.
    pub labels: Selector,
}

/// How a rule refuses.
#[derive(Clone, Debug, PartialEq)]
pub enum Refusal {
    /// 401: the credentials are unknown.
    Unauthorized,
    /// 429 in plain text with this `Retry-After`: in-flight limits, priority and fairness.
    TooManyRequests(Duration),
    /// 403 of RBAC.
    Rbac,
    /// 403 of PodSecurity at this level, e.g. `restricted:latest`, with what is violated.
    PodSecurity {
        /// Level and version.
        level: String,
        /// The violations as the server lists them.
        violations: String,
    },
    /// No refusal: the write passes with this `Warning`.
    Warn(String),
    /// 403 of LimitRanger with this text.
    LimitRange(String),
    /// A ValidatingAdmissionPolicy denies; 422 Invalid unless it names a reason.
    Policy {
        /// Name of policy and binding.
        name: String,
        /// The policy's message.
        message: String,
        /// `Forbidden`, `Unauthorized`, `RequestEntityTooLarge`, or none.
        reason: Option<String>,
    },
    /// 500: a webhook with failurePolicy Fail cannot be called.
    WebhookUnreachable {
        /// The webhook's name.
        name: String,
        /// Why it could not be called.
        error: String,
    },
    /// A webhook denies, with this code (403 if it gives none).
    WebhookDenied {
        /// The webhook's name.
        name: String,
        /// Its message; none gives "denied the request without explanation".
        message: Option<String>,
        /// Status code and reason that the webhook chose.
        code: Option<(u16, String)>,
    },
    /// 429 as a Status: a PodDisruptionBudget allows no eviction.
    DisruptionBudget(String),
    /// Any other answer, given after authorization.
    Answer(Box<StoreReply>),
}

/// A refusal and the requests that it meets.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// The requests.
    pub when: Match,
    /// The answer.
    pub refuse: Refusal,
    /// How many requests it still meets; none for all.
    pub remaining: Option<u32>,
}

impl Rule {
    /// A rule that holds until it is taken away.
    pub fn new(when: Match, refuse: Refusal) -> Self {
        Self { when, refuse, remaining: None }
    }
    /// The same for the next `count` requests only.
    #[must_use]
    pub fn times(mut self, count: u32) -> Self {
        self.remaining = Some(count);
        self
    }
}

impl Match {
    fn fits(&self, call: &Call<'_>, object: Option<&Value>) -> bool {
        let same = |want: &Option<String>, have: &str| want.as_deref().is_none_or(|want| want == have);
        let body = object.unwrap_or(&call.request.body);
        same(&self.user, call.user)
            && (self.verbs.is_empty() || self.verbs.iter().any(|verb| verb == call.verb))
            && self.fits_resource(call)
            && same(&self.namespace, &call.target.namespace)
            && self.name.as_deref().is_none_or(|want| want == shown_name(call, body))
            && (self.labels.is_empty() || self.labels.matches(body))
    }
    fn fits_resource(&self, call: &Call<'_>) -> bool {
        let Some(want) = self.resource.as_deref() else { return true };
        let (resource, subresource) = want.split_once('/').unwrap_or((want, ""));
        (resource == "*" || resource == call.resource().qualified())
            && (resource == "*" || subresource == "*" || subresource == call.target.subresource)
    }
}

/// The name under which refusals speak of the object: its own, or what it is to be generated from.
pub(in super::super) fn shown_name<'a>(call: &'a Call<'_>, body: &'a Value) -> &'a str {
    use super::super::objects::meta;
    let own = if call.target.name.is_empty() { meta(body, "name") } else { &call.target.name };
    if own.is_empty() { meta(body, "generateName") } else { own }
}

/// The stages at which refusals are asked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Authentication,
    FlowControl,
    Authorization,
    Admission,
}

impl Refusal {
    const fn stage(&self) -> Stage {
        match self {
            Self::Unauthorized => Stage::Authentication,
            Self::TooManyRequests(_) => Stage::FlowControl,
            Self::Rbac | Self::Answer(_) => Stage::Authorization,
            Self::PodSecurity { .. }
            | Self::Warn(_)
            | Self::LimitRange(_)
            | Self::Policy { .. }
            | Self::WebhookUnreachable { .. }
            | Self::WebhookDenied { .. }
            | Self::DisruptionBudget(_) => Stage::Admission,
        }
    }

    /// The answer; none where it is only a warning.
    fn answer(&self, call: &Call<'_>, body: &Value) -> Option<Refused> {
        let resource = call.resource();
        let name = shown_name(call, body);
        Some(match self {
            Self::Unauthorized => say::status(401, "Unauthorized", "Unauthorized", None),
            Self::TooManyRequests(after) => say::too_many_requests(*after),
            Self::Rbac => say::unauthorized_action(resource, &call.target.name, &rbac_text(call)),
            Self::Answer(reply) => Refused(reply.clone()),
            Self::Warn(_) => return None,
            Self::PodSecurity { level, violations } => {
                let why = format!("violates PodSecurity {}: {violations}", quoted(level));
                say::forbidden(resource, name, &why, Vec::new())
            }
            Self::LimitRange(why) => say::forbidden(resource, name, why, Vec::new()),
            Self::Policy { name: policy, message, reason } => {
                let why =
                    format!("ValidatingAdmissionPolicy '{policy}' with binding '{policy}' denied request: {message}");
                let (code, reason) = policy_code(reason.as_deref());
                say::policy(resource, name, &why, code, reason)
            }
            Self::WebhookUnreachable { name, error } => {
                say::internal(&format!("failed calling webhook {}: failed to call webhook: {error}", quoted(name)))
            }
            Self::WebhookDenied { name, message, code } => webhook_denial(name, message.as_deref(), code.as_ref()),
            Self::DisruptionBudget(budget) => disruption_budget(budget),
        })
    }
}

fn policy_code(reason: Option<&str>) -> (u16, &'static str) {
    match reason {
        Some("Forbidden") => (403, "Forbidden"),
        Some("Unauthorized") => (401, "Unauthorized"),
        Some("RequestEntityTooLarge") => (413, "RequestEntityTooLarge"),
        _ => (422, "Invalid"),
    }
}

fn webhook_denial(name: &str, message: Option<&str>, code: Option<&(u16, String)>) -> Refused {
    let text = match message {
        Some(message) => format!("admission webhook {} denied the request: {message}", quoted(name)),
        None => format!("admission webhook {} denied the request without explanation", quoted(name)),
    };
    match code {
        Some((code, reason)) => say::status(*code, reason, &text, None),
        None => say::status(403, "Forbidden", &text, None),
    }
}

fn disruption_budget(budget: &str) -> Refused {
    let message = "Cannot evict pod as it would violate the pod's disruption budget.";
    let why = format!("The disruption budget {budget} does not allow evicting pods currently");
    let details = json!({"causes": [{"reason": "DisruptionBudget", "message": why}]});
    say::status(429, "TooManyRequests", message, Some(details))
}

fn rbac_text(call: &Call<'_>) -> String {
    let place = if call.target.namespace.is_empty() {
        "at the cluster scope".to_owned()
    } else {
        format!("in the namespace {}", quoted(&call.target.namespace))
    };
    format!(
        "User {} cannot {} resource {} in API group {} {place}",
        quoted(call.user),
        call.verb,
        quoted(&call.resource_and_subresource()),
        quoted(&call.resource().group),
    )
}

/// Asks the rules of authentication, flow control and authorization, in this order.
pub(in super::super) fn at_the_door(store: &mut Store, call: &Call<'_>) -> Result<(), Refused> {
    for stage in [Stage::Authentication, Stage::FlowControl, Stage::Authorization] {
        ask(store, call, None, stage)?;
    }
    Ok(())
}

/// Asks the rules of admission about an object that is written, and gives the warnings.
pub(in super::super) fn at_admission(
    store: &mut Store,
    call: &Call<'_>,
    object: &Value,
) -> Result<Vec<String>, Refused> {
    ask(store, call, Some(object), Stage::Admission)
}

fn ask(store: &mut Store, call: &Call<'_>, object: Option<&Value>, stage: Stage) -> Result<Vec<String>, Refused> {
    let mut warnings = Vec::new();
    if call.user == super::super::SYSTEM {
        return Ok(warnings);
    }
    for rule in &mut store.rules {
        if rule.refuse.stage() != stage || rule.remaining == Some(0) || !rule.when.fits(call, object) {
            continue;
        }
        rule.remaining = rule.remaining.map(|left| left.saturating_sub(1));
        match rule.refuse.answer(call, object.unwrap_or(&call.request.body)) {
            Some(refused) => return Err(refused),
            None => warnings.extend(match &rule.refuse {
                Refusal::Warn(text) => Some(text.clone()),
                _ => None,
            }),
        }
    }
    Ok(warnings)
}
