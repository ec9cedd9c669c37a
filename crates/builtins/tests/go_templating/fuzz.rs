//! Mutations of small templates (`fuzz/corpus/templates`) through lexer, parser, evaluator and the reader of what they
//! render: for a moment in every run, for longer with `TRANSOM_FUZZ_SECONDS` and `TRANSOM_FUZZ_SEED`.

use std::path::Path;
use std::time::{Duration, Instant};

use transom_builtins::GoTemplating;
use transom_function::Severity;
use transom_testkit::rng::Rng;

use super::{call, inline};

const PIECES: [&str; 20] = [
    "{{", "}}", "{{-", "-}}", "|", "\"", "`", "(", ")", ".", "$", "\n", "---\n", "end", "else", "nil",
    " 9e99 ", "\t", ": ", "é",
];

fn number(key: &str, otherwise: u64) -> u64 {
    std::env::var(key).ok().and_then(|value| value.parse().ok()).unwrap_or(otherwise)
}

fn mutate(rng: &mut Rng, seeds: &[Vec<char>]) -> String {
    let mut text = seeds[rng.index(seeds.len())].clone();
    for _ in 0..=rng.index(4) {
        let at = rng.index(text.len() + 1);
        let to = (at + rng.index(12)).min(text.len());
        match rng.index(4) {
            0 => drop(text.drain(at..to)),
            1 => {
                let again = text[at..to].to_vec();
                text.splice(at..at, again);
            }
            2 => {
                let other = &seeds[rng.index(seeds.len())];
                let from = rng.index(other.len());
                let piece = other[from..(from + 40).min(other.len())].to_vec();
                text.splice(at..to, piece);
            }
            _ => drop(text.splice(at..at, PIECES[rng.index(PIECES.len())].chars())),
        }
    }
    text.into_iter().collect()
}

/// The function may refuse a template, but never fails a call, and refusing changes nothing.
fn hold(function: &GoTemplating, template: &str) {
    let request = inline(template).desired("old", serde_json::json!({"kind": "Old"})).build();
    let before = request.desired.clone();
    let began = Instant::now();
    let response = call(function, request);
    assert!(began.elapsed() < Duration::from_secs(10), "{:?} for {template:?}", began.elapsed());
    if response.results.iter().any(|result| result.severity() == Severity::Fatal) {
        assert_eq!(response.desired, before, "{template:?}");
    }
    for resource in response.desired.iter().flat_map(|state| state.resources.values()) {
        assert!(resource.object()["kind"].is_string(), "{template:?}");
    }
}

#[test]
fn mutations_are_answered() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/templates");
    let files = folder.read_dir().expect("a folder").flatten();
    let mut texts: Vec<String> =
        files.map(|file| std::fs::read_to_string(file.path()).expect("a text")).collect();
    texts.sort();
    let function = GoTemplating::default();
    for text in &texts {
        hold(&function, text);
    }
    let seeds: Vec<Vec<char>> = texts.iter().map(|text| text.chars().collect()).collect();
    let mut rng = Rng::new(number("TRANSOM_FUZZ_SEED", 1));
    let until = Instant::now() + Duration::from_secs(number("TRANSOM_FUZZ_SECONDS", 1));
    let mut count = 0;
    while Instant::now() < until {
        hold(&function, &mutate(&mut rng, &seeds));
        count += 1;
    }
    assert!(count > 10, "only {count} templates in the time given");
}
