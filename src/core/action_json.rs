//! Actions as `explain -o json` prints them: the names and fields are a public interface.

use super::action::{Action, Change, Question, Subject, Wait, Want};
use serde_json::{Map, Value, json};
use std::time::Duration;

impl Action {
    /// As `explain -o json` prints it (the names and fields are a public interface).
    pub fn to_json(&self, subject: &Subject) -> Value {
        let mut out = Map::new();
        out.insert("action".to_owned(), json!(self.kind().name()));
        out.insert("rule".to_owned(), json!(self.rule));
        out.insert("because".to_owned(), json!(self.because));
        if !self.also.is_empty() {
            out.insert("also".to_owned(), json!(self.also));
        }
        if let Value::Object(own) = self.own_fields(subject) {
            out.extend(own);
        }
        Value::Object(out)
    }
    fn own_fields(&self, subject: &Subject) -> Value {
        match &self.want {
            Want::Ask(Question::ProbeSnapshot { vm, tag }) => json!({ "vm": vm, "tag": tag }),
            Want::Ask(Question::ReadLive(live)) => json!({ "of": live.spelled(subject) }),
            Want::Change(change) => change.own_fields(),
            Want::Announce(event) => {
                let kind = if event.warning { "Warning" } else { "Normal" };
                let mut told = json!({ "type": kind, "reason": event.reason, "message": event.message });
                if let (Some(related), Some(told)) = (&event.related, told.as_object_mut()) {
                    told.insert("pod".to_owned(), json!(related.pod));
                }
                told
            }
            Want::Wait(Wait::Await { what, recheck_after: None }) => json!({ "for": what }),
            Want::Wait(Wait::Await { what, recheck_after: Some(after) }) => {
                json!({ "for": what, "recheckAfterSeconds": seconds(*after) })
            }
            Want::Wait(Wait::Stop) => json!({}),
        }
    }
}

impl Change {
    fn own_fields(&self) -> Value {
        match self {
            Self::AddFinalizer { finalizers, .. } | Self::RemoveFinalizer { finalizers, .. } => {
                json!({ "finalizers": finalizers })
            }
            Self::CreatePod { manifest, dry_run, .. } => json!({ "pod": manifest, "dryRun": dry_run }),
            Self::DeletePod { pod, uid, .. } => json!({ "pod": pod, "uid": uid }),
            Self::PatchPod { pod, uid, patch } => json!({ "pod": pod, "uid": uid, "patch": patch.to_json() }),
            Self::PatchObject { annotations, .. } => {
                json!({ "patch": { "metadata": { "annotations": annotations } } })
            }
            Self::PatchStatus { status, .. } => json!({ "status": status }),
            Self::DeleteSnapshot { vm, tag, digest } => json!({ "vm": vm, "tag": tag, "digest": digest }),
        }
    }
}

/// Seconds, whole where they are whole.
fn seconds(span: Duration) -> Value {
    if span.subsec_nanos() == 0 { json!(span.as_secs()) } else { json!(span.as_secs_f64()) }
}
