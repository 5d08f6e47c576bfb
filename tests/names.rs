//! Names and roles, there and back (acceptance cases B, contract 4, R22, D-31, D-33).

use cocoon_operator::core::contract::names::{self, NameFit, Role, RoleWord};
use rstest::rstest;

#[test]
fn b1_formulas() {
    assert_eq!(names::agent_vm("prod", "demo", 2).as_str(), "vk-prod-demo-2");
    assert_eq!(names::vm_of_pod("prod", "toolbox").as_str(), "vk-prod-toolbox");
    assert_eq!(Role::Toolbox("db".into()).vm_name("default", "demo").unwrap().as_str(), "vk-default-demo-db");
    assert_eq!(Role::Main.pod_name("demo").unwrap().as_str(), "demo-0");
}

#[rstest]
#[case("vk-prod-demo-0", Some(0))]
#[case("vk-prod-demo-3", Some(3))]
#[case("vk-prod-demo-12", Some(12))]
#[case("vk-prod-demo-db-2", None)]
#[case("vk-prod-demo-toolbox", None)]
#[case("vk-prod-other-0", None)]
#[case("vk-staging-demo-0", None)]
#[case("prod-demo-0", None)]
#[case("vk-prod-demo-", None)]
#[case("vk-prod-demo-+1", None)]
#[case("vk-prod-demo-01", None)]
#[case("vk-prod-demo--1", None)]
#[case("vk-prod-demo-99999999999999999999", None)]
fn b2_slots_are_read_back_strictly(#[case] vm: &str, #[case] slot: Option<u32>) {
    assert_eq!(names::slot_of_vm("prod", "demo", vm), slot);
}

#[test]
fn b3_b4_roles() {
    assert_eq!(
        [Some(0), Some(7), None].map(RoleWord::of_slot),
        [RoleWord::Main, RoleWord::SubAgent, RoleWord::Toolbox]
    );
    let role = |owner, vm| RoleWord::of_vm("ns", owner, vm);
    assert_eq!(role(Some("cs"), "vk-ns-cs-0"), RoleWord::Main);
    assert_eq!(role(Some("cs"), "vk-ns-cs-2"), RoleWord::SubAgent);
    assert_eq!(role(Some("cs"), "vk-ns-cs-app-0"), RoleWord::Toolbox);
    assert_eq!(role(None, "vk-ns-cs-0"), RoleWord::Toolbox);
}

#[test]
fn successor_names_are_known() {
    assert_eq!(names::successor_vm("ns", "demo-0").as_str(), "vk-ns-demo-0-505043");
    assert!(names::successor_vm("ns", "a.b-0").as_str().starts_with("vk-ns-a-b-0-"));
    let accepted = |annotated| names::accepted_vm("ns", "demo-0", annotated).is_some();
    assert!(accepted("vk-ns-demo-0") && accepted("vk-ns-demo-0-505043"));
    assert!(!accepted("vk-ns-demo-1") && !accepted("") && !accepted("vk-ns-demo-0-505044"), "R22");
}

#[rstest]
#[case("demo", "vk-ns-demo-0", true)]
#[case("demo", "vk-ns-demo-db", true)]
#[case("demo", "vk-ns-demo-0-505043", true)]
#[case("demo", "vk-ns-demo-", false)]
#[case("demo", "vk-ns-demo", false)]
#[case("demo", "vk-ns-other-0", false)]
#[case("demo", "vk-ns-demo-0/../x", false)]
#[case("demo", "vk-ns-demo-0:latest", false)]
#[case("a.b", "vk-ns-a.b-0", true)]
#[case("a.b", "vk-ns-a-b-0", false)]
#[case("a.b", "vk-ns-a-b-0-123456", false)]
fn names_of_a_set(#[case] set: &str, #[case] vm: &str, #[case] ours: bool) {
    assert_eq!(names::is_of_set("ns", set, vm), ours);
}

#[test]
fn the_successor_name_of_a_dotted_set_is_its_own() {
    let vm = names::successor_vm("ns", "a.b-0");
    assert!(names::is_of_set("ns", "a.b", vm.as_str()));
    assert!(!names::is_of_set("ns", "a.c", vm.as_str()));
}

#[test]
fn lengths_are_checked_before_anything_is_tried() {
    let fit = |namespace: &str, set: &str, role| names::check_names(namespace, set, &role);
    assert_eq!(fit("ns", "demo", Role::Main), NameFit::Fits);
    assert_eq!(fit("n", &"s".repeat(56), Role::Main), NameFit::Fits, "63 characters of VM name");
    assert!(matches!(fit("n", &"s".repeat(57), Role::Main), NameFit::Long(_)));
    assert!(matches!(fit("n", &"s".repeat(63), Role::Main), NameFit::Long(_)));
    let NameFit::Impossible(oddity) = fit("n", &"s".repeat(64), Role::Main) else { panic!("D-33") };
    assert_eq!(oddity.reason, "NameTooLong");
    assert!(matches!(fit("n", "s", Role::Toolbox("t".repeat(64))), NameFit::Impossible(_)));
}

#[rstest]
#[case("main", "0", Role::Main)]
#[case("main", "", Role::Main)]
#[case("sub-agent", "3", Role::SubAgent(3))]
#[case("sub-agent", "0", Role::Unknown)]
#[case("sub-agent", "03", Role::Unknown)]
#[case("sub-agent", "-1", Role::Unknown)]
#[case("sub-agent", "2147483648", Role::Unknown)]
#[case("toolbox", "tb", Role::Toolbox("tb".into()))]
#[case("toolbox", "", Role::Unknown)]
#[case("", "0", Role::Unknown)]
fn roles_of_labels(#[case] role: &str, #[case] slot: &str, #[case] read: Role) {
    assert_eq!(Role::of_labels(role, slot), read);
}
