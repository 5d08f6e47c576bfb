//! The log as JSON, of a whole story told by the shell. One test in a process of its own: what a subscriber of another
//! test asks for is remembered by the process.

use cocoon_operator::scenario::runner::play_embedded;
use cocoon_operator::scenario::script::Script;
use cocoon_operator::shell::logs;
use cocoon_operator::shell::options::LogFormat;
use serde_json::Value;
use std::io;
use std::sync::{Arc, Mutex};
use tracing_subscriber::layer::SubscriberExt;

struct Writer(Arc<Mutex<Vec<u8>>>);

impl io::Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("not poisoned").extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn every_line_about_an_object_says_which_and_by_which_rule() {
    let log = Arc::<Mutex<Vec<u8>>>::default();
    let target = Arc::clone(&log);
    let layer = logs::layer(tracing::Level::DEBUG, LogFormat::Json, false, move || Writer(Arc::clone(&target)));
    let story = include_str!("golden/events/forbidden.yaml");
    let script = Script::parse("tests/golden/events/forbidden.yaml", story).expect("it reads");
    let subscriber = tracing_subscriber::registry().with(layer);
    tracing::subscriber::with_default(subscriber, || play_embedded(&script)).expect("it plays");
    let text = String::from_utf8(log.lock().expect("not poisoned").clone()).expect("text");
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect();
    let about: Vec<&Value> = lines.iter().filter(|line| line.get("name").is_some()).collect();
    assert!(about.len() > 10, "{text}");
    for line in about {
        let rules = if line["message"] == "at rest" { "rules" } else { "rule" };
        for (field, value) in [("controller", "cocoonset"), ("namespace", "default"), ("name", "demo")] {
            assert_eq!(line[field], value, "{line}");
        }
        assert!(line[rules].as_str().is_some_and(|rule| rule.contains('/')) || line["message"] == "at rest", "{line}");
        assert!(line["timestamp"].is_string() && line["level"].is_string(), "{line}");
    }
    let lost: Vec<&Value> = lines.iter().filter(|line| line["level"] == "WARN").collect();
    assert_eq!((lost.len(), &lost[0]["class"]), (1, &Value::from("RbacDenied")), "{lost:#?}");
    assert!(lines.iter().all(|line| line["level"] != "ERROR"), "{text}");
}
