//! The canonical stored form of an object.

use serde_json::{Map, Value};
use transom_object::{Header, Status, json};
use transom_store::Put;

/// How deep a stored object may nest. With the levels that a list adds it stays below the 128 at which common
/// JSON readers stop, ours and clients' alike: an object nobody can read could not even be deleted.
const DEEPEST: usize = 120;

/// Encodes with sorted keys and an empty resourceVersion, and notes where the store is to put its digits.
pub(crate) fn encode_for_store(value: &Value) -> Result<Put, Status> {
    let map = value.as_object().ok_or_else(|| Status::internal("an object to store is not a JSON object"))?;
    let depth = json::depth(value);
    if depth > DEEPEST {
        return Err(Status::bad_request(format!(
            "the object nests {depth} levels deep with what is kept about its fields; at most {DEEPEST} are allowed"
        )));
    }
    let mut body = Vec::with_capacity(1024);
    let mut revision_at = 0;
    body.push(b'{');
    write_entries(map, &mut body, |key, value, body| match (key, value) {
        ("metadata", Value::Object(metadata)) => {
            body.push(b'{');
            let mut metadata = metadata.clone();
            metadata.insert("resourceVersion".into(), "".into());
            write_entries(&metadata, body, |key, value, body| {
                if key == "resourceVersion" {
                    body.push(b'"');
                    revision_at = body.len();
                    body.push(b'"');
                } else {
                    json::encode_into(value, body);
                }
            });
            body.push(b'}');
        }
        _ => json::encode_into(value, body),
    });
    body.push(b'}');
    let header = Header::parse(&body)
        .map_err(|e| Status::internal(format!("an object to store has bad metadata: {e}")))?;
    let revision_at = u32::try_from(revision_at).map_err(|_| Status::too_large("the object is too large"))?;
    Ok(Put { body, revision_at, header })
}

fn write_entries(
    map: &Map<String, Value>,
    body: &mut Vec<u8>,
    mut write: impl FnMut(&str, &Value, &mut Vec<u8>),
) {
    for (i, (key, value)) in map.iter().enumerate() {
        if i > 0 {
            body.push(b',');
        }
        json::encode_into(&Value::String(key.clone()), body);
        body.push(b':');
        write(key, value, body);
    }
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
    }
}
