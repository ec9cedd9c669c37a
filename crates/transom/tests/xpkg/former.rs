//! Commands by the names that they had in Crossplane's command line.

use super::{Folder, META};

fn run(folder: &Folder, arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = folder.command(arguments).output().expect("the binary runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn former_names_work_with_a_notice() {
    let folder = Folder::new();
    folder.write("p/crossplane.yaml", META);
    let now = run(&folder, &["xpkg", "build", "-f", "p", "-o", "now.xpkg"]);
    assert_eq!(now.0, Some(0), "{}", now.2);
    assert!(!now.2.contains("notice"), "{}", now.2);
    for former in [&["build"][..], &["build", "configuration"], &["beta", "xpkg", "build"]] {
        let (code, stdout, stderr) = run(&folder, &[former, &["-f", "p", "-o", "then.xpkg"]].concat());
        assert_eq!((code, stdout.as_str()), (Some(0), "then.xpkg\n"), "{stderr}");
        let notice = format!("notice: `transom {}` is now `transom xpkg", former.join(" "));
        assert!(stderr.starts_with(&notice) || former[0] == "beta", "{stderr}");
        assert_eq!(folder.read("then.xpkg"), folder.read("now.xpkg"));
    }
    // The flag of that time names the file after the package.
    let (_, named, _) = run(&folder, &["build", "configuration", "-f", "p", "--name", "mine"]);
    assert!(named.starts_with("p/mine-") && named.ends_with(".xpkg\n"), "{named}");
}

#[test]
fn commands_that_there_are_not_fail_as_wrong_command_lines_do() {
    let folder = Folder::new();
    for (arguments, remedy) in [
        (&["beta", "trace", "x"][..], "Crossplane's own command line"),
        (&["resource", "validate", "a", "b"], "Crossplane's own command line"),
        (&["xpkg", "login"], "docker login"),
        (&["project", "build"], "xpkg build"),
        (&["nothing"], "--help"),
    ] {
        let (code, stdout, stderr) = run(&folder, arguments);
        assert_eq!((code, stdout.as_str()), (Some(80), ""), "{arguments:?}: {stderr}");
        assert!(stderr.starts_with("error: ") && stderr.contains(remedy), "{stderr}");
    }
}
