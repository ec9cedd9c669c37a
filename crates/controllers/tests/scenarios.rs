//! Every scenario of Crossplane's own end-to-end suite and every edge case of its unit tests has a test here, or a
//! reason why not: `scenarios.txt` lists them, one a line, `scenario<TAB>tests or reason`. Edge cases are numbered.
//!
//! A test is written `path::function` with the path from the root of the repository; several are separated by spaces. A
//! reason begins with `no: `.

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

fn listed() -> BTreeMap<&'static str, &'static str> {
    let lines = include_str!("scenarios.txt").lines().filter(|l| !l.is_empty() && !l.starts_with('#'));
    let mut listed = BTreeMap::new();
    for line in lines {
        let (scenario, tests) = line.split_once('\t').unwrap_or((line, ""));
        assert!(listed.insert(scenario, tests).is_none(), "{scenario} is listed twice");
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
    let mut wrong = Vec::new();
    for (scenario, tests) in listed {
        match tests.strip_prefix("no: ") {
            Some(reason) if reason.len() > 10 => {}
            Some(_) => wrong.push(format!("{scenario}: that is no reason")),
            None if tests.is_empty() => wrong.push(format!("{scenario}: neither tests nor a reason")),
            None => {
                let gone = tests.split(' ').filter(|test| !exists(test));
                wrong.extend(gone.map(|test| format!("{scenario}: there is no test {test}")));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
