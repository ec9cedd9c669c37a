//! Connections that are kept for the next statement, and how many are open. Pure: the time is an argument.

use std::collections::VecDeque;
use tokio::time::Instant;

/// Idle connections to the databases of one server.
pub(super) struct Idle<C> {
    /// The one that was used last is the last.
    kept: VecDeque<Kept<C>>,
    /// How many are in use.
    used: usize,
    /// Whether a task calls [`expire`](Self::expire) when it is due.
    pub(super) is_swept: bool,
}

struct Kept<C> {
    database: String,
    connection: C,
    /// When it is closed; none for never.
    until: Option<Instant>,
}

impl<C> Default for Idle<C> {
    fn default() -> Self {
        Self { kept: VecDeque::new(), used: 0, is_swept: false }
    }
}

impl<C> Idle<C> {
    /// A connection to a database that can still be used: the one that was used last. Others to it that cannot be used are closed.
    /// If there is none the caller opens one, for which there is room then: of those to other databases, the ones that were not
    /// used for longest are closed. Either way, one more is in use.
    pub(super) fn take(&mut self, database: &str, max: usize, is_usable: impl Fn(&C) -> bool) -> Option<C> {
        let taken = self.newest(database, is_usable);
        if taken.is_none() {
            let excess = (self.used + self.kept.len() + 1).saturating_sub(max).min(self.kept.len());
            self.kept.drain(..excess);
        }
        self.used += 1;
        taken
    }

    fn newest(&mut self, database: &str, is_usable: impl Fn(&C) -> bool) -> Option<C> {
        loop {
            let at = self.kept.iter().rposition(|kept| kept.database == database)?;
            let connection = self.kept.remove(at)?.connection;
            if is_usable(&connection) {
                return Some(connection);
            }
        }
    }

    /// A connection is no longer in use. It is kept, unless there is none because it cannot be used again.
    pub(super) fn put_back(&mut self, database: &str, connection: Option<C>, until: Option<Instant>) {
        self.used = self.used.saturating_sub(1);
        if let Some(connection) = connection {
            self.kept.push_back(Kept { database: database.to_owned(), connection, until });
        }
    }

    /// Closes those whose time is over. Returns when it is due again.
    pub(super) fn expire(&mut self, now: Instant) -> Option<Instant> {
        self.kept.retain(|kept| kept.until.is_none_or(|until| until > now));
        self.kept.iter().filter_map(|kept| kept.until).min()
    }

    /// Closes those to a database.
    pub(super) fn close(&mut self, database: &str) {
        self.kept.retain(|kept| kept.database != database);
    }

    /// Closes all.
    pub(super) fn clear(&mut self) {
        self.kept.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const MAX: usize = 4;

    /// Connections are numbers here. All of them were used.
    fn idle(kept: &[(&str, u32)], until: Option<Instant>) -> Idle<u32> {
        let mut idle = Idle::default();
        for (database, connection) in kept {
            assert_eq!(idle.take("none", MAX, |_| true), None);
            idle.put_back(database, Some(*connection), until);
        }
        idle
    }

    #[test]
    fn a_connection_is_used_again_for_its_database_only() {
        let mut idle = idle(&[("a", 1), ("b", 2), ("a", 3)], None);
        assert_eq!(idle.take("a", MAX, |_| true), Some(3), "the one that was used last");
        assert_eq!(idle.take("c", MAX, |_| true), None);
        assert_eq!(idle.take("a", MAX, |_| true), Some(1));
        assert_eq!(idle.take("a", MAX, |_| true), None);
        let mut idle = self::idle(&[("b", 2)], None);
        assert_eq!(idle.take("b", MAX, |_| false), None, "it broke");
        assert_eq!(idle.take("b", MAX, |_| true), None, "and is not kept");
    }

    #[test]
    fn as_many_are_open_as_there_may_be_and_those_used_long_ago_make_room() {
        let mut idle = idle(&[("a", 1), ("b", 2), ("c", 3), ("d", 4)], None);
        assert_eq!(idle.take("b", MAX, |_| true), Some(2), "which takes no room");
        assert_eq!(idle.take("e", MAX, |_| true), None, "in the place of 1");
        assert_eq!((idle.used, idle.kept.len()), (2, 2));
        assert_eq!(idle.take("a", MAX, |_| true), None, "in the place of 3");
        idle.put_back("b", None, None);
        assert_eq!((idle.used, idle.kept.len()), (2, 1));
        assert_eq!(idle.take("d", MAX, |_| true), Some(4), "there was room");
    }

    /// Those that wait for a turn find what the ones before them gave back, however many there are.
    #[test]
    fn what_is_given_back_is_not_closed_for_those_that_wait() {
        let mut idle = idle(&[], None);
        for connection in 0..4 {
            assert_eq!(idle.take("a", MAX, |_| true), None);
            assert_eq!(connection, idle.used - 1);
        }
        for connection in 0..4 {
            idle.put_back("a", Some(connection), None);
        }
        for _ in 0..4 {
            assert!(idle.take("a", MAX, |_| true).is_some());
        }
    }

    #[test]
    fn those_with_a_time_are_closed_then() {
        let (now, second) = (Instant::now(), Duration::from_secs(1));
        let mut idle = idle(&[("default", 1)], None);
        idle.put_back("a", Some(2), Some(now + second));
        idle.put_back("b", Some(3), Some(now + 2 * second));
        assert_eq!(idle.expire(now), Some(now + second));
        assert_eq!(idle.expire(now + second), Some(now + 2 * second));
        assert_eq!(idle.take("a", MAX, |_| true), None);
        assert_eq!(idle.expire(now + 2 * second), None);
        assert_eq!(idle.take("default", MAX, |_| true), Some(1), "this one stays");
    }

    #[test]
    fn those_to_a_database_that_is_dropped_are_closed() {
        let mut idle = idle(&[("a", 1), ("b", 2), ("a", 3)], None);
        idle.close("a");
        assert_eq!((idle.take("a", MAX, |_| true), idle.take("b", MAX, |_| true)), (None, Some(2)));
    }
}
