//! The trust root of keyless signatures: a file that a flag names, a copy of it in the data directory, or that of the
//! public Sigstore where cosign keeps it. Nothing is downloaded: a trust root that comes over the network is as trustworthy as the network.

use super::args::ControllerArgs;
use super::data_location::{DataLocation, public_trust_root};
use std::io::{ErrorKind, Read};
use std::path::Path;
use std::sync::Arc;
use transom_console::Failure;
use transom_oci::ImageSource;
use transom_oci::signature::{CosignVerifier, TRUST_ROOT_BYTES_MAX, TrustRoot};

/// Verifies the signatures that lie beside the images of a source.
pub(super) fn verifier(
    source: Arc<dyn ImageSource>,
    args: &ControllerArgs,
    location: &DataLocation,
) -> Result<Arc<CosignVerifier>, Failure> {
    let cached = location.trust_root_file();
    let root = match &args.sigstore_trusted_root {
        Some(path) => Some(read(path)?.ok_or_else(|| missing(path))?),
        None => match read(&cached)? {
            None => public_trust_root().and_then(|path| read_if_usable(&path)),
            found => found,
        },
    };
    let remedy = format!(
        "start with --sigstore-trusted-root FILE, run `cosign initialize`, or put its trusted_root.json at {} and start again",
        cached.display()
    );
    Ok(Arc::new(CosignVerifier::new(source, root, remedy)))
}

fn missing(path: &Path) -> Failure {
    Failure::new(format!("there is no file {}, which --sigstore-trusted-root names", path.display())).remedy(
        "`cosign initialize` puts that of the public Sigstore at \
         ~/.sigstore/root/tuf-repo-cdn.sigstore.dev/targets/trusted_root.json; `cosign trusted-root create` makes one",
    )
}

/// Reads a trust root that was not asked for: one that cannot be used is ignored.
fn read_if_usable(path: &Path) -> Option<TrustRoot> {
    read(path).unwrap_or_else(|failure| {
        tracing::warn!(%failure, "the trust root of the public Sigstore is not used");
        None
    })
}

/// Reads a trust root, if the file exists.
pub(crate) fn read(path: &Path) -> Result<Option<TrustRoot>, Failure> {
    let file = match std::fs::File::open(path) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
        opened => opened,
    };
    let mut bytes = Vec::new();
    // One byte more than is allowed is enough to be refused.
    let most = TRUST_ROOT_BYTES_MAX as u64 + 1;
    let read = file.and_then(|file| file.take(most).read_to_end(&mut bytes));
    read.map_err(|e| Failure::new(format!("cannot read {}: {e}", path.display())))?;
    let parsed = TrustRoot::parse(&bytes).map_err(|e| Failure::new(format!("{}: {e}", path.display())));
    parsed.map(Some)
}
