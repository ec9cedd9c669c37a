//! Base64 of bytes in the JSON form of protobuf messages: both alphabets, every padding, spare bits, line breaks.

use crate::Case;
use crate::dice::Dice;
use serde_json::json;
use transom_function::RunFunctionRequest;

pub(crate) fn case(dice: &mut Dice) -> Case {
    let text = text(dice);
    let request = json!({"observed": {"composite": {"connectionDetails": {"k": text}}}});
    let answer = match serde_json::from_value::<RunFunctionRequest>(request) {
        Ok(request) => {
            let state = request.observed.unwrap_or_default();
            let details = state.composite.unwrap_or_default().connection_details;
            details.get("k").into_iter().flatten().map(|byte| format!("{byte:02x}")).collect()
        }
        Err(_) => "error".to_owned(),
    };
    (json!({"text": text}), answer)
}

fn text(dice: &mut Dice) -> String {
    const STANDARD: &[char] = &['A', 'Z', 'a', 'z', '0', '9', 'B', 'g', 'w', 'Q', '+', '/'];
    const FOR_URLS: &[char] = &['A', 'Z', 'a', 'z', '0', '9', 'B', 'g', 'w', 'Q', '-', '_'];
    let alphabet = if dice.percent(50) { STANDARD } else { FOR_URLS };
    let mut text: String = (0..dice.below(14)).map(|_| dice.one(alphabet)).collect();
    match dice.below(8) {
        // As it should be.
        0..3 => text.extend(std::iter::repeat_n('=', (4 - text.len() % 4) % 4)),
        3 => text.extend(std::iter::repeat_n('=', dice.below(4))),
        _ => {}
    }
    for _ in 0..dice.below(3) {
        if dice.percent(25) {
            // Only the end is certain to be no place within a letter.
            let at = if text.is_ascii() { dice.below(text.len() + 1) } else { text.len() };
            text.insert(at, dice.one(&['\n', '\r', '=', '?', ' ', '-', '/', '_', '+', 'é']));
        }
    }
    text
}
