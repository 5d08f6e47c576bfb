//! Ready-made answers: for every class of the classifier one that a real server gives, in the words recorded in
//! `tests/facts`.

use crate::core::outcome::Class;
use crate::core::wire::{Reply, Verb};
use serde_json::{Value, json};
use std::time::Duration;

/// The answer of this name, or none where this verb can never be answered so. Names are those of the classes.
/// The object is named `name` or `namespace/name`. Further names of answers:
/// `WebhookDenied`, `WebhookUnreachable`, `JsonPatchTest`, `500`, `503`, `504`, `429`, `TimedOut`, `Reset`, `NotSent`.
pub fn answer(name: &str, verb: Verb, kind: &str, object: &str) -> Option<Reply> {
    if let Some(class) = Class::ALL.iter().find(|class| class.name() == name) {
        return reply_of_class(*class, verb, kind, object);
    }
    let at = At::new(verb, kind, object);
    Some(match name {
        "WebhookDenied" if verb.writes() => at.webhook_denied(),
        "WebhookUnreachable" if verb.writes() => at.webhook_unreachable(),
        "JsonPatchTest" if verb == Verb::Patch => json_patch_test(),
        "500" => say(500, "InternalError", "Internal error occurred: etcdserver: leader changed", Some(json!({}))),
        "503" => unavailable(),
        "504" => say(504, "Timeout", "Timeout: request did not complete within the allotted timeout", Some(json!({}))),
        "429" => throttled(verb),
        "TimedOut" => Reply::TimedOut,
        "Reset" => Reply::Reset { sent: true },
        "NotSent" => Reply::Reset { sent: false },
        _ => return None,
    })
}

/// An answer that the classifier reads as exactly this class, or none where this verb can never get it.
pub fn reply_of_class(class: Class, verb: Verb, kind: &str, object: &str) -> Option<Reply> {
    if verb.is_registry() { registry(class, verb) } else { At::new(verb, kind, object).api(class) }
}

struct At<'a> {
    verb: Verb,
    kind: &'a str,
    namespace: &'a str,
    object: &'a str,
}

impl<'a> At<'a> {
    fn new(verb: Verb, kind: &'a str, object: &'a str) -> Self {
        let (namespace, object) = object.split_once('/').unwrap_or(("ns", object));
        Self { verb, kind, namespace, object }
    }

    fn api(&self, class: Class) -> Option<Reply> {
        let (create, named) =
            (self.verb == Verb::Create, !matches!(self.verb, Verb::List | Verb::Watch | Verb::Create));
        let (update, writes) = (matches!(self.verb, Verb::Update | Verb::Patch), self.verb.writes());
        Some(match class {
            Class::Done => self.done(),
            Class::Conflict if writes => self.conflict("the object has been modified; please apply your changes to the \
                latest version and try again"),
            Class::PreconditionFailed if self.verb == Verb::Delete => self.precondition(),
            Class::PreconditionFailed if self.verb == Verb::Patch => json_patch_test(),
            Class::AlreadyExists if create => self.already_exists(""),
            Class::AlreadyExistsTerminating if create => self.already_exists("object is being deleted: "),
            Class::NotFound if named => self.not_found(),
            Class::NamespaceNotFound if create => self.namespace_not_found(),
            Class::NotServed => text(404, "404 page not found\n"),
            Class::NamespaceTerminating if create => self.namespace_terminating(),
            Class::QuotaExceeded if create => {
                self.forbidden("exceeded quota: pods, requested: pods=1, used: pods=2, limited: pods=2", Vec::new())
            }
            Class::PodSecurityDenied if create || update => self.forbidden(
                "violates PodSecurity \"restricted:latest\": allowPrivilegeEscalation != false (container \"agent\" must \
                 set securityContext.allowPrivilegeEscalation=false)",
                Vec::new(),
            ),
            Class::AdmissionDenied if writes => self.webhook_denied(),
            Class::RbacDenied => self.rbac(),
            Class::ForbiddenOther if create || update => {
                self.forbidden("no PriorityClass with name urgent was found", Vec::new())
            }
            Class::Unauthorized => say(401, "Unauthorized", "Unauthorized", None),
            Class::FinalizerOnDeleting if update => self.invalid(
                "metadata.finalizers",
                "FieldValueForbidden",
                "Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers \
                 []string{\"cocoonset.cocoonstack.io/finalizer\"}",
            ),
            Class::Immutable if update => {
                self.invalid("spec", "FieldValueForbidden", "Forbidden: pod updates may not change fields other than `spec.containers[*].image`")
            }
            Class::Invalid if create || update => self.invalid("spec", "FieldValueInvalid", "Invalid value: -1: must be greater than or equal to 0"),
            Class::TooLarge if create || update => {
                let message = "Request entity too large: limit is 3145728";
                say(413, "RequestEntityTooLarge", message, None)
            }
            Class::BadRequest => say(400, "BadRequest", "the body of the request was in an unknown format", None),
            Class::Throttled => throttled(self.verb),
            Class::Unavailable => unavailable(),
            Class::Expired if matches!(self.verb, Verb::List | Verb::Watch) => {
                say(410, "Expired", "The resourceVersion for the provided list is too old.", None)
            }
            Class::Unknown if writes => {
                say(504, "Timeout", "Timeout: request did not complete within the allotted timeout", Some(json!({})))
            }
            Class::Fenced => Reply::Fenced,
            Class::Malformed => text(200, "{\"kind\": \"Po"),
            _ => return None,
        })
    }

    fn done(&self) -> Reply {
        match self.verb {
            Verb::List => Reply::json(
                200,
                &json!({"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": []}),
            ),
            Verb::Watch => text(200, ""),
            Verb::Delete => {
                Reply::json(200, &json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}))
            }
            _ => Reply::json(200, &json!({"metadata": {"name": self.object}})),
        }
    }
    fn named(&self, kind: &str) -> Value {
        let mut details = json!({"name": self.object, "kind": kind});
        if !self.group().is_empty() {
            details["group"] = json!(self.group());
        }
        details
    }
    fn plural(&self) -> &str {
        self.kind.split('/').next().unwrap_or(self.kind)
    }
    fn group(&self) -> &'static str {
        match self.plural() {
            "cocoonsets" | "cocoonhibernations" => crate::core::contract::keys::GROUP,
            "leases" => "coordination.k8s.io",
            _ => "",
        }
    }
    fn qualified(&self) -> String {
        if self.group().is_empty() { self.plural().to_owned() } else { format!("{}.{}", self.plural(), self.group()) }
    }
    fn conflict(&self, why: &str) -> Reply {
        let message = format!("Operation cannot be fulfilled on {} \"{}\": {why}", self.qualified(), self.object);
        say(409, "Conflict", &message, Some(self.named(self.plural())))
    }
    fn precondition(&self) -> Reply {
        self.conflict(
            "the UID in the precondition (00000000-0000-4000-8000-000000000000) does not match the UID in record \
             (00000000-0000-4000-8000-000000000001). The object might have been deleted and then recreated",
        )
    }
    fn already_exists(&self, prefix: &str) -> Reply {
        let message = format!("{prefix}{} \"{}\" already exists", self.qualified(), self.object);
        say(409, "AlreadyExists", &message, Some(self.named(self.plural())))
    }
    fn not_found(&self) -> Reply {
        let message = format!("{} \"{}\" not found", self.qualified(), self.object);
        say(404, "NotFound", &message, Some(self.named(self.plural())))
    }
    fn forbidden(&self, ground: &str, causes: Vec<Value>) -> Reply {
        let message = format!("{} \"{}\" is forbidden: {ground}", self.qualified(), self.object);
        let mut details = self.named(self.plural());
        if !causes.is_empty() {
            details["causes"] = Value::Array(causes);
        }
        say(403, "Forbidden", &message, Some(details))
    }
    fn namespace_terminating(&self) -> Reply {
        let terminates = format!("namespace {} is being terminated", self.namespace);
        let ground =
            format!("unable to create new content in namespace {} because it is being terminated", self.namespace);
        let cause = json!({"reason": "NamespaceTerminating", "message": terminates, "field": "metadata.namespace"});
        self.forbidden(&ground, vec![cause])
    }
    fn namespace_not_found(&self) -> Reply {
        let message = format!("namespaces \"{}\" not found", self.namespace);
        say(404, "NotFound", &message, Some(json!({"name": self.namespace, "kind": "namespaces"})))
    }
    fn rbac(&self) -> Reply {
        let user = super::super::world::OPERATOR;
        self.forbidden(
            &format!(
                "User \"{user}\" cannot {} resource \"{}\" in API group \"{}\" in the namespace \"{}\"",
                self.verb.label(),
                self.kind,
                self.group(),
                self.namespace
            ),
            Vec::new(),
        )
    }
    fn invalid(&self, field: &str, reason: &str, why: &str) -> Reply {
        let kind = match self.plural() {
            "pods" => "Pod",
            "cocoonsets" => "CocoonSet",
            "cocoonhibernations" => "CocoonHibernation",
            other => other,
        };
        let shown = if self.group().is_empty() { kind.to_owned() } else { format!("{kind}.{}", self.group()) };
        let message = format!("{shown} \"{}\" is invalid: {field}: {why}", self.object);
        let mut details = self.named(kind);
        details["causes"] = json!([{"reason": reason, "message": why, "field": field}]);
        say(422, "Invalid", &message, Some(details))
    }
    fn webhook_denied(&self) -> Reply {
        say(403, "Forbidden", "admission webhook \"guard.example.test\" denied the request: not today", None)
    }
    fn webhook_unreachable(&self) -> Reply {
        let message = "failed calling webhook \"guard.example.test\": failed to call webhook: Post \
            \"https://guard.example.test:443/?timeout=10s\": dial tcp 10.0.0.9:443: connect: connection refused";
        let details = json!({"causes": [{"message": message}]});
        say(500, "InternalError", &format!("Internal error occurred: {message}"), Some(details))
    }
}

fn say(code: u16, reason: &str, message: &str, details: Option<Value>) -> Reply {
    let mut body = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message, "reason": reason,
        "code": code,
    });
    if let Some(details) = details {
        body["details"] = details;
    }
    Reply::json(code, &body)
}

fn text(status: u16, body: &str) -> Reply {
    Reply::Http { status, retry_after: None, body: body.as_bytes().to_vec(), digest: None }
}

fn json_patch_test() -> Reply {
    say(422, "Invalid", "the server rejected our request due to an error in our request", Some(json!({})))
}

fn unavailable() -> Reply {
    let message = "the server is currently unable to handle the request";
    say(503, "ServiceUnavailable", message, Some(json!({"retryAfterSeconds": 1})))
}

fn throttled(verb: Verb) -> Reply {
    let body = if verb.is_registry() {
        json!({"errors": [{"code": "TOOMANYREQUESTS", "message": "slow down"}]}).to_string().into_bytes()
    } else {
        b"Too many requests, please try again later.\n".to_vec()
    };
    Reply::Http { status: 429, retry_after: Some(Duration::from_secs(1)), body, digest: None }
}

fn registry(class: Class, verb: Verb) -> Option<Reply> {
    let digest = Some(format!("sha256:{}", "0".repeat(64)));
    let oci = |status: u16, code: &str| {
        Reply::json(status, &json!({"errors": [{"code": code, "message": code.to_lowercase().replace('_', " ")}]}))
    };
    Some(match class {
        Class::Present if verb != Verb::RegistryDelete => {
            Reply::Http { status: 200, retry_after: None, body: b"{}".to_vec(), digest }
        }
        Class::Absent => oci(404, "MANIFEST_UNKNOWN"),
        Class::Denied => oci(403, "DENIED"),
        Class::Unsupported => oci(405, "UNSUPPORTED"),
        Class::Throttled => throttled(verb),
        Class::Unavailable => Reply::Reset { sent: false },
        Class::Unknown if verb == Verb::RegistryDelete => oci(500, "UNKNOWN"),
        Class::Fenced => Reply::Fenced,
        _ => return None,
    })
}
