//! One edit of each field of a spec, played in memory: which VMs it costs, and that it costs nothing a second time.

use cocoon_operator::scenario::runner::play;
use cocoon_operator::scenario::script::Script;
use rstest::rstest;

/// What an edit does to the pods of a set with one sub-agent and one toolbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Costs {
    /// Nothing is replaced.
    Nothing,
    /// Main agent and sub-agent are.
    Agents,
    /// The toolbox is.
    Toolbox,
    /// All three are.
    All,
}

const TOOLBOX: &str = "name: tb, image: img";

#[rstest]
#[case::image("agent: {image: other}", Costs::Agents)]
#[case::mode("agent: {mode: run}", Costs::Agents)]
#[case::os("agent: {os: android}", Costs::Agents)]
#[case::backend("agent: {backend: firecracker, mode: run}", Costs::Agents)]
#[case::storage("agent: {storage: 20Gi}", Costs::Agents)]
#[case::network("agent: {network: other}", Costs::Agents)]
#[case::cpu("agent: {resources: {limits: {cpu: \"2\"}}}", Costs::Agents)]
#[case::memory("agent: {resources: {requests: {memory: 2Gi}}}", Costs::Agents)]
#[case::env_from("agent: {envFrom: [{configMapRef: {name: env, optional: true}}]}", Costs::Agents)]
#[case::pool("nodePool: fast", Costs::All)]
#[case::class("snapshotCompatibilityClass: n2", Costs::Nothing)]
#[case::policy("snapshotPolicy: main-only", Costs::Nothing)]
#[case::conn_type("agent: {connType: rdp}", Costs::Nothing)]
#[case::probe_port("agent: {probePort: 8080}", Costs::Nothing)]
#[case::force_pull("agent: {forcePull: true}", Costs::Nothing)]
#[case::no_direct_io("agent: {noDirectIO: true}", Costs::Nothing)]
#[case::node_name("nodeName: node-b", Costs::Nothing)]
#[case::replicas("agent: {replicas: 2}", Costs::Nothing)]
#[case::toolbox_image("toolboxes: [{name: tb, image: other}]", Costs::Toolbox)]
#[case::toolbox_mode("toolboxes: [{name: tb, image: img, mode: clone}]", Costs::Toolbox)]
#[case::toolbox_storage("toolboxes: [{name: tb, image: img, storage: 5Gi}]", Costs::Toolbox)]
#[case::toolbox_probe("toolboxes: [{name: tb, image: img, probePort: 9090}]", Costs::Nothing)]
fn an_edit_costs_what_it_has_to(#[case] edit: &str, #[case] costs: Costs) {
    let agents = matches!(costs, Costs::Agents | Costs::All);
    let toolbox = matches!(costs, Costs::Toolbox | Costs::All);
    let fate = |replaced: bool| if replaced { "was replaced" } else { "was not replaced" };
    let deletes = usize::from(agents) * 2 + usize::from(toolbox);
    let text = format!(
        "story: An edit.\n\
         given:\n  set: {{set: demo, image: img, replicas: 1, toolboxes: [{{{TOOLBOX}}}], spec: {{snapshotPolicy: never}}}}\n  \
           nodes: {{node-a: {{}}, node-b: {{}}, node-c: {{pool: fast}}}}\n  settled: true\n\
         when:\n  - edit: {{spec: {{{edit}}}}}\n  - settle\n  - wait: 15m\n\
         then:\n  - pod demo-0 {main}\n  - pod demo-1 {main}\n  - pod demo-tb {tb}\n  - calls of delete pods is {deletes}\n  \
           - phase is Running\n  - writes in the last step is 0\n  - errors is 0\n  - nothing gave up\n",
        main = fate(agents),
        tb = fate(toolbox),
    );
    let script = Script::parse("an edit", &text).expect("a script");
    let played = play(&script).expect("it plays");
    assert!(played.failures.is_empty(), "{}\n{}", played.transcript, played.failures.join("\n"));
}
