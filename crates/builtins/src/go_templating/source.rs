//! Where the text of a template comes from: the input itself, a folder, or the environment.
//!
//! Several templates are joined into one text, as documents of a stream; what each defines, all can use. The source
//! remembers where each began, so that an error can be traced to it.

use std::io;
use std::path::{Component, Path, PathBuf};

use transom_function::{ENVIRONMENT, RunFunctionRequest};

use super::input::{Environment, FileSystem, Input};

/// What is put between templates.
const SEPARATOR: &str = "\n---\n";

/// The most a folder of templates may hold.
const MAX_FOLDER_BYTES: usize = 8 << 20;
const MAX_FOLDER_FILES: usize = 4096;

/// The text of a template, and the parts it was joined from.
#[derive(Debug)]
pub(super) struct Source {
    pub text: String,
    parts: Vec<Part>,
}

#[derive(Debug)]
struct Part {
    name: String,
    /// The line of the text on which the part begins, counted from one.
    first_line: usize,
}

impl Source {
    pub(super) fn find(
        input: &Input,
        request: &RunFunctionRequest,
        files: &Files,
        default_folder: Option<&str>,
    ) -> Result<Self, String> {
        match (&*input.source, default_folder) {
            ("", Some(folder)) => files.read(folder),
            ("", None) => Err("source is required".to_owned()),
            ("Inline", _) => Self::inline(input),
            ("FileSystem", _) => match &input.file_system {
                Some(FileSystem { dir_path }) if !dir_path.is_empty() => files.read(dir_path),
                _ => Err("fileSystem.dirPath should be provided".to_owned()),
            },
            ("Environment", _) => Self::environment(input, request),
            (other, _) => Err(format!("invalid source: {other}")),
        }
    }

    fn whole(text: impl Into<String>) -> Self {
        Self { text: text.into(), parts: Vec::new() }
    }

    /// A single template takes precedence over a list of them.
    fn inline(input: &Input) -> Result<Self, String> {
        let (template, templates) = match &input.inline {
            Some(inline) => (inline.template.as_str(), inline.templates.as_slice()),
            None => ("", &[][..]),
        };
        if !template.is_empty() {
            return Ok(Self::whole(template));
        }
        if templates.is_empty() {
            return Err("inline.template or inline.templates should be provided".to_owned());
        }
        let mut joined = Joined::default();
        for (index, template) in templates.iter().enumerate() {
            if index > 0 {
                joined.push(SEPARATOR);
            }
            joined.begin(format!("inline.templates[{index}]"));
            joined.push(template);
        }
        Ok(joined.source)
    }

    fn environment(input: &Input, request: &RunFunctionRequest) -> Result<Self, String> {
        let Some(Environment { key }) = input.environment.as_ref().filter(|found| !found.key.is_empty())
        else {
            return Err("environment.key should be provided".to_owned());
        };
        let cannot = |why: &str| format!("cannot read tmpl from the environment: {why}");
        let environment = request.context_value(ENVIRONMENT).and_then(|environment| environment.as_object());
        let Some(environment) = environment else {
            return Err(cannot(&format!("{ENVIRONMENT} key does not exist in context")));
        };
        let Some(template) = environment.get(key) else {
            return Err(cannot(&format!("key: {key} does not exist")));
        };
        let Some(template) = template.as_str() else {
            return Err(cannot(&format!("key: {key} value is not a string")));
        };
        Ok(Self::whole(template))
    }

    /// The part a line belongs to, and which line of that part it is.
    pub(super) fn part(&self, line: usize) -> Option<(&str, usize)> {
        let part = self.parts.iter().rev().find(|part| part.first_line <= line)?;
        Some((&part.name, line - part.first_line + 1))
    }
}

/// A text being joined from parts.
#[derive(Debug)]
struct Joined {
    source: Source,
    line: usize,
}

impl Default for Joined {
    fn default() -> Self {
        Self { source: Source::whole(""), line: 1 }
    }
}

impl Joined {
    fn begin(&mut self, name: String) {
        self.source.parts.push(Part { name, first_line: self.line });
    }

    fn push(&mut self, text: &str) {
        self.line += text.bytes().filter(|byte| *byte == b'\n').count();
        self.source.text.push_str(text);
    }
}

/// The files templates may be read from: those of the process, or only those below a folder.
#[derive(Debug, Default)]
pub(super) struct Files {
    root: Option<PathBuf>,
}

impl Files {
    pub(super) fn below(root: PathBuf) -> Self {
        Self { root: Some(root) }
    }

    /// Every file in a folder and the folders in it, in the order of their names, but for hidden ones.
    fn read(&self, folder: &str) -> Result<Source, String> {
        let shown = clean(folder);
        let mut walk = Walk { joined: Joined::default(), files: 0, root: None };
        self.walk(&shown, &mut walk)
            .map_err(|problem| format!("cannot read tmpl from the folder {{{folder}}}: {problem}"))?;
        Ok(walk.joined.source)
    }

    fn walk(&self, shown: &Path, walk: &mut Walk) -> Result<(), String> {
        let path = match &self.root {
            None => shown.to_owned(),
            Some(root) => {
                walk.root = Some(root.canonicalize().map_err(|error| open(shown, &error))?);
                root.join(shown.strip_prefix("/").unwrap_or(shown))
            }
        };
        // The folder itself may be a link; what is in it is taken as it is.
        let metadata = path.metadata().map_err(|error| open(shown, &error))?;
        walk.entry(&path, shown, metadata.is_dir())
    }
}

/// Reading a folder.
struct Walk {
    joined: Joined,
    files: usize,
    root: Option<PathBuf>,
}

impl Walk {
    fn entry(&mut self, path: &Path, shown: &Path, folder: bool) -> Result<(), String> {
        let hidden = shown.file_name().is_none_or(|name| name.as_encoded_bytes().starts_with(b"."));
        match (folder, hidden && shown != Path::new("/")) {
            (_, true) => Ok(()),
            (true, _) => self.folder(path, shown),
            (false, _) => self.file(path, shown),
        }
    }

    fn folder(&mut self, path: &Path, shown: &Path) -> Result<(), String> {
        self.confine(path, shown)?;
        let mut entries = path
            .read_dir()
            .and_then(|entries| entries.collect::<io::Result<Vec<_>>>())
            .map_err(|error| open(shown, &error))?;
        entries.sort_by_key(std::fs::DirEntry::file_name);
        for entry in entries {
            let kind = entry.file_type().map_err(|error| open(shown, &error))?;
            self.entry(&entry.path(), &shown.join(entry.file_name()), kind.is_dir())?;
        }
        Ok(())
    }

    fn file(&mut self, path: &Path, shown: &Path) -> Result<(), String> {
        self.confine(path, shown)?;
        let metadata = path.metadata().map_err(|error| open(shown, &error))?;
        if metadata.is_dir() {
            return Err(format!("read {}: is a directory", shown.display()));
        }
        if !metadata.is_file() {
            return Err(format!("read {}: not a regular file", shown.display()));
        }
        self.files += 1;
        let size = usize::try_from(metadata.len()).unwrap_or(usize::MAX);
        if self.files > MAX_FOLDER_FILES
            || self.joined.source.text.len().saturating_add(size) > MAX_FOLDER_BYTES
        {
            return Err(format!("it has more than {MAX_FOLDER_FILES} files or {MAX_FOLDER_BYTES} bytes"));
        }
        let bytes = std::fs::read(path).map_err(|error| open(shown, &error))?;
        self.joined.begin(shown.display().to_string());
        self.joined.push(&String::from_utf8_lossy(&bytes));
        self.joined.push(SEPARATOR);
        Ok(())
    }

    /// Refuses what lies outside of the root when all links are followed.
    fn confine(&self, path: &Path, shown: &Path) -> Result<(), String> {
        let Some(root) = &self.root else { return Ok(()) };
        let real = path.canonicalize().map_err(|error| open(shown, &error))?;
        if real.starts_with(root) {
            return Ok(());
        }
        Err(format!("open {}: permission denied: outside of the folder for templates", shown.display()))
    }
}

/// The shortest path of the same meaning, as `filepath.Clean` finds it.
fn clean(path: &str) -> PathBuf {
    let mut cleaned = PathBuf::new();
    for component in Path::new(path).components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => match cleaned.components().next_back() {
                Some(Component::Normal(_)) => {
                    cleaned.pop();
                }
                Some(Component::RootDir) => {}
                _ => cleaned.push(component),
            },
            _ => cleaned.push(component),
        }
    }
    if cleaned.as_os_str().is_empty() { PathBuf::from(".") } else { cleaned }
}

fn open(path: &Path, error: &io::Error) -> String {
    let words = error.to_string();
    let words = words.split(" (os error").next().unwrap_or_default();
    let mut letters = words.chars();
    let lower: String = letters.next().into_iter().flat_map(char::to_lowercase).chain(letters).collect();
    format!("open {}: {lower}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_cleaned() {
        for (path, cleaned) in [
            ("a", "a"),
            ("a/./b//c/", "a/b/c"),
            ("a/../b", "b"),
            ("../a", "../a"),
            ("/../a", "/a"),
            ("a/..", "."),
            ("/", "/"),
        ] {
            assert_eq!(clean(path), Path::new(cleaned), "{path}");
        }
    }

    #[test]
    fn lines_are_traced_to_their_part() {
        let mut joined = Joined::default();
        for (name, text) in [("a", "1\n2"), ("b", "3\n")] {
            joined.begin(name.to_owned());
            joined.push(text);
            joined.push(SEPARATOR);
        }
        let source = joined.source;
        assert_eq!(source.text.lines().nth(3), Some("3"));
        assert_eq!(source.part(2), Some(("a", 2)));
        assert_eq!(source.part(4), Some(("b", 1)));
        assert_eq!(Source::whole("x").part(1), None);
    }
}
