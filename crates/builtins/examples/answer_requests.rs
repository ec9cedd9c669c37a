//! Answers requests given as JSON lines with a built-in: `answer_requests function-go-templating < requests > responses`.
//! The other side of a comparison with the original.

use std::io::{BufRead, Write};

use serde::Deserialize;
use transom_function::{RunFunctionRequest, answer};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let name = std::env::args().nth(1).ok_or("which function?")?;
    let function = transom_builtins::find(&name).ok_or("there is no such built-in")?;
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for line in std::io::stdin().lock().lines() {
        let request: serde_json::Value = serde_json::from_str(&line?)?;
        let response = answer(&*function, RunFunctionRequest::deserialize(request)?).await;
        let shown = match response {
            Ok(response) => serde_json::to_value(response)?,
            Err(status) => serde_json::json!({ "status": status.message() }),
        };
        writeln!(out, "{shown}")?;
    }
    Ok(())
}
