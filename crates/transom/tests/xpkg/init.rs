//! New packages from templates, which are Git repositories on this disk.

use super::Folder;
use std::io::Write;
use std::process::{Command, Stdio};

/// A repository with a template on the branch `main`, and a tag.
fn template(folder: &Folder) -> String {
    folder.write("template/crossplane.yaml", "kind: Configuration\n");
    folder.write("template/NOTES.txt", "read this\n");
    folder.write("template/init.sh", "#!/bin/sh\necho \"$1\" > \"$2/named\"\n");
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=t", "-c", "user.email=t@example.org", "-C"]);
        let output = command.arg(folder.path("template")).args(arguments).output().expect("git runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    git(&["init", "--quiet", "--initial-branch", "main"]);
    git(&["add", "."]);
    git(&["update-index", "--chmod=+x", "init.sh"]);
    git(&["commit", "--quiet", "-m", "template"]);
    git(&["tag", "v1"]);
    format!("file://{}", folder.path("template").display())
}

/// What the command prints, given this answer.
fn answered(folder: &Folder, arguments: &[&str], answer: &str) -> String {
    let mut command = folder.command(&[&["xpkg", "init"], arguments].concat());
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the binary runs");
    child.stdin.take().expect("stdin").write_all(answer.as_bytes()).expect("an answer");
    let output = child.wait_with_output().expect("the binary ends");
    assert!(output.status.success());
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn a_template_becomes_a_package() {
    let folder = Folder::new();
    let template = template(&folder);
    let said = folder.ok(&["init", "mine", &template, "-d", "a", "-r"]);
    let directory = std::fs::canonicalize(folder.path("a")).unwrap().display().to_string();
    let expected = format!("Initialized package \"mine\" in directory {directory:?} from {template}/tree/");
    assert!(said.starts_with(&expected) && said.contains(" (main)\n\nread this"), "{said}");
    assert_eq!(folder.read("a/named"), b"mine\n");
    assert_eq!(folder.read("a/crossplane.yaml"), b"kind: Configuration\n");
    assert!(!folder.path("a/.git").exists(), "the history of the template is not kept");
    // A repository of the user stays; a tag can be asked for.
    std::fs::create_dir_all(folder.path("b/.git")).unwrap();
    let said = answered(&folder, &["mine", &template, "-d", "b", "-b", "v1"], "v\ny\n");
    assert!(said.contains("(v1)") && said.contains("echo \"$1\""), "{said}");
    assert!(said.contains("Do you want to run it? [y]es/[n]o/[v]iew: "), "{said}");
    assert!(folder.path("b/named").exists() && folder.path("b/.git").exists());
    let said = answered(&folder, &["mine", &template, "-d", "c"], "");
    assert!(said.contains("Found init.sh script!") && !folder.path("c/named").exists(), "{said}");
}

#[test]
fn what_cannot_be_begun_is_explained() {
    let folder = Folder::new();
    let template = template(&folder);
    folder.write("full/file", "x");
    let full = folder.error(&["init", "mine", &template, "-d", "full"], 1);
    assert!(full.contains("is not empty: file") && full.contains("-d"), "{full}");
    let none = folder.error(&["init", "mine", "file:///nowhere", "-d", "d"], 1);
    assert!(none.contains("cannot clone file:///nowhere") && none.contains("function-template-go"), "{none}");
    assert!(folder.path("d").read_dir().unwrap().next().is_none(), "nothing is left behind");
    let branch = folder.error(&["init", "mine", &template, "-d", "e", "-b", "v9"], 1);
    assert!(branch.contains("v9"), "{branch}");
    folder.error(&["init", "mine"], 80);
}
