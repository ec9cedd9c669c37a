//! The pages of the documents, as a reader types them: their commands are run, and their manifests applied. The tests of a page are
//! here, or beside those of what it is about.

mod access;
mod functions;

use crate::xpkg::Folder;
use std::path::Path;
use std::process::{Command, Output};
use transom_testkit::process::binary;

/// What stands between two lines that begin with three backquotes.
pub(crate) struct Block {
    /// The heading above it.
    pub(crate) section: String,
    pub(crate) text: String,
}

impl Block {
    fn first_line(&self) -> &str {
        self.text.lines().next().unwrap_or_default()
    }
}

/// The blocks of a page in `docs`, in their order.
pub(crate) fn blocks(page: &str) -> Vec<Block> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(page);
    let text = std::fs::read_to_string(path).expect("the page");
    let (mut section, mut open, mut found) = (String::new(), None::<Block>, Vec::new());
    for line in text.lines() {
        match (&mut open, line.starts_with("```")) {
            (Some(_), true) => found.extend(open.take()),
            (Some(block), false) => block.text.push_str(&format!("{line}\n")),
            (None, true) => open = Some(Block { section: section.clone(), text: String::new() }),
            (None, false) if line.starts_with('#') => {
                section = line.trim_start_matches(['#', ' ']).to_owned();
            }
            (None, false) => {}
        }
    }
    found
}

/// The only block with this first line.
pub(crate) fn block(page: &str, first_line: &str) -> String {
    let mut found: Vec<Block> = blocks(page);
    found.retain(|block| block.first_line() == first_line);
    assert_eq!(found.len(), 1, "blocks of {page} that begin with {first_line:?}");
    found.remove(0).text
}

/// The lines of commands, without comments.
pub(crate) fn commands(text: &str) -> Vec<String> {
    let without_comment = |line: &str| line.split("  #").next().unwrap_or_default().trim_end().to_owned();
    text.lines().map(without_comment).filter(|line| !line.is_empty()).collect()
}

/// Fails unless every block of a page is one that tests run, or one that none runs, for a reason. Both are named by their first
/// lines.
pub(crate) fn assert_all_are_known(page: &str, run: &[&str], not_run: &[(&str, &str)]) {
    let mut known: Vec<&str> = run.iter().copied().chain(not_run.iter().map(|(line, _)| *line)).collect();
    let blocks = blocks(page);
    let mut found: Vec<&str> = blocks.iter().map(Block::first_line).collect();
    known.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, known, "the blocks of {page}, and those that its tests know");
    assert!(not_run.iter().all(|(_, why)| !why.is_empty()));
}

/// Runs commands as a shell does, in a folder below that of the test. `tools` has programs that are found first; `transom` is the
/// binary.
fn shell(folder: &Folder, below: &str, script: &str, kubeconfig: Option<&Path>) -> Output {
    let tools = folder.path("tools");
    std::fs::create_dir_all(&tools).expect("a folder");
    if !tools.join("transom").exists() {
        std::os::unix::fs::symlink(binary(), tools.join("transom")).expect("a link");
    }
    let mut command = Command::new("sh");
    for (name, value) in folder.command(&[]).get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.args(["-e", "-c", script]).current_dir(folder.path(below));
    command.env("PATH", format!("{}:/usr/bin:/bin", tools.display())).env("TOOLS", &tools);
    if let Some(kubeconfig) = kubeconfig {
        command.env("KUBECONFIG", kubeconfig);
    }
    command.output().expect("a shell runs")
}

/// What commands print that succeed.
fn printed(folder: &Folder, below: &str, script: &str, kubeconfig: Option<&Path>) -> String {
    let output = shell(folder, below, script, kubeconfig);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{script}\n{stderr}");
    String::from_utf8(output.stdout).expect("text")
}
