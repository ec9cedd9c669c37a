//! The connection secret of a claim: a copy of its composite resource's.

use serde_json::Value;
use transom_engine::Publication;
use transom_xapi::connection::{self, Error};

/// How a copy is written, given the Secret that is stored: it gets exactly the wanted keys. A Secret that another object controls
/// is not written.
pub(super) fn copy(wanted: &Value, live: Option<&Value>, claim_uid: &str) -> Result<Publication, Error> {
    let Some(live) = live else { return Ok(Publication::Create) };
    connection::must_be_writable_by(live, claim_uid)?;
    Ok(if connection::same_data(live, wanted) { Publication::Unchanged } else { Publication::Replace })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_copy_has_exactly_the_wanted_keys_and_is_the_claims_own() {
        let secret = |uid: &str, data: Value| {
            let owner =
                json!({"apiVersion": "a/v1", "kind": "C", "name": "c", "uid": uid, "controller": true});
            json!({"metadata": {"ownerReferences": [owner]}, "type": "connection.crossplane.io/v1alpha1", "data": data})
        };
        let wanted = secret("claim", json!({"a": "MQ=="}));
        let more = secret("claim", json!({"a": "MQ==", "b": "Mg=="}));
        assert_eq!(copy(&wanted, None, "claim"), Ok(Publication::Create));
        assert_eq!(copy(&wanted, Some(&wanted), "claim"), Ok(Publication::Unchanged));
        assert_eq!(copy(&wanted, Some(&more), "claim"), Ok(Publication::Replace));
        let foreign = secret("other", json!({"a": "MQ=="}));
        assert_eq!(copy(&wanted, Some(&foreign), "claim"), Err(Error::NotControlled("claim".to_owned())));
    }
}
