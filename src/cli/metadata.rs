//! `metadata` of an object in a stream. The API server returns none that does not fit; what a hand has bent is told
//! instead of being passed over.

use super::Failure;
use super::field::Field;

/// Refuses what no API server returns. Absent and `null` are the same.
pub(super) fn check(metadata: &Field<'_>) -> Result<(), Failure> {
    for key in ["uid", "resourceVersion", "generateName"] {
        if let Some(at) = metadata.get(key) {
            at.string("text")?;
        }
    }
    for key in ["generation", "deletionGracePeriodSeconds"] {
        if let Some(at) = metadata.get(key) {
            at.whole(0, i64::MAX.unsigned_abs())?;
        }
    }
    for key in ["creationTimestamp", "deletionTimestamp"] {
        if let Some(at) = metadata.get(key) {
            at.time()?;
        }
    }
    for key in ["labels", "annotations"] {
        let entries = metadata.get(key).map(|at| at.entries("texts")).transpose()?;
        for (_, value) in entries.unwrap_or_default() {
            if !value.value().is_null() {
                value.string("text (in YAML, put it in quotes)")?;
            }
        }
    }
    for finalizer in metadata.get("finalizers").map(|at| at.items("finalizers")).transpose()?.unwrap_or_default() {
        finalizer.text("the name of a finalizer")?;
    }
    let owners = metadata.get("ownerReferences").map(|at| at.items("owners")).transpose()?.unwrap_or_default();
    owners.iter().try_for_each(owner)
}

fn owner(at: &Field<'_>) -> Result<(), Failure> {
    at.entries("apiVersion, kind, name, uid and controller")?;
    for (key, what) in [("kind", "the kind of the owner"), ("name", "its name"), ("uid", "its uid")] {
        at.need(key, what)?.text(what)?;
    }
    if let Some(api) = at.get("apiVersion") {
        api.text("an apiVersion such as v1")?;
    }
    for key in ["controller", "blockOwnerDeletion"] {
        if let Some(at) = at.get(key) {
            at.flag()?;
        }
    }
    Ok(())
}
