//! What a DeploymentRuntimeConfig changes of a container on this machine, and what of it has no effect here. Pure.

use serde_json::{Map, Value};
use transom_object::quantity::Quantity;
use transom_xapi::runtime_config::DeploymentRuntimeConfigSpec;

/// The container of a package's own program.
const CONTAINER: &str = "package-runtime";

/// What a runtime config changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Overrides {
    /// In place of the image's entrypoint.
    pub(crate) command: Option<Vec<String>>,
    /// In place of the image's arguments.
    pub(crate) args: Option<Vec<String>>,
    /// Variables, as `NAME=VALUE`.
    pub(crate) env: Vec<String>,
    pub(crate) memory_bytes: Option<u64>,
    pub(crate) cpu_millis: Option<u64>,
    /// The fields that have no effect here.
    pub(crate) ignored: Vec<String>,
}

impl Overrides {
    pub(crate) fn of(config: &DeploymentRuntimeConfigSpec) -> Self {
        let mut overrides = Self::default();
        for (is_set, field) in [
            (config.service_template.is_some(), "serviceTemplate"),
            (config.service_account_template.is_some(), "serviceAccountTemplate"),
        ] {
            if is_set {
                overrides.ignored.push(field.to_owned());
            }
        }
        let Some(template) = &config.deployment_template else { return overrides };
        if template.metadata.is_some() {
            overrides.ignored.push("deploymentTemplate.metadata".to_owned());
        }
        let spec = template.spec.clone().unwrap_or_default();
        let path = "deploymentTemplate.spec";
        // The selector is required in a Deployment, and never counts.
        overrides.ignore(&spec, path, &["selector", "template"]);
        let empty = Map::new();
        let object = |value: Option<&Value>| value.and_then(Value::as_object).cloned().unwrap_or_default();
        let pod = object(spec.get("template"));
        overrides.ignore(&pod, &format!("{path}.template"), &["spec"]);
        let pod = object(pod.get("spec"));
        let path = format!("{path}.template.spec");
        overrides.ignore(&pod, &path, &["containers"]);
        let containers = pod.get("containers").and_then(Value::as_array);
        for (at, container) in containers.into_iter().flatten().enumerate() {
            let path = format!("{path}.containers[{at}]");
            if container["name"] == CONTAINER {
                overrides.read(container.as_object().unwrap_or(&empty), &path);
            } else {
                overrides.ignored.push(path);
            }
        }
        overrides
    }

    /// Notes the fields of an object that have no effect.
    fn ignore(&mut self, object: &Map<String, Value>, path: &str, used: &[&str]) {
        let set = object.iter().filter(|(_, value)| !value.is_null() && **value != Value::Object(Map::new()));
        let ignored = set.filter(|(field, _)| !used.contains(&field.as_str()));
        self.ignored.extend(ignored.map(|(field, _)| format!("{path}.{field}")));
    }

    /// Reads the container of the package.
    fn read(&mut self, container: &Map<String, Value>, path: &str) {
        self.ignore(container, path, &["name", "command", "args", "env", "resources"]);
        let texts = |field: &str| {
            let list = container.get(field).and_then(Value::as_array)?;
            Some(list.iter().filter_map(Value::as_str).map(str::to_owned).collect())
        };
        (self.command, self.args) = (texts("command"), texts("args"));
        let variables = container.get("env").and_then(Value::as_array);
        for (at, variable) in variables.into_iter().flatten().enumerate() {
            match (variable["name"].as_str(), variable.get("valueFrom")) {
                (Some(name), None) => {
                    self.env.push(format!("{name}={}", variable["value"].as_str().unwrap_or_default()));
                }
                _ => self.ignored.push(format!("{path}.env[{at}]")),
            }
        }
        let resources = container.get("resources").and_then(Value::as_object).cloned().unwrap_or_default();
        // What a container asks for is not reserved on this machine.
        self.ignore(&resources, &format!("{path}.resources"), &["limits", "requests"]);
        let limit = |name: &str, number: fn(&Quantity) -> i64| {
            let text = resources.get("limits")?.get(name)?;
            let text = text.as_str().map_or_else(|| text.to_string(), str::to_owned);
            u64::try_from(number(&Quantity::parse(&text).ok()?)).ok().filter(|number| *number > 0)
        };
        self.memory_bytes = limit("memory", Quantity::value);
        self.cpu_millis = limit("cpu", Quantity::milli_value);
    }

    /// What users should know, for a condition.
    pub(crate) fn note(&self) -> Option<String> {
        let fields = self.ignored.join(", ");
        let note =
            || format!("fields of its DeploymentRuntimeConfig without effect on this machine: {fields}");
        (!self.ignored.is_empty()).then(note)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn overrides(spec: Value) -> Overrides {
        Overrides::of(&serde_json::from_value(spec).unwrap())
    }

    #[test]
    fn arguments_variables_and_limits_count() {
        let container = json!({
            "name": "package-runtime", "args": ["--debug"], "command": ["/run"],
            "env": [{"name": "A", "value": "b"}, {"name": "SECRET", "valueFrom": {"secretKeyRef": {}}}, {"name": "EMPTY"}],
            "resources": {"limits": {"memory": "64Mi", "cpu": 1.5}, "requests": {"cpu": "1"}},
        });
        let spec = json!({"selector": {}, "template": {"spec": {"containers": [container]}}});
        let read = overrides(json!({"deploymentTemplate": {"spec": spec}}));
        assert_eq!(read.args.as_deref(), Some(&["--debug".to_owned()][..]));
        assert_eq!(read.command.as_deref(), Some(&["/run".to_owned()][..]));
        assert_eq!(read.env, ["A=b", "EMPTY="]);
        assert_eq!((read.memory_bytes, read.cpu_millis), (Some(64 << 20), Some(1500)));
        assert_eq!(read.ignored, ["deploymentTemplate.spec.template.spec.containers[0].env[1]"]);
    }

    #[test]
    fn what_has_no_effect_is_named() {
        let pod = json!({"nodeSelector": {"a": "b"}, "containers": [{"name": "sidecar"}, {"name": "package-runtime", "image": "x"}]});
        let spec = json!({"replicas": 3, "selector": {}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": pod}});
        let template = json!({"metadata": {"name": "n"}, "spec": spec});
        let read = overrides(
            json!({"deploymentTemplate": template, "serviceTemplate": {"metadata": {"name": "s"}}}),
        );
        assert_eq!(
            read.note().unwrap(),
            "fields of its DeploymentRuntimeConfig without effect on this machine: serviceTemplate, \
             deploymentTemplate.metadata, deploymentTemplate.spec.replicas, deploymentTemplate.spec.template.metadata, \
             deploymentTemplate.spec.template.spec.nodeSelector, \
             deploymentTemplate.spec.template.spec.containers[0], \
             deploymentTemplate.spec.template.spec.containers[1].image"
        );
        assert_eq!(overrides(json!({})), Overrides::default());
    }
}
