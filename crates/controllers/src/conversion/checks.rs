//! What is wrong with the rules of a definition, and which of its versions are in use.

use serde::Deserialize;
use serde_json::Value;
use transom_conversion::{Converter, FieldPath, Rules, VersionSchema};
use transom_object::json::strings;
use transom_object::meta;
use transom_xapi::definition::Definition;
use transom_xapi::derive::{self, Extensions};

/// Where rules are in a definition.
const AT: &str = "spec.conversion";
/// How many findings of a check are reported: more of them have the same cause.
const MAX_FINDINGS: usize = 4;

/// The converter of one of the two kinds of a definition, by the CRD of that kind.
pub(super) fn converter(rules: &Value, crd: &Value) -> Result<Converter, Vec<String>> {
    let at = |error: &dyn std::fmt::Display| format!("{AT}.{error}");
    let rules = Rules::read(rules).map_err(|error| vec![at(&error)])?;
    let versions = crd["spec"]["versions"].as_array().into_iter().flatten();
    let versions: Vec<VersionSchema<'_>> = versions
        .map(|version| VersionSchema {
            name: version["name"].as_str().unwrap_or_default(),
            schema: &version["schema"]["openAPIV3Schema"],
        })
        .collect();
    Converter::compile(&rules, &versions).map_err(|errors| errors.iter().map(|e| at(e)).collect())
}

/// The CRDs of a definition by the kind that they define.
pub(super) fn crds(definition: &Definition) -> Result<Vec<(String, Value)>, derive::Error> {
    let composite = derive::composite_crd(definition, Extensions::ALL)?;
    let mut all = vec![(definition.spec.names.kind.clone(), composite)];
    if let Some(names) = &definition.spec.claim_names {
        all.push((names.kind.clone(), derive::claim_crd(definition)?));
    }
    Ok(all)
}

/// What is wrong with the rules of a definition. Objects are generated for this: it takes milliseconds.
pub(crate) fn problems(definition: &Definition) -> Vec<String> {
    let Some(rules) = definition.conversion_rules() else { return Vec::new() };
    let own = own_fields(rules);
    if !own.is_empty() {
        return own;
    }
    // A definition that has no CRDs is refused for another reason.
    for (kind, crd) in crds(definition).unwrap_or_default() {
        let converter = match converter(rules, &crd) {
            Ok(converter) => converter,
            Err(errors) => return errors,
        };
        let findings = converter.check();
        if !findings.is_empty() {
            let shown = findings.iter().take(MAX_FINDINGS);
            return shown.map(|finding| format!("{AT}.{} (of {kind})", described(finding))).collect();
        }
    }
    Vec::new()
}

fn described(finding: &transom_conversion::Finding) -> String {
    finding.to_string()
}

/// Rules about fields that belong to Crossplane, which are the same in all versions.
fn own_fields(rules: &Value) -> Vec<String> {
    let Ok(rules) = Rules::read(rules) else { return Vec::new() };
    let mut problems = Vec::new();
    for (index, rule) in rules.rules.iter().enumerate() {
        let moves = rule.moves.iter().flat_map(|one| [&one.from, &one.to]);
        let computed = rule.forward.iter().chain(&rule.backward).map(|one| &one.path);
        for path in moves.chain(computed) {
            // A path that cannot be read is reported by the compilation of the rules.
            let Ok(read) = FieldPath::parse(path) else { continue };
            let [part, name, ..] = read.names() else { continue };
            if derive::is_own_field(part, name) {
                problems.push(format!(
                    "{AT}.rules[{index}]: {path} belongs to Crossplane and is the same in all versions"
                ));
            }
        }
    }
    problems
}

/// What is wrong with a definition that is to replace another one: with its rules, and with versions that it no longer has.
fn change_problems(xrd: &Value, before: Option<&Value>) -> Vec<String> {
    if before.is_some_and(|before| before["spec"] == xrd["spec"]) {
        return Vec::new();
    }
    let Ok(definition) = Definition::deserialize(xrd) else { return Vec::new() };
    let mut all = problems(&definition);
    if let Some(before) = before {
        all.extend(removals(xrd, before));
    }
    all
}

/// Everything that is wrong with a definition that is to replace another one, also because Compositions use a version that it no longer
/// has. They are needed only if [`removed_versions`] has a result.
pub(crate) fn definition_problems(
    xrd: &Value,
    before: Option<&Value>,
    compositions: &[Value],
) -> Vec<String> {
    let mut all = change_problems(xrd, before);
    all.extend(before.into_iter().flat_map(|before| used_versions(xrd, before, compositions)));
    all
}

fn versions(xrd: &Value) -> impl Iterator<Item = &str> {
    xrd["spec"]["versions"].as_array().into_iter().flatten().filter_map(|version| version["name"].as_str())
}

fn referenceable(xrd: &Value) -> Option<&str> {
    let mut versions = xrd["spec"]["versions"].as_array()?.iter();
    versions.find(|version| version["referenceable"] == true)?["name"].as_str()
}

fn is_by_rules(xrd: &Value) -> bool {
    Definition::deserialize(xrd).is_ok_and(|definition| definition.conversion_rules().is_some())
}

/// The versions that a definition had and its next generation does not have, if its objects are converted by rules.
pub(crate) fn removed_versions(xrd: &Value, before: &Value) -> Vec<String> {
    if !is_by_rules(before) {
        return Vec::new();
    }
    let now: Vec<&str> = versions(xrd).collect();
    versions(before).filter(|name| !now.contains(name)).map(str::to_owned).collect()
}

/// Removals of what stored objects need.
fn removals(xrd: &Value, before: &Value) -> Vec<String> {
    let mut problems = Vec::new();
    let mut stored = strings(&before["status"]["storedVersions"]);
    stored.extend(referenceable(before).map(str::to_owned));
    for version in removed_versions(xrd, before).iter().filter(|version| stored.contains(version)) {
        problems.push(format!(
            "spec.versions: version {version} cannot be removed: objects may be stored in it (status.storedVersions); make another \
             version referenceable, and wait until the condition StorageMigrated is True"
        ));
    }
    // Without rules a version other than the one that is stored would be served by renaming it.
    let next = referenceable(xrd);
    let other = stored.iter().find(|version| Some(version.as_str()) != next);
    if let Some(other) = other.filter(|_| is_by_rules(before) && !is_by_rules(xrd)) {
        problems.push(format!(
            "{AT}.strategy: cannot be changed while objects may be stored in version {other} (status.storedVersions) and {} is \
             referenceable; keep the rules, make that version referenceable, and wait until the condition StorageMigrated is True",
            next.unwrap_or("no version")
        ));
    }
    problems
}

/// Compositions of versions that are removed.
fn used_versions(xrd: &Value, before: &Value, compositions: &[Value]) -> Vec<String> {
    let (group, kind) = (&before["spec"]["group"], &before["spec"]["names"]["kind"]);
    let mut problems = Vec::new();
    for version in removed_versions(xrd, before) {
        let api_version = format!("{}/{version}", group.as_str().unwrap_or_default());
        let users = compositions.iter().filter(|composition| {
            let of = &composition["spec"]["compositeTypeRef"];
            of["apiVersion"] == api_version && of["kind"] == *kind && !meta::is_deleting(composition)
        });
        let names: Vec<&str> = users.map(meta::name).take(3).collect();
        if !names.is_empty() {
            problems.push(format!(
                "spec.versions: version {version} cannot be removed: Compositions are for it ({}); delete them first",
                names.join(", ")
            ));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn xrd(names: &[&str], referenceable: &str, stored: &[&str]) -> Value {
        let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}}});
        let version = |name: &&str| json!({"name": name, "served": true, "referenceable": *name == referenceable, "schema": schema});
        let rules: Vec<Value> =
            names.windows(2).map(|pair| json!({"from": pair[0], "to": pair[1]})).collect();
        json!({
            "metadata": {"name": "things.example.org"},
            "spec": {
                "group": "example.org", "names": {"kind": "Thing", "plural": "things"}, "scope": "Cluster",
                "versions": names.iter().map(version).collect::<Vec<_>>(),
                "conversion": {"strategy": "Declarative", "rules": rules},
            },
            "status": {"storedVersions": stored},
        })
    }

    #[test]
    fn a_version_in_use_stays() {
        let both = |stored: &[&str]| xrd(&["v1", "v2"], "v2", stored);
        let new = xrd(&["v2"], "v2", &[]);
        assert_eq!(definition_problems(&new, Some(&both(&["v2"])), &[]), Vec::<String>::new());
        let refused = definition_problems(&new, Some(&both(&["v1", "v2"])), &[]);
        assert!(
            refused.len() == 1 && refused[0].contains("version v1 cannot be removed: objects may be stored"),
            "{refused:?}"
        );
        // The status may be older than the change of the referenceable version.
        let only_v1 = definition_problems(&new, Some(&xrd(&["v1", "v2"], "v1", &[])), &[]);
        assert!(only_v1.len() == 1 && only_v1[0].contains("version v1"), "{only_v1:?}");
        let composition = |version: &str| json!({"metadata": {"name": "c"}, "spec": {"compositeTypeRef": {"apiVersion": format!("example.org/{version}"), "kind": "Thing"}}});
        let refused =
            definition_problems(&new, Some(&both(&["v2"])), &[composition("v2"), composition("v1")]);
        assert!(refused.len() == 1 && refused[0].contains("Compositions are for it (c)"), "{refused:?}");
        assert_eq!(
            definition_problems(&new, Some(&both(&["v2"])), &[composition("v2")]),
            Vec::<String>::new()
        );
    }

    #[test]
    fn the_strategy_stays_while_several_versions_are_stored() {
        let mut new = xrd(&["v1", "v2"], "v2", &[]);
        new["spec"]["conversion"] = json!({"strategy": "None"});
        let before = |stored: &[&str]| xrd(&["v1", "v2"], "v2", stored);
        let refused = definition_problems(&new, Some(&before(&["v1", "v2"])), &[]);
        assert!(refused.len() == 1 && refused[0].starts_with("spec.conversion.strategy"), "{refused:?}");
        assert_eq!(definition_problems(&new, Some(&before(&["v2"])), &[]), Vec::<String>::new());
        // Together with another referenceable version: what is stored in the former one would not be converted.
        for stored in [&["v1"][..], &[]] {
            let refused = definition_problems(&new, Some(&xrd(&["v1", "v2"], "v1", stored)), &[]);
            assert!(refused.len() == 1 && refused[0].contains("stored in version v1"), "{refused:?}");
        }
    }

    #[test]
    fn the_kept_fields_of_the_status_are_in_the_schema() {
        let definition = Definition::deserialize(xrd(&["v1", "v2"], "v1", &[])).unwrap();
        let (_, crd) = crds(&definition).unwrap().remove(0);
        let field = format!(
            "/spec/versions/1/schema/openAPIV3Schema/properties/status/properties/{}",
            transom_conversion::STATUS_FIELD
        );
        assert_eq!(crd.pointer(&field).unwrap()["type"], "string");
        let mut plain = xrd(&["v1", "v2"], "v1", &[]);
        plain["spec"]["conversion"] = json!({"strategy": "None"});
        let (_, crd) = crds(&Definition::deserialize(plain).unwrap()).unwrap().remove(0);
        assert_eq!(crd.pointer(&field), None);
    }

    #[test]
    fn rules_leave_crossplanes_fields_alone() {
        let mut new = xrd(&["v1", "v2"], "v2", &[]);
        for path in [
            "spec.crossplane.compositionRef",
            "spec[crossplane].compositionRef",
            "spec['resourceRefs']",
            "status.conditions",
            "status.keptFields",
        ] {
            new["spec"]["conversion"]["rules"][0]["moves"] = json!([{"from": path, "to": "spec.size"}]);
            let refused = definition_problems(&new, None, &[]);
            assert!(refused.len() == 1 && refused[0].contains("belongs to Crossplane"), "{refused:?}");
        }
    }
}
