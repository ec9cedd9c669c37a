//! Writes what the genuine function answers, for tests that run without it: some questions with their answers in full,
//! in the form of the recorded calls that the tests replay, and the digests of the answers to all of them.

use super::answers::{self, Answers, DIED, QuestionDigest, Recording};
use super::compare::compare;
use super::generate::Questions;
use super::known::Known;
use super::{Failure, Options, Side, json, judge};
use std::collections::BTreeSet;
use std::path::Path;
use transom_function::{RunFunctionRequest, RunFunctionResponse};

/// Answers longer than this say nothing that shorter ones do not.
const LONGEST: usize = 7_000;

pub(crate) async fn write(
    file: &Path,
    options: &Options,
    questions: Questions,
    (theirs, ours): (&Side, &Side),
) -> Result<(), Failure> {
    let mut known = Known::read(options.known.as_deref())?;
    let mut rows = Vec::new();
    for index in 0..questions.count {
        let request = questions.get(index);
        let Ok(response) = theirs.ask(&request).await else { continue };
        // What is meant to differ is not what the tests hold us to.
        let difference = ours.ask(&request).await.map(|ours| compare(&json(&response), &json(&ours)).err());
        if difference.is_ok_and(|found| found.is_some_and(|found| known.expects(&options.function, &found))) {
            continue;
        }
        let name = format!("{}-{index}", options.seed);
        let row = serde_json::to_string(
            &serde_json::json!({"name": name, "request": request, "response": response}),
        )?;
        if row.len() <= LONGEST {
            rows.push(row);
        }
        if rows.len() as u64 == options.record {
            break;
        }
    }
    let text = format!("{{\"function\": \"{}\", \"cases\": [\n{}\n]}}\n", options.function, rows.join(",\n"));
    Ok(std::fs::write(file, text)?)
}

type Outcome = Result<RunFunctionResponse, String>;

/// Writes the digests of all genuine answers.
pub(crate) async fn write_answers(
    file: &Path,
    options: &Options,
    questions: Questions,
    (theirs, ours): (&Side, &Side),
) -> Result<(), Failure> {
    let mut known = Known::read(options.known.as_deref())?;
    let mut digest = QuestionDigest::default();
    for index in 0..questions.count {
        digest.add(&questions.get(index));
    }
    let mut recording = Recording {
        genuine: options.version_of_theirs.clone().unwrap_or_default(),
        seed: options.seed,
        questions: digest.finish(),
        ..Recording::default()
    };
    for (digests, difference) in ask_all(questions, (theirs, ours)).await? {
        let mut answers = Answers { digests, reason: None };
        if let Some(difference) = difference
            && let Some(reason) = known.reason(&options.function, &difference)
        {
            let at = recording.reasons.iter().position(|known| known == reason);
            answers.reason = Some(at.unwrap_or(recording.reasons.len()) + 1);
            if at.is_none() {
                recording.reasons.push(reason.to_owned());
            }
        }
        recording.answers.push(answers);
    }
    Ok(std::fs::write(file, recording.write())?)
}

/// The digests of the genuine answers to a question, and how ours differs if it is none of them.
type Asked = (BTreeSet<String>, Option<String>);

/// Asks everything, a few questions at a time.
async fn ask_all(questions: Questions, (theirs, ours): (&Side, &Side)) -> Result<Vec<Asked>, Failure> {
    const AT_ONCE: u64 = 8;
    let mut lanes = Vec::new();
    for lane in 0..AT_ONCE {
        let (theirs, ours) = (theirs.clone(), ours.clone());
        lanes.push(tokio::spawn(async move {
            let mut asked = Vec::new();
            for index in (lane..questions.count).step_by(AT_ONCE as usize) {
                let request = questions.get(index);
                let actual = ours.ask(&request).await;
                asked.push((index, ask_often(&theirs, &request, &actual, index).await));
            }
            asked
        }));
    }
    let mut asked = Vec::new();
    for lane in lanes {
        asked.extend(lane.await?);
    }
    asked.sort_by_key(|(index, _)| *index);
    // A server that dies takes other questions with it: those are asked again, alone.
    for (index, asked) in asked.iter_mut().filter(|(_, (digests, _))| digests.contains(DIED)) {
        let request = questions.get(*index);
        *asked = ask_often(theirs, &request, &ours.ask(&request).await, *index).await;
    }
    Ok(asked.into_iter().map(|(_, asked)| asked).collect())
}

/// All answers that the genuine function was seen to give, and how ours differs from the last if it is none of them.
async fn ask_often(theirs: &Side, request: &RunFunctionRequest, actual: &Outcome, index: u64) -> Asked {
    /// So often it is asked at least, and at most while ours is none of the answers.
    const ALWAYS: u32 = 3;
    const MOST: u32 = 24;
    let (mut digests, mut difference) = (BTreeSet::new(), None);
    for time in 0..MOST {
        let expected = theirs.ask(request).await;
        digests.insert(answers::digest(expected.as_ref().map_err(String::as_str)));
        let verdict = judge(index, &expected, actual);
        difference = if time == 0 { verdict.difference } else { difference.and(verdict.difference) };
        if digests.contains(DIED) || (time + 1 >= ALWAYS && difference.is_none()) {
            break;
        }
    }
    (digests, difference)
}
