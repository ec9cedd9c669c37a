//! Commands that concern a whole control plane of another owner or on another server: `adopt`, `export`, `import`.

mod adopt;
mod transfer;

pub(crate) use adopt::{Adopt, adopt};
pub(crate) use transfer::{Export, Import, export, import};
