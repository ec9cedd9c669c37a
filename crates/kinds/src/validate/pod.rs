//! What may change in a pod through its subresources `ephemeralcontainers` and `resize`.

use super::At;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use transom_object::field::{Error, Path};
use transom_object::quantity::Quantity;

/// Fields of a container that an ephemeral one has, too.
const EPHEMERAL_FIELDS: [&str; 19] = [
    "name",
    "targetContainerName",
    "image",
    "command",
    "args",
    "workingDir",
    "envFrom",
    "env",
    "resizePolicy",
    "volumeMounts",
    "volumeDevices",
    "terminationMessagePath",
    "terminationMessagePolicy",
    "imagePullPolicy",
    "securityContext",
    "stdin",
    "stdinOnce",
    "tty",
    "resources",
];

/// The errors of a pod whose ephemeral containers were changed: they may be added, and neither changed nor removed.
pub fn ephemeral_containers(new: &Value, old: &Value) -> Vec<Error> {
    let spec = At::root(new).get("spec");
    let list = spec.get("ephemeralContainers");
    let mut errors = Vec::new();
    let names = |field: &str| spec.get(field).items().map(|c| c.text("name")).collect::<BTreeSet<_>>();
    let others: BTreeSet<&str> = names("containers").union(&names("initContainers")).copied().collect();
    let mut all = others.clone();
    for container in list.items() {
        ephemeral_container(&container, &others, &mut errors);
        if !all.insert(container.text("name")) {
            errors.push(Error::duplicate(&container.path.child("name"), container.text("name")));
        }
    }
    for before in items(&old["spec"], "ephemeralContainers") {
        let name = before["name"].as_str().unwrap_or_default();
        match items(&new["spec"], "ephemeralContainers").find(|c| c["name"] == before["name"]) {
            None => {
                let why = format!("existing ephemeral containers {name:?} may not be removed\n");
                errors.push(Error::forbidden(&list.path, why));
            }
            Some(now) if now != before => {
                let why = format!("existing ephemeral containers {name:?} may not be changed");
                errors.push(Error::forbidden(&list.path, why));
            }
            Some(_) => {}
        }
    }
    errors
}

fn ephemeral_container(container: &At<'_>, others: &BTreeSet<&str>, errors: &mut Vec<Error>) {
    for field in ["name", "image"] {
        if container.text(field).is_empty() {
            errors.push(Error::required(&container.path.child(field), ""));
        }
    }
    let target = container.text("targetContainerName");
    if !target.is_empty() && !others.contains(target) {
        errors.push(Error::not_found(&container.path.child("targetContainerName"), target));
    }
    let set = |value: &Value| !matches!(value, Value::Null) && *value != Value::Object(Map::new());
    for (field, value) in container.entries() {
        let allowed = EPHEMERAL_FIELDS.contains(&field.as_str())
            && !(matches!(field.as_str(), "resources" | "resizePolicy") && set(value));
        if !allowed {
            let why = "cannot be set for an Ephemeral Container";
            errors.push(Error::forbidden(&container.path.child(field), why));
        }
    }
}

const LISTS: [&str; 2] = ["containers", "initContainers"];
const RESIZABLE: [&str; 2] = ["cpu", "memory"];

/// The errors of a pod that was resized: processors and memory of its containers may change, and nothing else.
pub fn resize(new: &Value, old: &Value) -> Vec<Error> {
    let spec = Path::new("spec");
    let mut errors = Vec::new();
    if quality(&new["spec"]) != quality(&old["spec"]) {
        let shown = old["status"]["qosClass"].clone();
        errors.push(Error::invalid(&spec, shown, "Pod QOS Class may not change as a result of resizing"));
    }
    let before = errors.len();
    for list in LISTS {
        same_containers(new, old, list, &mut errors);
    }
    if errors.len() > before {
        return errors;
    }
    for list in LISTS {
        let restarted = |c: &Value| list == "containers" || c["restartPolicy"] == "Always";
        let pairs = items(&new["spec"], list).zip(items(&old["spec"], list)).enumerate();
        for (i, (now, then)) in pairs {
            if restarted(then) {
                removed(now, then, &spec.child(list).index(i).child("resources"), &mut errors);
            }
            if !restarted(then) && now != then {
                let why = "resources for non-sidecar init containers are immutable";
                errors.push(Error::forbidden(&spec, why));
            } else if without_resizable(now) != without_resizable(then) {
                errors.push(Error::forbidden(&spec, "only cpu and memory resources are mutable"));
            }
        }
    }
    errors
}

fn same_containers(new: &Value, old: &Value, list: &str, errors: &mut Vec<Error>) {
    let path = Path::new("spec").child(list);
    if items(&new["spec"], list).count() != items(&old["spec"], list).count() {
        errors.push(Error::forbidden(&path, format!("{list} may not be added or removed on resize")));
        return;
    }
    for (i, (now, then)) in items(&new["spec"], list).zip(items(&old["spec"], list)).enumerate() {
        if now["name"] != then["name"] {
            let why = format!("{list} may not be renamed or reordered on resize");
            errors.push(Error::forbidden(&path.index(i).child("name"), why));
        }
    }
}

fn removed(now: &Value, then: &Value, path: &Path, errors: &mut Vec<Error>) {
    for kind in ["requests", "limits"] {
        let had = then["resources"][kind].as_object().into_iter().flatten();
        if had.into_iter().any(|(name, _)| now["resources"][kind].get(name).is_none()) {
            errors.push(Error::forbidden(&path.child(kind), format!("resource {kind} cannot be removed")));
        }
    }
}

/// A container but for what a resize may change.
fn without_resizable(container: &Value) -> Value {
    let mut rest = container.clone();
    if let Some(map) = rest.as_object_mut() {
        map.remove("resizePolicy");
    }
    for kind in ["requests", "limits"] {
        if let Some(amounts) = rest["resources"].get_mut(kind).and_then(Value::as_object_mut) {
            amounts.retain(|name, _| !RESIZABLE.contains(&name.as_str()));
        }
    }
    if let Some(resources) = rest["resources"].as_object_mut() {
        resources.retain(|_, value| *value != Value::Object(Map::new()));
    }
    rest
}

/// The class of quality of service that follows from the resources of all containers.
fn quality(spec: &Value) -> &'static str {
    let (mut any, mut guaranteed) = (false, true);
    for container in LISTS.iter().flat_map(|list| items(spec, list)) {
        let amount = |kind: &str, name: &str| {
            let text = container["resources"][kind][name].as_str()?;
            text.parse::<Quantity>().ok().filter(|amount| !amount.is_zero())
        };
        for name in RESIZABLE {
            let (request, limit) = (amount("requests", name), amount("limits", name));
            any |= request.is_some() || limit.is_some();
            guaranteed &= limit.is_some() && (request.is_none() || request == limit);
        }
    }
    match (any, guaranteed) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

fn items<'a>(spec: &'a Value, list: &str) -> impl Iterator<Item = &'a Value> {
    spec[list].as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(ephemeral: &Value) -> Value {
        json!({"spec": {"containers": [{"name": "c", "image": "i", "resources": {}}], "ephemeralContainers": ephemeral}})
    }

    fn texts(errors: &[Error]) -> Vec<String> {
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn ephemeral_containers_are_added_and_stay() {
        let debugger = json!({"name": "d", "image": "busybox", "targetContainerName": "c", "resources": {}});
        let (none, one) = (pod(&json!([])), pod(&json!([debugger])));
        assert_eq!(texts(&ephemeral_containers(&one, &none)), [""; 0]);
        let gone = texts(&ephemeral_containers(&none, &one));
        assert!(gone[0].contains("existing ephemeral containers \"d\" may not be removed"), "{gone:?}");
        let mut other = one.clone();
        other["spec"]["ephemeralContainers"][0]["image"] = "other".into();
        let changed = texts(&ephemeral_containers(&other, &one));
        assert!(changed[0].contains("may not be changed"), "{changed:?}");
        let wrong = json!([{"name": "c", "image": "", "ports": [], "targetContainerName": "x", "resources": {"limits": {"cpu": "1"}}}]);
        let errors = texts(&ephemeral_containers(&pod(&wrong), &none));
        let expected = [
            "image: Required",
            "targetContainerName: Not found",
            "ports: Forbidden",
            "resources: Forbidden",
            "name: Duplicate",
        ];
        for (text, part) in errors.iter().zip(expected) {
            assert!(text.contains(part), "{text} has no {part:?}");
        }
        assert_eq!(errors.len(), expected.len(), "{errors:?}");
    }

    #[test]
    fn a_resize_changes_processors_and_memory_alone() {
        let sized = |resources: Value| json!({"spec": {"containers": [{"name": "c", "image": "i", "resources": resources}]}});
        let old = sized(json!({"requests": {"cpu": "1", "example.org/x": "1"}}));
        let errors = |resources: Value| texts(&resize(&sized(resources), &old));
        assert_eq!(errors(json!({"requests": {"cpu": "2", "memory": "1Gi", "example.org/x": "1"}})), [""; 0]);
        let cases = [
            (
                json!({"requests": {"cpu": "1", "example.org/x": "2"}}),
                "only cpu and memory resources are mutable",
            ),
            (
                json!({"requests": {"memory": "1", "example.org/x": "1"}}),
                "resource requests cannot be removed",
            ),
            (
                json!({"requests": {"cpu": "1", "memory": "1", "example.org/x": "1"}, "limits": {"cpu": "1", "memory": "1"}}),
                "Pod QOS Class may not change",
            ),
        ];
        for (resources, expected) in cases {
            let found = errors(resources);
            assert!(found[0].contains(expected), "{found:?} has no {expected:?}");
        }
        let renamed = json!({"spec": {"containers": [{"name": "d", "image": "i", "resources": {"requests": {"cpu": "1"}}}]}});
        assert!(texts(&resize(&renamed, &old))[0].contains("may not be renamed or reordered on resize"));
    }
}
