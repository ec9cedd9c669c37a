//! All objects after a run, with the names of their roles instead of generated names.
//!
//! Two runs of the same steps must end in the same snapshot, whatever happened in between. Only unpredictable values are
//! left out: uids, generated names, versions and times. An orphan, a duplicate, a lost reference, a Secret that
//! was not published or not removed: all of them are differences.

use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use transom_testkit::process::{Client, Gone};

/// What is compared in every scenario.
const KINDS: [&str; 12] = [
    "/api/v1/configmaps",
    "/api/v1/secrets",
    "/apis/nop.crossplane.io/v1alpha1/nopresources",
    "/apis/example.org/v1/stores",
    "/apis/example.org/v1/xstores",
    "/apis/example.org/v1/cells",
    "/apis/example.org/v1/rooms",
    "/apis/example.org/v1/desks",
    "/apis/example.org/v1/halls",
    "/apis/apiextensions.crossplane.io/v1/compositions",
    "/apis/apiextensions.crossplane.io/v1/compositionrevisions",
    "/apis/apiextensions.crossplane.io/v1/compositeresourcedefinitions",
];

/// Each object as a line: what it is, and what it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Snapshot(BTreeMap<String, Vec<String>>);

impl Snapshot {
    /// The objects of the kinds of composite resources, and those at the paths of lists or of single objects.
    pub(crate) async fn look(client: &Client, more: &[&str]) -> Result<Self, Gone> {
        let mut objects = Vec::new();
        for path in KINDS.iter().chain(more) {
            let reply = client.get(path).await?;
            if !reply.ok() {
                continue;
            }
            let mut list = reply.json();
            let kind = list["kind"].as_str().unwrap_or_default().trim_end_matches("List").to_owned();
            match list.get_mut("items").map(Value::take) {
                Some(Value::Array(items)) => objects.extend(items.into_iter().map(|mut o| {
                    o["kind"] = kind.clone().into();
                    o
                })),
                _ => objects.push(list),
            }
        }
        Ok(Self::of(objects))
    }

    fn of(objects: Vec<Value>) -> Self {
        let roles = Roles::of(&objects);
        let mut snapshot: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for object in objects {
            let role = roles.role(&object);
            snapshot.entry(role).or_default().push(roles.describe(object));
        }
        snapshot.values_mut().for_each(|twins| twins.sort());
        Self(snapshot)
    }

    /// How many objects of a kind there are.
    pub(crate) fn count(&self, kind: &str) -> usize {
        let prefix = format!("{kind} ");
        self.0.iter().filter(|(role, _)| role.starts_with(&prefix)).map(|(_, twins)| twins.len()).sum()
    }

    /// An object by its role.
    pub(crate) fn find(&self, role: &str) -> Option<&String> {
        self.0.get(role)?.first()
    }

    /// What this snapshot has that the other has not, and the other way round.
    pub(crate) fn differences(&self, other: &Self) -> Vec<String> {
        let lines = |snapshot: &Self| {
            let each =
                snapshot.0.iter().flat_map(|(role, twins)| twins.iter().map(move |t| format!("{role}: {t}")));
            each.collect::<BTreeSet<_>>()
        };
        let (mine, theirs) = (lines(self), lines(other));
        let more = mine.difference(&theirs).map(|l| format!("+ {l}"));
        more.chain(theirs.difference(&mine).map(|l| format!("- {l}"))).collect()
    }
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// What objects are to each other.
struct Roles {
    by_uid: BTreeMap<String, Value>,
    /// What is replaced by what, the longest first.
    aliases: Vec<(String, String)>,
}

impl Roles {
    fn of(objects: &[Value]) -> Self {
        let by_uid = objects.iter().map(|o| (text(o, "/metadata/uid").to_owned(), o.clone())).collect();
        let mut roles = Self { by_uid, aliases: Vec::new() };
        let mut aliases = Vec::new();
        for object in objects {
            let role = roles.role(object);
            aliases.push((text(object, "/metadata/uid").to_owned(), format!("<uid of {role}>")));
            let generated =
                object.pointer("/metadata/generateName").is_some() || is_generated_for_claim(object);
            if generated {
                aliases.push((text(object, "/metadata/name").to_owned(), format!("<name of {role}>")));
            }
        }
        aliases.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
        roles.aliases = aliases;
        roles
    }

    fn role(&self, object: &Value) -> String {
        let kind = text(object, "/kind");
        let owner = object.pointer("/metadata/ownerReferences/0/uid").and_then(Value::as_str);
        let owner = owner.and_then(|uid| self.by_uid.get(uid));
        let resource = object["metadata"]["annotations"]["crossplane.io/composition-resource-name"].as_str();
        match (resource, owner) {
            (Some(resource), Some(owner)) => format!("{kind} {resource} of {}", self.role(owner)),
            (None, Some(owner)) if kind == "Secret" => format!("{kind} of {}", self.role(owner)),
            _ if is_generated_for_claim(object) => {
                format!("{kind} for {}", text(object, "/spec/claimRef/name"))
            }
            _ => format!("{kind} {}/{}", text(object, "/metadata/namespace"), text(object, "/metadata/name")),
        }
    }

    fn describe(&self, mut object: Value) -> String {
        forget(&mut object);
        let mut words = object.to_string();
        for (name, alias) in &self.aliases {
            words = words.replace(name.as_str(), alias);
        }
        let mut object: Value = serde_json::from_str(&words).expect("names contain no syntax");
        order(&mut object);
        object.to_string()
    }
}

fn is_generated_for_claim(object: &Value) -> bool {
    let claim = text(object, "/spec/claimRef/name");
    !claim.is_empty() && text(object, "/metadata/name").starts_with(&format!("{claim}-"))
}

/// Leaves out what no two runs have in common.
fn forget(object: &mut Value) {
    let generation = object["metadata"]["generation"].clone();
    let remove = |map: Option<&mut Map<String, Value>>, fields: &[&str]| {
        if let Some(map) = map {
            map.retain(|field, _| !fields.contains(&field.as_str()));
        }
    };
    let unforeseen = ["uid", "resourceVersion", "creationTimestamp", "managedFields", "generation"];
    remove(object["metadata"].as_object_mut(), &unforeseen);
    remove(
        object.pointer_mut("/status/connectionDetails").and_then(Value::as_object_mut),
        &["lastPublishedTime"],
    );
    let conditions = object.pointer_mut("/status/conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten() {
        remove(condition.as_object_mut(), &["lastTransitionTime"]);
        // What counts is whether it speaks of the object as it is.
        if let Some(observed) = condition.get("observedGeneration") {
            condition["observedGeneration"] = (*observed == generation).into();
        }
    }
}

/// Lists in which the order means nothing, or follows drawn names, in an order of their own.
fn order(object: &mut Value) {
    // Packages join the Lock in the order in which they are ready to.
    for list in ["/status/conditions", "/spec/resourceRefs", "/spec/crossplane/resourceRefs", "/packages"] {
        if let Some(list) = object.pointer_mut(list).and_then(Value::as_array_mut) {
            list.sort_by_key(ToString::to_string);
        }
    }
}
