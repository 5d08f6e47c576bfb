//! The recorded commands, in the order in which they were run on a real cluster.

use crate::binary::{self, Kubectl, Outcome};
use crate::mask::{masked, undescribed};
use crate::served::Served;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

#[derive(Deserialize)]
struct Command {
    name: String,
    args: Vec<String>,
    exit: i32,
    stdout: String,
    stderr: String,
    /// Method, path, status.
    calls: Vec<String>,
}

/// What stands instead of the recorded outcome.
enum Instead {
    /// Not run; what it left behind is made up for by this command.
    Nothing(&'static [&'static str]),
    /// This, exactly.
    Prints { exit: i32, stdout: &'static str },
    /// The recorded document with these changes.
    Edited(fn(&mut Value)),
    /// Lines of the recorded output, and one that holds each of these. Where it is said which are left out, no others
    /// are.
    Fewer { of_our_own: &'static [&'static str], lacks: Option<&'static [&'static str]> },
}

const TOKEN: &[&str] = &[
    "Mounts:",
    "/var/run/secrets/kubernetes.io/serviceaccount from",
    "Volumes:",
    "kube-api-access-",
    "Type: Projected",
    "TokenExpirationSeconds:",
    "ConfigMapName: kube-root-ca.crt",
    "Optional: false",
    "DownwardAPI: true",
];

fn scalable(list: &mut Value) {
    let resources = list["resources"].as_array_mut().expect("resources");
    for resource in resources.iter_mut() {
        resource.as_object_mut().expect("a resource").remove("storageVersionHash");
        if resource["name"] == "cocoonsets" {
            resource["shortNames"].as_array_mut().expect("names").push(json!("cset"));
        }
    }
    let scale = json!({
        "name": "cocoonsets/scale", "singularName": "", "namespaced": true, "group": "autoscaling", "version": "v1",
        "kind": "Scale", "verbs": ["get", "patch", "update"],
    });
    resources.insert(resources.len() - 1, scale);
}

/// Every command that differs, with its reason. There are no others.
fn differences() -> BTreeMap<&'static str, (&'static str, Instead)> {
    let only_ours = "the sandbox serves the kinds that something there needs, and no others";
    let scaled = "the definition of CocoonSet has a scale subresource and the short name cset since";
    BTreeMap::from([
        ("api-resources-cold", (only_ours, Instead::Fewer { of_our_own: &["cs,cocoonsets,cset"], lacks: None })),
        ("api-versions", (only_ours, Instead::Fewer { of_our_own: &[], lacks: None })),
        (
            "describe-pod",
            (
                "no token is mounted into pods: no container runs that could read it",
                Instead::Fewer { of_our_own: &["Mounts: <none>", "Volumes: <none>"], lacks: Some(TOKEN) },
            ),
        ),
        (
            "scale-refused",
            (scaled, Instead::Prints { exit: 0, stdout: "cocoonset.cocoonset.cocoonstack.io/demo scaled\n" }),
        ),
        ("get-raw", (scaled, Instead::Edited(scalable))),
        // Server-side apply is not served. What follows sees the annotation that it wrote.
        (
            "apply-server-side",
            (
                "server-side apply is not served",
                Instead::Nothing(&[
                    "annotate",
                    "--overwrite",
                    "cocoonset",
                    "demo",
                    "-n",
                    "demo",
                    "kubectl.kubernetes.io/last-applied-configuration={\"apiVersion\":\"cocoonset.cocoonstack.io/v1\",\
             \"kind\":\"CocoonSet\",\"metadata\":{\"labels\":{\"team\":\"a\"},\"name\":\"demo\",\"namespace\":\"demo\"},\
             \"spec\":{\"agent\":{\"image\":\"base/ubuntu:24.04\",\"replicas\":3}}}\n",
                ]),
            ),
        ),
    ])
}

#[test]
fn recorded_commands_come_to_the_same() {
    let Some(binary) = binary::find() else { return };
    let served = Served::start();
    let kubectl = Kubectl::new(binary, &served.address);
    let commands: Vec<Command> = serde_json::from_str(include_str!("data/recorded.json")).expect("JSON");
    assert_eq!(commands.len(), 63);
    let differences = differences();
    assert!(differences.keys().all(|name| commands.iter().any(|command| command.name == *name)));
    assert!(differences.len() - 1 <= 5, "server-side apply is left out; five more may differ");
    let mut faults = Vec::new();
    for command in &commands {
        let instead = differences.get(command.name.as_str()).map(|(_, instead)| instead);
        if let Some(Instead::Nothing(stand_in)) = instead {
            let args: Vec<String> = stand_in.iter().map(|arg| (*arg).to_owned()).collect();
            assert_eq!(kubectl.run(&args).exit, 0, "the stand-in for {}", command.name);
            served.take_calls();
            continue;
        }
        let outcome = kubectl.run(&command.args);
        let calls = served.take_calls();
        faults.extend(compare(command, &outcome, instead));
        if !matches!(instead, Some(Instead::Prints { .. })) {
            faults.extend(unanswered(command, &calls));
        }
    }
    assert!(faults.is_empty(), "\n{}", faults.join("\n\n"));
}

fn compare(command: &Command, outcome: &Outcome, instead: Option<&Instead>) -> Option<String> {
    let shown = |text: &str| {
        let text = masked(text);
        if command.name == "explain" { undescribed(&text) } else { text }
    };
    let (exit, got, stderr) = (outcome.exit, shown(&outcome.stdout), shown(&outcome.stderr));
    let want = shown(&command.stdout);
    let same = match instead {
        Some(Instead::Prints { exit: other, stdout }) => exit == *other && got == shown(stdout),
        Some(Instead::Edited(edit)) => {
            let mut document: Value = serde_json::from_str(&command.stdout).expect("JSON");
            edit(&mut document);
            exit == command.exit && serde_json::from_str(&outcome.stdout).ok() == Some(document)
        }
        Some(Instead::Fewer { of_our_own, lacks }) => {
            let missing = |from: &str, to: &str, parts: &[&str]| {
                let known = |line: &&str| to.lines().any(|other| other.trim() == line.trim());
                let lines: Vec<String> = from.lines().filter(|line| !known(line)).map(str::to_owned).collect();
                lines.len() == parts.len() && lines.iter().zip(parts).all(|(line, part)| line.contains(part))
            };
            exit == command.exit
                && missing(&got, &want, of_our_own)
                && lacks.is_none_or(|lacks| missing(&want, &got, lacks))
        }
        Some(Instead::Nothing(_)) | None => exit == command.exit && got == want && stderr == shown(&command.stderr),
    };
    (!same).then(|| {
        format!(
            "{}: kubectl {}\n-- recorded, exit {}\n{want}\n{}\n-- now, exit {exit}\n{got}\n{stderr}",
            command.name,
            command.args.join(" "),
            command.exit,
            shown(&command.stderr),
        )
    })
}

/// Calls that are answered otherwise than they were: refused where the real server did not, or the other way round.
/// What kubectl remembers from earlier commands it does not ask again, so that not every call is there.
fn unanswered(command: &Command, calls: &[String]) -> Option<String> {
    let answered = |call: &str| -> (String, u16) {
        let (asked, status) = call.rsplit_once(' ').expect("a status");
        let status: u16 = status.parse().expect("a number");
        // A copy that is still good is as much as the document.
        (asked.to_owned(), if status == 304 { 200 } else { status })
    };
    let recorded: Vec<(String, u16)> = command.calls.iter().map(|call| answered(call)).collect();
    let strange: Vec<String> = calls
        .iter()
        .map(|call| answered(call))
        .filter(|(asked, status)| {
            let known: Vec<u16> =
                recorded.iter().filter(|(other, _)| other == asked).map(|(_, status)| *status).collect();
            if known.is_empty() { *status >= 400 } else { !known.contains(status) }
        })
        .map(|(asked, status)| format!("{asked}: {status}"))
        .collect();
    (!strange.is_empty()).then(|| format!("{}: calls answered otherwise\n{}", command.name, strange.join("\n")))
}
