//! The script of conformance, played to the real API server and to the simulated one. With `UPDATE_RECORD` set, what
//! the real one says becomes the record that the comparison without a real one goes by.

use crate::conformance::report::{Report, Said};
use crate::conformance::{Case, cases, play_case, play_simulated};
use crate::plane::ControlPlane;
use crate::plane::certs::Fault;
use futures::{StreamExt, TryStreamExt};
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

/// So many cases are played at once.
const SIDE_BY_SIDE: usize = 6;

/// Plays everything against both; the report says what differs.
pub fn run(plane: &ControlPlane) -> Result<Report, Fault> {
    serve_our_kinds(plane)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let script = cases();
    let real = runtime.block_on(async {
        let client = plane.client(&plane.admin()).await?;
        play(&script, &client).await
    })?;
    if std::env::var_os("UPDATE_RECORD").is_some() {
        record(&real)?;
    }
    let simulated = play_simulated(&script, |cluster| cluster.client("admin", "default"))?;
    Ok(Report::of(&simulated, &real))
}

async fn play(cases: &[Case], client: &kube::Client) -> Result<Said, Fault> {
    let played = futures::stream::iter(cases).map(|case| async move {
        play_case(case, client.clone()).await.map_err(|error| Fault::from(format!("{}: {error}", case.name)))
    });
    played.buffered(SIDE_BY_SIDE).try_concat().await
}

fn serve_our_kinds(plane: &ControlPlane) -> Result<(), Fault> {
    let crds = Path::new(env!("CARGO_MANIFEST_DIR")).join("crds").display().to_string();
    for arguments in
        [vec!["apply", "-k", &crds], vec!["wait", "--for=condition=Established", "crd", "--all", "--timeout=30s"]]
    {
        let output = Command::new(plane.kubectl()).arg("--kubeconfig").arg(plane.admin()).args(&arguments).output()?;
        if !output.status.success() {
            return Err(format!("kubectl {arguments:?}: {}", String::from_utf8_lossy(&output.stderr)).into());
        }
    }
    Ok(())
}

/// One line a call, so that a change shows as such.
fn record(said: &Said) -> Result<(), Fault> {
    let mut text = String::new();
    for line in said {
        writeln!(text, "{}", serde_json::to_string(line)?)?;
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance/real.jsonl");
    Ok(std::fs::write(path, text)?)
}
