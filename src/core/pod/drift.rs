//! Two templates: which fields differ, and what each difference calls for (R20).

use super::facts::PodFacts;
use super::field::{Field, Remedy};
use super::intent;
use super::template::PodTemplate;
use crate::core::contract::vm_runtime::VmRuntime;
use crate::core::contract::{AnnotationPatch, keys};
use crate::core::oddity::excerpt;
use serde_json::Value;
use std::collections::BTreeSet;

/// One field that is not as wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldDrift {
    /// Its name in the spec.
    pub field: &'static str,
    /// What the pod has, for people.
    pub from: String,
    /// What is wanted.
    pub to: String,
    /// What the difference calls for.
    pub remedy: Remedy,
    /// The field itself.
    pub which: Field,
}

/// The fields of a live pod that are not as wanted. Names, forks, placement, boot and generation are never compared;
/// a pod without a class is adopted until it is replaced for another reason (contract X, D-75).
pub fn drift(wanted: &PodTemplate, carries: &PodTemplate) -> Vec<FieldDrift> {
    differing(wanted, carries, Class::Adopted)
}

/// The same for a pod as observed: a pod at its end without the class is not adopted (contract X).
pub fn drift_of(wanted: &PodTemplate, pod: &PodFacts) -> Vec<FieldDrift> {
    differing(wanted, &pod.carries, if pod.is_terminal() { Class::Compared } else { Class::Adopted })
}

/// True where some difference calls for a new pod.
pub fn must_recreate(drifts: &[FieldDrift]) -> bool {
    drifts.iter().any(|drift| drift.remedy == Remedy::Recreate)
}

/// The one patch that puts right whatever a patch can, our stated intent included. Fields that wait for a new pod
/// keep their old statement: stating the wanted value would make the pod look up to date.
pub fn patch_in_place(wanted: &PodTemplate, carries: &PodTemplate, drifts: &[FieldDrift]) -> AnnotationPatch {
    let mut patch = AnnotationPatch::new();
    let mut after = carries.clone();
    for drift in drifts {
        if let Some((key, value)) = drift.which.annotation(wanted)
            && drift.which.take(&mut after, &drift.which.value(wanted)).is_some()
        {
            patch.insert(key.to_owned(), value);
            after.stated.insert(drift.which);
        }
    }
    if !patch.is_empty() {
        let statement =
            if must_recreate(drifts) { intent::write(&after, &after.stated) } else { statement(wanted, carries) };
        patch.insert(keys::TEMPLATE.to_owned(), Some(statement));
    }
    patch
}

/// The patch that states our intent on a pod which has none or half of it, as pods of an older operator: from then
/// on every edit is noticed. Nothing where some field waits for a new pod, or all is stated.
pub fn adopt(wanted: &PodTemplate, carries: &PodTemplate) -> Option<AnnotationPatch> {
    let all = Field::of(wanted);
    if carries.stated.is_superset(&all) || !drift(wanted, carries).is_empty() {
        return None;
    }
    Some(AnnotationPatch::from([(keys::TEMPLATE.to_owned(), Some(statement(wanted, carries)))]))
}

/// All that is wanted of a pod, but for the class: an adopted pod states the one it has, so that it is still seen to
/// lack the wanted one at its end.
fn statement(wanted: &PodTemplate, carries: &PodTemplate) -> String {
    let stated = PodTemplate { compat_class: carries.compat_class.clone(), ..wanted.clone() };
    intent::write(&stated, &Field::of(wanted))
}

/// Fields of a static toolbox that we stated and that the node agent has written back: there is no second patch,
/// only the reason `RecreateNeeded` (R20).
pub fn written_back(wanted: &PodTemplate, pod: &PodFacts) -> Vec<&'static str> {
    let Some(VmRuntime { id, ip, .. }) = &wanted.fixed else { return Vec::new() };
    let mut fields = Vec::new();
    for (field, want, has) in [(Field::StaticVmId, id, &pod.runtime.id), (Field::StaticIp, ip, &pod.runtime.ip)] {
        if field.value(&pod.carries) == **want && has != want {
            fields.push(field.name());
        }
    }
    fields
}

/// What to make of a pod that has no class.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Adopted,
    Compared,
}

fn differing(wanted: &PodTemplate, carries: &PodTemplate, class: Class) -> Vec<FieldDrift> {
    let both: BTreeSet<Field> = Field::of(carries);
    let compared = Field::ALL.into_iter().filter(|field| field.applies(wanted) && both.contains(field));
    compared
        .filter(|field| !same(*field, wanted, carries, class))
        .map(|field| FieldDrift {
            field: field.name(),
            from: shown(&field.value(carries)),
            to: shown(&field.value(wanted)),
            remedy: field.remedy(),
            which: field,
        })
        .collect()
}

fn same(field: Field, wanted: &PodTemplate, carries: &PodTemplate, class: Class) -> bool {
    match field {
        Field::Storage => wanted.vm.storage == carries.vm.storage,
        Field::Cpu => same_bounds(wanted, carries, "cpu", carries.stated.contains(&field)),
        Field::Memory => same_bounds(wanted, carries, "memory", carries.stated.contains(&field)),
        Field::CompatClass => {
            wanted.compat_class == carries.compat_class || (carries.compat_class.is_none() && class == Class::Adopted)
        }
        Field::Image
        | Field::Mode
        | Field::Os
        | Field::Backend
        | Field::Network
        | Field::ServiceAccount
        | Field::EnvFrom
        | Field::Pool
        | Field::SnapshotPolicy
        | Field::ConnType
        | Field::ForcePull
        | Field::VncPort
        | Field::ProbePort
        | Field::NoDirectIo
        | Field::StaticVmId
        | Field::StaticIp => field.value(wanted) == field.value(carries),
    }
}

/// Limits and requests of one resource, requests completed from limits as the API server does it (D-17). Where the
/// pod does not state what was asked for, a bound that we do not ask for may be a LimitRange's and is ignored.
fn same_bounds(wanted: &PodTemplate, carries: &PodTemplate, key: &str, stated: bool) -> bool {
    let (want, have) = (&wanted.resources, &carries.resources);
    let limits = (want.limits.get(key), have.limits.get(key));
    let requests = (want.effective_request(key), have.effective_request(key));
    [limits, requests].into_iter().all(|(want, have)| want == have || (want.is_none() && !stated))
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "none".to_owned(),
        Value::String(text) if text.is_empty() => "none".to_owned(),
        Value::String(text) => excerpt(text, 120),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) => excerpt(&value.to_string(), 120),
        Value::Object(bounds) => {
            let part = |key: &str| bounds.get(key).and_then(Value::as_str).unwrap_or("none").to_owned();
            format!("limit {}, request {}", part("limit"), part("request"))
        }
    }
}
