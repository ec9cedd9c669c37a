//! A provider for files in a folder. `docs/providers.md` shows it.

use serde::{Deserialize, Serialize};
use serde_json::json;
use std::{fs, io, path::PathBuf};
use transom_provider::schema::{object, text};
use transom_provider::*;

#[derive(Clone, Default, Deserialize, Serialize)]
#[serde(default)]
struct File {
    content: Option<String>,
}

struct Files(PathBuf);

impl External for Files {
    type Parameters = File;
    type Session = PathBuf;

    async fn connect(&self, resource: &Resource<'_, File>) -> Result<PathBuf> {
        Ok(self.0.join(resource.external_name()))
    }

    async fn observe(&self, path: &PathBuf, resource: &Resource<'_, File>) -> Result<Observation<File>> {
        match fs::read_to_string(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Observation::missing()),
            Err(e) => Err(Error::domain(e)),
            Ok(found) if resource.parameters.content.as_ref() == Some(&found) => {
                Ok(Observation::up_to_date())
            }
            Ok(_) => Ok(Observation::differs("the content differs")),
        }
    }

    async fn create(&self, path: &PathBuf, resource: &Resource<'_, File>) -> Result<Creation> {
        fs::write(path, resource.parameters.content.as_deref().unwrap_or_default()).map_err(Error::domain)?;
        Ok(Creation::default())
    }

    async fn update(&self, path: &PathBuf, resource: &Resource<'_, File>) -> Result<Update> {
        self.create(path, resource).await.map(|_| Update::default())
    }

    async fn delete(&self, path: &PathBuf, _: &Resource<'_, File>) -> Result<()> {
        fs::remove_file(path).map_err(Error::domain)
    }
}

pub(crate) fn provider(folder: PathBuf) -> Provider {
    let parameters = object("A file.", &["content"], json!({"content": text("What is in it.")}));
    let kind = ManagedKind::new("files.example.org", "v1", "File", "files", parameters);
    Provider::new("provider-files", Settings::default()).manages(kind, Files(folder))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args().nth(1).ok_or("usage: provider-files FOLDER")?;
    let client = Client::try_default().await?; // the cluster of $KUBECONFIG, or the one that it runs in
    let interrupted = async { drop(tokio::signal::ctrl_c().await) };
    Ok(provider(folder.into()).run(client, interrupted).await?)
}
