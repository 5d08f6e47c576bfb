//! The command line as scripts see it: the built program, its exit codes, stdout and stderr.

mod explain;
#[path = "../facts_common/mod.rs"]
mod facts_common;
mod malformed;
mod outcomes;
mod remembered;
#[cfg(feature = "sim")]
mod replay;
mod rules;
mod usage;

use serde_json::{Value, json};
use std::io::Write;
use std::process::{Command, Stdio};

/// What a call left behind.
struct Ran {
    code: i32,
    out: String,
    err: String,
}

fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cocoon-operator"));
    command.current_dir(env!("CARGO_MANIFEST_DIR"));
    command
}

fn run(args: &[&str], stdin: &[u8]) -> Ran {
    let mut command = program();
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("starts");
    let mut input = child.stdin.take().expect("stdin");
    let bytes = stdin.to_vec();
    // A program that reads none of it closes the pipe: that is its business.
    let writer = std::thread::spawn(move || drop(input.write_all(&bytes)));
    let output = child.wait_with_output().expect("ends");
    writer.join().expect("writes");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    Ran { code: output.status.code().expect("a code"), out: text(output.stdout), err: text(output.stderr) }
}

/// Elements of `explain -f - -o json` on these documents.
fn explained(documents: &[Value]) -> Vec<Value> {
    let text: Vec<String> = documents.iter().map(Value::to_string).collect();
    let ran = run(&["explain", "-f", "-", "-o", "json"], text.join("\n---\n").as_bytes());
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{}", ran.out);
    serde_json::from_str::<Value>(&ran.out).expect("JSON").as_array().expect("an array").clone()
}

/// The names of the actions of one element.
fn actions(element: &Value) -> Vec<&str> {
    element["actions"].as_array().expect("actions").iter().map(|a| a["action"].as_str().expect("a name")).collect()
}

fn rules_of(element: &Value) -> Vec<&str> {
    element["actions"].as_array().expect("actions").iter().map(|a| a["rule"].as_str().expect("a rule")).collect()
}

/// A set as the API server returns it, claimed, with a main agent and nothing else.
fn set(namespace: &str, name: &str) -> Value {
    json!({
        "apiVersion": "cocoonset.cocoonstack.io/v1", "kind": "CocoonSet",
        "metadata": {
            "namespace": namespace, "name": name, "uid": format!("uid-of-{namespace}-{name}"), "generation": 1,
            "resourceVersion": "41", "creationTimestamp": "2026-08-03T11:00:00Z",
            "finalizers": ["cocoonset.cocoonstack.io/finalizer"],
        },
        "spec": { "agent": { "image": "registry.example/agent:1" } },
    })
}

fn observation(mut fields: Value) -> Value {
    fields["apiVersion"] = json!("debug.cocoonset.cocoonstack.io/v1alpha1");
    fields["kind"] = json!("Observation");
    fields
}

fn namespace(name: &str, terminating: bool) -> Value {
    let mut object = json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name, "uid": format!("uid-of-{name}") },
        "status": { "phase": "Active" },
    });
    if terminating {
        object["metadata"]["deletionTimestamp"] = json!("2026-08-03T12:02:55Z");
        object["status"]["phase"] = json!("Terminating");
    }
    object
}
