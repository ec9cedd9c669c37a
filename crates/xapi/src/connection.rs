//! Connection secrets: which owner may write them, and their contents.

use crate::claim;
use crate::composite::Composite;
use crate::constants::CONNECTION_SECRET_TYPE;
use crate::metadata::{NotControllable, controller_reference_to, must_be_controllable_by};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use transom_object::meta;
use transom_object::quote::quote;

/// Connection details: bytes by name.
pub type Details = BTreeMap<String, Vec<u8>>;

/// Why a connection secret may not be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the message of each variant says what it is")]
pub enum Error {
    #[error("refusing to modify uncontrolled secret of type {}", quote(.0))]
    NotAConnectionSecret(String),
    #[error("existing secret is not controlled by UID {}", quote(.0))]
    NotControlled(String),
    #[error("cannot establish control of existing connection secret")]
    NotTheComposites,
}

/// Whether the owner with this uid controls the secret, or may begin to because it has no controller and is a connection
/// secret.
pub fn must_be_writable_by(secret: &Value, uid: &str) -> Result<(), Error> {
    let kind = secret.get("type").and_then(Value::as_str).unwrap_or_default();
    if kind != CONNECTION_SECRET_TYPE && meta::controller_of(secret).is_none() {
        return Err(Error::NotAConnectionSecret(kind.to_owned()));
    }
    must_be_controllable_by(secret, uid).map_err(|NotControllable { uid }| Error::NotControlled(uid))
}

/// An empty connection secret of an owner.
pub fn secret(owner: &Value, namespace: &str, name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"namespace": namespace, "name": name, "ownerReferences": [controller_reference_to(owner)]},
        "type": CONNECTION_SECRET_TYPE,
    })
}

/// The details in a secret. Values that are not base64 are left out.
pub fn details(secret: &Value) -> Details {
    let data = secret.get("data").and_then(Value::as_object);
    let decode =
        |(key, value): (&String, &Value)| Some((key.clone(), STANDARD.decode(value.as_str()?).ok()?));
    data.into_iter().flat_map(Map::iter).filter_map(decode).collect()
}

/// Details as the data of a secret.
pub fn encoded<'a>(details: impl IntoIterator<Item = (&'a String, &'a Vec<u8>)>) -> Map<String, Value> {
    details.into_iter().map(|(key, bytes)| (key.clone(), STANDARD.encode(bytes).into())).collect()
}

/// Whether both secrets hold the same data.
pub fn same_data(a: &Value, b: &Value) -> bool {
    details(a) == details(b)
}

/// The secret of a composite resource with the details its definition lets through (no keys let all through). `None`
/// when it wants no secret.
pub fn published(xr: &Composite, details: &Details, keys: &[String]) -> Option<Value> {
    let to = xr.connection_secret_ref()?;
    let mut secret = secret(&xr.object, &to.namespace, &to.name);
    let data = encoded(details.iter().filter(|(key, _)| keys.is_empty() || keys.contains(key)));
    if !data.is_empty() {
        secret["data"] = data.into();
    }
    Some(secret)
}

/// How a secret is to be written.
#[derive(Clone, Debug, PartialEq)]
pub enum Publication {
    /// It does not exist.
    Create,
    /// It lacks some of the details, or its owner: a merge patch adds them. Details are never removed.
    Patch(Value),
    /// It has all of the details.
    Unchanged,
}

/// How to write a secret of an owner, given the one that exists.
pub fn publication(secret: &Value, live: Option<&Value>, owner_uid: &str) -> Result<Publication, Error> {
    let Some(live) = live else { return Ok(Publication::Create) };
    must_be_writable_by(live, owner_uid)?;
    let (published, wanted) = (details(live), details(secret));
    let owned = meta::controller_of(live).is_some();
    if owned && wanted.iter().all(|(key, value)| published.get(key) == Some(value)) {
        return Ok(Publication::Unchanged);
    }
    Ok(Publication::Patch(json!({
        "metadata": {"ownerReferences": secret["metadata"]["ownerReferences"]},
        "data": secret.get("data").cloned().unwrap_or_else(|| json!({})),
    })))
}

/// Where the details of a claim come from: namespace and name of the composite resource's secret. `None` when either
/// of the two wants no secret.
pub fn source(claim: &Value, xr: &Composite) -> Option<(String, String)> {
    claim::connection_secret_name(claim)?;
    xr.connection_secret_ref().map(|from| (from.namespace, from.name))
}

/// The secret of a claim, with the data of its composite resource's. The latter must be the composite resource's own,
/// or a claim could read secrets its author may not.
pub fn propagated(claim: &Value, xr: &Composite, from: &Value) -> Result<Option<Value>, Error> {
    let Some(name) = claim::connection_secret_name(claim) else { return Ok(None) };
    if xr.connection_secret_ref().is_none() {
        return Ok(None);
    }
    if meta::controller_of(from).is_none_or(|c| c.uid != meta::uid(&xr.object)) {
        return Err(Error::NotTheComposites);
    }
    let mut to = secret(claim, meta::namespace(claim), name);
    if let Some(data) = from.get("data") {
        to["data"] = data.clone();
    }
    Ok(Some(to))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::composite::Layout;

    fn xr() -> Composite {
        let spec = json!({"writeConnectionSecretToRef": {"name": "s", "namespace": "system"}});
        let object =
            json!({"apiVersion": "a/v1", "kind": "X", "metadata": {"name": "x", "uid": "xu"}, "spec": spec});
        Composite::new(object, Layout::Legacy)
    }

    #[test]
    fn only_the_listed_keys_are_published() {
        let details: Details = [("a".to_owned(), b"1".to_vec()), ("b".to_owned(), b"2".to_vec())].into();
        let all = published(&xr(), &details, &[]).unwrap();
        assert_eq!(all["data"], json!({"a": "MQ==", "b": "Mg=="}));
        assert_eq!(all["metadata"]["ownerReferences"][0]["uid"], "xu");
        let some = published(&xr(), &details, &["b".to_owned()]).unwrap();
        assert_eq!(some["data"], json!({"b": "Mg=="}));
        assert!(!same_data(&all, &some) && same_data(&json!({}), &json!({"data": {}})));
        assert_eq!(published(&Composite::default(), &details, &[]), None);
    }

    #[test]
    fn details_are_added_and_never_removed() {
        let details: Details = [("a".to_owned(), b"1".to_vec())].into();
        let wanted = published(&xr(), &details, &[]).unwrap();
        assert_eq!(publication(&wanted, None, "xu"), Ok(Publication::Create));
        assert_eq!(publication(&wanted, Some(&wanted), "xu"), Ok(Publication::Unchanged));
        let mut more = wanted.clone();
        more["data"]["b"] = "Mg==".into();
        assert_eq!(publication(&wanted, Some(&more), "xu"), Ok(Publication::Unchanged));
        let patch = json!({"metadata": {"ownerReferences": more["metadata"]["ownerReferences"]}, "data": more["data"]});
        assert_eq!(publication(&more, Some(&wanted), "xu"), Ok(Publication::Patch(patch)));
        assert_eq!(publication(&wanted, Some(&wanted), "yu"), Err(Error::NotControlled("yu".to_owned())));
    }

    #[test]
    fn a_claim_gets_only_its_composite_resources_own_secret() {
        let claim = json!({
            "apiVersion": "a/v1", "kind": "C", "metadata": {"name": "c", "namespace": "ns", "uid": "cu"},
            "spec": {"writeConnectionSecretToRef": {"name": "mine"}},
        });
        let own = published(&xr(), &[("a".to_owned(), b"1".to_vec())].into(), &[]).unwrap();
        let to = propagated(&claim, &xr(), &own).unwrap().unwrap();
        assert_eq!((&to["metadata"]["name"], &to["metadata"]["namespace"]), (&json!("mine"), &json!("ns")));
        assert_eq!(to["data"], own["data"]);
        assert_eq!(source(&claim, &xr()), Some(("system".into(), "s".into())));
        let foreign = json!({"metadata": {}, "data": {"password": "MQ=="}});
        assert_eq!(propagated(&claim, &xr(), &foreign), Err(Error::NotTheComposites));
        assert_eq!(propagated(&json!({}), &xr(), &own), Ok(None));
    }
}
