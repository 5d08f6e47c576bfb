//! What stories need of a control plane before the first is played: the project's kinds, and an operator who may do what
//! it needs and no more.

use crate::plane::certs::Fault;
use crate::plane::{ControlPlane, connect};
use cocoon_operator::scenario::live::Ground;
use std::path::Path;
use std::process::Command;
use tokio::runtime::Handle;

/// Whom the operator is known as.
pub const OPERATOR: &str = "system:serviceaccount:cocoon-system:cocoon-operator";

/// Prepares the control plane.
pub fn prepare(plane: &ControlPlane, handle: &Handle) -> Result<Ground, Fault> {
    let crds = Path::new(env!("CARGO_MANIFEST_DIR")).join("crds");
    kubectl(plane, &["apply", "-k", &crds.display().to_string()])?;
    for manifest in ["namespace.yaml", "rbac.yaml"] {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy").join(manifest);
        kubectl(plane, &["apply", "-f", &file.display().to_string()])?;
    }
    kubectl(plane, &["wait", "--for=condition=Established", "--timeout=30s", "--all", "crd"])?;
    let operator = plane.kubeconfig(OPERATOR, Some("system:serviceaccounts"))?;
    let right = |kind: &str| -> Result<serde_json::Value, Fault> {
        let right = kubectl(plane, &["-n", "cocoon-system", "get", kind, "cocoon-operator", "-o", "json"])?;
        Ok(serde_json::from_str(&right)?)
    };
    Ok(Ground {
        handle: handle.clone(),
        admin: client(handle, &plane.admin())?,
        operator: client(handle, &operator)?,
        outage: std::sync::Arc::default(),
        rights: [right("role")?, right("rolebinding")?].into(),
    })
}

/// A client with these credentials.
pub fn client(handle: &Handle, kubeconfig: &Path) -> Result<kube::Client, Fault> {
    let _within = handle.enter();
    handle.block_on(connect(kubeconfig))
}

/// Runs kubectl as the administrator; what it says.
pub fn kubectl(plane: &ControlPlane, arguments: &[&str]) -> Result<String, Fault> {
    let output = Command::new(plane.kubectl()).arg("--kubeconfig").arg(plane.admin()).args(arguments).output()?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(format!("kubectl {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr)).into())
}
