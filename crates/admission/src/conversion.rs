//! Conversion webhooks of CustomResourceDefinitions: the ConversionReview that they get, and which parts of their
//! response are used. A webhook may change everything but what identifies an object; of the metadata, only labels and
//! annotations.

use serde_json::{Value, json};

const API_VERSION: &str = "apiextensions.k8s.io/v1";

/// `ConversionReview` for objects, under a new uid.
pub fn review(uid: &str, desired: &str, objects: &[Value]) -> Value {
    json!({
        "kind": "ConversionReview", "apiVersion": API_VERSION,
        "request": {"uid": uid, "desiredAPIVersion": desired, "objects": objects},
    })
}

/// Why the response of a conversion webhook is not used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConversionError {
    /// It is not JSON.
    #[error("the response is not JSON")]
    NotJson(#[source] serde_json::Error),
    /// It is an object of another kind.
    #[error(
        "expected webhook response of {}, Kind=ConversionReview, got {api_version}, Kind={kind}",
        API_VERSION
    )]
    OtherKind {
        /// The API version of the object.
        api_version: String,
        /// Its kind.
        kind: String,
    },
    /// The review has no response.
    #[error("no response provided")]
    NoResponse,
    /// The response is for another request.
    #[error("expected response.uid={expected:?}, got {found:?}")]
    OtherUid {
        /// The uid of the request.
        expected: String,
        /// The uid in the response.
        found: String,
    },
    /// The webhook failed; its own message.
    #[error("{0}")]
    Failed(String),
    /// There are more or fewer objects than were sent.
    #[error("expected {expected} converted objects, got {found}")]
    Count {
        /// How many were sent.
        expected: usize,
        /// How many came back.
        found: usize,
    },
    /// An object is not the one that was sent, in the desired version.
    #[error("invalid converted object at index {index}")]
    Object {
        /// The position of the object.
        index: usize,
        /// What is wrong with it.
        source: ConvertedObjectError,
    },
}

/// What a webhook changed of an object and must not change.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConvertedObjectError {
    /// It is in another version than the desired one.
    #[error("invalid apiVersion: expected {expected}, got {found}")]
    ApiVersion {
        /// The desired version.
        expected: String,
        /// The version of the object, as JSON.
        found: Value,
    },
    /// It is of another kind.
    #[error("must have the same kind: {found} != {expected}")]
    Kind {
        /// The kind that was sent, as JSON.
        expected: Value,
        /// The kind of the object, as JSON.
        found: Value,
    },
    /// Its name, namespace or uid is another one.
    #[error("must have the same {field}: {found} != {expected}")]
    Identity {
        /// What changed.
        field: &'static str,
        /// What was sent.
        expected: String,
        /// What came back.
        found: String,
    },
}

/// The converted objects of a response, in the order of the objects that were sent.
pub fn read(uid: &str, desired: &str, sent: &[Value], body: &[u8]) -> Result<Vec<Value>, ConversionError> {
    let review: Value = serde_json::from_slice(body).map_err(ConversionError::NotJson)?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (api_version, kind) = (text(&review["apiVersion"]), text(&review["kind"]));
    if api_version != API_VERSION || kind != "ConversionReview" {
        return Err(ConversionError::OtherKind { api_version, kind });
    }
    let response = &review["response"];
    if !response.is_object() {
        return Err(ConversionError::NoResponse);
    }
    if response["uid"] != uid {
        return Err(ConversionError::OtherUid { expected: uid.to_owned(), found: text(&response["uid"]) });
    }
    if response["result"]["status"] != "Success" {
        return Err(ConversionError::Failed(match text(&response["result"]["message"]) {
            message if message.is_empty() => "<no message>".to_owned(),
            message => message,
        }));
    }
    let converted = response["convertedObjects"].as_array().map_or(&[][..], Vec::as_slice);
    if converted.len() != sent.len() {
        return Err(ConversionError::Count { expected: sent.len(), found: converted.len() });
    }
    let each = sent.iter().zip(converted).enumerate();
    each.map(|(index, (sent, converted))| {
        believed(desired, sent, converted).map_err(|source| ConversionError::Object { index, source })
    })
    .collect()
}

fn believed(desired: &str, sent: &Value, converted: &Value) -> Result<Value, ConvertedObjectError> {
    if converted["apiVersion"] != desired {
        let found = converted["apiVersion"].clone();
        return Err(ConvertedObjectError::ApiVersion { expected: desired.to_owned(), found });
    }
    if converted["kind"] != sent["kind"] {
        let (expected, found) = (sent["kind"].clone(), converted["kind"].clone());
        return Err(ConvertedObjectError::Kind { expected, found });
    }
    let (before, after) = (&sent["metadata"], &converted["metadata"]);
    for (field, name) in [("name", "name"), ("namespace", "namespace"), ("uid", "UID")] {
        let of = |metadata: &Value| metadata[field].as_str().unwrap_or_default().to_owned();
        if of(before) != of(after) {
            let (expected, found) = (of(before), of(after));
            return Err(ConvertedObjectError::Identity { field: name, expected, found });
        }
    }
    let mut new = converted.clone();
    let mut metadata = before.clone();
    for field in ["labels", "annotations"] {
        match after.get(field) {
            Some(value) => metadata[field] = value.clone(),
            None => {
                if let Some(map) = metadata.as_object_mut() {
                    map.remove(field);
                }
            }
        }
    }
    new["metadata"] = metadata;
    Ok(new)
}
