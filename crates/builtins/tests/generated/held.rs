//! Ten thousand questions to each function, held to what the genuine function answered when it was asked.
//!
//! The answers are digests (`tests/answers`, see `examples/differential/answers.rs`), so that functions are covered that
//! the package registry does not hand out, and none needs Go. What differs on purpose is marked with its reason, and a
//! mark that is not needed fails the test as well. A plain run asks every fourth question, `TRANSOM_QUESTIONS=all` all.

use super::answers::{Answers, DIED, FAILED, QuestionDigest, Recording, digest};
use super::generate::Questions;
use std::path::{Path, PathBuf};
use transom_builtins::find;
use transom_function::{RunFunctionResponse, answer};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/answers")
}

fn read(text: &str) -> Result<Recording, String> {
    let (header, lines) = text.split_once("\n\n").ok_or("there is no header")?;
    let mut recording = Recording::default();
    for line in header.lines() {
        let (name, value) = line.split_once('\t').ok_or_else(|| format!("no value: {line}"))?;
        match name {
            "genuine" => value.clone_into(&mut recording.genuine),
            "seed" => recording.seed = value.parse().map_err(|_| format!("no number: {value}"))?,
            "questions" => value.clone_into(&mut recording.questions),
            "reason" => recording.reasons.push(value.to_owned()),
            _ => return Err(format!("unknown: {line}")),
        }
    }
    recording.answers = lines.lines().map(line_of_answers).collect::<Result<_, _>>()?;
    Ok(recording)
}

fn line_of_answers(line: &str) -> Result<Answers, String> {
    let mut answers = Answers::default();
    for word in line.split(' ') {
        match word.strip_prefix('!') {
            Some(number) => answers.reason = Some(number.parse().map_err(|_| format!("no number: {line}"))?),
            None => drop(answers.digests.insert(word.to_owned())),
        }
    }
    Ok(answers)
}

/// Whether our answer is as recorded, or differs as recorded.
fn judge(recorded: &Answers, ours: Result<&RunFunctionResponse, &str>) -> Result<(), String> {
    let ours = digest(ours);
    // Of what the original died there is no answer to compare with; that we have one is all there is to say.
    let died = recorded.digests.contains(DIED) && ours != FAILED;
    match (recorded.digests.contains(&ours) || died, recorded.reason) {
        (true, None) | (false, Some(_)) => Ok(()),
        (true, Some(_)) => Err("is as the genuine answer, but a reason says that it differs".to_owned()),
        (false, None) => Err(format!("{ours} is none of {:?}", recorded.digests)),
    }
}

/// Every how many questions are asked.
fn stride() -> usize {
    match std::env::var("TRANSOM_QUESTIONS").as_deref() {
        Ok("all") => 1,
        Ok(other) => panic!("TRANSOM_QUESTIONS is `all` or not set, not {other:?}"),
        Err(_) => 4,
    }
}

fn hold(function: &str) {
    let text = std::fs::read_to_string(folder().join(format!("{function}.txt"))).unwrap();
    let recording = read(&text).unwrap();
    assert_eq!(recording.write(), text, "{function}: a recording is written as it was read");
    let count = recording.answers.len() as u64;
    let questions = Questions::generated(function, recording.seed, count).unwrap();
    assert!(count >= 10_000, "{function}: only {count} answers");
    let (built_in, mut wrong) = (find(function).unwrap(), Vec::new());
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let (mut asked, stride) = (QuestionDigest::default(), stride());
    for (index, recorded) in (0..).zip(&recording.answers) {
        let request = questions.get(index);
        asked.add(&request);
        if !(index as usize).is_multiple_of(stride) {
            continue;
        }
        let ours = runtime.block_on(answer(&*built_in, request.clone())).map_err(|error| error.to_string());
        if let Err(problem) = judge(recorded, ours.as_ref().map_err(String::as_str)) {
            let (request, said) =
                (serde_json::to_string(&request), ours.map(|ours| serde_json::to_string(&ours).unwrap()));
            wrong.push(format!("question {index}: {problem}\n  asked {}\n  ours {said:?}", request.unwrap()));
        }
    }
    assert_eq!(
        asked.finish(),
        recording.questions,
        "{function}: the questions have changed; record the answers anew"
    );
    let shown = wrong.iter().take(3).cloned().collect::<Vec<_>>().join("\n");
    assert!(wrong.is_empty(), "{function}, held to {}: {} differ\n{shown}", recording.genuine, wrong.len());
}

macro_rules! held {
    ($($test:ident $function:literal)*) => {
        $(#[test] fn $test() { hold($function); })*

        #[test]
        fn every_recording_is_replayed() {
            let mut recorded: Vec<String> =
                std::fs::read_dir(folder()).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
            recorded.sort();
            assert_eq!(recorded, [$(concat!($function, ".txt")),*]);
        }
    };
}

held! {
    auto_ready "function-auto-ready"
    cel_filter "function-cel-filter"
    cidr "function-cidr"
    dummy "function-dummy"
    environment_configs "function-environment-configs"
    extra_resources "function-extra-resources"
    patch_and_transform "function-patch-and-transform"
    sequencer "function-sequencer"
    status_transformer "function-status-transformer"
    tag_manager "function-tag-manager"
}

#[test]
fn differences_are_noticed() {
    let answers = |digest: &str, reason| Answers { digests: [digest.to_owned()].into(), reason };
    let said = RunFunctionResponse::default();
    let right = digest(Ok(&said));
    assert_eq!(judge(&answers(&right, None), Ok(&said)), Ok(()));
    assert!(judge(&answers("00000000", None), Ok(&said)).is_err());
    assert_eq!(judge(&answers("00000000", Some(1)), Ok(&said)), Ok(()));
    assert!(judge(&answers(&right, Some(1)), Ok(&said)).is_err(), "the reason is not needed");
    assert!(judge(&answers(&right, None), Err("no answer")).is_err());
    assert_eq!(judge(&answers(DIED, None), Ok(&said)), Ok(()));
}
