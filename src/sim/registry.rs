//! The snapshot registry: tags with digest and base image, as operator and nodes see them (registry.md 3).

use crate::core::wire::{Reply, Verb};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::time::Duration;

/// The annotation of a manifest that names the image its VM was started from.
const BASE_IMAGE: &str = "cocoonstack.snapshot.baseimage";

/// One snapshot under its tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// `sha256:<hex>`; another one for every push.
    pub digest: String,
    /// The image that the VM was started from; none for pushes of old releases.
    pub base_image: Option<String>,
}

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Asker {
    /// The operator.
    Operator,
    /// A node agent.
    Node,
}

/// What the registry does instead of answering truly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Behaviour {
    /// This status, with an OCI error of this code.
    Refuse(u16, &'static str),
    /// 429 with this `Retry-After`.
    Throttle(Duration),
    /// No answer.
    Hang,
    /// The connection breaks.
    Reset,
}

impl Behaviour {
    /// 401 UNAUTHORIZED.
    pub const UNAUTHORIZED: Self = Self::Refuse(401, "UNAUTHORIZED");
    /// 403 DENIED.
    pub const DENIED: Self = Self::Refuse(403, "DENIED");
    /// 404 MANIFEST_UNKNOWN, whatever is there.
    pub const UNKNOWN: Self = Self::Refuse(404, "MANIFEST_UNKNOWN");
    /// 405 UNSUPPORTED: a registry that cannot delete.
    pub const UNSUPPORTED: Self = Self::Refuse(405, "UNSUPPORTED");
    /// 500 without words.
    pub const BROKEN: Self = Self::Refuse(500, "UNKNOWN");

    fn reply(&self, verb: Verb) -> Reply {
        match self {
            Self::Refuse(status, code) => refusal(verb, *status, code, None),
            Self::Throttle(after) => refusal(verb, 429, "TOOMANYREQUESTS", Some(*after)),
            Self::Hang => Reply::TimedOut,
            Self::Reset => Reply::Reset { sent: true },
        }
    }
}

/// When the registry behaves otherwise. An absent part fits everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mood {
    /// Asked for what.
    pub verb: Option<Verb>,
    /// Of which repository.
    pub vm: Option<String>,
    /// Of which tag.
    pub tag: Option<String>,
    /// By whom.
    pub asker: Option<Asker>,
    /// What it does.
    pub does: Behaviour,
    /// How often still; none for always.
    pub remaining: Option<u32>,
}

impl Mood {
    /// Towards everything and everybody, until it is taken away.
    pub fn always(does: Behaviour) -> Self {
        Self { verb: None, vm: None, tag: None, asker: None, does, remaining: None }
    }
    /// Only for this verb.
    #[must_use]
    pub fn on(mut self, verb: Verb) -> Self {
        self.verb = Some(verb);
        self
    }
    /// Only for this repository.
    #[must_use]
    pub fn of_vm(mut self, vm: &str) -> Self {
        self.vm = Some(vm.to_owned());
        self
    }
    /// Only towards this asker.
    #[must_use]
    pub fn towards(mut self, asker: Asker) -> Self {
        self.asker = Some(asker);
        self
    }
    /// Only so many times.
    #[must_use]
    pub fn times(mut self, count: u32) -> Self {
        self.remaining = Some(count);
        self
    }
    fn fits(&self, verb: Verb, vm: &str, tag: &str, asker: Asker) -> bool {
        self.remaining != Some(0)
            && self.verb.is_none_or(|want| want == verb)
            && self.vm.as_deref().is_none_or(|want| want == vm)
            && self.tag.as_deref().is_none_or(|want| want == tag)
            && self.asker.is_none_or(|want| want == asker)
    }
}

/// The registry. Cloning it forks it.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    tags: BTreeMap<(String, String), Snapshot>,
    moods: Vec<Mood>,
    counts: BTreeMap<(Verb, Asker), u64>,
    pushes: u64,
}

impl Registry {
    /// Puts a snapshot under a tag, in place of what was there; its digest is new.
    pub fn push(&mut self, vm: &str, tag: &str, base_image: Option<&str>) -> Snapshot {
        self.pushes = self.pushes.saturating_add(1);
        let hash = Sha256::digest(format!("{vm}:{tag}:{}", self.pushes).as_bytes());
        let hex: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        let snapshot = Snapshot { digest: format!("sha256:{hex}"), base_image: base_image.map(str::to_owned) };
        self.tags.insert((vm.to_owned(), tag.to_owned()), snapshot.clone());
        snapshot
    }
    /// Takes a tag away, as a person would; true if it was there.
    pub fn drop_tag(&mut self, vm: &str, tag: &str) -> bool {
        self.tags.remove(&(vm.to_owned(), tag.to_owned())).is_some()
    }
    /// What is under this tag.
    pub fn get(&self, vm: &str, tag: &str) -> Option<&Snapshot> {
        self.tags.get(&(vm.to_owned(), tag.to_owned()))
    }
    fn resolve(&self, vm: &str, reference: &str) -> Option<&Snapshot> {
        let by_digest = || self.tags().find(|(repository, _, held)| *repository == vm && held.digest == reference);
        self.get(vm, reference).or_else(|| by_digest().map(|(_, _, held)| held))
    }
    /// Every tag: repository, tag, snapshot.
    pub fn tags(&self) -> impl Iterator<Item = (&str, &str, &Snapshot)> {
        self.tags.iter().map(|((vm, tag), snapshot)| (vm.as_str(), tag.as_str(), snapshot))
    }
    /// Lets the registry behave otherwise from now on; earlier moods go first.
    pub fn behave(&mut self, mood: Mood) {
        self.moods.push(mood);
    }
    /// Lets it behave again.
    pub fn recover(&mut self) {
        self.moods.clear();
    }
    /// How often it was asked for this.
    pub fn count(&self, verb: Verb, asker: Asker) -> u64 {
        self.counts.get(&(verb, asker)).copied().unwrap_or(0)
    }
    /// Answers one request. A delete that names a digest is sent only where a HEAD just showed it (R11): with another
    /// digest under the tag nothing is sent, as far as the answer goes.
    pub fn call(&mut self, asker: Asker, verb: Verb, vm: &str, tag: &str, digest: Option<&str>) -> Reply {
        let count = self.counts.entry((verb, asker)).or_insert(0);
        *count = count.saturating_add(1);
        if let Some(mood) = self.moods.iter_mut().find(|mood| mood.fits(verb, vm, tag, asker)) {
            mood.remaining = mood.remaining.map(|left| left.saturating_sub(1));
            return mood.does.reply(verb);
        }
        let Some(snapshot) = self.resolve(vm, tag) else { return refusal(verb, 404, "MANIFEST_UNKNOWN", None) };
        match verb {
            Verb::RegistryDelete if digest.is_some_and(|digest| digest != snapshot.digest) => {
                Reply::Reset { sent: false }
            }
            Verb::RegistryDelete => {
                // A delete by digest takes every tag of that digest.
                let gone = |name: &str, held: &Snapshot| name == tag || held.digest == tag;
                self.tags.retain(|(repository, name), held| repository != vm || !gone(name, held));
                Reply::Http { status: 202, retry_after: None, body: Vec::new(), digest: None }
            }
            Verb::RegistryHead | Verb::RegistryGet => {
                let body =
                    if verb == Verb::RegistryGet { manifest(snapshot).to_string().into_bytes() } else { Vec::new() };
                Reply::Http { status: 200, retry_after: None, body, digest: Some(snapshot.digest.clone()) }
            }
            Verb::Get | Verb::List | Verb::Watch | Verb::Create | Verb::Update | Verb::Patch | Verb::Delete => {
                refusal(verb, 405, "UNSUPPORTED", None)
            }
        }
    }
}

/// The manifest as GET returns it.
fn manifest(snapshot: &Snapshot) -> Value {
    let mut manifest = json!({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": {"mediaType": "application/vnd.cocoonstack.snapshot.config.v1+json", "digest": snapshot.digest, "size": 2},
        "layers": [],
    });
    if let Some(image) = &snapshot.base_image {
        manifest["annotations"] = json!({ BASE_IMAGE: image });
    }
    manifest
}

/// An OCI error; an answer to HEAD has no body.
fn refusal(verb: Verb, status: u16, code: &str, retry_after: Option<Duration>) -> Reply {
    let body = match verb {
        Verb::RegistryHead => Vec::new(),
        _ => {
            let message = code.to_lowercase().replace('_', " ");
            json!({"errors": [{"code": code, "message": message}]}).to_string().into_bytes()
        }
    };
    Reply::Http { status, retry_after, body, digest: None }
}
