//! `delete-vm-names`: the VMs whose tags teardown collects once their pods are gone (contract 2.3, D-31).

use super::keys;
use super::names::{VmName, is_of_set};
use crate::core::oddity::{Oddity, excerpt};
use std::collections::BTreeSet;

/// What the annotation says, sorted into ours and not ours.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteNames {
    /// Names of the set's own formula, or listed by its status.
    pub names: BTreeSet<VmName>,
    /// One oddity where others stood there: whoever edits the annotation must not choose whose tags go.
    pub oddity: Option<Oddity>,
}

/// Reads the annotation of this set: parts are trimmed, empty ones ignored. A name that the formula does not give is
/// accepted only where it is `known`, that is listed by the set's status.
pub fn read(annotation: &str, namespace: &str, set: &str, known: &BTreeSet<VmName>) -> DeleteNames {
    let parts = annotation.split(',').map(str::trim).filter(|part| !part.is_empty());
    let (mut names, mut foreign) = (BTreeSet::new(), BTreeSet::new());
    for part in parts {
        if is_of_set(namespace, set, part) || known.contains(part) {
            names.insert(VmName::from(part));
        } else {
            foreign.insert(part);
        }
    }
    let oddity = (!foreign.is_empty()).then(|| {
        let listed = foreign.into_iter().collect::<Vec<_>>().join(", ");
        Oddity::corrupt(keys::DELETE_VM_NAMES, format!("not names of this set: {}", excerpt(&listed, 200)))
    });
    DeleteNames { names, oddity }
}

/// The annotation's value: unique, sorted, joined with commas.
pub fn write(names: &BTreeSet<VmName>) -> String {
    names.iter().map(VmName::as_str).collect::<Vec<_>>().join(",")
}
