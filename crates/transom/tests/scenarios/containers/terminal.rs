//! `transom render` on a terminal: what is pulled is shown, and gone before anything else is printed.

use super::planned::PROGRAM;
use super::*;
use transom_oci::testing::images::image as image_of;
use transom_testkit::process::{Home, Terminal, screen};

/// Renders a composite resource with a step and a Function, in a new home. Returns the exit code and what was written.
fn render(step: &Value, function: &str) -> (Option<i32>, String) {
    let home = Home::new();
    let mut manifest = documents(&composition("things", "Thing", &json!({}), &[])).remove(0);
    manifest["spec"]["pipeline"] = json!([step]);
    let files = [
        ("xr.yaml", object("Thing", "default/t", "")),
        ("composition.yaml", manifest.to_string()),
        ("functions.yaml", function.to_owned()),
    ];
    let mut command = transom(&["render"]);
    for (name, text) in files.into_iter().filter(|(_, text)| !text.is_empty()) {
        let path = home.root().join(name);
        std::fs::write(&path, text).expect("a file");
        command.arg(path);
    }
    command.args(CHROOT).arg("--accept-unenforced-limits").arg("--cache-dir").arg(home.root().join("cache"));
    let terminal = Terminal::new();
    command.stdout(terminal.output()).stderr(terminal.output()).env("DOCKER_CONFIG", home.root());
    let program = command.spawn().expect("the binary runs");
    drop(command);
    tokio::task::block_in_place(|| terminal.read(program))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_render_shows_pulls_and_keeps_what_it_renders_or_the_reason() {
    let registry = Registry::start().await;
    let config = json!({"config": {"Entrypoint": ["/bin/sh", "-c", PROGRAM]}}).to_string();
    registry.0.push("acme/inline", "v1", &image_of(&config, &[shell()], false));
    registry.push_script("function-crash", "echo out of order >&2; exit 3");
    let container = json!({"image": registry.at("acme/inline:v1")});
    let inline = json!({"step": "a", "inline": {"type": "Container", "container": container}});
    let crash = install_function("function-crash", &registry.at("acme/function-crash:v1"));
    let packaged = json!({"step": "a", "functionRef": {"name": "function-crash"}});
    for (step, function, code, kept) in
        [(inline, "", 0, "says: inline"), (packaged, crash.as_str(), 1, "error")]
    {
        let (ended, written) = render(&step, function);
        assert_eq!(ended, Some(code), "{written}");
        assert!(written.contains("\r\x1b[Kpulling "), "{written:?}");
        let left = screen(&written);
        assert!(!left.iter().any(|line| line.contains("pulling")), "{left:#?}");
        assert!(left.iter().any(|line| line.contains(kept)), "{left:#?}");
    }
}
