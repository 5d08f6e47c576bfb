//! The platform's acceptance cases on building pods (C and F), and what is read off a pod.

use cocoon_operator::core::api::cocoonset::SetSpec;
use cocoon_operator::core::contract::keys;
use cocoon_operator::core::contract::lifecycle::State;
use cocoon_operator::core::contract::names::{NodeName, Role, VmName};
use cocoon_operator::core::pod::facts::{PodFacts, PodPhase};
use cocoon_operator::core::pod::{Boot, Identity, Placement, PodTemplate, render};
use cocoon_operator::core::pod::{wanted_main, wanted_sub_agent, wanted_toolbox};
use serde_json::{Value, json};

const ID: Identity<'static> = Identity { namespace: "ns", set: "demo", uid: "test-uid", generation: 7 };
const IMAGE: &str = "ghcr.io/cocoonstack/cocoon/ubuntu:24.04";

fn spec(agent: Value, rest: Value) -> SetSpec {
    let mut whole = json!({ "agent": { "image": IMAGE } });
    for (into, more) in [("/agent", agent), ("", rest)] {
        let fields = whole.pointer_mut(into).and_then(Value::as_object_mut).unwrap();
        fields.extend(more.as_object().unwrap().clone());
    }
    let (spec, oddities) = SetSpec::read(&whole);
    assert_eq!(oddities, []);
    spec
}
fn main_of(spec: &SetSpec) -> PodTemplate {
    wanted_main(spec, &ID, Boot::Fresh, None)
}
fn sub_of(spec: &SetSpec, slot: u32) -> PodTemplate {
    wanted_sub_agent(spec, &ID, slot, &VmName::from("vk-ns-demo-0"), Some(&NodeName::from("node-a")), Boot::Fresh)
}
fn toolbox_of(spec: &SetSpec) -> PodTemplate {
    wanted_toolbox(spec, &ID, &spec.toolboxes[0], Boot::Fresh)
}
fn toolbox(fields: Value) -> SetSpec {
    let mut toolbox = json!({ "name": "tb", "image": "img" });
    toolbox.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    spec(json!({}), json!({ "toolboxes": [toolbox] }))
}
fn annotation<'a>(pod: &'a Value, key: &str) -> Option<&'a str> {
    pod["metadata"]["annotations"].get(key).and_then(Value::as_str)
}
mod f_construction {
    use super::*;

    #[test]
    fn f1_main() {
        let pod = render(&main_of(&spec(json!({}), json!({}))), &ID);
        assert_eq!(pod["metadata"]["name"], "demo-0");
        assert_eq!(pod["metadata"]["namespace"], "ns");
        assert_eq!(
            pod["metadata"]["labels"],
            json!({ keys::NAME: "demo", keys::ROLE: "main", keys::SLOT: "0", keys::APP_NAME: "demo" })
        );
        assert_eq!(annotation(&pod, keys::VM_NAME), Some("vk-ns-demo-0"));
        assert_eq!(annotation(&pod, keys::FORK_FROM), None);
    }

    /// F2 and F12 say that a sub-agent is bound by nodeName; D-44 overrules: required affinity, the scheduler decides.
    #[test]
    fn f2_f12_sub_agent_goes_where_main_is_through_the_scheduler() {
        let pod = render(&sub_of(&spec(json!({ "replicas": 2 }), json!({})), 1), &ID);
        assert_eq!(pod["metadata"]["labels"][keys::ROLE], "sub-agent");
        assert_eq!(pod["metadata"]["labels"][keys::SLOT], "1");
        assert_eq!(annotation(&pod, keys::FORK_FROM), Some("vk-ns-demo-0"));
        assert_eq!(pod["spec"].get("nodeName"), None);
        let terms = &pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
        assert_eq!(
            terms["nodeSelectorTerms"],
            json!([{ "matchExpressions": [
                { "key": "kubernetes.io/hostname", "operator": "In", "values": ["node-a"] },
            ] }])
        );
        let homeless = wanted_sub_agent(&spec(json!({}), json!({})), &ID, 1, &VmName::from("v"), None, Boot::Fresh);
        assert_eq!(render(&homeless, &ID)["spec"].get("affinity"), None);
    }

    #[test]
    fn c3_f3_defaults() {
        let pod = render(&main_of(&spec(json!({}), json!({}))), &ID);
        let said: Vec<_> = [keys::MODE, keys::OS, keys::BACKEND, keys::SNAPSHOT_POLICY, keys::MANAGED]
            .map(|key| annotation(&pod, key).unwrap())
            .into();
        assert_eq!(said, ["clone", "linux", "cloud-hypervisor", "always", "true"]);
        for key in [
            keys::STORAGE,
            keys::NETWORK,
            keys::CONN_TYPE,
            keys::PROBE_PORT,
            keys::FORCE_PULL,
            keys::NO_DIRECT_IO,
            keys::RESTORE,
        ] {
            assert_eq!(annotation(&pod, key), None, "{key}");
        }
    }

    #[test]
    fn c2_f4_options_and_storage() {
        let agent = json!({ "mode": "run", "os": "windows", "backend": "firecracker", "connType": "rdp",
            "storage": "100Gi",
            "forcePull": true, "noDirectIO": true, "resources": { "limits": { "cpu": "2" } } });
        let pod = render(&main_of(&spec(agent, json!({}))), &ID);
        assert_eq!(annotation(&pod, keys::STORAGE), Some("100Gi"));
        assert_eq!(annotation(&pod, keys::FORCE_PULL), Some("true"));
        assert_eq!(
            pod["spec"]["containers"][0]["resources"],
            json!({ "limits": { "cpu": "2", "ephemeral-storage": "100Gi" },
                "requests": { "ephemeral-storage": "100Gi" } })
        );
    }

    #[test]
    fn storage_is_written_in_canonical_form_and_zero_asks_for_no_disk() {
        let pod = render(&main_of(&spec(json!({ "storage": "1024Mi" }), json!({}))), &ID);
        assert_eq!(annotation(&pod, keys::STORAGE), Some("1Gi"));
        let pod = render(&main_of(&spec(json!({ "storage": "0" }), json!({}))), &ID);
        assert_eq!(pod["spec"]["containers"][0].get("resources"), None);
    }

    #[test]
    fn c4_c5_f5_f6_toolboxes() {
        let fixed =
            json!({ "mode": "static", "staticIP": "10.0.0.1", "staticVMID": "qemu-1", "vncPort": 5901, "image": "" });
        let pod = render(&toolbox_of(&toolbox(fixed)), &ID);
        assert_eq!(pod["metadata"]["name"], "demo-tb");
        let said = [keys::VM_ID, keys::VM_IP, keys::VNC_PORT].map(|key| annotation(&pod, key).unwrap());
        assert_eq!(said, ["qemu-1", "10.0.0.1", "5901"]);
        assert_eq!(annotation(&pod, keys::MANAGED), None);
        assert_eq!(annotation(&pod, keys::IMAGE), None);
        for mode in ["run", "clone"] {
            let pod = render(&toolbox_of(&toolbox(json!({ "mode": mode }))), &ID);
            assert_eq!(annotation(&pod, keys::MANAGED), Some("true"));
            assert_eq!(annotation(&pod, keys::VM_ID), None);
        }
    }

    #[test]
    fn a_static_toolbox_restores_nothing() {
        let spec = toolbox(json!({ "mode": "static", "staticIP": "10.0.0.1", "staticVMID": "q" }));
        let pod = render(&wanted_toolbox(&spec, &ID, &spec.toolboxes[0], Boot::Restore), &ID);
        assert_eq!(annotation(&pod, keys::RESTORE), None);
        let spec = toolbox(json!({}));
        let pod = render(&wanted_toolbox(&spec, &ID, &spec.toolboxes[0], Boot::Restore), &ID);
        assert_eq!(annotation(&pod, keys::RESTORE), Some("true"));
    }

    #[test]
    fn the_default_service_account_is_none() {
        let named = main_of(&spec(json!({ "serviceAccountName": "default" }), json!({})));
        assert_eq!(named, main_of(&spec(json!({}), json!({}))));
    }

    #[test]
    fn f7_one_owner() {
        let pod = render(&main_of(&spec(json!({}), json!({}))), &ID);
        assert_eq!(
            pod["metadata"]["ownerReferences"],
            json!([{ "apiVersion": "cocoonset.cocoonstack.io/v1", "kind": "CocoonSet", "name": "demo",
                "uid": "test-uid",
                "controller": true, "blockOwnerDeletion": true }])
        );
    }

    #[test]
    fn f8_selectors() {
        let pod = render(
            &main_of(&spec(json!({}), json!({ "nodePool": "purpose-a", "snapshotCompatibilityClass": "n2" }))),
            &ID,
        );
        assert_eq!(pod["spec"]["nodeSelector"], json!({ keys::POOL: "purpose-a", keys::CPU_CLASS: "n2" }));
        let pod = render(&main_of(&spec(json!({}), json!({}))), &ID);
        assert_eq!(pod["spec"]["nodeSelector"], json!({ keys::POOL: "default" }));
    }

    #[test]
    fn f9_f10_tolerations_and_the_rest_of_the_shape() {
        let pod = render(
            &main_of(&spec(
                json!({ "envFrom": [{ "configMapRef": { "name": "c" } }], "serviceAccountName": "sa" }),
                json!({}),
            )),
            &ID,
        );
        assert_eq!(
            pod["spec"]["tolerations"],
            json!([
                { "key": "virtual-kubelet.io/provider", "operator": "Exists" },
                { "key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute" },
                { "key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute" },
            ])
        );
        assert_eq!(pod["spec"]["terminationGracePeriodSeconds"], 1);
        assert_eq!(pod["spec"]["serviceAccountName"], "sa");
        assert_eq!(
            pod["spec"]["containers"],
            json!([{ "name": "agent", "image": "ghcr.io/cocoonstack/placeholder:latest",
                "envFrom": [{ "configMapRef": { "name": "c" } }] }])
        );
    }

    #[test]
    fn f11_generation() {
        for template in [main_of(&spec(json!({}), json!({}))), toolbox_of(&toolbox(json!({})))] {
            let pod = render(&template, &Identity { generation: 42, ..ID });
            assert_eq!(annotation(&pod, keys::GENERATION), Some("42"));
            assert_eq!(PodFacts::read(&pod).generation, 42);
        }
    }

    #[test]
    fn f12_placement_of_main() {
        let hint = NodeName::from("node-h");
        let pinned = spec(json!({}), json!({ "nodeName": "node-b" }));
        let of = |spec: &SetSpec, hint| wanted_main(spec, &ID, Boot::Fresh, hint).placement;
        assert_eq!(of(&pinned, None), Placement::Required("node-b".into()));
        assert_eq!(of(&pinned, Some(&hint)), Placement::Required("node-b".into()), "the pin wins (S2)");
        let free = spec(json!({}), json!({}));
        assert_eq!(of(&free, Some(&hint)), Placement::Preferred(hint.clone()));
        assert_eq!(of(&free, None), Placement::Anywhere);
        let pod = render(&wanted_main(&free, &ID, Boot::Restore, Some(&hint)), &ID);
        assert_eq!(annotation(&pod, keys::RESTORE), Some("true"));
        let preferred = &pod["spec"]["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"];
        assert_eq!(preferred[0]["weight"], 100);
        assert_eq!(preferred.as_array().unwrap().len(), 1);
        assert_eq!(pod["spec"].get("nodeName"), None);
    }
}

mod facts {
    use super::*;

    fn pod(status: Value, annotations: Value) -> PodFacts {
        let mut pod = render(&main_of(&spec(json!({}), json!({}))), &ID);
        pod["metadata"]["annotations"].as_object_mut().unwrap().extend(annotations.as_object().unwrap().clone());
        pod["status"] = status;
        PodFacts::read(&pod)
    }

    #[test]
    fn c14_readiness_and_ends() {
        let ready =
            |status: &str| pod(json!({ "conditions": [{ "type": "Ready", "status": status }] }), json!({})).ready;
        assert_eq!(["True", "False", "Unknown"].map(ready), [true, false, false]);
        let ends = |phase: &str| pod(json!({ "phase": phase }), json!({})).is_terminal();
        // C14 has Succeeded as not terminal; D-65 overrules for managed pods.
        assert_eq!(["Failed", "Succeeded", "Running", "Pending", ""].map(ends), [true, true, false, false, false]);
        let unmanaged = PodFacts::read(&json!({ "status": { "phase": "Succeeded" } }));
        assert!(!unmanaged.is_terminal());
        assert!(pod(json!({ "phase": "Running" }), json!({ keys::LIFECYCLE_STATE: "failed" })).is_terminal());
        let running =
            |state: Value| pod(json!({ "containerStatuses": [{ "state": state }] }), json!({})).container_running;
        assert_eq!(
            [json!({ "running": {} }), json!({ "waiting": {} }), json!({ "terminated": {} })].map(running),
            [true, false, false]
        );
    }

    #[test]
    fn a_vm_lives_when_it_has_an_id_and_its_container_runs() {
        let live = |id: &str, state: Value| {
            pod(json!({ "containerStatuses": [{ "state": state }] }), json!({ keys::VM_ID: id })).is_live()
        };
        assert!(live("q", json!({ "running": {} })));
        assert!(!live("", json!({ "running": {} })));
        assert!(!live("q", json!({})));
    }

    #[test]
    fn everything_is_read() {
        let facts = PodFacts::read(&json!({
            "metadata": {
                "name": "demo-1", "namespace": "ns", "uid": "u", "resourceVersion": "5",
                "creationTimestamp": "2026-08-01T10:00:00Z", "deletionTimestamp": "2026-08-01T11:00:00Z",
                "deletionGracePeriodSeconds": 1,
                "finalizers": ["f"],
                "labels": { keys::NAME: "demo", keys::ROLE: "sub-agent", keys::SLOT: "1", "team": "x" },
                "annotations": { keys::VM_NAME: "vk-ns-demo-1", keys::HIBERNATE: "true", keys::RESTORE: "true",
                    keys::DEAD_LETTER: "true",
                    keys::MANAGED: "true", keys::LIFECYCLE_STATE: "ready", keys::LIFECYCLE_GENERATION: "4",
                    keys::POST_CLONE_STATE: "failed",
                    keys::GENERATION: "4", keys::CONN_TYPE: "telnet",
                    "kubectl.kubernetes.io/last-applied-configuration": "{}" },
                "ownerReferences": [
                    { "apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": "c" },
                    { "apiVersion": "cocoonset.cocoonstack.io/v1", "kind": "CocoonSet", "name": "demo", "uid": "s",
                        "controller": true },
                ],
            },
            "spec": { "nodeName": "node-a" },
            "status": { "phase": "Pending", "podIP": "10.0.0.1", "conditions": [
                { "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes" },
                { "type": "Ready", "status": "False", "lastTransitionTime": "2026-08-01T10:00:01Z" },
            ] },
        }));
        assert_eq!((facts.name.as_str(), facts.uid.as_str(), facts.resource_version.as_str()), ("demo-1", "u", "5"));
        assert!(facts.deleting && facts.deletion.is_some() && facts.created.is_some());
        assert_eq!((facts.grace, facts.finalizers.len()), (Some(1), 1));
        assert_eq!(facts.role, Role::SubAgent(1));
        assert!(facts.is_controlled_by("s") && !facts.is_controlled_by("c") && !facts.is_controlled_by(""));
        assert_eq!((facts.owning_set(), facts.owners.len()), (Some("demo"), 2));
        assert_eq!(facts.accepted_vm_name().unwrap().as_str(), "vk-ns-demo-1");
        assert!(facts.hibernate && facts.restore && facts.dead_letter && facts.managed && facts.post_clone_failed);
        assert_eq!(
            (facts.lifecycle.state.clone(), facts.lifecycle.observed_generation, facts.generation),
            (State::Ready, 4, 4)
        );
        assert_eq!((facts.phase, facts.ready, facts.ready_since.is_some()), (PodPhase::Pending, false, true));
        assert_eq!(facts.unschedulable.as_deref(), Some("0/3 nodes"));
        assert_eq!((facts.node.clone().unwrap().as_str(), facts.pod_ip.as_deref()), ("node-a", Some("10.0.0.1")));
        assert_eq!(facts.connection_type().as_str(), "ssh", "garbage never reaches a status (D-71)");
        assert!(
            facts.annotations.keys().all(|key| key.contains("cocoonstack.io/")) && !facts.labels.contains_key("team")
        );
    }

    #[test]
    fn what_is_not_ours_to_know_is_not_read() {
        let owner = json!({ "kind": "CocoonSet", "name": "demo", "controller": true });
        let nameless = PodFacts::read(&json!({ "metadata": { "ownerReferences": [owner] } }));
        assert!(!nameless.is_controlled_by(""));
        let scheduled =
            json!({ "type": "PodScheduled", "status": "True", "reason": "Unschedulable", "message": "old" });
        assert_eq!(pod(json!({ "conditions": [scheduled] }), json!({})).unschedulable, None);
        let mut toolbox = render(&toolbox_of(&toolbox(json!({}))), &ID);
        toolbox["spec"]["serviceAccountName"] = json!("another");
        assert_eq!(PodFacts::read(&toolbox).carries.service_account, None, "a toolbox has none of ours");
    }

    #[test]
    fn only_a_required_host_is_a_pin() {
        let mut pod = render(&main_of(&spec(json!({}), json!({ "nodeName": "node-b" }))), &ID);
        assert_eq!(PodFacts::read(&pod).carries.placement, Placement::Required("node-b".into()));
        let required = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0";
        pod.pointer_mut(required).unwrap()["matchExpressions"][0]["operator"] = json!("NotIn");
        assert_eq!(PodFacts::read(&pod).carries.placement, Placement::Anywhere);
    }

    #[test]
    fn a_vm_name_that_is_another_pods_is_not_accepted() {
        let facts = pod(json!({}), json!({ keys::VM_NAME: "vk-other-tenant-0" }));
        assert_eq!(facts.accepted_vm_name(), None, "R22, D-32");
        assert_eq!(facts.oddities.iter().map(|oddity| oddity.reason).collect::<Vec<_>>(), ["NameMismatch"]);
        assert_eq!(pod(json!({}), json!({})).oddities, []);
        assert_eq!(pod(json!({}), json!({ keys::VM_NAME: "vk-ns-demo-0-505043" })).oddities, []);
        assert_eq!(facts.vm_name.as_str(), "vk-other-tenant-0");
    }
}
