//! What a run leaves behind that was killed: its processes, which know its folder, and the folder.

use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, setrlimit};
use std::path::{Path, PathBuf};
use std::process::exit;
use tokio::signal::unix::{SignalKind, signal};

/// Every watch of every story is a connection.
const FILES: u64 = 8_192;

/// A folder's run, by the id of its process.
fn owner(folder: &Path) -> Option<u32> {
    let name = folder.file_name()?.to_str()?;
    let id = name.strip_prefix("control-plane-").or_else(|| name.strip_prefix("operator-place-"))?;
    id.parse().ok()
}

/// Ends what runs from folders of runs that are over, and removes all but the logs of the last.
pub fn sweep(tmp: &Path) {
    let entries = std::fs::read_dir(tmp).into_iter().flatten().filter_map(Result::ok);
    let mut over: Vec<(std::time::SystemTime, u32, PathBuf)> = entries
        .filter_map(|entry| {
            let id = owner(&entry.path())?;
            let is_over = Path::new("/proc/self").exists() && !is_a_test(id);
            is_over.then_some((entry.metadata().ok()?.modified().ok()?, id, entry.path()))
        })
        .collect();
    over.sort();
    over.iter().for_each(|(_, _, folder)| end_all_of(folder));
    let kept = over.last().map(|(_, id, _)| *id);
    for (_, id, folder) in over {
        if Some(id) == kept {
            std::fs::remove_dir_all(folder.join("etcd")).ok();
        } else {
            std::fs::remove_dir_all(folder).ok();
        }
    }
}

/// Whether a process of this id is a test like this one.
fn is_a_test(id: u32) -> bool {
    let same = |path: &str| std::fs::read_link(path).ok().and_then(|path| path.parent().map(Path::to_path_buf));
    same(&format!("/proc/{id}/exe")).is_some_and(|its| Some(its) == same("/proc/self/exe"))
}

/// Kills what names this folder among its arguments: what a run has started, and nothing else.
fn end_all_of(folder: &Path) {
    let Some(folder) = folder.to_str().map(|folder| format!("{folder}/")) else { return };
    let processes = std::fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
    for process in processes {
        let Some(id) = process.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
        let arguments = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
        if String::from_utf8_lossy(&arguments).contains(&folder)
            && let Some(id) = Pid::from_raw(id)
        {
            kill_process(id, Signal::KILL).ok();
        }
    }
}

/// Who interrupts the run ends all that it has started in these folders.
pub async fn end_with_us(folders: [PathBuf; 2]) {
    let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
    let [Ok(mut interrupt), Ok(mut terminate), Ok(mut hangup)] = kinds.map(signal) else { return };
    tokio::select! {
        _ = interrupt.recv() => {},
        _ = terminate.recv() => {},
        _ = hangup.recv() => {},
    }
    folders.iter().for_each(|folder| end_all_of(folder));
    eprintln!("interrupted: what was started is ended");
    exit(130);
}

/// As many open files as the suite needs, where the machine allows it.
pub fn allow_files() -> Result<(), String> {
    let limit = getrlimit(Resource::Nofile);
    let enough = |limit: Option<u64>| limit.is_none_or(|limit| limit >= FILES);
    if enough(limit.current) {
        return Ok(());
    }
    if !enough(limit.maximum) {
        let most = limit.maximum.unwrap_or_default();
        return Err(format!(
            "the suite opens thousands of connections, and {most} files are allowed: ulimit -Hn {FILES}"
        ));
    }
    let raised = setrlimit(Resource::Nofile, Rlimit { current: Some(FILES), maximum: limit.maximum });
    raised.map_err(|error| format!("the limit of open files cannot be raised to {FILES}: {error}"))
}
