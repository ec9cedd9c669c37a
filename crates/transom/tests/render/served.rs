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
        let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = free.local_addr().expect("an address").to_string();
        drop(free);
        let arguments = ["function", "serve", name, "--insecure", "--address", &address];
        let mut command = transom(&[]);
        let child = command.args(arguments).spawn().expect("transom runs");
        let deadline = Instant::now() + Duration::from_secs(30);
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
