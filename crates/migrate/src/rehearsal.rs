//! A client whose writes are dry runs: the server computes what the controllers would change, and nothing is written.

use http::{Method, Request, Response};
use kube::client::Body;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use tower::ServiceExt;
use tower::util::BoxCloneSyncService;
use transom_object::meta;

/// A write that would have been made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// `POST`, `PUT`, `PATCH` or `DELETE`.
    pub method: String,
    /// The path of the object.
    pub path: String,
    /// The fields that would have changed, with their values before and after; or why the server would have refused.
    pub changes: Vec<String>,
}

/// The writes of a client that makes none.
#[derive(Clone, Default)]
pub struct Rehearsal(Arc<Mutex<BTreeMap<(String, String), Write>>>);

/// The longest text of a value in a change.
const MAX_SHOWN: usize = 120;

impl Rehearsal {
    /// A client that reads through this one, and writes by dry runs. Events and Leases are not sent at all.
    pub fn client(&self, client: kube::Client) -> kube::Client {
        let rehearsal = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let (client, rehearsal) = (client.clone(), rehearsal.clone());
            async move { rehearsal.answer(client, request).await }
        });
        kube::Client::new(BoxCloneSyncService::new(service.map_err(tower::BoxError::from)), "default")
    }

    /// What would have been written, by path; each object once for each method.
    pub fn writes(&self) -> Vec<Write> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    async fn answer(&self, client: kube::Client, request: Request<Body>) -> kube::Result<Response<Body>> {
        let path = request.uri().path().to_owned();
        let is_read = request.method() == Method::GET || is_review(&path);
        if is_read {
            return client.send(request).await;
        }
        let (mut head, body) = request.into_parts();
        let body = body.collect_bytes().await?;
        if path.contains("/events") || path.contains("/leases") {
            return Ok(respond(&body));
        }
        let before = self.stored(&client, &path).await;
        let query = head.uri.query().map(|query| format!("{query}&")).unwrap_or_default();
        if let Ok(uri) = format!("{path}?{query}dryRun=All").parse() {
            head.uri = uri;
        }
        let method = head.method.to_string();
        let response = client.send(Request::from_parts(head, Body::from(body))).await?;
        let status = response.status();
        let answer = response.into_body().collect_bytes().await?;
        let after: Value = serde_json::from_slice(&answer).unwrap_or_default();
        let changes = match (status.is_success(), method.as_str()) {
            (false, _) => vec![format!("refused: {}", after["message"].as_str().unwrap_or_default())],
            (true, "DELETE") => vec!["deleted".to_owned()],
            (true, _) => {
                before.map_or_else(|| vec!["created".to_owned()], |before| differences(&before, &after))
            }
        };
        // A conflict is tried again with the newer version.
        if !changes.is_empty() && status.as_u16() != 409 {
            self.note(method, named(&path, &after), changes);
        }
        let mut response = respond(&answer);
        *response.status_mut() = status;
        Ok(response)
    }

    async fn stored(&self, client: &kube::Client, path: &str) -> Option<Value> {
        let path = path.trim_end_matches("/status");
        let request = Request::get(path).body(Body::empty()).ok()?;
        let response = client.send(request).await.ok().filter(|response| response.status().is_success())?;
        let object: Value = serde_json::from_slice(&response.into_body().collect_bytes().await.ok()?).ok()?;
        object.get("metadata").and_then(|metadata| metadata.get("name")).is_some().then_some(object)
    }

    fn note(&self, method: String, path: String, changes: Vec<String>) {
        let mut writes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        writes.insert((path.clone(), method.clone()), Write { method, path, changes });
    }
}

/// The path of an object: that of a creation is the path of its collection.
fn named(path: &str, object: &Value) -> String {
    let name = meta::name(object);
    let last = path.trim_end_matches("/status").rsplit('/').next().unwrap_or_default();
    if name.is_empty() || last == name { path.to_owned() } else { format!("{path}/{name}") }
}

fn is_review(path: &str) -> bool {
    path.starts_with("/apis/authorization.k8s.io/") || path.starts_with("/apis/authentication.k8s.io/")
}

fn respond(body: &[u8]) -> Response<Body> {
    Response::new(Body::from(body.to_vec()))
}

/// What differs between two versions of an object, but for what every write changes.
fn differences(before: &Value, after: &Value) -> Vec<String> {
    let mut found = Vec::new();
    compare(&content(before), &content(after), "", &mut found);
    found
}

fn content(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = meta::metadata_mut(&mut object) {
        for field in ["managedFields", "resourceVersion", "generation"] {
            metadata.remove(field);
        }
    }
    object
}

fn compare(before: &Value, after: &Value, path: &str, found: &mut Vec<String>) {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            let keys: std::collections::BTreeSet<&String> = before.keys().chain(after.keys()).collect();
            for key in keys {
                let get = |map: &serde_json::Map<String, Value>| map.get(key).cloned().unwrap_or_default();
                compare(&get(before), &get(after), &format!("{path}.{key}"), found);
            }
        }
        (Value::Array(before), Value::Array(after)) if before.len() == after.len() => {
            for (at, (before, after)) in before.iter().zip(after).enumerate() {
                compare(before, after, &format!("{path}[{at}]"), found);
            }
        }
        (before, after) if before != after => {
            found.push(format!(
                "{}: {} -> {}",
                path.trim_start_matches('.'),
                shortened(before),
                shortened(after)
            ));
        }
        _ => {}
    }
}

fn shortened(value: &Value) -> String {
    let text = String::from_utf8_lossy(&transom_object::json::encode(value)).into_owned();
    if text.chars().count() <= MAX_SHOWN {
        return text;
    }
    text.chars().take(MAX_SHOWN).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn differences_name_fields_and_leave_out_what_every_write_changes() {
        let object = |version: &str, text: &str| json!({"metadata": {"name": "n", "resourceVersion": version, "managedFields": [version]}, "data": {"a": text, "b": "x"}});
        assert!(differences(&object("1", "t"), &object("2", "t")).is_empty());
        assert_eq!(differences(&object("1", "t"), &object("2", "u")), ["data.a: \"t\" -> \"u\""]);
        assert_eq!(named("/apis/g/v1/things", &object("1", "")), "/apis/g/v1/things/n");
        assert_eq!(named("/apis/g/v1/things/n/status", &object("1", "")), "/apis/g/v1/things/n/status");
    }
}
