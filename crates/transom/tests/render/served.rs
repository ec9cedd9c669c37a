//! Built-in functions served over gRPC answer as they do in process.

use super::fixtures::Files;
use std::net::{TcpListener, TcpStream};
use std::process::Child;
use std::time::{Duration, Instant};
use transom_testkit::process::transom;

/// A served function, stopped at the end of its test.
struct Served {
    child: Child,
    address: String,
}

impl Served {
    fn start(name: &str) -> Self {
        Self::start_with(name, &[], &[])
    }

    /// Starts with more flags, and variables of the environment.
    fn start_with(name: &str, flags: &[&str], variables: &[(&str, &str)]) -> Self {
        let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = free.local_addr().expect("an address").to_string();
        drop(free);
        let arguments = ["function", "serve", name, "--insecure", "--address", &address];
        let mut command = transom(&[]);
        command.args(arguments).args(flags).envs(variables.iter().copied());
        let child = command.spawn().expect("transom runs");
        let deadline = Instant::now() + Duration::from_secs(120);
        while TcpStream::connect(&address).is_err() {
            assert!(Instant::now() < deadline, "{name} does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        Self { child, address }
    }

    fn function(&self, name: &str) -> String {
        format!(
            "---\napiVersion: pkg.crossplane.io/v1\nkind: Function\nmetadata:\n  name: {name}\n  annotations:\n    render.crossplane.io/runtime: Development\n    render.crossplane.io/runtime-development-target: {}\nspec:\n  package: example.org/{name}\n",
            self.address
        )
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn served_functions_render_the_same() {
    let files = Files::new();
    let names = ["function-patch-and-transform", "function-auto-ready"];
    let served = names.map(Served::start);
    let manifests: String = served.iter().zip(names).map(|(served, name)| served.function(name)).collect();
    files.write("development.yaml", &manifests);
    let in_process = files.render(&["xr.yaml", "composition.yaml", "-r"]);
    assert_eq!(files.render(&["xr.yaml", "composition.yaml", "development.yaml", "-r"]), in_process);
}

#[test]
fn functions_are_listed_and_unknown_ones_refused() {
    let files = Files::new();
    let listed = files.run(&["function", "list"]);
    let listed = String::from_utf8(listed.stdout).expect("text");
    assert!(listed.lines().any(|line| line == "function-patch-and-transform"), "{listed}");
    let refused = files.run(&["function", "serve", "function-nobody", "--insecure"]);
    let said = String::from_utf8(refused.stderr).expect("text");
    assert!(
        said.contains("no built-in function \"function-nobody\"") && said.contains("function-auto-ready"),
        "{said}"
    );
    assert_eq!(refused.status.code(), Some(1));
}

/// What function-go-templating renders for an input without source or options is up to its defaults.
#[test]
fn go_templating_is_served_with_defaults() {
    const NAME: &str = "function-go-templating";
    let files = Files::new();
    let template = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  annotations: {gotemplating.fn.crossplane.io/composition-resource-name: a}\ndata: {found: '{{ .nothing }}'}\n";
    files.write("templates/a.yaml", template);
    let composition = std::fs::read_to_string(files.path("composition.yaml")).expect("a file");
    let (head, _) = composition.split_once("  pipeline:").expect("a pipeline");
    let step = "  - step: templates\n    functionRef: {name: function-go-templating}\n    input: {apiVersion: gotemplating.fn.crossplane.io/v1beta1, kind: GoTemplate}\n";
    files.write("templates.yaml", &format!("{head}  pipeline:\n{step}"));
    let folder = files.path("templates").to_string_lossy().into_owned();
    let answers = |flags: &[&str], variables: &[(&str, &str)]| {
        let served = Served::start_with(NAME, flags, variables);
        files.write("development.yaml", &served.function(NAME));
        let output = files.run(&["render", "xr.yaml", "templates.yaml", "development.yaml"]);
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    };
    let source = ["--default-source", &folder];
    let strict = ["--default-options", "missingkey=zero,missingkey=error"];
    let variables = [
        ("FUNCTION_GO_TEMPLATING_DEFAULT_SOURCE", folder.as_str()),
        ("FUNCTION_GO_TEMPLATING_DEFAULT_OPTIONS", "missingkey=error"),
    ];
    let missing = "map has no entry for key \"nothing\"";
    for (flags, variables, expected) in [
        (&[][..], &[][..], "source is required"),
        (&source[..], &[], "found: <no value>"),
        (&[source, strict].concat(), &[], missing),
        (&[], &variables, missing),
        (&["--default-options", ""], &variables, "found: <no value>"),
        (&[source, ["--default-options", "missingkey=error,"]].concat(), &[], "empty option string"),
    ] {
        let answer = answers(flags, variables);
        assert!(answer.contains(expected), "{flags:?} {variables:?}: {answer}");
    }
    let refused =
        files.run(&["function", "serve", "function-auto-ready", "--insecure", "--default-options", "x"]);
    let said = String::from_utf8(refused.stderr).expect("text");
    assert!(said.contains("function-auto-ready has no --default-options") && said.contains(NAME), "{said}");
    assert_eq!(refused.status.code(), Some(1));
}
