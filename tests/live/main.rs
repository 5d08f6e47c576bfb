//! The live stage: the operator against a real control plane. One control plane is started for all tests and ended
//! after the last.

mod apart;
mod audit;
mod bump;
mod conform;
mod conformance;
mod facts;
mod follow;
mod ground;
mod incident;
mod operator;
mod outage;
mod place;
mod plane;
mod rights;
mod role;
mod stories;
mod takeover;
mod turns;

use libtest_mimic::{Arguments, Failed, Trial};
use plane::certs::Fault;
use plane::{ControlPlane, binaries, leftovers};
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::{Arc, Mutex};
use tokio::runtime::Handle;

/// So many tests run at once.
const SIDE_BY_SIDE: usize = 64;

/// What every live test gets.
pub type Plane = Arc<Mutex<ControlPlane>>;

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    let folder = match binaries::folder() {
        Ok(folder) => folder,
        Err(why) => return not_run(&why),
    };
    if let Err(why) = leftovers::allow_files() {
        eprintln!("the live stage was not run: {why}");
        return ExitCode::FAILURE;
    }
    let folders = Path::new(env!("CARGO_TARGET_TMPDIR"));
    leftovers::sweep(folders);
    let Ok(runtime) = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() else {
        eprintln!("the runtime did not start");
        return ExitCode::FAILURE;
    };
    let id = std::process::id();
    let own = ["control-plane", "operator-place"].map(|what| folders.join(format!("{what}-{id}")));
    let home = own[0].clone();
    runtime.spawn(leftovers::end_with_us(own));
    let plane = match ControlPlane::start(&folder, &home) {
        Ok(plane) => Arc::new(Mutex::new(plane)),
        Err(error) => {
            eprintln!("the control plane did not start: {error}");
            return ExitCode::FAILURE;
        }
    };
    let prepared = match plane.lock() {
        Ok(plane) => ground::prepare(&plane, runtime.handle()),
        Err(_) => Err("another test panicked".into()),
    };
    let ground = match prepared {
        Ok(ground) => ground,
        Err(error) => {
            eprintln!("the control plane could not be prepared: {error}");
            return ExitCode::FAILURE;
        }
    };
    // Stories mostly wait.
    arguments.test_threads = arguments.test_threads.or(Some(SIDE_BY_SIDE));
    let places = place::Places::new(&folder, runtime.handle());
    // Those that have a place to themselves come first, and the others fill the time. They go one after the other as they
    // stand here: what lives through the outage pauses up to half a minute after it, so that nothing may come behind it.
    let mut all = incident::trials(&places);
    all.extend(rights::trials(&places));
    all.extend(takeover::trials(&places));
    all.extend(outage::trials(&places));
    all.extend(trials(&plane, runtime.handle()));
    let progress = stories::Progress::default();
    // One after the other they have no middle.
    let together = arguments.test_threads.is_none_or(|threads| threads >= SIDE_BY_SIDE);
    let whole = arguments.filter.is_none() && arguments.skip.is_empty() && !arguments.list && together;
    all.push(outage::amid_stories(&plane, &ground, &progress).with_ignored_flag(!whole));
    all.extend(stories::trials(&ground, &progress));
    let conclusion = libtest_mimic::run(&arguments, all);
    // What the whole suite shows.
    let last = libtest_mimic::run(&arguments, rights::last(&plane, &places, &ground.outage, &progress, whole));
    let well = !conclusion.has_failed() && !last.has_failed();
    if well && let Ok(mut plane) = plane.lock() {
        plane.forget();
    }
    drop(plane);
    places.end(well);
    if well { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Without a control plane nothing is claimed; where it is required, that is a failure.
fn not_run(why: &str) -> ExitCode {
    eprintln!("the live stage was not run: {why}");
    if std::env::var_os("CI").is_some_and(|value| value == "true") { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn trials(plane: &Plane, handle: &Handle) -> Vec<Trial> {
    let handle = handle.clone();
    let version = on(plane, |plane| {
        let output = Command::new(plane.kubectl())
            .arg("--kubeconfig")
            .arg(plane.admin())
            .args(["get", "--raw", "/version"])
            .output()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if text.contains("\"gitVersion\": \"v1.36.") { Ok(()) } else { Err(format!("it says {text}").into()) }
    });
    let conformance = on(plane, |plane| {
        let report = conform::run(plane)?;
        println!("{report}");
        let idle = report.idle();
        if !report.unexplained.is_empty() {
            Err("the simulated API server is not like the real one".into())
        } else if idle.is_empty() {
            Ok(())
        } else {
            Err(format!("known differences that are none any more: {idle:#?}").into())
        }
    });
    let facts = on(plane, move |plane| {
        let report = facts::run(plane, &handle)?;
        println!("{report}");
        if report.differ.is_empty() { Ok(()) } else { Err("the real API server does not answer as recorded".into()) }
    });
    vec![
        Trial::test("plane::serves_this_release", version),
        Trial::test("conformance", conformance),
        Trial::test("facts", facts),
    ]
}

/// A test that has the control plane for as long as it takes.
fn on(
    plane: &Plane,
    test: impl FnOnce(&ControlPlane) -> Result<(), Fault> + Send + 'static,
) -> impl FnOnce() -> Result<(), Failed> + Send + 'static {
    let plane = Arc::clone(plane);
    move || {
        let plane = plane.lock().map_err(|_| Failed::from("another test panicked"))?;
        test(&plane).map_err(|error| Failed::from(error.to_string()))
    }
}
