//! The platform's acceptance cases on enums, annotations and the lifecycle triple (A, C and D). Each test names its
//! case;
//! where a defect or a decision overrules a case, the test says which.

use cocoon_operator::core::api::cocoonset::{MAX_REPLICAS, MAX_TOOLBOXES, SetSpec};
use cocoon_operator::core::api::hibernation::HibernationSpec;
use cocoon_operator::core::api::quantity::Quantity;
use cocoon_operator::core::api::words::*;
use cocoon_operator::core::contract::lifecycle::{Lifecycle, State};
use cocoon_operator::core::contract::names::{self, Role, RoleWord};
use cocoon_operator::core::contract::vm_runtime::{VmRuntime, connection_type};
use cocoon_operator::core::contract::vm_spec::VmSpec;
use cocoon_operator::core::contract::{Annotations, flag, int, keys, merge_patch};
use cocoon_operator::core::oddity::Oddity;
use rstest::rstest;
use serde_json::{Value, json};

fn reasons(oddities: &[Oddity]) -> Vec<&str> {
    oddities.iter().map(|oddity| oddity.reason).collect()
}

mod a_enums_and_defaults {
    use super::*;

    macro_rules! words {
        ($($name:ident: $of:ty, [$($known:literal),+], $unknown:literal, $default:literal;)+) => { $(
            #[test]
            fn $name() {
                let all: Vec<&str> = <$of>::ALL.iter().map(|word| word.as_str()).collect();
                assert_eq!(all, [$($known),+]);
                $(
                    assert!(<$of>::of($known).is_known());
                    assert_eq!(<$of>::of($known).as_str(), $known);
                )+
                assert!(!<$of>::of($unknown).is_known());
                assert_eq!(<$of>::of($unknown).as_str(), $unknown, "kept as it came");
                assert_eq!(<$of>::of("").as_str(), $default);
            }
        )+ };
    }
    words! {
        a1_agent_modes: AgentMode, ["clone", "run"], "static", "clone";
        a2_toolbox_modes: ToolboxMode, ["run", "clone", "static"], "ouija", "run";
        a3_os: Os, ["linux", "windows", "android", "macos"], "freebsd", "linux";
        a4_snapshot_policies: SnapshotPolicy, ["always", "main-only", "never"], "sometimes", "always";
        a5_hibernate_policies: HibernatePolicy, ["retain", "release"], "relase", "retain";
        a7_backends: Backend, ["cloud-hypervisor", "firecracker"], "qemu", "cloud-hypervisor";
    }

    #[test]
    fn a6_conn_types_have_no_default() {
        for known in ["ssh", "rdp", "vnc", "adb"] {
            assert_eq!(ConnType::known(known).map(|word| word.to_string()).as_deref(), Some(known));
        }
        assert_eq!(ConnType::known("telnet"), None);
        assert_eq!(ConnType::known(""), None);
    }

    #[test]
    fn a8_desires() {
        for (text, desire) in [("Hibernate", Desire::Hibernate), ("Wake", Desire::Wake)] {
            let (spec, oddities) = HibernationSpec::read(&json!({ "podRef": { "name": "demo-0" }, "desire": text }));
            assert_eq!((spec.desire, spec.pod.as_str(), oddities.len()), (desire, "demo-0", 0));
        }
        let (_, oddities) = HibernationSpec::read(&Value::Null);
        assert_eq!(reasons(&oddities), ["InvalidSpec", "InvalidSpec"]);
    }

    #[test]
    fn a9_defaults_hold_without_the_schema() {
        let (spec, oddities) =
            SetSpec::read(&json!({ "agent": { "image": "i" }, "toolboxes": [{ "name": "tb", "image": "i" }] }));
        assert_eq!(oddities, []);
        assert_eq!((spec.agent.mode, spec.agent.vm.os, spec.agent.vm.backend), Default::default());
        assert_eq!(spec.agent.vm.conn_type, None);
        assert_eq!((spec.snapshot_policy.as_str(), spec.hibernate_policy.as_str()), ("always", "retain"));
        assert_eq!((spec.node_pool.as_str(), spec.agent.replicas), ("default", 0));
        assert_eq!(spec.toolboxes[0].mode, ToolboxMode::Run);
    }

    #[test]
    fn a10_an_empty_class_is_none() {
        // The class is read only; that it is written under this key is the CRD's test. `""` is unset (D-75).
        for (class, read) in
            [(json!("n2-cascade-lake-v1"), Some("n2-cascade-lake-v1")), (json!(""), None), (json!(null), None)]
        {
            let (spec, _) = SetSpec::read(&json!({ "agent": { "image": "i" }, "snapshotCompatibilityClass": class }));
            assert_eq!(spec.compat_class.as_deref(), read);
        }
    }

    #[test]
    fn unknown_words_are_odd_and_kept() {
        let (spec, oddities) =
            SetSpec::read(&json!({ "agent": { "image": "i", "os": "freebsd", "connType": "telnet" } }));
        assert_eq!(spec.agent.vm.os, Os::Unknown("freebsd".into()));
        assert_eq!(spec.agent.vm.conn_type, None, "what is no word never reaches a status (D-71)");
        assert_eq!(reasons(&oddities), ["InvalidSpec", "InvalidSpec"]);
        assert_eq!(oddities[0].field, "spec.agent.os");
    }

    #[rstest]
    #[case(json!(null))]
    #[case(json!("text"))]
    #[case(json!([1]))]
    fn an_object_without_a_spec_is_one_oddity(#[case] spec: Value) {
        let (read, oddities) = SetSpec::read(&spec);
        assert_eq!(reasons(&oddities), ["InvalidSpec"], "D-58");
        assert!(!read.can_create_agents());
        assert_eq!(read.desired_agents(), 1);
    }

    #[test]
    fn absurd_replicas_are_clamped_for_creation_only() {
        for (given, kept, clamped, reason) in [
            (json!(256), 256, 256, None),
            (json!(257), 257, MAX_REPLICAS, Some("Clamped")),
            (json!(2_147_483_647), 2_147_483_647, MAX_REPLICAS, Some("Clamped")),
            (json!(-1), 0, 0, Some("InvalidSpec")),
            (json!(2.0), 2, 2, None),
            (json!(1.5), 0, 0, Some("InvalidSpec")),
            (json!("3"), 0, 0, Some("InvalidSpec")),
        ] {
            let (spec, oddities) = SetSpec::read(&json!({ "agent": { "image": "i", "replicas": given } }));
            assert_eq!((spec.agent.replicas, spec.agent.replicas_clamped), (kept, clamped), "{given}");
            assert_eq!(reasons(&oddities).first().copied(), reason, "{given}");
        }
        let (spec, _) = SetSpec::read(&json!({ "agent": { "image": "i", "replicas": i64::MAX } }));
        assert_eq!(spec.desired_agents(), i32::MAX);
    }

    #[test]
    fn refused_toolboxes_stay_listed() {
        let long = "a".repeat(64);
        let (spec, oddities) = SetSpec::read(&json!({ "agent": { "image": "i" }, "toolboxes": [
            { "name": "tb", "image": "i" }, { "name": "tb", "image": "j" }, { "name": "0", "image": "i" },
            { "name": "01", "image": "i" },
            { "name": "BadName_", "image": "i" }, { "name": long, "image": "i" }, { "name": "noimage" },
            { "name": "st", "mode": "static" },
            { "name": "ok", "mode": "static", "staticIP": "10.0.0.1", "staticVMID": "q" },
            7, { "name": "1-0", "image": "i" },
        ] }));
        let created: Vec<&str> = spec.creatable_toolboxes().map(|toolbox| toolbox.name.as_str()).collect();
        assert_eq!(created, ["tb", "ok", "1-0"]);
        assert_eq!(spec.toolboxes.len(), 11);
        assert!(spec.lists_toolbox("0"), "a pod within the spec is never surplus");
        assert_eq!(oddities.len(), 8);
        assert!(reasons(&oddities).contains(&"NameTooLong"));
        assert_eq!(spec.toolboxes[0].image, "i", "the first of two counts");
    }

    #[test]
    fn toolboxes_beyond_the_clamp_are_not_created() {
        let toolboxes: Vec<Value> = (0..100).map(|n| json!({ "name": format!("t{n}"), "image": "i" })).collect();
        let (spec, oddities) = SetSpec::read(&json!({ "agent": { "image": "i" }, "toolboxes": toolboxes }));
        assert_eq!((spec.creatable_toolboxes().count(), spec.toolboxes.len()), (MAX_TOOLBOXES, 100));
        assert_eq!(reasons(&oddities), ["Clamped"]);
        let refused = (0..10).map(|n| json!({ "name": format!("{n}"), "image": "i" }));
        let sound = (0..64).map(|n| json!({ "name": format!("t{n}"), "image": "i" }));
        let toolboxes: Vec<Value> = refused.chain(sound).collect();
        let (spec, oddities) = SetSpec::read(&json!({ "agent": { "image": "i" }, "toolboxes": toolboxes }));
        assert_eq!(spec.creatable_toolboxes().count(), 64, "the refused take nobody's place");
        assert_eq!(oddities.len(), 10);
    }

    #[test]
    fn a_static_toolbox_needs_both_id_and_address() {
        for (missing, id, ip) in [("id", "", "10.0.0.1"), ("ip", "q", ""), ("none", "q", "10.0.0.1")] {
            let toolbox = json!({ "name": "tb", "mode": "static", "staticVMID": id, "staticIP": ip });
            let (spec, oddities) = SetSpec::read(&json!({ "agent": { "image": "i" }, "toolboxes": [toolbox] }));
            assert_eq!(spec.creatable_toolboxes().count(), usize::from(missing == "none"));
            assert_eq!(oddities.len(), usize::from(missing != "none"));
        }
    }
}

mod c_vm_annotations {
    use super::*;

    fn full() -> VmSpec {
        VmSpec {
            name: "vk-prod-demo-0".into(),
            image: "img".into(),
            mode: ToolboxMode::Clone,
            os: Os::Linux,
            backend: Backend::Firecracker,
            snapshot_policy: SnapshotPolicy::Always,
            storage: Some(Quantity::of("100G")),
            network: Some("default".into()),
            conn_type: Some(ConnType::Rdp),
            probe_port: 8080,
            force_pull: true,
            no_direct_io: true,
            managed: true,
            fork_from: Some("vk-prod-demo-1".into()),
        }
    }

    #[test]
    fn c1_every_key_and_back() {
        let mut annotations = Annotations::new();
        full().write(&mut annotations);
        let listed: Vec<(&str, &str)> = annotations.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        assert_eq!(
            listed,
            [
                ("cocoonset.cocoonstack.io/force-pull", "true"),
                ("cocoonset.cocoonstack.io/image", "img"),
                ("cocoonset.cocoonstack.io/managed", "true"),
                ("cocoonset.cocoonstack.io/mode", "clone"),
                ("cocoonset.cocoonstack.io/network", "default"),
                ("cocoonset.cocoonstack.io/os", "linux"),
                ("cocoonset.cocoonstack.io/snapshot-policy", "always"),
                ("cocoonset.cocoonstack.io/storage", "100G"),
                ("vm.cocoonstack.io/backend", "firecracker"),
                ("vm.cocoonstack.io/conn-type", "rdp"),
                ("vm.cocoonstack.io/fork-from", "vk-prod-demo-1"),
                ("vm.cocoonstack.io/name", "vk-prod-demo-0"),
                ("vm.cocoonstack.io/no-direct-io", "true"),
                ("vm.cocoonstack.io/probe-port", "8080"),
            ]
        );
        assert_eq!(VmSpec::read(&annotations, &Role::Main), full());
    }

    #[test]
    fn c6_c7_what_is_empty_leaves_what_is_there() {
        let mut annotations = Annotations::from([
            (keys::IMAGE.to_owned(), "preset".to_owned()),
            (keys::MANAGED.to_owned(), "true".to_owned()),
        ]);
        VmSpec { mode: ToolboxMode::Unknown(String::new()), ..VmSpec::default() }.write(&mut annotations);
        assert_eq!(annotations[keys::IMAGE], "preset");
        assert_eq!(annotations[keys::MANAGED], "true");
        for key in [keys::MODE, keys::CONN_TYPE, keys::FORK_FROM, keys::STORAGE, keys::PROBE_PORT, keys::FORCE_PULL] {
            assert_eq!(annotations.get(key), None, "{key}");
        }
    }

    #[test]
    fn an_absent_mode_is_the_roles_default() {
        let mode = |role| VmSpec::read(&Annotations::new(), &role).mode.to_string();
        assert_eq!([Role::Main, Role::SubAgent(1), Role::Toolbox("tb".into())].map(mode), ["clone", "clone", "run"]);
    }

    #[test]
    fn c8_runtime() {
        let runtime = VmRuntime { id: "qemu-1234".into(), ip: "10.88.100.7".into(), vnc_port: 5901 };
        let mut annotations = Annotations::new();
        runtime.write(&mut annotations);
        assert_eq!(annotations[keys::VNC_PORT], "5901");
        assert_eq!(VmRuntime::read(&annotations), runtime);
        annotations.insert(keys::VNC_PORT.to_owned(), "not-a-number".to_owned());
        assert_eq!(VmRuntime::read(&annotations).vnc_port, 0);
        let mut annotations = Annotations::new();
        VmRuntime::default().write(&mut annotations);
        assert!(annotations.is_empty());
    }

    #[test]
    fn c9_snapshot_decision() {
        let roles = [Some(RoleWord::Main), Some(RoleWord::SubAgent), Some(RoleWord::Toolbox), None];
        let row = |policy: &str| roles.map(|role| names::leaves_latest(&SnapshotPolicy::of(policy), role));
        assert_eq!(row("always"), [true; 4]);
        assert_eq!(row(""), [true; 4]);
        assert_eq!(row("never"), [false; 4]);
        assert_eq!(row("main-only"), [true, false, false, false]);
    }

    #[rstest]
    #[case(None, 5901, "windows", "vnc")]
    #[case(None, 0, "windows", "rdp")]
    #[case(None, 0, "android", "adb")]
    #[case(None, 0, "linux", "ssh")]
    #[case(None, 0, "macos", "ssh")]
    #[case(None, 5900, "macos", "vnc")]
    #[case(Some("rdp"), 0, "linux", "rdp")]
    #[case(Some("rdp"), 5901, "linux", "rdp")]
    #[case(Some("telnet"), 0, "linux", "ssh")]
    fn c10_connection_type(#[case] stated: Option<&str>, #[case] port: u16, #[case] os: &str, #[case] read: &str) {
        assert_eq!(connection_type(stated.map(ConnType::of).as_ref(), port, &Os::of(os)).as_str(), read);
    }

    #[rstest]
    #[case(None, false)]
    #[case(Some("false"), false)]
    #[case(Some(""), false)]
    #[case(Some("True"), false)]
    #[case(Some("1"), false)]
    #[case(Some("true"), true)]
    fn c11_marks_are_true_only_when_they_say_so(#[case] value: Option<&str>, #[case] read: bool) {
        let annotations = value.map(|value| (keys::HIBERNATE.to_owned(), value.to_owned())).into_iter().collect();
        assert_eq!(flag(&annotations, keys::HIBERNATE), read);
        assert_eq!([keys::TAG_HIBERNATE, keys::TAG_LATEST], ["hibernate", "latest"]);
    }
}

mod d_lifecycle {
    use super::*;

    #[test]
    fn d1_terminal_for_clients() {
        for (text, terminal) in [
            ("ready", true),
            ("hibernated", true),
            ("failed", true),
            ("creating", false),
            ("hibernating", false),
            ("", false),
            ("whatever", false),
        ] {
            assert_eq!(State::of(text).is_terminal(), terminal, "{text}");
            assert_eq!(State::of(text).as_str(), text);
        }
    }

    #[test]
    fn d2_d3_one_patch_of_three_keys() {
        let mut annotations = Annotations::new();
        Lifecycle { state: State::Ready, observed_generation: 7, message: "ok".into() }.apply(&mut annotations);
        assert_eq!(annotations.len(), 3);
        assert_eq!(annotations[keys::LIFECYCLE_MESSAGE], "ok");
        let silent = Lifecycle { state: State::Ready, observed_generation: 9, message: String::new() };
        silent.apply(&mut annotations);
        assert_eq!(annotations.get(keys::LIFECYCLE_MESSAGE), None);
        assert_eq!(Lifecycle::read(&annotations), silent);
        assert_eq!(
            merge_patch(&silent.patch()),
            json!({ "metadata": { "annotations": {
                "vm.cocoonstack.io/lifecycle-state": "ready",
                "vm.cocoonstack.io/lifecycle-observed-generation": "9",
                "vm.cocoonstack.io/lifecycle-state-message": null,
            } } })
        );
    }

    #[test]
    fn d4_equality_key() {
        let key = |state: &str, generation, message: &str| {
            Lifecycle { state: State::of(state), observed_generation: generation, message: message.into() }
                .equality_key()
        };
        assert_eq!(key("", 0, ""), "\u{0}0\u{0}");
        assert_eq!(key("ready", 7, "ok"), "ready\u{0}7\u{0}ok");
        assert_ne!(key("ab", 0, "c"), key("a", 0, "bc"));
    }

    #[rstest]
    #[case(None, 0)]
    #[case(Some("42"), 42)]
    #[case(Some("abc"), 0)]
    #[case(Some("-3"), -3)]
    #[case(Some("99999999999999999999999"), 0)]
    fn d6_d7_numbers(#[case] text: Option<&str>, #[case] read: i64) {
        let annotations: Annotations = [keys::GENERATION, keys::LIFECYCLE_GENERATION]
            .into_iter()
            .filter_map(|key| Some((key.to_owned(), text?.to_owned())))
            .collect();
        assert_eq!(int(&annotations, keys::GENERATION), read);
        assert_eq!(Lifecycle::read(&annotations).observed_generation, read);
    }

    #[test]
    fn an_answer_is_to_its_generation() {
        let said = Lifecycle { state: State::Hibernated, observed_generation: 5, message: String::new() };
        assert!(said.answers(&State::Hibernated, 5) && said.answers(&State::Hibernated, 4));
        assert!(!said.answers(&State::Hibernated, 6) && !said.answers(&State::Ready, 5));
    }
}
