//! Definitions: rules that do not compile are refused, and a kind is emptied before its definition goes.

use super::{cluster, delete, get, merge, pass, post, put, refusal, sure};
use cocoon_operator::sim::store::Store;
use rstest::rstest;
use serde_json::{Value, json};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const ONE: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.example.test";
const THINGS: &str = "/apis/example.test/v1/namespaces/default/things";

fn definition(spec: Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.test"},
        "spec": {
            "group": "example.test", "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
            }],
        },
    })
}

fn with_rule(rule: Value) -> Value {
    definition(json!({
        "type": "object", "x-kubernetes-validations": [rule],
        "properties": {
            "size": {"type": "integer"}, "name": {"type": "string"}, "at": {"type": "string", "format": "date-time"},
            "parts": {"type": "array", "items": {"type": "object", "properties": {"weight": {"type": "integer"}}}},
            "tags": {"type": "object", "additionalProperties": {"type": "string"}},
            "any": {"x-kubernetes-preserve-unknown-fields": true},
            "port": {"x-kubernetes-int-or-string": true}, "a-b": {"type": "string"},
        },
    }))
}

fn thing(name: &str, finalizers: &[&str]) -> Value {
    let metadata = json!({"name": name, "finalizers": finalizers});
    json!({"apiVersion": "example.test/v1", "kind": "Thing", "metadata": metadata, "spec": {}})
}

/// A definition with this value at this place.
fn definition_with(place: &str, value: Value) -> Value {
    let mut odd = definition(json!({"type": "object"}));
    let (parent, field) = place.rsplit_once('/').expect("a place");
    odd.pointer_mut(parent).expect("the place")[field] = value;
    odd
}

#[rstest]
#[case::cut_off("self.size >", "compilation failed: ERROR: <input>:1:12: Syntax error")]
#[case::no_field("self.sise > 0", "undefined field 'sise'\n | self.sise > 0\n | ....^")]
#[case::no_field_in_a_list("self.parts.all(p, p.wait > 0)", "undefined field 'wait'")]
#[case::no_field_asked_for("has(self.nothing)", "undefined field 'nothing'")]
#[case::of_a_number("self.size.of > 0", "type 'int' does not support field selection")]
#[case::no_name("slef.size > 0", "undeclared reference to 'slef' (in container '')\n | slef.size > 0\n | ^")]
#[case::no_function("self.name.beginsWith('a')", "undeclared reference to 'beginsWith' (in container '')")]
#[case::at_its_bracket("self.name.beginsWith('a')", "ERROR: <input>:1:21: ")]
#[case::of_a_question("has(self.nothing)", "ERROR: <input>:1:4: ")]
#[case::no_type("self.any.whatever == 1", "undefined field 'any'")]
#[case::unlike("self.size == 'x'", "1:11: found no matching overload for '_==_' applied to '(int, string)'")]
#[case::no_sum("self.name + 1 == 'x'", "1:11: found no matching overload for '_+_' applied to '(string, int)'")]
#[case::no_truth("self.size", "cel expression must evaluate to a bool")]
#[case::no_truth_but_a_sum("self.size + 1", "cel expression must evaluate to a bool")]
#[case::nothing(" ", "x-kubernetes-validations[0].rule: Required value: rule is not specified")]
fn a_rule_that_does_not_compile_is_refused(#[case] rule: &str, #[case] told: &str) {
    let mut store = cluster();
    let reply = post(&mut store, DEFINITIONS, with_rule(json!({"rule": rule})));
    let (code, reason, message) = refusal(&reply);
    assert_eq!((code, reason), (422, "Invalid"), "{message}");
    assert!(message.contains(told), "{message}");
    let place = "spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule";
    assert_eq!(reply.value()["details"]["causes"][0]["field"], place);
    assert_eq!(get(&mut store, ONE).status, 404, "it is not stored");
    assert_eq!(get(&mut store, THINGS).status, 404, "nor is its kind served");
}

#[rstest]
#[case("self.size > 0 && self.name.startsWith('a')")]
#[case("self.parts.all(p, p.weight >= 0) && size(self.parts) < 5")]
#[case("self.parts.map(p, p.weight).sum() < 10")]
#[case("self.parts[0].weight == 1 || self.tags['x'] == 'y' || self.tags.x == 'y'")]
#[case("self.port == 'http' || self.port == 80")]
#[case("self.size > 0.5 || double(self.size) == 1.0")]
#[case("self.a__dash__b == 'x' && has(self.name)")]
#[case("!has(oldSelf.name) || self.name == oldSelf.name")]
#[case("type(self.size) == int && duration('1s') < duration('2s')")]
#[case("isURL(self.name) && url(self.name).getScheme() == 'https'")]
#[case("quantity('1Gi').isGreaterThan(quantity('1Mi')) && self.at < timestamp('2030-01-01T00:00:00Z')")]
#[case("self.parts.exists_one(p, p.weight == 3) ? self.size == 1 : true")]
#[case("['a', 'b'].exists(x, x == self.name) && {'a': 1}.all(k, k == 'a')")]
#[case("optional.of(self.size).hasValue() && ip.isCanonical('127.0.0.1')")]
#[case("self.?name.orValue('') == ''")]
fn a_rule_that_compiles_is_not(#[case] rule: &str) {
    let mut store = cluster();
    sure(&post(&mut store, DEFINITIONS, with_rule(json!({"rule": rule}))));
}

#[test]
fn the_rest_of_a_rule_is_looked_at_too() {
    let refused = |rule: Value| {
        let mut store = cluster();
        let reply = post(&mut store, DEFINITIONS, with_rule(rule));
        assert_eq!(reply.status, 422, "{}", reply.value());
        reply.value()["details"]["causes"][0].clone()
    };
    let cause = refused(json!({"rule": "self.size > 0", "messageExpression": "self.size"}));
    assert!(
        cause["message"].as_str().expect("text").ends_with("messageExpression must evaluate to a string"),
        "{cause}"
    );
    let shown = "Invalid value: {\"Rule\":\"self.size \\u003e 0\",\"Message\":\"\",\"MessageExpression\":\"self.size\",\
                 \"Reason\":null,\"FieldPath\":\"\",\"OptionalOldSelf\":null}: ";
    assert!(cause["message"].as_str().expect("text").starts_with(shown), "{cause}");
    let cause = refused(json!({"rule": "self.size > 0", "messageExpression": "'a' +"}));
    assert!(cause["field"].as_str().expect("text").ends_with("[0].messageExpression"), "{cause}");
    let cause = refused(json!({"rule": "self.size > 0", "reason": "Because"}));
    assert_eq!(cause["reason"], "FieldValueNotSupported");
    let cause = refused(json!({"rule": "self.size >\n0"}));
    assert_eq!(cause["message"], "Required value: message must be specified if rule contains line breaks");
}

#[test]
fn a_pattern_that_is_none_is_refused() {
    let mut store = cluster();
    let spec = json!({"type": "object", "properties": {"a": {"type": "string", "pattern": "[a-"}}});
    let reply = post(&mut store, DEFINITIONS, definition(spec));
    let (code, _, message) = refusal(&reply);
    assert_eq!(code, 422);
    assert!(
        message.contains("properties[a].pattern: Invalid value: \"[a-\": must be a valid regular expression"),
        "{message}"
    );
}

#[rstest]
#[case("/spec/scope", json!("Galaxy"), "spec.scope: Unsupported value: \"Galaxy\": supported values: \"Cluster\", \"Namespaced\"")]
#[case("/spec/versions/0/storage", json!(false), "must have exactly one version marked as storage version")]
#[case("/spec/versions/0/schema", json!({}), "spec.versions[0].schema.openAPIV3Schema: Required value: schemas are required")]
#[case("/spec/versions/0/schema/openAPIV3Schema/type", json!("string"), "openAPIV3Schema.type: Invalid value: \"string\": must be object at the root")]
#[case("/spec/versions/0/schema/openAPIV3Schema/properties/spec/type", json!("wat"), "properties[spec].type: Unsupported value: \"wat\"")]
#[case("/metadata/name", json!("other.example.test"), "must be spec.names.plural+\".\"+spec.group")]
fn a_definition_of_nothing_that_could_be_served(#[case] place: &str, #[case] value: Value, #[case] told: &str) {
    let mut store = cluster();
    let mut odd = definition(json!({"type": "object"}));
    *odd.pointer_mut(place).expect("the place") = value;
    let reply = post(&mut store, DEFINITIONS, odd);
    let (code, reason, message) = refusal(&reply);
    assert_eq!((code, reason), (422, "Invalid"), "{message}");
    assert!(message.contains(told), "{message}");
}

const SCHEMA: &str = "/spec/versions/0/schema/openAPIV3Schema/properties/spec";

#[rstest]
#[case("/spec/group", json!("example"), "spec.group: Invalid value: \"example\": should be a domain with at least one dot")]
#[case("/spec/names/kind", json!("Thing_1"), "spec.names.kind: Invalid value: \"Thing_1\": may have mixed case")]
#[case("/spec/names/listKind", json!("Thing"), "kind and listKind may not be the same")]
#[case("/spec/names/shortNames", json!(["T!"]), "spec.names.shortNames[0]: Invalid value: \"T!\": a DNS-1035 label must")]
#[case("/spec/versions/0/name", json!("V1"), "spec.versions[0].name: Invalid value: \"V1\": a DNS-1035 label must")]
#[case("/spec/preserveUnknownFields", json!(true), "spec.preserveUnknownFields: Invalid value: true: cannot set to true")]
#[case("/spec/versions/0/subresources", json!({"scale": {}}), "subresources.scale.specReplicasPath: Required value")]
#[case("/spec/versions/0/subresources", json!({"scale": {"specReplicasPath": ".status.a", "statusReplicasPath": ".status.a"}}), "should be a json path under .spec")]
#[case("/spec/versions/0/additionalPrinterColumns", json!([{"name": "a", "type": "blob", "jsonPath": ".a"}]), "type: Invalid value: \"blob\": must be one of boolean,date,integer,number,string")]
#[case("/spec/versions/0/additionalPrinterColumns", json!([{"name": "a", "type": "string", "jsonPath": "a"}]), "must be a simple json path starting with .")]
#[case(SCHEMA, json!({"type": "array"}), "properties[spec].items: Required value: must be specified")]
#[case(SCHEMA, json!({"type": "object", "$ref": "#/a"}), "properties[spec].$ref: Forbidden: $ref is not supported")]
#[case(SCHEMA, json!({"type": "string", "default": 1}), "properties[spec].default: Invalid value: \"integer\"")]
#[case(SCHEMA, json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "string"}}), "additionalProperties and properties are mutual exclusive")]
#[case(SCHEMA, json!({"type": "object", "properties": {"a": {}}}), "properties[a].type: Required value: must not be empty for specified object fields")]
#[case(SCHEMA, json!({"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "map"}), "x-kubernetes-list-map-keys: Required value: must not be empty")]
fn a_definition_of_something_odd(#[case] place: &str, #[case] value: Value, #[case] told: &str) {
    let mut store = cluster();
    let reply = post(&mut store, DEFINITIONS, definition_with(place, value));
    let (code, reason, message) = refusal(&reply);
    assert_eq!((code, reason), (422, "Invalid"), "{message}");
    assert!(message.contains(told), "{message}");
    assert_eq!(get(&mut store, ONE).status, 404, "it is not stored");
}

#[rstest]
#[case("/spec/versions/0/served", json!("yes"), "cannot unmarshal string into Go struct field CustomResourceDefinitionVersion.spec.versions.served of type bool")]
#[case("/spec/versions/0/additionalPrinterColumns", json!([{"name": false}]), "cannot unmarshal bool into Go struct field CustomResourceColumnDefinition.spec.versions.additionalPrinterColumns.name of type string")]
fn a_definition_that_does_not_fit_its_type(#[case] place: &str, #[case] value: Value, #[case] told: &str) {
    let mut store = cluster();
    let reply = post(&mut store, DEFINITIONS, definition_with(place, value));
    let (code, reason, message) = refusal(&reply);
    assert_eq!((code, reason), (400, "BadRequest"), "{message}");
    assert!(message.contains(told), "{message}");
}

#[test]
fn fields_that_no_definition_has_are_dropped_and_said() {
    let mut store = cluster();
    let mut odd = definition(json!({"type": "object", "default": {}, "x-kubernetes-preserve-unknown-fields": true}));
    odd["spec"]["foo"] = json!(1);
    let reply = post(&mut store, DEFINITIONS, odd);
    assert_eq!(reply.warnings, ["unknown field \"spec.foo\""]);
    let stored = sure(&reply);
    assert_eq!(stored["spec"]["foo"], Value::Null);
    let schema = &stored["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    assert_eq!(schema, &json!({"type": "object", "default": {}, "x-kubernetes-preserve-unknown-fields": true}));
}

#[test]
fn a_definition_does_not_become_wrong_later() {
    let mut store = cluster();
    let stored = sure(&post(&mut store, DEFINITIONS, with_rule(json!({"rule": "self.size > 0"}))));
    let mut wrong = with_rule(json!({"rule": "self.size >"}));
    wrong["metadata"]["resourceVersion"] = stored["metadata"]["resourceVersion"].clone();
    assert_eq!(put(&mut store, ONE, wrong).status, 422);
    let spec = json!({"spec": {"versions": with_rule(json!({"rule": "nobody"}))["spec"]["versions"]}});
    assert_eq!(merge(&mut store, ONE, spec).status, 422);
    let mut fine = thing("a", &[]);
    fine["spec"]["size"] = json!(0);
    assert_eq!(post(&mut store, THINGS, fine).status, 422, "the old rule is in force");
}

#[test]
fn rules_of_versions_that_differ_are_named_by_their_version() {
    let mut store = cluster();
    let mut two = with_rule(json!({"rule": "self.size > 0"}));
    let mut other = with_rule(json!({"rule": "self.size >"}))["spec"]["versions"][0].clone();
    other["name"] = json!("v2");
    other["storage"] = json!(false);
    two["spec"]["versions"].as_array_mut().expect("a list").push(other);
    let reply = post(&mut store, DEFINITIONS, two);
    let place = "spec.versions[1].schema.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule";
    assert_eq!((reply.status, &reply.value()["details"]["causes"][0]["field"]), (422, &json!(place)));
}

fn terminating(object: &Value) -> (&str, &str) {
    let list = object["status"]["conditions"].as_array().expect("conditions");
    let found = list.iter().find(|condition| condition["type"] == "Terminating").expect("the condition");
    (found["status"].as_str().expect("text"), found["reason"].as_str().expect("text"))
}

fn with_things() -> Store {
    let mut store = cluster();
    sure(&post(&mut store, DEFINITIONS, definition(json!({"type": "object"}))));
    sure(&post(&mut store, THINGS, thing("free", &[])));
    sure(&post(&mut store, THINGS, thing("held", &["example.test/hold"])));
    store
}

#[test]
fn a_definition_waits_for_what_finalizers_hold() {
    let mut store = with_things();
    let marked = sure(&delete(&mut store, ONE, Value::Null));
    assert_eq!(marked["kind"], "CustomResourceDefinition", "the answer is the object");
    assert_eq!(marked["metadata"]["finalizers"], json!(["customresourcecleanup.apiextensions.k8s.io"]));
    assert!(marked["metadata"]["deletionTimestamp"].is_string());
    assert_eq!(terminating(&marked), ("True", "InstanceDeletionPending"));
    let refused = post(&mut store, THINGS, thing("late", &[]));
    let why =
        "things.example.test \"late\" is forbidden: create not allowed while custom resource definition is terminating";
    assert_eq!(refusal(&refused), (403, "Forbidden", why));

    pass(&mut store, 30);
    let emptied = sure(&get(&mut store, ONE));
    assert_eq!(terminating(&emptied), ("True", "InstanceDeletionInProgress"));
    assert_eq!(get(&mut store, &format!("{THINGS}/free")).status, 404);
    let held = sure(&get(&mut store, &format!("{THINGS}/held")));
    assert!(held["metadata"]["deletionTimestamp"].is_string());
    assert_eq!(held["metadata"]["finalizers"], json!(["example.test/hold"]), "it is honoured");
    let again = sure(&delete(&mut store, ONE, Value::Null));
    assert_eq!(again["metadata"]["deletionGracePeriodSeconds"], 0);
    sure(&merge(&mut store, ONE, json!({"metadata": {"labels": {"a": "b"}}})));
    assert_eq!(terminating(&sure(&get(&mut store, ONE))).0, "True", "a write takes the condition not away");

    sure(&merge(&mut store, &format!("{THINGS}/held"), json!({"metadata": {"finalizers": null}})));
    pass(&mut store, 6);
    assert_eq!(get(&mut store, ONE).status, 404);
    assert_eq!(get(&mut store, THINGS).status, 404, "the kind went with it");
    assert_eq!(store.next_due(), None, "and nothing is left to be done");
    sure(&post(&mut store, DEFINITIONS, definition(json!({"type": "object"}))));
    assert_eq!(sure(&get(&mut store, THINGS))["items"], json!([]));
}

#[test]
fn a_definition_that_others_hold_is_emptied_and_stays() {
    let mut store = with_things();
    sure(&merge(&mut store, &format!("{THINGS}/held"), json!({"metadata": {"finalizers": null}})));
    sure(&merge(&mut store, ONE, json!({"metadata": {"finalizers": ["example.test/keep"]}})));
    sure(&delete(&mut store, ONE, Value::Null));
    pass(&mut store, 1);
    let emptied = sure(&get(&mut store, ONE));
    assert_eq!(emptied["metadata"]["finalizers"], json!(["example.test/keep"]));
    assert_eq!(terminating(&emptied), ("False", "InstanceDeletionCompleted"));
    assert_eq!(sure(&get(&mut store, THINGS))["items"], json!([]));
    sure(&merge(&mut store, ONE, json!({"metadata": {"finalizers": null}})));
    assert_eq!((get(&mut store, ONE).status, get(&mut store, THINGS).status), (404, 404));
}

#[test]
fn a_definition_is_deleted_by_its_own_uid_only() {
    let mut store = with_things();
    let reply = delete(&mut store, ONE, json!({"preconditions": {"uid": "another"}}));
    let (code, reason, message) = refusal(&reply);
    assert_eq!((code, reason), (409, "Conflict"));
    assert!(message.contains("Precondition failed: UID in precondition: another, UID in object meta: "), "{message}");
}

#[test]
fn what_a_client_says_of_the_status_of_a_new_definition_is_dropped() {
    let mut store = cluster();
    let mut told = definition(json!({"type": "object"}));
    told["status"] = json!({"conditions": [{"type": "Terminating", "status": "True"}]});
    let stored = sure(&post(&mut store, DEFINITIONS, told));
    assert_eq!(stored["status"]["conditions"].as_array().map(Vec::len), Some(2));
    sure(&post(&mut store, THINGS, thing("a", &[])));
}
