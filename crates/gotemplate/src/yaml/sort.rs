//! yaml.v3's order of keys: numbers before text, and digits inside text by value (`k9` before `k10`).

use crate::value::Key;
use transom_go::unicode::{is_digit, is_letter};

/// Merge sort by hand: the order is not total, which the standard sort would not tolerate.
pub(super) fn sorted<T>(mut entries: Vec<(Key, T)>) -> Vec<(Key, T)> {
    if entries.len() < 2 {
        return entries;
    }
    let right = sorted(entries.split_off(entries.len() / 2));
    let left = sorted(entries);
    let mut out = Vec::with_capacity(left.len() + right.len());
    let (mut left, mut right) = (left.into_iter().peekable(), right.into_iter().peekable());
    loop {
        let take_right = match (left.peek(), right.peek()) {
            (Some(a), Some(b)) => less(&b.0, &a.0),
            (None, Some(_)) => true,
            (Some(_), None) => false,
            (None, None) => return out,
        };
        out.extend(if take_right { right.next() } else { left.next() });
    }
}

fn number(key: &Key) -> Option<f64> {
    match key {
        Key::Int(value) => Some(*value as f64),
        Key::Float(value) => Some(*value),
        Key::Bool(value) => Some(f64::from(u8::from(*value))),
        _ => None,
    }
}

/// The order of reflect's kinds.
fn rank(key: &Key) -> u8 {
    match key {
        Key::Nil => 0,
        Key::Bool(_) => 1,
        Key::Int(_) => 2,
        Key::Float(_) => 14,
        Key::Str(_) => 24,
    }
}

fn less(a: &Key, b: &Key) -> bool {
    if let (Some(x), Some(y)) = (number(a), number(b)) {
        return if x == y { rank(a) < rank(b) } else { x < y };
    }
    match (a, b) {
        (Key::Str(a), Key::Str(b)) => less_text(&a.lossy(), &b.lossy()),
        _ => rank(a) < rank(b),
    }
}

fn less_text(a: &str, b: &str) -> bool {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut in_digits = false;
    for at in 0..a.len().min(b.len()) {
        let (x, y) = (a[at], b[at]);
        if x == y {
            in_digits = is_digit(x);
            continue;
        }
        let (x_letter, y_letter) = (is_letter(x), is_letter(y));
        if x_letter && y_letter {
            return x < y;
        }
        if x_letter || y_letter {
            return if in_digits { x_letter } else { y_letter };
        }
        return less_numbers(&a, &b, at);
    }
    a.len() < b.len()
}

fn less_numbers(a: &[char], b: &[char], at: usize) -> bool {
    let mut seed = 0i64;
    if a[at] == '0' || b[at] == '0' {
        let before = a[..at].iter().rev().take_while(|rune| is_digit(**rune));
        seed = i64::from(before.into_iter().any(|rune| *rune != '0'));
    }
    let value = |text: &[char]| {
        let digits = text[at..].iter().take_while(|rune| is_digit(**rune));
        digits.fold((seed, 0usize), |(value, count), rune| {
            let digit = i64::from(u32::from(*rune)) - i64::from(u32::from('0'));
            (value.wrapping_mul(10).wrapping_add(digit), count + 1)
        })
    };
    let ((x, x_length), (y, y_length)) = (value(a), value(b));
    if x != y {
        return x < y;
    }
    if x_length != y_length {
        return x_length < y_length;
    }
    a[at] < b[at]
}
