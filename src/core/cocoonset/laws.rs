//! What no decision may ever do, whatever the rules say: the second pair of eyes.

use super::ended::{lost_node, unasked_node};
use super::observed::Observed;
use crate::core::action::{Change, Want};
use crate::core::contract::keys;
use crate::core::decision::Decision;
use crate::core::rule::Because;

/// A law.
pub struct Law {
    /// `law/what-must-not-happen`.
    pub id: &'static str,
    /// What it forbids.
    pub text: &'static str,
    /// Whether this change breaks it.
    pub breaks: fn(&Observed, &Decision, &Change) -> bool,
}

/// All of them.
pub const LAWS: &[Law] = &[
    Law {
        id: "law/finalizer-first",
        text: "nothing is created for a set that does not bear our finalizer",
        breaks: |seen, _, change| creates(change) && seen.set.claims() == 0,
    },
    Law {
        id: "law/no-create-while-going",
        text: "nothing is created for a set that is being deleted, or in a namespace that is known to be",
        breaks: |seen, _, change| creates(change) && (seen.set.deleting.is_some() || seen.namespace_is_going()),
    },
    Law {
        id: "law/no-boot-unasked",
        text: "no managed VM boots while the registry was not asked for its snapshot, could not say, or holds one",
        breaks: boots_unasked,
    },
    Law {
        id: "law/no-boot-beside",
        text: "no managed VM boots while the last one of its name may run on a node that is lost, or was not read live",
        breaks: boots_beside,
    },
    Law {
        id: "law/only-our-pods",
        text: "no pod is deleted or patched that the set does not control",
        breaks: touches_strangers,
    },
    Law {
        id: "law/fresh-view",
        text: "nothing is written while the watch has not shown our own writes",
        breaks: |seen, _, _| !seen.unseen.is_empty(),
    },
    Law {
        id: "law/hands-off",
        text: "nothing but the status of a set that is paused is written",
        breaks: |seen, _, change| super::concerns::paused::is_paused(&seen.set) && !is_status(change),
    },
    Law {
        id: "law/let-go-last",
        text: "the finalizer goes only after a live read of the pods in the same pass showed none of ours, unless they are orphaned",
        breaks: lets_go_early,
    },
    Law {
        id: "law/own-tags-only",
        text: "a tag is deleted only while the set is being deleted, under a name of its own formula that is no other set's or orphan's, right after it was seen",
        breaks: drops_tag_wrongly,
    },
    Law {
        id: "law/remember-first",
        text: "no pod of a managed VM is deleted before the VM's name is written down where teardown finds it",
        breaks: forgets_a_name,
    },
];

/// The law that this decision breaks, if it does.
pub fn broken(seen: &Observed, decision: &Decision) -> Option<Because> {
    for action in &decision.actions {
        let Want::Change(change) = &action.want else { continue };
        if let Some(law) = LAWS.iter().find(|law| (law.breaks)(seen, decision, change)) {
            return Some(format!("{}: {} ({} wants {})", law.id, law.text, action.rule, change.kind().name()).into());
        }
    }
    None
}

fn is_status(change: &Change) -> bool {
    match change {
        Change::PatchStatus { .. } => true,
        Change::AddFinalizer { .. }
        | Change::RemoveFinalizer { .. }
        | Change::CreatePod { .. }
        | Change::DeletePod { .. }
        | Change::PatchPod { .. }
        | Change::PatchObject { .. }
        | Change::DeleteSnapshot { .. } => false,
    }
}

fn creates(change: &Change) -> bool {
    match change {
        Change::CreatePod { dry_run, .. } => !dry_run,
        Change::AddFinalizer { .. }
        | Change::RemoveFinalizer { .. }
        | Change::DeletePod { .. }
        | Change::PatchPod { .. }
        | Change::PatchObject { .. }
        | Change::PatchStatus { .. }
        | Change::DeleteSnapshot { .. } => false,
    }
}

fn boots_unasked(seen: &Observed, _: &Decision, change: &Change) -> bool {
    let Change::CreatePod { manifest, dry_run: false, .. } = change else { return false };
    let annotation = |key: &str| manifest.pointer("/metadata/annotations").and_then(|map| map.get(key));
    let managed = annotation(keys::MANAGED).and_then(serde_json::Value::as_str) == Some("true");
    let vm = annotation(keys::VM_NAME).and_then(serde_json::Value::as_str).unwrap_or_default();
    managed && seen.snapshot(vm, keys::TAG_HIBERNATE).known() != Some(&None)
}

fn boots_beside(seen: &Observed, _: &Decision, change: &Change) -> bool {
    let Change::CreatePod { pod, manifest, dry_run: false } = change else { return false };
    let annotations = manifest.pointer("/metadata/annotations");
    let managed = annotations.and_then(|map| map.get(keys::MANAGED)).and_then(serde_json::Value::as_str);
    managed == Some("true") && (lost_node(seen, pod).is_some() || unasked_node(seen, pod).is_some())
}

fn touches_strangers(seen: &Observed, _: &Decision, change: &Change) -> bool {
    let (Change::DeletePod { pod, uid, .. } | Change::PatchPod { pod, uid, .. }) = change else { return false };
    let cached = seen.pods.get(pod).is_some_and(|known| known.uid.as_str() == uid);
    let live = seen.live.pods.known().into_iter().flatten();
    let mut live = live.filter(|known| &known.name == pod && &known.uid == uid);
    !cached && !live.any(|known| known.is_controlled_by(&seen.set.uid))
}

fn lets_go_early(seen: &Observed, decision: &Decision, change: &Change) -> bool {
    let Change::RemoveFinalizer { .. } = change else { return false };
    let orphaned = decision.actions.iter().any(|action| action.rule == super::concerns::teardown::ORPHAN.id());
    let Some(pods) = seen.live.pods.known() else { return true };
    let ours = pods.iter().any(|pod| pod.is_controlled_by(&seen.set.uid));
    seen.set.deleting.is_none() || (ours && !orphaned)
}

fn drops_tag_wrongly(seen: &Observed, _: &Decision, change: &Change) -> bool {
    let Change::DeleteSnapshot { vm, tag, digest } = change else { return false };
    let Some(snapshot) = seen.snapshots.get(&(vm.clone(), tag.clone())) else { return true };
    let same = snapshot.fact.known().and_then(Option::as_ref).is_some_and(|manifest| manifest.digest == *digest);
    let own = seen.is_own_name(vm) && !seen.orphans().contains_key(vm);
    seen.set.deleting.is_none() || !own || !snapshot.fresh || !same
}

fn forgets_a_name(seen: &Observed, decision: &Decision, change: &Change) -> bool {
    let Change::DeletePod { pod, .. } = change else { return false };
    let watched = seen.pods.get(pod).filter(|known| known.managed).and_then(|known| seen.vm_of(known));
    let live = || seen.hidden_pods().find(|known| known.name == *pod).and_then(|known| known.vm.clone());
    let Some(vm) = watched.or_else(live) else { return false };
    if !seen.is_of_formula(&vm) || seen.set.maps_to(&vm) || seen.set.status.vm_names().any(|name| name == vm) {
        return false;
    }
    let lists = |names: &str| names.split(',').any(|name| name.trim() == vm);
    let recorded = seen.set.annotations.get(keys::DELETE_VM_NAMES).is_some_and(|names| lists(names));
    let being_recorded = || {
        decision.actions.iter().any(|action| match &action.want {
            Want::Change(Change::PatchObject { annotations, .. }) => {
                annotations.get(keys::DELETE_VM_NAMES).and_then(Option::as_deref).is_some_and(lists)
            }
            Want::Change(_) | Want::Ask(_) | Want::Announce(_) | Want::Wait(_) => false,
        })
    };
    !recorded && !being_recorded()
}
