//! A stable sort whose result is that of Go's `sort.SliceStable` even where the order contradicts itself: insertion sort
//! in blocks of twenty, which SymMerge (Kim and Kutzner, 2004) then merges in place.

const BLOCK: usize = 20;

pub(super) fn sort<T>(items: &mut [T], less: &impl Fn(&T, &T) -> bool) {
    for block in items.chunks_mut(BLOCK) {
        insertion(block, less);
    }
    let mut width = BLOCK;
    while width < items.len() {
        for pair in items.chunks_mut(2 * width) {
            if pair.len() > width {
                merge(pair, width, less);
            }
        }
        width *= 2;
    }
}

fn insertion<T>(items: &mut [T], less: &impl Fn(&T, &T) -> bool) {
    for i in 1..items.len() {
        let mut place = i;
        while place > 0 && less(&items[place], &items[place - 1]) {
            items.swap(place, place - 1);
            place -= 1;
        }
    }
}

/// The first place in a range for which a test fails, if it holds for all before and none after.
fn first(mut low: usize, mut high: usize, holds: impl Fn(usize) -> bool) -> usize {
    while low < high {
        let middle = usize::midpoint(low, high);
        if holds(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// Merges the sorted parts before and from `split`.
fn merge<T>(items: &mut [T], split: usize, less: &impl Fn(&T, &T) -> bool) {
    let end = items.len();
    if split == 1 {
        let place = first(split, end, |i| less(&items[i], &items[0]));
        items[..place].rotate_left(1);
        return;
    }
    if end - split == 1 {
        let place = first(0, split, |i| !less(&items[split], &items[i]));
        items[place..].rotate_right(1);
        return;
    }
    let middle = end / 2;
    let sum = middle + split;
    let range = if split > middle { (sum - end, middle) } else { (0, split) };
    let from = first(range.0, range.1, |i| !less(&items[sum - 1 - i], &items[i]));
    let to = sum - from;
    if from < split && split < to {
        items[from..to].rotate_left(split - from);
    }
    let (left, right) = items.split_at_mut(middle);
    if 0 < from && from < middle {
        merge(left, from, less);
    }
    if middle < to && to < end {
        merge(right, to - middle, less);
    }
}

#[cfg(test)]
mod tests {
    use super::sort;

    #[test]
    fn sorts_stably() {
        for n in [0, 1, 2, 19, 20, 21, 40, 41, 100, 257] {
            let mut items: Vec<(u64, u64)> = (0..n).map(|i| ((i * 7919 + 13) % 17, i)).collect();
            let mut wanted = items.clone();
            wanted.sort_by_key(|(key, _)| *key);
            sort(&mut items, &|a, b| a.0 < b.0);
            assert_eq!(items, wanted, "{n}");
        }
    }

    #[test]
    fn an_order_that_is_always_true_reverses_short_lists() {
        let mut items = [1, 2, 3, 4];
        sort(&mut items, &|_, _| true);
        assert_eq!(items, [4, 3, 2, 1]);
    }
}
