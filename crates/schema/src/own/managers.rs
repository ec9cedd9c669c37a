//! `metadata.managedFields`: who owns which fields, at which version, since when.

use super::set::Set;
use super::wording;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use transom_object::json::encode_escaped;

/// More managers of updates than this are folded into one.
pub const MAX_UPDATE_MANAGERS: usize = 10;
/// The manager that inherits the fields of the oldest updates.
const OLD_UPDATES: &str = "ancient-changes";

/// How a manager writes: `operation` of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// Server-side apply.
    Apply,
    /// Every other write.
    Update,
}

/// What makes two entries the same manager's. Appliers keep their identity across versions.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ManagerId {
    /// The name of the manager.
    pub manager: String,
    /// How it writes.
    pub operation: Operation,
    /// Empty for appliers.
    pub api_version: String,
    /// The subresource that it writes; empty for the object itself.
    pub subresource: String,
}

/// The fields of one manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owned {
    /// The fields.
    pub set: Set,
    /// The version in whose terms the fields are.
    pub api_version: String,
    /// RFC 3339, as it was written.
    pub time: Option<String>,
}

/// All owners of an object.
pub type Managers = BTreeMap<ManagerId, Owned>;

impl Operation {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "Apply" => Some(Self::Apply),
            "Update" => Some(Self::Update),
            _ => None,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

impl ManagerId {
    /// The identity of a client that writes through an endpoint; nameless managers are called `unknown`.
    pub fn new(manager: &str, operation: Operation, api_version: &str, subresource: &str) -> Self {
        let api_version = if operation == Operation::Apply { "" } else { api_version };
        Self {
            manager: if manager.is_empty() { "unknown" } else { manager }.to_owned(),
            operation,
            api_version: api_version.to_owned(),
            subresource: subresource.to_owned(),
        }
    }

    /// The JSON that Kubernetes identifies a manager by, and orders managers of equal age by.
    pub fn identifier(&self) -> String {
        let mut out = String::from("{");
        let fields = [
            ("manager", self.manager.as_str()),
            ("operation", self.operation.as_str()),
            ("apiVersion", &self.api_version),
            ("subresource", &self.subresource),
        ];
        for (name, value) in fields.into_iter().filter(|(_, v)| !v.is_empty()) {
            if out.len() > 1 {
                out.push(',');
            }
            out.push('"');
            out.push_str(name);
            out.push_str("\":");
            out.push_str(&encode_escaped(&value.into()));
        }
        out.push('}');
        out
    }
}

impl Owned {
    /// Seconds since 1970 of the last change; 0 when that is not known.
    fn seconds(&self) -> i64 {
        seconds(self.time.as_deref())
    }
}

fn seconds(time: Option<&str>) -> i64 {
    time.and_then(|t| t.parse::<jiff::Timestamp>().ok()).map_or(0, jiff::Timestamp::as_second)
}

/// Why `metadata.managedFields` cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ManagedFieldsError(String);

/// Reads `metadata.managedFields`. Absent and null have no managers.
pub fn decode(entries: Option<&Value>) -> Result<Managers, ManagedFieldsError> {
    let entries = match entries {
        None | Some(Value::Null) => return Ok(Managers::new()),
        Some(Value::Array(entries)) => entries,
        Some(_) => return Err(ManagedFieldsError("managedFields must be a list".to_owned())),
    };
    let each = entries.iter().enumerate().map(|(i, entry)| decode_entry(i, entry));
    each.collect::<Result<_, _>>().map_err(ManagedFieldsError)
}

/// The entry of one manager, without reading those of the others.
pub(super) fn find(entries: Option<&Value>, id: &ManagerId) -> Option<Owned> {
    let is = |entry: &&Value| {
        let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
        text("manager") == id.manager
            && text("operation") == id.operation.as_str()
            && text("subresource") == id.subresource
            && (id.operation == Operation::Apply || text("apiVersion") == id.api_version)
    };
    let (_, owned) = decode_entry(0, entries?.as_array()?.iter().find(is)?).ok()?;
    Some(owned)
}

fn decode_entry(index: usize, entry: &Value) -> Result<(ManagerId, Owned), String> {
    let entry = entry.as_object().ok_or_else(|| format!("managed fields entry {index} is not an object"))?;
    let text = |name: &str| match entry.get(name) {
        None | Some(Value::Null) => Ok(""),
        Some(Value::String(s)) => Ok(s.as_str()),
        Some(_) => Err(format!("{name} must be a string in managed fields entry {index}")),
    };
    let operation = Operation::parse(text("operation")?).ok_or("operation must be `Apply` or `Update`")?;
    let api_version = text("apiVersion")?;
    if api_version.is_empty() {
        return Err("apiVersion must not be empty".to_owned());
    }
    match text("fieldsType")? {
        "FieldsV1" => {}
        "" => return Err(format!("missing fieldsType in managed fields entry {index}")),
        other => {
            let other = wording::quote(other);
            return Err(format!("invalid fieldsType {other} in managed fields entry {index}"));
        }
    }
    let set = Set::from_fields(entry.get("fieldsV1").unwrap_or(&Value::Null))
        .map_err(|e| format!("error decoding versioned set of managed fields entry {index}: {e}"))?;
    let id = ManagerId {
        manager: text("manager")?.to_owned(),
        operation,
        api_version: if operation == Operation::Apply { String::new() } else { api_version.to_owned() },
        subresource: text("subresource")?.to_owned(),
    };
    let time = Some(text("time")?).filter(|t| !t.is_empty()).map(str::to_owned);
    Ok((id, Owned { set, api_version: api_version.to_owned(), time }))
}

/// Whether an update removes all owners: an empty list, or one with an empty entry.
pub fn is_reset(entries: Option<&Value>) -> bool {
    let blank = |v: &Value| match v {
        Value::Null => true,
        Value::String(s) => s.is_empty(),
        _ => false,
    };
    match entries.and_then(Value::as_array).map(Vec::as_slice) {
        Some([]) => true,
        Some([Value::Object(entry)]) => entry.values().all(blank),
        _ => false,
    }
}

/// Writes owners in the order of Kubernetes: appliers first, then by age, then by name. `None` without any.
pub fn encode(managers: &Managers) -> Option<Value> {
    if managers.is_empty() {
        return None;
    }
    let mut entries: Vec<_> = managers.iter().map(|(id, owned)| (id, owned, owned.seconds())).collect();
    entries.sort_by(|(a, owned_a, time_a), (b, owned_b, time_b)| {
        a.operation
            .cmp(&b.operation)
            .then_with(|| time_a.cmp(time_b))
            .then_with(|| a.manager.cmp(&b.manager))
            .then_with(|| owned_a.api_version.cmp(&owned_b.api_version))
            .then_with(|| a.subresource.cmp(&b.subresource))
    });
    Some(entries.into_iter().map(|(id, owned, _)| encode_entry(id, owned)).collect())
}

fn encode_entry(id: &ManagerId, owned: &Owned) -> Value {
    let mut entry = Map::new();
    let mut text = |name: &str, value: &str| {
        if !value.is_empty() {
            entry.insert(name.to_owned(), value.into());
        }
    };
    text("manager", &id.manager);
    text("operation", id.operation.as_str());
    text("apiVersion", &owned.api_version);
    text("time", owned.time.as_deref().unwrap_or_default());
    text("fieldsType", "FieldsV1");
    text("subresource", &id.subresource);
    entry.insert("fieldsV1".to_owned(), owned.set.to_value());
    Value::Object(entry)
}

/// Folds the oldest updates of one version into each other until at most `max` are left.
pub fn cap_update_managers(managers: &mut Managers, max: usize) {
    let mut updaters: Vec<_> = managers
        .iter()
        .filter(|(id, _)| id.operation == Operation::Update)
        .map(|(id, owned)| (owned.seconds(), id.identifier(), id.clone()))
        .collect();
    let mut left = updaters.len();
    if left <= max {
        return;
    }
    updaters.sort();
    let mut first_of_version: BTreeMap<String, ManagerId> = BTreeMap::new();
    for (_, _, id) in updaters {
        if left <= max {
            return;
        }
        let Some(version) = managers.get(&id).map(|owned| owned.api_version.clone()) else { continue };
        let Some(first) = first_of_version.get(&version) else {
            first_of_version.insert(version, id);
            continue;
        };
        let bucket = ManagerId::new(OLD_UPDATES, Operation::Update, &version, "");
        if !managers.contains_key(&bucket)
            && let Some(owned) = managers.remove(first)
        {
            managers.insert(bucket.clone(), owned);
        }
        let Some(owned) = managers.remove(&id) else { continue };
        left -= 1;
        // The folded update is the more recent one, so the bucket takes its time.
        match managers.get_mut(&bucket) {
            Some(old) => *old = Owned { set: owned.set.union(&old.set), ..owned },
            None => {
                managers.insert(bucket, owned);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn entry(manager: &str, operation: &str, time: &str) -> Value {
        json!({"manager": manager, "operation": operation, "apiVersion": "v1", "time": time,
               "fieldsType": "FieldsV1", "fieldsV1": {(format!("f:{manager}")): {}}})
    }

    #[test]
    fn entries_round_trip_in_order() {
        let old = entry("z", "Update", "2020-01-01T00:00:00Z");
        let new = entry("a", "Update", "2021-01-01T00:00:00Z");
        let applied = entry("m", "Apply", "2022-01-01T00:00:00Z");
        let managers = decode(Some(&json!([new, old, applied]))).unwrap();
        assert_eq!(encode(&managers), Some(json!([applied, old, new])));
        assert_eq!(encode(&Managers::new()), None);
    }

    #[test]
    fn malformed_entries_are_errors() {
        for bad in [
            json!({}),
            json!([1]),
            json!([{}]),
            json!([{"operation": "Patch"}]),
            json!([{"operation": "Apply"}]),
            json!([{"operation": "Apply", "apiVersion": "v1"}]),
            json!([{"operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV2"}]),
            json!([{"operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"x": {}}}]),
            json!([{"operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "manager": 1}]),
        ] {
            assert!(decode(Some(&bad)).is_err(), "{bad}");
        }
        assert!(decode(None).unwrap().is_empty());
        assert!(decode(Some(&json!([]))).unwrap().is_empty());
    }

    #[test]
    fn resets_are_recognised() {
        for (value, reset) in [
            (json!([]), true),
            (json!([{}]), true),
            (json!([{"manager": ""}]), true),
            (json!(null), false),
            (json!([{"manager": "a"}]), false),
            (json!([{}, {}]), false),
        ] {
            assert_eq!(is_reset(Some(&value)), reset, "{value}");
        }
        assert!(!is_reset(None));
    }

    #[test]
    fn the_oldest_updates_are_folded() {
        let entries: Vec<_> = (0..12)
            .map(|i| entry(&format!("m{i:02}"), "Update", &format!("20{i:02}-01-01T00:00:00Z")))
            .collect();
        let mut managers = decode(Some(&Value::Array(entries))).unwrap();
        cap_update_managers(&mut managers, MAX_UPDATE_MANAGERS);
        assert_eq!(managers.len(), 10);
        let bucket = &managers[&ManagerId::new("ancient-changes", Operation::Update, "v1", "")];
        assert_eq!(bucket.set.to_json(), r#"{"f:m00":{},"f:m01":{},"f:m02":{}}"#);
        assert_eq!(bucket.time.as_deref(), Some("2002-01-01T00:00:00Z"));
    }
}
