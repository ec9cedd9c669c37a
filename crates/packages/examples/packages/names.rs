//! Names of revisions and of packages that are dependencies.

use super::Case;
use serde_json::json;
use transom_packages::names::{friendly_id, to_dns_label};
use transom_testkit::rng::Rng;

const CHARACTERS: [char; 24] = [
    'a', 'b', 'z', '0', '9', 'm', 'n', 'o', 'p', 'q', 'A', 'Z', '.', '-', '/', ':', '_', '@', ' ', 'é', '→',
    '1', '2', '3',
];

pub(crate) fn case(rng: &mut Rng) -> Case {
    let longest = *rng.pick(&[3, 20, 60, 70, 120]);
    let first = text(rng, longest);
    if rng.permille(500) {
        let answer = to_dns_label(&first);
        return (json!({"text": first}), vec![answer]);
    }
    let hash = text(rng, 70);
    let answer = friendly_id(&first, &hash);
    (json!({"text": first, "hash": hash}), vec![answer])
}

fn text(rng: &mut Rng, longest: u64) -> String {
    // Mostly what names consist of.
    let plain = rng.permille(600);
    let length = rng.below(longest + 1);
    let characters = if plain { &CHARACTERS[..16] } else { &CHARACTERS[..] };
    (0..length).map(|_| *rng.pick(characters)).collect()
}
