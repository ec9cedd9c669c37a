//! Times how a template file is parsed, and rendered over empty data, in microseconds of processor time:
//! `cargo run --profile dist -p transom-gotemplate --example bench_template -- FILE`.

use std::io::{Error, Write};

use transom_gotemplate::{Functions, Limits, Options, Template, Value};

const ROUNDS: u32 = 2000;

/// Nanoseconds this thread has run, as the kernel counts them.
fn processor_time() -> Result<f64, Error> {
    let counts = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    counts.split(' ').next().and_then(|count| count.parse().ok()).ok_or(Error::other("no count"))
}

/// The mean time of a step, after some that do not count.
fn each(step: impl Fn() -> Result<(), transom_gotemplate::Error>) -> Result<f64, Box<dyn std::error::Error>> {
    for _ in 0..ROUNDS / 10 {
        step()?;
    }
    let began = processor_time()?;
    for _ in 0..ROUNDS {
        step()?;
    }
    Ok((processor_time()? - began) / 1000.0 / f64::from(ROUNDS))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = std::env::args().nth(1).unwrap_or("conformance/gotemplate/bench.tmpl".to_owned());
    let text = std::fs::read_to_string(file)?;
    let (options, functions, limits) = (Options::default(), Functions::default(), Limits::default());
    let parsing = each(|| Template::parse("manifests", &text, &options).map(drop))?;
    let template = Template::parse("manifests", &text, &options)?;
    let rendering = each(|| template.execute(&Value::map::<&str>([]), &functions, &limits).map(drop))?;
    writeln!(std::io::stdout(), "{parsing:.1} {rendering:.1}")?;
    Ok(())
}
