//! Asks a genuine function and our built-in the same generated questions, and compares the answers in full.
//!
//! The genuine one is a gRPC server (`--theirs`). Ours is another (`--ours`, such as `transom function serve`), or else
//! this process: then requests and responses still go through their wire form. `conformance/run functions` runs this.
//! Question number `i` of a seed is always the same; `--only i` shows it with both answers.

#![allow(clippy::print_stdout, reason = "a program that reports")]

mod answers;
#[path = "../../tests/conformance/compare.rs"]
mod compare;
mod dice;
mod generate;
mod known;
#[path = "../../tests/conformance/normal.rs"]
mod normal;
mod record;

use answers::DIED;
use clap::Parser;
use compare::compare;
use generate::Questions;
use prost::Message;
use serde_json::Value;
use std::collections::BTreeMap;
use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tonic::Code;
use transom_function::client::FunctionClient;
use transom_function::{Function, RunFunctionRequest, RunFunctionResponse, Severity, answer};

type Failure = Box<dyn Error + Send + Sync>;

/// Compares a built-in function with the genuine one.
#[derive(Clone, Debug, Parser)]
struct Options {
    /// The function, such as function-patch-and-transform.
    function: String,
    /// Where the genuine function listens, such as http://127.0.0.1:9443.
    #[arg(long)]
    theirs: String,
    /// Where ours listens; in this process when absent.
    #[arg(long)]
    ours: Option<String>,
    /// How many questions to ask.
    #[arg(long, default_value_t = 10_000)]
    requests: u64,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Ask what published Compositions ask, instead of what is generated.
    #[arg(long)]
    published: bool,
    /// Fail when a difference that is meant was not met.
    #[arg(long)]
    all_known: bool,
    /// Differences that are meant, as `pattern<TAB>reason`.
    #[arg(long)]
    known: Option<PathBuf>,
    /// How many differences to show.
    #[arg(long, default_value_t = 5)]
    show: usize,
    /// Ask this question only, and show the answers.
    #[arg(long)]
    only: Option<u64>,
    /// Write so many questions with the genuine answers to `--record-to`, for tests that run without it.
    #[arg(long, default_value_t = 0)]
    record: u64,
    #[arg(long)]
    record_to: Option<PathBuf>,
    /// Write the digests of all genuine answers to this file.
    #[arg(long, requires = "version_of_theirs")]
    answers_to: Option<PathBuf>,
    /// The version of the genuine function, for what is written.
    #[arg(long)]
    version_of_theirs: Option<String>,
}

/// One side: a server, or this process.
#[derive(Clone)]
enum Side {
    Server(FunctionClient),
    Here(Arc<dyn Function>),
}

impl Side {
    async fn connect(address: &str) -> Result<Self, Failure> {
        let endpoint = tonic::transport::Endpoint::from_shared(address.to_owned())?;
        for _ in 0..100 {
            if let Ok(channel) = endpoint.connect().await {
                return Ok(Self::Server(FunctionClient::new(channel)));
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Err(format!("nothing listens at {address}").into())
    }

    async fn ask(&self, request: &RunFunctionRequest) -> Result<RunFunctionResponse, String> {
        match self {
            Self::Server(client) => ask_server(client, request).await,
            Self::Here(function) => {
                let request = RunFunctionRequest::decode(&request.encode_to_vec()[..]);
                let response = answer(&**function, request.map_err(|e| e.to_string())?).await;
                let response = response.map_err(|e| e.to_string())?;
                RunFunctionResponse::decode(&response.encode_to_vec()[..]).map_err(|e| e.to_string())
            }
        }
    }
}

/// How long one call of a server may take.
const CALL_TIMEOUT: Duration = Duration::from_secs(60);

/// A server that dies is started again, and it need not have been this question that it died of.
async fn ask_server(
    client: &FunctionClient,
    request: &RunFunctionRequest,
) -> Result<RunFunctionResponse, String> {
    for _ in 0..4 {
        let Ok(answer) = tokio::time::timeout(CALL_TIMEOUT, client.run(request)).await else { break };
        match answer {
            // That the connection was lost has no code of its own.
            Err(status) if matches!(status.code(), Code::Unavailable | Code::Unknown | Code::Cancelled) => {
                tokio::time::sleep(Duration::from_millis(60)).await;
            }
            other => return other.map_err(|e| e.to_string()),
        }
    }
    Err(DIED.to_owned())
}

/// What came of one question.
struct Verdict {
    index: u64,
    difference: Option<String>,
    worded_alike: bool,
    fatal: bool,
    /// The genuine function died of it.
    died: bool,
}

#[tokio::main]
async fn main() -> Result<ExitCode, Failure> {
    let options = Options::parse();
    let theirs = Side::connect(&options.theirs).await?;
    let ours = match &options.ours {
        Some(address) => Side::connect(address).await?,
        None => Side::Here(transom_builtins::find(&options.function).ok_or("there is no such built-in")?),
    };
    let questions = match options.published {
        true => Questions::published(&options.function).ok_or("no published questions for this function")?,
        false => Questions::generated(&options.function, options.seed, options.requests)
            .ok_or("there is no generator of questions for this function")?,
    };
    if let Some(index) = options.only {
        show(questions, &theirs, &ours, index).await?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(file) = &options.record_to {
        record::write(file, &options, questions, (&theirs, &ours)).await?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(file) = &options.answers_to {
        record::write_answers(file, &options, questions, (&theirs, &ours)).await?;
    }
    let began = Instant::now();
    let verdicts = ask_all(questions, &theirs, &ours).await?;
    let known = known::Known::read(options.known.as_deref())?;
    Ok(report(&options, questions, verdicts, known, began.elapsed()))
}

/// Asks everything, a few questions at a time.
async fn ask_all(questions: Questions, theirs: &Side, ours: &Side) -> Result<Vec<Verdict>, Failure> {
    const AT_ONCE: u64 = 8;
    const AGAIN: u32 = 20;
    let mut lanes = Vec::new();
    for lane in 0..AT_ONCE {
        let (theirs, ours) = (theirs.clone(), ours.clone());
        lanes.push(tokio::spawn(async move {
            let mut verdicts = Vec::new();
            for index in (lane..questions.count).step_by(AT_ONCE as usize) {
                let request = questions.get(index);
                let (expected, actual) = (theirs.ask(&request).await, ours.ask(&request).await);
                verdicts.push(judge(index, &expected, &actual));
            }
            verdicts
        }));
    }
    let mut verdicts = Vec::new();
    for lane in lanes {
        verdicts.extend(lane.await?);
    }
    verdicts.sort_by_key(|verdict| verdict.index);
    // Asked alone, a question is not lost to what another one did. And where the original goes through a map of Go's,
    // it answers the same question in several ways: ours must be one of them.
    for verdict in verdicts.iter_mut().filter(|verdict| verdict.died || verdict.difference.is_some()) {
        let request = questions.get(verdict.index);
        let actual = ours.ask(&request).await;
        for _ in 0..if verdict.died { 1 } else { AGAIN } {
            *verdict = judge(verdict.index, &theirs.ask(&request).await, &actual);
            if verdict.difference.is_none() {
                break;
            }
        }
    }
    Ok(verdicts)
}

fn json(response: &RunFunctionResponse) -> Value {
    serde_json::to_value(response).unwrap_or_default()
}

fn is_fatal(response: &RunFunctionResponse) -> bool {
    response.results.iter().any(|result| result.severity() == Severity::Fatal)
}

fn judge(
    index: u64,
    expected: &Result<RunFunctionResponse, String>,
    actual: &Result<RunFunctionResponse, String>,
) -> Verdict {
    let (difference, worded_alike, fatal) = match (expected, actual) {
        (Ok(expected), Ok(actual)) if expected == actual => (None, true, is_fatal(expected)),
        (Ok(expected), Ok(actual)) => {
            let messages =
                |r: &RunFunctionResponse| r.results.iter().map(|r| r.message.clone()).collect::<Vec<_>>();
            let difference = compare(&json(expected), &json(actual)).err();
            (difference, messages(expected) == messages(actual), is_fatal(expected))
        }
        (Err(_), Err(_)) => (None, true, true),
        // No answer to compare with; that we have one is all there is to say.
        (Err(error), Ok(_)) if error == DIED => (None, true, false),
        (Err(error), Ok(_)) => (Some(format!("theirs failed: {error}")), false, true),
        (Ok(_), Err(error)) => (Some(format!("ours failed: {error}")), false, false),
    };
    let died = expected.as_ref().is_err_and(|error| error == DIED);
    Verdict { index, difference, worded_alike, fatal, died }
}

fn report(
    options: &Options,
    questions: Questions,
    verdicts: Vec<Verdict>,
    mut known: known::Known,
    took: Duration,
) -> ExitCode {
    let total = verdicts.len();
    let fatal = verdicts.iter().filter(|verdict| verdict.fatal).count();
    let died = verdicts.iter().filter(|verdict| verdict.died).count();
    let alike = verdicts.iter().filter(|verdict| verdict.worded_alike).count();
    let mut unknown = BTreeMap::<String, Vec<(u64, String)>>::new();
    for verdict in verdicts {
        let Some(difference) = verdict.difference else { continue };
        if !known.expects(&options.function, &difference) {
            // One of each kind is shown; a kind is where in the response it is.
            let place: String = difference.chars().take_while(|c| !matches!(c, ' ' | '[')).collect();
            unknown.entry(place).or_default().push((verdict.index, difference));
        }
    }
    let failed: usize = unknown.values().map(Vec::len).sum();
    for (place, cases) in &unknown {
        println!("{} differ at {place}:", cases.len());
        for (index, difference) in cases.iter().take(options.show) {
            println!("  question {index}: {difference:.400}");
            if options.show == 1 {
                println!("  {}", serde_json::to_string(&questions.get(*index)).unwrap_or_default());
            }
        }
    }
    let seconds = took.as_secs_f64();
    println!(
        "{}: {} passed, {failed} failed, {} known ({fatal} fatal, {alike} worded alike, the original died of {died}, {seconds:.1} s)",
        options.function,
        total - failed - known.seen() - died,
        known.seen(),
    );
    let unneeded = if options.all_known { known.unneeded(&options.function) } else { Vec::new() };
    for pattern in &unneeded {
        println!("explains nothing, remove it: {pattern}");
    }
    if failed == 0 && unneeded.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

async fn show(questions: Questions, theirs: &Side, ours: &Side, index: u64) -> Result<(), Failure> {
    let request = questions.get(index);
    println!("QUESTION\n{}", serde_json::to_string_pretty(&request)?);
    for (name, side) in [("THEIRS", theirs), ("OURS", ours)] {
        match side.ask(&request).await {
            Ok(response) => println!("{name}\n{}", serde_json::to_string_pretty(&response)?),
            Err(error) => println!("{name} failed: {error}"),
        }
    }
    Ok(())
}
