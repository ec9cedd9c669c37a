//! A program that reads and writes documents, as a function of today's protocol: it is started for every call, by the function's
//! own process. What isolates it is what isolates that process.

use crate::document::{Io, decode, encode};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;
use transom_function::{Error, Function, RunFunctionRequest, RunFunctionResponse, async_trait};
use transom_object::error_chain::chain;

/// How much a program may write.
const STDOUT_BYTES_MAX: usize = 64 << 20;
const STDERR_BYTES_MAX: usize = 1 << 20;
/// How much of standard error is in messages, in characters.
const EXCERPT_CHARACTERS_MAX: usize = 1000;

/// The document that an adapted program reads and writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdaptedIo {
    /// That of container functions.
    Document(Io),
    /// A `RunFunctionRequest` and a `RunFunctionResponse` in the protocol's JSON form.
    Request,
}

/// A program as a function.
pub struct Adapted {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// What it reads and writes.
    pub io: AdaptedIo,
    /// How long a call may take.
    pub timeout: Duration,
}

#[async_trait]
impl Function for Adapted {
    async fn run(&self, request: RunFunctionRequest) -> Result<RunFunctionResponse, Error> {
        let input = match self.io {
            AdaptedIo::Document(io) => encode(io, &request),
            AdaptedIo::Request => serde_json::to_string(&request).map_err(|e| Error::fatal(e.to_string()))?,
        };
        let output = tokio::time::timeout(self.timeout, self.output(input)).await;
        let late =
            || Error::fatal(format!("the program did not end within {} s", self.timeout.as_secs_f64()));
        let output = output.map_err(|_| late())?.map_err(Error::fatal)?;
        match self.io {
            AdaptedIo::Document(io) => decode(io, &request, &output).map_err(|e| Error::fatal(chain(&e))),
            AdaptedIo::Request => {
                let wrong = |e: &dyn std::fmt::Display| {
                    Error::fatal(format!("the output is not a RunFunctionResponse in JSON: {e}"))
                };
                serde_json::from_slice(&output).map_err(|e| wrong(&e))
            }
        }
    }
}

impl Adapted {
    async fn output(&self, input: String) -> Result<Vec<u8>, String> {
        let Some((program, arguments)) = self.command.split_first() else {
            return Err("there is no program to run".to_owned());
        };
        let mut command = Command::new(program);
        command.args(arguments).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|e| format!("cannot run {program:?}: {e}"))?;
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let feeding = async {
            if let Some(mut stdin) = stdin {
                // A program need not read its input.
                let _ = stdin.write_all(input.as_bytes()).await;
            }
        };
        let ((), stdout, stderr, ended) = tokio::join!(
            feeding,
            read(stdout, STDOUT_BYTES_MAX, "output"),
            read(stderr, STDERR_BYTES_MAX, "error"),
            child.wait(),
        );
        let (stdout, stderr) = (stdout?, stderr?);
        let ended = ended.map_err(|e| format!("cannot wait for {program:?}: {e}"))?;
        if ended.success() {
            return Ok(stdout);
        }
        let text = String::from_utf8_lossy(&stderr);
        let last: Vec<char> = text.trim().chars().rev().take(EXCERPT_CHARACTERS_MAX).collect();
        Err(format!("the program failed ({ended}); it wrote last: {}", last.iter().rev().collect::<String>()))
    }
}

async fn read(stream: Option<impl AsyncRead + Unpin>, max: usize, name: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    if let Some(mut stream) = stream {
        let mut limited = (&mut stream).take(max as u64 + 1);
        limited.read_to_end(&mut bytes).await.map_err(|e| format!("cannot read standard {name}: {e}"))?;
        if bytes.len() > max {
            return Err(format!("the program wrote more than {max} bytes to standard {name}"));
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use transom_function::testing::RequestBuilder;

    fn request() -> RunFunctionRequest {
        RequestBuilder::new(json!({"apiVersion": "e.org/v1", "kind": "X", "metadata": {"name": "x"}})).build()
    }

    async fn run(script: &str, io: AdaptedIo) -> Result<RunFunctionResponse, String> {
        let command = ["/bin/sh", "-c", script].map(str::to_owned).to_vec();
        let adapted = Adapted { command, io, timeout: Duration::from_secs(20) };
        adapted.run(request()).await.map_err(|e| e.to_string())
    }

    #[tokio::test]
    async fn a_script_is_a_function() {
        let io = AdaptedIo::Document(Io::FunctionIo);
        let script = "cat >/dev/null; echo 'desired: {resources: [{name: a, resource: {kind: A}}]}'";
        let response = run(script, io).await.unwrap();
        assert!(response.desired.unwrap().resources.contains_key("a"));
        let script = "cat >/dev/null; echo '{\"desired\": {\"resources\": {\"b\": {\"resource\": {\"kind\": \"B\"}}}}}'";
        let response = run(script, AdaptedIo::Request).await.unwrap();
        assert!(response.desired.unwrap().resources.contains_key("b"));
    }

    #[tokio::test]
    async fn what_is_wrong_is_reported() {
        let io = AdaptedIo::Document(Io::FunctionIo);
        for (script, words) in [
            ("echo no >&2; exit 3", "it wrote last: no"),
            ("true", "its output is not a FunctionIO: it is empty"),
            ("head -c 2000000 /dev/zero >&2", "more than 1048576 bytes to standard error"),
        ] {
            let error = run(script, io).await.unwrap_err();
            assert!(error.contains(words), "{script}: {error}");
        }
        let error = run("echo '{'", AdaptedIo::Request).await.unwrap_err();
        assert!(error.contains("not a RunFunctionResponse in JSON"), "{error}");
    }
}
