//! A rollout that goes well, from pinning to the next one.

use super::*;

const COUNT: usize = 20;

#[tokio::test(flavor = "multi_thread")]
async fn composite_resources_are_pinned_planned_moved_in_waves_and_moved_again() {
    let platform = Platform::new(COUNT).await;
    let user = &platform.user;
    let automatic = platform.choices().await;
    assert!(automatic.iter().all(|choice| choice["compositionUpdatePolicy"] == "Automatic"), "{automatic:?}");

    // Pinned, they do not follow.
    let pinning = platform.json(0, &["pin", "a"]);
    assert_eq!((&pinning["pinned"], &pinning["resources"]), (&json!(COUNT), &json!(COUNT)), "{pinning}");
    assert_eq!(platform.json(0, &["pin", "a"])["pinned"], 0, "a second time there is nothing to pin");
    let first = automatic[0]["compositionRevisionRef"]["name"].as_str().unwrap().to_owned();
    let second = platform.say("second").await;
    user.until_idle().await;
    assert_eq!(platform.choices().await, vec![pinned(&first); COUNT]);

    // The plan shows what would change, and changes nothing.
    let versions = async || {
        let all = user.list(THING).await.into_iter().chain(user.list(MAP).await);
        all.map(|object| object["metadata"]["resourceVersion"].clone()).collect::<Vec<_>>()
    };
    let before = versions().await;
    let plan = platform.json(0, &["plan", "a"]);
    assert_eq!((&plan["waves"], &plan["to"]), (&json!([1, 1, 8, 10]), &json!(second)), "{plan:#}");
    let summary =
        json!({"resources": COUNT, "create": 0, "change": COUNT, "delete": 0, "failing": 0, "unknown": 0});
    assert_eq!(plan["summary"], summary, "{plan:#}");
    let change = &plan["resources"][0]["changes"][0];
    assert_eq!((&change["kind"], &change["resource"]), (&json!("ConfigMap"), &json!("map")));
    assert_eq!(
        change["fields"],
        json!([{"path": "data.says", "before": "\"first\"", "after": "\"second\""}])
    );
    let text = platform.text(0, &["plan", "a"]);
    for words in [
        "wave 1: Thing default/t00 from",
        "data.says: \"first\" → \"second\"",
        "… and 10 more; --full shows all",
        "20 Thing of Composition a to",
        "in waves of 1, 1, 8, 10",
        "0 to create, 20 to change, 0 to delete",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let full = platform.text(0, &["plan", "a", "--full", "--waves", "100%"]);
    assert!(full.contains("wave 1: Thing default/t19") && !full.contains("more"), "{full}");
    assert_eq!(versions().await, before);

    // All waves.
    let done = platform.json(0, &["start", "a", "--yes"]);
    assert_eq!((&done["phase"], &done["problem"]), (&json!("Done"), &Value::Null), "{done:#}");
    let ready =
        |wave: usize, count: usize| json!({"wave": wave, "resources": count, "moved": count, "ready": count});
    assert_eq!(done["waves"], json!([ready(1, 1), ready(2, 1), ready(3, 8), ready(4, 10)]), "{done:#}");
    assert_eq!(platform.choices().await, vec![pinned(&second); COUNT]);
    for n in 0..COUNT {
        let xr = user.get(THING, &name(n)).await.unwrap();
        assert_eq!(xr["status"]["coolerField"], "second");
    }
    let again = platform.text(0, &["start", "a", "--yes"]);
    assert!(again.contains("nothing is to be moved: 20 are at"), "{again}");

    // The next one, of a part, by labels; and back.
    let third = platform.say("third").await;
    for n in 3..6 {
        let labels = json!({"metadata": {"labels": {"ring": if n == 4 { "canary" } else { "late" }}}});
        user.patch(THING, &name(n), labels).await;
    }
    let waves = ["start", "a", "--yes", "-l", "ring", "--waves", "ring=canary,100%", "--from", "2"];
    let done = platform.json(0, &waves);
    assert_eq!(done["waves"], json!([ready(1, 1), ready(2, 2)]), "{done:#}");
    assert_eq!(done["resources"][0]["name"], "default/t04");
    let at = async |revision: &str| {
        platform.choices().await.iter().filter(|choice| **choice == pinned(revision)).count()
    };
    assert_eq!((at(&second).await, at(&third).await), (COUNT - 3, 3));
    let behind = platform.json(2, &["unpin", "a"]);
    assert_eq!(
        (&behind["unpinned"], behind["behind"].as_array().map(Vec::len)),
        (&json!(3), Some(COUNT - 3))
    );
    platform.json(0, &["pin", "a"]);
    let back = platform.json(0, &["rollback", "a"]);
    assert_eq!((&back["phase"], at(&second).await), (&json!("RolledBack"), COUNT), "{back:#}");

    // All of them to the newest, and free again.
    platform.json(0, &["start", "a", "--yes", "--to", "3", "--waves", "100%", "--unpin"]);
    assert_eq!(platform.json(0, &["unpin", "a"])["unpinned"], 0, "nothing is left to do");
    let expected = json!({"compositionUpdatePolicy": "Automatic", "compositionRevisionRef": {"name": third}});
    assert_eq!(platform.choices().await, vec![expected; COUNT]);
    user.until_idle().await;
    let annotated = user.list(THING).await.into_iter().any(|xr| xr.to_string().contains("rollout-pinned"));
    assert!(!annotated, "nothing is left of pinning");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_composite_resource_that_follows_by_itself_is_pinned_by_its_move() {
    let platform = Platform::new(2).await;
    let first = platform.choices().await[0]["compositionRevisionRef"]["name"].as_str().unwrap().to_owned();
    let second = platform.say("second").await;
    platform.user.until(THING, &name(0), |xr| xr["status"]["coolerField"] == "second").await;
    platform.user.until(THING, &name(1), |xr| xr["status"]["coolerField"] == "second").await;
    let text = platform.text(0, &["plan", "a", "--to", "1"]);
    assert!(text.contains("whose update policy Automatic becomes Manual"), "{text}");
    platform.json(0, &["start", "a", "--to", &first, "--yes"]);
    assert_eq!(platform.choices().await, vec![pinned(&first); 2]);
    platform.json(0, &["rollback", "a"]);
    let automatic =
        json!({"compositionUpdatePolicy": "Automatic", "compositionRevisionRef": {"name": second}});
    assert_eq!(platform.choices().await, vec![automatic; 2]);
}
