//! Laws of building and comparing: what is rendered reads back, admission is never drift, every edit is.

mod pods_common;

use cocoon_operator::core::api::cocoonset::SetSpec;
use cocoon_operator::core::contract::keys;
use cocoon_operator::core::pod::facts::PodFacts;
use cocoon_operator::core::pod::{Field, PodTemplate, Remedy, drift, render};
use pods_common::admission::{ADMISSION, Mutation, ONLY_WITH_INTENT};
use pods_common::{ID, full, read, specs, templates};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeSet;

fn admitted(mut pod: Value, mutations: impl IntoIterator<Item = &'static Mutation>) -> PodTemplate {
    for (_, mutate) in mutations {
        mutate(&mut pod);
    }
    PodFacts::read(&pod).carries
}

fn names(wanted: &PodTemplate, carries: &PodTemplate) -> Vec<(&'static str, Remedy)> {
    drift(wanted, carries).into_iter().map(|drift| (drift.field, drift.remedy)).collect()
}

#[test]
fn what_is_rendered_reads_back() {
    for spec in specs() {
        for template in templates(&read(&spec)) {
            assert_eq!(PodFacts::read(&render(&template, &ID)).carries, template);
        }
    }
}

#[test]
fn admission_is_never_drift() {
    assert!(ADMISSION.len() >= 30);
    for spec in specs() {
        for template in templates(&read(&spec)) {
            for mutation in ADMISSION {
                let carries = admitted(render(&template, &ID), [mutation]);
                assert_eq!(names(&template, &carries), [], "{} of {:?}", mutation.0, template.role);
            }
            let carries = admitted(render(&template, &ID), ADMISSION);
            assert_eq!(names(&template, &carries), [], "all of them at once");
        }
    }
}

#[test]
fn admission_of_older_pods_is_no_drift_either() {
    for spec in specs() {
        for template in templates(&read(&spec)) {
            let mut pod = render(&template, &ID);
            pod["metadata"]["annotations"].as_object_mut().unwrap().remove(keys::TEMPLATE).unwrap();
            for mutation in ADMISSION.iter().filter(|(name, _)| !ONLY_WITH_INTENT.contains(name)) {
                let carries = admitted(pod.clone(), [mutation]);
                assert_eq!(carries.stated, BTreeSet::new());
                assert_eq!(names(&template, &carries), [], "{} of {:?}", mutation.0, template.role);
            }
        }
    }
}

struct Edit {
    path: &'static str,
    to: Value,
    /// Field and remedy; none where the edit changes nothing about a running pod.
    main: Option<(&'static str, Remedy)>,
    toolbox: Option<(&'static str, Remedy)>,
}

fn edits() -> Vec<Edit> {
    use Remedy::{PatchAtNextBoot, PatchInPlace, Recreate};
    let agent = |path, to, field, remedy| Edit { path, to, main: Some((field, remedy)), toolbox: None };
    let toolbox = |path, to, field, remedy| Edit { path, to, main: None, toolbox: Some((field, remedy)) };
    let both = |path, to, field, remedy| Edit { path, to, main: Some((field, remedy)), toolbox: Some((field, remedy)) };
    let none = |path, to| Edit { path, to, main: None, toolbox: None };
    vec![
        agent("/agent/image", json!("other"), "image", Recreate),
        agent("/agent/mode", json!("clone"), "mode", Recreate),
        agent("/agent/os", json!("linux"), "os", Recreate),
        agent("/agent/backend", json!("firecracker"), "backend", Recreate),
        agent("/agent/storage", json!("101Gi"), "storage", Recreate),
        agent("/agent/storage", json!(null), "storage", Recreate),
        agent("/agent/network", json!("wan"), "network", Recreate),
        agent("/agent/network", json!(null), "network", Recreate),
        agent("/agent/resources/limits/cpu", json!("5"), "resources.cpu", Recreate),
        agent("/agent/resources/requests/cpu", json!("1"), "resources.cpu", Recreate),
        agent("/agent/resources/requests/cpu", json!(null), "resources.cpu", Recreate),
        agent("/agent/resources/limits/memory", json!("9Gi"), "resources.memory", Recreate),
        agent("/agent/resources/limits/memory", json!(null), "resources.memory", Recreate),
        agent("/agent/resources/requests/memory", json!("1Gi"), "resources.memory", Recreate),
        agent("/agent/serviceAccountName", json!("other"), "serviceAccountName", Recreate),
        agent("/agent/serviceAccountName", json!(null), "serviceAccountName", Recreate),
        agent("/agent/envFrom/0/configMapRef/name", json!("d"), "envFrom", Recreate),
        agent("/agent/envFrom", json!([]), "envFrom", Recreate),
        agent("/agent/connType", json!("vnc"), "connType", PatchInPlace),
        agent("/agent/connType", json!(null), "connType", PatchInPlace),
        agent("/agent/forcePull", json!(false), "forcePull", PatchInPlace),
        agent("/agent/probePort", json!(0), "probePort", PatchAtNextBoot),
        agent("/agent/noDirectIO", json!(false), "noDirectIO", PatchAtNextBoot),
        both("/nodePool", json!("slow"), "nodePool", Recreate),
        both("/snapshotCompatibilityClass", json!("n3"), "snapshotCompatibilityClass", Recreate),
        both("/snapshotPolicy", json!("always"), "snapshotPolicy", PatchInPlace),
        toolbox("/toolboxes/0/image", json!("other"), "image", Recreate),
        toolbox("/toolboxes/0/mode", json!("run"), "mode", Recreate),
        toolbox("/toolboxes/0/probePort", json!(9090), "probePort", PatchAtNextBoot),
        toolbox("/toolboxes/0/connType", json!("ssh"), "connType", PatchInPlace),
        toolbox("/toolboxes/0/storage", json!("1Gi"), "storage", Recreate),
        toolbox("/toolboxes/0/resources/limits/memory", json!("1Gi"), "resources.memory", Recreate),
        // Edits that a running pod need not hear of.
        none("/suspend", json!(true)),
        none("/hibernatePolicy", json!("release")),
        none("/nodeName", json!("node-c")),
        none("/agent/replicas", json!(9)),
        none("/agent/storage", json!("102400Mi")),
        none("/agent/resources/limits/cpu", json!("4000m")),
        none("/agent/resources/limits/memory", json!("8192Mi")),
        none("/agent/resources/requests/memory", json!("8Gi")),
        none("/agent/envFrom/1", json!({ "secretRef": { "name": "s" } })),
        none("/toolboxes/0/resources/limits/example.com~1gpu", json!("2")),
    ]
}

fn edited(path: &str, to: Value) -> SetSpec {
    let mut spec = full();
    let (parent, key) = path.rsplit_once('/').unwrap();
    let key = key.replace("~1", "/");
    match spec.pointer_mut(parent).unwrap() {
        Value::Array(items) => items[key.parse::<usize>().unwrap()] = to,
        other => other[key.as_str()] = to,
    }
    read(&spec)
}

/// Every edit gives its one field and remedy, on a pod as rendered and on one that all of admission has been at.
#[test]
fn every_edit_is_noticed_whatever_admission_did() {
    let old = read(&full());
    let count = edits().iter().filter(|edit| edit.main.is_some() || edit.toolbox.is_some()).count();
    assert!(count >= 20);
    for Edit { path, to, main, toolbox } in edits() {
        let new = edited(path, to.clone());
        let wanted = templates(&new);
        for (index, before) in templates(&old).into_iter().enumerate() {
            let expected: Vec<_> = if index % 3 == 2 { toolbox } else { main }.into_iter().collect();
            for mutations in [&[], ADMISSION] {
                let carries = admitted(render(&before, &ID), mutations);
                assert_eq!(names(&wanted[index], &carries), expected, "{path} to {to}, {:?}", before.role);
            }
        }
    }
}

#[test]
fn static_toolboxes_change_in_place_where_they_can() {
    let spec = |id: &str, ip: &str, port: u16| {
        read(&json!({ "agent": { "image": "img" }, "toolboxes": [
            { "name": "tb", "mode": "static", "staticIP": ip, "staticVMID": id, "vncPort": port }] }))
    };
    let before = templates(&spec("a", "10.0.0.1", 1)).remove(2);
    let drifts = |id, ip, port| {
        let wanted = templates(&spec(id, ip, port)).remove(2);
        names(&wanted, &admitted(render(&before, &ID), ADMISSION))
    };
    assert_eq!(drifts("b", "10.0.0.1", 1), [("staticVMID", Remedy::PatchOnce)]);
    assert_eq!(drifts("a", "10.0.0.2", 1), [("staticIP", Remedy::PatchOnce)]);
    assert_eq!(drifts("a", "10.0.0.1", 2), [("vncPort", Remedy::PatchInPlace)]);
    let run = read(&json!({ "agent": { "image": "img" }, "toolboxes": [{ "name": "tb", "image": "t" }] }));
    let said = names(&templates(&run).remove(2), &admitted(render(&before, &ID), ADMISSION));
    assert_eq!(said, [("image", Remedy::Recreate), ("mode", Remedy::Recreate)]);
}

#[test]
fn field_names_are_unique_and_remedies_are_patchable_or_not() {
    let names: BTreeSet<&str> = Field::ALL.into_iter().map(Field::name).collect();
    assert_eq!(names.len(), Field::ALL.len());
    let template = templates(&read(&specs()[2])).remove(2);
    for field in Field::ALL {
        let patchable = field.annotation(&template).is_some();
        assert_eq!(patchable, field.remedy() != Remedy::Recreate, "{field:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn any_mix_of_admission_is_no_drift(picks in prop::collection::vec(0..ADMISSION.len(), 0..12), spec in 0..4_usize) {
        for template in templates(&read(&specs()[spec])) {
            let carries = admitted(render(&template, &ID), picks.iter().map(|pick| &ADMISSION[*pick]));
            prop_assert_eq!(names(&template, &carries), vec![]);
        }
    }
}
