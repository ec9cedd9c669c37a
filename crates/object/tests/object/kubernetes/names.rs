//! Name rules and IP addresses.

use super::Plan::Run;
use super::{Case, Outcome, is, run, same};
use serde_json::Value;
use transom_object::field::{Error, Path};
use transom_object::names::{self, ip};

macro_rules! verdict {
    ($name:literal, $check:expr) => {
        [
            (concat!($name, ".good"), Run(|c| is($check(c.value()), c.value()))),
            (concat!($name, ".success"), Run(|c| is($check(c.value()), c.value()))),
            (concat!($name, ".bad"), Run(|c| is(!$check(c.value()), c.value()))),
            (concat!($name, ".error"), Run(|c| is(!$check(c.value()), c.value()))),
            (concat!($name, ".failure"), Run(|c| is(!$check(c.value()), c.value()))),
        ]
    };
}

macro_rules! text {
    ($rule:expr) => {
        |v: &Value| $rule(v.as_str().unwrap()).is_empty()
    };
}

macro_rules! number {
    ($rule:expr) => {
        |v: &Value| $rule(v.as_i64().unwrap()).is_empty()
    };
}

macro_rules! at_path {
    ($rule:expr) => {
        |v: &Value| $rule(&Path::new("p"), v.as_str().unwrap()).is_empty()
    };
}

fn ranges(good: bool) -> impl Fn(&Case<'_>) -> Outcome {
    move |c| {
        let n = |name: &str| c.input(name).as_i64().unwrap_or_default();
        is(names::is_in_range(n("value"), n("min"), n("max")).is_empty() == good, c.row)
    }
}

fn texts(errors: &[Error]) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

fn expected_texts(list: &Value) -> Vec<String> {
    let text = |v: &Value| v.get("$error").unwrap_or(v).as_str().unwrap().to_owned();
    list.as_array().into_iter().flatten().map(text).collect()
}

#[test]
fn validation() {
    let mut plan = Vec::new();
    plan.extend(verdict!("TestIsConfigMapKey", text!(names::is_config_map_key)));
    plan.extend(verdict!("TestIsDNS1035Label", text!(names::is_dns1035_label)));
    plan.extend(verdict!("TestIsDNS1123Label", text!(names::is_dns1123_label)));
    plan.extend(verdict!("TestIsDNS1123Subdomain", text!(names::is_dns1123_subdomain)));
    plan.extend(verdict!("TestIsWildcardDNS1123Subdomain", text!(names::is_wildcard_dns1123_subdomain)));
    plan.extend(verdict!("TestIsCIdentifier", text!(names::is_c_identifier)));
    plan.extend(verdict!("TestIsEnvVarName", text!(names::is_env_var_name)));
    plan.extend(verdict!("TestIsRelaxedEnvVarName", text!(names::is_relaxed_env_var_name)));
    plan.extend(verdict!("TestIsHTTPHeaderName", text!(names::is_http_header_name)));
    plan.extend(verdict!("TestIsQualifiedName", text!(names::is_qualified_name)));
    plan.extend(verdict!("TestIsValidLabelValue", text!(names::is_label_value)));
    plan.extend(verdict!("TestIsValidPercent", text!(names::is_percent)));
    plan.extend(verdict!("TestIsValidPortName", text!(names::is_port_name)));
    plan.extend(verdict!("TestIsValidPortNum", number!(names::is_port_num)));
    plan.extend(verdict!("TestIsValidGroupID", number!(names::is_group_id)));
    plan.extend(verdict!("TestIsValidUserID", number!(names::is_user_id)));
    plan.extend(verdict!("TestIsDomainPrefixedPath", at_path!(names::is_domain_prefixed_path)));
    plan.extend(verdict!("TestIsFullyQualifiedDomainName", at_path!(names::is_fully_qualified_domain_name)));
    plan.extend(verdict!("TestIsFullyQualifiedName", at_path!(names::is_fully_qualified_name)));
    plan.push(("TestIsInRange.good", Run(|c| ranges(true)(c))));
    plan.push(("TestIsInRange.bad", Run(|c| ranges(false)(c))));
    plan.push((
        "TestIsFullyQualifiedName.message",
        Run(|c| {
            let got = names::is_fully_qualified_name(&Path::new(""), c.text("targetName"));
            let want = c.want_err().as_str().unwrap_or_default();
            is(if want.is_empty() { got.is_empty() } else { texts(&got)[0].contains(want) }, got)
        }),
    ));
    plan.push((
        "TestIsDNS1123SubdomainWithUnderscore",
        Run(|c| {
            let got = names::is_dns1123_subdomain_with_underscore(c.text("value"));
            same(got, expected_texts(c.expected("expected")))
        }),
    ));
    plan.push((
        "TestIsDomainPrefixedKey",
        Run(|c| {
            let got = names::is_domain_prefixed_key(&Path::new("test"), c.text("value"));
            same(texts(&got), expected_texts(c.expected("expected")))
        }),
    ));
    run("names/validation", &plan);
}

/// `{name | index, parent}`, innermost first.
fn path(v: &Value) -> Path {
    let parent = v.get("parent").map_or_else(Path::root, path);
    match v.get("name").and_then(Value::as_str) {
        Some(name) => parent.child(name),
        None => parent.key(v["index"].as_str().unwrap()),
    }
}

type Rule<'a> = &'a dyn Fn(&str) -> Vec<Error>;

/// Three strictnesses, each with a text that the only error must contain, if any.
fn strictness(c: &Case<'_>, rules: [Rule<'_>; 3]) -> Outcome {
    let wants = [c.want_err(), c.input("legacyErr"), c.input("legacyStrictErr")];
    for (rule, want) in rules.into_iter().zip(wants) {
        let (got, want) = (rule(c.text("in")), want.as_str().unwrap_or_default());
        match got.as_slice() {
            [] if want.is_empty() => {}
            [one] if !want.is_empty() && one.detail.contains(want) => {}
            _ => return Err(format!("got {got:?}, want {want:?}")),
        }
    }
    Ok(())
}

#[test]
fn ip_addresses() {
    let plan = [
        (
            "TestIsValidIP",
            Run(|c: &Case<'_>| {
                let p = Path::new("p");
                strictness(
                    c,
                    [&|s| ip::is_ip(&p, s), &|s| ip::is_ip_for_legacy_field(&p, s, false, &[]), &|s| {
                        ip::is_ip_for_legacy_field(&p, s, true, &[])
                    }],
                )
            }),
        ),
        (
            "TestIsValidCIDR",
            Run(|c| {
                let p = Path::new("p");
                strictness(
                    c,
                    [&|s| ip::is_cidr(&p, s), &|s| ip::is_cidr_for_legacy_field(&p, s, false, &[]), &|s| {
                        ip::is_cidr_for_legacy_field(&p, s, true, &[])
                    }],
                )
            }),
        ),
        (
            "TestIsValidInterfaceAddress",
            Run(|c| {
                let got = ip::is_interface_address(&Path::new("p"), c.text("in"));
                let want = c.want_err().as_str().unwrap_or_default();
                is(if want.is_empty() { got.is_empty() } else { texts(&got)[0].contains(want) }, got)
            }),
        ),
        (
            "TestGetWarningsForIP",
            Run(|c| {
                let got = ip::warnings_for_ip(&path(c.input("fieldPath")), c.text("address"));
                same(got, expected_texts(c.expected("want")))
            }),
        ),
        (
            "TestGetWarningsForCIDR",
            Run(|c| {
                let got = ip::warnings_for_cidr(&path(c.input("fieldPath")), c.text("cidr"));
                same(got, expected_texts(c.expected("want")))
            }),
        ),
    ];
    run("names/ip", &plan);
}
