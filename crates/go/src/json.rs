//! Package encoding/json: how numbers and strings are written.

use crate::strconv::format_float as format;

/// A float: the fewest digits that read back, with an exponent only below 1e-6 and from 1e21 on.
pub fn format_float(float: f64) -> String {
    let size = float.abs();
    let exponent = size != 0.0 && !(1e-6..1e21).contains(&size);
    let mut text = format(float, if exponent { b'e' } else { b'f' }, -1);
    // JSON writes e-9 where strconv writes e-09.
    if exponent && let Some(at) = text.find("e-0") {
        text.replace_range(at + 2..at + 3, "");
    }
    text
}

/// Whether `<`, `>` and `&` are written as escapes, so that the text can stand in HTML.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Html {
    /// As escapes: what `json.Marshal` does.
    Escaped,
    /// As they are: `Encoder.SetEscapeHTML(false)`.
    Plain,
}

/// Bytes that stand for themselves in every string.
const PLAIN: [bool; 256] = {
    let mut plain = [true; 256];
    let mut control = 0;
    while control < 0x20 {
        plain[control] = false;
        control += 1;
    }
    let special = b"\"\\<>&\xe2";
    let mut i = 0;
    while i < special.len() {
        plain[special[i] as usize] = false;
        i += 1;
    }
    plain
};

/// Writes a string in quotes. Bytes that are not UTF-8 become `\ufffd`, one by one.
pub fn append_string(out: &mut Vec<u8>, text: &[u8], html: Html) {
    out.push(b'"');
    match std::str::from_utf8(text) {
        Ok(text) => append_escaped(out, text, html),
        Err(_) => {
            for chunk in text.utf8_chunks() {
                append_escaped(out, chunk.valid(), html);
                chunk.invalid().iter().for_each(|_| out.extend_from_slice(b"\\ufffd"));
            }
        }
    }
    out.push(b'"');
}

fn append_escaped(out: &mut Vec<u8>, text: &str, html: Html) {
    let bytes = text.as_bytes();
    let mut start = 0;
    for (i, &byte) in bytes.iter().enumerate() {
        if PLAIN[usize::from(byte)] {
            continue;
        }
        // U+2028 and U+2029 are the only characters escaped outside ASCII: E2 80 A8 and E2 80 A9.
        let separator = byte == 0xe2 && bytes[i + 1] == 0x80 && matches!(bytes[i + 2], 0xa8 | 0xa9);
        let in_html = html == Html::Escaped && matches!(byte, b'<' | b'>' | b'&');
        let special = byte < 0x20 || byte == b'"' || byte == b'\\' || in_html;
        if !special && !separator {
            continue;
        }
        out.extend_from_slice(&bytes[start..i]);
        start = i + 1;
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x08 => out.extend_from_slice(b"\\b"),
            0x0c => out.extend_from_slice(b"\\f"),
            0xe2 => {
                out.extend_from_slice(if bytes[i + 2] == 0xa8 { b"\\u2028" } else { b"\\u2029" });
                start = i + 3;
            }
            _ => {
                const HEX: &[u8; 16] = b"0123456789abcdef";
                let digits = [HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]];
                out.extend_from_slice(b"\\u00");
                out.extend_from_slice(&digits);
            }
        }
    }
    out.extend_from_slice(&bytes[start..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_have_exponents_where_javascript_has() {
        for (float, text) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1e-6, "0.000001"),
            (1e-7, "1e-7"),
            (1.5e-10, "1.5e-10"),
            (1e20, "100000000000000000000"),
            (1e21, "1e+21"),
            (-1.25e100, "-1.25e+100"),
        ] {
            assert_eq!(format_float(float), text);
        }
    }

    #[test]
    fn strings_are_escaped() {
        let written = |text: &[u8], html| {
            let mut out = Vec::new();
            append_string(&mut out, text, html);
            String::from_utf8(out).unwrap_or_default()
        };
        assert_eq!(written(b"a<b>&\x01\x7f", Html::Plain), "\"a<b>&\\u0001\u{7f}\"");
        assert_eq!(written(b"<", Html::Escaped), "\"\\u003c\"");
        assert_eq!(written("\u{2028}é\u{fffd}".as_bytes(), Html::Plain), "\"\\u2028é\u{fffd}\"");
        assert_eq!(written(b"\xe2\x80x\xff", Html::Plain), "\"\\ufffd\\ufffdx\\ufffd\"");
    }
}
