//! The Helm chart in `deploy/chart`, rendered without Helm: what `transom install` prints is what `helm install` applies.
//!
//! The chart is part of the binary. Its templates use what Helm and [`transom_gotemplate`] have in common: the language,
//! sprig, `include` and `toYaml`. Pure: no I/O.
//!
//! The chart decides what is installed; this crate must not know a cluster, nor what is installed on it.

#![warn(missing_docs)]

pub mod installation;
mod values;

pub use values::{ValueError, merge, set};

use serde_json::{Value, json};
use transom_gotemplate::{Functions, Limits, Options, Template};
use transom_object::meta;

const HELPERS: &str = include_str!("../../../deploy/chart/templates/_helpers.tpl");
const CHART: &str = include_str!("../../../deploy/chart/Chart.yaml");
const VALUES: &str = include_str!("../../../deploy/chart/values.yaml");
/// In the order in which objects are to be applied: rights before what uses them.
const TEMPLATES: &[(&str, &str)] = &[
    ("serviceaccount.yaml", include_str!("../../../deploy/chart/templates/serviceaccount.yaml")),
    ("roles.yaml", include_str!("../../../deploy/chart/templates/roles.yaml")),
    ("people.yaml", include_str!("../../../deploy/chart/templates/people.yaml")),
    ("service.yaml", include_str!("../../../deploy/chart/templates/service.yaml")),
    ("deployment.yaml", include_str!("../../../deploy/chart/templates/deployment.yaml")),
    ("extra-objects.yaml", include_str!("../../../deploy/chart/templates/extra-objects.yaml")),
];

/// A chart that cannot be rendered with these values.
#[derive(Debug, thiserror::Error)]
pub enum ChartError {
    /// A template fails.
    #[error("cannot render {template} of the chart: {why}")]
    Template {
        /// Its name.
        template: &'static str,
        /// What is wrong, for example with a value that it uses.
        why: String,
    },
    /// The result is not YAML, for example because of a value with a line break.
    #[error("{template} of the chart is not YAML with these values: {why}")]
    Output {
        /// Its name.
        template: &'static str,
        /// What is wrong.
        why: String,
    },
}

/// What an installation is called.
#[derive(Clone, Debug)]
pub struct Release {
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
}

/// The values of the chart that hold when no others are given.
pub fn defaults() -> Value {
    transom_object::yaml::read(VALUES).unwrap_or_default()
}

/// The objects of the chart, in the order in which they are to be applied.
pub fn render(release: &Release, values: &Value) -> Result<Vec<Value>, ChartError> {
    let chart = transom_object::yaml::read(CHART).unwrap_or_default();
    let data = json!({
        "Values": values,
        "Release": {"Name": release.name, "Namespace": release.namespace, "Service": "Helm"},
        // Helm gives the fields of Chart.yaml names of Go.
        "Chart": {"Name": chart["name"], "Version": chart["version"], "AppVersion": chart["appVersion"]},
    });
    let mut objects = Vec::new();
    for (name, text) in TEMPLATES.iter().copied() {
        objects.extend(rendered(name, text, &data)?);
    }
    Ok(objects)
}

fn rendered(template: &'static str, text: &str, data: &Value) -> Result<Vec<Value>, ChartError> {
    let failed = |why: &dyn std::fmt::Display| ChartError::Template { template, why: why.to_string() };
    let parsed = Template::parse(template, &format!("{HELPERS}{text}"), &Options::default());
    let parsed = parsed.map_err(|e| failed(&e))?;
    let data = transom_gotemplate::Value::from(data.clone());
    let output = parsed.execute(&data, &Functions::default(), &Limits::default()).map_err(|e| failed(&e))?;
    let documents = transom_object::yaml::read_documents(&output);
    let documents = documents.map_err(|e| ChartError::Output { template, why: e.to_string() })?;
    let objects = documents.into_iter().map(|document| document.value);
    Ok(objects.filter(|object| !meta::kind(object).is_empty()).collect())
}

#[cfg(test)]
mod tests;
