//! deploy/: what stands in it fits together, and is what the platform's own operator is known by.

use super::{documents, one, rendered};
use clap::Parser;
use cocoon_operator::cli::{Cli, Command};
use cocoon_operator::core::api::crd::crds;
use serde_json::{Value, json};
use std::path::PathBuf;

/// A kubectl of this machine, where there is one.
fn kubectl() -> Option<PathBuf> {
    let named = std::env::var_os("KUBECTL").map(PathBuf::from);
    let built = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(".cache/control-plane/bin/kubectl");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|directory| directory.join("kubectl"));
    named.into_iter().chain([built]).chain(found).find(|file| file.is_file())
}

fn sorted(mut objects: Vec<Value>) -> Vec<Value> {
    objects.sort_by_key(Value::to_string);
    objects
}

#[test]
fn kubectl_renders_what_this_test_reads() {
    let Some(kubectl) = kubectl() else {
        println!("no kubectl on this machine; the other tests read the files themselves");
        return;
    };
    let output = std::process::Command::new(kubectl)
        .args(["kustomize", "deploy"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert_eq!(sorted(documents(&text)), sorted(rendered("deploy")));
}

#[test]
fn it_is_found_where_the_platforms_operator_was() {
    let all = rendered("deploy");
    let named = |kind: &str, name: &str| {
        let fits = |object: &&Value| object["kind"] == kind && object["metadata"]["name"] == name;
        assert_eq!(all.iter().filter(fits).count(), 1, "{kind} {name}");
    };
    named("Namespace", "cocoon-system");
    for kind in ["ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "Deployment"] {
        named(kind, "cocoon-operator");
    }
    let namespaced = ["ServiceAccount", "Role", "RoleBinding", "Deployment", "Service"];
    for object in all.iter().filter(|object| namespaced.iter().any(|kind| object["kind"] == *kind)) {
        assert_eq!(object["metadata"]["namespace"], "cocoon-system", "{object}");
    }
    let container = &one("Deployment")["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["name"], "manager");
    let image = format!("ghcr.io/cocoonstack/cocoon-operator:{}", env!("CARGO_PKG_VERSION"));
    assert_eq!(container["image"], image, "the version that these manifests belong to");
}

#[test]
fn both_definitions_come_along() {
    let given: Vec<Value> =
        rendered("deploy").into_iter().filter(|object| object["kind"] == "CustomResourceDefinition").collect();
    assert_eq!(sorted(given), sorted(crds().to_vec()));
}

#[test]
fn what_refers_finds_what_it_names() {
    let deployment = one("Deployment");
    let template = &deployment["spec"]["template"];
    let labels = template["metadata"]["labels"].as_object().expect("labels");
    let spread = &template["spec"]["topologySpreadConstraints"][0]["labelSelector"]["matchLabels"];
    for selector in [&deployment["spec"]["selector"]["matchLabels"], &one("Service")["spec"]["selector"], spread] {
        let selector = selector.as_object().expect("a selector");
        assert!(!selector.is_empty());
        selector.iter().for_each(|(key, value)| assert_eq!(labels.get(key), Some(value), "{key}"));
    }
    assert_eq!(template["spec"]["serviceAccountName"], one("ServiceAccount")["metadata"]["name"]);
    for (binding, role) in [("ClusterRoleBinding", "ClusterRole"), ("RoleBinding", "Role")] {
        let binding = one(binding);
        let reference = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": role, "name": "cocoon-operator"});
        assert_eq!(binding["roleRef"], reference);
        let account = json!([{"kind": "ServiceAccount", "name": "cocoon-operator", "namespace": "cocoon-system"}]);
        assert_eq!(binding["subjects"], account);
    }
}

#[test]
fn its_flags_and_ports_are_those_of_run() {
    let deployment = one("Deployment");
    let pod = &deployment["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    let args = container["args"].as_array().expect("args").iter().map(|arg| arg.as_str().expect("text"));
    // The entrypoint of the image says `run`.
    let cli = Cli::try_parse_from(["cocoon-operator", "run"].into_iter().chain(args)).expect("flags of run");
    let Command::Run(options) = cli.command else { panic!("not run") };
    let settings = options.settings().expect("valid");
    let port = |name: &str| {
        let ports = container["ports"].as_array().expect("ports");
        ports.iter().find(|port| port["name"] == name).and_then(|port| port["containerPort"].as_u64()).expect(name)
    };
    assert_eq!(settings.metrics.map(|address| u64::from(address.port)), Some(port("metrics")));
    assert_eq!(settings.probes.map(|address| u64::from(address.port)), Some(port("probe")));
    for (probe, path) in [("livenessProbe", "/healthz"), ("readinessProbe", "/readyz")] {
        assert_eq!(container[probe]["httpGet"], json!({"path": path, "port": "probe"}));
    }
    let service = one("Service");
    assert_eq!(service["spec"]["ports"], json!([{"name": "metrics", "port": 8080, "targetPort": "metrics"}]));
    let grace = pod["terminationGracePeriodSeconds"].as_u64().expect("a number");
    assert!(grace > settings.shutdown_timeout.as_secs(), "it is killed before it has ended");
    assert!(deployment["spec"]["replicas"].as_u64() < Some(2) || settings.election.is_some());
    let known = ["OCI_REGISTRY", "OPERATOR_LOG_LEVEL", "OPERATOR_LOG_FORMAT"];
    let variables = container["env"].as_array().expect("env").iter();
    variables.for_each(|variable| assert!(known.iter().any(|known| variable["name"] == *known), "{variable}"));
}

/// What Pod Security calls restricted, and the file system on top of it.
#[test]
fn it_may_do_nothing_on_its_node() {
    let pod = &one("Deployment")["spec"]["template"]["spec"];
    let context = &pod["securityContext"];
    assert_eq!(
        (&context["runAsNonRoot"], &context["seccompProfile"]["type"]),
        (&json!(true), &json!("RuntimeDefault"))
    );
    let user = super::text("Dockerfile").lines().find_map(|line| line.strip_prefix("USER ").map(str::to_owned));
    let ours = format!("{}:{}", context["runAsUser"], context["runAsGroup"]);
    assert_eq!(user.as_deref(), Some(ours.as_str()), "the image's user");
    for container in pod["containers"].as_array().expect("containers") {
        let context = &container["securityContext"];
        assert_eq!(context["allowPrivilegeEscalation"], false);
        assert_eq!(context["readOnlyRootFilesystem"], true);
        assert_eq!(context["capabilities"], json!({"drop": ["ALL"]}));
        for bound in ["requests", "limits"] {
            assert!(container["resources"][bound]["memory"].is_string(), "{bound}");
        }
    }
    assert!(pod.get("volumes").is_none() && pod.get("hostNetwork").is_none() && pod.get("hostPID").is_none());
    let enforced = &one("Namespace")["metadata"]["labels"]["pod-security.kubernetes.io/enforce"];
    assert_eq!(enforced, "restricted");
}
