//! Where lists begin: rows of our own, and upstream's tables where they are at hand.

use super::{Start, Token, encode_token, parse_revision};
use crate::request::{ListOptions, Query};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

fn table(path: &str) -> Vec<Value> {
    transom_testkit::tables::cases(&format!("kubernetes/storage/{path}"))
}

fn token(json: &str) -> String {
    URL_SAFE_NO_PAD.encode(json)
}

/// The words for what is wrong with a query, or where it begins: revision (0: any) and place.
fn begin(query: &str) -> Result<(u64, String), String> {
    let options = ListOptions::parse(&Query::parse(Some(query)), false).map_err(|s| s.message)?;
    match Start::of(&options).map_err(|s| s.message)? {
        Start::Latest | Start::NotBefore(_) => Ok((0, String::new())),
        Start::Exact(revision) => Ok((revision, String::new())),
        Start::Continued(token) => Ok((token.rv.try_into().unwrap_or(0), token.start)),
    }
}

#[test]
fn tokens_lead_to_places_in_the_collection_only() {
    let decoded = Token::decode(&encode_token(7, "default/a")).expect("our own token");
    assert_eq!((decoded.rv, decoded.start.as_str()), (7, "/default/a\0"));
    let places = ["..", "../a", "a/../b", "a//b", "a/", "./a", "//"];
    for place in places {
        let json = format!(r#"{{"v":"meta.k8s.io/v1","rv":1,"start":"{place}"}}"#);
        assert_eq!(Token::decode(&token(&json)).expect_err(place), "continue key is not valid");
    }
    let rows = [
        (r#"{"v":"meta.k8s.io/v1","rv":1}"#, "encoded start key empty (version meta.k8s.io/v1)"),
        (
            r#"{"v":"meta.k8s.io/v1","start":"a"}"#,
            "incorrect encoded start resourceVersion (version meta.k8s.io/v1)",
        ),
        (r#"{"v":"v2","rv":1,"start":"a"}"#, "server does not recognize this encoded version \"v2\""),
    ];
    for (json, why) in rows {
        let error = Token::decode(&token(json)).expect_err(json);
        assert_eq!(error, format!("continue key is not valid: {why}"));
    }
}

#[test]
fn a_limit_pins_the_revision_unless_a_match_is_asked_for() {
    assert_eq!(begin("resourceVersion=9"), Ok((0, String::new())));
    assert_eq!(begin("resourceVersion=9&limit=2"), Ok((9, String::new())));
    assert_eq!(begin("resourceVersion=9&limit=2&resourceVersionMatch=NotOlderThan"), Ok((0, String::new())));
    assert_eq!(begin("resourceVersion=0&limit=2"), Ok((0, String::new())));
}

#[test]
fn upstream_tokens() {
    for case in table("continue/Test_decodeContinue.tests.json") {
        let got = Token::decode(case["inputs"]["continueValue"].as_str().unwrap_or_default());
        match (got, case["wantErr"]["$error"].as_str()) {
            (Err(why), Some(wanted)) => assert_eq!(why, wanted, "{case}"),
            (Ok(token), None) => assert_eq!(token.rv, case["expected"]["wantRv"], "{case}"),
            (got, _) => unreachable!("{case}: {got:?}"),
        }
    }
}

#[test]
fn upstream_resource_versions() {
    for case in table("api_object_versioner/TestEtcdParseResourceVersion.testCases.json") {
        let got = parse_revision(case["inputs"]["Version"].as_str().unwrap_or_default());
        assert_eq!(got.is_err(), case["wantErr"] == true, "{case}");
        let wanted = case["expected"]["ExpectVersion"].as_u64().unwrap_or(0);
        assert_eq!(got.ok().flatten().unwrap_or(0), wanted, "{case}");
    }
}

#[test]
fn upstream_list_options() {
    for case in table("interfaces/TestValidateListOptions.testCases.json") {
        let options = &case["inputs"]["opts"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let query = format!(
            "resourceVersion={}&resourceVersionMatch={}&continue={}&limit={}",
            text(&options["ResourceVersion"]),
            text(&options["ResourceVersionMatch"]),
            text(&options["Predicate"]["Continue"]),
            options["Predicate"]["Limit"].as_u64().unwrap_or(0),
        );
        match (begin(&query), case["wantErr"].as_str()) {
            // A request is judged before it reaches the list, in other words.
            (Err(_), Some("unknown ResourceVersionMatch value")) => {}
            (Err(why), Some(wanted)) => assert!(why.contains(wanted), "{case}: {why}"),
            (Ok((revision, place)), None) => {
                assert_eq!(revision, case["expected"]["expectedRev"].as_u64().unwrap_or(0), "{case}");
                assert_eq!(place, text(&case["expected"]["expectedContinueKey"]), "{case}");
            }
            (got, _) => unreachable!("{case}: {got:?}"),
        }
    }
}
