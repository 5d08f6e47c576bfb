//! The word that was probably meant.

/// The nearest of these words, if any is near enough to be a slip of the finger.
pub(super) fn nearest<'a>(word: &str, words: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let far = word.chars().count().max(3) / 3 + 1;
    let all = words.into_iter().map(|other| (distance(word, other), other));
    all.filter(|(steps, _)| *steps <= far).min_by_key(|(steps, _)| *steps).map(|(_, other)| other)
}

/// "; did you mean X?", or nothing.
pub(super) fn hint<'a>(word: &str, words: impl IntoIterator<Item = &'a str>) -> String {
    nearest(word, words).map(|near| format!("; did you mean {near}?")).unwrap_or_default()
}

/// Characters to add, drop or change to make one word of the other.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.to_lowercase().chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (line, a) in from.to_lowercase().chars().enumerate() {
        let mut next = vec![line + 1];
        for (column, b) in to.iter().enumerate() {
            let at = |row: &[usize], index: usize| row.get(index).copied().unwrap_or(usize::MAX - 1);
            let changed = at(&row, column) + usize::from(a != *b);
            next.push(changed.min(at(&row, column + 1) + 1).min(at(&next, column) + 1));
        }
        row = next;
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_slip_is_recognised_and_another_word_is_not() {
        let words = ["namespace/look", "namespace/retry", "main/create"];
        assert_eq!(nearest("namespace/lok", words), Some("namespace/look"));
        assert_eq!(nearest("main/crate", words), Some("main/create"));
        assert_eq!(nearest("Main/Create", words), Some("main/create"));
        assert_eq!(nearest("zzz", words), None);
        assert_eq!(nearest("", []), None);
    }
}
