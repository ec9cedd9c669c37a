//! The paths of API requests. Names come from users and are escaped, so that none of them leads to another path.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use std::fmt::Write;

const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The discovery document of a group and version.
pub(super) fn group_version(group: &str, version: &str) -> String {
    if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") }
}

/// One segment of a path, escaped: names that come from users may contain anything.
pub(super) fn segment(text: &str) -> impl std::fmt::Display {
    utf8_percent_encode(text, UNRESERVED)
}

/// Query parameters. Those with an empty value are left out.
#[derive(Default)]
pub(super) struct Query(String);

impl Query {
    pub(super) fn with(mut self, name: &str, value: &str) -> Self {
        if !value.is_empty() {
            let separator = if self.0.is_empty() { '?' } else { '&' };
            let _ = write!(self.0, "{separator}{name}={}", segment(value));
        }
        self
    }

    pub(super) fn on(self, path: String) -> String {
        path + &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_users_write_cannot_leave_its_segment() {
        assert_eq!(segment("a/../b?x").to_string(), "a%2F..%2Fb%3Fx");
        let query = Query::default().with("a", "").with("b", "x=y,z").with("c", "1");
        assert_eq!(query.on("/p".to_owned()), "/p?b=x%3Dy%2Cz&c=1");
    }
}
