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
    for text in [file("functions.yaml"), file("definition.yaml"), composition] {
        user.apply(text).await;
    }
    user.until_true(XRD, "websites.platform.example.org", "Established").await;
    user.apply(file("xr.yaml")).await;
    user
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
    let user = with_guide(&good.replace("toFieldPath: data.url", "toFieldPth: data.url")).await;
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
    user.apply(&good.replace("type: Format", "type: Formt")).await;
    let xr = user.until(WEBSITE, "default/shop", wrong).await;
    let message = message_of(&xr, "Synced");
    assert!(message.contains("did you mean \"Format\"? supported are Format, Convert,"), "{message}");
    assert_eq!(user.composed(MAP, "shop").await.len(), 1);
}
