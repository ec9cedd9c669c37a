//! `transom convert`: the kinds of the first design of composition (004), as today's. The blocks of the design are in `blocks`; what
//! a plane makes of the result is in `scenarios::first_design`.

pub(crate) mod blocks;
mod command;

use std::io::Write;
use std::process::{Output, Stdio};
use transom_testkit::process::transom;

/// Runs the command with this text on stdin.
pub(crate) fn convert(text: &str, arguments: &[&str]) -> Output {
    let mut command = transom(&[]);
    command.arg("convert").args(arguments).arg("-");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = command.spawn().expect("transom runs");
    process.stdin.take().expect("stdin").write_all(text.as_bytes()).expect("the text is read");
    process.wait_with_output().expect("transom ends")
}
