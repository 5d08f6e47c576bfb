//! What clients other than kubectl ask for, and what kubectl never does: read off the answers themselves.

use bytes::Bytes;
use cocoon_operator::sim::server::Cluster;
use cocoon_operator::sim::store::{ADMIN, Match, Refusal, Rule};
use cocoon_operator::sim::world::World;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};

const SETS: &str = "/apis/cocoonset.cocoonstack.io/v1/namespaces/default/cocoonsets";
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

struct Answer {
    status: u16,
    etag: Option<String>,
    body: Bytes,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("JSON")
    }
}

/// A cluster with one set.
async fn cluster() -> Cluster {
    let cluster = Cluster::new(World::new(jiff::Timestamp::now()));
    let set = json!({
        "apiVersion": "cocoonset.cocoonstack.io/v1", "kind": "CocoonSet", "metadata": {"name": "demo"},
        "spec": {"agent": {"image": "i", "replicas": 2}},
    });
    assert_eq!(
        send(&cluster, "POST", SETS, &[("content-type", "application/json")], set.to_string()).await.status,
        201
    );
    cluster
}

async fn send(cluster: &Cluster, method: &str, path: &str, headers: &[(&str, &str)], body: impl Into<Bytes>) -> Answer {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Full::new(body.into())).expect("a request");
    let answer: Response<_> = cluster.handle(ADMIN, request).await.expect("an answer");
    let etag = answer.headers().get("etag").and_then(|mark| mark.to_str().ok()).map(str::to_owned);
    let status = answer.status().as_u16();
    Answer { status, etag, body: answer.into_body().collect().await.expect("a body").to_bytes() }
}

async fn get(cluster: &Cluster, path: &str, accept: &str) -> Answer {
    send(cluster, "GET", path, &[("accept", accept)], "").await
}

#[tokio::test]
async fn metadata_alone_is_given_without_the_rest() {
    let cluster = cluster().await;
    let one = get(&cluster, &format!("{SETS}/demo"), METADATA).await.json();
    assert_eq!((&one["kind"], &one["apiVersion"]), (&json!("PartialObjectMetadata"), &json!("meta.k8s.io/v1")));
    assert_eq!((&one["metadata"]["name"], one.get("spec")), (&json!("demo"), None));
    let all = get(&cluster, SETS, METADATA_LIST).await.json();
    assert_eq!(all["kind"], "PartialObjectMetadataList");
    assert_eq!(all["items"].as_array().map(Vec::len), Some(1));
    assert_eq!(all["items"][0]["kind"], "PartialObjectMetadata");
    assert!(all["metadata"]["resourceVersion"].is_string());
    let path = format!("{SETS}?watch=1&timeoutSeconds=1");
    let watched = get(&cluster, &path, METADATA).await;
    let line = watched.body.split(|byte| *byte == b'\n').next().expect("an event");
    let event: Value = serde_json::from_slice(line).expect("JSON");
    assert_eq!((&event["type"], &event["object"]["kind"]), (&json!("ADDED"), &json!("PartialObjectMetadata")));
}

#[tokio::test]
async fn a_row_carries_as_much_of_its_object_as_is_asked_for() {
    let cluster = cluster().await;
    let row = async |include: &str| {
        let table = get(&cluster, &format!("{SETS}?includeObject={include}"), TABLE).await.json();
        assert_eq!(table["kind"], "Table");
        table["rows"][0].clone()
    };
    assert_eq!(row("None").await.get("object"), None);
    assert_eq!(row("Metadata").await["object"]["kind"], "PartialObjectMetadata");
    assert_eq!(row("Object").await["object"]["spec"]["agent"]["replicas"], 2);
    assert_eq!(row("Object").await["cells"][0], "demo");
}

#[tokio::test]
async fn a_refusal_is_a_status_whatever_the_form() {
    let cluster = cluster().await;
    let missing = get(&cluster, &format!("{SETS}/none"), TABLE).await;
    assert_eq!((missing.status, &missing.json()["kind"]), (404, &json!("Status")));
}

#[tokio::test]
async fn objects_are_whole_for_those_who_do_not_ask_otherwise() {
    let cluster = cluster().await;
    for accept in ["", "*/*", "application/json", "application/vnd.kubernetes.protobuf,application/json"] {
        let set = get(&cluster, &format!("{SETS}/demo"), accept).await.json();
        assert_eq!((&set["kind"], &set["spec"]["agent"]["image"]), (&json!("CocoonSet"), &json!("i")), "{accept:?}");
    }
}

#[tokio::test]
async fn the_columns_of_a_watched_table_come_once() {
    let cluster = cluster().await;
    let path = format!("{SETS}?watch=1&timeoutSeconds=1&resourceVersion=0");
    let open = tokio::spawn({
        let cluster = cluster.clone();
        async move { get(&cluster, &path, TABLE).await }
    });
    tokio::task::yield_now().await;
    let patch = json!({"spec": {"agent": {"replicas": 3}}}).to_string();
    let merge = [("content-type", "application/merge-patch+json")];
    assert_eq!(send(&cluster, "PATCH", &format!("{SETS}/demo"), &merge, patch).await.status, 200);
    let body = open.await.expect("done").body;
    let text = String::from_utf8_lossy(&body);
    let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let kinds: Vec<&Value> = events.iter().map(|event| &event["type"]).collect();
    assert_eq!(kinds, ["ADDED", "MODIFIED"]);
    let columns: Vec<bool> = events.iter().map(|event| event["object"]["columnDefinitions"].is_array()).collect();
    assert_eq!(columns, [true, false]);
}

#[tokio::test]
async fn a_document_that_is_known_is_not_sent_again() {
    let cluster = cluster().await;
    let v3 = "/openapi/v3/apis/cocoonset.cocoonstack.io/v1";
    let aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
    for (path, accept) in [(v3, "application/json"), ("/apis", aggregated), ("/openapi/v2", "application/json")] {
        let first = get(&cluster, path, accept).await;
        let mark = first.etag.expect("a mark");
        let again = send(&cluster, "GET", path, &[("accept", accept), ("if-none-match", &mark)], "").await;
        assert_eq!((first.status, again.status, again.body.len()), (200, 304, 0), "{path}");
    }
}

#[tokio::test]
async fn the_index_of_schemas_changes_with_a_definition() {
    let cluster = cluster().await;
    let index = get(&cluster, "/openapi/v3", "*/*").await.json();
    let url = |index: &Value| index["paths"]["apis/cocoonset.cocoonstack.io/v1"]["serverRelativeURL"].clone();
    assert!(url(&index).is_string());
    let crd = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/cocoonsets.cocoonset.cocoonstack.io";
    let at = "/spec/versions/0/schema/openAPIV3Schema/description";
    let patch = json!([{"op": "replace", "path": at, "value": "Other words."}]).to_string();
    let json_patch = [("content-type", "application/json-patch+json")];
    assert_eq!(send(&cluster, "PATCH", crd, &json_patch, patch).await.status, 200);
    assert_ne!(url(&index), url(&get(&cluster, "/openapi/v3", "*/*").await.json()));
}

#[tokio::test]
async fn a_body_in_protobuf_of_a_kind_that_is_not_known_is_refused() {
    let cluster = cluster().await;
    let headers = [("content-type", "application/vnd.kubernetes.protobuf")];
    let binary: &[u8] = b"k8s\0\x0a\x0c\x0a\x02v1\x12\x06Binary\x12\x00";
    for body in [binary, b"k8s\0\x0a\xff", b"{}"] {
        let answer = send(&cluster, "POST", "/api/v1/namespaces/default/configmaps", &headers, body).await;
        assert_eq!((answer.status, &answer.json()["reason"]), (415, &json!("UnsupportedMediaType")));
    }
}

/// As `kubectl create deployment` sends it.
#[tokio::test]
async fn where_nothing_is_served_a_body_in_protobuf_changes_nothing() {
    let cluster = cluster().await;
    let headers = [("content-type", "application/vnd.kubernetes.protobuf")];
    let deployment: &[u8] = b"k8s\0\x0a\x15\x0a\x07apps/v1\x12\x0aDeployment\x12\x00";
    for path in [
        "/apis/apps/v1/namespaces/default/deployments",
        "/api/v1/namespaces/default/endpoints",
        "/api/v1/namespaces/default/serviceaccounts/default/token",
    ] {
        let answer = send(&cluster, "POST", path, &headers, deployment).await;
        assert_eq!(answer.status, 404, "{path}");
    }
}

#[tokio::test]
async fn a_review_says_what_authorization_would() {
    let cluster = cluster().await;
    let refused = Match { verbs: vec!["delete".to_owned()], resource: Some("pods".to_owned()), ..Match::default() };
    cluster.with(|world| world.store.add_rule(Rule::new(refused, Refusal::Rbac).times(1)));
    let may = async |verb: &str| {
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {"verb": verb, "resource": "pods", "namespace": "default"}},
        });
        let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
        let headers = [("content-type", "application/json")];
        send(&cluster, "POST", path, &headers, review.to_string()).await.json()["status"]["allowed"].clone()
    };
    // Asking uses nothing up.
    assert_eq!(
        [may("delete").await, may("delete").await, may("list").await],
        [json!(false), json!(false), json!(true)]
    );
}
