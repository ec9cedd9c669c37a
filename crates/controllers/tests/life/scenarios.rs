//! Every scenario of Crossplane's own end-to-end suite and every edge case of its unit tests has a test here, or a
//! reason why not: `scenarios.txt` lists them, one a line. Edge cases are numbered.
//!
//! A line is `scenario<TAB>tests`, where a test is written `path::function` with the path from the root of the
//! repository and several are separated by spaces; at least one of them drives the binary, and begins with the number of
//! its edge case. Where that cannot be done, `<TAB>not on the binary: ` and why follows. A scenario that has no test at
//! all has `no: ` and a reason instead.

use std::collections::BTreeMap;
use std::path::Path;

/// The edge cases are numbered from 1.
const EDGE_CASES: u32 = 94;

/// Crossplane's end-to-end tests, at the head of its main branch and at the end of its first major version.
const SCENARIOS: [&str; 40] = [
    "TestBasicCompositionNamespaced",
    "TestBasicCompositionCluster",
    "TestCompositionRevisionSelection",
    "TestCompositionSelection",
    "TestCompositionValidation",
    "TestNamespacedXRClusterComposition",
    "TestLackOfRightsNamespaced",
    "TestCircuitBreaker",
    "TestRequiredResources",
    "TestRequiredSchemas",
    "TestLegacyComposition",
    "TestLegacyPropagateFieldsRemovalToXR",
    "TestLegacyPropagateFieldsRemovalToXRAfterUpgrade",
    "TestLegacyBindToExistingXR",
    "TestXRDValidation",
    "TestXRDReferenceableVersionChange",
    "TestXRDSubresources",
    "TestMRDValidation",
    "TestMRAPActivatesSingleMRD",
    "TestMRAPWildcardActivation",
    "TestMultipleMRAPsOneMRD",
    "TestOperation",
    "TestOperationRetryLogic",
    "TestOperationMultiStepPipeline",
    "TestCronOperationScheduling",
    "TestWatchOperationResourceChanges",
    "TestUsageStandaloneNamespaced",
    "TestUsageStandaloneCluster",
    "TestLegacyUsageStandalone",
    "TestLegacyUsageComposition",
    "TestProviderDeletionProtection",
    "TestCrossplaneLifecycle",
    "TestConfiguration",
    "TestProvider",
    "function-response-cache",
    "TestCompositionMinimal",
    "TestCompositionInvalidComposed",
    "TestCompositionPatchAndTransform",
    "TestCompositionFunctions",
    "TestPropagateFieldsRemovalToComposed",
];

/// Where the binary is driven through its API.
const ON_THE_BINARY: &str = "crates/transom/tests/scenarios/";

/// What a line says of its scenario.
struct Line {
    tests: Vec<&'static str>,
    /// Why there are no tests, or none on the binary.
    reason: Option<&'static str>,
}

impl Line {
    fn read(text: &'static str) -> Self {
        let (tests, reason) = match text.strip_prefix("no: ") {
            Some(reason) => ("", Some(reason)),
            None => match text.split_once("\tnot on the binary: ") {
                Some((tests, reason)) => (tests, Some(reason)),
                None => (text, None),
            },
        };
        Self { tests: tests.split(' ').filter(|test| !test.is_empty()).collect(), reason }
    }

    /// What is wrong with it.
    fn faults(&self, scenario: &str) -> Vec<String> {
        let gone = self.tests.iter().filter(|test| !exists(test));
        let mut faults: Vec<String> = gone.map(|test| format!("there is no test {test}")).collect();
        let on_the_binary: Vec<&str> =
            self.tests.iter().copied().filter(|test| test.starts_with(ON_THE_BINARY)).collect();
        match self.reason {
            Some(reason) if reason.len() < 10 => faults.push("the reason is too short".to_owned()),
            Some(_) if !on_the_binary.is_empty() => faults.push("it is tested on the binary".to_owned()),
            None if on_the_binary.is_empty() => {
                faults.push("no test on the binary, and no reason".to_owned());
            }
            _ => {}
        }
        if let Ok(number) = scenario.parse::<u32>() {
            let of_others = on_the_binary.iter().filter(|test| !cases(test).contains(&number));
            faults.extend(of_others.map(|test| format!("{test} does not say so in its name")));
        }
        faults
    }
}

/// The edge cases that a test names: `case_07_…` or `cases_08_09_…`.
fn cases(test: &str) -> Vec<u32> {
    let function = test.rsplit("::").next().unwrap_or_default();
    let named = function.strip_prefix("case_").or_else(|| function.strip_prefix("cases_"));
    named.unwrap_or_default().split('_').map_while(|word| word.parse().ok()).collect()
}

fn listed() -> BTreeMap<&'static str, Line> {
    let lines = include_str!("../scenarios.txt").lines().filter(|l| !l.is_empty() && !l.starts_with('#'));
    let mut listed = BTreeMap::new();
    for line in lines {
        let (scenario, text) = line.split_once('\t').unwrap_or((line, ""));
        assert!(listed.insert(scenario, Line::read(text)).is_none(), "{scenario} is listed twice");
    }
    listed
}

/// Whether a file of the repository has a test of this name.
fn exists(test: &str) -> bool {
    let Some((path, function)) = test.rsplit_once("::") else { return false };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let Ok(text) = std::fs::read_to_string(root.join(path)) else { return false };
    let lines: Vec<&str> = text.lines().collect();
    let is_test = |line: &&str| {
        let line = line.trim_start();
        line.starts_with("#[test]") || line.starts_with("#[tokio::test") || line.starts_with("#[test_log")
    };
    let declaration = |line: &str| {
        let line = line.trim_start();
        let name = line.strip_prefix("async fn ").or_else(|| line.strip_prefix("fn "));
        name.is_some_and(|name| name.split('(').next() == Some(function))
    };
    let place = lines.iter().position(|line| declaration(line));
    place.is_some_and(|at| lines[at.saturating_sub(4)..at].iter().any(is_test))
}

#[test]
fn every_scenario_and_every_edge_case_is_tested_or_has_a_reason() {
    let listed = listed();
    let numbers: Vec<String> = (1..=EDGE_CASES).map(|n| n.to_string()).collect();
    let all: Vec<&str> = SCENARIOS.into_iter().chain(numbers.iter().map(String::as_str)).collect();
    let missing: Vec<&&str> = all.iter().filter(|s| !listed.contains_key(**s)).collect();
    assert!(missing.is_empty(), "not listed: {missing:?}");
    let unknown: Vec<&&str> = listed.keys().filter(|s| !all.contains(s)).collect();
    assert!(unknown.is_empty(), "no such scenario: {unknown:?}");
    let faults = |(scenario, line): (&&str, &Line)| {
        line.faults(scenario).into_iter().map(|fault| format!("{scenario}: {fault}")).collect::<Vec<_>>()
    };
    let wrong: Vec<String> = listed.iter().flat_map(faults).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
