//! The files of a new project. Templates are in `templates`, those for all languages in `templates/common`: `@NAME@`, `@GROUP@`,
//! `@SDK@` and `@CAPABILITIES@` are replaced.

use crate::language::Language;

/// A file of a new project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Where it is in the project.
    pub path: String,
    /// What it holds.
    pub content: String,
}

/// Where a project in Rust takes the crate `transom-function` from, which no registry has. Without it, a project in Rust uses
/// the crate `function-sdk-rust`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sdk {
    /// The folder of the crate.
    Path(String),
    /// A Git repository with a copy of Transom.
    Git(String),
}

/// Why there is no project.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The name is not one for a Function.
    #[error(
        "{0:?} cannot be the name of a function: at most 63 lower-case letters, digits and hyphens, a letter first"
    )]
    Name(String),
}

type Template = (&'static str, &'static str);

macro_rules! templates {
    ($folder:literal: $($path:literal),* $(,)?) => {
        &[$(($path, include_str!(concat!("../templates/", $folder, "/", $path)))),*]
    };
}

const COMMON: &[Template] = templates!("common":
    "package/crossplane.yaml", "package/input/inputs.yaml",
    "example/xr.yaml", "example/definition.yaml", "example/composition.yaml", "example/functions.yaml",
    "cases/first-call.request.yaml", "cases/first-call.response.yaml",
    "cases/exists.request.yaml", "cases/exists.response.yaml",
);
const RUST: &[Template] = templates!("rust": "gitignore", "src/input.rs");
const RUST_CROSSPLANE: &[Template] =
    templates!("rust-crossplane": "Cargo.toml.in", "src/main.rs", "src/function.rs");
const RUST_TRANSOM: &[Template] =
    templates!("rust-transom": "Cargo.toml.in", "src/main.rs", "src/function.rs");
const GO: &[Template] =
    templates!("go": "go.mod.in", "gitignore", "main.go", "fn.go", "fn_test.go", "input/v1beta1/input.go");
const PYTHON: &[Template] = templates!("python":
    "pyproject.toml", "gitignore", "function/__init__.py", "function/__main__.py", "function/fn.py",
    "function/input.py", "tests/__init__.py", "tests/test_fn.py",
);
const TYPESCRIPT: &[Template] = templates!("typescript":
    "package.json", "tsconfig.json", "gitignore", "src/main.ts", "src/fn.ts", "src/input.ts", "src/fn.test.ts",
);

/// The files of a new project, by path.
pub fn project(language: Language, name: &str, sdk: Option<&Sdk>) -> Result<Vec<File>, Error> {
    if !is_name(name) {
        return Err(Error::Name(name.to_owned()));
    }
    let own = match (language, sdk) {
        (Language::Rust, None) => [RUST, RUST_CROSSPLANE],
        (Language::Rust, Some(_)) => [RUST, RUST_TRANSOM],
        (Language::Go, _) => [GO, &[]],
        (Language::Python, _) => [PYTHON, &[]],
        (Language::TypeScript, _) => [TYPESCRIPT, &[]],
    };
    let source = match sdk {
        Some(Sdk::Path(path)) => format!("path = {path:?}"),
        Some(Sdk::Git(url)) => format!("git = {url:?}"),
        None => String::new(),
    };
    let group = format!("{name}.fn.example.org");
    // Only the crate transom-function reads certificates again when they were replaced.
    let capabilities = match (language, sdk) {
        (Language::Rust, Some(_)) => "composition, certificate-reload",
        _ => "composition",
    };
    let file = |(path, content): &Template| File {
        path: path_in_project(path),
        content: content
            .replace("@NAME@", name)
            .replace("@GROUP@", &group)
            .replace("@SDK@", &source)
            .replace("@CAPABILITIES@", capabilities),
    };
    let mut files: Vec<File> = COMMON.iter().chain(own.concat().iter()).map(file).collect();
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

/// Templates have names that tools do not take for files of theirs.
fn path_in_project(path: &str) -> String {
    match path {
        "gitignore" => ".gitignore".to_owned(),
        path => path.strip_suffix(".in").unwrap_or(path).to_owned(),
    }
}

fn is_name(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    name.len() <= 63
        && name.bytes().all(is_allowed)
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && !name.ends_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use transom_object::yaml;

    /// A project in every language, and that in Rust with the other SDK.
    fn all() -> Vec<(Language, Option<Sdk>, Vec<File>)> {
        let sdk = Sdk::Path("/transom/crates/function".to_owned());
        let kinds =
            Language::ALL.map(|language| (language, None)).into_iter().chain([(Language::Rust, Some(sdk))]);
        let made = |(language, sdk): (Language, Option<Sdk>)| {
            let files = project(language, "function-hello", sdk.as_ref()).unwrap();
            (language, sdk, files)
        };
        kinds.map(made).collect()
    }

    #[test]
    fn every_template_is_part_of_a_project() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("templates");
        let mut folders = vec![root.clone()];
        let mut found = BTreeSet::new();
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap().flatten() {
                if entry.path().is_dir() {
                    folders.push(entry.path());
                } else {
                    found.insert(entry.path().strip_prefix(&root).unwrap().display().to_string());
                }
            }
        }
        let tables = [
            ("common", COMMON),
            ("rust", RUST),
            ("rust-crossplane", RUST_CROSSPLANE),
            ("rust-transom", RUST_TRANSOM),
            ("go", GO),
            ("python", PYTHON),
            ("typescript", TYPESCRIPT),
        ];
        let listed = tables
            .iter()
            .flat_map(|(folder, table)| table.iter().map(move |(path, _)| format!("{folder}/{path}")));
        assert_eq!(listed.collect::<BTreeSet<_>>(), found);
    }

    #[test]
    fn nothing_is_left_to_replace() {
        for (language, _, files) in all() {
            assert!(files.iter().any(|file| file.path == language.marker()), "{language:?}");
            for file in files {
                for left in ["@NAME@", "@GROUP@", "@SDK@", "@CAPABILITIES@"] {
                    assert!(!file.content.contains(left), "{}: {left}", file.path);
                }
            }
        }
    }

    #[test]
    fn manifests_are_yaml_and_agree_on_names() {
        for (_, sdk, files) in all() {
            agree(sdk.is_some(), &files);
        }
    }

    fn agree(reloads_certificates: bool, files: &[File]) {
        let value = |path: &str| {
            let file = files.iter().find(|file| file.path == path).expect(path);
            yaml::read(&file.content).unwrap_or_else(|e| panic!("{path}: {e:?}"))
        };
        for file in files.iter().filter(|file| file.path.ends_with(".yaml")) {
            value(&file.path);
        }
        let step = value("example/composition.yaml")["spec"]["pipeline"][0].clone();
        let package = value("package/crossplane.yaml");
        assert_eq!(step["functionRef"]["name"], package["metadata"]["name"]);
        let reloads = package["spec"]["capabilities"].to_string().contains("certificate-reload");
        assert_eq!(reloads, reloads_certificates, "what its SDK does");
        assert_eq!(step["functionRef"]["name"], value("example/functions.yaml")["metadata"]["name"]);
        let crd = value("package/input/inputs.yaml");
        let group = crd["spec"]["group"].as_str().unwrap();
        assert_eq!(crd["metadata"]["name"], format!("inputs.{group}"));
        assert_eq!(step["input"]["apiVersion"], format!("{group}/v1beta1"));
    }

    #[test]
    fn names_are_refused_that_no_function_can_have() {
        for name in ["", "Function", "1a", "a_b", "a-", "a/b", &"a".repeat(64)] {
            let refused = project(Language::Go, name, None);
            assert_eq!(refused, Err(Error::Name(name.to_owned())), "{name}");
        }
    }

    #[test]
    fn a_project_in_rust_has_one_of_two_sdks() {
        let git = Sdk::Git("https://example.org/transom".to_owned());
        let files = project(Language::Rust, "a", Some(&git)).unwrap();
        let manifest = files.iter().find(|file| file.path == "Cargo.toml").unwrap();
        assert!(manifest.content.contains(r#"transom-function = { git = "https://example.org/transom" }"#));
        let files = project(Language::Rust, "a", None).unwrap();
        let manifest = files.iter().find(|file| file.path == "Cargo.toml").unwrap();
        assert!(manifest.content.contains("function-sdk-rust = \"=0.4.0\""));
        assert!(!manifest.content.contains("transom"), "nothing but what registries have");
    }
}
