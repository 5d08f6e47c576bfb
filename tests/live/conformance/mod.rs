//! Conformance of the simulated API server: one script of calls is sent to it and to a real one, and every answer is
//! compared. A difference is a fault of the simulated one, or stands in `known.rs` with its reason.

mod call;
mod kinds;
mod known;
mod lives;
mod normal;
mod places;
mod player;
mod report;
mod schemas;
mod watches;

use crate::plane::ControlPlane;
use crate::plane::certs::Fault;
use call::Call;
use cocoon_operator::sim::server::Cluster;
use cocoon_operator::sim::world::World;
use player::Player;
use report::{Compared, Report};
use serde_json::{Value, json};
use std::time::Duration;

/// Calls that belong together, in a namespace of their own.
pub struct Case {
    name: String,
    steps: Vec<Step>,
}

/// One step of a case.
pub enum Step {
    /// A call and its answer.
    Call(Call),
    /// What a watch shows while calls are made.
    Watch { title: String, path: String, calls: Vec<Call> },
}

impl Case {
    fn new(name: impl Into<String>, calls: Vec<Call>) -> Self {
        Self { name: name.into(), steps: calls.into_iter().map(Step::Call).collect() }
    }
}

/// A watch that shows nothing for so long has shown everything.
const QUIET: Duration = Duration::from_millis(600);

fn cases() -> Vec<Case> {
    [lives::cases(), schemas::cases(), places::cases(), watches::cases()].into_iter().flatten().collect()
}

/// Plays everything against both; the report says what differs.
pub fn run(plane: &ControlPlane) -> Result<Report, Fault> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let real = plane.client(&plane.admin()).await?;
        let mut report = Report::default();
        for case in cases() {
            let compared = play(&case, real.clone()).await.map_err(|error| format!("{}: {error}", case.name))?;
            report.add(compared);
        }
        Ok(report)
    })
}

async fn play(case: &Case, real: kube::Client) -> Result<Vec<Compared>, Fault> {
    let namespace = format!("conform-{}", case.name);
    let cluster = Cluster::new(World::new(jiff::Timestamp::now()));
    let driver = tokio::spawn({
        let cluster = cluster.clone();
        async move { cluster.drive().await }
    });
    let mut ours = Player::new(cluster.client("admin", "default"), &namespace);
    let mut theirs = Player::new(real, &namespace);
    let mut compared = Vec::new();
    for setup in [
        call::post(
            "/api/v1/namespaces",
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}),
        ),
        call::get("/api/v1/namespaces/{ns}/serviceaccounts/default").once(
            "/api/v1/namespaces/{ns}/serviceaccounts/default",
            "/metadata/name",
            json!("default"),
        ),
    ] {
        ours.play(&setup).await?;
        theirs.play(&setup).await?;
    }
    for step in &case.steps {
        let (place, here, there) = match step {
            Step::Call(call) => {
                let here = ours.play(call).await.map_err(|error| format!("simulated: {}: {error}", call.title))?;
                let there = theirs.play(call).await.map_err(|error| format!("real: {}: {error}", call.title))?;
                let place = format!("{} ({} {})", call.title, call.method, call.path);
                (place, ours.names.answer(&here), theirs.names.answer(&there))
            }
            Step::Watch { title, path, calls } => {
                let here =
                    watched(&mut ours, path, calls).await.map_err(|error| format!("simulated: {title}: {error}"))?;
                let there =
                    watched(&mut theirs, path, calls).await.map_err(|error| format!("real: {title}: {error}"))?;
                (format!("watch: {title} ({path})"), here, there)
            }
        };
        compared.push(Compared::of(&format!("{}: {place}", case.name), &here, &there));
    }
    theirs.play(&call::delete("/api/v1/namespaces/{ns}")).await?;
    driver.abort();
    Ok(compared)
}

async fn watched(player: &mut Player, path: &str, calls: &[Call]) -> Result<Value, Fault> {
    let (answer, events) = player.watch(path, calls, QUIET).await?;
    let answer = player.names.answer(&answer);
    let events: Vec<Value> = events.iter().map(|event| player.names.event(event)).collect();
    Ok(json!({ "answer": answer, "events": events }))
}

/// Where two answers differ, as pointers.
pub fn differences(here: &Value, there: &Value) -> Vec<String> {
    let mut found = Vec::new();
    compare("", here, there, &mut found);
    found
}

fn compare(at: &str, here: &Value, there: &Value, found: &mut Vec<String>) {
    match (here, there) {
        (Value::Object(left), Value::Object(right)) => {
            let keys: std::collections::BTreeSet<&String> = left.keys().chain(right.keys()).collect();
            for key in keys {
                let absent = Value::Null;
                let (one, other) = (left.get(key).unwrap_or(&absent), right.get(key).unwrap_or(&absent));
                compare(&format!("{at}/{}", key.replace('/', "~1")), one, other, found);
            }
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            for (index, (one, other)) in left.iter().zip(right).enumerate() {
                compare(&format!("{at}/{index}"), one, other, found);
            }
        }
        (one, other) if one == other => {}
        (one, other) => found.push(format!("{at}: simulated {one}, real {other}")),
    }
}
