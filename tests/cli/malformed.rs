//! What cannot be read: exit 2, nothing on stdout, and one message that says where, what, and what is expected.

use super::{observation, run, set};
use serde_json::{Value, json};

fn refused(name: &str, input: &[u8], told: &[&str]) {
    let ran = run(&["explain", "-f", "-"], input);
    assert_eq!(ran.code, 2, "{name}: {}{}", ran.out, ran.err);
    assert_eq!(ran.out, "", "{name}");
    assert_eq!(ran.err.lines().count(), 1, "{name}: one message:\n{}", ran.err);
    for part in told.iter().chain(&["stdin", "expected"]) {
        assert!(ran.err.contains(part), "{name}: no {part:?} in: {}", ran.err);
    }
}

#[test]
fn text_that_is_neither_yaml_nor_json() {
    let cases: &[(&str, &[u8], &[&str])] = &[
        ("nothing at all", b"", &["no document"]),
        ("only comments", b"# nothing\n---\n", &["no document"]),
        ("a bracket left open", b"kind: [a\nb: 1", &["line "]),
        ("a tab as indentation", b"metadata:\n\tname: x\n", &["line 2"]),
        ("a key twice", b"kind: Pod\nkind: Pod\n", &["line 2", "kind"]),
        ("a colon too many", b"a: b: c\n", &["line 1"]),
        ("an anchor that holds itself", b"a: &x [*x]\n", &["line 1"]),
        ("an anchor that is not there", b"a: *x\n", &["line 1"]),
        ("JSON cut short", b"{\"kind\": \"CocoonSet\",\n \"metadata\": {", &["document 1", "line 2", "JSON"]),
        ("JSON with a stray word", b"{\"kind\": nope}x{", &["JSON"]),
        (
            "the second document broken",
            b"{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\"}\n{\"a\":",
            &["document 2", "line 2"],
        ),
        ("no UTF-8", b"kind: CocoonSet\nname: \xff\xfe\n", &["line 2", "UTF-8"]),
        ("UTF-16", b"\xff\xfek\0i\0n\0d\0", &["line 1", "UTF-8"]),
        ("a page of HTML", b"<html>\n<body>401</body></html>", &["document 1"]),
        ("an error message", b"error: the server doesn't have a resource type \"cocoonsets\"\n", &["kind"]),
    ];
    for (name, input, told) in cases {
        refused(name, input, told);
    }
}

#[test]
fn documents_that_are_no_objects() {
    let mut wrong_version = set("a", "x");
    wrong_version["apiVersion"] = json!("cocoonset.cocoonstack.io/v2");
    let twin = |name: &str| {
        let mut twin = set("a", name);
        twin["metadata"]["uid"] = json!("the-same");
        twin
    };
    let cases: &[(&str, Value, &[&str])] = &[
        ("a list", json!([1]), &["document 1 (line 1)", "a mapping", "a list"]),
        ("a number", json!(5), &["document 1", "found 5"]),
        ("no kind", json!({ "apiVersion": "v1" }), &["kind", "found nothing"]),
        ("a kind that is no text", json!({ "apiVersion": "v1", "kind": 7 }), &["kind", "found 7"]),
        ("no apiVersion", json!({ "kind": "CocoonSet" }), &["apiVersion", "found nothing"]),
        ("another version", wrong_version, &["apiVersion", "cocoonset.cocoonstack.io/v1", "v2"]),
        ("no metadata", json!({ "apiVersion": "v1", "kind": "Pod" }), &["metadata", "found nothing"]),
        ("metadata is a list", json!({ "apiVersion": "v1", "kind": "Pod", "metadata": [] }), &["metadata", "a list"]),
        ("no name", json!({ "apiVersion": "v1", "kind": "Node", "metadata": {} }), &["metadata.name"]),
        ("a list without items", json!({ "apiVersion": "v1", "kind": "List" }), &["items", "a list of objects"]),
        ("items that are none", json!({ "apiVersion": "v1", "kind": "List", "items": {} }), &["items", "a mapping"]),
        ("an item that is none", json!({ "apiVersion": "v1", "kind": "List", "items": [null] }), &["items[0]"]),
        (
            "an item without a name",
            json!({ "apiVersion": "v1", "kind": "PodList", "items": [{ "metadata": { "namespace": "a" } }] }),
            &["items[0].metadata.name"],
        ),
        (
            "two sets of one uid",
            json!({ "apiVersion": "v1", "kind": "List", "items": [twin("x"), twin("y")] }),
            &["metadata.uid", "a/x", "a/y"],
        ),
    ];
    for (name, input, told) in cases {
        let told: Vec<&str> = told.to_vec();
        let ran = run(&["explain", "-f", "-"], input.to_string().as_bytes());
        assert_eq!((ran.code, ran.out.as_str(), ran.err.lines().count()), (2, "", 1), "{name}: {}", ran.err);
        for part in told.iter().chain(&["expected"]) {
            assert!(ran.err.contains(part), "{name}: no {part:?} in: {}", ran.err);
        }
    }
}

/// Each with a set before it, so that the Observation is the second document.
fn refused_observations(cases: Vec<(&str, Value, &[&str])>) {
    for (name, fields, told) in cases {
        let input = format!("{}\n{}", set("a", "x"), observation(fields));
        refused(name, input.as_bytes(), &[told, &["document 2 (line 2)"]].concat());
    }
}

#[test]
fn observations_whose_fields_do_not_read() {
    refused_observations(vec![
        ("an unknown field", json!({ "outcome": [] }), &["outcome", "did you mean outcomes?"]),
        ("a time that is none", json!({ "now": "yesterday" }), &["now", "2026-08-03T12:03:00Z", "yesterday"]),
        ("snapshots as a list", json!({ "snapshots": [] }), &["snapshots", "a mapping of VM names"]),
        (
            "an unknown tag",
            json!({ "snapshots": { "v": { "lastest": "absent" } } }),
            &["snapshots.v.lastest", "latest?"],
        ),
        (
            "an unknown word",
            json!({ "snapshots": { "v": { "latest": "gone" } } }),
            &["snapshots.v.latest", "absent", "gone"],
        ),
        (
            "an unknown part",
            json!({ "snapshots": { "v": { "latest": { "digset": "x" } } } }),
            &["latest.digset", "digest?"],
        ),
        (
            "a check at no time",
            json!({ "snapshots": { "v": { "latest": { "checkedAt": 7 } } } }),
            &["latest.checkedAt"],
        ),
    ]);
}

#[test]
fn outcomes_of_nothing_or_of_something_else() {
    let outcome = |fields: Value| {
        let mut outcome = json!({ "object": "a/x", "action": "CreatePod", "status": 403 });
        for (key, value) in fields.as_object().expect("a mapping") {
            outcome[key] = value.clone();
        }
        json!({ "outcomes": [outcome] })
    };
    refused_observations(vec![
        ("outcomes as a mapping", json!({ "outcomes": {} }), &["outcomes", "a list"]),
        ("an outcome of no object", json!({ "outcomes": [{ "action": "Stop" }] }), &["outcomes[0].object"]),
        ("an object without a namespace", outcome(json!({ "object": "x" })), &["outcomes[0].object", "NAMESPACE/NAME"]),
        ("an object that is not there", outcome(json!({ "object": "a/y" })), &["outcomes[0].object", "a/y"]),
        ("a kind of something else", outcome(json!({ "kind": "Pod" })), &["outcomes[0].kind", "CocoonHibernation"]),
        ("no request of that kind", outcome(json!({ "kind": "CocoonHibernation" })), &["CocoonHibernation a/x"]),
        (
            "an unknown action",
            outcome(json!({ "action": "CreatPod" })),
            &["outcomes[0].action", "did you mean CreatePod?"],
        ),
        ("an action without an answer", outcome(json!({ "action": "Await" })), &["outcomes[0].action", "no outcome"]),
        ("a status that is none", outcome(json!({ "status": "403" })), &["outcomes[0].status", "timeout"]),
        ("a status out of bounds", outcome(json!({ "status": 999 })), &["outcomes[0].status", "100 to 599", "999"]),
        ("a negative wait", outcome(json!({ "retryAfterSeconds": -1 })), &["outcomes[0].retryAfterSeconds", "-1"]),
        ("a read of nothing", outcome(json!({ "action": "ReadLive" })), &["outcomes[0].target", "pod/NAME"]),
        (
            "a read of another",
            outcome(json!({ "action": "ReadLive", "target": "cocoonset/y" })),
            &["target", "cocoonset/x"],
        ),
        (
            "a target of an own write",
            outcome(json!({ "action": "PatchStatus", "target": "x" })),
            &["target", "no target"],
        ),
        (
            "a tag that is none",
            outcome(json!({ "action": "ProbeSnapshot", "target": "v" })),
            &["target", "VM:hibernate"],
        ),
    ]);
}

#[test]
fn memory_that_nobody_could_have() {
    let attempt = |fields: Value| json!({ "memory": { "a/x": { "attempts": [fields] } } });
    refused_observations(vec![
        ("memory of nobody", json!({ "memory": { "x": {} } }), &["memory.x", "NAMESPACE/NAME"]),
        ("memory of another", json!({ "memory": { "a/y": {} } }), &["memory.a/y", "no such CocoonSet"]),
        ("an unknown memory", json!({ "memory": { "a/x": { "atempts": [] } } }), &["memory.a/x.atempts", "attempts?"]),
        ("an attempt of no class", attempt(json!({ "action": "CreatePod", "ageSeconds": 1 })), &["attempts[0].class"]),
        (
            "an unknown class",
            attempt(json!({ "action": "CreatePod", "ageSeconds": 1, "class": "Quota" })),
            &["attempts[0].class", "QuotaExceeded"],
        ),
        (
            "an attempt of no age",
            attempt(json!({ "action": "CreatePod", "class": "Done" })),
            &["attempts[0].ageSeconds"],
        ),
        (
            "an age of years",
            json!({ "memory": { "a/x": { "lastStatusAgeSeconds": 1e9 } } }),
            &["memory.a/x.lastStatusAgeSeconds", "2592000"],
        ),
        (
            "a flag that is none",
            json!({ "memory": { "a/x": { "nodeNamesPruned": "yes" } } }),
            &["nodeNamesPruned", "true"],
        ),
    ]);
}

#[test]
fn one_observation_is_the_most_and_of_one_version() {
    let one = observation(json!({}));
    refused("two", format!("{one}\n{one}").as_bytes(), &["document 2", "second", "document 1"]);
    let mut other = observation(json!({}));
    other["apiVersion"] = json!("v1");
    refused(
        "another version",
        other.to_string().as_bytes(),
        &["apiVersion", "debug.cocoonset.cocoonstack.io/v1alpha1"],
    );
}

#[test]
fn files_that_cannot_be_read_are_named() {
    for file in ["tests/cli/data/not-there.yaml", "tests/cli/data"] {
        let ran = run(&["explain", "-f", file], b"");
        assert_eq!((ran.code, ran.out.as_str(), ran.err.lines().count()), (2, "", 1), "{}", ran.err);
        assert!(ran.err.starts_with(file) && ran.err.contains("expected"), "{}", ran.err);
    }
    let twice = run(&["explain", "-f", "-", "-f", "-"], b"");
    assert_eq!((twice.code, twice.err.lines().count()), (2, 1), "{}", twice.err);
}

/// What is wrong and what to do, in words of whoever wrote the file: no parser's, and the place once.
#[test]
fn a_misfit_is_told_once_and_in_plain_words() {
    for (text, told) in [
        (
            "kind: Pod\nkind: Pod\n",
            "stdin, document 1 (line 2, column 1): no YAML: the key kind twice; expected each key once",
        ),
        (
            "a: b: c\n",
            "stdin, document 1 (line 1, column 5): no YAML: a colon where no key can end; expected quotes around text that holds a colon",
        ),
        (
            "a: 1\n---\nb:\n  - x\n c: d\n",
            "stdin, document 2 (line 5, column 2): no YAML: a line that does not line up with the keys above; expected the same indentation for all keys",
        ),
        (
            "a:\n\tb: c\n",
            "stdin, document 1 (line 2, column 2): no YAML: a tab where spaces have to be; expected spaces",
        ),
        (
            "a: \"x\n",
            "stdin, document 1 (line 1, column 4): no YAML: a quote that is never closed; expected a quote at the end of the text",
        ),
        (
            "a: {b: c\n",
            "stdin, document 1 (line 1, column 4): no YAML: a bracket that is never closed; expected a ] or } for every [ or {",
        ),
        (
            "a: *x\n",
            "stdin, document 1 (line 1, column 4): no YAML: an alias of an anchor that is not there; expected the anchor &NAME before the alias *NAME",
        ),
        (
            "@a: b\n",
            "stdin, document 1 (line 1, column 1): no YAML: a character that no text can begin with unquoted; expected quotes around the text",
        ),
        ("{\"a\" 1}", "stdin, document 1 (line 1, column 6): no JSON: a key without a colon; expected \"KEY\": VALUE"),
        (
            "{\"a\":\n[\"x\" 1]}",
            "stdin, document 1 (line 2, column 6): no JSON: no comma between two entries; expected a comma, or a closing bracket",
        ),
    ] {
        let ran = run(&["explain", "-f", "-"], text.as_bytes());
        assert_eq!((ran.code, ran.err.trim_end()), (2, told), "{text}");
    }
}

/// Whatever is wrong with a text, no word of a library shows.
#[test]
fn no_parser_shows_through() {
    let broken = [
        "a: [b",
        "a: ]",
        "- a\nb: c",
        "a: b\n- c",
        "a: 'x",
        "a: \"\\q\"",
        "a: \"\\ud800\"",
        "a: |x\n b",
        "%YAML 3\n---\na: b",
        "%FOO\n",
        "a: !!binary x",
        "a: !<x",
        "a: &",
        "a: *",
        "? a\n? b",
        "a: 1e999",
        "a: .nan",
        "<<: [1]",
        "a: b\n...\nc",
        "`a`",
        "a: {b: c, d",
        "a: [b, {c]",
        "a: #x\n#y\n -",
        "a:\n- b\n c",
        "key\nkey2: x",
        "{\"a\": nul}",
        "{\"a\": 01}",
        "{\"a\":\"\\x\"}",
        "{\"a\":1,}",
        "[1,]",
        "{\"a\"",
        "{1:2,",
        "{\"a\":1}}",
        "---\n--- x: y\n- z",
        "a: @b",
        "a: %b",
        "a:\tb\n\tc: d",
    ];
    let words = [
        "scalar",
        "token",
        "flow",
        "block",
        "simple key",
        "did not find",
        "while parsing",
        "while scanning",
        "serde",
        "EOF",
        "mapping start",
        "Options",
        "budget",
        "variant",
        "at line",
        "policy",
    ];
    for text in broken {
        let ran = run(&["explain", "-f", "-"], text.as_bytes());
        let found = words.iter().find(|word| ran.err.contains(*word));
        assert_eq!(found, None, "{text:?}: {}", ran.err);
        assert!(ran.code != 2 || ran.err.contains("expected"), "{text:?}: {}", ran.err);
    }
}

#[test]
fn what_is_given_twice_is_said_with_its_places() {
    let one = set("a", "x");
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": [one, set("a", "y")] });
    let ran = run(&["explain", "-f", "-", "-o", "json"], format!("{one}\n---\n{list}").as_bytes());
    assert_eq!(ran.code, 0, "{}", ran.err);
    let notes: Vec<&str> = ran.err.lines().collect();
    assert_eq!(notes.len(), 1, "{notes:?}");
    let told = "cocoonsets a/x is given 2 times: stdin, document 1 (line 1); stdin, document 2 (line 3): items[0];";
    assert!(notes[0].contains(told), "{}", notes[0]);
}

/// A fault in the second file is not blamed on the first.
#[test]
fn the_file_at_fault_is_named() {
    let ran = run(&["explain", "-f", "tests/cli/data/kubectl-list.yaml", "-f", "-"], b"kind: Pod\n");
    assert_eq!(ran.code, 2);
    assert!(ran.err.starts_with("stdin, document 1 (line 1): apiVersion"), "{}", ran.err);
}

/// Depth, breadth and size that no parser should be led into.
#[test]
fn what_would_exhaust_a_parser_is_refused() {
    let bomb: String = "bcdefghi"
        .chars()
        .zip("abcdefgh".chars())
        .map(|(name, of)| format!("{name}: &{name} [{}]\n", vec![format!("*{of}"); 9].join(",")))
        .collect();
    let cases = [
        ("JSON lists in lists", "[".repeat(100_000)),
        ("JSON mappings in mappings", "{\"a\":".repeat(100_000)),
        ("YAML lists in lists", format!("a: {}", "[".repeat(100_000))),
        ("YAML mappings in mappings", (0..3_000).map(|at| format!("{}a:\n", " ".repeat(at))).collect()),
        ("aliases of aliases", format!("a: &a [x, x]\n{bomb}")),
        ("a number beyond all", "{\"a\": 1e999}".to_owned()),
    ];
    for (name, text) in &cases {
        refused(name, text.as_bytes(), &["line "]);
    }
}

#[test]
fn metadata_that_no_server_returns() {
    let cases = [
        ("finalizers", json!("x"), "metadata.finalizers: expected a list"),
        ("finalizers", json!([1]), "metadata.finalizers[0]: expected the name of a finalizer, found 1"),
        ("annotations", json!({ "a": 1 }), "metadata.annotations.a: expected text"),
        ("annotations", json!(7), "metadata.annotations: expected a mapping"),
        ("labels", json!({ "slot": 0 }), "metadata.labels.slot: expected text"),
        ("labels", json!([]), "metadata.labels: expected a mapping"),
        ("ownerReferences", json!({}), "metadata.ownerReferences: expected a list"),
        ("ownerReferences", json!(["demo"]), "metadata.ownerReferences[0]: expected a mapping"),
        ("ownerReferences", json!([{ "kind": "CocoonSet", "name": "x" }]), "ownerReferences[0].uid: expected its uid"),
        (
            "ownerReferences",
            json!([{ "kind": "CocoonSet", "name": "x", "uid": "u", "controller": "yes" }]),
            "ownerReferences[0].controller: expected true or false",
        ),
        ("uid", json!(7), "metadata.uid: expected text, found 7"),
        ("generation", json!("2"), "metadata.generation: expected a whole number"),
        ("creationTimestamp", json!(5), "metadata.creationTimestamp: expected a time"),
        ("deletionTimestamp", json!("soon"), "metadata.deletionTimestamp: expected a time"),
    ];
    for (key, value, told) in cases {
        let mut object = set("a", "x");
        object["metadata"][key] = value;
        let input = format!("{}\n{object}", set("a", "first"));
        refused(key, input.as_bytes(), &["document 2", told]);
    }
}

#[test]
fn times_that_are_far_out() {
    for now in ["9999-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "1200-01-01T00:00:00Z", "2200-01-01T00:00:00Z"] {
        let input = format!("{}\n{}", set("a", "x"), observation(json!({ "now": now })));
        refused(now, input.as_bytes(), &["document 2", "now: expected a time", "from the year 1970 to 2199", now]);
    }
}
