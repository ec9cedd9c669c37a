//! Programs that return credentials: `docker-credential-NAME get`.

use super::{CredentialsError, canonical_host};
use serde::Deserialize;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use transom_packages::Credentials;

/// The most that a helper may print.
const OUTPUT_BYTES_MAX: u64 = 64 << 10;
/// The user that means that the secret is an identity token.
const TOKEN_USER: &str = "<token>";

/// How helpers run.
#[derive(Clone, Debug)]
pub struct HelperOptions {
    /// How long one may take.
    pub timeout: Duration,
    /// The folder that they are in; without one, they are found as programs are.
    pub folder: Option<PathBuf>,
}

impl Default for HelperOptions {
    fn default() -> Self {
        Self { timeout: Duration::from_secs(20), folder: None }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Output {
    username: String,
    secret: String,
}

/// The credentials that a helper has for a registry.
pub(super) async fn get(
    name: &str,
    host: &str,
    options: &HelperOptions,
) -> Result<Option<Credentials>, CredentialsError> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_' || c == '.';
    if name.is_empty() || name.starts_with('.') || !name.chars().all(allowed) {
        return Err(CredentialsError::new(
            "the name of a credential helper has characters that are not allowed",
        ));
    }
    let program = format!("docker-credential-{name}");
    let failed = |problem: &str| CredentialsError::new(format!("{program} for {host}: {problem}"));
    let run = run(&program, host, options);
    let (success, output) = match tokio::time::timeout(options.timeout, run).await {
        Err(_) => return Err(failed(&format!("did not end within {} s", options.timeout.as_secs_f32()))),
        Ok(Err(error)) => {
            return Err(failed(&format!(
                "cannot be run: {error}; install it or remove it from the Docker configuration"
            )));
        }
        Ok(Ok(ended)) => ended,
    };
    if !success {
        // The protocol has no code for this, only this text.
        let missing = String::from_utf8_lossy(&output).contains("credentials not found");
        return if missing { Ok(None) } else { Err(failed("failed; run it by hand to see why")) };
    }
    let output: Output =
        serde_json::from_slice(&output).map_err(|_| failed("did not print JSON with Username and Secret"))?;
    let registry = canonical_host(host).to_owned();
    Ok(Some(if output.username == TOKEN_USER {
        let identity_token = Some(output.secret);
        Credentials { registry, username: String::new(), password: String::new(), identity_token }
    } else {
        Credentials { registry, username: output.username, password: output.secret, identity_token: None }
    }))
}

/// Runs a helper to its end: whether it succeeded, and what it printed.
async fn run(program: &str, host: &str, options: &HelperOptions) -> std::io::Result<(bool, Vec<u8>)> {
    let path = options.folder.as_ref().map_or_else(|| PathBuf::from(program), |folder| folder.join(program));
    let mut child = tokio::process::Command::new(path)
        .arg("get")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    let server = if host == "index.docker.io" { "https://index.docker.io/v1/" } else { host };
    if let Some(mut input) = child.stdin.take() {
        // A helper that does not read its input still answers.
        drop(input.write_all(server.as_bytes()).await);
    }
    let mut output = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        stdout.take(OUTPUT_BYTES_MAX).read_to_end(&mut output).await?;
    }
    Ok((child.wait().await?.success(), output))
}
