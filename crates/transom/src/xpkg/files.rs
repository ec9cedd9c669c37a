//! Which files of a folder belong to a package, and in which order.

use std::path::{Path, PathBuf};
use transom_console::Failure;

/// Folders below folders, at most.
const DEPTH_MAX: usize = 64;

/// The text of a file.
pub(super) struct FileText {
    pub(super) path: PathBuf,
    pub(super) bytes: Vec<u8>,
}

/// Which files of a folder count: YAML files that are not empty, in the order of their names, folder by folder.
pub(super) struct Selection<'a> {
    root: &'a Path,
    /// A folder that does not count, as an absolute path.
    except: Option<PathBuf>,
    ignore: &'a [String],
}

impl<'a> Selection<'a> {
    pub(super) fn new(root: &'a Path, except: Option<&Path>, ignore: &'a [String]) -> Result<Self, Failure> {
        if !root.is_dir() {
            return Err(Failure::new(format!("{} is not a folder", root.display()))
                .remedy("-f names the folder with crossplane.yaml"));
        }
        let except = except.and_then(|path| std::fs::canonicalize(path).ok());
        Ok(Self { root, except, ignore })
    }

    pub(super) fn files(&self) -> Result<Vec<PathBuf>, Failure> {
        let mut found = Vec::new();
        self.walk(self.root, 0, &mut found)?;
        Ok(found)
    }

    fn walk(&self, folder: &Path, depth: usize, found: &mut Vec<PathBuf>) -> Result<(), Failure> {
        let cannot = |e: std::io::Error| Failure::new(format!("cannot read {}: {e}", folder.display()));
        if depth > DEPTH_MAX {
            return Err(Failure::new(format!("{}: more than {DEPTH_MAX} folders deep", folder.display())));
        }
        let items = std::fs::read_dir(folder).map_err(cannot)?;
        let mut items = items.collect::<Result<Vec<_>, _>>().map_err(cannot)?;
        items.sort_by_key(std::fs::DirEntry::file_name);
        for item in items {
            let path = item.path();
            if self.is_ignored(&path) {
                continue;
            }
            // Links to folders are not followed, links to files are.
            if item.file_type().map_err(cannot)?.is_dir() {
                if !self.is_excepted(&path) {
                    self.walk(&path, depth + 1, found)?;
                }
            } else if is_yaml(&path) && std::fs::metadata(&path).is_ok_and(|m| m.is_file() && m.len() > 0) {
                found.push(path);
            }
        }
        Ok(())
    }

    fn is_excepted(&self, folder: &Path) -> bool {
        let Some(except) = &self.except else { return false };
        std::fs::canonicalize(folder).is_ok_and(|folder| folder == *except)
    }

    fn is_ignored(&self, path: &Path) -> bool {
        let relative = path.strip_prefix(self.root).unwrap_or(path).to_string_lossy();
        let normal = |pattern: &'a String| pattern.trim_start_matches("./").trim_end_matches('/');
        self.ignore.iter().any(|pattern| glob(normal(pattern).as_bytes(), relative.as_bytes()))
    }
}

fn is_yaml(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml")
}

/// The `*.xpkg` files directly in a folder, in the order of their names.
pub(super) fn packages_in(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let cannot = |e: std::io::Error| Failure::new(format!("cannot read {}: {e}", folder.display()));
    let mut found = Vec::new();
    for item in std::fs::read_dir(folder).map_err(cannot)? {
        let path = item.map_err(cannot)?.path();
        if path.extension().is_some_and(|extension| extension == "xpkg") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

pub(super) fn read(paths: &[PathBuf]) -> Result<Vec<FileText>, Failure> {
    let read = |path: &PathBuf| match std::fs::read(path) {
        Ok(bytes) => Ok(FileText { path: path.clone(), bytes }),
        Err(e) => Err(Failure::new(format!("cannot read {}: {e}", path.display()))),
    };
    paths.iter().map(read).collect()
}

/// The patterns of Go's `filepath.Match`: `*` and `?` stand for characters other than a slash.
fn glob(pattern: &[u8], text: &[u8]) -> bool {
    match (pattern.split_first(), text.split_first()) {
        (None, None) => true,
        (Some((b'*', rest)), _) => {
            let end = text.iter().position(|b| *b == b'/').unwrap_or(text.len());
            (0..=end).any(|at| glob(rest, &text[at..]))
        }
        (Some((b'?', rest)), Some((found, text))) => *found != b'/' && glob(rest, text),
        (Some((b'[', rest)), Some((found, text))) => {
            class(rest, *found).is_some_and(|(matches, rest)| matches && glob(rest, text))
        }
        (Some((b'\\', rest)), Some((found, text))) => {
            rest.split_first().is_some_and(|(wanted, rest)| wanted == found && glob(rest, text))
        }
        (Some((wanted, rest)), Some((found, text))) => wanted == found && glob(rest, text),
        _ => false,
    }
}

/// Whether a byte is in a class such as `a-z]`, and what follows the class.
fn class(pattern: &[u8], byte: u8) -> Option<(bool, &[u8])> {
    let end = pattern.iter().skip(1).position(|b| *b == b']')? + 1;
    let (members, rest) = (&pattern[..end], &pattern[end + 1..]);
    let (negated, members) = match members.strip_prefix(b"^") {
        Some(members) => (true, members),
        None => (false, members),
    };
    let mut inside = false;
    let mut at = 0;
    while at < members.len() {
        if members.get(at + 1) == Some(&b'-') && at + 2 < members.len() {
            inside |= (members[at]..=members[at + 2]).contains(&byte);
            at += 3;
        } else {
            inside |= members[at] == byte;
            at += 1;
        }
    }
    Some((inside != negated && byte != b'/', rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_those_of_go() {
        for (pattern, text, matches) in [
            ("a.yaml", "a.yaml", true),
            ("*.yaml", "a.yaml", true),
            ("*.yaml", "b/a.yaml", false),
            ("*/a.yaml", "b/a.yaml", true),
            ("?.yaml", "ab.yaml", false),
            ("[a-c]x", "bx", true),
            ("[^a-c]x", "bx", false),
            ("[^a-c]x", "dx", true),
            ("[a", "a", false),
            (r"\*", "*", true),
            (r"\*", "a", false),
            ("", "a", false),
        ] {
            assert_eq!(glob(pattern.as_bytes(), text.as_bytes()), matches, "{pattern} {text}");
        }
    }

    #[test]
    fn files_are_found_in_order_and_left_out_on_demand() {
        let dir = tempfile::tempdir().unwrap();
        for name in
            ["b.yaml", "a/z.yml", "a.yaml", "a/notes.txt", "examples/e.yaml", "ci/c.yaml", "empty.yaml"]
        {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, if name == "empty.yaml" { "" } else { "a: b" }).unwrap();
        }
        let found = |ignore: &[&str]| {
            let ignore: Vec<String> = ignore.iter().map(ToString::to_string).collect();
            let examples = dir.path().join("examples");
            let selection = Selection::new(dir.path(), Some(&examples), &ignore).unwrap();
            let files = selection.files().unwrap();
            let name = |path: &PathBuf| path.strip_prefix(dir.path()).unwrap().display().to_string();
            files.iter().map(name).collect::<Vec<_>>()
        };
        assert_eq!(found(&[]), ["a/z.yml", "a.yaml", "b.yaml", "ci/c.yaml"]);
        assert_eq!(found(&["ci/", "a.yaml"]), ["a/z.yml", "b.yaml"]);
        assert_eq!(found(&["*.yaml"]), ["a/z.yml", "ci/c.yaml"]);
    }
}
