//! The canonical stored form of an object.

use serde_json::{Map, Value};
use transom_object::{Header, Status, json};
use transom_store::Put;

/// How deep a stored object may nest. With the levels that a list adds it stays below the 128 at which common
/// JSON readers stop, ours and clients' alike: an object that cannot be read could not even be deleted.
const MAX_STORED_DEPTH: usize = 120;

/// Encodes with sorted keys and an empty resourceVersion, and notes where the store is to put its digits.
pub(crate) fn encode_for_store(value: &Value) -> Result<Put, Status> {
    let map = value.as_object().ok_or_else(|| Status::internal("an object to store is not a JSON object"))?;
    let depth = json::depth(value);
    if depth > MAX_STORED_DEPTH {
        return Err(Status::bad_request(format!(
            "the object nests {depth} levels deep with what is kept about its fields; at most {MAX_STORED_DEPTH} are allowed"
        )));
    }
    let metadata = map.get("metadata").and_then(Value::as_object);
    let metadata = metadata.ok_or_else(|| Status::internal("an object to store has no metadata"))?;
    let mut body = Vec::with_capacity(4096);
    let mut revision_at = 0;
    let mut separator = b'{';
    for (key, value) in map {
        write_key(&mut body, separator, key);
        if key == "metadata" {
            revision_at = write_metadata(&mut body, metadata);
        } else {
            json::encode_into(value, &mut body);
        }
        separator = b',';
    }
    body.push(b'}');
    let header = Header::of(metadata)
        .map_err(|e| Status::internal(format!("an object to store has bad metadata: {e}")))?;
    let revision_at = u32::try_from(revision_at).map_err(|_| Status::too_large("the object is too large"))?;
    Ok(Put { body, revision_at, header })
}

/// Returns where the digits of the resourceVersion go. It has a place among the sorted keys even if it is absent.
fn write_metadata(body: &mut Vec<u8>, metadata: &Map<String, Value>) -> usize {
    const VERSION: &str = "resourceVersion";
    let mut separator = b'{';
    let mut revision_at = None;
    let write_version = |body: &mut Vec<u8>, separator: u8| {
        write_key(body, separator, VERSION);
        body.extend_from_slice(b"\"\"");
        body.len() - 1
    };
    for (key, value) in metadata.iter().filter(|(key, _)| *key != VERSION) {
        if revision_at.is_none() && key.as_str() > VERSION {
            revision_at = Some(write_version(body, separator));
            separator = b',';
        }
        write_key(body, separator, key);
        json::encode_into(value, body);
        separator = b',';
    }
    let revision_at = revision_at.unwrap_or_else(|| write_version(body, separator));
    body.push(b'}');
    revision_at
}

fn write_key(body: &mut Vec<u8>, separator: u8, key: &str) {
    body.push(separator);
    json::encode_str_into(key, body);
    body.push(b':');
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn notes_where_the_revision_goes() {
        let put = encode_for_store(
            &json!({"spec": 1, "metadata": {"name": "n", "uid": "u", "resourceVersion": "9"}}),
        )
        .unwrap();
        let mut body = put.body;
        body.splice(put.revision_at as usize..put.revision_at as usize, *b"42");
        assert_eq!(
            String::from_utf8(body).unwrap(),
            r#"{"metadata":{"name":"n","resourceVersion":"42","uid":"u"},"spec":1}"#
        );
        assert_eq!((put.header.name.as_str(), put.header.uid.as_str()), ("n", "u"));
    }

    #[test]
    fn the_revision_has_its_place_when_nothing_follows_it() {
        for metadata in [json!({}), json!({"name": "n"}), json!({"resourceVersion": "9"})] {
            let put = encode_for_store(&json!({"metadata": metadata})).unwrap();
            let before = &put.body[..put.revision_at as usize];
            assert!(before.ends_with(br#""resourceVersion":""#), "{metadata}");
            assert!(serde_json::from_slice::<Value>(&put.body).is_ok(), "{metadata}");
        }
        assert!(encode_for_store(&json!({"spec": 1})).is_err());
    }
}
