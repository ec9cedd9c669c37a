//! Messages that fit where they are shown: of one that is too long, the middle is left out.

use std::borrow::Cow;

const GAP: &str = " … ";

/// The text in at most `most` bytes. The beginning is what happened and the end usually why, so both stay:
/// three quarters of what is kept is the beginning.
pub fn shorten(text: &str, most: usize) -> Cow<'_, str> {
    if text.len() <= most {
        return Cow::Borrowed(text);
    }
    let kept = most.saturating_sub(GAP.len());
    let end = kept / 4;
    let boundary = |at: &usize| text.is_char_boundary(*at);
    let head = (0..=kept - end).rev().find(boundary).unwrap_or_default();
    let tail = (text.len() - end..text.len()).find(boundary).unwrap_or(text.len());
    Cow::Owned([&text[..head], GAP, &text[tail..]].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn head_and_tail_stay() {
        assert_eq!(shorten("short", 5), "short");
        assert_eq!(shorten("0123456789abcdefghijklmnopqrstuvwxyz", 21), "0123456789ab … wxyz");
        for most in 5..40 {
            let text = "ä€𝄞x".repeat(50);
            assert!(shorten(&text, most).len() <= most, "{most}");
        }
    }
}
