//! `transom function test`: sends requests to a function, and compares its responses with those that are expected.

use super::called::Called;
use crate::containers::ContainerArgs;
use clap::Args;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use transom_authoring::cases::{self, Case};
use transom_console::Failure;
use transom_function::{RunFunctionRequest, RunFunctionResponse};
use transom_object::yaml;

/// Send requests to a function
///
/// A request file: prints the response. A folder: every NAME.request.yaml is sent, and its response compared with
/// NAME.response.yaml; differences are printed, and the exit code is 1. Requests and responses are in the protocol's JSON
/// form, as YAML or JSON.
#[derive(Args)]
#[command(after_help = "\
Examples:
  transom function test . cases                                the project in this folder, built and started
  transom function test function-hello.xpkg cases              what is in a package
  transom function test registry.example.org/acme/function-hello:v0.1.0 request.yaml
  transom function test function-auto-ready request.yaml       a built-in function
  transom function test --target localhost:9443 cases          a function that is running
  transom function test . cases --update                       write the responses as the expected ones")]
pub(crate) struct Test {
    /// The function: the folder of a project, a package file, the name of a built-in or a reference to a package; then
    /// a request or a folder of requests. With --target, only the requests
    #[arg(value_name = "FUNCTION> <REQUESTS", num_args = 1..=2, required = true)]
    words: Vec<String>,

    /// Call the function that runs at this address without TLS
    #[arg(long, value_name = "HOST:PORT")]
    target: Option<String>,

    /// Write the responses to the files with expected responses
    #[arg(long)]
    update: bool,

    /// The most time that a call may take
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = transom_console::duration)]
    timeout: Duration,

    #[command(flatten)]
    containers: ContainerArgs,
}

pub(crate) async fn run(options: Test) -> Result<ExitCode, Failure> {
    let (function, requests) = match (&options.target, options.words.as_slice()) {
        (Some(_), [requests]) => (None, requests),
        (None, [function, requests]) => (Some(function), requests),
        (Some(_), _) => {
            return Err(Failure::new("--target says which function is called")
                .remedy("give only the requests: transom function test --target HOST:PORT REQUESTS"));
        }
        (None, _) => {
            return Err(Failure::new("a function or its requests are missing")
                .remedy("name both: transom function test FUNCTION REQUESTS"));
        }
    };
    let requests = PathBuf::from(requests);
    // Before a function is started.
    let cases = requests.is_dir().then(|| cases_in(&requests)).transpose()?;
    let single = if cases.is_none() { Some(request(&requests)?) } else { None };
    let called = match (function, &options.target) {
        (Some(name), _) => Called::named(name, &options.containers).await?,
        (None, target) => Called::at(target.as_deref().unwrap_or_default()).await?,
    };
    let tested = match (cases, single) {
        (Some(cases), _) => compare_all(&called, &requests, &cases, &options).await,
        (None, Some(single)) => print_response(&called, single, options.timeout).await,
        (None, None) => Ok(ExitCode::SUCCESS),
    };
    called.stop().await;
    tested
}

async fn print_response(
    called: &Called,
    request: RunFunctionRequest,
    timeout: Duration,
) -> Result<ExitCode, Failure> {
    let response = call(called, request, timeout).await.map_err(Failure::new)?;
    transom_console::print(to_yaml(&response)?.as_bytes())
}

async fn compare_all(
    called: &Called,
    folder: &Path,
    cases: &[Case],
    options: &Test,
) -> Result<ExitCode, Failure> {
    let mut failed = 0;
    for case in cases {
        let request = request(&folder.join(&case.request))?;
        let outcome = match call(called, request, options.timeout).await {
            Err(problem) => Err(format!("  {problem}\n")),
            Ok(response) if options.update => {
                let path = folder.join(&case.response);
                let text = written(&response, &case.response)?;
                std::fs::write(&path, text)
                    .map_err(|e| Failure::new(format!("cannot write {}: {e}", path.display())))?;
                Ok("written")
            }
            Ok(response) => compare(folder, case, &response)?.map(|()| "ok"),
        };
        let line = match outcome {
            Ok(word) => format!("{word} {}\n", case.name),
            Err(difference) => {
                failed += 1;
                format!("FAILED {}\n{difference}", case.name)
            }
        };
        transom_console::print(line.as_bytes())?;
    }
    let all = cases.len();
    match failed {
        0 => Ok(ExitCode::SUCCESS),
        failed => Err(Failure::new(format!("{failed} of {all} responses are not as expected"))
            .remedy("--update writes the responses as the expected ones")),
    }
}

/// Whether a response is as expected, and how it differs: `-` is expected, `+` is the response.
fn compare(
    folder: &Path,
    case: &Case,
    response: &RunFunctionResponse,
) -> Result<Result<(), String>, Failure> {
    if !case.is_expected {
        return Ok(Err(format!("  there is no {}; --update writes it\n", case.response)));
    }
    let path = folder.join(&case.response);
    let expected: RunFunctionResponse = read(&path, "RunFunctionResponse")?;
    let difference = cases::diff(&to_yaml(&expected)?, &to_yaml(response)?);
    Ok(if difference.is_empty() { Ok(()) } else { Err(difference) })
}

async fn call(
    called: &Called,
    request: RunFunctionRequest,
    timeout: Duration,
) -> Result<RunFunctionResponse, String> {
    let answered = tokio::time::timeout(timeout, called.call(request)).await;
    answered.unwrap_or_else(|_| Err(format!("no response within {timeout:?}; --timeout allows more")))
}

fn cases_in(folder: &Path) -> Result<Vec<Case>, Failure> {
    let cannot = |e: std::io::Error| Failure::new(format!("cannot read {}: {e}", folder.display()));
    let entries = std::fs::read_dir(folder).map_err(cannot)?.flatten();
    let files: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    let cases = cases::pair(&files).map_err(|e| Failure::new(format!("{}: {e}", folder.display())))?;
    match cases.is_empty() {
        true => Err(Failure::new(format!("{} holds no requests", folder.display()))
            .remedy("name them like NAME.request.yaml, and their responses NAME.response.yaml")),
        false => Ok(cases),
    }
}

fn request(path: &Path) -> Result<RunFunctionRequest, Failure> {
    read(path, "RunFunctionRequest")
}

fn read<T: serde::de::DeserializeOwned>(path: &Path, what: &str) -> Result<T, Failure> {
    let named = path.display();
    let text =
        std::fs::read_to_string(path).map_err(|e| Failure::new(format!("cannot read {named}: {e}")))?;
    // JSON is YAML.
    let value = yaml::read(&text)
        .map_err(|e| Failure::new(format!("{named}:{}:{}: {}", e.line, e.column, e.message)))?;
    serde_json::from_value(value).map_err(|e| Failure::new(format!("{named} is not a {what}: {e}")))
}

/// A response as YAML. Fields that are present and empty mean the same as absent ones: SDKs differ in that.
fn to_yaml(response: &RunFunctionResponse) -> Result<String, Failure> {
    value_of(response).map(|value| yaml::write(&value))
}

/// A response in the format of a file.
fn written(response: &RunFunctionResponse, file: &str) -> Result<String, Failure> {
    let value = value_of(response)?;
    match file.ends_with(".json") {
        true => Ok(format!("{value:#}\n")),
        false => Ok(yaml::write(&value)),
    }
}

fn value_of(response: &RunFunctionResponse) -> Result<Value, Failure> {
    let mut value = serde_json::to_value(response)
        .map_err(|e| Failure::new(format!("the response has no JSON form: {e}")))?;
    if let Value::Object(fields) = &mut value {
        fields.retain(|_, field| match field {
            Value::Object(inner) => !inner.is_empty(),
            Value::Array(items) => !items.is_empty(),
            _ => true,
        });
    }
    Ok(value)
}
