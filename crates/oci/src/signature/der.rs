//! Just enough of DER to take certificates and timestamps apart where their very bytes matter, and to put together what
//! logs signed. Only what is well formed is read: definite lengths in their shortest form, tags of one byte.

/// One value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Element<'a> {
    pub(super) tag: u8,
    pub(super) content: &'a [u8],
    /// Tag, length and content.
    pub(super) whole: &'a [u8],
}

pub(super) const INTEGER: u8 = 0x02;
pub(super) const OCTET_STRING: u8 = 0x04;
pub(super) const OID: u8 = 0x06;
pub(super) const UTF8_STRING: u8 = 0x0c;
pub(super) const GENERALIZED_TIME: u8 = 0x18;
pub(super) const SEQUENCE: u8 = 0x30;
pub(super) const SET: u8 = 0x31;

/// The constructed value with a context-specific tag.
pub(super) const fn context(number: u8) -> u8 {
    0xa0 | number
}

/// Takes the next value off the input; nothing at its end, or if it is malformed.
pub(super) fn next<'a>(input: &mut &'a [u8]) -> Option<Element<'a>> {
    let all = *input;
    let (&tag, rest) = all.split_first()?;
    if tag & 0x1f == 0x1f {
        return None;
    }
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81..=0x84 => {
            let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            let length = bytes.iter().fold(0_usize, |sum, byte| (sum << 8) | usize::from(*byte));
            if bytes[0] == 0 || length < 0x80 {
                return None;
            }
            (length, rest)
        }
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(length)?;
    *input = rest;
    Some(Element { tag, content, whole: &all[..all.len() - rest.len()] })
}

/// Takes the content of the next value off the input if it has a tag.
pub(super) fn expect<'a>(input: &mut &'a [u8], tag: u8) -> Option<&'a [u8]> {
    let mut rest = *input;
    let element = next(&mut rest).filter(|element| element.tag == tag)?;
    *input = rest;
    Some(element.content)
}

/// The content of the only value of some bytes.
pub(super) fn only(mut input: &[u8], tag: u8) -> Option<&[u8]> {
    let content = expect(&mut input, tag)?;
    input.is_empty().then_some(content)
}

/// All values of some bytes; nothing if one of them is malformed.
pub(super) fn all(mut input: &[u8]) -> Option<Vec<Element<'_>>> {
    let mut elements = Vec::new();
    while !input.is_empty() {
        elements.push(next(&mut input)?);
    }
    Some(elements)
}

/// A value.
pub(super) fn encode(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len().to_be_bytes();
    let significant = &length[length.iter().position(|byte| *byte != 0).unwrap_or(length.len() - 1)..];
    let mut bytes = vec![tag];
    match significant {
        [short @ 0..=0x7f] => bytes.push(*short),
        long => {
            // A length has at most eight bytes.
            bytes.push(0x80 | u8::try_from(long.len()).unwrap_or(8));
            bytes.extend_from_slice(long);
        }
    }
    bytes.extend_from_slice(content);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_read_back() {
        for length in [0, 1, 0x7f, 0x80, 0xff, 0x100, 0x1_0000] {
            let content = vec![7; length];
            let bytes = encode(SEQUENCE, &content);
            assert_eq!(only(&bytes, SEQUENCE), Some(&content[..]), "{length}");
            let mut cut = &bytes[..bytes.len() - 1];
            assert_eq!(next(&mut cut), None, "{length}");
        }
    }

    #[test]
    fn malformed_values_are_not_read() {
        let malformed: [&[u8]; 8] = [
            &[],
            &[0x30],
            &[0x30, 0x80, 0, 0],
            &[0x30, 0x81, 0x01, 0],
            &[0x30, 0x82, 0, 0x80],
            &[0x30, 0x85, 1, 1, 1, 1, 1],
            &[0x1f, 0x81, 0x01, 0],
            &[0x30, 0x84, 0xff, 0xff, 0xff, 0xff],
        ];
        for mut input in malformed {
            assert_eq!(next(&mut input), None, "{input:x?}");
        }
        assert_eq!(only(&[0x30, 0, 0], SEQUENCE), None);
        assert_eq!(all(&[0x30, 0, 0x30, 1]), None);
    }
}
