//! The life of a VM: creation, echo, deletion, failure.

use crate::setup::*;
use cocoon_operator::sim::node::{Effect, Injection, Step};
use cocoon_operator::sim::registry::{Asker, Behaviour, Mood};
use cocoon_operator::sim::store::{Selector, WatchQuery};
use serde_json::{Value, json};
use std::time::Duration;

#[test]
fn a_pod_is_bound_cloned_runs_and_is_ready() {
    let mut world = world(&["node-a"]);
    create(&mut world, pod("demo-0", &[]));
    let told = pass(&mut world, 20);
    assert_eq!(
        lines(&told),
        [
            "+0 scheduler: demo-0 is bound to node-a",
            "+0 node-a: demo-0 is cloned",
            "+3 node-a: demo-0 runs",
            "+3.6 node-a: demo-0 is ready",
        ]
    );
    let pod = get(&world, "demo-0").expect("the pod");
    assert_eq!(pod["status"]["phase"], "Running");
    assert_eq!(pod["status"]["containerStatuses"][0]["ready"], true);
    assert_eq!(condition(pod, "PodScheduled")["status"], "True");
    assert!(is_ready(&world, "demo-0"));
    assert_eq!(state(&world, "demo-0"), "ready");
    let vm = world.nodes.vm("node-a", "vk-ns-demo-0").expect("a VM");
    assert_eq!(annotation(&world, "demo-0", "vm.cocoonstack.io/id"), vm.id);
    assert_eq!(annotation(&world, "demo-0", "vm.cocoonstack.io/ip"), vm.ip);
    assert_eq!(pod["status"]["podIP"], json!(vm.ip));
    assert_eq!(world.next_due(), None, "a cluster at rest has nothing due");
}

/// Every state that a watcher of the pod sees, as `Ready/lifecycle/id?`.
fn seen(world: &cocoon_operator::sim::world::World, since: u64) -> Vec<String> {
    let query = WatchQuery { resource: "pods".to_owned(), namespace: None, selector: Selector::default() };
    let events = world.store.watch_from(&query, since).expect("remembered");
    let mut all: Vec<String> = events
        .iter()
        .map(|event| {
            let annotations = &event.object["metadata"]["annotations"];
            let state = annotations["vm.cocoonstack.io/lifecycle-state"].as_str().unwrap_or("-");
            let has_id = annotations["vm.cocoonstack.io/id"].is_string();
            let ready = condition(&event.object, "Ready")["status"].as_str().unwrap_or("-");
            format!("{ready} {state}{}", if has_id { " id" } else { "" })
        })
        .collect();
    all.dedup();
    all
}

#[test]
fn the_status_says_ready_before_the_annotation_does() {
    let mut world = world(&["node-a"]);
    let since = world.store.version();
    create(&mut world, pod("demo-0", &[]));
    pass(&mut world, 20);
    assert_eq!(
        seen(&world, since),
        ["- -", "- creating", "- creating id", "False creating id", "True creating id", "True ready id"]
    );
}

#[test]
fn a_generation_alone_is_echoed_in_one_patch() {
    let mut world = world(&["node-a"]);
    create(&mut world, pod("demo-0", &[]));
    pass(&mut world, 20);
    annotate(&mut world, "demo-0", "cocoonset.cocoonstack.io/generation", json!("7"));
    let before = world.store.version();
    pass(&mut world, 0);
    assert_eq!(world.store.version(), before + 1);
    assert_eq!(annotation(&world, "demo-0", "vm.cocoonstack.io/lifecycle-observed-generation"), "7");
    assert_eq!(state(&world, "demo-0"), "ready");
    annotate(&mut world, "demo-0", "cocoonset.cocoonstack.io/generation", json!("3"));
    pass(&mut world, 0);
    assert_eq!(annotation(&world, "demo-0", "vm.cocoonstack.io/lifecycle-observed-generation"), "7", "never lower");
}

#[test]
fn a_deleted_pod_leaves_latest_as_its_policy_has_it() {
    for (policy, name, leaves) in
        [("always", "demo-1", true), ("main-only", "demo-1", false), ("never", "demo-0", false)]
    {
        let mut world = world(&["node-a"]);
        let set = json!({"apiVersion": "cocoonset.cocoonstack.io/v1", "kind": "CocoonSet", "name": "demo", "uid": "u"});
        let mut made = pod(name, &[("cocoonset.cocoonstack.io/snapshot-policy", policy)]);
        made["metadata"]["finalizers"] = json!(["example.test/hold"]);
        made["metadata"]["ownerReferences"] = json!([set]);
        // An owner that does not exist would have the pod collected.
        let real = json!({"apiVersion": "cocoonset.cocoonstack.io/v1", "kind": "CocoonSet", "metadata": {"name": "demo"},
            "spec": {"agent": {"image": "x", "replicas": 0}}});
        let request = cocoon_operator::core::wire::Request::new(
            cocoon_operator::core::wire::Method::Post,
            "/apis/cocoonset.cocoonstack.io/v1/namespaces/ns/cocoonsets",
        )
        .with_body("application/json", real);
        let reply = world.store.handle(&request);
        made["metadata"]["ownerReferences"][0]["uid"] = reply.value()["metadata"]["uid"].clone();
        create(&mut world, made);
        pass(&mut world, 20);
        assert!(is_ready(&world, name), "{:?}", reply.value());
        delete(&mut world, name);
        let told = lines(&pass(&mut world, 5));
        assert!(get(&world, name).is_some(), "held: {told:?}");
        pass(&mut world, 20);
        assert_eq!(world.registry.get(&format!("vk-ns-{name}"), "latest").is_some(), leaves, "{policy}");
        assert_eq!(world.nodes.vms().count(), 0);
        assert_eq!(get(&world, name).expect("held by its finalizer")["metadata"]["deletionGracePeriodSeconds"], 0);
    }
}

#[test]
fn the_object_stays_for_as_long_as_its_snapshot_is_pushed() {
    let mut world = world(&["node-a"]);
    world.nodes.inject(Injection::new(Step::Push, Effect::Takes(Duration::from_secs(120))).for_pod("demo-0"));
    create(&mut world, pod("demo-0", &[("cocoonset.cocoonstack.io/snapshot-policy", "always")]));
    pass(&mut world, 20);
    delete(&mut world, "demo-0");
    pass(&mut world, 100);
    let pod = get(&world, "demo-0").expect("Terminating");
    assert!(pod["metadata"]["deletionTimestamp"].is_string());
    let told = pass(&mut world, 60);
    assert_eq!(lines(&told), ["+142 node-a: demo-0 is pushed as latest", "+143 node-a: demo-0 is gone"]);
    assert!(get(&world, "demo-0").is_none());
    assert_eq!(
        world.registry.get("vk-ns-demo-0", "latest").and_then(|s| s.base_image.as_deref()),
        Some("ghcr.io/x/y:1")
    );
}

#[test]
fn a_failed_push_is_logged_and_the_pod_goes_all_the_same() {
    let mut world = world(&["node-a"]);
    world.nodes.inject(Injection::new(Step::Push, Effect::Fails("quota".to_owned())).times(1));
    create(&mut world, pod("demo-0", &[("cocoonset.cocoonstack.io/snapshot-policy", "always")]));
    pass(&mut world, 20);
    delete(&mut world, "demo-0");
    pass(&mut world, 20);
    assert!(get(&world, "demo-0").is_none());
    assert!(world.registry.tags().next().is_none());
}

#[test]
fn a_failed_boot_says_failed_and_is_tried_again() {
    let mut world = world(&["node-a"]);
    world.nodes.inject(Injection::new(Step::Clone, Effect::Fails("no disk".to_owned())).times(2));
    let since = world.store.version();
    create(&mut world, pod("demo-0", &[]));
    pass(&mut world, 3);
    assert_eq!(state(&world, "demo-0"), "failed");
    assert_eq!(annotation(&world, "demo-0", "vm.cocoonstack.io/lifecycle-state-message"), "no disk");
    let pod = get(&world, "demo-0").expect("the pod");
    assert_eq!(
        (pod["status"]["phase"].as_str(), pod["status"]["reason"].as_str()),
        (Some("Pending"), Some("ProviderFailed"))
    );
    pass(&mut world, 60);
    assert_eq!(state(&world, "demo-0"), "ready");
    assert_eq!(annotation(&world, "demo-0", "vm.cocoonstack.io/lifecycle-state-message"), "");
    assert!(get(&world, "demo-0").expect("the pod")["status"].get("reason").is_none());
    let flaps = seen(&world, since).iter().filter(|line| line.contains("failed")).count();
    assert_eq!(flaps, 2, "failed, creating, failed, creating");
    let events = world.store.objects("events", Some("ns")).map(|event| &event["reason"]);
    let reasons: Vec<&Value> = events.filter(|reason| *reason != "Scheduled").collect();
    assert_eq!(reasons, ["CreateBringUpFailed", "CreateBringUpFailed"]);
}

#[test]
fn no_lease_leaves_a_failed_vm_that_runs() {
    let mut world = world(&["node-a"]);
    world.nodes.inject(Injection::new(Step::IpWait, Effect::Fails("dhcp lease not observed within 45s".to_owned())));
    create(&mut world, pod("demo-0", &[]));
    pass(&mut world, 60);
    assert_eq!(state(&world, "demo-0"), "failed");
    assert_ne!(annotation(&world, "demo-0", "vm.cocoonstack.io/id"), "");
    assert_eq!(get(&world, "demo-0").expect("the pod")["status"]["phase"], "Running");
    assert!(!is_ready(&world, "demo-0"));
}

#[test]
fn a_leftover_tag_turns_a_fresh_create_into_a_restore() {
    let mut world = world(&["node-a"]);
    world.registry.push("vk-ns-demo-0", "hibernate", Some("ghcr.io/x/y:1"));
    create(&mut world, pod("demo-0", &[]));
    let told = pass(&mut world, 20);
    assert!(lines(&told).contains(&"+0 node-a: demo-0 is restored from its hibernate snapshot".to_owned()));
    assert_eq!(state(&world, "demo-0"), "ready");
    assert_eq!(
        annotation(&world, "demo-0", "vm.cocoonstack.io/restore-from-hibernate"),
        "",
        "the mark is in memory only"
    );
    assert!(world.registry.get("vk-ns-demo-0", "hibernate").is_some(), "the agent never deletes the tag");
}

#[test]
fn a_leftover_tag_of_another_image_or_under_a_fork_is_refused() {
    let mut world = world(&["node-a"]);
    world.registry.push("vk-ns-demo-0", "hibernate", Some("ghcr.io/x/other:1"));
    world.registry.push("vk-ns-demo-1", "hibernate", Some("ghcr.io/x/y:1"));
    create(&mut world, pod("demo-0", &[]));
    create(&mut world, pod("demo-1", &[("vm.cocoonstack.io/fork-from", "vk-ns-demo-0")]));
    pass(&mut world, 20);
    for name in ["demo-0", "demo-1"] {
        assert_eq!(state(&world, name), "failed");
        assert!(annotation(&world, name, "vm.cocoonstack.io/lifecycle-state-message").contains("hibernate snapshot"));
    }
    assert_eq!(world.nodes.vms().count(), 0);
}

#[test]
fn a_registry_that_does_not_answer_forbids_a_create() {
    let mut world = world(&["node-a"]);
    world.registry.behave(Mood::always(Behaviour::DENIED).towards(Asker::Node).times(1));
    create(&mut world, pod("demo-0", &[]));
    pass(&mut world, 0);
    assert_eq!(state(&world, "demo-0"), "failed");
    pass(&mut world, 20);
    assert_eq!(state(&world, "demo-0"), "ready");
}

#[test]
fn a_fork_needs_its_source_on_the_node() {
    let mut world = world(&["node-a"]);
    create(&mut world, pod("demo-1", &[("vm.cocoonstack.io/fork-from", "vk-ns-demo-0")]));
    pass(&mut world, 0);
    assert_eq!(state(&world, "demo-1"), "failed");
    create(&mut world, pod("demo-0", &[]));
    pass(&mut world, 60);
    assert_eq!(state(&world, "demo-1"), "ready");
    assert_eq!(world.nodes.snapshots("node-a").collect::<Vec<_>>(), ["fork-vk-ns-demo-0"]);
}

#[test]
fn addresses_are_unique_however_machines_come_about() {
    let mut world = world(&["node-a"]);
    let given = [("cocoonset.cocoonstack.io/managed", ""), ("vm.cocoonstack.io/id", "ext-7")];
    create(&mut world, pod("demo-0", &[]));
    pass(&mut world, 20);
    // Somebody's own machine has the address that would come next.
    let first = annotation(&world, "demo-0", "vm.cocoonstack.io/ip").to_owned();
    let (network, last) = first.rsplit_once('.').expect("an address");
    let next = format!("{network}.{}", last.parse::<u8>().expect("a number") + 1);
    create(&mut world, pod("demo-ext", &[&given[..], &[("vm.cocoonstack.io/ip", &next)]].concat()));
    for slot in 1..=5 {
        let from = [("vm.cocoonstack.io/fork-from", "vk-ns-demo-0")];
        create(&mut world, pod(&format!("demo-{slot}"), &from));
        let booted = [("cocoonset.cocoonstack.io/mode", "run")];
        create(&mut world, pod(&format!("demo-boot-{slot}"), &booted));
    }
    pass(&mut world, 120);
    let mut all: Vec<&str> = world.nodes.vms().map(|(_, _, vm)| vm.ip.as_str()).collect();
    assert_eq!(all.len(), 12);
    assert!(all.iter().all(|ip| !ip.is_empty()), "{all:?}");
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 12, "{all:?}");
}

#[test]
fn an_unmanaged_pod_needs_its_id_and_ip() {
    let mut world = world(&["node-a"]);
    let given = [
        ("cocoonset.cocoonstack.io/managed", ""),
        ("vm.cocoonstack.io/id", "ext-7"),
        ("vm.cocoonstack.io/ip", "10.9.9.9"),
    ];
    create(&mut world, pod("demo-ext", &given));
    create(&mut world, pod("demo-bad", &given[..1]));
    pass(&mut world, 0);
    assert_eq!((state(&world, "demo-ext"), state(&world, "demo-bad")), ("ready", "failed"));
    assert_eq!(get(&world, "demo-ext").expect("the pod")["status"]["podIP"], "10.9.9.9");
}

#[test]
fn two_pods_with_one_vm_name_share_a_vm_and_its_end() {
    let mut world = world(&["node-a"]);
    create(&mut world, pod("demo-0", &[]));
    pass(&mut world, 20);
    create(&mut world, pod("other", &[("vm.cocoonstack.io/name", "vk-ns-demo-0")]));
    let told = pass(&mut world, 20);
    assert!(lines(&told).contains(&"+20 node-a: other adopts the VM vk-ns-demo-0".to_owned()), "{:?}", lines(&told));
    let id = |world: &_, name: &str| annotation(world, name, "vm.cocoonstack.io/id").to_owned();
    assert_eq!(id(&world, "demo-0"), id(&world, "other"));
    delete(&mut world, "other");
    pass(&mut world, 20);
    assert!(get(&world, "other").is_none());
    assert!(get(&world, "demo-0").is_none(), "its VM went with the other's: the agent deletes it");
}

#[test]
fn a_deletion_during_a_boot_waits_for_it() {
    let mut world = world(&["node-a"]);
    create(&mut world, pod("demo-0", &[]));
    pass(&mut world, 1);
    delete(&mut world, "demo-0");
    let told = pass(&mut world, 20);
    assert_eq!(lines(&told), ["+3 node-a: demo-0 runs", "+3 node-a: demo-0 stops", "+4 node-a: demo-0 is gone"]);
}

#[test]
fn a_crashed_guest_is_started_again_once_in_30_seconds() {
    let mut world = world(&["node-a"]);
    create(&mut world, pod("demo-0", &[]));
    pass(&mut world, 20);
    world.crash_guest("vk-ns-demo-0");
    pass(&mut world, 2);
    assert!(!is_ready(&world, "demo-0"));
    pass(&mut world, 10);
    assert!(is_ready(&world, "demo-0"));
    assert_eq!(state(&world, "demo-0"), "ready", "probes do not touch the lifecycle");
    world.crash_guest("vk-ns-demo-0");
    let told = lines(&pass(&mut world, 10));
    assert!(told.iter().any(|line| line.contains("RestartCooldown")), "{told:?}");
    assert!(get(&world, "demo-0").is_none());
}

#[test]
fn a_vm_that_vanishes_takes_its_pod_with_it() {
    let mut world = world(&["node-a"]);
    create(&mut world, pod("demo-0", &[("cocoonset.cocoonstack.io/snapshot-policy", "always")]));
    pass(&mut world, 20);
    world.lose_vm("vk-ns-demo-0");
    let told = lines(&pass(&mut world, 20));
    assert_eq!(told, ["+21 node-a: demo-0 has lost its VM (VMGone)", "+21 node-a: demo-0 is gone"]);
    assert!(world.registry.tags().next().is_none(), "what is gone cannot be saved");
}

#[test]
fn a_probe_that_flips_is_seen_in_the_status_alone() {
    let mut world = world(&["node-a"]);
    create(&mut world, pod("demo-0", &[]));
    pass(&mut world, 20);
    world.set_probe("vk-ns-demo-0", false);
    pass(&mut world, 20);
    assert!(!is_ready(&world, "demo-0"));
    assert_eq!(state(&world, "demo-0"), "ready");
    world.set_probe("vk-ns-demo-0", true);
    pass(&mut world, 20);
    assert!(is_ready(&world, "demo-0"));
}

#[test]
fn an_edited_id_is_written_back_on_the_next_round() {
    let mut world = world(&["node-a"]);
    create(&mut world, pod("demo-0", &[]));
    pass(&mut world, 50);
    let id = annotation(&world, "demo-0", "vm.cocoonstack.io/id").to_owned();
    annotate(&mut world, "demo-0", "vm.cocoonstack.io/id", json!("mine"));
    pass(&mut world, 10);
    assert_eq!(annotation(&world, "demo-0", "vm.cocoonstack.io/id"), "mine");
    pass(&mut world, 30);
    assert_eq!(annotation(&world, "demo-0", "vm.cocoonstack.io/id"), id);
}

#[test]
fn a_vm_that_cannot_be_stopped_keeps_its_pod_terminating() {
    let mut world = world(&["node-a"]);
    world.nodes.inject(Injection::new(Step::Remove, Effect::Fails("busy".to_owned())));
    create(&mut world, pod("demo-0", &[]));
    pass(&mut world, 20);
    delete(&mut world, "demo-0");
    pass(&mut world, 60);
    assert!(get(&world, "demo-0").is_some());
    pass(&mut world, 7200);
    assert_eq!(world.next_due(), None, "given up after so many tries");
    world.nodes.heal();
    pass(&mut world, 1);
    assert!(get(&world, "demo-0").is_none());
}

#[test]
fn what_hangs_goes_on_when_it_is_healed() {
    let mut world = world(&["node-a"]);
    world.nodes.inject(Injection::new(Step::Clone, Effect::Hangs).for_vm("vk-ns-demo-0"));
    create(&mut world, pod("demo-0", &[]));
    pass(&mut world, 3600);
    assert_eq!((state(&world, "demo-0"), world.next_due()), ("creating", None));
    world.nodes.heal();
    pass(&mut world, 10);
    assert_eq!(state(&world, "demo-0"), "ready");
}

#[test]
fn a_pod_taken_away_by_force_leaves_its_vm_to_be_removed_before_the_next_of_its_name() {
    let mut world = world(&["node-a"]);
    create(&mut world, pod("demo-0", &[("cocoonset.cocoonstack.io/snapshot-policy", "always")]));
    pass(&mut world, 20);
    let force = cocoon_operator::core::wire::Request::new(
        cocoon_operator::core::wire::Method::Delete,
        "/api/v1/namespaces/ns/pods/demo-0",
    )
    .with_body("application/json", json!({"gracePeriodSeconds": 0}));
    assert_eq!(status_of(&world.api("admin", &force)), 200);
    assert!(get(&world, "demo-0").is_none());
    create(&mut world, pod("demo-0", &[]));
    let told = lines(&pass(&mut world, 30));
    assert_eq!(
        told,
        [
            "+20 node-a: demo-0 is being saved",
            "+20 scheduler: demo-0 is bound to node-a",
            "+30 node-a: demo-0 is pushed as latest",
            "+31 node-a: demo-0 is gone",
            "+31 node-a: demo-0 is cloned",
            "+34 node-a: demo-0 runs",
            "+34.6 node-a: demo-0 is ready",
        ]
    );
    assert!(is_ready(&world, "demo-0"));
}

#[test]
fn windows_is_set_up_before_it_is_ready() {
    let mut world = world(&["node-a"]);
    create(&mut world, pod("demo-0", &[("cocoonset.cocoonstack.io/os", "windows")]));
    let note = "vm.cocoonstack.io/post-clone-state";
    pass(&mut world, 5);
    assert_eq!((annotation(&world, "demo-0", note), state(&world, "demo-0")), ("running", "creating"));
    assert_eq!(get(&world, "demo-0").expect("the pod")["status"]["phase"], "Running", "live long before it is ready");
    pass(&mut world, 10);
    assert_eq!((annotation(&world, "demo-0", note), state(&world, "demo-0")), ("done", "ready"));
}

#[test]
fn a_plain_boot_is_ready_at_once_and_only_the_first_pulls_its_image() {
    let mut world = world(&["node-a"]);
    world.nodes.settings_mut().timings.pull = Duration::from_secs(30);
    create(&mut world, pod("a", &[("cocoonset.cocoonstack.io/mode", "run")]));
    pass(&mut world, 32);
    assert_eq!(state(&world, "a"), "creating");
    let told = lines(&pass(&mut world, 1));
    assert_eq!(told, ["+33 node-a: a runs", "+33 node-a: a is ready"]);
    create(&mut world, pod("b", &[("cocoonset.cocoonstack.io/mode", "run")]));
    pass(&mut world, 3);
    assert_eq!(state(&world, "b"), "ready");
    create(&mut world, pod("c", &[("cocoonset.cocoonstack.io/force-pull", "true")]));
    pass(&mut world, 20);
    assert_eq!(state(&world, "c"), "creating");
}

#[test]
fn everything_can_go_faster() {
    let mut world = world(&["node-a"]);
    world.nodes.settings_mut().speed = 10.0;
    create(&mut world, pod("demo-0", &[]));
    assert_eq!(lines(&pass(&mut world, 1)).last().map(String::as_str), Some("+0.36 node-a: demo-0 is ready"));
}

#[test]
fn an_old_release_does_not_look_for_a_leftover_tag() {
    let mut world = world(&["node-a"]);
    world.nodes.settings_mut().evidence_check = false;
    world.registry.push("vk-ns-demo-0", "hibernate", Some("another"));
    create(&mut world, pod("demo-0", &[]));
    pass(&mut world, 10);
    assert_eq!(state(&world, "demo-0"), "ready");
}

#[test]
fn a_state_that_the_api_server_did_not_take_is_said_again() {
    use cocoon_operator::sim::store::{Match, Refusal, Rule};
    let mut world = world(&["node-a"]);
    create(&mut world, pod("demo-0", &[]));
    pass(&mut world, 3);
    let when = Match { verbs: vec!["patch".to_owned()], resource: Some("pods".to_owned()), ..Match::default() };
    world.store.add_rule(Rule::new(when, Refusal::TooManyRequests(Duration::from_secs(1))));
    pass(&mut world, 1);
    assert_eq!(state(&world, "demo-0"), "creating");
    assert!(is_ready(&world, "demo-0"), "the status has another door");
    world.store.clear_rules();
    pass(&mut world, 30);
    assert_eq!(state(&world, "demo-0"), "ready");
    assert_eq!(
        annotation(&world, "demo-0", "vm.cocoonstack.io/ip"),
        world.nodes.vm("node-a", "vk-ns-demo-0").expect("a VM").ip
    );
}

#[test]
fn nothing_is_lost_when_the_log_is_compacted_between_two_looks() {
    let mut world = world(&["node-a"]);
    create(&mut world, pod("a", &[]));
    pass(&mut world, 20);
    create(&mut world, pod("b", &[]));
    let force = cocoon_operator::core::wire::Request::new(
        cocoon_operator::core::wire::Method::Delete,
        "/api/v1/namespaces/ns/pods/a",
    )
    .with_body("application/json", json!({"gracePeriodSeconds": 0}));
    world.api("admin", &force);
    world.store.compact(world.store.version());
    pass(&mut world, 20);
    assert!(is_ready(&world, "b"));
    assert_eq!(world.nodes.vms().count(), 1);
}
