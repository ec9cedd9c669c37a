//! The table of long tests in CONTRIBUTING.md has the budgets of the tests, of `.ci/run` and of `.ci/long`. Each number is
//! read where it is set, so that neither can change without the other.

use super::documents::read;

/// The number after a text. It fails if the text is not there or no number follows.
fn number_after(source: &str, text: &str) -> u64 {
    let (_, rest) = source.split_once(text).unwrap_or_else(|| panic!("there is no {text:?}"));
    let digits = rest.trim_start().chars().take_while(|c| c.is_ascii_digit() || *c == '_');
    let digits: String = digits.filter(char::is_ascii_digit).collect();
    digits.parse().unwrap_or_else(|e| panic!("{text:?}: {e}"))
}

/// The number that follows a text in the definition of a constant.
fn constant(source: &str, name: &str, field: &str) -> u64 {
    let definition = source.split_once(&format!("const {name}:")).map(|(_, rest)| rest);
    let definition = definition.and_then(|rest| rest.split_once(';')).map(|(definition, _)| definition);
    number_after(definition.unwrap_or_else(|| panic!("there is no constant {name}")), field)
}

/// How many a test does when a variable does not say otherwise: `"NAME"`, and in the same expression `unwrap_or(…)`.
fn default_of(source: &str, variable: &str) -> u64 {
    let read = format!("{variable}\")");
    let (_, rest) = source.split_once(&read).unwrap_or_else(|| panic!("{variable} is not read"));
    number_after(rest, ".unwrap_or(")
}

/// 1600 as 1,600.
fn grouped(n: u64) -> String {
    if n < 1_000 { n.to_string() } else { format!("{},{:03}", grouped(n / 1_000), n % 1_000) }
}

fn every(stride: u64) -> String {
    match stride {
        1 => "every write".to_owned(),
        4 => "every fourth write".to_owned(),
        6 => "every sixth write".to_owned(),
        n => format!("every {n}th write"),
    }
}

/// A row of the table: a text that only its first cell has, and what each of the other cells must contain.
struct Row {
    of: &'static str,
    cells: [Vec<String>; 3],
}

fn row(of: &'static str, test: impl Into<String>, gate: impl Into<String>, long: impl Into<String>) -> Row {
    Row { of, cells: [vec![test.into()], vec![gate.into()], vec![long.into()]] }
}

/// What the table of a page does not say.
fn problems(page: &str, rows: &[Row]) -> Vec<String> {
    let mut problems = Vec::new();
    for Row { of, cells } in rows {
        let found = page.lines().find(|line| {
            line.strip_prefix("| ")
                .and_then(|line| line.split(" | ").next())
                .is_some_and(|first| first.contains(of))
        });
        let Some(found) = found else {
            problems.push(format!("there is no row {of:?}"));
            continue;
        };
        let found: Vec<&str> = found.trim_matches(['|', ' ']).split(" | ").skip(1).collect();
        if found.len() != cells.len() {
            problems.push(format!("{of}: {} cells", found.len()));
            continue;
        }
        for (found, expected) in found.iter().zip(cells) {
            // As a whole number: `100` is not in `1,100` or `100,000`.
            let says = |text: &String| {
                found.match_indices(text.as_str()).any(|(at, _)| {
                    let is_more = |c: char| c.is_alphanumeric() || c == ',';
                    let after =
                        found[at + text.len()..].strip_prefix(',').unwrap_or(&found[at + text.len()..]);
                    !found[..at].ends_with(is_more) && !after.starts_with(char::is_alphanumeric)
                })
            };
            let missing = expected.iter().filter(|text| !says(text));
            problems.extend(missing.map(|text| format!("{of}: {found:?} does not say {text:?}")));
        }
    }
    problems
}

#[test]
fn wrong_budgets_are_noticed() {
    let page =
        "| what | test | gate | long |\n|---|---|---|---|\n| a `b`: c | 40 kills | 100 | `x`: 10,000 |\n";
    let wrong = |test: &str, gate: &str, long: &str| problems(page, &[row("`b`", test, gate, long)]);
    assert_eq!(wrong("40 kills", "100", "10,000"), Vec::<String>::new());
    assert_eq!(wrong("0 kills", "10", "000").len(), 3, "parts of numbers");
    assert_eq!(wrong("40 kills", "100", "10").len(), 1, "10,000 is not 10");
    assert_eq!(problems(page, &[row("d", "", "", "")]), ["there is no row \"d\""]);
    assert_eq!(default_of("v(\"A_B\").ok().unwrap_or(4_0)", "A_B"), 40);
    assert_eq!([grouped(40), grouped(1_600), grouped(10_000_000)], ["40", "1,600", "10,000,000"]);
}

fn simulation(gate: &str, long: &str) -> Row {
    let source = read("crates/controllers/tests/simulation/mod.rs");
    let share = constant(&source, "FUNCTIONS_SHARE", "=");
    let shares = |n: u64| (grouped(n), grouped(n / 2), grouped(n / share));
    let (all, packages, functions) = shares(constant(&source, "ENOUGH", "="));
    let test = format!("{all} schedules, {packages} of packages and {functions} of functions");
    let (all, packages, functions) = shares(number_after(gate, "TRANSOM_SIMULATION_SCHEDULES="));
    let long = grouped(number_after(long, "TRANSOM_SIMULATION_SCHEDULES="));
    row("/simulation`", test, format!("{all}, {packages} and {functions}"), long)
}

fn matrix() -> [Row; 2] {
    let source = read("crates/transom/tests/crash_matrix/main.rs");
    let cell = |extent: &str| {
        let (stride, kills) = (constant(&source, extent, "stride:"), constant(&source, extent, "kills:"));
        format!("{}, at least {} kills", every(stride), grouped(kills))
    };
    [
        row("/crash_matrix`", cell("QUICK"), cell("SAMPLE"), cell("FULL")),
        row("packages with dependencies", cell("PACKAGES_QUICK"), cell("PACKAGES_CI"), cell("FULL")),
    ]
}

/// Tests of Rust whose budget is a variable.
fn variables(gate: &str, long: &str) -> [Row; 4] {
    let crash = default_of(&read("crates/transom/tests/crash/main.rs"), "TRANSOM_CRASH_ROUNDS");
    let rollout =
        default_of(&read("crates/transom/tests/scenarios/rollout/changing.rs"), "TRANSOM_ROLLOUT_THINGS");
    let faults = default_of(&read("crates/provider/tests/it/faults.rs"), "TRANSOM_PROVIDER_SCHEDULES");
    let long_faults = number_after(long, "TRANSOM_PROVIDER_SCHEDULES=");
    let deleting = |schedules: u64| schedules.div_ceil(8);
    let fuzz = read("crates/transom/tests/fuzz/mod.rs");
    let seconds = (
        number_after(&fuzz, "number(\"TRANSOM_FUZZ_SECONDS\","),
        number_after(long, "TRANSOM_FUZZ_SECONDS="),
    );
    assert_eq!(seconds, (1, 3600), "the row says a second, and an hour");
    [
        row(
            "tests/crash`",
            format!("{crash} kills"),
            grouped(number_after(gate, "TRANSOM_CRASH_ROUNDS=")),
            grouped(number_after(long, "TRANSOM_CRASH_ROUNDS=")),
        ),
        row(
            "`TRANSOM_ROLLOUT_THINGS`",
            format!("{rollout} of them"),
            grouped(number_after(gate, "TRANSOM_ROLLOUT_THINGS=")),
            "–",
        ),
        row(
            "`TRANSOM_PROVIDER_SCHEDULES`",
            format!("{faults} schedules, and {} in which", deleting(faults)),
            "the same",
            format!("{}, and {}", grouped(long_faults), deleting(long_faults)),
        ),
        row("`TRANSOM_FUZZ_SECONDS`", "a second for each target", "the same", "an hour for each"),
    ]
}

/// Suites, which `.ci/run` runs with their defaults.
fn suites(long: &str) -> Vec<Row> {
    let in_long = |suite: &str, option: &str| {
        let (_, command) = long.split_once(&format!("conformance/run {suite} -- ")).expect("the suite");
        number_after(command.lines().next().unwrap_or_default(), &format!("--{option}"))
    };
    let by_default = |suite: &str, option: &str| {
        let source = read(&format!("conformance/{suite}/suite.py"));
        let (_, declared) = source.split_once(&format!("add_argument(\"--{option}\"")).expect("the option");
        number_after(declared, "default=")
    };
    let counted = |suite: &'static str, row_of: &'static str, option: &str| {
        let numbers = (grouped(by_default(suite, option)), grouped(in_long(suite, option)));
        row(row_of, "–", numbers.0, numbers.1)
    };
    let controller =
        ["seconds", "count"].map(|option| (by_default("controller", option), in_long("controller", option)));
    let [(seconds, long_seconds), (count, long_count)] = controller;
    assert_eq!(long_seconds, 600, "the row says ten minutes");
    vec![
        counted("differential", "conformance/run differential`", "operations"),
        counted("golang", "conformance/run golang`", "cases"),
        counted("rbac", "conformance/run rbac`", "questions"),
        counted("providers", "conformance/run providers", "kills"),
        row(
            "conformance/run controller`",
            "–",
            format!("{seconds} seconds; {count}"),
            format!("ten minutes; {long_count}"),
        ),
    ]
}

#[test]
fn the_table_of_budgets_has_those_of_the_tests() {
    let (gate, long) = (read(".ci/run"), read(".ci/long"));
    let mut rows = vec![simulation(&gate, &long)];
    rows.extend(matrix());
    rows.extend(variables(&gate, &long));
    rows.extend(suites(&long));
    let questions = read("crates/builtins/tests/generated/held.rs");
    assert!(
        questions.contains("Err(_) => 4,") && gate.contains("TRANSOM_QUESTIONS=all"),
        "the row says a fourth, and all"
    );
    rows.push(row("`TRANSOM_QUESTIONS`", "every fourth", "all", "–"));

    let page = read("CONTRIBUTING.md");
    let table =
        page.split_once("| what | `cargo test` | `.ci/run` | `.ci/long` |\n|---|").expect("the table").1;
    let table = table.split("\n\n").next().unwrap_or_default();
    let wrong = problems(table, &rows);
    assert!(wrong.is_empty(), "CONTRIBUTING.md: {wrong:#?}");
    assert_eq!(
        table.lines().filter(|line| line.starts_with("| ")).count(),
        rows.len(),
        "rows that nothing compares"
    );
}
