//! Every file under tests/golden is a story and a test: its transcript stands beside it, its claims must hold.

use cocoon_operator::scenario::runner;
use cocoon_operator::scenario::script::Script;
use std::path::Path;

fn in_memory(path: &Path, text: String) -> datatest_stable::Result<()> {
    let script = Script::parse(&path.display().to_string(), &text)?;
    let played = runner::play(&script)?;
    let name = path.file_stem().and_then(|stem| stem.to_str()).ok_or("a file name")?;
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join(path).with_file_name("");
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(beside);
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.remove_snapshot_suffix();
    settings.bind(|| insta::assert_snapshot!(name, played.transcript));
    if played.failures.is_empty() {
        return Ok(());
    }
    Err(format!("{}\n\n{}\n", played.transcript, played.failures.join("\n")).into())
}

datatest_stable::harness! {
    { test = in_memory, root = "tests/golden", pattern = r"\.yaml$" },
}
