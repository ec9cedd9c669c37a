//! What a store guarantees to its users, whether it is in memory or on disk: revisions and preconditions, lists and history,
//! watches.

mod reading;
mod watching;
mod writing;
