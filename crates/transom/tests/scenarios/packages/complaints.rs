//! Every vector and every complaint about packages has a test, or a reason why not: `complaints.txt` lists them, one a line,
//! as `NUMBER<TAB>FILE::TEST …`, or `NUMBER<TAB>no: ` and why.

use std::collections::BTreeMap;
use std::path::Path;

/// The behavioural vectors.
const VECTORS: [&str; 14] =
    ["v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14"];

/// What users of Crossplane complained about: issues of its repository, and of that of its documentation.
const COMPLAINTS: [&str; 35] = [
    // The Lock
    "i3423", "i7454", "i5988", "i5564", "i6676", "i6074", "i6555",
    // The identity of dependencies
    "i6779", "i4023", "i6213", "i6659", "i6411", "i6076", "i5279", "i6275", "i6360", "i4588", "i6382",
    "docs789", // TLS
    "i5456", "i7480", // Registries
    "i4299", "i6428", "i4529", "i5785", "i6137", "i6235", "i6767", "i3942", "i2647", "docs691", "i5580",
    "i4980", "docs754", // Status
    "docs1091",
];

/// Whether a test is declared in a file, and says in its name what it is about. A test of another folder, which is there
/// for another reason as well, need not.
fn is_test_of(number: &str, test: &str) -> bool {
    let Some((file, function)) = test.split_once("::") else { return false };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios/packages");
    let Ok(text) = std::fs::read_to_string(folder.join(file)) else { return false };
    let declared = [
        format!("#[tokio::test(flavor = \"multi_thread\")]\nasync fn {function}("),
        format!("#[tokio::test]\nasync fn {function}("),
        format!("#[test]\nfn {function}("),
    ];
    let named = file.starts_with("../") || function.split('_').any(|word| word == number);
    declared.iter().any(|declaration| text.contains(declaration)) && named
}

#[test]
fn every_vector_and_every_complaint_has_a_test_or_a_reason() {
    let lines = include_str!("complaints.txt").lines().filter(|l| !l.is_empty() && !l.starts_with('#'));
    let listed: BTreeMap<&str, &str> = lines.map(|line| line.split_once('\t').expect("a tab")).collect();
    let all: Vec<&str> = VECTORS.into_iter().chain(COMPLAINTS).collect();
    for number in &all {
        let entry = listed.get(number).unwrap_or_else(|| panic!("{number} is not listed"));
        match entry.strip_prefix("no: ") {
            Some(reason) => assert!(reason.len() > 20, "{number}: the reason is too short"),
            None => {
                for test in entry.split(' ') {
                    assert!(is_test_of(number, test), "{number}: there is no such test: {test}");
                }
            }
        }
    }
    let unknown: Vec<&&str> = listed.keys().filter(|number| !all.contains(number)).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}
