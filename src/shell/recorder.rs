//! Passes to disk, as they happen: files of bounded size and number, written beside the work and never in its way.

use super::metrics::{Metrics, Recorded};
use super::options::StartupError;
use crate::core::control::pass::Turn;
use crate::core::control::wake::Key;
use crate::core::decision::Decision;
use crate::core::outcome::Outcome;
use crate::core::recording::{End, Shelf, Taken};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tracing::{info, warn};

/// After a write that failed, so long nothing is tried.
const PAUSE: Duration = Duration::from_secs(10);
/// What the files of a recording are called, around their number.
const NAME: (&str, &str) = ("passes-", ".jsonl");

/// Where passes are recorded, and how much of them is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordTo {
    /// The directory.
    pub dir: PathBuf,
    /// A file that is larger is followed by another.
    pub file_bytes: u64,
    /// The oldest go where there are more.
    pub files: usize,
    /// Passes that may wait for the disk; further ones are lost, and counted.
    pub waiting: usize,
}

impl RecordTo {
    /// Here, within half a gigabyte.
    pub fn dir(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into(), file_bytes: 64 << 20, files: 8, waiting: 1024 }
    }
}

/// The recorder of one operator.
#[derive(Debug)]
pub struct Recorder {
    under_way: Mutex<BTreeMap<Key, Taken>>,
    line: Mutex<Option<SyncSender<Taken>>>,
    writer: Mutex<Option<JoinHandle<()>>>,
    metrics: Arc<Metrics>,
}

impl Recorder {
    /// Opens the first file.
    pub fn start(to: &RecordTo, metrics: Arc<Metrics>) -> Result<Self, StartupError> {
        let refuse =
            |error: io::Error| StartupError::Record { dir: to.dir.display().to_string(), why: error.to_string() };
        let mut files = Files::open(to.clone()).map_err(refuse)?;
        files.next().map_err(refuse)?;
        let (line, lines) = sync_channel(to.waiting);
        let counted = Arc::clone(&metrics);
        let writer =
            std::thread::Builder::new().name("recorder".to_owned()).spawn(move || files.write(&lines, &counted));
        let writer = writer.map_err(refuse)?;
        info!(dir = %to.dir.display(), "passes are recorded");
        let (line, writer) = (Mutex::new(Some(line)), Mutex::new(Some(writer)));
        Ok(Self { under_way: Mutex::default(), line, writer, metrics })
    }

    /// A pass begins.
    pub fn begins(&self, key: &Key, taken: Taken) {
        lock(&self.under_way).insert(key.clone(), taken);
    }
    /// One of its decisions is over.
    pub fn turn(&self, key: &Key, turn: &Turn) {
        if let Some(taken) = lock(&self.under_way).get_mut(key) {
            taken.turn(turn);
        }
    }
    /// It is over.
    pub fn ends(&self, key: &Key, last: Option<(&Decision, &[Outcome])>, end: End) {
        let Some(mut taken) = lock(&self.under_way).remove(key) else { return };
        taken.ends(last, end);
        let sent = lock(&self.line).as_ref().is_some_and(|line| line.try_send(taken).is_ok());
        if !sent {
            self.metrics.recorded(Recorded::Lost);
        }
    }

    /// Writes what is waiting, and ends.
    pub fn close(&self) {
        drop(lock(&self.line).take());
        if let Some(writer) = lock(&self.writer).take() {
            // A writer that panicked has nothing left to say.
            let _ = writer.join();
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.close();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The files of a recording, oldest first.
pub fn files(dir: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix(NAME.0)?.strip_suffix(NAME.1)?.parse().ok());
        files.extend(number.map(|number| (number, entry.path())));
    }
    files.sort();
    Ok(files)
}

/// The disk's side.
struct Files {
    to: RecordTo,
    file: Option<File>,
    path: PathBuf,
    number: u64,
    bytes: u64,
    shelf: Shelf,
    failed: Option<Instant>,
}

impl Files {
    fn open(to: RecordTo) -> io::Result<Self> {
        fs::create_dir_all(&to.dir)?;
        let number = files(&to.dir)?.last().map_or(0, |(number, _)| *number);
        let path = PathBuf::new();
        Ok(Self { to, file: None, path, number, bytes: 0, shelf: Shelf::default(), failed: None })
    }

    /// Begins a new file, and lets the oldest go.
    fn next(&mut self) -> io::Result<()> {
        self.file = None;
        fs::create_dir_all(&self.to.dir)?;
        self.number = self.number.saturating_add(1);
        self.path = self.to.dir.join(format!("{}{:06}{}", NAME.0, self.number, NAME.1));
        let mut options = OpenOptions::new();
        options.create_new(true).append(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        self.file = Some(options.open(&self.path)?);
        (self.bytes, self.shelf) = (0, Shelf::default());
        let all = files(&self.to.dir)?;
        for (_, old) in all.iter().take(all.len().saturating_sub(self.to.files.max(1))) {
            fs::remove_file(old)?;
        }
        Ok(())
    }

    /// Until nobody is left who records.
    fn write(mut self, lines: &Receiver<Taken>, metrics: &Metrics) {
        for taken in lines {
            if self.failed.is_some_and(|failed| failed.elapsed() < PAUSE) {
                metrics.recorded(Recorded::Lost);
                continue;
            }
            match self.line(taken) {
                Ok(()) => {
                    if self.failed.take().is_some() {
                        info!(file = %self.path.display(), "passes are recorded again");
                    }
                    metrics.recorded(Recorded::Written);
                }
                Err(error) => {
                    self.fail(&error);
                    metrics.recorded(Recorded::Lost);
                }
            }
        }
    }

    fn line(&mut self, taken: Taken) -> io::Result<()> {
        // What is written into a file without a name is lost, and nothing fails.
        if self.file.is_some() && !self.path.exists() {
            warn!(file = %self.path.display(), "the file of the recording is gone with what it held; another is begun");
            self.file = None;
        }
        if self.file.is_none() || self.bytes >= self.to.file_bytes {
            self.next()?;
        }
        let mut text = serde_json::to_vec(&self.shelf.shorten(taken))?;
        text.push(b'\n');
        if let Some(file) = &mut self.file {
            file.write_all(&text)?;
        }
        self.bytes = self.bytes.saturating_add(u64::try_from(text.len()).unwrap_or(u64::MAX));
        Ok(())
    }

    /// Said once. What was half written is cut off, so that the file still reads.
    fn fail(&mut self, error: &io::Error) {
        if self.failed.replace(Instant::now()).is_none() {
            warn!(file = %self.path.display(), "passes are not recorded for now: {error}");
        }
        if let Some(file) = self.file.take() {
            // Where even that fails, the reader says which line does not read.
            let _ = file.set_len(self.bytes);
        }
        if self.bytes == 0 {
            let _ = fs::remove_file(&self.path);
        }
    }
}
