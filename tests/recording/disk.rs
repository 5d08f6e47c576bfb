//! The files of a recording: bounded, readable by their owner, and never in the way of the work.

use crate::stage::{Dir, cluster, create_set, operator, passes, until};
use cocoon_operator::cli::recorded;
use cocoon_operator::shell::metrics::Metrics;
use cocoon_operator::shell::recorder::{self, RecordTo, Recorder};
use cocoon_operator::sim::server::Cluster;
use serde_json::{Value, json};
use std::sync::Arc;

async fn come_up(cluster: &Cluster, names: &[&str]) {
    for name in names {
        create_set(cluster, "ns", name, json!({"agent": {"image": "img:1", "mode": "clone", "replicas": 2}}));
    }
    for name in names {
        until("Running", || {
            cluster.with(|world| {
                let set = world.store.get("cocoonsets.cocoonset.cocoonstack.io", "ns", name);
                set.and_then(|set| set.pointer("/status/phase").cloned()) == Some(Value::from("Running"))
            })
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn files_are_bounded_in_size_and_number_and_each_reads_by_itself() {
    let dir = Dir::new("bounded");
    let cluster = cluster(&["ns"], &["node-a"]);
    let to = RecordTo { file_bytes: 40_000, files: 3, ..RecordTo::dir(dir.path()) };
    let operator = operator(&cluster, to);
    come_up(&cluster, &["a", "b", "c", "d"]).await;
    operator.stop().await;
    let files = recorder::files(dir.path()).expect("readable");
    assert_eq!(files.len(), 3, "{files:?}");
    assert!(files[0].0 > 1, "the first ones are gone: {files:?}");
    for (_, file) in &files {
        let all = passes(file.to_str().expect("UTF-8"));
        assert!(!all.is_empty() && all.iter().all(|pass| pass.replay().expect("reads").difference.is_none()));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(std::fs::metadata(file).expect("there").permissions().mode() & 0o777, 0o600);
        }
    }
    let once = |text: &str| text.matches("\"kind\":\"Node\"").count();
    let text = std::fs::read_to_string(&files[0].1).expect("text");
    assert!(once(&text) < text.lines().count(), "what did not change is written once a file");
}

#[test]
fn a_directory_that_cannot_be_written_to_is_refused_at_the_start() {
    let dir = Dir::new("refused");
    let file = dir.path().join("a-file");
    std::fs::write(&file, "").expect("written");
    let refused = Recorder::start(&RecordTo::dir(&file), Arc::new(Metrics::new())).expect_err("no directory");
    assert_eq!(refused.code(), 2);
    assert!(refused.to_string().starts_with("--record "), "{refused}");
}

/// The disk fails while the operator works: it works on, and counts what is lost.
#[tokio::test(start_paused = true)]
async fn a_disk_that_fails_harms_nobody() {
    let dir = Dir::new("fails");
    let cluster = cluster(&["ns"], &["node-a"]);
    // Each pass wants a file of its own, and the directory is taken away.
    let to = RecordTo { file_bytes: 1, ..RecordTo::dir(dir.path()) };
    let operator = operator(&cluster, to);
    std::fs::remove_dir_all(dir.path()).expect("removed");
    std::fs::write(dir.path(), "in its place").expect("written");
    come_up(&cluster, &["a"]).await;
    let metrics = operator.shell.metrics.clone();
    operator.stop().await;
    let text = metrics.text();
    assert!(text.contains("cocoon_operator_recorded_passes_total{result=\"lost\"}"), "{text}");
    assert_eq!(metrics.errors(), 0);
    std::fs::remove_file(dir.path()).expect("removed");
}

/// Somebody takes the directory away, and nothing that is written fails: it is made again.
#[tokio::test(start_paused = true)]
async fn a_directory_that_is_taken_away_is_made_again() {
    let dir = Dir::new("taken-away");
    let cluster = cluster(&["ns"], &["node-a"]);
    let operator = operator(&cluster, RecordTo::dir(dir.path()));
    come_up(&cluster, &["a"]).await;
    std::fs::remove_dir_all(dir.path()).expect("removed");
    come_up(&cluster, &["b"]).await;
    operator.stop().await;
    let files = recorder::files(dir.path()).expect("readable");
    assert_eq!(files.len(), 1, "{files:?}");
    let all = passes(files[0].1.to_str().expect("UTF-8"));
    assert!(all.iter().any(|pass| pass.line.name == "b"), "it reads by itself");
    assert!(all.iter().all(|pass| pass.replay().expect("reads").difference.is_none()));
}

#[tokio::test(start_paused = true)]
async fn a_line_that_breaks_off_ends_the_recording_and_one_that_does_not_read_is_named() {
    let dir = Dir::new("broken");
    let cluster = cluster(&["ns"], &["node-a"]);
    let operator = operator(&cluster, RecordTo::dir(dir.path()));
    come_up(&cluster, &["a"]).await;
    operator.stop().await;
    let (_, file) = recorder::files(dir.path()).expect("readable").remove(0);
    let text = std::fs::read_to_string(&file).expect("text");
    let read = |text: &str| {
        let mut count = 0;
        recorded::lines("it", &mut text.as_bytes(), &mut |_| {
            count += 1;
            Ok(())
        })
        .map(|()| count)
    };
    let all = text.lines().count();
    assert_eq!(read(&text), Ok(all));
    assert_eq!(read(text.trim_end().trim_end_matches('}')), Ok(all - 1));
    let garbled = text.replacen("{\"version\":1", "{\"version\":\"one\"", 1);
    let fault = read(&garbled).expect_err("does not read");
    assert!(fault.to_string().starts_with("it:1: "), "{fault}");
    let strange = text.replacen("\"action\":\"AddFinalizer\"", "\"action\":\"AddFinaliser\"", 1);
    assert_ne!(strange, text);
    let fault = read(&strange).expect_err("an action that there is none of");
    assert!(fault.to_string().contains("action \"AddFinaliser\" is none") && fault.code() == 2, "{fault}");
    assert!(fault.to_string().contains("did you mean AddFinalizer?"), "{fault}");
    let later = text.replacen("{\"version\":1", "{\"version\":99", 1);
    assert!(read(&later).expect_err("of a later version").to_string().contains("version 99"));
    let headless: String = text.lines().skip(1).map(|line| format!("{line}\n")).collect();
    assert!(read(&headless).expect_err("no head").to_string().contains("head is missing"));
}

/// Most passes of a large set see all of its pods, and few of these changed.
#[tokio::test(start_paused = true)]
async fn a_large_set_is_recorded_by_what_changes_in_it() {
    let dir = Dir::new("large");
    let cluster = cluster(&["ns"], &["node-a", "node-b", "node-c"]);
    let operator = operator(&cluster, RecordTo { waiting: 100_000, ..RecordTo::dir(dir.path()) });
    create_set(&cluster, "ns", "large", json!({"agent": {"image": "img:1", "mode": "clone", "replicas": 128}}));
    until("129 pods", || cluster.with(|world| world.store.objects("pods", Some("ns")).count()) == 129).await;
    tokio::time::sleep(std::time::Duration::from_secs(30)).await;
    operator.stop().await;
    let all = passes(dir.text());
    let bytes: u64 = recorder::files(dir.path())
        .expect("readable")
        .iter()
        .map(|(_, file)| std::fs::metadata(file).expect("there").len())
        .sum();
    println!("{} passes, {bytes} bytes", all.len());
    // Each of 129 pods as it was made, as it was answered, and each time it changed: not once a pass.
    assert!(bytes < 129 * 25_000, "{bytes} bytes in {} passes", all.len());
}
