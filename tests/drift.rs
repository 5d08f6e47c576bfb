//! The platform's acceptance cases on drift (H), and what defects and decisions make of them.

use cocoon_operator::core::api::cocoonset::SetSpec;
use cocoon_operator::core::contract::keys;
use cocoon_operator::core::contract::names::{NodeName, VmName};
use cocoon_operator::core::pod::drift::{self, adopt, drift, drift_of, must_recreate, patch_in_place, written_back};
use cocoon_operator::core::pod::facts::PodFacts;
use cocoon_operator::core::pod::{Boot, Identity, PodTemplate, Remedy, render};
use cocoon_operator::core::pod::{wanted_main, wanted_sub_agent, wanted_toolbox};
use rstest::rstest;
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
/// A pod as an operator without intent annotations made it.
fn elder(mut pod: Value) -> Value {
    pod["metadata"]["annotations"].as_object_mut().unwrap().remove(keys::TEMPLATE).unwrap();
    pod
}
fn fields(wanted: &PodTemplate, pod: &Value) -> Vec<&'static str> {
    drift(wanted, &PodFacts::read(pod).carries).into_iter().map(|drift| drift.field).collect()
}

#[test]
fn h1_fresh_pods_match() {
    let fixed = toolbox(json!({ "mode": "static", "staticIP": "10.0.0.1", "staticVMID": "q", "vncPort": 5901 }));
    let plain = spec(json!({ "replicas": 1, "storage": "1.5Gi" }), json!({}));
    for template in [main_of(&plain), sub_of(&plain, 1), toolbox_of(&toolbox(json!({}))), toolbox_of(&fixed)] {
        for pod in [render(&template, &ID), elder(render(&template, &ID))] {
            assert_eq!(fields(&template, &pod), [""; 0]);
        }
    }
}

#[test]
fn h3_an_unset_pool_is_default() {
    let pod = render(&main_of(&spec(json!({}), json!({ "nodePool": "default" }))), &ID);
    assert_eq!(fields(&main_of(&spec(json!({}), json!({}))), &pod), [""; 0]);
}

#[test]
fn c13_pool_of_a_pod() {
    let wanted = main_of(&spec(json!({}), json!({})));
    let mut pod = elder(render(&wanted, &ID));
    let pool = |pod: &Value| PodFacts::read(pod).carries.pool;
    pod["metadata"]["annotations"][keys::POOL] = json!("of-annotation");
    pod["metadata"]["labels"][keys::POOL] = json!("of-label");
    assert_eq!(pool(&pod), "default", "the selector first");
    pod["spec"]["nodeSelector"] = json!({});
    assert_eq!(pool(&pod), "of-label");
    pod["metadata"]["labels"].as_object_mut().unwrap().remove(keys::POOL);
    assert_eq!(pool(&pod), "of-annotation");
    pod["metadata"]["annotations"].as_object_mut().unwrap().remove(keys::POOL);
    assert_eq!(pool(&pod), "default");
}

#[test]
fn h4_h5_classes() {
    let with = |class: &str| main_of(&spec(json!({}), json!({ "snapshotCompatibilityClass": class })));
    let none = main_of(&spec(json!({}), json!({})));
    assert_eq!(fields(&with("b"), &render(&with("a"), &ID)), ["snapshotCompatibilityClass"]);
    for pod in [render(&none, &ID), elder(render(&none, &ID))] {
        assert_eq!(fields(&with("a"), &pod), [""; 0], "adopted while it lives");
        let mut failed = pod.clone();
        failed["status"] = json!({ "phase": "Failed" });
        let said: Vec<_> = drift_of(&with("a"), &PodFacts::read(&failed)).iter().map(|drift| drift.field).collect();
        assert_eq!(said, ["snapshotCompatibilityClass"], "not at its end");
        assert!(drift_of(&with("a"), &PodFacts::read(&pod)).is_empty());
    }
    let class = json!({ "toolboxes": [{ "name": "tb", "image": "img" }], "snapshotCompatibilityClass": "a" });
    let classed = spec(json!({}), class);
    assert_eq!(fields(&toolbox_of(&classed), &elder(render(&toolbox_of(&toolbox(json!({}))), &ID))), [""; 0]);
}

#[test]
fn h6_placement_never_drifts() {
    let pod = render(&main_of(&spec(json!({}), json!({}))), &ID);
    assert_eq!(fields(&main_of(&spec(json!({}), json!({ "nodeName": "b" }))), &pod), [""; 0]);
    let mut bound = elder(render(&sub_of(&spec(json!({}), json!({})), 1), &ID));
    bound["spec"].as_object_mut().unwrap().remove("affinity");
    bound["spec"]["nodeName"] = json!("node-z");
    assert_eq!(fields(&sub_of(&spec(json!({}), json!({})), 1), &bound), [""; 0], "bound by an older operator (D-44)");
}

#[test]
fn d17_requests_are_completed_from_limits_per_resource() {
    let resources = json!({ "limits": { "cpu": "1", "memory": "1Gi" }, "requests": { "cpu": "1" } });
    let wanted = main_of(&spec(json!({ "resources": resources }), json!({})));
    let mut pod = elder(render(&wanted, &ID));
    pod["spec"]["containers"][0]["resources"]["requests"]["memory"] = json!("1Gi");
    assert_eq!(fields(&wanted, &pod), [""; 0]);
}

#[test]
fn d19_what_a_limit_range_adds_is_not_drift_even_without_a_statement() {
    let wanted = main_of(&spec(json!({}), json!({})));
    let mut pod = elder(render(&wanted, &ID));
    pod["spec"]["containers"][0]["resources"] =
        json!({ "limits": { "cpu": "1" }, "requests": { "cpu": "500m", "memory": "1Gi" } });
    assert_eq!(fields(&wanted, &pod), [""; 0]);
    let asked = main_of(&spec(json!({ "resources": { "limits": { "cpu": "2" } } }), json!({})));
    assert_eq!(fields(&asked, &pod), ["resources.cpu"]);
}

#[test]
fn a_bound_taken_away_is_noticed_once_the_intent_is_stated() {
    let asked = main_of(&spec(json!({ "resources": { "limits": { "cpu": "2" } } }), json!({})));
    let none = main_of(&spec(json!({}), json!({})));
    assert_eq!(fields(&none, &render(&asked, &ID)), ["resources.cpu"]);
    let mut pod = elder(render(&asked, &ID));
    assert_eq!(fields(&none, &pod), [""; 0], "it might be a LimitRange's");
    let patch = adopt(&asked, &PodFacts::read(&pod).carries).expect("an older pod without drift is adopted");
    assert_eq!(patch.keys().collect::<Vec<_>>(), [keys::TEMPLATE]);
    pod["metadata"]["annotations"][keys::TEMPLATE] = json!(patch[keys::TEMPLATE]);
    assert_eq!(fields(&none, &pod), ["resources.cpu"]);
    assert_eq!(adopt(&asked, &PodFacts::read(&pod).carries), None, "once");
}

#[test]
fn a_pod_that_waits_for_its_successor_is_not_stated_up_to_date() {
    let old = main_of(&spec(json!({}), json!({})));
    let new = main_of(&spec(json!({ "image": "new", "connType": "vnc" }), json!({ "snapshotPolicy": "never" })));
    for mut pod in [render(&old, &ID), elder(render(&old, &ID))] {
        let carries = PodFacts::read(&pod).carries;
        let drifts = drift(&new, &carries);
        assert!(must_recreate(&drifts));
        assert_eq!(adopt(&new, &carries), None);
        let patch = patch_in_place(&new, &carries, &drifts);
        assert_eq!(patch[keys::CONN_TYPE].as_deref(), Some("vnc"));
        assert_eq!(patch[keys::SNAPSHOT_POLICY].as_deref(), Some("never"));
        assert_eq!(patch.len(), 3, "the image is not patched");
        for (key, value) in patch {
            pod["metadata"]["annotations"][key] = json!(value);
        }
        assert_eq!(fields(&new, &pod), ["image"], "still waiting, and nothing else");
        let again = drift(&new, &PodFacts::read(&pod).carries);
        assert!(patch_in_place(&new, &PodFacts::read(&pod).carries, &again).is_empty(), "patched once");
    }
}

#[test]
fn a_patch_that_leaves_nothing_to_do_states_everything() {
    let old = main_of(&spec(json!({}), json!({})));
    let new = main_of(&spec(json!({ "connType": "vnc" }), json!({ "snapshotCompatibilityClass": "a" })));
    let mut pod = elder(render(&old, &ID));
    let carries = PodFacts::read(&pod).carries;
    for (key, value) in patch_in_place(&new, &carries, &drift(&new, &carries)) {
        pod["metadata"]["annotations"][key] = json!(value);
    }
    let after = PodFacts::read(&pod).carries;
    assert_eq!(after.stated, new.stated);
    assert_eq!(adopt(&new, &after), None);
    assert_eq!(after.compat_class, None);
}

#[test]
fn an_adopted_pod_without_a_class_still_lacks_it_at_its_end() {
    let none = main_of(&spec(json!({}), json!({})));
    let classed = main_of(&spec(json!({}), json!({ "snapshotCompatibilityClass": "a" })));
    let mut pod = elder(render(&none, &ID));
    let patch = adopt(&classed, &PodFacts::read(&pod).carries).unwrap();
    pod["metadata"]["annotations"][keys::TEMPLATE] = json!(patch[keys::TEMPLATE]);
    pod["status"] = json!({ "phase": "Failed" });
    assert_eq!(drift_of(&classed, &PodFacts::read(&pod)).len(), 1);
}

#[test]
fn a_static_id_is_patched_once_and_then_only_reported() {
    let fixed = |id: &str| toolbox_of(&toolbox(json!({ "mode": "static", "staticIP": "10.0.0.1", "staticVMID": id })));
    let (old, new) = (fixed("old"), fixed("new"));
    let mut pod = render(&old, &ID);
    let facts = PodFacts::read(&pod);
    let drifts = drift(&new, &facts.carries);
    assert_eq!(
        drifts.iter().map(|drift| (drift.field, drift.remedy)).collect::<Vec<_>>(),
        [("staticVMID", Remedy::PatchOnce)]
    );
    assert_eq!(written_back(&new, &facts), [""; 0]);
    for (key, value) in patch_in_place(&new, &facts.carries, &drifts) {
        pod["metadata"]["annotations"][key] = json!(value);
    }
    assert_eq!(annotation(&pod, keys::VM_ID), Some("new"));
    assert_eq!(written_back(&new, &PodFacts::read(&pod)), [""; 0]);
    pod["metadata"]["annotations"][keys::VM_ID] = json!("old");
    let facts = PodFacts::read(&pod);
    assert_eq!(drift(&new, &facts.carries), [], "no second patch (R20)");
    assert_eq!(written_back(&new, &facts), ["staticVMID"]);
}

/// The image waits for a new pod; the id is patched meanwhile, and once only, though nothing else is stated.
#[test]
fn a_static_id_of_an_older_pod_is_patched_once_even_while_it_waits() {
    let fixed = |id: &str, os: &str| {
        toolbox_of(&toolbox(json!({ "mode": "static", "staticIP": "10.0.0.1", "staticVMID": id, "os": os })))
    };
    let new = fixed("new", "windows");
    let mut pod = elder(render(&fixed("old", "linux"), &ID));
    let carries = PodFacts::read(&pod).carries;
    let drifts = drift(&new, &carries);
    assert_eq!(drifts.iter().map(|drift| drift.field).collect::<Vec<_>>(), ["os", "staticVMID"]);
    for (key, value) in patch_in_place(&new, &carries, &drifts) {
        pod["metadata"]["annotations"][key] = json!(value);
    }
    pod["metadata"]["annotations"][keys::VM_ID] = json!("old");
    assert_eq!(fields(&new, &pod), ["os"]);
    assert_eq!(written_back(&new, &PodFacts::read(&pod)), ["staticVMID"]);
}

#[test]
fn a_statement_about_fields_that_the_pod_does_not_have_states_nothing() {
    let wanted = toolbox_of(&toolbox(json!({})));
    let mut pod = render(&wanted, &ID);
    let mut stated: Value = serde_json::from_str(annotation(&pod, keys::TEMPLATE).unwrap()).unwrap();
    stated["serviceAccountName"] = json!("another");
    stated["staticVMID"] = json!("q");
    stated["ofTheFuture"] = json!(1);
    pod["metadata"]["annotations"][keys::TEMPLATE] = json!(stated.to_string());
    let facts = PodFacts::read(&pod);
    assert_eq!((facts.carries, facts.oddities), (wanted, vec![]));
}

#[test]
fn drift_says_from_what_to_what() {
    let one = main_of(&spec(json!({ "resources": { "limits": { "cpu": "1" } } }), json!({})));
    let two = main_of(&spec(json!({ "resources": { "limits": { "cpu": "2" } }, "network": "lan" }), json!({})));
    let drifts = drift(&two, &PodFacts::read(&render(&one, &ID)).carries);
    let said: Vec<_> = drifts.iter().map(|d| (d.field, d.from.as_str(), d.to.as_str())).collect();
    assert_eq!(said, [("network", "none", "lan"), ("resources.cpu", "limit 1, request none", "limit 2, request none")]);
}

#[rstest]
#[case("not json")]
#[case("null")]
#[case(r#"{"image":7}"#)]
fn a_corrupt_statement_states_nothing(#[case] text: &str) {
    let wanted = main_of(&spec(json!({}), json!({})));
    let mut pod = render(&wanted, &ID);
    pod["metadata"]["annotations"][keys::TEMPLATE] = json!(text);
    let facts = PodFacts::read(&pod);
    assert_eq!(facts.oddities.iter().map(|oddity| oddity.reason).collect::<Vec<_>>(), ["CorruptAnnotation"]);
    assert_eq!(drift::drift(&wanted, &facts.carries), []);
    assert_eq!(fields(&main_of(&spec(json!({ "image": "new" }), json!({}))), &pod), ["image"]);
}
