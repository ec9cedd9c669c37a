//! How long a call of go-templating takes that composes ten resources, in processor time: ours in this process, and that of a
//! genuine function which listens at an address, with its process id. `conformance/gotemplate/bench` runs it.

#![allow(clippy::print_stdout, reason = "a program that reports")]

use prost::Message;
use serde_json::json;
use transom_function::client::FunctionClient;
use transom_function::{Error, RunFunctionRequest, RunFunctionResponse, answer};

const ROUNDS: u32 = 2000;
const FUNCTION: &str = "function-go-templating";

fn request(template: &str) -> Result<RunFunctionRequest, serde_json::Error> {
    let xr = json!({"apiVersion": "example.org/v1", "kind": "X", "metadata": {"name": "demo"}, "spec": {"region": "eu", "size": 5}});
    serde_json::from_value(json!({
        "observed": {"composite": {"resource": xr}},
        "input": {"source": "Inline", "inline": {"template": template}},
    }))
}

/// Microseconds that a process has run on its processors, all threads together.
fn processor_time(process: &str) -> f64 {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let counts = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("schedstat")).ok());
    counts.filter_map(|count| count.split(' ').next()?.parse::<f64>().ok()).sum::<f64>() / 1000.0
}

fn check(response: &RunFunctionResponse) -> Result<(), Error> {
    match response.desired.as_ref().map_or(0, |desired| desired.resources.len()) {
        10 => Ok(()),
        other => Err(Error::fatal(format!("{other} resources were composed: {:?}", response.results))),
    }
}

/// Ours, with what a server does besides: decoding the request and encoding the answer.
async fn ours(request: &[u8]) -> Result<(), Error> {
    let function =
        transom_builtins::find(FUNCTION).ok_or_else(|| Error::fatal("there is no such built-in"))?;
    let request = RunFunctionRequest::decode(request).map_err(|problem| Error::fatal(problem.to_string()))?;
    let response = answer(&*function, request).await?;
    check(&response)?;
    response.encode_to_vec();
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, address, process] = &arguments[..] else {
        return Err(Error::fatal(
            "arguments: a template file, the address of the genuine function, its process id",
        ));
    };
    let text = std::fs::read_to_string(file).map_err(|problem| Error::fatal(problem.to_string()))?;
    let request = request(&text)?;
    let encoded = request.encode_to_vec();
    let endpoint = tonic::transport::Endpoint::from_shared(address.clone());
    let endpoint = endpoint.map_err(|problem| Error::fatal(problem.to_string()))?;
    let genuine = FunctionClient::new(endpoint.connect_lazy());
    let mut took = [0.0; 2];
    // The first tenth does not count.
    for round in 0..ROUNDS + ROUNDS / 10 {
        if round == ROUNDS / 10 {
            took = [processor_time(process), 0.0];
        }
        let response = genuine.run(&request).await.map_err(|problem| Error::fatal(problem.to_string()))?;
        check(&response)?;
    }
    took[0] = processor_time(process) - took[0];
    for round in 0..ROUNDS + ROUNDS / 10 {
        if round == ROUNDS / 10 {
            took[1] = processor_time("self");
        }
        ours(&encoded).await?;
    }
    took[1] = processor_time("self") - took[1];
    let [theirs, ours] = took.map(|time| time / f64::from(ROUNDS));
    println!("a call: genuine {theirs:.0} µs, ours {ours:.0} µs ({:.1}×)", theirs / ours);
    Ok(())
}
