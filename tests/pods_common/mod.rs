//! Specs and templates that the laws of pods are tried on.
#![allow(dead_code)]

pub mod admission;

use cocoon_operator::core::api::cocoonset::SetSpec;
use cocoon_operator::core::contract::names::{NodeName, VmName};
use cocoon_operator::core::pod::{Boot, Identity, PodTemplate, wanted_main, wanted_sub_agent, wanted_toolbox};
use serde_json::{Value, json};

pub const ID: Identity<'static> = Identity { namespace: "ns", set: "demo", uid: "test-uid", generation: 7 };

/// Specs that use every field, some of them, and none.
pub fn specs() -> Vec<Value> {
    vec![
        json!({ "agent": { "image": "img" }, "toolboxes": [{ "name": "tb", "image": "t" }] }),
        full(),
        json!({ "agent": { "image": "img", "resources": { "limits": { "cpu": "1", "memory": "1Gi" } },
                "storage": "10Gi" },
            "toolboxes": [{ "name": "tb", "mode": "static", "staticIP": "10.0.0.9",
                "staticVMID": "q9", "vncPort": 5900 }] }),
        json!({ "agent": { "image": "img", "resources": { "limits": { "cpu": 1 },
                "requests": { "cpu": "500m", "memory": "64M" } } },
            "toolboxes": [{ "name": "tb", "image": "t",
                "resources": { "requests": { "ephemeral-storage": "1Gi" } } }] }),
    ]
}

pub fn full() -> Value {
    let vm = json!({ "os": "windows", "backend": "cloud-hypervisor", "connType": "rdp", "network": "lan",
        "forcePull": true, "noDirectIO": true,
        "probePort": 3389, "storage": "100Gi",
        "resources": { "limits": { "cpu": "4", "memory": "8Gi", "example.com/gpu": "1", "ephemeral-storage": "2Gi" },
            "requests": { "cpu": "2", "ephemeral-storage": "1Gi" } } });
    let mut agent = json!({ "image": "img", "replicas": 3, "mode": "run", "serviceAccountName": "builder",
        "envFrom": [{ "prefix": "A_", "configMapRef": { "name": "c", "optional": false } },
            { "prefix": "", "secretRef": { "name": "s" } }] });
    let mut toolbox = json!({ "name": "tb", "image": "t", "mode": "clone" });
    for whole in [&mut agent, &mut toolbox] {
        whole.as_object_mut().unwrap().extend(vm.as_object().unwrap().clone());
    }
    json!({ "snapshotPolicy": "main-only", "hibernatePolicy": "retain", "nodePool": "fast",
        "snapshotCompatibilityClass": "n2", "nodeName": "node-b",
        "agent": agent, "toolboxes": [toolbox] })
}

pub fn read(spec: &Value) -> SetSpec {
    let (read, oddities) = SetSpec::read(spec);
    assert_eq!(oddities, []);
    read
}

/// Main agent, sub-agent and toolbox of a spec, each fresh and restoring.
pub fn templates(spec: &SetSpec) -> Vec<PodTemplate> {
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
