//! What a misspelled word was probably meant to be.

/// The word that is nearest to what was written, if any is near enough to be meant.
pub fn nearest<'a>(written: &str, words: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let nearest = words.into_iter().map(|word| (distance(written, word), word)).min();
    nearest.filter(|(distance, _)| *distance <= 3).map(|(_, word)| word)
}

/// How many characters to change, whatever their case, to make one word of the other.
fn distance(a: &str, b: &str) -> usize {
    let (a, b) = (a.to_lowercase(), b.to_lowercase());
    let width = b.chars().count();
    let mut row: Vec<usize> = (0..=width).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.chars().enumerate() {
            let change = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[width]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_have_a_distance() {
        assert_eq!(distance("functionref", "functionRef"), 0);
        assert_eq!(distance("pipelines", "pipeline"), 1);
        assert_eq!(distance("", "mode"), 4);
    }

    #[test]
    fn only_a_near_word_is_meant() {
        let words = ["function-auto-ready", "function-patch-and-transform"];
        assert_eq!(nearest("function-patch-and-transfrom", words), Some(words[1]));
        assert_eq!(nearest("function-kcl", words), None);
    }
}
