//! Docker's configuration file of the machine that a control plane runs on.

use super::{CredentialsError, DockerConfig, HelperOptions};
use std::io::ErrorKind;
use std::path::PathBuf;
use transom_packages::{Credentials, Reference};

/// Docker's configuration file of a machine. It is read when it is needed, so that a login needs no new start.
#[derive(Clone, Debug)]
pub struct MachineConfig {
    path: PathBuf,
    programs: HelperOptions,
}

impl MachineConfig {
    /// The file, which need not exist.
    pub fn new(path: PathBuf) -> Self {
        Self { path, programs: HelperOptions::default() }
    }

    /// The same file, whose programs run otherwise.
    pub fn running(self, programs: HelperOptions) -> Self {
        Self { programs, ..self }
    }

    /// The credentials for a reference. Runs programs.
    pub async fn lookup(&self, reference: &Reference) -> Result<Vec<Credentials>, CredentialsError> {
        let named = self.path.display();
        let bytes = match tokio::fs::read(&self.path).await {
            Ok(bytes) => bytes,
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return Ok(Vec::new());
            }
            Err(e) => return Err(CredentialsError::new(format!("cannot read {named}: {e}"))),
        };
        let config =
            DockerConfig::parse(&bytes).map_err(|e| CredentialsError::new(format!("{named}: {e}")))?;
        config.lookup(reference, &self.programs).await
    }
}
