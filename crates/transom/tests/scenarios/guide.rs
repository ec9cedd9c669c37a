//! docs/composing.md on a control plane, and what a mistake in one of its Compositions is answered with there.

use crate::scenarios::user::*;
use transom_object::meta;

const GUIDE: &str = include_str!("../../../../docs/composing.md");
const WEBSITE: &str = "platform.example.org/v1/Website";

/// A file of the guide.
fn file(name: &str) -> &'static str {
    let start = format!("```yaml\n# {name}\n");
    let found = GUIDE.split_once(&start).and_then(|(_, rest)| rest.split_once("```"));
    found.map(|(text, _)| text).unwrap_or_else(|| panic!("the guide has no {name}"))
}

async fn with_guide(composition: &str) -> User {
    let user = User::new().await;
    user.apply(file("functions.yaml")).await;
    with_website(&user, composition).await;
    user
}

async fn with_website(user: &User, composition: &str) {
    user.apply(file("definition.yaml")).await;
    user.apply(composition).await;
    user.until_true(XRD, "websites.platform.example.org", "Established").await;
    user.apply(file("xr.yaml")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_guides_templates_compose_from_nothing() {
    let user = with_guide(file("templated.yaml")).await;
    let xr = user.until(WEBSITE, "default/shop", |xr| xr["status"]["pages"] == 2).await;
    assert_eq!(message_of(&xr, "Synced"), "");
    let mut urls: Vec<String> =
        user.composed(MAP, "shop").await.iter().map(|map| map["data"]["url"].to_string()).collect();
    urls.sort();
    assert_eq!(urls, ["\"https://shop.example.org/0\"", "\"https://shop.example.org/1\""]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mistake_in_an_input_is_named_and_can_be_corrected() {
    let good = file("patched.yaml");
    let user = User::without_functions(&[], &[]).await;
    // Until the Function is there, what it makes of its input is not known.
    with_website(&user, &good.replace("toFieldPath: data.url", "toFieldPth: data.url")).await;
    user.apply(file("functions.yaml")).await;
    let expected = "cannot compose resources: pipeline step \"compose\" returned a fatal result: invalid input: \
                    resources[0].patches[0].toFieldPth: unknown field \"toFieldPth\"; did you mean \"toFieldPath\"?";
    let wrong = |xr: &serde_json::Value| message_of(xr, "Synced").contains("invalid input");
    let xr = user.until(WEBSITE, "default/shop", wrong).await;
    assert_eq!(message_of(&xr, "Synced"), expected);
    user.apply(good).await;
    user.until_ready(WEBSITE, "default/shop").await;
    let maps = user.composed(MAP, "shop").await;
    assert_eq!(maps.len(), 1);
    assert_eq!(maps[0]["data"]["url"], "https://shop.example.org/", "{}", meta::name(&maps[0]));
    // What worked is kept when the mistake is made again.
    let message = user.refused_change(&good.replace("type: Format", "type: Formt")).await;
    assert!(message.contains("Composition \"websites\" is invalid: spec.pipeline[0].input: "), "{message}");
    assert!(message.contains("did you mean \"Format\"? supported are Format, Convert,"), "{message}");
    // The Composition that works is still the one that composes.
    let host = serde_json::json!({"spec": {"host": "new.example.org"}});
    user.patch(WEBSITE, "default/shop", host).await;
    let map = format!("default/{}", meta::name(&maps[0]));
    user.until(MAP, &map, |map| map["data"]["url"] == "https://new.example.org/").await;
    user.until_idle().await;
    assert_eq!(user.composed(MAP, "shop").await.len(), 1);
    user.until_ready(WEBSITE, "default/shop").await;
}
