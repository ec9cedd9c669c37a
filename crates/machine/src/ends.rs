//! What is remarkable about the end of programs that were stopped, for the conditions of their revisions.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Of how many programs the end is known: that a revision was deleted is not known here.
const MAX_ENDS: usize = 256;

/// The newest ends, by revision.
pub(crate) struct Ends<K>(Mutex<VecDeque<(K, String)>>);

impl<K> Default for Ends<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Eq> Ends<K> {
    fn lock(&self) -> MutexGuard<'_, VecDeque<(K, String)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces what is known of a revision. Without room the oldest end is forgotten.
    pub(crate) fn insert(&self, revision: K, end: String) {
        let mut ends = self.lock();
        ends.retain(|(known, _)| *known != revision);
        if ends.len() == MAX_ENDS {
            ends.pop_front();
        }
        ends.push_back((revision, end));
    }

    /// A revision runs again.
    pub(crate) fn remove<Q: ?Sized>(&self, revision: &Q)
    where
        K: PartialEq<Q>,
    {
        self.lock().retain(|(known, _)| known != revision);
    }

    /// What is known of a revision.
    pub(crate) fn get<Q: ?Sized>(&self, revision: &Q) -> Option<String>
    where
        K: PartialEq<Q>,
    {
        self.lock().iter().find(|(known, _)| known == revision).map(|(_, end)| end.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_ends_are_known() {
        let ends = Ends::<String>::default();
        for number in 0..=MAX_ENDS {
            ends.insert(format!("r{number}"), "killed".to_owned());
        }
        assert_eq!(ends.lock().len(), MAX_ENDS);
        assert_eq!(ends.get("r0"), None);
        ends.insert("r1".to_owned(), "killed again".to_owned());
        assert_eq!(ends.get("r1").as_deref(), Some("killed again"));
        assert_eq!(ends.lock().len(), MAX_ENDS);
        ends.remove("r1");
        assert_eq!(ends.get("r1"), None);
    }
}
