//! Scheduling, lost nodes, agents that come and go, namespaces with pods, forks of the world.

use crate::setup::*;
use cocoon_operator::core::wire::{JSON, Method, Request};
use cocoon_operator::sim::node::NodeSpec;
use cocoon_operator::sim::world::{Told, World};
use serde_json::{Value, json};

fn message(world: &World, name: &str) -> String {
    let pod = get(world, name).expect("the pod");
    let scheduled = condition(pod, "PodScheduled");
    assert_eq!((&scheduled["status"], &scheduled["reason"]), (&json!("False"), &json!("Unschedulable")));
    scheduled["message"].as_str().unwrap_or("").to_owned()
}

fn node_of<'a>(world: &'a World, name: &str) -> &'a str {
    get(world, name).and_then(|pod| pod["spec"]["nodeName"].as_str()).unwrap_or("")
}

/// The events that the scheduler recorded.
fn told(world: &World) -> Vec<String> {
    let of = |event: &Value, pointer: &str| event.pointer(pointer).and_then(Value::as_str).unwrap_or("").to_owned();
    let own = world.store.objects("events", Some("ns")).filter(|one| one["reportingComponent"] == "default-scheduler");
    own.map(|one| {
        let about = of(one, "/involvedObject/name");
        format!("{} {} {about}: {}", of(one, "/type"), of(one, "/reason"), of(one, "/message"))
    })
    .collect()
}

#[test]
fn the_scheduler_says_why_nothing_fits() {
    let mut world = world(&[]);
    create(&mut world, pod("a", &[]));
    pass(&mut world, 0);
    assert_eq!(message(&world, "a"), "no nodes available to schedule pods");
    assert_eq!(told(&world), ["Warning FailedScheduling a: no nodes available to schedule pods"]);
    world.add_node(NodeSpec { pool: "gpu".to_owned(), ..NodeSpec::named("node-a") });
    world.add_node(NodeSpec { capacity_cpu: "2".to_owned(), ..NodeSpec::named("node-b") });
    let mut big = pod("b", &[]);
    big["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "2500m", "memory": "1Gi"}});
    create(&mut world, big);
    let mut plain = pod("c", &[]);
    plain["spec"]["tolerations"] = json!([]);
    create(&mut world, plain);
    pass(&mut world, 0);
    assert_eq!(node_of(&world, "a"), "node-b", "tried again when a node came");
    assert!(told(&world).contains(&"Normal Scheduled a: Successfully assigned ns/a to node-b".to_owned()));
    assert_eq!(told(&world).len(), 4, "each is told once, however often it is tried");
    assert_eq!(
        message(&world, "b"),
        "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match Pod's node affinity/selector. preemption: \
         0/2 nodes are available: 1 No preemption victims found for incoming pod, 1 Preemption is not helpful for \
         scheduling."
    );
    assert_eq!(
        message(&world, "c"),
        "0/2 nodes are available: 2 node(s) had untolerated taint {virtual-kubelet.io/provider: cocoon}. preemption: 0/2 \
         nodes are available: 2 Preemption is not helpful for scheduling."
    );
}

#[test]
fn a_full_node_takes_the_next_pod_when_one_has_gone() {
    let mut world = world(&[]);
    world.add_node(NodeSpec { capacity_pods: 1, ..NodeSpec::named("node-a") });
    create(&mut world, pod("a", &[]));
    pass(&mut world, 10);
    create(&mut world, pod("b", &[]));
    pass(&mut world, 10);
    assert!(message(&world, "b").starts_with("0/1 nodes are available: 1 Too many pods."));
    delete(&mut world, "a");
    pass(&mut world, 10);
    assert_eq!(node_of(&world, "b"), "node-a");
    assert!(is_ready(&world, "b"));
}

#[test]
fn hostname_affinity_binds_or_prefers() {
    let mut world = world(&["node-a", "node-b", "node-c"]);
    let term = |node: &str| json!({"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]});
    let mut pinned = pod("pinned", &[]);
    pinned["spec"]["affinity"] = json!({"nodeAffinity":
        {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term("node-b")]}}});
    let mut hinted = pod("hinted", &[]);
    hinted["spec"]["affinity"] = json!({"nodeAffinity":
        {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "preference": term("node-c")}]}});
    let mut nowhere = pod("nowhere", &[]);
    nowhere["spec"]["affinity"] = json!({"nodeAffinity":
        {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term("node-x")]}}});
    for pod in [pinned, hinted, nowhere] {
        create(&mut world, pod);
    }
    pass(&mut world, 1);
    assert_eq!((node_of(&world, "pinned"), node_of(&world, "hinted")), ("node-b", "node-c"));
    assert!(
        message(&world, "nowhere").starts_with("0/3 nodes are available: 3 node(s) didn't match Pod's node affinity")
    );
}

fn ready_condition(world: &World, node: &str) -> Value {
    world.store.get("nodes", "", node).map_or(Value::Null, |node| condition(node, "Ready")["status"].clone())
}

#[test]
fn a_lost_node_is_noticed_and_its_vms_are_found_again() {
    let mut world = world(&["node-a"]);
    create(&mut world, pod("demo-0", &[]));
    pass(&mut world, 20);
    let id = annotation(&world, "demo-0", "vm.cocoonstack.io/id").to_owned();
    world.lose_node("node-a");
    pass(&mut world, 39);
    assert_eq!(ready_condition(&world, "node-a"), "True");
    pass(&mut world, 1);
    assert_eq!(ready_condition(&world, "node-a"), "Unknown");
    assert!(!is_ready(&world, "demo-0"), "the control plane says so for the node");
    delete(&mut world, "demo-0");
    pass(&mut world, 600);
    assert!(get(&world, "demo-0").is_some(), "nobody there to take it down");
    world.node_back("node-a");
    pass(&mut world, 10);
    assert!(get(&world, "demo-0").is_none());
    assert_eq!(ready_condition(&world, "node-a"), "True");

    create(&mut world, pod("demo-0", &[]));
    pass(&mut world, 20);
    let second = annotation(&world, "demo-0", "vm.cocoonstack.io/id").to_owned();
    assert_ne!(second, id);
    world.lose_node("node-a");
    pass(&mut world, 100);
    world.node_back("node-a");
    pass(&mut world, 60);
    assert_eq!(annotation(&world, "demo-0", "vm.cocoonstack.io/id"), second, "the same VM");
    assert!(is_ready(&world, "demo-0"));
}

#[test]
fn the_pods_of_a_node_out_of_service_are_taken_away() {
    let mut world = world(&["node-a"]);
    create(&mut world, pod("demo-0", &[]));
    pass(&mut world, 20);
    world.lose_node("node-a");
    pass(&mut world, 100);
    assert!(get(&world, "demo-0").is_some(), "a lost node alone takes no pod away");
    let taint = json!([{"op": "add", "path": "/spec/taints/-", "value":
        {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}}]);
    let patch = Request::new(Method::Patch, "/api/v1/nodes/node-a").with_body("application/json-patch+json", taint);
    assert_eq!(status_of(&world.api("admin", &patch)), 200);
    pass(&mut world, 20);
    assert!(get(&world, "demo-0").is_none());
}

#[test]
fn the_pods_of_a_deleted_node_go_while_its_vms_run_on() {
    let mut world = world(&["node-a"]);
    create(&mut world, pod("demo-0", &[]));
    pass(&mut world, 20);
    world.delete_node("node-a");
    let told = lines(&pass(&mut world, 60));
    assert_eq!(told, ["+60 pod-garbage-collector: demo-0 is removed"]);
    assert!(get(&world, "demo-0").is_none());
    assert_eq!(world.nodes.vms().count(), 1);
    world.node_back("node-a");
    pass(&mut world, 1);
    assert_eq!(world.nodes.vms().count(), 0, "a VM without a pod is destroyed");
}

#[test]
fn an_agent_that_is_down_does_nothing_and_says_nothing() {
    let mut world = world(&["node-a"]);
    world.agent_down("node-a");
    create(&mut world, pod("demo-0", &[]));
    let told = lines(&pass(&mut world, 600));
    assert_eq!(told, ["+0 scheduler: demo-0 is bound to node-a"]);
    assert_eq!(state(&world, "demo-0"), "");
    assert_eq!(ready_condition(&world, "node-a"), "True");
    world.node_back("node-a");
    pass(&mut world, 10);
    assert_eq!(state(&world, "demo-0"), "ready");
}

#[test]
fn an_agent_that_starts_anew_begins_again_what_was_not_finished() {
    let mut world = world(&["node-a"]);
    create(&mut world, pod("demo-0", &[]));
    pass(&mut world, 2);
    world.restart_agent("node-a");
    let told = lines(&pass(&mut world, 10));
    assert_eq!(told, ["+2 node-a: demo-0 is cloned", "+5 node-a: demo-0 runs", "+5.6 node-a: demo-0 is ready"]);
    world.reboot_node("node-a");
    let told = lines(&pass(&mut world, 10));
    assert_eq!(told.first().map(String::as_str), Some("+12 node-a: demo-0 is cloned"));
    assert!(is_ready(&world, "demo-0"));
}

#[test]
fn a_quota_counts_pods_until_they_are_gone() {
    let mut world = world(&["node-a"]);
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "pods"}, "spec": {"hard": {"pods": "1"}}});
    world.store.handle(&Request::new(Method::Post, "/api/v1/namespaces/ns/resourcequotas").with_body(JSON, quota));
    pass(&mut world, 1);
    create(&mut world, pod("a", &[]));
    let second = Request::new(Method::Post, "/api/v1/namespaces/ns/pods").with_body(JSON, pod("b", &[]));
    assert_eq!(status_of(&world.api("admin", &second)), 403);
    pass(&mut world, 10);
    delete(&mut world, "a");
    assert_eq!(status_of(&world.api("admin", &second)), 403);
    pass(&mut world, 10);
    assert_eq!(status_of(&world.api("admin", &second)), 201);
}

/// A namespace with a pod that is held by its node for a while, and a set that is held by a finalizer.
fn emptied(ordered: bool) -> Vec<String> {
    let mut world = world(&["node-a"]);
    world.store.settings_mut().ordered_namespace_deletion = ordered;
    let set = json!({
        "apiVersion": "cocoonset.cocoonstack.io/v1", "kind": "CocoonSet", "metadata": {"name": "demo"},
        "spec": {"agent": {"image": "x"}},
    });
    let sets = "/apis/cocoonset.cocoonstack.io/v1/namespaces/ns/cocoonsets";
    let reply = world.store.handle(&Request::new(Method::Post, sets).with_body(JSON, set));
    assert!(reply.is_success(), "{reply:?}");
    create(&mut world, pod("demo-0", &[("cocoonset.cocoonstack.io/snapshot-policy", "always")]));
    pass(&mut world, 20);
    world.api("admin", &Request::new(Method::Delete, "/api/v1/namespaces/ns"));
    let told = pass(&mut world, 120);
    assert!(world.store.get("namespaces", "", "ns").is_none());
    lines(&told)
}

#[test]
fn a_namespace_is_emptied_pods_first() {
    assert_eq!(
        emptied(true),
        [
            "+25 namespace-controller: demo-0 is marked for deletion",
            "+25 node-a: demo-0 is being saved",
            "+35 node-a: demo-0 is pushed as latest",
            "+36 node-a: demo-0 is gone",
            "+45.475 namespace-controller: cocoonset demo is removed",
            "+45.475 namespace-controller: namespace ns is removed",
        ]
    );
}

#[test]
fn an_older_control_plane_empties_it_all_at_once() {
    assert_eq!(
        emptied(false),
        [
            "+25 namespace-controller: cocoonset demo is removed",
            "+25 namespace-controller: demo-0 is marked for deletion",
            "+25 node-a: demo-0 is being saved",
            "+35 node-a: demo-0 is pushed as latest",
            "+36 node-a: demo-0 is gone",
            "+45.475 namespace-controller: namespace ns is removed",
        ]
    );
}

/// A busy hour, from creation to the end.
fn hour(world: &mut World) -> (Vec<Told>, u64) {
    let mut told = Vec::new();
    for name in ["demo-0", "demo-1", "demo-2", "demo-3"] {
        create(world, pod(name, &[("cocoonset.cocoonstack.io/snapshot-policy", "always")]));
        told.extend(pass(world, 1));
    }
    told.extend(pass(world, 30));
    world.crash_guest("vk-ns-demo-1");
    world.lose_node("node-b");
    told.extend(pass(world, 60));
    delete(world, "demo-2");
    world.node_back("node-b");
    told.extend(pass(world, 60));
    world.api("admin", &Request::new(Method::Delete, "/api/v1/namespaces/ns"));
    told.extend(pass(world, 600));
    (told, world.store.version())
}

#[test]
fn the_same_world_does_the_same_twice() {
    let first = hour(&mut world(&["node-a", "node-b"]));
    let second = hour(&mut world(&["node-a", "node-b"]));
    assert_eq!(first, second);
    assert!(first.0.len() > 20);
}

#[test]
fn small_steps_and_large_ones_lead_to_the_same() {
    let run = |step: i64| {
        let mut world = world(&["node-a"]);
        create(&mut world, pod("demo-0", &[]));
        let mut told = Vec::new();
        for _ in 0..(60 / step) {
            told.extend(pass(&mut world, step));
        }
        (lines(&told), world.store.version())
    };
    assert_eq!(run(1), run(60));
}

#[test]
fn a_fork_of_the_world_goes_its_own_way() {
    let mut world = world(&["node-a"]);
    create(&mut world, pod("demo-0", &[]));
    pass(&mut world, 2);
    let mut fork = world.clone();
    delete(&mut fork, "demo-0");
    pass(&mut fork, 60);
    assert!(get(&fork, "demo-0").is_none());
    assert_eq!(state(&world, "demo-0"), "creating");
    pass(&mut world, 60);
    assert!(is_ready(&world, "demo-0"));
    assert_eq!((world.nodes.vms().count(), fork.nodes.vms().count()), (1, 0));
}
