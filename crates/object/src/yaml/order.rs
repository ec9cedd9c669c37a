//! The order in which keys are written: letters by code point, runs of digits by their number, and
//! everything that is not a letter before letters (`a2` < `a10`, `a-b` < `ab`).
//!
//! Upstream's comparison has cycles (`b2` < `b10` < `b1x` < `b2`), which the sorts of the standard library
//! may answer with a panic; so the sort is our own. It starts from the order of bytes and is therefore
//! deterministic where upstream is not.

use std::cmp::Ordering;

/// Sorts entries by key. A merge sort, because it is content with any comparison.
pub(super) fn sort<T: Copy>(entries: &mut [(&str, T)]) {
    if entries.len() < 2 {
        return;
    }
    let (left, right) = entries.split_at_mut(entries.len() / 2);
    sort(left);
    sort(right);
    if natural(left[left.len() - 1].0, right[0].0).is_le() {
        return;
    }
    let mut merged = Vec::with_capacity(left.len() + right.len());
    let (mut i, mut j) = (0, 0);
    while i < left.len() && j < right.len() {
        if natural(left[i].0, right[j].0).is_le() {
            merged.push(left[i]);
            i += 1;
        } else {
            merged.push(right[j]);
            j += 1;
        }
    }
    merged.extend_from_slice(&left[i..]);
    merged.extend_from_slice(&right[j..]);
    entries.copy_from_slice(&merged);
}

fn natural(a: &str, b: &str) -> Ordering {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    for (i, (&x, &y)) in a.iter().zip(&b).enumerate() {
        if x == y {
            continue;
        }
        return match (x.is_alphabetic(), y.is_alphabetic()) {
            (true, true) => x.cmp(&y),
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) => {
                // A zero counts only behind a digit that does: `109` is more than `11`, `a01` equals `a1`.
                let inside = (x == '0' || y == '0') && significant_digit_before(&a[..i]);
                let (number_a, end_a) = number(&a[i..], inside);
                let (number_b, end_b) = number(&b[i..], inside);
                number_a.cmp(&number_b).then(end_a.cmp(&end_b)).then(x.cmp(&y))
            }
        };
    }
    a.len().cmp(&b.len())
}

fn significant_digit_before(text: &[char]) -> bool {
    text.iter().rev().take_while(|c| c.is_ascii_digit()).any(|&c| c != '0')
}

/// The number that the leading digits spell, wrapping as in Go, and how many there are.
fn number(text: &[char], inside: bool) -> (i64, usize) {
    let digits = text.iter().map_while(|c| c.to_digit(10));
    digits
        .fold((i64::from(inside), 0), |(n, len), d| (n.wrapping_mul(10).wrapping_add(i64::from(d)), len + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sorted<'k>(keys: &[&'k str]) -> Vec<&'k str> {
        let mut entries: Vec<(&str, ())> = keys.iter().map(|&key| (key, ())).collect();
        sort(&mut entries);
        entries.into_iter().map(|(key, ())| key).collect()
    }

    #[test]
    fn keys_in_natural_order() {
        let keys =
            ["", "-", "0", "1", "1a", "2", "10", "A", "a", "a-b", "a1", "a01", "a2", "a10", "aB", "ab", "b"];
        let shuffled: Vec<&str> = keys.iter().rev().copied().collect();
        assert_eq!(sorted(&shuffled), keys);
    }

    proptest! {
        #[test]
        fn sorting_is_a_permutation_and_comparison_antisymmetric(keys in prop::collection::vec("[a0129:-]{0,5}", 0..40)) {
            let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
            let (mut before, mut after) = (keys.clone(), sorted(&keys));
            before.sort_unstable();
            after.sort_unstable();
            prop_assert_eq!(before, after);
            for pair in keys.windows(2) {
                prop_assert_eq!(natural(pair[0], pair[1]), natural(pair[1], pair[0]).reverse());
            }
        }
    }
}
