//! What must hold of an input before anything is done. The first violation is reported, with the message of the original,
//! whose order and gaps are kept: the transforms and the policy of a combining patch are looked at only when it runs.

use transom_go::regexp::{self, Limits};
use transom_object::field::{Error, Path};

use super::input::{
    Combine, CombineStrategy, ComposedTemplate, ConnectionDetail, ConnectionDetailType, Convert,
    ConvertFormat, ConvertTo, Environment, FromPolicy, Match, MatchCondition, Math, MathType, Patch,
    PatchType, Pattern, PatternType, ReadinessCheck, ReadinessCheckType, Resources, StringTransform,
    StringType, ToPolicy, Transform, TransformType,
};

pub(super) type Checked = Result<(), Error>;

fn required(path: &Path, field: &str, detail: impl Into<String>) -> Checked {
    Err(Error::required(&path.child(field), detail))
}

fn invalid(path: &Path, field: &str, value: &str, detail: &str) -> Checked {
    Err(Error::invalid(&path.child(field), value, detail))
}

/// How the path to a part of a patch set begins.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Sets {
    /// At the set, whichever it is, as in the messages of the original.
    Unnumbered,
    /// At the root.
    Numbered,
}

pub(super) fn resources(input: &Resources, sets: Sets) -> Checked {
    let root = Path::root();
    for (i, set) in input.patch_sets.iter().enumerate() {
        let path = if sets == Sets::Numbered { Path::new("patchSets").index(i) } else { Path::root() };
        if set.name.is_empty() {
            return required(&path, "name", "name is required");
        }
        for (i, each) in set.patches.iter().enumerate() {
            patch(each, &path.child("patches").index(i), PatchOwner::PatchSet)?;
        }
    }
    if input.resources.is_empty() && input.environment.as_ref().is_none_or(|e| e.patches.is_empty()) {
        return required(&root, "resources", "resources or environment patches are required");
    }
    for (i, template) in input.resources.iter().enumerate() {
        composed_template(template, &Path::new("resources").index(i))?;
    }
    input.environment.as_ref().map_or(Ok(()), |e| environment(e, &Path::new("environment")))
}

fn composed_template(template: &ComposedTemplate, path: &Path) -> Checked {
    if template.name.is_empty() {
        return required(path, "name", "name is required");
    }
    for (i, each) in template.patches.iter().enumerate() {
        patch(each, &path.child("patches").index(i), PatchOwner::Resource)?;
    }
    for (i, detail) in template.connection_details.iter().enumerate() {
        connection_detail(detail, &path.child("connectionDetails").index(i))?;
    }
    for (i, check) in template.readiness_checks.iter().enumerate() {
        readiness_check(check, &path.child("readinessChecks").index(i))?;
    }
    Ok(())
}

fn environment(environment: &Environment, path: &Path) -> Checked {
    use PatchType::{
        CombineFromComposite, CombineToComposite, FromComposite, FromEnvironment, ToComposite, ToEnvironment,
    };
    for (i, each) in environment.patches.iter().enumerate() {
        let path = path.child("patches").index(i);
        match each.kind {
            FromComposite | ToComposite | CombineFromComposite | CombineToComposite | FromEnvironment
            | ToEnvironment => patch(each, &path, PatchOwner::Environment)?,
            _ => {
                let kind = each.kind.as_str();
                return Err(Error::invalid(&path.key("type"), kind, "invalid environment patch type"));
            }
        }
    }
    Ok(())
}

/// What a patch belongs to; one message depends on it.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum PatchOwner {
    Resource,
    PatchSet,
    Environment,
}

pub(super) fn patch(patch: &Patch, path: &Path, owner: PatchOwner) -> Checked {
    use PatchType::{
        CombineFromComposite, CombineFromEnvironment, CombineToComposite, CombineToEnvironment,
        FromComposite, FromEnvironment, PatchSet, ToComposite, ToEnvironment, Unknown,
    };
    let kind = patch.kind.as_str();
    match &patch.kind {
        FromComposite | ToComposite | FromEnvironment | ToEnvironment => {
            if patch.source_path().is_empty() {
                let detail = format!("fromFieldPath must be set for patch type {kind}");
                return required(path, "fromFieldPath", detail);
            }
        }
        PatchSet if owner != PatchOwner::Resource => {
            let detail = "patch type *v1beta1.PatchSetPatch does not support patch of type PatchSet";
            return invalid(path, "type", kind, detail);
        }
        PatchSet => {
            if patch.patch_set_name.as_deref().unwrap_or_default().is_empty() {
                return required(
                    path,
                    "patchSetName",
                    format!("patchSetName must be set for patch type {kind}"),
                );
            }
        }
        CombineFromComposite | CombineToComposite | CombineFromEnvironment | CombineToEnvironment => {
            let Some(combined) = &patch.combine else {
                return required(path, "combine", format!("combine must be set for patch type {kind}"));
            };
            if patch.target_path().is_empty() {
                return required(
                    path,
                    "toFieldPath",
                    format!("toFieldPath must be set for patch type {kind}"),
                );
            }
            return combine(combined, &path.child("combine"));
        }
        Unknown(kind) => return invalid(path, "type", kind, "unknown patch type"),
    }
    for (i, each) in patch.transforms.iter().enumerate() {
        transform(each, &path.child("transforms").index(i))?;
    }
    let Some(policy) = &patch.policy else { return Ok(()) };
    if let Some(ToPolicy::Unknown(policy)) = &policy.to_field_path {
        return invalid(&path.child("policy"), "toFieldPathPolicy", policy, "unknown toFieldPathPolicy");
    }
    if let FromPolicy::Unknown(policy) = &policy.from_field_path {
        return invalid(&path.child("policy"), "fromFieldPathPolicy", policy, "unknown fromFieldPathPolicy");
    }
    Ok(())
}

pub(super) fn combine(combine: &Combine, path: &Path) -> Checked {
    match &combine.strategy {
        CombineStrategy::String if combine.string.is_none() => {
            return required(path, "string", "string must be set for combine strategy string");
        }
        CombineStrategy::String => {}
        CombineStrategy::Unknown(strategy) if strategy.is_empty() => {
            return required(path, "strategy", "a combine strategy must be provided");
        }
        CombineStrategy::Unknown(strategy) => {
            return invalid(path, "strategy", strategy, "unknown strategy type");
        }
    }
    if combine.variables.is_empty() {
        return required(path, "variables", "at least one variable must be provided");
    }
    for (i, variable) in combine.variables.iter().enumerate() {
        if variable.from_field_path.is_empty() {
            let path = path.child("variables").index(i);
            return required(&path, "fromFieldPath", "fromFieldPath must be set for each combine variable");
        }
    }
    Ok(())
}

pub(super) fn transform(transform: &Transform, path: &Path) -> Checked {
    let kind = transform.kind.as_str();
    let config = path.child(kind);
    let checked = match &transform.kind {
        TransformType::Math => transform.math.as_ref().map(|math| self::math(math, &config)),
        TransformType::Map => transform.map.as_ref().map(|pairs| match pairs.is_empty() {
            true => required(
                &config,
                "pairs",
                "at least one pair must be specified if a map transform is specified",
            ),
            false => Ok(()),
        }),
        TransformType::Match => transform.r#match.as_ref().map(|patterns| self::patterns(patterns, &config)),
        TransformType::String => transform.string.as_ref().map(|string| self::string(string, &config)),
        TransformType::Convert => transform.convert.as_ref().map(|convert| self::convert(convert, &config)),
        TransformType::Unknown(kind) => return invalid(path, "type", kind, "unknown transform type"),
    };
    checked.unwrap_or_else(|| {
        required(path, kind, format!("given transform type {kind} requires configuration"))
    })
}

pub(super) fn math(math: &Math, path: &Path) -> Checked {
    let (field, words, given) = match &math.kind {
        MathType::Multiply => ("multiply", "multiply", math.multiply),
        MathType::ClampMin => ("clampMin", "clamp min", math.clamp_min),
        MathType::ClampMax => ("clampMax", "clamp max", math.clamp_max),
        MathType::Unknown(kind) if kind.is_empty() => {
            return required(path, "type", "math transform type is required");
        }
        MathType::Unknown(kind) => return invalid(path, "type", kind, "unknown math transform type"),
    };
    match given {
        Some(_) => Ok(()),
        None => {
            required(path, field, format!("must specify a value if a {words} math transform is specified"))
        }
    }
}

fn patterns(r#match: &Match, path: &Path) -> Checked {
    if r#match.patterns.is_empty() {
        return required(
            path,
            "patterns",
            "at least one pattern must be specified if a match transform is specified",
        );
    }
    let mut patterns = r#match.patterns.iter().enumerate();
    patterns.try_for_each(|(i, each)| pattern(each, &path.child("patterns").index(i)))
}

fn pattern(pattern: &Pattern, path: &Path) -> Checked {
    match &pattern.kind {
        PatternType::Unknown(kind) if !kind.is_empty() => invalid(path, "type", kind, "unknown pattern type"),
        PatternType::Literal | PatternType::Unknown(_) => match &pattern.literal {
            Some(_) => Ok(()),
            None => required(path, "literal", "literal pattern type requires a literal"),
        },
        PatternType::Regexp => match &pattern.regexp {
            Some(regexp) => compiles(regexp, path, "regexp"),
            None => required(path, "regexp", "regexp pattern type requires a regexp"),
        },
    }
}

fn compiles(pattern: &str, path: &Path, field: &str) -> Checked {
    match regexp::compile_bytes(pattern, Limits::default()) {
        Ok(_) => Ok(()),
        Err(_) => invalid(path, field, pattern, "invalid regexp"),
    }
}

fn string(string: &StringTransform, path: &Path) -> Checked {
    let present = |given: bool, field: &str, detail: &str| match given {
        true => Ok(()),
        false => required(path, field, detail),
    };
    match &string.kind {
        StringType::Format => present(string.fmt.is_some(), "fmt", "format transform requires a format"),
        StringType::Convert => {
            present(string.convert.is_some(), "convert", "convert transform requires a conversion type")
        }
        StringType::TrimPrefix | StringType::TrimSuffix => {
            present(string.trim.is_some(), "trim", "trim transform requires a trim value")
        }
        StringType::Regexp => match &string.regexp {
            None => required(path, "regexp", "regexp transform requires a regexp"),
            Some(regexp) if regexp.r#match.is_empty() => {
                required(&path.child("regexp"), "match", "regexp transform requires a match")
            }
            Some(regexp) => compiles(&regexp.r#match, &path.child("regexp"), "match"),
        },
        StringType::Join => present(string.join.is_some(), "join", "join transform requires a join"),
        StringType::Replace => match &string.replace {
            None => required(path, "replace", "replace transform requires a replace"),
            Some(replace) if replace.search.is_empty() => {
                required(&path.child("replace"), "search", "replace transform requires a search")
            }
            Some(_) => Ok(()),
        },
        StringType::Unknown(kind) if kind.is_empty() => {
            required(path, "type", "string transform type is required")
        }
        StringType::Unknown(kind) => invalid(path, "type", kind, "unknown string transform type"),
    }
}

pub(super) fn convert(convert: &Convert, path: &Path) -> Checked {
    if let ConvertFormat::Unknown(format) = convert.format() {
        return invalid(path, "format", format, "invalid format");
    }
    match &convert.to_type {
        ConvertTo::Unknown(to) => invalid(path, "toType", to, "invalid type"),
        _ => Ok(()),
    }
}

pub(super) fn connection_detail(detail: &ConnectionDetail, path: &Path) -> Checked {
    if let ConnectionDetailType::Unknown(kind) = &detail.kind {
        return match kind.as_str() {
            "" => required(path, "type", "connection detail type is required"),
            kind => invalid(path, "type", kind, "unknown connection detail type"),
        };
    }
    if detail.name.is_empty() {
        return required(path, "name", "name is required");
    }
    let (given, field, words) = match detail.kind {
        ConnectionDetailType::FromConnectionSecretKey => (
            &detail.from_connection_secret_key,
            "fromConnectionSecretKey",
            "from connection secret key connection detail requires a key",
        ),
        ConnectionDetailType::FromFieldPath => (
            &detail.from_field_path,
            "fromFieldPath",
            "from field path connection detail requires a field path",
        ),
        _ => (&detail.value, "value", "value connection detail requires a value"),
    };
    if given.is_some() { Ok(()) } else { required(path, field, words) }
}

pub(super) fn readiness_check(check: &ReadinessCheck, path: &Path) -> Checked {
    match &check.kind {
        ReadinessCheckType::Unknown(kind) => {
            return invalid(path, "type", kind, "unknown readiness check type");
        }
        ReadinessCheckType::None => return Ok(()),
        ReadinessCheckType::MatchString if check.match_string.is_none() => {
            return required(path, "matchString", "cannot be nil for type MatchString");
        }
        ReadinessCheckType::MatchInteger if check.match_integer.is_none() => {
            return required(path, "matchInteger", "cannot be nil for type MatchInteger");
        }
        ReadinessCheckType::MatchCondition => {
            let condition = check.match_condition.as_ref();
            return condition.map_or(Ok(()), |c| match_condition(c, &path.child("matchCondition")));
        }
        _ => {}
    }
    match check.field_path {
        Some(_) => Ok(()),
        None => required(path, "fieldPath", "cannot be empty"),
    }
}

fn match_condition(condition: &MatchCondition, path: &Path) -> Checked {
    if condition.kind.is_empty() {
        return required(path, "type", "cannot be empty for type MatchCondition");
    }
    if condition.status.is_empty() {
        return required(path, "status", "cannot be empty for type MatchCondition");
    }
    Ok(())
}
