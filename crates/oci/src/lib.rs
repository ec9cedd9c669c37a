//! Images in registries, folders and files: the only crate that does I/O for images.
//!
//! | module | purpose |
//! |---|---|
//! | [`remote`] | registries over HTTP: pulling, pushing, tags, authentication |
//! | [`layout`] | OCI layouts, folders of `*.xpkg` files and bundle files in place of registries |
//! | [`mounts`] | folders and files mounted in place of registries |
//! | [`tarball`] | `docker save` archives: what `xpkg build` writes and `xpkg push` reads |
//! | [`daemon`] | images of a Docker daemon, as `docker save` archives |
//! | [`cache`] | packages on disk by digest |
//! | [`credentials`] | pull secrets, Docker's configuration, credential helpers |
//! | [`signature`] | signatures and attestations of cosign |
//! | [`package`] | from a reference to `package.yaml`, from any source |
//! | [`image`] | manifests, indexes, descriptors |
//! | [`layer`] | one layer, searched as it streams by |
//! | `rootfs` | the layers of an image, unpacked into a folder; on Linux |
//! | [`testing`] | a registry in the process of a test |
//!
//! Nothing here reads flags or the environment, prints, or trusts what it reads: digests and lengths are verified,
//! sizes and times are bounded, and messages never contain credentials.
//!
//! What a package is and which version of it is wanted is decided in `transom_packages`; this crate must not know.

#![warn(missing_docs)]

pub mod cache;
pub mod credentials;
pub mod daemon;
mod failure;
pub mod image;
mod image_parts;
pub mod layer;
pub mod layout;
pub mod mounts;
pub mod package;
pub mod remote;
#[cfg(target_os = "linux")]
pub mod rootfs;
pub mod signature;
mod source;
pub mod tarball;
pub mod testing;

pub use image_parts::{ImageParts, index_of, references};
pub use source::{Blob, Chunks, ImageSource, Part, RawManifest};
