//! The guide to composing, followed to the letter: its files are written, its commands run, and what they print holds
//! what the page shows.

use super::fixtures::{Files, documents};
use serde_json::Value;

const GUIDE: &str = include_str!("../../../../docs/composing.md");

/// The fenced blocks of a page: their language and their text.
fn blocks(page: &str) -> Vec<(&str, &str)> {
    let mut fences = page.split("```");
    let mut blocks = Vec::new();
    while let (Some(_), Some(block)) = (fences.next(), fences.next()) {
        blocks.push(block.split_once('\n').expect("a fence ends its line"));
    }
    blocks
}

/// Whether everything that is shown is there. Maps may be shown in part, lists not.
fn holds(whole: &Value, shown: &Value) -> bool {
    match (whole, shown) {
        (Value::Object(whole), Value::Object(shown)) => {
            shown.iter().all(|(key, value)| whole.get(key).is_some_and(|w| holds(w, value)))
        }
        (Value::Array(whole), Value::Array(shown)) => {
            whole.len() == shown.len() && whole.iter().zip(shown).all(|(w, s)| holds(w, s))
        }
        _ => whole == shown,
    }
}

#[test]
fn the_guide_can_be_followed() {
    let files = Files::new();
    let mut printed: Option<Vec<Value>> = None;
    let mut commands = 0;
    for (language, text) in blocks(GUIDE) {
        if let Some(command) = text.strip_prefix("transom render ") {
            printed = Some(files.render(&command.split_whitespace().collect::<Vec<_>>()));
            commands += 1;
        } else if let Some((name, _)) = text.strip_prefix("# ").and_then(|t| t.split_once('\n')) {
            files.write(name, text);
        } else {
            assert_eq!(language, "yaml", "{text}");
            let printed = printed.take().expect("a command before what it prints");
            let shown = documents(text.as_bytes());
            assert_eq!(printed.len(), shown.len(), "{text}\n{printed:#?}");
            for (whole, shown) in printed.iter().zip(&shown) {
                assert!(holds(whole, shown), "{shown:#}\nis not in\n{whole:#}");
            }
        }
    }
    assert_eq!(commands, 4);
}

#[test]
fn what_is_shown_must_be_there() {
    let whole = serde_json::json!({"a": {"b": 1, "c": [1, {"d": 2, "e": 3}]}});
    assert!(holds(&whole, &serde_json::json!({"a": {"c": [1, {"d": 2}]}})));
    assert!(!holds(&whole, &serde_json::json!({"a": {"c": [1]}})));
    assert!(!holds(&whole, &serde_json::json!({"a": {"b": 2}})));
}
