//! Whether a pod that a quota has no room for would fit in the place of the one that it replaces. The old pod's share
//! comes free with it (decision R20); where more is in use than the quota allows, or the new pod asks for more, that is
//! not enough, and the old one would be gone for nothing.

use crate::core::api::quantity::Quantity;
use crate::core::pod::facts::{PodFacts, PodPhase};

const NANO: i128 = 1_000_000_000;

/// Whether the refusal, in the API server's words, would not be repeated once this pod is gone. Numbers stand nowhere but
/// in these words; where they cannot be read the decision stands that a full quota stops no replacement. Whatever else a
/// quota refuses, a pod that does not say what it asks for or a quota that is not counted yet, no share of an old pod cures.
pub fn leaves_room(message: &str, old: &PodFacts) -> bool {
    if !message.contains("exceeded quota: ") {
        return false;
    }
    let Some(exceeded) = exceeded(message) else { return true };
    exceeded.iter().all(|one| one.used.saturating_sub(one.share(old)).saturating_add(one.requested) <= one.limited)
}

/// One resource of a quota that a request exceeds, in billionths.
struct Exceeded<'a> {
    resource: &'a str,
    requested: i128,
    used: i128,
    limited: i128,
}

impl Exceeded<'_> {
    /// What of it comes free with this pod. Where that cannot be told it is taken for as much as its successor asks for.
    fn share(&self, old: &PodFacts) -> i128 {
        // It counts every pod that is stored, whatever its state; of `pods` and of what pods ask for, one that has ended
        // takes nothing any more.
        if self.resource == "count/pods" {
            return NANO;
        }
        if matches!(old.phase, PodPhase::Failed | PodPhase::Succeeded) {
            return 0;
        }
        let resources = &old.carries.resources;
        let amount = match self.resource.split_once('.') {
            None if self.resource == "pods" => return NANO,
            Some(("limits", name)) => resources.limits.get(name),
            Some(("requests", name)) => resources.effective_request(name),
            None => resources.effective_request(self.resource),
            Some(_) => None,
        };
        amount.and_then(Quantity::nanos).unwrap_or(self.requested)
    }
}

/// `exceeded quota: NAME, requested: pods=1,…, used: pods=3,…, limited: pods=1,…`.
fn exceeded(message: &str) -> Option<Vec<Exceeded<'_>>> {
    let (rest, limited) = message.rsplit_once(", limited: ")?;
    let (rest, used) = rest.rsplit_once(", used: ")?;
    let (_, requested) = rest.rsplit_once(", requested: ")?;
    let amount = |list: &str, resource: &str| {
        let mut entries = list.split(',').filter_map(|entry| entry.split_once('='));
        let (_, amount) = entries.find(|(name, _)| name.trim() == resource)?;
        Quantity::of(amount.trim()).nanos()
    };
    let each = requested.split(',').map(|entry| {
        let (resource, _) = entry.split_once('=')?;
        let resource = resource.trim();
        let [requested, used, limited] = [requested, used, limited].map(|list| amount(list, resource));
        Some(Exceeded { resource, requested: requested?, used: used?, limited: limited? })
    });
    each.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(phase: &str) -> PodFacts {
        let container =
            json!({ "name": "agent", "resources": { "requests": { "cpu": "500m" }, "limits": { "memory": "1Gi" } } });
        PodFacts::read(
            &json!({ "metadata": { "name": "x-0" }, "spec": { "containers": [container] }, "status": { "phase": phase } }),
        )
    }
    fn room(requested: &str, used: &str, limited: &str) -> bool {
        let message = format!(
            "pods \"x-0\" is forbidden: exceeded quota: q, requested: {requested}, used: {used}, limited: {limited}"
        );
        leaves_room(&message, &pod("Running"))
    }

    #[test]
    fn a_full_quota_has_room_for_a_pod_of_the_same_size() {
        assert!(room("pods=1", "pods=3", "pods=3"));
        assert!(room("count/pods=1,requests.cpu=500m", "count/pods=3,requests.cpu=2", "count/pods=3,requests.cpu=2"));
        assert!(
            !room("limits.memory=2Gi", "limits.memory=4Gi", "limits.memory=4Gi"),
            "no more than its own comes free"
        );
        assert!(!room("memory=2Gi", "memory=4Gi", "memory=4Gi"), "no more than its own comes free");
        assert!(room("memory=1Gi", "memory=4Gi", "memory=4Gi"), "the request is the limit where none is said");
        assert!(room("services=1", "services=3", "services=3"), "what nobody can tell is taken for the same size");
    }
    #[test]
    fn an_overdrawn_quota_has_none() {
        assert!(!room("pods=1", "pods=3", "pods=1"));
        assert!(!room("limits.memory=1Gi,pods=1", "limits.memory=3Gi,pods=3", "limits.memory=2Gi,pods=3"));
    }
    #[test]
    fn a_larger_successor_needs_more_than_comes_free_and_a_smaller_one_less() {
        assert!(!room("requests.cpu=1", "requests.cpu=2", "requests.cpu=2"));
        assert!(room("requests.cpu=100m", "requests.cpu=2", "requests.cpu=1700m"));
    }
    #[test]
    fn nothing_comes_free_with_what_has_ended() {
        let message = "exceeded quota: q, requested: pods=1, used: pods=3, limited: pods=3";
        assert!(!leaves_room(message, &pod("Failed")) && !leaves_room(message, &pod("Succeeded")));
        let message = "exceeded quota: q, requested: count/pods=1, used: count/pods=3, limited: count/pods=3";
        assert!(leaves_room(message, &pod("Failed")), "every pod that is stored counts there");
    }
    #[test]
    fn numbers_that_cannot_be_read_say_nothing() {
        for words in ["exceeded quota: q", "exceeded quota: q, requested: pods=a, used: pods=b, limited: pods=c"] {
            assert!(leaves_room(words, &pod("Running")), "{words}");
        }
    }
    #[test]
    fn what_is_not_exceeded_is_not_cured_by_what_comes_free() {
        for words in [
            "pods \"x-0\" is forbidden: failed quota: q: must specify limits.cpu for: agent",
            "pods \"x-0\" is forbidden: insufficient quota to match these scopes: [{PriorityClass In [high]}]",
            "pods \"x-0\" is forbidden: status unknown for quota: q, resources: pods",
        ] {
            assert!(!leaves_room(words, &pod("Running")), "{words}");
        }
    }
}
