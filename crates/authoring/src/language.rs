//! The languages: how a project in one is recognised, built and served. The commands are run in the project's folder.

/// A language that there is a template for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// With the crate `function-sdk-rust` or `transom-function`.
    Rust,
    /// With the module `github.com/crossplane/function-sdk-go`.
    Go,
    /// With the package `crossplane-function-sdk-python`.
    Python,
    /// With the package `@crossplane-org/function-sdk-typescript`.
    TypeScript,
}

impl Language {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Rust, Self::Go, Self::Python, Self::TypeScript];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::Go => "go",
            Self::Python => "python",
            Self::TypeScript => "typescript",
        }
    }

    /// The file that a project in this language has.
    pub fn marker(self) -> &'static str {
        match self {
            Self::Rust => "Cargo.toml",
            Self::Go => "go.mod",
            Self::Python => "pyproject.toml",
            Self::TypeScript => "package.json",
        }
    }

    /// The language of a project, by the files that it has.
    pub fn of_project(has_file: impl Fn(&str) -> bool) -> Option<Self> {
        Self::ALL.into_iter().find(|language| has_file(language.marker()))
    }

    /// Commands that make a new project ready, for people to run.
    pub fn first_steps(self) -> &'static [&'static str] {
        match self {
            Self::Rust => &["cargo test"],
            Self::Go => &["go mod tidy", "go test ./..."],
            Self::Python => {
                &["python3 -m venv .venv", ".venv/bin/pip install -e .", ".venv/bin/python -m unittest"]
            }
            Self::TypeScript => &["npm install", "npm test"],
        }
    }

    /// The command that builds a project, if it has to be built.
    pub fn build_command(self) -> Option<Vec<String>> {
        let words: &[&str] = match self {
            Self::Rust => &["cargo", "build", "--quiet"],
            Self::Go => &["go", "build", "-o", "function", "."],
            Self::Python => return None,
            Self::TypeScript => &["npm", "run", "build", "--silent"],
        };
        Some(owned(words))
    }

    /// The command that serves a built project in plain text at an address.
    pub fn serve_command(self, address: &str, has_file: impl Fn(&str) -> bool) -> Vec<String> {
        let python = if has_file(VENV_PYTHON) { VENV_PYTHON } else { "python3" };
        let program: &[&str] = match self {
            // Replaces itself by the program.
            Self::Rust => &["cargo", "run", "--quiet", "--"],
            Self::Go => &["./function"],
            Self::Python => &[python, "-m", "function"],
            Self::TypeScript => &["node", "dist/main.js"],
        };
        let mut command = owned(program);
        command.extend(owned(&["--insecure", "--address", address]));
        command
    }
}

const VENV_PYTHON: &str = ".venv/bin/python";

/// Folders whose files are made from others, or are not the author's: a change in them does not change the project.
pub const UNWATCHED: [&str; 9] = [
    "target",
    "node_modules",
    "dist",
    "bundle",
    "build",
    "__pycache__",
    "function.egg-info",
    "cases",
    "example",
];

/// Whether a change of a file or folder of this name is a change of the project.
pub fn is_watched(name: &str) -> bool {
    !name.starts_with('.') && !UNWATCHED.contains(&name) && !name.ends_with(".xpkg")
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_is_recognised_by_its_files() {
        for language in Language::ALL {
            assert_eq!(Language::of_project(|file| file == language.marker()), Some(language));
        }
        assert_eq!(Language::of_project(|_| false), None);
    }

    #[test]
    fn python_of_the_virtual_environment_is_preferred() {
        let command = |has| Language::Python.serve_command("127.0.0.1:1", |_| has);
        assert_eq!(command(true)[0], ".venv/bin/python");
        assert_eq!(command(false), ["python3", "-m", "function", "--insecure", "--address", "127.0.0.1:1"]);
    }

    #[test]
    fn what_building_writes_is_not_a_change() {
        for name in ["target", ".venv", ".git", "node_modules", "__pycache__", "a.xpkg"] {
            assert!(!is_watched(name), "{name}");
        }
        for name in ["src", "fn.go", "package", "Cargo.toml"] {
            assert!(is_watched(name), "{name}");
        }
    }
}
