//! What a CocoonHibernation asks for and what its status says: the read side, as the set's concerns need it.

use super::reader::Reader;
use super::words::{Desire, HibernationPhase, phase};
use crate::core::oddity::Oddity;
use serde_json::Value;

/// `spec` of a CocoonHibernation (api.md 2.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HibernationSpec {
    /// `podRef.name`: the target, in the same namespace. Empty where the spec lacks it (D-58).
    pub pod: String,
    /// What is wanted of it.
    pub desire: Desire,
}

/// `status` of a CocoonHibernation (api.md 2.2).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HibernationStatus {
    /// Absent before the first write.
    pub phase: Option<HibernationPhase>,
    /// VM name of the target when the phase last moved; empty where never written.
    pub vm_name: String,
    /// The generation of the last write.
    pub observed_generation: i64,
}

impl HibernationSpec {
    /// Reads any JSON.
    pub fn read(spec: &Value) -> (Self, Vec<Oddity>) {
        let mut oddities = Vec::new();
        let reader = Reader::new(spec, "spec");
        let pod = reader.object("podRef", &mut oddities).text("name", &mut oddities);
        if pod.is_empty() {
            oddities.push(Oddity::invalid("spec.podRef.name", "no pod is named"));
        }
        if reader.get("desire").is_none() {
            oddities.push(Oddity::invalid("spec.desire", "nothing is desired"));
        }
        let desire = Desire::read(&reader, "desire", &mut oddities);
        (Self { pod, desire }, oddities)
    }
}

impl HibernationStatus {
    /// Reads any JSON; what does not fit reads as absent, since we are its only writer.
    pub fn read(status: &Value) -> Self {
        Self {
            phase: phase(status, HibernationPhase::of),
            vm_name: status.get("vmName").and_then(Value::as_str).unwrap_or_default().to_owned(),
            observed_generation: status.get("observedGeneration").and_then(Value::as_i64).unwrap_or_default(),
        }
    }
}

/// True where a request owns its pod's hibernation, so that nobody else clears the mark (api.md 2.3, CS-U1).
pub fn holds_asleep(spec: &HibernationSpec, status: &HibernationStatus) -> bool {
    spec.desire == Desire::Hibernate || status.phase == Some(HibernationPhase::Hibernating)
}

/// True where a re-created pod has to restore instead of booting fresh (api.md 2.3, CS-M1).
pub fn wants_restore(status: &HibernationStatus) -> bool {
    matches!(status.phase, Some(HibernationPhase::Hibernated | HibernationPhase::Waking))
}
