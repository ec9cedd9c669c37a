//! The CRD of ImageConfigs: which images they concern, and how these are pulled, verified and run.

use super::age_column;
use super::schema::{
    Crd, Version, choice, flag, list, object, ruled, runtime_config_reference, secret_reference, text, with,
};
use crate::constants::{group, kind};
use serde_json::{Value, json};

const NOT_EMPTY: (&str, &str) = ("size(self) > 0", "matchImages should have at least one element.");

pub(super) fn image_config() -> Value {
    let version = Version {
        name: "v1beta1",
        columns: vec![age_column()],
        description: "An ImageConfig configures how the images of packages are pulled, verified, rewritten and run.",
        properties: json!({"spec": spec()}),
        required: &[],
        status: false,
        deprecated: None,
    };
    Crd {
        group: group::PKG,
        kind: kind::IMAGE_CONFIG,
        plural: "imageconfigs",
        short_names: &[],
        categories: &["crossplane"],
        namespaced: false,
        versions: vec![version],
    }
    .build()
}

fn spec() -> Value {
    let how = with(choice("How to match.", &["Prefix"]), json!({"default": "Prefix"}));
    let matching = object(
        "Images to configure.",
        &["prefix"],
        json!({
            "type": how,
            "prefix": text(
                "A prefix of image references. If several ImageConfigs match an image, the one with the longest prefix is used.",
            ),
        }),
    );
    let matching = list("Which images to configure: those that match any entry.", matching);
    let authentication = object(
        "How to authenticate.",
        &["pullSecretRef"],
        json!({"pullSecretRef": secret_reference("The Secret with the credentials.")}),
    );
    let prefix = text("Replaces the matched prefix.");
    let runtime = runtime_config_reference("The runtime config to use instead of the one of the package.");
    object(
        "What to configure.",
        &["matchImages"],
        json!({
            "matchImages": ruled(matching, &[NOT_EMPTY]),
            "registry": object("How to pull.", &[], json!({"authentication": authentication})),
            "rewriteImage": object("How to rewrite the path of the image.", &["prefix"], json!({"prefix": prefix})),
            "runtime": object("How to run the package.", &[], json!({"configRef": runtime})),
            "verification": verification(),
        }),
    )
}

fn verification() -> Value {
    let authorities =
        list("The authorities whose signatures are accepted; one of them is enough.", authority());
    let cosign = object("How to verify with Cosign.", &["authorities"], json!({"authorities": authorities}));
    object(
        "How to verify the image.",
        &["provider"],
        json!({"provider": choice("The tool whose signatures are verified.", &["Cosign"]), "cosign": cosign}),
    )
}

fn authority() -> Value {
    let attestation = object(
        "An attestation.",
        &["name", "predicateType"],
        json!({
            "name": text("Name of the attestation."),
            "predicateType": text("The type of its predicate, as Cosign names it."),
        }),
    );
    let secret = object(
        "The Secret with the key.",
        &["key", "name"],
        json!({"name": text("Name of the Secret."), "key": text("The key of the Secret to use.")}),
    );
    let algorithm = with(text("The hash algorithm of the key."), json!({"default": "sha256"}));
    let key = object(
        "A public key to verify with.",
        &["hashAlgorithm", "secretRef"],
        json!({"hashAlgorithm": algorithm, "secretRef": secret}),
    );
    object(
        "An authority whose signatures are accepted.",
        &["name"],
        json!({
            "name": text("Name of the authority."),
            "attestations": list("Attestations to require, once the signature is verified.", attestation),
            "key": key,
            "keyless": keyless(),
        }),
    )
}

fn keyless() -> Value {
    let identity = object(
        "A signer. A regular expression takes precedence over the exact text.",
        &[],
        json!({
            "issuer": text("The issuer of the identity."),
            "issuerRegExp": text("A regular expression that the issuer matches."),
            "subject": text("The subject of the identity."),
            "subjectRegExp": text("A regular expression that the subject matches."),
        }),
    );
    object(
        "Identities to verify against Fulcio.",
        &["identities"],
        json!({
            "identities": list("The signers to accept.", identity),
            "insecureIgnoreSCT": flag("Whether to accept certificates without an embedded timestamp (SCT)."),
        }),
    )
}
