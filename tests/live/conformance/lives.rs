//! One life for every kind: created, read, changed in each way there is, refused in each way there is, deleted.

use super::Case;
use super::call::{Call, JSON, JSON_PATCH, delete, delete_with, get, json_patch, merge, post, put, put_last, text};
use super::kinds::{KINDS, Kind};
use serde_json::{Value, json};

/// A uid that no object has.
const UID: &str = "00000000-0000-4000-8000-000000000000";
const FINALIZER: &str = "example.test/hold";

/// A case for each kind.
pub fn cases() -> Vec<Case> {
    KINDS.iter().map(|kind| Case::new(format!("life-{}", kind.name), life(kind))).collect()
}

fn life(kind: &Kind) -> Vec<Call> {
    let mut calls = created_and_read(kind);
    calls.extend(changed(kind));
    calls.extend(patched(kind));
    calls.extend(refused(kind));
    calls.extend(deleted(kind));
    // A case leaves nothing behind that others could see.
    if !kind.collection.contains("{ns}") {
        calls.push(delete(kind.at("{ns}-two")).says("the second one goes too"));
    }
    calls
}

/// The names of the two objects: cluster-wide ones must not meet those of other cases.
fn names(kind: &Kind) -> (&'static str, &'static str) {
    if kind.collection.contains("{ns}") { ("one", "two") } else { ("{ns}-one", "{ns}-two") }
}

fn created_and_read(kind: &Kind) -> Vec<Call> {
    let (one, two) = names(kind);
    let collection = kind.collection;
    let labelled = |name: &str, app: &str| kind.object(name, json!({"labels": {"app": app, "case": "{ns}"}}));
    let selected = |selector: &str| get(format!("{collection}?labelSelector={selector}"));
    // It lags behind what was written.
    let cached = format!("{collection}?labelSelector=case%3D{{ns}}&resourceVersion=0");
    let mut calls = vec![
        post(format!("{collection}?dryRun=All"), labelled(one, "a")).says("a dry run answers as the real thing"),
        get(kind.at(one)).says("and stores nothing"),
        post(format!("{collection}?dryRun=maybe"), labelled(one, "a")).says("another word for dryRun"),
        post(collection, labelled(one, "a")).says("created"),
    ];
    calls.extend(counted(kind, one, "/status/used/secrets", "0"));
    calls.extend(tended(kind, one));
    calls.extend([
        post(collection, labelled(one, "a")).says("created again"),
        get(kind.at(one)).says("read"),
        get(kind.at("absent")).says("read what is not there"),
        post(collection, labelled(two, "b")).says("a second one"),
    ]);
    calls.extend(counted(kind, two, "/status/used/secrets", "0"));
    calls.extend([
        selected("case%3D{ns},app%3Da").says("listed by equality"),
        selected("case%3D{ns},app!%3Da").says("listed by inequality"),
        selected("case%3D{ns},app%20in%20(a,b)").says("listed by set"),
        selected("case%3D{ns},app%20notin%20(a)").says("listed by complement"),
        selected("case%3D{ns},!app").says("listed by absence"),
        selected("app%3D%3D%3Da").says("a selector that is none"),
        selected("app%20in").says("half a selector"),
        get(format!("{collection}?labelSelector=case%3D{{ns}}&limit=1")).says("the first page"),
        get(format!("{collection}?labelSelector=case%3D{{ns}}&limit=x")).says("a limit that is no number"),
        get(format!("{collection}?fieldSelector=metadata.name%3D{one}")).says("listed by name"),
        get(format!("{collection}?fieldSelector=spec.colour%3Dred")).says("a field that cannot be selected by"),
        get(&cached).once(&cached, "/items/1/metadata/name", json!(two)).says("from the cache"),
        get(format!("{collection}?labelSelector=case%3D{{ns}}&resourceVersion=x")).says("a version that is none"),
        get(format!("{collection}?labelSelector=case%3D{{ns}}&resourceVersionMatch=Exact"))
            .says("a match without a version"),
    ]);
    calls
}

/// A quota is counted by a controller, in its own time; nothing for other kinds.
fn counted(kind: &Kind, name: &str, pointer: &'static str, value: &str) -> Option<Call> {
    let at = kind.at(name);
    (kind.name == "resourcequota").then(|| get(&at).once(&at, pointer, json!(value)).says("it is counted"))
}

/// The admission plugin taints a node that is new, and a controller takes the taint off again, in its own time.
fn tended(kind: &Kind, name: &str) -> Option<Call> {
    let at = kind.at(name);
    (kind.name == "node").then(|| get(&at).once(&at, "/spec/taints", Value::Null).says("its controllers know it"))
}

/// A put of the object as it stands right now: controllers write to a node as well.
fn put_now(kind: &Kind, name: &str, more: Value) -> Call {
    let at = kind.at(name);
    let put = put_last(&at, name, more);
    if kind.name == "node" { put.once(&at, "/metadata/name", json!(name)) } else { put }
}

fn changed(kind: &Kind) -> Vec<Call> {
    let (one, _) = names(kind);
    let at = kind.at(one);
    let mut calls = vec![
        put_now(kind, one, json!({})).says("put as it is"),
        put_now(kind, one, json!({"metadata": {"labels": {"colour": "red"}}})).says("put with a label more"),
        put_now(kind, one, (kind.change)()).says("put with another content"),
    ];
    calls.extend(counted(kind, one, "/status/hard/secrets", "99"));
    calls.extend([
        put_now(kind, one, json!({"metadata": {"resourceVersion": format!("$first-rv:{one}")}}))
            .says("put at a stale version"),
        put_now(kind, one, json!({"metadata": {"resourceVersion": null}})).says("put without a version"),
        put_now(kind, one, json!({"metadata": {"resourceVersion": "x"}})).says("put at a version that is none"),
        put_now(kind, one, json!({"metadata": {"uid": UID}})).says("put under another uid"),
        put_now(kind, one, json!({"metadata": {"name": "other"}})).says("put under another name"),
        put_now(kind, one, json!({"kind": "Other"})).says("put as another kind"),
        put_now(kind, one, json!({"metadata": {"creationTimestamp": "2001-01-01T00:00:00Z", "generation": 77}}))
            .says("put with times and generation of its own"),
        get(&at).says("read after the puts"),
    ]);
    if let Some(status) = kind.status {
        let at = format!("{at}/status");
        calls.extend([
            merge(&at, json!({"status": status()})).says("status written"),
            merge(&at, json!({"status": status(), "metadata": {"resourceVersion": format!("$first-rv:{one}")}}))
                .says("status at a stale version"),
            merge(&at, json!({"metadata": {"labels": {"by": "status"}}})).says("a label through status"),
            merge(&at, (kind.change)()).says("the content through status"),
            put_now(kind, one, json!({"status": status()})).says("status put"),
            get(&at).says("status read"),
            merge(kind.at(one), json!({"status": status()})).says("status through the main resource"),
        ]);
    } else {
        calls.push(get(format!("{at}/colour")).says("a subresource that is none"));
    }
    calls
}

fn patched(kind: &Kind) -> Vec<Call> {
    let (one, _) = names(kind);
    let at = kind.at(one);
    let uid = |value: &str| json!({"op": "test", "path": "/metadata/uid", "value": value});
    vec![
        merge(&at, json!({"metadata": {"annotations": {"note": "one"}}})).says("an annotation"),
        merge(&at, json!({"metadata": {"annotations": {"note": "one"}}})).says("the same annotation"),
        merge(&at, json!({"metadata": {"annotations": {"note": null}}})).says("the annotation taken away"),
        merge(&at, json!({"metadata": {"annotations": {"n": "1"}, "resourceVersion": format!("$first-rv:{one}")}}))
            .says("a merge patch at a stale version"),
        merge(&at, json!({"metadata": {"annotations": {"n": "1"}, "resourceVersion": format!("$rv:{one}")}}))
            .says("a merge patch at the present version"),
        merge(&at, json!({"metadata": {"uid": UID, "annotations": {"n": "2"}}}))
            .says("a merge patch under another uid"),
        merge(&at, json!({"metadata": {"name": "other"}})).says("a merge patch of the name"),
        merge(kind.at("absent"), json!({"metadata": {"annotations": {"n": "1"}}})).says("a patch of what is not there"),
        merge(format!("{at}?dryRun=All"), json!({"metadata": {"annotations": {"dry": "yes"}}})).says("a dry patch"),
        json_patch(
            &at,
            json!([uid(&format!("$uid:{one}")), {"op": "test", "path": "/metadata/finalizers", "value": null},
            {"op": "add", "path": "/metadata/finalizers", "value": [FINALIZER]}]),
        )
        .says("our finalizer, where there is none"),
        json_patch(
            &at,
            json!([uid(&format!("$uid:{one}")), {"op": "test", "path": "/metadata/finalizers", "value": null},
            {"op": "add", "path": "/metadata/finalizers", "value": [FINALIZER]}]),
        )
        .says("and again, where there is one"),
        json_patch(&at, json!([uid(UID)])).says("a test of another uid"),
        json_patch(&at, json!([{"op": "test", "path": "/metadata/finalizers", "value": []}]))
            .says("a test against an empty list"),
        json_patch(&at, json!([{"op": "remove", "path": "/metadata/annotations/never"}]))
            .says("removing what is not there"),
        json_patch(&at, json!([{"op": "replace", "path": "/metadata/labels/app", "value": "c"}]))
            .says("replacing a label"),
        json_patch(&at, json!([{"op": "jump", "path": "/metadata"}])).says("an operation that is none"),
        text("PATCH", &at, JSON_PATCH, "[{\"op\": \"add\"").says("half a JSON patch"),
        text("PATCH", &at, "text/plain", "x").says("a patch of no type"),
        text("PATCH", &at, "application/merge-patch+json", "{").says("half a merge patch"),
    ]
}

fn refused(kind: &Kind) -> Vec<Call> {
    let collection = kind.collection;
    let named = |name: &str, metadata: Value| post(collection, kind.object(name, metadata));
    let mut other_kind = kind.object("odd", json!({}));
    other_kind["kind"] = json!("Other");
    let mut other_version = kind.object("odd", json!({}));
    other_version["apiVersion"] = json!("other.test/v9");
    let mut calls = vec![
        text("POST", collection, JSON, "{\"kind\":").says("half an object"),
        text("POST", collection, JSON, "[]").says("a list instead of an object"),
        text("POST", collection, JSON, "").says("nothing"),
        text("POST", collection, "text/plain", "x").says("an object of no type"),
        post(collection, other_kind).says("another kind"),
        post(collection, other_version).says("another version"),
        named("Upper", json!({})).says("a name in capitals"),
        named("a..b", json!({})).says("a name with two dots"),
        named("", json!({})).says("no name"),
        named("odd", json!({"labels": {"app": "a b"}})).says("a label value with a space"),
        named("odd", json!({"labels": {"-app": "a"}})).says("a label key that is none"),
        named("odd", json!({"annotations": {"a/b/c": "a"}})).says("an annotation key that is none"),
        named("odd", json!({"finalizers": ["not qualified"]})).says("a finalizer that is none"),
        named("odd", json!({"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": ""}]}))
            .says("an owner without a uid"),
        named("odd", json!({"labels": {"app": 1}})).says("a label that is a number"),
        named("odd", json!({"resourceVersion": "1"})).says("a version before there is one"),
        put(kind.at("absent"), kind.object("absent", json!({"resourceVersion": "1"})))
            .says("put where nothing is, at a version"),
        put(kind.at("away"), kind.object("away", json!({"resourceVersion": "1", "uid": UID})))
            .says("put where nothing is, at a version and under a uid"),
        put(kind.at("never"), kind.object("never", json!({"uid": UID}))).says("put where nothing is, under a uid"),
        get(format!("{collection}/a/b/c")).says("a path too deep"),
        text("PURGE", kind.at("one").as_str(), "", "").says("a method that is none"),
    ];
    if collection.contains("{ns}") {
        calls.push(named("odd", json!({"namespace": "elsewhere"})).says("another namespace in the body"));
        calls.push(
            post(collection.replace("{ns}", "nowhere-at-all"), kind.object("odd", json!({})))
                .says("a namespace that is not there"),
        );
    }
    calls
}

fn deleted(kind: &Kind) -> Vec<Call> {
    let (one, _) = names(kind);
    let at = kind.at(one);
    let hold = |list: Value| {
        json_patch(
            &at,
            json!([{"op": "test", "path": "/metadata/uid", "value": format!("$uid:{one}")},
            {"op": "replace", "path": "/metadata/finalizers", "value": list}]),
        )
    };
    let namespace = kind.name == "namespace";
    let mut calls = vec![
        delete_with(&at, json!({"preconditions": {"uid": UID}})).says("deleted under another uid"),
        delete_with(&at, json!({"preconditions": {"uid": format!("$uid:{one}"), "resourceVersion": "1"}}))
            .says("deleted at another version"),
        delete_with(&at, json!({"propagationPolicy": "Sideways"})).says("a propagation that is none"),
        delete_with(&at, json!({"gracePeriodSeconds": -5})).says("a negative grace"),
        delete_with(&at, json!({"dryRun": ["All"]})).says("deleted, dry"),
        text("DELETE", &at, JSON, "{\"kind\":").says("half of the options"),
        delete(kind.at("absent")).says("deleting what is not there"),
        delete_with(&at, json!({"preconditions": {"uid": format!("$uid:{one}")}})).says("deleted, held by a finalizer"),
        get(&at).says("it is marked"),
        delete(&at).says("deleted again"),
        post(kind.collection, kind.object(one, json!({}))).says("created over one that is going"),
        merge(&at, json!({"metadata": {"annotations": {"late": "yes"}}})).says("an annotation on one that is going"),
        hold(json!([FINALIZER])).says("the same finalizers stated again"),
        hold(json!([FINALIZER, "example.test/other"])).says("one finalizer more"),
        merge(&at, json!({"metadata": {"deletionTimestamp": null}})).says("taking the mark away"),
    ];
    if namespace {
        // Its controller empties it first and then lets go of `spec.finalizers`.
        calls.push(get(&at).once(&at, "/spec/finalizers", Value::Null).says("emptied, held by metadata alone"));
    }
    calls.push(hold(json!([])).says("the last finalizer goes"));
    calls.push(get(&at).once_gone(&at).says("it is gone"));
    if kind.collection.contains("{ns}") {
        let generated = json!({"generateName": "made-", "labels": {"made": "yes"}});
        let mut object = kind.object("x", generated);
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove("name");
        }
        let collection = kind.collection;
        calls.extend([post(collection, object).says("a name made from a prefix")]);
        let made = format!("{collection}?labelSelector=made%3Dyes");
        if kind.name == "resourcequota" {
            calls.push(get(&made).once(&made, "/items/0/status/used/secrets", json!("0")).says("it is counted"));
        }
        calls.extend([
            delete(format!("{made}&gracePeriodSeconds=0")).says("a collection deleted by label"),
            get(made).says("nothing of it is left"),
        ]);
    }
    calls
}
