//! Numbers made of bytes or of numbers, which are the same on every machine and in every version: names and shards are derived
//! from them. None of them is a cryptographic hash.

/// FNV-1a with 64 bits.
pub fn fnv1a(bytes: impl IntoIterator<Item = u8>) -> u64 {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    bytes.into_iter().fold(OFFSET, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME))
}

/// The distance between two states of SplitMix64.
pub const SPLIT_MIX_STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The number that SplitMix64 makes of a state. Every state is valid.
pub fn split_mix(state: u64) -> u64 {
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_the_published_ones() {
        for (text, hash) in
            [("", 0xcbf2_9ce4_8422_2325), ("a", 0xaf63_dc4c_8601_ec8c), ("foobar", 0x8594_4171_f739_67e8)]
        {
            assert_eq!(fnv1a(text.bytes()), hash, "{text}");
        }
        let first = [1, 2, 3].map(|n| split_mix(SPLIT_MIX_STEP.wrapping_mul(n)));
        assert_eq!(first, [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4, 0x06c4_5d18_8009_454f]);
    }
}
