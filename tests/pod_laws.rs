//! Laws of building and comparing: what is rendered reads back, admission is never drift, every edit is.

use cocoon_operator::core::api::cocoonset::{SetSpec, SetStatus};
use cocoon_operator::core::api::hibernation::{HibernationSpec, HibernationStatus};
use cocoon_operator::core::contract::keys;
use cocoon_operator::core::contract::names::{NodeName, VmName};
use cocoon_operator::core::contract::rebuilds::Rebuilds;
use cocoon_operator::core::contract::records::Records;
use cocoon_operator::core::pod::facts::PodFacts;
use cocoon_operator::core::pod::{Boot, Field, Identity, PodTemplate, Remedy, drift, render};
use cocoon_operator::core::pod::{wanted_main, wanted_sub_agent, wanted_toolbox};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeSet;

const ID: Identity<'static> = Identity { namespace: "ns", set: "demo", uid: "test-uid", generation: 7 };

/// Specs that use every field, some of them, and none.
fn specs() -> Vec<Value> {
    vec![
        json!({ "agent": { "image": "img" }, "toolboxes": [{ "name": "tb", "image": "t" }] }),
        full(),
        json!({ "agent": { "image": "img", "resources": { "limits": { "cpu": "1", "memory": "1Gi" } }, "storage": "10Gi" },
            "toolboxes": [{ "name": "tb", "mode": "static", "staticIP": "10.0.0.9", "staticVMID": "q9", "vncPort": 5900 }] }),
        json!({ "agent": { "image": "img", "resources": { "limits": { "cpu": 1 }, "requests": { "cpu": "500m", "memory": "64M" } } },
            "toolboxes": [{ "name": "tb", "image": "t", "resources": { "requests": { "ephemeral-storage": "1Gi" } } }] }),
    ]
}

fn full() -> Value {
    let vm = json!({ "os": "windows", "backend": "cloud-hypervisor", "connType": "rdp", "network": "lan", "forcePull": true, "noDirectIO": true,
        "probePort": 3389, "storage": "100Gi",
        "resources": { "limits": { "cpu": "4", "memory": "8Gi", "example.com/gpu": "1" }, "requests": { "cpu": "2", "ephemeral-storage": "1Gi" } } });
    let mut agent = json!({ "image": "img", "replicas": 3, "mode": "run", "serviceAccountName": "builder",
        "envFrom": [{ "prefix": "A_", "configMapRef": { "name": "c", "optional": false } }, { "prefix": "", "secretRef": { "name": "s" } }] });
    let mut toolbox = json!({ "name": "tb", "image": "t", "mode": "clone" });
    for whole in [&mut agent, &mut toolbox] {
        whole.as_object_mut().unwrap().extend(vm.as_object().unwrap().clone());
    }
    json!({ "snapshotPolicy": "main-only", "hibernatePolicy": "retain", "nodePool": "fast", "snapshotCompatibilityClass": "n2", "nodeName": "node-b",
        "agent": agent, "toolboxes": [toolbox] })
}

fn read(spec: &Value) -> SetSpec {
    let (read, oddities) = SetSpec::read(spec);
    assert_eq!(oddities, []);
    read
}

/// Main agent, sub-agent and toolbox of a spec, each fresh and restoring.
fn templates(spec: &SetSpec) -> Vec<PodTemplate> {
    let (vm, node) = (VmName::from("vk-ns-demo-0"), NodeName::from("node-a"));
    [Boot::Fresh, Boot::Restore]
        .into_iter()
        .flat_map(|boot| {
            let toolboxes = spec.creatable_toolboxes().map(move |toolbox| wanted_toolbox(spec, &ID, toolbox, boot));
            [wanted_main(spec, &ID, boot, Some(&node)), wanted_sub_agent(spec, &ID, 2, &vm, Some(&node), boot)]
                .into_iter()
                .chain(toolboxes)
        })
        .collect()
}

fn push(at: &mut Value, item: Value) {
    match at {
        Value::Array(items) => items.push(item),
        other => *other = json!([item]),
    }
}

fn reverse(at: &mut Value) {
    if let Value::Array(items) = at {
        items.reverse();
    }
}

/// Ours, wherever a sidecar has moved it.
fn ours(pod: &mut Value) -> &mut Value {
    pod["spec"]["containers"].as_array_mut().unwrap().iter_mut().find(|one| one["name"] == "agent").unwrap()
}

fn fill(pod: &mut Value, bounds: &str, key: &str, amount: &str) {
    let at = &mut ours(pod)["resources"][bounds][key];
    if at.is_null() {
        *at = json!(amount);
    }
}

type Mutation = (&'static str, fn(&mut Value));

/// What API server, admission plugins, webhooks and node agent do to a pod. None of it is anybody's edit of a spec.
const ADMISSION: &[Mutation] = &[
    ("default tolerations", |pod| push(&mut pod["spec"]["tolerations"], json!({ "key": "x", "operator": "Exists", "tolerationSeconds": 300 }))),
    ("tolerations reordered", |pod| reverse(&mut pod["spec"]["tolerations"])),
    ("toleration seconds", |pod| pod["spec"]["tolerations"][1]["tolerationSeconds"] = json!(300)),
    ("sidecar behind", |pod| push(&mut pod["spec"]["containers"], json!({ "name": "proxy", "image": "p", "resources": { "limits": { "cpu": "9" } } }))),
    ("sidecar in front", |pod| {
        push(&mut pod["spec"]["containers"], json!({ "name": "first", "image": "p", "envFrom": [{ "secretRef": { "name": "z" } }] }));
        reverse(&mut pod["spec"]["containers"]);
    }),
    ("init container", |pod| push(&mut pod["spec"]["initContainers"], json!({ "name": "init", "image": "p" }))),
    ("container defaults", |pod| {
        ours(pod)["terminationMessagePath"] = json!("/dev/termination-log");
        ours(pod)["terminationMessagePolicy"] = json!("File");
        ours(pod)["imagePullPolicy"] = json!("Always");
    }),
    ("pod defaults", |pod| {
        for (key, value) in [("restartPolicy", "Always"), ("dnsPolicy", "ClusterFirst"), ("schedulerName", "default-scheduler")] {
            pod["spec"][key] = json!(value);
        }
        pod["spec"]["securityContext"] = json!({});
        pod["spec"]["enableServiceLinks"] = json!(true);
    }),
    ("priority", |pod| {
        pod["spec"]["priority"] = json!(1000);
        pod["spec"]["priorityClassName"] = json!("high");
        pod["spec"]["preemptionPolicy"] = json!("PreemptLowerPriority");
    }),
    ("zone affinity in each term", |pod| {
        let terms = &mut pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"];
        if terms.is_null() {
            *terms = json!([{}]);
        }
        push(&mut terms[0]["matchExpressions"], json!({ "key": "zone", "operator": "In", "values": ["z"] }));
    }),
    ("pod anti-affinity", |pod| pod["spec"]["affinity"]["podAntiAffinity"] = json!({})),
    ("service account token", |pod| {
        push(&mut pod["spec"]["volumes"], json!({ "name": "kube-api-access-rgb7r", "projected": {} }));
        push(&mut ours(pod)["volumeMounts"], json!({ "name": "kube-api-access-rgb7r", "mountPath": "/var/run/secrets" }));
    }),
    ("default service account", |pod| {
        if pod["spec"]["serviceAccountName"].is_null() {
            pod["spec"]["serviceAccountName"] = json!("default");
        }
        pod["spec"]["serviceAccount"] = pod["spec"]["serviceAccountName"].clone();
    }),
    ("another service account", |pod| pod["spec"]["serviceAccountName"] = json!("restricted")),
    ("limit range: cpu limit", |pod| fill(pod, "limits", "cpu", "7")),
    ("limit range: memory limit", |pod| fill(pod, "limits", "memory", "7Gi")),
    ("limit range: cpu request", |pod| fill(pod, "requests", "cpu", "100m")),
    ("limit range: memory request", |pod| fill(pod, "requests", "memory", "7Mi")),
    ("limit range: ephemeral storage", |pod| fill(pod, "limits", "ephemeral-storage", "3Gi")),
    ("requests from limits", |pod| {
        for key in ["cpu", "memory", "ephemeral-storage", "example.com/gpu"] {
            if let Some(limit) = ours(pod)["resources"]["limits"][key].as_str().map(str::to_owned) {
                fill(pod, "requests", key, &limit);
            }
        }
    }),
    ("vertical autoscaler", |pod| {
        ours(pod)["resources"]["requests"]["cpu"] = json!("33m");
        ours(pod)["resources"]["limits"]["memory"] = json!("333Mi");
    }),
    ("resources taken away", |pod| ours(pod)["resources"] = json!({})),
    ("quantities in another form", |pod| {
        for (one, other) in [("1", "1000m"), ("4", "4000m"), ("2", "2.0"), ("8Gi", "8192Mi"), ("1Gi", "1073741824"), ("100Gi", "102400Mi")] {
            for bounds in ["limits", "requests"] {
                for key in ["cpu", "memory", "ephemeral-storage"] {
                    if ours(pod)["resources"][bounds][key] == one {
                        ours(pod)["resources"][bounds][key] = json!(other);
                    }
                }
            }
            if pod["metadata"]["annotations"][keys::STORAGE] == one {
                pod["metadata"]["annotations"][keys::STORAGE] = json!(other);
            }
        }
    }),
    ("extended resource", |pod| fill(pod, "limits", "example.com/fpga", "1")),
    ("environment sources", |pod| push(&mut ours(pod)["envFrom"], json!({ "configMapRef": { "name": "proxy-env" } }))),
    ("environment", |pod| push(&mut ours(pod)["env"], json!({ "name": "A", "value": "b" }))),
    ("registry mirror, container", |pod| ours(pod)["image"] = json!("mirror.local/placeholder:latest")),
    ("registry mirror, VM image", |pod| pod["metadata"]["annotations"][keys::IMAGE] = json!("mirror.local/img")),
    ("bound to a node", |pod| pod["spec"]["nodeName"] = json!("node-z")),
    ("namespace's node selector", |pod| pod["spec"]["nodeSelector"]["team"] = json!("x")),
    ("another pool", |pod| pod["spec"]["nodeSelector"][keys::POOL] = json!("forced")),
    ("labels", |pod| pod["metadata"]["labels"]["team"] = json!("x")),
    ("foreign annotations", |pod| pod["metadata"]["annotations"]["sidecar.istio.io/status"] = json!("{}")),
    ("finalizer", |pod| push(&mut pod["metadata"]["finalizers"], json!("example.com/f"))),
    ("second owner", |pod| push(&mut pod["metadata"]["ownerReferences"], json!({ "kind": "Other", "name": "o", "uid": "o" }))),
    ("topology spread", |pod| push(&mut pod["spec"]["topologySpreadConstraints"], json!({ "maxSkew": 1 }))),
    ("image pull secrets", |pod| push(&mut pod["spec"]["imagePullSecrets"], json!({ "name": "r" }))),
    ("runtime class and overhead", |pod| {
        pod["spec"]["runtimeClassName"] = json!("kata");
        pod["spec"]["overhead"] = json!({ "cpu": "250m" });
    }),
    ("longer grace", |pod| pod["spec"]["terminationGracePeriodSeconds"] = json!(30)),
    ("server's metadata", |pod| {
        for (key, value) in [("uid", "u"), ("resourceVersion", "9"), ("creationTimestamp", "2026-08-01T10:00:00Z")] {
            pod["metadata"][key] = json!(value);
        }
    }),
    ("status", |pod| {
        pod["status"] = json!({ "phase": "Running", "podIP": "10.1.1.1", "conditions": [{ "type": "Ready", "status": "True" }],
            "containerStatuses": [{ "name": "agent", "state": { "running": {} } }] });
    }),
    ("node agent: runtime", |pod| {
        pod["metadata"]["annotations"][keys::VM_ID] = json!("qemu-5");
        pod["metadata"]["annotations"][keys::VM_IP] = json!("10.88.0.5");
        pod["metadata"]["annotations"][keys::VNC_PORT] = json!("5999");
    }),
    ("node agent: lifecycle", |pod| {
        pod["metadata"]["annotations"][keys::LIFECYCLE_STATE] = json!("ready");
        pod["metadata"]["annotations"][keys::LIFECYCLE_GENERATION] = json!("7");
    }),
    ("generation stamp", |pod| pod["metadata"]["annotations"][keys::GENERATION] = json!("99")),
    ("hibernate mark", |pod| pod["metadata"]["annotations"][keys::HIBERNATE] = json!("true")),
];

/// Of these, an older pod that states no intent bears witness to nothing else than what it carries, so that they look
/// like edits. (Under the operator that made such pods they were drift, too: no pod outlived them.)
const ONLY_WITH_INTENT: &[&str] = &[
    "another service account",
    "vertical autoscaler",
    "resources taken away",
    "environment sources",
    "registry mirror, VM image",
    "another pool",
    "node agent: runtime",
    "limit range: cpu request",
    "limit range: memory request",
];

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

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[ -~é]{0,12}".prop_map(Value::from),
        prop::sample::select(vec!["true", "main", "toolbox", "sub-agent", "static", "1Gi", "0", "-1", "{}", "null", "2026-08-01T10:00:00Z"])
            .prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(any_key(), inner, 0..6).prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn any_key() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "metadata", "spec", "status", "agent", "toolboxes", "name", "image", "replicas", "resources", "limits", "cpu", "storage", "mode", "staticIP",
        "containers", "annotations", "labels", "conditions", "agents", "slot", "phase", "podRef", "envFrom", "nodeSelector", "ownerReferences", "uid",
        "vms", "count", "affinity", "nodeAffinity", keys::TEMPLATE, keys::ROLE, keys::SLOT, keys::MODE, keys::STORAGE, "type",
    ])
    .prop_map(str::to_owned)
}

/// Puts a value at a random place of a sound object: most of it still reads, which reaches deeper than noise.
fn damaged(mut whole: Value, at: usize, with: Value) -> Value {
    fn places(value: &Value, path: String, found: &mut Vec<String>) {
        found.push(path.clone());
        match value {
            Value::Object(fields) => {
                for (key, value) in fields {
                    places(value, format!("{path}/{}", key.replace('~', "~0").replace('/', "~1")), found);
                }
            }
            Value::Array(items) => {
                for (index, value) in items.iter().enumerate() {
                    places(value, format!("{path}/{index}"), found);
                }
            }
            _ => {}
        }
    }
    let mut found = Vec::new();
    places(&whole, String::new(), &mut found);
    *whole.pointer_mut(&found[at % found.len()]).unwrap() = with;
    whole
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn nothing_panics_on_any_json(value in any_json(), text in "\\PC{0,40}") {
        let (spec, _) = SetSpec::read(&value);
        for template in templates(&spec) {
            let carries = PodFacts::read(&render(&template, &ID)).carries;
            prop_assert_eq!(drift(&template, &carries), vec![]);
        }
        let _ = (SetStatus::read(&value).to_value(), HibernationSpec::read(&value), HibernationStatus::read(&value));
        let _ = PodFacts::read(&value);
        for text in [text, value.to_string()] {
            let _ = (Rebuilds::read("k", Some(&text)), Records::read(Some(&text), "u"));
        }
    }

    #[test]
    fn a_damaged_spec_renders_and_reads_back(at in any::<usize>(), with in any_json()) {
        let (spec, _) = SetSpec::read(&damaged(full(), at, with));
        for template in templates(&spec) {
            let carries = PodFacts::read(&render(&template, &ID)).carries;
            prop_assert_eq!(drift(&template, &carries), vec![]);
        }
    }

    #[test]
    fn a_damaged_pod_is_read(at in any::<usize>(), with in any_json()) {
        let template = templates(&read(&full())).remove(0);
        let facts = PodFacts::read(&damaged(render(&template, &ID), at, with));
        let _ = (facts.is_terminal(), facts.connection_type(), facts.accepted_vm_name(), drift(&template, &facts.carries));
    }

    #[test]
    fn any_mix_of_admission_is_no_drift(picks in prop::collection::vec(0..ADMISSION.len(), 0..12), spec in 0..4_usize) {
        for template in templates(&read(&specs()[spec])) {
            let carries = admitted(render(&template, &ID), picks.iter().map(|pick| &ADMISSION[*pick]));
            prop_assert_eq!(names(&template, &carries), vec![]);
        }
    }
}
