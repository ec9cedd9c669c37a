//! sprig's `semver` and `semverCompare`, with the versions and constraints of Masterminds/semver.

use std::rc::Rc;

use super::args::text;
use crate::functions::{Native, Type, fixed};
use crate::value::Value;
use transom_go::semver::{Constraint, Version};

pub(super) const FUNCTIONS: &[Native] = &[
    fixed("semver", &[Type::Str], |_, args| {
        Ok(Value::Version(Rc::new(Version::parse(&text(args, 0)?.lossy())?)))
    }),
    fixed("semverCompare", &[Type::Str, Type::Str], |_, args| {
        let constraint = Constraint::parse(&text(args, 0)?.lossy())?;
        let version = Version::parse(&text(args, 1)?.lossy())?;
        Ok(Value::Bool(constraint.check(&version)))
    }),
];
