//! Which ImageConfigs apply to an image, and what follows for it.

use super::Case;
use serde_json::{Value, json};
use transom_packages::Reference;
use transom_packages::image_config::{ImageConfigError, ImagePlan, plan};
use transom_testkit::rng::Rng;
use transom_xapi::ImageConfig;

const IMAGES: [&str; 7] = [
    "xpkg.example.org/acme/platform:v1.0.0",
    "xpkg.example.org/acme/platform-two:v1.0.0",
    "xpkg.example.org/acme/provider-aws-s3:v1.2.0",
    "xpkg.example.org/other/function:v0.1.0",
    "r.io:5000/acme/platform:v1.0.0",
    "mirror.example.org/acme/platform:v1.0.0",
    "xpkg.example.org/acme/platform@sha256:1111111111111111111111111111111111111111111111111111111111111111",
];
const PREFIXES: [&str; 9] = [
    "xpkg.example.org",
    "xpkg.example.org/",
    "xpkg.example.org/acme",
    "xpkg.example.org/acme/platform:",
    "mirror.example.org",
    "mirror.example.org/acme/",
    "r.io",
    "nowhere.example.org",
    "",
];
const REWRITES: [&str; 8] = [
    "mirror.example.org",
    "mirror.example.org/",
    "mirror.example.org/acme",
    "r.io:5000/xpkg/",
    "xpkg.example.org/acme",
    "127.0.0.1:5000/",
    "Not A Reference/",
    "",
];

pub(crate) fn case(rng: &mut Rng) -> Case {
    let image = *rng.pick(&IMAGES);
    let configs: Vec<Value> = (0..rng.index(7)).map(|i| config(rng, i, image)).collect();
    let read: Result<Vec<ImageConfig>, _> = configs.iter().cloned().map(serde_json::from_value).collect();
    let answer = match (read, Reference::parse(image)) {
        (Ok(read), Ok(reference)) => match plan(&read, &reference) {
            Ok(plan) => plan_to_json(&plan).to_string(),
            Err(ImageConfigError::NoRewritePrefix { .. }) => "error: rewrite prefix is missing".to_owned(),
            Err(ImageConfigError::InvalidRewrite { .. }) => "error: cannot parse".to_owned(),
            Err(ImageConfigError::NoCosign { .. }) => {
                "error: cosign verification config is missing".to_owned()
            }
        },
        (read, reference) => format!("error: {read:?} {reference:?}"),
    };
    (json!({"configs": configs, "image": image}), vec![answer])
}

fn config(rng: &mut Rng, number: usize, image: &str) -> Value {
    let matches: Vec<Value> =
        (0..=rng.index(3)).map(|_| json!({"type": "Prefix", "prefix": prefix(rng, image)})).collect();
    let mut spec = json!({"matchImages": matches});
    if rng.permille(450) {
        let valid = if rng.permille(60) { REWRITES.len() } else { REWRITES.len() - 2 };
        spec["rewriteImage"] = json!({"prefix": REWRITES[rng.index(valid)]});
    }
    if rng.permille(450) {
        let name = if rng.permille(50) { "" } else { *rng.pick(&["one", "two", "three"]) };
        spec["registry"] = json!({"authentication": {"pullSecretRef": {"name": name}}});
    }
    if rng.permille(350) {
        let authorities: Vec<Value> =
            (0..=rng.index(2)).map(|i| json!({"name": format!("authority-{i}")})).collect();
        spec["verification"] = json!({"provider": "Cosign", "cosign": {"authorities": authorities}});
        if rng.permille(60) {
            spec["verification"] = json!({"provider": "Cosign"});
        }
    }
    if rng.permille(350) {
        let reference = json!({
            "apiVersion": "pkg.crossplane.io/v1beta1", "kind": "DeploymentRuntimeConfig",
            "name": *rng.pick(&["large", "small"]),
        });
        spec["runtime"] = json!({"configRef": reference});
    }
    json!({"apiVersion": "pkg.crossplane.io/v1beta1", "kind": "ImageConfig", "metadata": {"name": format!("c{number}")}, "spec": spec})
}

/// A beginning of the image, or a prefix of the list.
fn prefix(rng: &mut Rng, image: &str) -> String {
    if rng.permille(400) {
        return image[..rng.index(image.len()) + 1].to_owned();
    }
    (*rng.pick(&PREFIXES)).to_owned()
}

fn plan_to_json(plan: &ImagePlan) -> Value {
    let by = |reason: &str| {
        let applied = plan.applied.iter().find(|applied| applied.reason == reason);
        applied.map_or("", |applied| applied.name.as_str()).to_owned()
    };
    let authorities: Vec<&str> =
        plan.verification.iter().flatten().map(|authority| authority.name.as_str()).collect();
    json!({
        "resolved": plan.resolved.to_string(), "rewrite": by("RewriteImage"),
        "secret": plan.pull_secret.clone().unwrap_or_default(), "authentication": by("SetImagePullSecret"),
        "authorities": authorities, "verification": by("VerifyImage"),
        "runtime": by("ConfigureRuntime"),
        "runtimeConfig": plan.runtime_config.as_ref().map_or("", |reference| reference.name.as_str()),
    })
}
