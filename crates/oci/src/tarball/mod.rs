//! `docker save` archives: what `xpkg build` writes and `xpkg push` reads.
//!
//! Archives have the bytes that the original's have (go-containerregistry's `tarball.Write`), except that compressed
//! layers come from another implementation of deflate: their uncompressed content is equal, their digests are not.

mod build;
mod config;
mod read;
mod runtime;
mod write;

pub use build::{ImageFile, Package, build, build_with};
pub use read::{TarImage, TarLayer, Tarball};
pub use runtime::{RootFiles, RuntimeImage, runtime_image};
pub use write::write;

/// JSON as Go's `encoding/json` writes it: these characters occur in strings only, where Go escapes them.
fn go_json(value: &impl serde::Serialize) -> Result<Vec<u8>, serde_json::Error> {
    let text = serde_json::to_string(value)?;
    let escaped = text
        .replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029");
    Ok(escaped.into_bytes())
}

#[cfg(test)]
mod tests;
