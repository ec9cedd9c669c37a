//! What a manager applied, read back out of an object.

use super::managers::{self, ManagedFieldsError, ManagerId, Operation};
use super::typed;
use super::types::Type;
use serde_json::Value;

/// The configuration whose fields a manager owns by having applied them, with the object's type. `None`
/// when the manager applied nothing that it still owns.
pub fn extract(
    ty: Type<'_>,
    object: &Value,
    manager: &str,
    subresource: &str,
) -> Result<Option<Value>, ManagedFieldsError> {
    let owners = managers::decode(object["metadata"].get("managedFields"))?;
    let id = ManagerId::new(manager, Operation::Apply, "", subresource);
    let Some(owned) = owners.get(&id) else { return Ok(None) };
    let mut config = typed::extract_items(ty, object, &owned.set.leaves());
    let Some(fields) = config.as_object_mut() else { return Ok(None) };
    for name in ["apiVersion", "kind"] {
        if let Some(value) = object.get(name) {
            fields.entry(name).or_insert_with(|| value.clone());
        }
    }
    Ok(Some(config))
}
