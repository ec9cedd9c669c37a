//! Where packages that run on this machine print to: a file for each revision.

use std::path::{Path, PathBuf};

/// What has printed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Printed {
    /// A function.
    Function,
    /// A provider.
    Provider,
}

impl Printed {
    /// The folder of all logs, in that of containers.
    pub fn folder(self, dir: &Path) -> PathBuf {
        dir.join(match self {
            Self::Function => "logs",
            Self::Provider => "provider-logs",
        })
    }

    /// The folder of the logs of one Function or Provider.
    pub fn folder_of(self, dir: &Path, name: &str) -> PathBuf {
        self.folder(dir).join(plain(name))
    }

    /// The log of a revision.
    pub fn log(self, dir: &Path, name: &str, revision: &str) -> PathBuf {
        self.folder_of(dir, name).join(format!("{}.log", plain(revision)))
    }
}

/// A name as that of a file: names in files need not be those of objects in a plane.
fn plain(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    let plain: String = name.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
    if plain.starts_with('.') || plain.is_empty() { format!("_{plain}") } else { plain }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_below_the_folder_whatever_names_are() {
        for (of, name, revision, path) in [
            (Printed::Function, "function-x", "function-x-abc", "d/logs/function-x/function-x-abc.log"),
            (Printed::Function, "function-x", "", "d/logs/function-x/_.log"),
            (Printed::Function, "../up", "a/b", "d/logs/_.._up/a_b.log"),
            (Printed::Provider, "provider-x", "p-abc", "d/provider-logs/provider-x/p-abc.log"),
        ] {
            assert_eq!(of.log(Path::new("d"), name, revision), Path::new(path), "{name}");
        }
    }
}
