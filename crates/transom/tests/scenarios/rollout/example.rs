//! The design's own example, as written but for the server that stands in for the image, and a definition of Crossplane v1,
//! whose composite resources have `compositionUpdatePolicy` in their spec.

use super::*;

const BUCKET: &str = "custom-api.example.org/v1alpha1/AcmeBucket";

const DEFINITION: &str = "
apiVersion: apiextensions.crossplane.io/v1
kind: CompositeResourceDefinition
metadata: {name: acmebuckets.custom-api.example.org}
spec:
  group: custom-api.example.org
  names: {kind: AcmeBucket, plural: acmebuckets}
  versions:
  - name: v1alpha1
    served: true
    referenceable: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object}
          status: {type: object, properties: {coolerField: {type: string}}}
";

const COMPOSITION_MANIFEST: &str = "
apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata:
  name: example
  labels:
    release-channel: CHANNEL
spec:
  compositeTypeRef:
    apiVersion: custom-api.example.org/v1alpha1
    kind: AcmeBucket
  mode: Pipeline
  pipeline:
  - step: patch-and-transform
    functionRef:
      name: function-patch-and-transform
    functionRevisionSelector:
      matchLabels:
        release-channel: CHANNEL
    input:
      apiVersion: pt.fn.crossplane.io/v1beta1
      kind: Resources
";

const MY_BUCKET: &str = "
apiVersion: custom-api.example.org/v1alpha1
kind: AcmeBucket
metadata:
  name: my-bucket
spec:
  compositionUpdatePolicy: Manual
  compositionRevisionSelector:
    matchLabels:
      release-channel: CHANNEL
";

fn function(version: &str, channel: &str, address: SocketAddr) -> String {
    format!(
        "
apiVersion: pkg.crossplane.io/v1
kind: Function
metadata:
  name: function-patch-and-transform
  labels:
    release-channel: {channel}
  annotations:
    transom.io/endpoint: '{address}'
spec:
  package: xpkg.crossplane.io/crossplane-contrib/function-patch-and-transform:{version}
  revisionHistoryLimit: 4
  activeRevisionLimit: 2
"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn the_example_of_the_design_works_as_written() {
    let mut user = User::without_functions(&[], &[]).await;
    let (old, new) = (saying("v0.8.1").await, saying("v0.8.2").await);
    let says = async |user: &User, name: &str, word: &str| {
        user.until(BUCKET, name, |o| o["status"]["coolerField"] == word && status_of(o, "Synced") == "True")
            .await
    };
    user.apply(DEFINITION).await;
    user.apply(&function("v0.8.1", "stable", old)).await;
    user.until_true(FUNCTION, "function-patch-and-transform", "Healthy").await;
    user.apply(&COMPOSITION_MANIFEST.replace("CHANNEL", "stable")).await;
    for name in ["my-bucket", "other-bucket"] {
        let stable = MY_BUCKET.replace("CHANNEL", "stable").replace("my-bucket", name);
        user.apply(&stable).await;
        says(&user, name, "v0.8.1").await;
    }
    // "a user wishing to roll out a new version … to only certain XRs may update their existing installation"
    user.apply(&function("v0.8.2", "alpha", new)).await;
    let both = |r: &Value| {
        meta::label(r, "release-channel") == Some("alpha") && status_of(r, "RuntimeHealthy") == "True"
    };
    let alpha = user.until_any(FUNCTION_REVISION, both).await;
    // "The user would then update their composition to reference the labeled function revision, causing a new composition
    // revision to be created"
    user.apply(&COMPOSITION_MANIFEST.replace("CHANNEL", "alpha")).await;
    let labelled = |r: &Value| meta::label(r, "release-channel") == Some("alpha");
    let composition_revision = user.until_any(REVISION, labelled).await;
    user.until_idle().await;
    for name in ["my-bucket", "other-bucket"] {
        let untouched = user.get(BUCKET, name).await.expect("it is there");
        assert_eq!(untouched["status"]["coolerField"], "v0.8.1", "nothing moved yet");
    }
    // "Finally, they would update one or more XRs to use the new composition revision"
    user.apply(&MY_BUCKET.replace("CHANNEL", "alpha")).await;
    let moved = says(&user, "my-bucket", "v0.8.2").await;
    assert_eq!(moved["spec"]["compositionRevisionRef"]["name"], meta::name(&composition_revision));
    assert_eq!(composed_by(&moved), [meta::name(&alpha)]);
    for round in ["as it was", "after a restart"] {
        user.patch(BUCKET, "other-bucket", json!({"metadata": {"annotations": {"poke": round}}})).await;
        user.until_idle().await;
        says(&user, "other-bucket", "v0.8.1").await;
        says(&user, "my-bucket", "v0.8.2").await;
        user.restart(&[]).await;
    }
    // And back again.
    user.apply(&MY_BUCKET.replace("CHANNEL", "stable")).await;
    says(&user, "my-bucket", "v0.8.1").await;
    let events = user.events_of("my-bucket").await;
    assert!(events.iter().all(|e| !e.starts_with("Warning")), "{events:#?}");
}

/// A selector that no revision matches keeps the revision that is in use, and says so.
#[tokio::test(flavor = "multi_thread")]
async fn a_selector_that_selects_nothing_keeps_the_revision_in_use() {
    let user = User::without_functions(&[], &[]).await;
    let old = saying("v0.8.1").await;
    user.apply(DEFINITION).await;
    user.apply(&function("v0.8.1", "stable", old)).await;
    user.apply(&COMPOSITION_MANIFEST.replace("CHANNEL", "stable")).await;
    user.apply(&MY_BUCKET.replace("CHANNEL", "stable")).await;
    let first = user.until_ready(BUCKET, "my-bucket").await;
    user.apply(&MY_BUCKET.replace("CHANNEL", "beta")).await;
    user.until_event("my-bucket", "compositionRevisionSelector has no effect because no revision").await;
    user.until_idle().await;
    let kept = user.get(BUCKET, "my-bucket").await.expect("it is there");
    assert_eq!(kept["spec"]["compositionRevisionRef"], first["spec"]["compositionRevisionRef"]);
    assert_eq!(status_of(&kept, "Ready"), "True");
    // The revision that it waits for is created.
    let beta = COMPOSITION_MANIFEST.replacen("CHANNEL", "beta", 1).replace("CHANNEL", "stable");
    user.apply(&beta).await;
    let labelled = user.until_any(REVISION, |r| meta::label(r, "release-channel") == Some("beta")).await;
    let moved = |o: &Value| o["spec"]["compositionRevisionRef"]["name"] == meta::name(&labelled);
    user.until(BUCKET, "my-bucket", moved).await;
}
