//! Former and other names of commands: every path that a command of Crossplane's command line ever had leads to the
//! command here, with a notice on stderr, or to an error that says what there is instead.

use std::ffi::OsString;
use transom_console::Failure;

/// The replacement of a path.
enum Now {
    /// It is another name of this command in the original's command line of today.
    Same(&'static [&'static str]),
    /// It is a former name of this command.
    Renamed(&'static [&'static str]),
    /// There is no such command; do this instead.
    Absent(&'static str),
}

use Now::{Absent, Renamed, Same};

const NO_DOCKER_LOGIN: &str = "credentials are those of `docker login`, in ~/.docker/config.json or the folder that DOCKER_CONFIG names";
const NOT_YET: &str = "Transom does not have it; use Crossplane's own command line for it";
const NO_VALIDATE: &str = "`transom render --include-full-xr … | kubectl create --dry-run=server -f -` has a control plane check what is rendered; or use Crossplane's own command line";
const NO_PROJECTS: &str = "Transom has no projects; `transom xpkg build` makes a package of a folder";

/// Paths of the original's command line. The longest that fits counts.
const PATHS: &[(&[&str], Now)] = &[
    (&["composition", "render"], Same(&["render"])),
    (&["beta", "render"], Renamed(&["render"])),
    (&["alpha", "render"], Renamed(&["render"])),
    (&["alpha", "render", "xr"], Renamed(&["render"])),
    (&["alpha", "render", "op"], Absent(NOT_YET)),
    (&["operation", "render"], Absent(NOT_YET)),
    // Up to v1.13 packages had commands of their own, with the kind of the package as a command.
    (&["build"], Renamed(&["xpkg", "build"])),
    (&["build", "configuration"], Renamed(&["xpkg", "build"])),
    (&["build", "provider"], Renamed(&["xpkg", "build"])),
    (&["build", "function"], Renamed(&["xpkg", "build"])),
    (&["push"], Renamed(&["xpkg", "push"])),
    (&["push", "configuration"], Renamed(&["xpkg", "push"])),
    (&["push", "provider"], Renamed(&["xpkg", "push"])),
    (&["push", "function"], Renamed(&["xpkg", "push"])),
    // `transom install` alone installs the controllers on a cluster.
    (&["install", "configuration"], Renamed(&["xpkg", "install", "configuration"])),
    (&["install", "provider"], Renamed(&["xpkg", "install", "provider"])),
    (&["install", "function"], Renamed(&["xpkg", "install", "function"])),
    (&["update"], Renamed(&["xpkg", "update"])),
    (&["beta", "xpkg"], Renamed(&["xpkg"])),
    (&["alpha", "xpkg"], Renamed(&["xpkg"])),
    (&["xpkg", "login"], Absent(NO_DOCKER_LOGIN)),
    (&["xpkg", "logout"], Absent(NO_DOCKER_LOGIN)),
    (&["completions"], Renamed(&["completion"])),
    (&["core"], Absent("`transom controller` runs the controllers on a cluster; `transom up` needs none")),
    (&["rbac"], Absent("`transom controller --enable-rbac-manager` keeps the roles of definitions")),
    (&["resource"], Absent(NOT_YET)),
    (&["resource", "validate"], Absent(NO_VALIDATE)),
    (&["beta", "validate"], Absent(NO_VALIDATE)),
    (
        &["cluster"],
        Absent("there are no Pods; `kubectl get --raw /metrics` shows what the control plane does"),
    ),
    (&["composition"], Absent(NOT_YET)),
    (&["operation"], Absent(NOT_YET)),
    (&["xr"], Absent(NOT_YET)),
    (&["xrd"], Absent(NOT_YET)),
    (&["function", "generate"], Absent(NOT_YET)),
    (&["dependency"], Absent(NO_PROJECTS)),
    (&["project"], Absent(NO_PROJECTS)),
    (&["config"], Absent("Transom has no configuration file: everything is a flag")),
    (&["generate-docs"], Absent("see docs/, or `transom COMMAND --help`")),
    (&["beta"], Absent(NOT_YET)),
    (&["alpha"], Absent(NOT_YET)),
];

/// The command line with today's path, and the notice about a former one. Fails for a command that there is not.
pub(crate) fn translate(mut arguments: Vec<OsString>) -> Result<(Vec<OsString>, Option<String>), Failure> {
    let given = arguments.get(1..).unwrap_or_default();
    let fits = |path: &[&str]| given.len() >= path.len() && given.iter().zip(path).all(|(a, b)| a == b);
    let found = PATHS.iter().filter(|(path, _)| fits(path)).max_by_key(|(path, _)| path.len());
    let Some((path, now)) = found else { return Ok((arguments, None)) };
    let (target, is_former) = match now {
        Same(target) => (target, false),
        Renamed(target) => (target, true),
        Absent(remedy) => {
            // The whole path, as far as it can be one.
            let words = given.iter().take(path.len().max(2)).map(|word| word.to_string_lossy());
            let words: Vec<_> = words.take_while(|word| !word.starts_with('-')).collect();
            return Err(
                Failure::new(format!("there is no command `transom {}`", words.join(" "))).remedy(*remedy)
            );
        }
    };
    arguments.splice(1..=path.len(), target.iter().map(OsString::from));
    let notice = || format!("`transom {}` is now `transom {}`", path.join(" "), target.join(" "));
    Ok((arguments, is_former.then(notice)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translated(line: &str) -> String {
        let arguments = std::iter::once("transom").chain(line.split_whitespace()).map(OsString::from);
        match translate(arguments.collect()) {
            Ok((arguments, notice)) => {
                let words: Vec<_> = arguments[1..].iter().map(|word| word.to_string_lossy()).collect();
                format!(
                    "{}{}",
                    words.join(" "),
                    notice.map(|notice| format!(" ({notice})")).unwrap_or_default()
                )
            }
            Err(failure) => failure.to_string(),
        }
    }

    #[test]
    fn former_paths_lead_to_the_commands_of_today() {
        for (given, expected) in [
            ("render a b", "render a b"),
            ("composition render a b", "render a b"),
            ("beta render a", "render a (`transom beta render` is now `transom render`)"),
            ("alpha render xr a", "render a (`transom alpha render xr` is now `transom render`)"),
            ("build provider -f x", "xpkg build -f x (`transom build provider` is now `transom xpkg build`)"),
            ("build --name x", "xpkg build --name x (`transom build` is now `transom xpkg build`)"),
            (
                "push configuration a.b/c:v1",
                "xpkg push a.b/c:v1 (`transom push configuration` is now `transom xpkg push`)",
            ),
            (
                "install provider a.b/c:v1 x",
                "xpkg install provider a.b/c:v1 x (`transom install provider` is now `transom xpkg install provider`)",
            ),
            ("beta xpkg init a b", "xpkg init a b (`transom beta xpkg` is now `transom xpkg`)"),
            ("function list", "function list"),
            ("xpkg build", "xpkg build"),
            ("", ""),
        ] {
            assert_eq!(translated(given), expected, "{given}");
        }
    }

    #[test]
    fn commands_that_there_are_not_are_named_with_a_remedy() {
        for (given, path, remedy) in [
            ("beta trace x", "transom beta trace", "Crossplane's own"),
            ("resource validate a b", "transom resource validate", "kubectl create --dry-run=server"),
            ("beta validate a b", "transom beta validate", "kubectl create --dry-run=server"),
            ("resource trace a b", "transom resource trace", "Crossplane's own"),
            ("cluster top", "transom cluster top", "metrics"),
            ("alpha render op x", "transom alpha render op", "Crossplane's own"),
            ("xpkg login -u me", "transom xpkg login", "docker login"),
            ("beta --help", "`transom beta`", "Crossplane's own"),
            ("core start", "transom core start", "transom up"),
            ("function generate x", "transom function generate", "Crossplane's own"),
        ] {
            let error = translated(given);
            assert!(error.contains(path) && error.contains(remedy), "{given}: {error}");
        }
    }
}
