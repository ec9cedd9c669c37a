//! go-yaml accepts any indentation of the further lines of a quoted text and of `[…]` and `{…}`; the parser does not.
//! Users rely on it, mostly in templates that insert JSON of several lines. Such lines are indented enough for the
//! parser. This does not change their meaning, because space at their beginning has none.
//!
//! This is done only to a text the parser has refused for its indentation, so a misjudged line can at worst leave it
//! refused.

/// The text with the further lines of quoted texts and flow collections indented beyond everything else, and by how
/// much; `None` when there are none.
pub(super) fn relax(text: &str) -> Option<(String, usize)> {
    let indentation = |line: &str| line.len() - line.trim_start_matches(' ').len();
    let pad = 1 + text.lines().map(indentation).max()?;
    let mut scan = Scan { text: text.as_bytes(), at: 0, inside: Vec::new() };
    scan.stream();
    if scan.inside.is_empty() {
        return None;
    }
    // One long line must not make a text of many lines grow without bound.
    let growth = pad.saturating_mul(scan.inside.len());
    if growth > text.len().saturating_mul(4).max(1 << 20) {
        return None;
    }
    let mut relaxed = String::with_capacity(text.len() + growth);
    let mut done = 0;
    for start in scan.inside {
        relaxed.push_str(&text[done..start]);
        relaxed.extend(std::iter::repeat_n(' ', pad));
        done = start;
    }
    relaxed.push_str(&text[done..]);
    Some((relaxed, pad))
}

/// A scan of just enough of YAML to find where quoted texts and flow collections begin and end.
struct Scan<'t> {
    text: &'t [u8],
    at: usize,
    /// Where lines begin that begin inside of one.
    inside: Vec<usize>,
}

impl Scan<'_> {
    fn byte(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn blank_follows(&self) -> bool {
        matches!(self.text.get(self.at + 1), None | Some(b' ' | b'\t' | b'\n' | b'\r'))
    }

    fn skip(&mut self, skipped: impl Fn(u8) -> bool) {
        while self.byte().is_some_and(&skipped) {
            self.at += 1;
        }
    }

    fn skip_line(&mut self) {
        self.skip(|byte| byte != b'\n');
        self.at += 1;
    }

    fn stream(&mut self) {
        while self.at < self.text.len() {
            let start = self.at;
            self.skip(|byte| byte == b' ');
            self.line(start);
        }
    }

    /// The nodes on a line of a block, from the first of them on.
    fn line(&mut self, start: usize) {
        // The column of the block that the next scalar belongs to.
        let mut column = self.at - start;
        loop {
            self.skip(|byte| matches!(byte, b' ' | b'\t'));
            match self.byte() {
                None => return,
                Some(b'\n') => return self.skip_line(),
                Some(b'#') => return self.skip_line(),
                Some(b'-' | b'?' | b':') if self.blank_follows() => {
                    column = self.at - start;
                    self.at += 1;
                }
                Some(b'!' | b'&' | b'*') => self.skip(|byte| !matches!(byte, b' ' | b'\t' | b'\n')),
                Some(b'|' | b'>') => return self.block_scalar(column),
                Some(quote @ (b'"' | b'\'')) => {
                    column = self.at - start;
                    self.quoted(quote);
                }
                Some(b'[' | b'{') => {
                    column = self.at - start;
                    self.flow();
                }
                Some(_) => {
                    column = self.at - start;
                    self.plain();
                }
            }
        }
    }

    /// A plain scalar on one line, up to what makes it a key, a comment or its end.
    fn plain(&mut self) {
        while let Some(byte) = self.byte() {
            let spaced = self.at > 0 && matches!(self.text[self.at - 1], b' ' | b'\t');
            if byte == b'\n' || (byte == b'#' && spaced) || (byte == b':' && self.blank_follows()) {
                return;
            }
            self.at += 1;
        }
    }

    /// A text of its own lines: all that are blank or indented more than the block it belongs to.
    fn block_scalar(&mut self, column: usize) {
        self.skip_line();
        while self.at < self.text.len() {
            let start = self.at;
            self.skip(|byte| byte == b' ');
            if self.byte() != Some(b'\n') && self.at - start <= column {
                self.at = start;
                return;
            }
            self.skip_line();
        }
    }

    fn quoted(&mut self, quote: u8) {
        self.at += 1;
        while let Some(byte) = self.byte() {
            self.at += 1;
            match byte {
                b'\\' if quote == b'"' => {
                    // An escaped line break is one, too.
                    if self.byte() == Some(b'\n') {
                        self.inside.push(self.at + 1);
                    }
                    self.at += 1;
                }
                b'\'' if quote == b'\'' && self.byte() == Some(b'\'') => self.at += 1,
                b'\n' => self.inside.push(self.at),
                byte if byte == quote => return,
                _ => {}
            }
        }
    }

    fn flow(&mut self) {
        let mut depth = 0_usize;
        // Quotes count only where a value can begin.
        let mut fresh = true;
        while let Some(byte) = self.byte() {
            match byte {
                b'"' | b'\'' if fresh => {
                    self.quoted(byte);
                    fresh = false;
                    continue;
                }
                b'#' if self.at > 0 && matches!(self.text[self.at - 1], b' ' | b'\t' | b'\n') => {
                    self.skip(|byte| byte != b'\n');
                    continue;
                }
                b'[' | b'{' => {
                    depth += 1;
                    fresh = true;
                }
                b']' | b'}' => {
                    depth = depth.saturating_sub(1);
                    fresh = false;
                    if depth == 0 {
                        self.at += 1;
                        return;
                    }
                }
                b'\n' => self.inside.push(self.at + 1),
                b',' | b':' => fresh = true,
                b' ' | b'\t' | b'\r' => {}
                _ => fresh = false,
            }
            self.at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn padded(text: &str) -> Vec<String> {
        let (relaxed, pad) = relax(text).unwrap_or_default();
        let prefix = " ".repeat(pad.max(1));
        relaxed.lines().filter_map(|line| Some(line.strip_prefix(&prefix)?.to_owned())).collect()
    }

    #[test]
    fn further_lines_are_found() {
        assert_eq!(padded("a: [\n1,\n2]\nb: c\n"), ["1,", "2]"]);
        assert_eq!(padded("- a: {\n\"x]\": 'y\n}', # {\nz: 1 }\n- b\n"), ["\"x]\": 'y", "}', # {", "z: 1 }"]);
        assert_eq!(padded("a: \"x\\\"\ny\\\nz\"\nb: 1\n"), ["y\\", "z\""]);
        assert_eq!(padded("a: 'it''s\nso'\n"), ["so'"]);
        assert_eq!(padded("? !t &x [a\n]\n: b\n"), ["]"]);
    }

    #[test]
    fn nothing_else_is() {
        for text in [
            "a: b\nc: [1, 2]\n",
            "a: it's\nb: x[\nc: 5\" x\n",
            "a: |\n  \"x\n  [\nb: 1\n",
            "- |\n \"x\n- a: >\n    [\n  b: 1\n",
            "# [\na: b # \"\n",
            "a: x #y\n",
            "",
            "\n",
        ] {
            assert_eq!(relax(text), None, "{text:?}");
        }
    }

    #[test]
    fn growth_is_bounded() {
        let text = format!("a: [\n{}{}]\n", "1,\n".repeat(100_000), " ".repeat(100_000));
        assert_eq!(relax(&text), None);
    }
}
