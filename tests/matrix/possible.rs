//! Which verb can be answered with which class. A pair is impossible only where no answer to that verb means it.

use cocoon_operator::core::outcome::Class;
use cocoon_operator::core::wire::Verb;

const READS: &[Verb] = &[Verb::Get, Verb::List];
const API: &[Verb] = &[Verb::Get, Verb::List, Verb::Create, Verb::Patch, Verb::Delete];
const BODIES: &[Verb] = &[Verb::Create, Verb::Patch];
const WRITES: &[Verb] = &[Verb::Create, Verb::Patch, Verb::Delete];
const REGISTRY: &[Verb] = &[Verb::RegistryHead, Verb::RegistryDelete];

/// A class, the verbs that it can answer, and why it cannot answer the others.
type Line = (Class, &'static [&'static [Verb]], &'static str);

/// The table.
pub const TABLE: &[Line] = &[
    (Class::Done, &[API], "a registry's successes are Present and Absent"),
    (Class::Conflict, &[WRITES], "a read has no precondition, and a registry no versions"),
    (Class::PreconditionFailed, &[&[Verb::Patch, Verb::Delete]], "only patches and deletes carry a precondition"),
    (Class::AlreadyExists, &[&[Verb::Create]], "only a create claims a name"),
    (Class::AlreadyExistsTerminating, &[&[Verb::Create]], "only a create claims a name"),
    (Class::NotFound, &[&[Verb::Get], WRITES], "a list of nothing is an empty list; a registry says Absent"),
    (Class::NamespaceNotFound, &[&[Verb::Create]], "only a create is refused for the namespace's sake"),
    (Class::NotServed, &[API], "a registry that does not know the path says Absent or Unsupported"),
    (Class::NamespaceTerminating, &[&[Verb::Create]], "only creates are refused in a namespace that terminates"),
    (Class::QuotaExceeded, &[&[Verb::Create]], "a quota counts what comes into being"),
    (Class::PodSecurityDenied, &[&[Verb::Create]], "metadata and deletes of pods are exempt"),
    (Class::AdmissionDenied, &[WRITES], "admission does not see reads, nor the registry's calls"),
    (Class::RbacDenied, &[API], "the registry's refusal is Denied"),
    (Class::ForbiddenOther, &[API], "the registry's refusal is Denied"),
    (Class::Unauthorized, &[API], "the registry's refusal is Denied"),
    (Class::FinalizerOnDeleting, &[&[Verb::Patch]], "only a patch adds a finalizer to what is there"),
    (Class::Immutable, &[&[Verb::Patch]], "only a patch changes a field of what is there"),
    (Class::Invalid, &[BODIES], "only what is stored is validated"),
    (Class::TooLarge, &[BODIES], "nothing large is sent"),
    (Class::BadRequest, &[API], "the registry's word for it is Unsupported"),
    (Class::Throttled, &[API, REGISTRY], ""),
    (Class::Unavailable, &[API, REGISTRY], ""),
    (Class::Expired, &[&[Verb::List]], "only a list is continued"),
    (Class::Unknown, &[WRITES, &[Verb::RegistryDelete]], "a read that got no answer changed nothing: Unavailable"),
    (Class::Fenced, &[WRITES, &[Verb::RegistryDelete]], "reads need no lease"),
    (Class::Malformed, &[API], "a registry's success without a body that reads is Unavailable or Unknown"),
    (Class::Present, &[&[Verb::RegistryHead]], "only a HEAD says that a tag is there"),
    (Class::Absent, &[REGISTRY], "only the registry has tags"),
    (Class::Denied, &[REGISTRY], "the API server's refusals have finer names"),
    (Class::Unsupported, &[REGISTRY], "the API server's word for it is NotServed or BadRequest"),
];

/// Whether this verb can be answered so, or why not.
pub fn possible(verb: Verb, class: Class) -> Result<(), &'static str> {
    let (_, verbs, why) = TABLE.iter().find(|(of, ..)| *of == class).expect("every class has a line");
    if verbs.iter().any(|some| some.contains(&verb)) { Ok(()) } else { Err(why) }
}

#[test]
fn every_class_has_one_line_and_a_reason_where_it_needs_one() {
    assert_eq!(TABLE.iter().map(|(class, ..)| *class).collect::<Vec<_>>(), Class::ALL);
    let verbs: Vec<Verb> = API.iter().chain(REGISTRY).copied().collect();
    for (class, answers, why) in TABLE {
        let all = verbs.iter().all(|verb| answers.iter().any(|some| some.contains(verb)));
        assert_eq!(why.is_empty(), all, "{class}");
    }
    assert!(READS.iter().all(|verb| possible(*verb, Class::Unknown).is_err()));
}
