//! Files with requests and expected responses, and how two responses differ.

/// The end of the name of a file with a request, before its extension.
const REQUEST: &str = ".request";
/// The end of the name of a file with a response, before its extension.
const RESPONSE: &str = ".response";
const EXTENSIONS: [&str; 3] = [".yaml", ".yml", ".json"];
/// The most lines of texts that are compared line by line; longer ones are shown one after the other.
const COMPARED_LINES_MAX: usize = 2_000;
/// Lines that are equal, shown before and after those that differ.
const CONTEXT_LINES: usize = 3;

/// A request with its expected response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// Its name.
    pub name: String,
    /// The file with the request.
    pub request: String,
    /// The file with the expected response; if there is none, where it would be.
    pub response: String,
    /// Whether that file exists.
    pub is_expected: bool,
}

/// Files that are not pairs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PairError {
    /// Two files have requests of one name.
    #[error("{0} has two requests")]
    TwoRequests(String),
    /// A file has a response, and none its request.
    #[error("{0} belongs to no request")]
    NoRequest(String),
}

/// Pairs the files of a folder: `NAME.request.yaml` and `NAME.response.yaml`, also `.yml` and `.json`.
pub fn pair(files: &[String]) -> Result<Vec<Case>, PairError> {
    let named = |file: &'_ String, part: &str| {
        let stem = EXTENSIONS.iter().find_map(|extension| file.strip_suffix(extension))?;
        stem.strip_suffix(part).map(ToOwned::to_owned)
    };
    let mut cases: Vec<Case> = Vec::new();
    let mut sorted = files.to_vec();
    sorted.sort();
    for request in &sorted {
        let Some(name) = named(request, REQUEST) else { continue };
        if cases.iter().any(|case| case.name == name) {
            return Err(PairError::TwoRequests(name));
        }
        let response = sorted.iter().find(|file| named(file, RESPONSE).as_deref() == Some(&name));
        let is_expected = response.is_some();
        let response = response.cloned().unwrap_or_else(|| request.replacen(REQUEST, RESPONSE, 1));
        cases.push(Case { name, request: request.clone(), response, is_expected });
    }
    let has_request = |name: &String| cases.iter().any(|case| case.name == *name);
    let alone = sorted.iter().find(|file| named(file, RESPONSE).is_some_and(|name| !has_request(&name)));
    match alone {
        Some(response) => Err(PairError::NoRequest(response.clone())),
        None => Ok(cases),
    }
}

/// The lines in which two texts differ, with `-` before those of the first and `+` before those of the second; empty if they
/// are equal.
pub fn diff(expected: &str, actual: &str) -> String {
    if expected == actual {
        return String::new();
    }
    let (before, after): (Vec<&str>, Vec<&str>) = (expected.lines().collect(), actual.lines().collect());
    let lines = if before.len().max(after.len()) > COMPARED_LINES_MAX {
        let removed = before.iter().map(|line| (Some('-'), *line));
        removed.chain(after.iter().map(|line| (Some('+'), *line))).collect()
    } else {
        compared(&before, &after)
    };
    with_nearby_lines(&lines)
}

/// All lines in order, each with what happened to it.
fn compared<'t>(before: &[&'t str], after: &[&'t str]) -> Vec<(Option<char>, &'t str)> {
    // The length of the longest common subsequence of what follows each pair of lines.
    let width = after.len() + 1;
    let mut common = vec![0u32; (before.len() + 1) * width];
    for (i, old) in before.iter().enumerate().rev() {
        for (j, new) in after.iter().enumerate().rev() {
            common[i * width + j] = if old == new {
                common[(i + 1) * width + j + 1] + 1
            } else {
                common[(i + 1) * width + j].max(common[i * width + j + 1])
            };
        }
    }
    let (mut i, mut j, mut lines) = (0, 0, Vec::new());
    while i < before.len() || j < after.len() {
        let is_removal = j == after.len()
            || (i < before.len() && common[(i + 1) * width + j] >= common[i * width + j + 1]);
        if i < before.len() && j < after.len() && before[i] == after[j] {
            lines.push((None, before[i]));
            (i, j) = (i + 1, j + 1);
        } else if is_removal {
            lines.push((Some('-'), before[i]));
            i += 1;
        } else {
            lines.push((Some('+'), after[j]));
            j += 1;
        }
    }
    lines
}

fn with_nearby_lines(lines: &[(Option<char>, &str)]) -> String {
    let mut text = String::new();
    let mut is_skipping = false;
    for (at, (mark, line)) in lines.iter().enumerate() {
        let near = at.saturating_sub(CONTEXT_LINES)..(at + CONTEXT_LINES + 1).min(lines.len());
        if lines[near].iter().all(|(mark, _)| mark.is_none()) {
            is_skipping = true;
            continue;
        }
        if std::mem::take(&mut is_skipping) {
            text.push_str("  …\n");
        }
        text.push(mark.unwrap_or(' '));
        text.push(' ');
        text.push_str(line);
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair_of(files: &[&str]) -> Result<Vec<Case>, PairError> {
        pair(&files.iter().map(|file| (*file).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn requests_are_paired_with_responses() {
        let cases = pair_of(&["b.request.json", "a.response.yaml", "README.md", "a.request.yaml"]).unwrap();
        let shown = |case: &Case| format!("{} {} {}", case.name, case.response, case.is_expected);
        let shown: Vec<String> = cases.iter().map(shown).collect();
        assert_eq!(shown, ["a a.response.yaml true", "b b.response.json false"]);
        let error = |files: &[&str]| pair_of(files).unwrap_err().to_string();
        assert_eq!(error(&["a.response.yaml"]), "a.response.yaml belongs to no request");
        assert_eq!(error(&["a.request.yaml", "a.request.json"]), "a has two requests");
    }

    #[test]
    fn differences_are_shown_with_the_lines_around_them() {
        assert_eq!(diff("a\n", "a\n"), "");
        let before = "1\n2\n3\n4\n5\n6\n7\n8\n";
        assert_eq!(diff(before, &before.replace('6', "six")), "  …\n  3\n  4\n  5\n- 6\n+ six\n  7\n  8\n");
        assert_eq!(diff("a\nb\n", "b\nc\n"), "- a\n  b\n+ c\n");
        assert_eq!(diff("", "x\n"), "+ x\n");
        let long = "x\n".repeat(COMPARED_LINES_MAX + 1);
        assert!(diff(&long, "y\n").ends_with("+ y\n"));
    }
}
