//! Nothing that reads outside data can fail, whatever the data.

mod pods_common;

use cocoon_operator::core::api::cocoonset::{SetSpec, SetStatus};
use cocoon_operator::core::api::hibernation::{HibernationSpec, HibernationStatus};
use cocoon_operator::core::contract::keys;
use cocoon_operator::core::contract::rebuilds::Rebuilds;
use cocoon_operator::core::contract::records::Records;
use cocoon_operator::core::pod::facts::PodFacts;
use cocoon_operator::core::pod::{drift, render};
use pods_common::{ID, full, read, templates};
use proptest::prelude::*;
use serde_json::Value;

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[ -~é]{0,12}".prop_map(Value::from),
        prop::sample::select(vec![
            "true",
            "main",
            "toolbox",
            "sub-agent",
            "static",
            "1Gi",
            "0",
            "-1",
            "{}",
            "null",
            "2026-08-01T10:00:00Z"
        ])
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(any_key(), inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn any_key() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "metadata",
        "spec",
        "status",
        "agent",
        "toolboxes",
        "name",
        "image",
        "replicas",
        "resources",
        "limits",
        "cpu",
        "storage",
        "mode",
        "staticIP",
        "containers",
        "annotations",
        "labels",
        "conditions",
        "agents",
        "slot",
        "phase",
        "podRef",
        "envFrom",
        "nodeSelector",
        "ownerReferences",
        "uid",
        "vms",
        "count",
        "affinity",
        "nodeAffinity",
        keys::TEMPLATE,
        keys::ROLE,
        keys::SLOT,
        keys::MODE,
        keys::STORAGE,
        "type",
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
        let _ = (facts.is_terminal(), facts.connection_type(), facts.accepted_vm_name());
        let _ = drift(&template, &facts.carries);
    }
}
