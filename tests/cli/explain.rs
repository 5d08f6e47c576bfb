//! `explain`: what goes in, what comes out, in which form.

use super::{actions, explained, namespace, observation, rules_of, run, set};
use serde_json::{Value, json};

const LIST: &str = "tests/cli/data/kubectl-list.yaml";

fn json_of(args: &[&str], stdin: &str) -> Value {
    let ran = run(args, stdin.as_bytes());
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    serde_json::from_str(&ran.out).expect("JSON")
}

#[test]
fn what_kubectl_prints_is_explained_as_it_stands() {
    let all = json_of(&["explain", "-f", LIST, "-o", "json"], "");
    let expected = json!([{
        "kind": "CocoonSet", "namespace": "team-a", "name": "demo", "outcomes": [], "actions": [], "error": null,
    }]);
    assert_eq!(all, expected);
}

#[test]
fn files_stdin_yaml_json_and_lists_say_the_same() {
    let text = std::fs::read_to_string(LIST).expect("readable");
    let list: Value = serde_saphyr::from_str(&text).expect("YAML");
    let items = list["items"].as_array().expect("items");
    let from_file = json_of(&["explain", "-f", LIST, "-o", "json"], "");
    let stdin = |text: &str| json_of(&["explain", "-f", "-", "-o", "json"], text);
    let apart = items.iter().rev().map(|item| format!("---\n{}", serde_saphyr::to_string(item).expect("YAML")));
    let pods = json!({ "kind": "PodList", "apiVersion": "v1", "items": items.iter().skip(1).map(|pod| {
        let mut pod = pod.clone();
        let map = pod.as_object_mut().expect("a mapping");
        map.remove("kind");
        map.remove("apiVersion");
        pod
    }).collect::<Vec<_>>() });
    let sets = json!({ "kind": "CocoonSetList", "apiVersion": "cocoonset.cocoonstack.io/v1", "items": [items[0]] });
    for (form, text) in [
        ("the same on stdin", text.clone()),
        ("pretty JSON", serde_json::to_string_pretty(&list).expect("JSON")),
        ("JSON lines", items.iter().map(|item| format!("{item}\n")).collect()),
        ("documents in another order", apart.collect()),
        ("typed lists, whose items do not say what they are", format!("{pods}\n{sets}")),
        ("JSON between dashes", format!("{pods}\n---\n{sets}\n")),
        ("with a byte order mark", format!("\u{feff}{text}")),
        ("with carriage returns", text.replace('\n', "\r\n")),
    ] {
        assert_eq!(stdin(&text), from_file, "{form}");
    }
    let both = run(&["explain", "-f", LIST, "-f", "-", "-o", "json"], set("team-b", "x").to_string().as_bytes());
    let both: Value = serde_json::from_str(&both.out).expect("JSON");
    assert_eq!(both.as_array().expect("an array").len(), 2);
}

/// Acceptance: the 403 of the incident.
#[test]
fn the_refused_create_of_a_going_namespace_leads_to_a_look_and_a_stop() {
    let mut body: Value =
        serde_json::from_str(&std::fs::read_to_string("tests/facts/a2-pod-in-terminating-ns.json").expect("recorded"))
            .expect("JSON");
    let text = body["body"].take().to_string().replace("f1-term", "netconn-test").replace("p1", "netprobe-b-0");
    let body: Value = serde_json::from_str(&text).expect("JSON");
    let seen = observation(json!({
        "now": "2026-08-03T12:03:00Z",
        "snapshots": { "vk-netconn-test-netprobe-b-0": { "hibernate": "absent", "latest": "present" } },
        "outcomes": [{ "object": "netconn-test/netprobe-b", "action": "CreatePod", "target": "netprobe-b-0",
                       "status": 403, "body": body }],
    }));
    let object = set("netconn-test", "netprobe-b");
    let look = json!({ "action": "ReadLive", "rule": "namespace/look", "because": "a create was refused",
                       "of": "namespace/netconn-test" });
    let stop = json!({ "action": "Stop", "rule": "namespace/terminating",
                       "because": "namespace netconn-test is being terminated" });
    let expected = |actions: Value| {
        json!([{ "kind": "CocoonSet", "namespace": "netconn-test", "name": "netprobe-b",
                 "outcomes": [{ "action": "CreatePod", "class": "NamespaceTerminating" }],
                 "actions": actions, "error": null }])
    };
    let unknown = explained(&[object.clone(), seen.clone()]);
    assert_eq!(json!(unknown), expected(json!([look, stop])), "no Namespace document: unknown, not absent");
    let active = explained(&[object.clone(), seen.clone(), namespace("netconn-test", false)]);
    assert_eq!(json!(active), expected(json!([look, stop])), "the cache may lag");
    let going = explained(&[object, seen, namespace("netconn-test", true)]);
    assert_eq!(json!(going), expected(json!([stop])), "seen terminating: nobody has to look");
}

#[test]
fn a_live_answer_is_taken_in_after_the_refusal_it_follows() {
    let outcome = |body: Value| {
        let refused = json!({ "object": "a/x", "action": "CreatePod", "status": 403, "body": {
            "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "message": "no", "code": 403,
            "details": { "causes": [{ "reason": "NamespaceTerminating" }] } } });
        let read =
            json!({ "object": "a/x", "action": "ReadLive", "target": "namespace/a", "status": 200, "body": body });
        observation(json!({ "snapshots": { "vk-a-x-0": { "hibernate": "absent" } }, "outcomes": [refused, read] }))
    };
    let going = explained(&[set("a", "x"), outcome(namespace("a", true))]);
    assert_eq!(rules_of(&going[0]), ["namespace/terminating"]);
    let active = explained(&[set("a", "x"), outcome(namespace("a", false))]);
    assert_eq!(rules_of(&active[0]).first(), Some(&"namespace/retry"));
    assert_eq!(active[0]["actions"][0]["recheckAfterSeconds"], 1);
}

#[test]
fn what_is_not_given_is_asked_for_and_never_absent() {
    let unasked = explained(&[set("a", "x")]);
    assert_eq!(actions(&unasked[0]), ["ProbeSnapshot"]);
    assert_eq!(unasked[0]["actions"][0]["vm"], "vk-a-x-0");
    let with = |said: Value| {
        explained(&[set("a", "x"), observation(json!({ "snapshots": { "vk-a-x-0": { "hibernate": said } } }))])
    };
    assert_eq!(actions(&with(json!("absent"))[0]), ["CreatePod"]);
    assert!(!actions(&with(json!("present"))[0]).contains(&"CreatePod"));
    let error = with(json!("error"));
    assert!(!actions(&error[0]).contains(&"CreatePod"), "{error:?}");
    let known = with(json!({ "digest": "sha256:1", "baseImage": "b", "checkedAt": "2026-08-03T10:00:00Z" }));
    assert!(!actions(&known[0]).contains(&"CreatePod"));
}

/// A tag is only deleted right after a look that showed its digest.
#[test]
fn a_tag_is_deleted_only_on_a_fresh_digest() {
    let mut going = set("a", "x");
    going["metadata"]["deletionTimestamp"] = json!("2026-08-03T12:00:00Z");
    let pods = json!({ "object": "a/x", "action": "ReadLive", "target": "pods", "status": 200, "body": {
        "kind": "PodList", "apiVersion": "v1", "metadata": { "resourceVersion": "50" }, "items": [] } });
    let with = |said: Value| {
        let snapshots = json!({ "vk-a-x-0": { "hibernate": said, "latest": "absent" } });
        let seen = observation(json!({ "now": "2026-08-03T12:03:00Z", "snapshots": snapshots, "outcomes": [pods] }));
        explained(&[going.clone(), seen]).remove(0)
    };
    let fresh = with(json!({ "digest": "sha256:1" }));
    let delete = json!({ "vm": "vk-a-x-0", "tag": "hibernate", "digest": "sha256:1" });
    let found = fresh["actions"].as_array().expect("actions").iter().find(|a| a["action"] == "DeleteSnapshot");
    for (key, value) in delete.as_object().expect("a mapping") {
        assert_eq!(found.expect("a delete")[key], *value, "{fresh}");
    }
    for stale in [json!("present"), json!({ "digest": "sha256:1", "checkedAt": "2026-08-03T12:02:00Z" })] {
        let actions = with(stale.clone());
        assert!(super::actions(&actions).contains(&"ProbeSnapshot"), "{stale}: {actions}");
        assert!(!super::actions(&actions).contains(&"DeleteSnapshot"), "{stale}: {actions}");
    }
    assert!(actions(&with(json!("absent"))).contains(&"RemoveFinalizer"));
}

#[test]
fn requests_of_the_other_kind_are_seen_and_left_alone() {
    let request = json!({
        "apiVersion": "cocoonset.cocoonstack.io/v1", "kind": "CocoonHibernation",
        "metadata": { "namespace": "a", "name": "z" }, "spec": { "podRef": { "name": "x-0" }, "desire": "Hibernate" },
    });
    let answer = json!({ "object": "a/z", "kind": "CocoonHibernation", "action": "PatchStatus", "status": 409 });
    let all = explained(&[set("a", "x"), set("a", "b"), request, observation(json!({ "outcomes": [answer] }))]);
    let names: Vec<(&str, &str)> =
        all.iter().map(|one| (one["kind"].as_str().unwrap(), one["name"].as_str().unwrap())).collect();
    assert_eq!(names, [("CocoonHibernation", "z"), ("CocoonSet", "b"), ("CocoonSet", "x")]);
    assert_eq!(rules_of(&all[0]), ["hibernation/unsupported"]);
    assert_eq!(all[0]["outcomes"], json!([{ "action": "PatchStatus", "class": "Conflict" }]));
    assert!(rules_of(&all[2]).contains(&"left-alone/unsupported"), "{}", all[2]);
    assert!(!rules_of(&all[1]).contains(&"left-alone/unsupported"), "{}", all[1]);
}

#[test]
fn one_object_can_be_picked() {
    let text = format!("{}\n{}", set("a", "x"), set("a", "y"));
    let one = json_of(&["explain", "-f", "-", "--object", "a/y", "-o", "json"], &text);
    assert_eq!(one.as_array().expect("an array").len(), 1);
    assert_eq!(one[0]["name"], "y");
    let none = run(&["explain", "-f", "-", "--object", "a/z"], text.as_bytes());
    assert_eq!((none.code, none.out.as_str()), (2, ""));
    assert!(none.err.contains("a/z") && none.err.contains("a/x, a/y"), "{}", none.err);
}

#[test]
fn what_needs_a_person_is_an_error_with_reason_and_message() {
    let fact = std::fs::read_to_string("tests/facts/e1-rbac-pod.json").expect("recorded");
    let body = serde_json::from_str::<Value>(&fact).expect("JSON")["body"].clone();
    let outcome = json!({ "object": "a/x", "action": "CreatePod", "status": 403, "body": body });
    let seen = json!({ "snapshots": { "vk-a-x-0": { "hibernate": "absent" } }, "outcomes": [outcome] });
    let all = explained(&[set("a", "x"), observation(seen)]);
    assert_eq!(all[0]["outcomes"][0]["class"], "RbacDenied");
    assert_eq!(all[0]["error"]["reason"], "RbacDenied");
    assert!(all[0]["error"]["message"].as_str().expect("a message").contains("cannot create resource"), "{}", all[0]);
    assert!(!actions(&all[0]).contains(&"CreatePod"));
}

#[test]
fn what_no_decision_looks_at_is_skipped_with_a_note() {
    let other = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "c" } });
    let strange = json!({ "apiVersion": "metrics.k8s.io/v1beta1", "kind": "Pod", "metadata": { "name": "c" } });
    let bare = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "namespace": "a", "name": "p" } });
    let text = format!("{other}\n{other}\n{strange}\n{bare}\n{}", set("a", "x"));
    let ran = run(&["explain", "-f", "-", "-o", "json"], text.as_bytes());
    assert_eq!(ran.code, 0);
    assert_eq!(serde_json::from_str::<Value>(&ran.out).expect("JSON").as_array().expect("an array").len(), 1);
    assert!(ran.err.contains("2 ConfigMap (v1), 1 Pod (metrics.k8s.io/v1beta1)"), "{}", ran.err);
    assert!(ran.err.contains("1 Pod without the label cocoonset.cocoonstack.io/name"), "{}", ran.err);
    let empty = run(&["explain", "-f", "-", "-o", "json"], b"apiVersion: v1\nkind: List\nitems: []\n");
    assert_eq!((empty.code, empty.out.as_str()), (0, "[]\n"));
    assert!(empty.err.contains("no CocoonSet or CocoonHibernation"), "{}", empty.err);
}

#[test]
fn the_time_of_the_decision_is_the_newest_in_the_stream_or_as_given() {
    let as_of = |documents: &str| {
        let out = run(&["explain", "-f", "-"], documents.as_bytes()).out;
        out.lines().find_map(|line| Some(line.split_once("as of ")?.1.split(';').next()?.to_owned())).expect("a time")
    };
    let mut object = set("a", "x");
    assert_eq!(as_of(&object.to_string()), "2026-08-03T11:00:00Z");
    object["status"] = json!({ "conditions": [{ "type": "Ready", "lastTransitionTime": "2026-08-03T11:10:00Z" }] });
    assert_eq!(as_of(&object.to_string()), "2026-08-03T11:10:00Z");
    object["metadata"]["managedFields"] = json!([{ "time": "2026-08-03T11:20:00Z" }]);
    assert_eq!(as_of(&object.to_string()), "2026-08-03T11:20:00Z");
    let given = observation(json!({ "now": "2026-08-03T10:00:00Z" }));
    assert_eq!(as_of(&format!("{object}\n{given}")), "2026-08-03T10:00:00Z");
}

#[test]
fn a_manifest_that_was_never_applied_is_explained_as_if_it_had_just_been() {
    let ran = run(&["explain", "-f", "examples/demo.yaml", "-o", "json"], b"");
    assert_eq!(ran.code, 0, "{}", ran.err);
    let all: Value = serde_json::from_str(&ran.out).expect("JSON");
    assert_eq!(actions(&all[0]), ["AddFinalizer"]);
    assert!(ran.err.contains("has no uid"), "{}", ran.err);
}

#[test]
fn the_text_names_object_facts_rules_reasons_and_what_is_awaited() {
    let seen = observation(json!({
        "now": "2026-08-03T12:03:00Z", "snapshots": { "vk-a-x-0": { "hibernate": "absent" } },
        "outcomes": [{ "object": "a/x", "action": "CreatePod", "status": 429, "retryAfterSeconds": 7, "body": "slow down" }],
    }));
    let text = format!("{}\n{seen}", set("a", "x"));
    let ran = run(&["explain", "-f", "-"], text.as_bytes());
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    insta::assert_snapshot!(ran.out);
}

/// An answer without words is told without an empty pair of brackets.
#[test]
fn an_answer_without_words_is_told_by_what_came() {
    let created = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "namespace": "a", "name": "x-0", "uid": "u", "resourceVersion": "42" } });
    let seen = observation(json!({ "outcomes": [
        { "object": "a/x", "action": "CreatePod", "status": 201, "body": created },
        { "object": "a/x", "action": "ProbeSnapshot", "status": 404 },
        { "object": "a/x", "action": "DeletePod", "status": 403 },
        { "object": "a/x", "action": "PatchStatus", "status": "timeout" },
    ] }));
    let ran = run(&["explain", "-f", "-"], format!("{}\n{seen}", set("a", "x")).as_bytes());
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    assert!(!ran.out.contains("()"), "{}", ran.out);
    assert!(ran.out.contains("CreatePod x-0: Done (the object as of resourceVersion 42)\n"), "{}", ran.out);
}

#[test]
fn many_objects_begin_with_a_table() {
    let text: String = (0..200).map(|at| format!("{}\n", set("a", &format!("x{at:03}")))).collect();
    let ran = run(&["explain", "-f", "-"], text.as_bytes());
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    let mut lines = ran.out.lines();
    let head: Vec<&str> = lines.next().expect("a head").split_whitespace().collect();
    assert_eq!(head, ["KIND", "NAMESPACE", "NAME", "PHASE", "PODS", "NEXT", "RULE", "PERSON"]);
    let rows: Vec<&str> = lines.by_ref().take_while(|line| !line.is_empty()).collect();
    assert_eq!(rows.len(), 200);
    let cells: Vec<&str> = rows[7].split_whitespace().collect();
    assert_eq!(cells, ["CocoonSet", "a", "x007", "-", "0/0", "ProbeSnapshot", "seat/ask-snapshot", "-"]);
    assert_eq!(lines.next(), Some("CocoonSet a/x000"));
}

/// Far beyond what the YAML parser takes by default.
#[test]
fn a_large_dump_is_read() {
    let mut pod = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "namespace": "a", "name": "p",
        "labels": { "cocoonset.cocoonstack.io/name": "x" } }, "spec": { "volumes": [] } });
    pod["spec"]["volumes"] = (0..100_000).map(|at| json!({ "name": format!("v{at}") })).collect();
    let text = format!("---\n{}---\n{}", serde_saphyr::to_string(&pod).expect("YAML"), set("a", "x"));
    let ran = run(&["explain", "-f", "-", "-o", "json"], text.as_bytes());
    assert_eq!(ran.code, 0, "{}", ran.err);
}

/// The YAML blocks of the pages are read as they stand.
#[test]
fn the_examples_of_the_pages_work() {
    for page in ["docs/explain.md", "docs/observation.md"] {
        let text = std::fs::read_to_string(page).expect("readable");
        let blocks: Vec<&str> =
            text.split("```yaml\n").skip(1).filter_map(|rest| Some(rest.split_once("```")?.0)).collect();
        assert_eq!(blocks.len(), 1, "{page}");
        for block in blocks {
            let input = format!("{}\n---\n{block}", set("netconn-test", "netprobe-b")).replace('…', "x");
            let input = input.replace("checkedAt: \"x\"", "checkedAt: \"2026-08-03T12:00:00Z\"");
            let ran = run(&["explain", "-f", "-", "-o", "json"], input.as_bytes());
            assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{page}");
            let all: Value = serde_json::from_str(&ran.out).expect("JSON");
            assert_eq!(all[0]["outcomes"].as_array().map(Vec::len), Some(1), "{page}");
        }
    }
}

/// What a refused field is told to be one of is what the page lists.
#[test]
fn the_page_lists_every_field_that_is_read() {
    let page = std::fs::read_to_string("docs/observation.md").expect("readable");
    let odd = json!({ "zzzzzz": 1 });
    let memory = |fields: Value| json!({ "memory": { "a/x": fields } });
    for fields in [
        odd.clone(),
        json!({ "snapshots": { "v": { "latest": odd } } }),
        json!({ "outcomes": [odd] }),
        memory(odd.clone()),
        memory(json!({ "attempts": [odd] })),
        memory(json!({ "namespaceRefusal": odd })),
        memory(json!({ "vanished": { "p": odd } })),
        memory(json!({ "watched": { "p": odd } })),
        memory(json!({ "foreign": { "p": odd } })),
        memory(json!({ "foreign": { "p": { "ageSeconds": 1, "owner": odd } } })),
        memory(json!({ "error": odd })),
    ] {
        let ran = run(&["explain", "-f", "-"], format!("{}\n{}", set("a", "x"), observation(fields)).as_bytes());
        let (_, fields) = ran.err.trim().split_once("zzzzzz: unknown field; expected one of ").expect("a refusal");
        for field in fields.split(", ").filter(|field| !["apiVersion", "kind", "metadata"].contains(field)) {
            let told = page.contains(&format!("`{field}`")) || page.contains(&format!("## {field}\n"));
            assert!(told || page.contains(&format!("\n{field}: ")), "docs/observation.md does not speak of {field}");
        }
    }
}

/// Types that the schema would refuse are facts about the object, not about the file.
#[test]
fn an_object_that_does_not_fit_its_schema_is_explained_all_the_same() {
    for fields in [
        json!({ "spec": [], "status": "gone" }),
        json!({ "spec": { "agent": { "image": 7, "replicas": "many" }, "toolboxes": {} } }),
        json!({ "spec": { "agent": { "image": "a", "replicas": i64::MAX } } }),
    ] {
        let mut object = set("a", "x");
        for (key, value) in fields.as_object().expect("a mapping") {
            object[key] = value.clone();
        }
        let ran = run(
            &["explain", "-f", "-"],
            format!("{object}\n{}", observation(json!({ "now": "2026-08-03T12:00:00Z" }))).as_bytes(),
        );
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{fields}");
        assert!(ran.out.contains("CocoonSet a/x"), "{fields}");
    }
}

#[test]
fn facts_about_one_set_are_not_taken_for_facts_about_another() {
    let seen = observation(json!({ "snapshots": { "vk-a-x-0": { "hibernate": "absent" } } }));
    let all = explained(&[set("a", "x"), set("a", "x-y"), set("b", "x"), seen]);
    let probes: Vec<bool> = all.iter().map(|one| actions(one).contains(&"ProbeSnapshot")).collect();
    assert_eq!(probes, [false, true, true]);
}

#[test]
fn a_spec_that_does_not_read_is_told_first_and_needs_somebody() {
    for (spec, told) in [
        (json!(5), "spec: "),
        (json!({ "agent": { "image": "registry.example/agent:1", "replicas": "abc" } }), "spec.agent.replicas"),
    ] {
        for deleting in [false, true] {
            let mut odd = set("a", "x");
            odd["spec"] = spec.clone();
            if deleting {
                odd["metadata"]["deletionTimestamp"] = json!("2026-08-03T12:00:00Z");
            }
            let ran = run(&["explain", "-f", "-"], odd.to_string().as_bytes());
            let first = ran.out.lines().next().unwrap_or_default();
            assert!(first.starts_with("CocoonSet a/x: InvalidSpec: ") && first.contains(told), "{}", ran.out);
            assert!(!ran.out.contains("needs nobody"), "{}", ran.out);
        }
    }
}
