//! All code that reads untrusted input, called with mutations of small checked-in inputs (`fuzz/corpus`), for
//! a moment in every test run and for hours on request. Stable Rust and plain `cargo test` are enough:
//!
//! ```text
//! TRANSOM_FUZZ_SECONDS=3600 TRANSOM_FUZZ_SEED=$RANDOM cargo test -p transom --test process fuzz::text::json
//! ```
//!
//! Beyond "no panic, in bounded time" each target holds its subject to laws: what is read and written reads back
//! the same, applying twice is applying once.

mod functions;
mod mutate;
mod requests;
mod text;
mod values;

use serde_json::Value;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use transom_testkit::rng::Rng;

/// No input of a few kilobytes may take longer, unoptimised and on a busy machine.
const SLOW: Duration = Duration::from_secs(10);

fn number(key: &str, otherwise: u64) -> u64 {
    std::env::var(key).ok().and_then(|v| v.parse().ok()).unwrap_or(otherwise)
}

/// The inputs a target starts from; whatever once failed is kept there.
fn corpus(target: &str) -> Vec<Vec<u8>> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(&dir).into_iter().flatten().flatten().map(|e| e.path()).collect();
    files.sort();
    assert!(!files.is_empty(), "{} has no inputs", dir.display());
    files.iter().map(|f| std::fs::read(f).expect("the corpus is readable")).collect()
}

/// Runs the corpus, then mutations of it until the time is up.
fn fuzz<T>(target: &str, corpus: &[T], mutate: impl Fn(&[T], &mut Rng) -> T, run: impl Fn(&T))
where
    T: AsInput,
{
    for input in corpus {
        attempt(target, input, &run);
    }
    let mut rng = Rng::new(number("TRANSOM_FUZZ_SEED", 1));
    let until = Instant::now() + Duration::from_secs(number("TRANSOM_FUZZ_SECONDS", 1));
    let mut count = 0u64;
    while Instant::now() < until {
        attempt(target, &mutate(corpus, &mut rng), &run);
        count += 1;
    }
    assert!(count > 10, "only {count} inputs in the time given");
}

fn fuzz_bytes(target: &str, run: impl Fn(&Vec<u8>)) {
    fuzz(target, &corpus(target), mutate::bytes, run);
}

fn fuzz_text(target: &str, run: impl Fn(&str)) {
    fuzz_bytes(target, |input| run(&String::from_utf8_lossy(input)));
}

fn fuzz_values(target: &str, run: impl Fn(&Value)) {
    let seeds: Vec<Value> =
        corpus(target).iter().map(|b| serde_json::from_slice(b).expect("the corpus is JSON")).collect();
    fuzz(target, &seeds, mutate::values, run);
}

/// The input in a form that can be written to a file to examine a failure.
trait AsInput {
    fn as_input(&self) -> Vec<u8>;
}

impl AsInput for Vec<u8> {
    fn as_input(&self) -> Vec<u8> {
        self.clone()
    }
}

impl AsInput for Value {
    fn as_input(&self) -> Vec<u8> {
        self.to_string().into_bytes()
    }
}

/// One input. If it fails it is kept in a file, to be added to the corpus with the fix.
fn attempt<T: AsInput>(target: &str, input: &T, run: &impl Fn(&T)) {
    let started = Instant::now();
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        run(input);
        assert!(started.elapsed() < SLOW, "it took {:?}", started.elapsed());
    }));
    if let Err(panic) = outcome {
        let path = std::env::temp_dir().join(format!("transom-fuzz-{target}"));
        let kept = std::fs::write(&path, input.as_input());
        let shown = String::from_utf8_lossy(&input.as_input()).chars().take(2_000).collect::<String>();
        let note = format!("target {target} fails; the input is in {} ({kept:?}):\n{shown}", path.display());
        let mut stderr = std::io::stderr().lock();
        drop(std::io::Write::write_all(&mut stderr, note.as_bytes()));
        resume_unwind(panic);
    }
}
