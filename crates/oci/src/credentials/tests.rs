//! Which credentials a reference gets, by table.

use super::*;

fn reference(text: &str) -> Reference {
    let (registry, repository) = text.split_once('/').unwrap();
    Reference { registry: registry.to_owned(), repository: repository.to_owned(), tag: None, digest: None }
}

fn chosen(keys: &[&str], text: &str) -> Vec<String> {
    let all: Vec<Credentials> = keys
        .iter()
        .map(|key| Credentials {
            registry: (*key).to_owned(),
            username: (*key).to_owned(),
            password: String::new(),
            identity_token: None,
        })
        .collect();
    matching(&all, &reference(text)).into_iter().map(|c| c.username.clone()).collect()
}

#[test]
fn the_most_specific_credentials_come_first() {
    let cases: &[(&[&str], &str, &[&str])] = &[
        (&["reg.example"], "reg.example/a/b", &["reg.example"]),
        (&["https://reg.example/v1/"], "reg.example/a/b", &["https://reg.example/v1/"]),
        (&["other.example"], "reg.example/a/b", &[]),
        (&["reg.example:5000"], "reg.example/a", &[]),
        (&["reg.example"], "reg.example:5000/a", &[]),
        (&["*.example"], "reg.example/a", &["*.example"]),
        (&["*.example"], "a.reg.example/a", &[]),
        (&["*.example"], "reg.example.evil/a", &[]),
        (&["re?.example:5000"], "reg.example:5000/a", &["re?.example:5000"]),
        (
            &["*.example", "reg.example", "reg.example/a", "reg.example/a/b"],
            "reg.example/a/b/c",
            &["reg.example/a/b", "reg.example/a", "reg.example", "*.example"],
        ),
        (&["reg.example/team"], "reg.example/teamwork/x", &[]),
        (&["docker.io"], "index.docker.io/a/b", &["docker.io"]),
        (&["https://index.docker.io/v1/"], "docker.io/a/b", &["https://index.docker.io/v1/"]),
    ];
    for (keys, text, expected) in cases {
        assert_eq!(chosen(keys, text), *expected, "{keys:?} for {text}");
    }
}

#[test]
fn both_forms_of_pull_secrets_are_read() {
    let auth = base64::engine::general_purpose::STANDARD.encode("user:pa:ss");
    let new = format!(
        r#"{{"auths":{{"https://a.example/v2/":{{"auth":"{auth}"}},"b.example":{{"username":"u","password":"p"}},"c.example":{{"identitytoken":"t"}},"d.example":{{}}}}}}"#
    );
    let found = from_secret(|key| (key == DOCKER_CONFIG_JSON_KEY).then_some(new.as_bytes())).unwrap();
    let mut found: Vec<_> = found
        .iter()
        .map(|c| (&*c.registry, &*c.username, &*c.password, c.identity_token.as_deref()))
        .collect();
    found.sort_unstable();
    assert_eq!(
        found,
        [
            ("a.example", "user", "pa:ss", None),
            ("b.example", "u", "p", None),
            ("c.example", "", "", Some("t")),
        ]
    );
    let old = format!(r#"{{"a.example":{{"auth":"{auth}"}}}}"#);
    let found = from_secret(|key| (key == DOCKERCFG_KEY).then_some(old.as_bytes())).unwrap();
    assert_eq!(found[0].password, "pa:ss");
    assert_eq!(from_secret(|_| None).unwrap(), []);
}

#[test]
fn errors_do_not_quote_what_was_read() {
    for text in [
        r#"{"auths":{"a":{"password":12345678}}}"#,
        r#"{"auths":{"a":{"auth":"c2VjcmV0c2VjcmV0"}}}"#,
        "secretsecret",
    ] {
        let error = DockerConfig::parse(text.as_bytes()).err().unwrap().to_string();
        for secret in ["12345678", "secret", "c2Vj"] {
            assert!(!error.contains(secret), "{error}");
        }
    }
}

#[cfg(unix)]
fn helper(folder: &std::path::Path, script: &str) -> HelperOptions {
    use std::os::unix::fs::PermissionsExt;
    let path = folder.join("docker-credential-test");
    // Written under another name first: a program that is open for writing cannot be run.
    let temporary = folder.join("new");
    std::fs::write(&temporary, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&temporary, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::rename(&temporary, &path).unwrap();
    HelperOptions { timeout: std::time::Duration::from_secs(20), folder: Some(folder.to_owned()) }
}

#[cfg(unix)]
#[tokio::test]
async fn helpers_return_credentials() {
    let folder = tempfile::tempdir().unwrap();
    let config = DockerConfig::parse(
        br#"{"credHelpers":{"reg.example":"test"},"auths":{"file.example":{"username":"u","password":"p"}},"credsStore":"test"}"#,
    )
    .unwrap();
    let script = r#"read -r host; printf '{"Username":"%s","Secret":"s"}' "$host""#;
    let options = helper(folder.path(), script);
    let found = config.lookup(&reference("reg.example/a"), &options).await.unwrap();
    assert_eq!((&*found[0].username, &*found[0].password), ("reg.example", "s"));
    let found = config.lookup(&reference("file.example/a"), &options).await.unwrap();
    assert_eq!(found[0].username, "u");
    let found = config.lookup(&reference("third.example/a"), &options).await.unwrap();
    assert_eq!(found[0].username, "third.example");

    let options = helper(folder.path(), r#"printf '{"Username":"<token>","Secret":"refresh"}'"#);
    let found = config.lookup(&reference("reg.example/a"), &options).await.unwrap();
    assert_eq!(found[0].identity_token.as_deref(), Some("refresh"));

    let options = helper(folder.path(), "echo credentials not found in native keychain; exit 1");
    assert_eq!(config.lookup(&reference("reg.example/a"), &options).await.unwrap(), []);

    let options = helper(folder.path(), "echo hunter2; exit 1");
    let error = config.lookup(&reference("reg.example/a"), &options).await.unwrap_err().to_string();
    assert!(
        error.contains("docker-credential-test for reg.example") && !error.contains("hunter2"),
        "{error}"
    );

    let options = HelperOptions {
        timeout: std::time::Duration::from_millis(200),
        ..helper(folder.path(), "exec sleep 600")
    };
    let error = config.lookup(&reference("reg.example/a"), &options).await.unwrap_err().to_string();
    assert!(error.contains("did not end within 0.2 s"), "{error}");
}

#[tokio::test]
async fn the_name_of_a_helper_cannot_be_a_path() {
    let config = DockerConfig::parse(br#"{"credsStore":"../../bin/sh"}"#).unwrap();
    let error = config.lookup(&reference("reg.example/a"), &HelperOptions::default()).await.unwrap_err();
    assert!(error.to_string().contains("not allowed"), "{error}");
}
