//! Which versions a constraint allows, and what is said of texts that are none.

use super::Case;
use serde_json::json;
use transom_go::semver::Version;
use transom_packages::constraint::VersionConstraint;
use transom_testkit::rng::Rng;

const OPERATORS: [&str; 18] =
    ["", "", "", "=", "!=", ">", "<", ">=", "=>", "<=", "=<", "~", "~>", "^", "^", "==", ">>", "<>"];
const NUMBERS: [&str; 16] =
    ["0", "0", "1", "1", "1", "2", "2", "3", "10", "99", "01", "x", "X", "*", "11", "1|x"];
const PRERELEASES: [&str; 14] =
    ["", "", "", "", "-0", "-alpha", "-alpha.1", "-rc.1", "-rc.01", "-1", "-alpha.beta", "-x", "-", "-a..b"];
const METADATA: [&str; 6] = ["", "", "", "+build", "+1.2-x", "+"];
const SPACES: [&str; 7] = ["", "", " ", " ", "  ", "\t", "\u{a0}"];
const ANDS: [&str; 7] = [", ", ",", " ", "  ", ", ,", " , ", ",\n"];
const ORS: [&str; 6] = [" || ", "||", " ||", "|| ", " | ", " || || "];
const LARGE: &str = "18446744073709551616";

pub(crate) fn case(rng: &mut Rng) -> Case {
    let mut constraint = if rng.permille(30) { digest(rng) } else { alternatives(rng) };
    if rng.permille(60) {
        mutate(rng, &mut constraint);
    }
    let mut version = if rng.permille(20) { digest(rng) } else { complete(rng) };
    if rng.permille(40) {
        mutate(rng, &mut version);
    }
    let answer = answer(&constraint, &version);
    (json!({"constraint": constraint, "version": version}), vec![answer])
}

fn answer(constraint: &str, version: &str) -> String {
    let constraint = match VersionConstraint::parse(constraint) {
        Ok(constraint) => constraint,
        Err(error) => return format!("constraint: {}", error.problem),
    };
    if constraint.digest().is_none()
        && let Err(problem) = Version::parse(version)
    {
        return format!("version: {problem}");
    }
    constraint.allows(version).to_string()
}

/// Few digests, so that some are equal.
pub(crate) fn digest(rng: &mut Rng) -> String {
    let digit = *rng.pick(&["1", "2", "e", "F"]);
    let length = if rng.permille(100) { 63 } else { 64 };
    format!("sha256:{}", digit.repeat(length))
}

fn alternatives(rng: &mut Rng) -> String {
    let mut text = conjunction(rng);
    while rng.permille(250) {
        text.push_str(ORS[rng.index(ORS.len())]);
        text.push_str(&conjunction(rng));
    }
    text
}

fn conjunction(rng: &mut Rng) -> String {
    let mut text = clause(rng);
    while rng.permille(350) {
        text.push_str(ANDS[rng.index(ANDS.len())]);
        text.push_str(&clause(rng));
    }
    text
}

fn clause(rng: &mut Rng) -> String {
    if rng.permille(100) {
        let dash = *rng.pick(&[" - ", " - ", "  -  ", "-", " -", "\t-\n"]);
        return format!("{}{dash}{}", partial(rng), partial(rng));
    }
    // Operators that are none are rare: they end the comparison.
    let valid = if rng.permille(40) { OPERATORS.len() } else { OPERATORS.len() - 3 };
    let operator = OPERATORS[rng.index(valid)];
    format!("{}{operator}{}{}{}", space(rng), space(rng), partial(rng), space(rng))
}

fn space(rng: &mut Rng) -> &'static str {
    // The last one is not a space to Go's expressions.
    let known = if rng.permille(10) { SPACES.len() } else { SPACES.len() - 1 };
    SPACES[rng.index(known)]
}

/// A version of one to three parts, with wildcards.
fn partial(rng: &mut Rng) -> String {
    let prefix = if rng.permille(10) { "V" } else { *rng.pick(&["", "", "v", "v", "v"]) };
    let parts = 1 + rng.index(3);
    let numbers: Vec<&str> = (0..parts).map(|_| number(rng)).collect();
    format!("{prefix}{}{}{}", numbers.join("."), prerelease(rng), metadata(rng))
}

fn number(rng: &mut Rng) -> &'static str {
    if rng.permille(3) {
        return LARGE;
    }
    let odd = if rng.permille(50) { NUMBERS.len() } else { NUMBERS.len() - 2 };
    NUMBERS[rng.index(odd)]
}

fn prerelease(rng: &mut Rng) -> &'static str {
    let valid = if rng.permille(50) { PRERELEASES.len() } else { PRERELEASES.len() - 2 };
    PRERELEASES[rng.index(valid)]
}

fn metadata(rng: &mut Rng) -> &'static str {
    let valid = if rng.permille(50) { METADATA.len() } else { METADATA.len() - 1 };
    METADATA[rng.index(valid)]
}

/// Mostly a complete version, as tags are.
fn complete(rng: &mut Rng) -> String {
    if rng.permille(50) {
        return partial(rng);
    }
    let prefix = *rng.pick(&["", "v", "v"]);
    let numbers: Vec<String> = (0..3).map(|_| rng.below(4).to_string()).collect();
    let prerelease = if rng.permille(300) { prerelease(rng) } else { "" };
    format!("{prefix}{}{prerelease}", numbers.join("."))
}

/// Puts a character where none belongs, or takes one away.
pub(crate) fn mutate(rng: &mut Rng, text: &mut String) {
    let places: Vec<usize> = text.char_indices().map(|(place, _)| place).collect();
    let Some(&place) = places.get(rng.index(places.len())) else { return };
    if rng.permille(400) {
        text.remove(place);
    } else {
        text.insert(
            place,
            *rng.pick(&['.', '-', 'v', ' ', '|', ',', '=', '>', '~', '*', '+', '1', 'é', '@', '/']),
        );
    }
}
