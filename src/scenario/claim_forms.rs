//! The closed list of claims, and how their words are read.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::borrow::Cow;

macro_rules! forms {
    ($( $(#[doc = $doc:literal])+ $name:ident = $form:literal, )+) => {
        /// What can be claimed. Words in capitals stand for what the story fills in; LIST is words with commas between
        /// them, or `none`; TEXT is the rest of the line.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Form { $( $(#[doc = $doc])+ $name, )+ }
        impl Form {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];
            /// The words.
            pub const fn words(self) -> &'static str {
                match self { $(Self::$name => $form),+ }
            }
            /// The meaning.
            pub const fn doc(self) -> &'static str {
                match self { $(Self::$name => concat!($($doc),+)),+ }
            }
        }
    };
}

forms! {
    /// `status.phase` of the set.
    Phase = "phase is PHASE",
    /// Status of a condition of the set; `absent` where it has none.
    Condition = "condition TYPE is STATUS",
    /// Reason of a condition of the set.
    Reason = "reason of TYPE is REASON",
    /// Message of a condition of the set.
    Message = "message of TYPE contains TEXT",
    /// A field of the set, by its path, e.g. `field status.readyAgents is 3`; `absent` where there is none.
    Field = "field PATH is TEXT",
    /// The names of all pods of the namespace.
    Pods = "pods are LIST",
    /// Condition Ready of the pod is True, and it is not being deleted.
    PodReady = "pod NAME is ready",
    /// There is no such pod.
    PodAbsent = "pod NAME is absent",
    /// It is being deleted.
    PodTerminating = "pod NAME is terminating",
    /// Where the pod is bound to.
    PodOn = "pod NAME is on NODE",
    /// A field of the pod, by its path; dots in keys as `[key]`.
    PodField = "pod NAME has PATH TEXT",
    /// It is another object than the one that the operator or the story first made under this name.
    PodReplaced = "pod NAME was replaced",
    /// It is still the first object of this name.
    PodKept = "pod NAME was not replaced",
    /// How many tags the registry holds.
    TagsLeft = "tags left is NUMBER",
    /// The tags in the registry, as vm:tag.
    Tags = "tags are LIST",
    /// The set does not bear our finalizer.
    FinalizerGone = "finalizer is gone",
    /// The set bears our finalizer.
    FinalizerThere = "finalizer is there",
    /// There is no such set any more.
    SetGone = "set is gone",
    /// The namespace is gone.
    NamespaceGone = "namespace is gone",
    /// How many creates of pods were refused, by any class that is a refusal or a namespace that goes.
    RefusedCreates = "refused creates is NUMBER",
    /// The same, at most.
    RefusedCreatesMost = "refused creates is at most NUMBER",
    /// Reconcile errors in the sense of decision R4.
    Errors = "errors is NUMBER",
    /// The first words of the last error's reason.
    Error = "error is REASON",
    /// Calls of the operator, e.g. `calls of create pods is 4`; `write` stands for every verb that writes, `any` for every resource, `cocoonsets/status` for the status alone.
    Calls = "calls of VERB RESOURCE is NUMBER",
    /// The same, at most.
    CallsMost = "calls of VERB RESOURCE is at most NUMBER",
    /// Calls that came to this class, e.g. `answers Conflict is 1`.
    Answers = "answers CLASS is NUMBER",
    /// The same, at most.
    AnswersMost = "answers CLASS is at most NUMBER",
    /// Writes in the last step: after everything settled, a `wait` must not write.
    LastWrites = "writes in the last step is NUMBER",
    /// Passes in the last step.
    LastPassesMost = "passes in the last step is at most NUMBER",
    /// An event with this reason was announced.
    Event = "events include REASON",
    /// No event with this reason was announced.
    NoEvent = "events do not include REASON",
    /// How often an event with this reason was announced: on transitions only, whatever goes on meanwhile.
    EventTimes = "event REASON is told NUMBER times",
    /// The rule spoke at least once.
    Fired = "rule ID fired",
    /// The rule never spoke.
    NotFired = "rule ID did not fire",
    /// How often a decision of this rule was carried out or waited on, counted by passes.
    FiredTimes = "rule ID fired NUMBER times",
    /// The rule spoke in at most so many passes.
    FiredMost = "rule ID fired at most NUMBER times",
    /// A first thing was done before another, e.g. `patch cocoonsets comes before delete pods`.
    Before = "VERB RESOURCE comes before OTHER THING",
    /// A line about an operator's start, end or lease contains this.
    Told = "it is told that TEXT",
    /// No such line contains this.
    NotTold = "it is not told that TEXT",
    /// No pass gave up, and no law was broken.
    NoGiveUp = "nothing gave up",
}

/// A claim, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The set it is about, where it is not the story's first.
    pub of: Option<String>,
    /// Which claim.
    pub form: Form,
    /// What stands for the words in capitals, in order.
    pub args: Vec<String>,
    /// As written.
    pub text: String,
}

/// A claim as it stands in the file: `phase is Running`, or `{other-set: phase is Running}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimText(pub Claim);

impl Claim {
    /// Reads the words of a claim.
    pub fn parse(of: Option<String>, text: &str) -> Result<Self, String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        // The form with most fixed words wins: `is at most NUMBER` before `is NUMBER`.
        let fixed = |form: &Form| form.words().split(' ').filter(|word| !is_blank(word)).count();
        let fitting = Form::ALL.iter().filter_map(|form| Some((*form, matched(form.words(), &words)?)));
        let best = fitting.max_by_key(|(form, _)| fixed(form));
        let Some((form, args)) = best else { return Err(unknown(text)) };
        for (blank, arg) in form.words().split(' ').filter(|word| is_blank(word)).zip(&args) {
            if blank == "NUMBER" && arg.parse::<usize>().is_err() {
                return Err(format!("claim \"{text}\": \"{arg}\" is no number (`{}`)", form.words()));
            }
        }
        Ok(Self { of, form, args, text: text.to_owned() })
    }
    /// What stands for the nth word in capitals.
    pub fn arg(&self, at: usize) -> &str {
        self.args.get(at).map_or("", String::as_str)
    }
    /// The last word in capitals as a number.
    pub fn number(&self) -> usize {
        self.args.last().and_then(|text| text.parse().ok()).unwrap_or(0)
    }
}

fn unknown(text: &str) -> String {
    let first = text.split_whitespace().next().unwrap_or_default();
    let alike: Vec<&str> =
        Form::ALL.iter().map(|form| form.words()).filter(|words| words.split(' ').next() == Some(first)).collect();
    let shown = if alike.is_empty() { Form::ALL.iter().map(|form| form.words()).collect() } else { alike };
    format!("\"{text}\" is no claim; expected is one of: {}", shown.join("; "))
}

fn is_blank(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|letter| letter.is_ascii_uppercase())
}

/// What stands for the blanks of the form, if the words fit it.
fn matched(form: &str, words: &[&str]) -> Option<Vec<String>> {
    let mut args = Vec::new();
    let mut words = words.iter();
    for part in form.split(' ') {
        match part {
            "TEXT" | "LIST" => {
                let rest: Vec<&str> = words.by_ref().copied().collect();
                if rest.is_empty() {
                    return None;
                }
                args.push(rest.join(" "));
            }
            blank if is_blank(blank) => args.push((*words.next()?).to_owned()),
            word => {
                if *words.next()? != word {
                    return None;
                }
            }
        }
    }
    words.next().is_none().then_some(args)
}

impl<'de> Deserialize<'de> for ClaimText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::Error;
        let claim = match Value::deserialize(deserializer)? {
            Value::String(text) => Claim::parse(None, &text),
            Value::Object(map) if map.len() == 1 => {
                let mut entries = map.into_iter();
                match entries.next() {
                    Some((of, Value::String(text))) => Claim::parse(Some(of), &text),
                    _ => Err("a claim: text is expected after the set's name".to_owned()),
                }
            }
            _ => Err("a claim: a sentence, or {SET: sentence}, is expected".to_owned()),
        };
        claim.map(ClaimText).map_err(D::Error::custom)
    }
}

impl JsonSchema for ClaimText {
    fn schema_name() -> Cow<'static, str> {
        "Claim".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let forms: Vec<Value> = Form::ALL
            .iter()
            .map(|form| {
                let doc = format!("{} — {}", form.words(), form.doc().trim());
                serde_json::json!({ "type": "string", "pattern": pattern(form.words()), "description": doc })
            })
            .collect();
        schemars::json_schema!({
            "description": "What must be true at the end: a sentence, or {SET: sentence} where it is about another set than the first.",
            "anyOf": [
                { "anyOf": forms },
                { "type": "object", "additionalProperties": { "type": "string" }, "minProperties": 1, "maxProperties": 1 },
            ],
        })
    }
}

fn pattern(form: &str) -> String {
    let words = form.split(' ').map(|word| match word {
        "TEXT" | "LIST" => ".+",
        "NUMBER" => r"\d+",
        blank if is_blank(blank) => r"\S+",
        word => word,
    });
    format!("^{}$", words.collect::<Vec<_>>().join(" "))
}
