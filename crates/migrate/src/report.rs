//! The result of a rehearsal, as text and as JSON.

use crate::rehearsal::Write;
use crate::unsupported::Unsupported;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// For programs.
pub fn as_json(writes: &[Write], unsupported: &[Unsupported]) -> Value {
    let write = |w: &Write| json!({"method": w.method, "path": w.path, "changes": w.changes});
    let left = |u: &Unsupported| json!({"object": u.object, "reason": u.reason});
    let writes: Vec<Value> = writes.iter().map(write).collect();
    let left: Vec<Value> = unsupported.iter().map(left).collect();
    json!({"writes": writes, "unsupported": left})
}

/// For people: each write with its changes below it.
pub fn as_text(writes: &[Write], unsupported: &[Unsupported]) -> String {
    let mut text = String::new();
    for Write { method, path, changes } in writes {
        let _ = writeln!(text, "{method} {path}");
        changes.iter().for_each(|change| {
            let _ = writeln!(text, "  {change}");
        });
    }
    for Unsupported { object, reason } in unsupported {
        let _ = writeln!(text, "not supported: {object}: {reason}");
    }
    if text.is_empty() {
        text.push_str("Nothing would change, and everything is supported.\n");
    } else {
        let _ =
            writeln!(text, "{} writes, {} objects that are not supported.", writes.len(), unsupported.len());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_has_a_line_for_each_finding() {
        assert_eq!(as_text(&[], &[]), "Nothing would change, and everything is supported.\n");
        let write = Write {
            method: "PATCH".to_owned(),
            path: "/x".to_owned(),
            changes: vec!["a: 1 -> 2".to_owned()],
        };
        let left = Unsupported { object: "Operation o".to_owned(), reason: "Operations are not run" };
        let text = as_text(std::slice::from_ref(&write), std::slice::from_ref(&left));
        assert_eq!(
            text,
            "PATCH /x\n  a: 1 -> 2\nnot supported: Operation o: Operations are not run\n1 writes, 1 objects that are not supported.\n"
        );
        assert_eq!(as_json(&[write], &[left])["writes"][0]["changes"], json!(["a: 1 -> 2"]));
    }
}
