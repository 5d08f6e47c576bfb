//! The ClusterRole of `deploy/`, from which a test takes a right for a while; and when the API server refused something
//! because of that.

use crate::audit::Call;
use crate::incident::check;
use crate::place::Place;
use cocoon_operator::core::wire::{MERGE_PATCH, Method, Request};
use jiff::{SignedDuration, Timestamp};
use libtest_mimic::Failed;
use serde_json::{Value, json};

/// The ClusterRole.
pub const CLUSTER_ROLE: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles/cocoon-operator";
/// What the operator may do in its own namespace.
pub const OWN_ROLE: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/cocoon-system/roles/cocoon-operator";
/// The API server hears of a role's change from a watch.
const HEARS: SignedDuration = SignedDuration::from_secs(1);

/// Requests that RBAC refuses on purpose.
#[derive(Clone)]
pub struct Denied {
    /// Verb and resource; none where it is any.
    what: Option<(String, String)>,
    from: Timestamp,
    to: Timestamp,
}

impl Denied {
    /// Everything, from then until then.
    pub const fn everything(from: Timestamp, to: Timestamp) -> Self {
        Self { what: None, from, to }
    }
    /// Whether this refusal was meant.
    pub fn means(&self, call: &Call) -> bool {
        self.covers(call.at) && self.what.as_ref().is_none_or(|(verb, resource)| call.is(verb, resource))
    }
    /// Whether it was so at this time.
    pub fn covers(&self, at: Timestamp) -> bool {
        (self.from..=self.to).contains(&at)
    }
}

/// A right that is taken, and the role as it was.
pub struct Taken {
    role: Value,
    verb: String,
    resource: String,
    from: Timestamp,
}

impl Place {
    /// Takes one right away, and no other. It is given back by `restore`, and at the end of the test at the latest.
    pub fn without(&mut self, resource: &str, verb: &str) -> Result<(), Failed> {
        let role = self.must(&Request::new(Method::Get, CLUSTER_ROLE))?;
        let rules = role["rules"].as_array().ok_or("a role without rules")?;
        let less: Vec<Value> = rules.iter().flat_map(|rule| rule_without(rule, resource, verb)).collect();
        check(less != *rules, || format!("nobody may {verb} {resource} anyway"))?;
        let (verb, resource) = (verb.to_owned(), resource.to_owned());
        self.taken = Some(Taken { role, verb, resource, from: Timestamp::now() });
        self.set_rules(&json!(less))
    }

    /// Gives it back.
    pub fn restore(&mut self) -> Result<(), Failed> {
        let Some(taken) = &self.taken else { return Ok(()) };
        self.set_rules(&taken.role["rules"])?;
        let to = Timestamp::now().checked_add(HEARS).unwrap_or(Timestamp::MAX);
        let given =
            self.taken.take().map(|taken| Denied { what: Some((taken.verb, taken.resource)), from: taken.from, to });
        self.denied.extend(given);
        Ok(())
    }

    fn set_rules(&self, rules: &Value) -> Result<(), Failed> {
        let rules = json!({ "rules": rules });
        self.must(&Request::new(Method::Patch, CLUSTER_ROLE).with_body(MERGE_PATCH, rules)).map(drop)
    }
}

/// What is left of a rule: its other resources as they were, and of this one the other verbs.
fn rule_without(rule: &Value, resource: &str, verb: &str) -> Vec<Value> {
    let without = |key: &str, one: &str| -> Option<Vec<Value>> {
        let all = rule[key].as_array()?;
        all.contains(&json!(one)).then(|| all.iter().filter(|other| **other != json!(one)).cloned().collect())
    };
    let (Some(resources), Some(verbs)) = (without("resources", resource), without("verbs", verb)) else {
        return vec![rule.clone()];
    };
    let with = |key: &str, value: Value, of: &Value| {
        let mut rule = of.clone();
        rule[key] = value;
        rule
    };
    let others = (!resources.is_empty()).then(|| with("resources", json!(resources), rule));
    let rest = (!verbs.is_empty()).then(|| with("verbs", json!(verbs), &with("resources", json!([resource]), rule)));
    others.into_iter().chain(rest).collect()
}
