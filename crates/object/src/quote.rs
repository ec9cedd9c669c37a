//! Strings in double quotes as Go's `%q` writes them: the form every Kubernetes message uses.

pub use transom_go::strconv::quote;
pub use transom_go::unicode::is_print;
