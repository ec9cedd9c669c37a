//! Huffman codes of limited length, by the package-merge algorithm. Where several sets of lengths are equally good, Go's
//! is found: of equal weights, packages come before symbols, and symbols by their value.

/// The code of a symbol. The bits are in the order in which they are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Code {
    pub(super) bits: u16,
    /// Zero for a symbol that does not occur.
    pub(super) length: u8,
}

/// The codes of symbols with these frequencies, each of at most this many bits.
pub(super) fn codes(frequencies: &[u32], bits_max: usize) -> Vec<Code> {
    let mut codes = vec![Code::default(); frequencies.len()];
    let mut symbols: Vec<usize> = (0..frequencies.len()).filter(|i| frequencies[*i] > 0).collect();
    if symbols.len() <= 2 {
        for (bits, symbol) in (0..).zip(symbols) {
            codes[symbol] = Code { bits, length: 1 };
        }
        return codes;
    }
    symbols.sort_by_key(|symbol| (frequencies[*symbol], *symbol));
    let weights: Vec<u64> = symbols.iter().map(|symbol| u64::from(frequencies[*symbol])).collect();
    assign(&symbols, &counts(&weights, bits_max.min(symbols.len() - 1)), &mut codes);
    codes
}

/// How many of the first symbols have a bit on each level, from the lowest: each is as long as there are levels with it.
fn counts(weights: &[u64], levels: usize) -> Vec<usize> {
    // On each level, the symbols merged with the packages of the level below; true for a symbol.
    let mut merged: Vec<Vec<bool>> = Vec::new();
    let mut packages: Vec<u64> = Vec::new();
    for _ in 0..levels {
        let (mut kinds, mut sums) = (Vec::new(), Vec::new());
        let (mut leaves, mut pairs) = (weights.iter().peekable(), packages.iter().peekable());
        loop {
            let is_leaf = match (leaves.peek(), pairs.peek()) {
                (None, None) => break,
                (Some(leaf), Some(pair)) => leaf < pair,
                (leaf, _) => leaf.is_some(),
            };
            sums.extend(if is_leaf { leaves.next() } else { pairs.next() }.copied());
            kinds.push(is_leaf);
        }
        packages = sums.chunks_exact(2).map(|pair| pair[0] + pair[1]).collect();
        merged.push(kinds);
    }
    let mut counts = vec![0; levels];
    let mut taken = 2 * weights.len() - 2;
    for (level, kinds) in merged.iter().enumerate().rev() {
        let leaves = kinds[..taken].iter().filter(|is_leaf| **is_leaf).count();
        counts[level] = leaves;
        taken = 2 * (taken - leaves);
    }
    counts
}

/// Gives the rarest symbols the longest codes; codes of one length ascend with the symbols.
fn assign(symbols: &[usize], counts: &[usize], codes: &mut [Code]) {
    let mut code = 0u16;
    let mut end = symbols.len();
    for (length, level) in (1u8..).zip((0..counts.len()).rev()) {
        code <<= 1;
        let longer = if level == 0 { 0 } else { counts[level - 1] };
        let of_length = counts[level] - longer;
        let mut chunk = symbols[end - of_length..end].to_vec();
        chunk.sort_unstable();
        for symbol in chunk {
            codes[symbol] = Code { bits: (code << (16 - length)).reverse_bits(), length };
            code += 1;
        }
        end -= of_length;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(frequencies: &[u32], bits_max: usize) -> Vec<u8> {
        codes(frequencies, bits_max).iter().map(|code| code.length).collect()
    }

    #[test]
    fn lengths_are_optimal_and_limited() {
        assert_eq!(lengths(&[0, 5, 0], 15), [0, 1, 0]);
        assert_eq!(lengths(&[0, 5, 3], 15), [0, 1, 1]);
        assert_eq!(lengths(&[1, 1, 2, 4], 15), [3, 3, 2, 1]);
        assert_eq!(lengths(&[1, 1, 2, 4], 2), [2, 2, 2, 2]);
        let fibonacci: Vec<u32> = (0..25)
            .scan((1, 1), |pair, _| {
                *pair = (pair.1, pair.0 + pair.1);
                Some(pair.0)
            })
            .collect();
        let limited = lengths(&fibonacci, 15);
        assert_eq!(limited.iter().max(), Some(&15));
        let kraft: f64 = limited.iter().map(|length| 0.5f64.powi(i32::from(*length))).sum();
        assert!((kraft - 1.0).abs() < 1e-9, "{limited:?}");
    }

    #[test]
    fn codes_ascend_with_the_symbols() {
        let codes = codes(&[4, 4, 4, 4], 15);
        let bits: Vec<u16> = codes.iter().map(|code| code.bits.reverse_bits() >> 14).collect();
        assert_eq!(bits, [0, 1, 2, 3]);
    }
}
