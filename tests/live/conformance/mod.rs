//! Conformance of the simulated API server: one script of calls is sent to it and to a real one, and every answer is
//! compared. A difference is a fault of the simulated one, or stands in `known.rs` with its reason. What the real one
//! answered is on record, so that the comparison needs a real one only to renew it.

pub mod call;
mod faces;
mod kinds;
mod known;
mod lives;
mod normal;
mod places;
pub mod player;
pub mod report;
mod schemas;
mod watches;

use call::Call;
use cocoon_operator::sim::server::Cluster;
use cocoon_operator::sim::world::World;
use player::Player;
use report::Said;
use serde_json::{Value, json};

/// Why a script could not be played.
pub type Fault = Box<dyn std::error::Error + Send + Sync>;

/// Calls that belong together, in a namespace of their own.
pub struct Case {
    pub name: String,
    steps: Vec<Step>,
}

/// One step of a case.
pub enum Step {
    /// A call and its answer.
    Call(Call),
    /// What a watch shows while calls are made.
    Watch { title: String, path: String, calls: Vec<Call>, end: End },
}

/// How it is known that a watch has shown everything. Events come in the order of versions, so that no time has to be
/// waited for.
pub enum End {
    /// It shows this write, which is made last.
    Seen(Box<Call>),
    /// It says that what was there at the beginning has been shown.
    Listed,
    /// The server ends it, or does not open it.
    Closed,
}

impl Case {
    fn new(name: impl Into<String>, calls: Vec<Call>) -> Self {
        Self { name: name.into(), steps: calls.into_iter().map(Step::Call).collect() }
    }
}

/// The whole script.
pub fn cases() -> Vec<Case> {
    [lives::cases(), schemas::cases(), places::cases(), watches::cases(), faces::cases()]
        .into_iter()
        .flatten()
        .collect()
}

/// Plays these cases against a fresh simulated cluster each, on a clock that does not wait. `client` makes a client of a
/// cluster.
pub fn play_simulated(cases: &[Case], client: impl Fn(&Cluster) -> kube::Client) -> Result<Said, Fault> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build()?;
    runtime.block_on(async {
        let mut said = Said::new();
        for case in cases {
            let cluster = Cluster::new(World::new(jiff::Timestamp::now()));
            let driver = tokio::spawn({
                let cluster = cluster.clone();
                async move { cluster.drive().await }
            });
            let played = play_case(case, client(&cluster)).await;
            driver.abort();
            said.extend(played.map_err(|error| format!("{}: {error}", case.name))?);
        }
        Ok(said)
    })
}

/// Plays one case against the server behind this client.
pub async fn play_case(case: &Case, client: kube::Client) -> Result<Said, Fault> {
    let namespace = format!("conform-{}", case.name);
    let mut player = Player::new(client, &namespace);
    let account = "/api/v1/namespaces/{ns}/serviceaccounts/default";
    let own = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
    player.play(&call::post("/api/v1/namespaces", own)).await?;
    player.play(&call::get(account).once(account, "/metadata/name", json!("default"))).await?;
    let mut said = Said::new();
    for (index, step) in case.steps.iter().enumerate() {
        let (place, answer) = match step {
            Step::Call(call) => {
                let answer = player.play(call).await.map_err(|error| format!("{}: {error}", call.title))?;
                (format!("{} ({} {})", call.title, call.method, call.path), player.names.answer(&answer))
            }
            Step::Watch { title, path, calls, end } => {
                let answer =
                    watched(&mut player, path, calls, end).await.map_err(|error| format!("{title}: {error}"))?;
                (format!("watch: {title} ({path})"), answer)
            }
        };
        said.push((format!("{} {index}: {place}", case.name), answer));
    }
    player.play(&call::delete("/api/v1/namespaces/{ns}")).await?;
    Ok(said)
}

async fn watched(player: &mut Player, path: &str, calls: &[Call], end: &End) -> Result<Value, Fault> {
    let (answer, events) = player.watch(path, calls, end).await?;
    let answer = player.names.answer(&answer);
    // A bookmark on the way comes when it comes; the one that ends the list is marked.
    let timely =
        |event: &&Value| event["type"] != "BOOKMARK" || event.pointer("/object/metadata/annotations").is_some();
    let events: Vec<Value> = events.iter().filter(timely).map(|event| player.names.event(event)).collect();
    Ok(json!({ "answer": answer, "events": events }))
}
