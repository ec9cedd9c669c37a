//! Compared with Go: length and FNV-1a hash of what `gzip.NewWriterLevel(w, gzip.BestSpeed)` of Go 1.26 writes for the same
//! input.

use super::*;

const VECTORS: &[(&str, usize, usize, u64)] = &[
    ("zeros", 0, 23, 0xecc4_d1a4_f3c2_d547),
    ("zeros", 1, 29, 0x2245_884a_fcf4_a9a4),
    ("zeros", 16, 44, 0xf669_f18c_f2de_0376),
    ("zeros", 17, 36, 0x2ec3_d5bf_bd10_3aa2),
    ("zeros", 127, 50, 0x1b00_f439_a411_efdb),
    ("zeros", 128, 37, 0x5618_db23_6eb3_4676),
    ("zeros", 1000, 39, 0xe948_027c_631b_f7b6),
    ("zeros", 65534, 100, 0x16b9_4d3d_9f0b_6ec3),
    ("zeros", 65535, 100, 0x541a_8924_f2a9_916a),
    ("zeros", 65536, 106, 0x2ee1_7646_69c4_e756),
    ("zeros", 131070, 180, 0xa4cf_9a01_3968_5c78),
    ("zeros", 131087, 193, 0x2a61_bfb8_18be_5430),
    ("zeros", 300000, 392, 0xdde3_97c8_b89c_b32a),
    ("random", 0, 23, 0xecc4_d1a4_f3c2_d547),
    ("random", 1, 29, 0x252f_d968_1257_604b),
    ("random", 16, 44, 0x75a8_2f63_cc41_181e),
    ("random", 17, 45, 0x2a57_4156_4cc4_8f69),
    ("random", 127, 155, 0x9ecc_d99c_7321_724e),
    ("random", 128, 156, 0x35f3_dfde_c3c8_58ca),
    ("random", 1000, 1028, 0xf6df_df65_55d5_5f8a),
    ("random", 65534, 65562, 0x110e_1d63_f273_80ac),
    ("random", 65535, 65563, 0xecfc_05c2_1300_7481),
    ("random", 65536, 65569, 0xfd8e_0566_13b7_ae92),
    ("random", 131070, 131103, 0x4fa5_a161_eb7a_b024),
    ("random", 131087, 131125, 0xe330_f0f1_c09e_6643),
    ("random", 300000, 300048, 0x21f4_0eb0_b1ff_2595),
    ("letters", 0, 23, 0xecc4_d1a4_f3c2_d547),
    ("letters", 1, 29, 0x49e7_8ba6_a570_a337),
    ("letters", 16, 44, 0x141b_8ffd_fc4d_64dd),
    ("letters", 17, 42, 0x0de7_affe_e2f8_bee1),
    ("letters", 127, 72, 0x0577_13f7_4372_299d),
    ("letters", 128, 80, 0xfcd7_1c5e_46cc_50db),
    ("letters", 1000, 382, 0x5e86_2d33_d77d_b478),
    ("letters", 65534, 3232, 0x8932_b13c_cb93_5a46),
    ("letters", 65535, 3276, 0xceff_a21b_88a2_cb66),
    ("letters", 65536, 3233, 0x7afe_1068_6061_24dd),
    ("letters", 131070, 6063, 0x9eae_4cc4_51f4_91ae),
    ("letters", 131087, 5957, 0xfb17_bbc5_cc86_f74d),
    ("letters", 300000, 12746, 0xd66c_57d2_2a5b_b1e5),
    ("lines", 0, 23, 0xecc4_d1a4_f3c2_d547),
    ("lines", 1, 29, 0x2664_2c1f_80ef_cd54),
    ("lines", 16, 44, 0x939f_4008_8626_ffde),
    ("lines", 17, 45, 0x4e30_35c2_e038_49b8),
    ("lines", 127, 117, 0x04a5_621d_c471_a3cf),
    ("lines", 128, 83, 0xcd90_046f_6277_74e3),
    ("lines", 1000, 242, 0xd8a1_eb73_0d6f_9897),
    ("lines", 65534, 10180, 0x4908_e601_67b7_11b5),
    ("lines", 65535, 10215, 0x6f7c_0301_fe04_5316),
    ("lines", 65536, 10192, 0xe25e_f516_c638_97e3),
    ("lines", 131070, 20225, 0x7b7d_3ff6_9e78_e256),
    ("lines", 131087, 20309, 0xc692_e939_db12_2c93),
    ("lines", 300000, 46192, 0xc4a5_f822_531b_632b),
    ("skewed", 0, 23, 0xecc4_d1a4_f3c2_d547),
    ("skewed", 1, 29, 0x0e27_a547_864f_b01d),
    ("skewed", 16, 44, 0x9695_0bb1_b8ad_ced9),
    ("skewed", 17, 45, 0x2e5a_49b8_91c4_14c8),
    ("skewed", 127, 155, 0x8486_9f43_dbad_e1dd),
    ("skewed", 128, 156, 0xc8c2_1b0c_6af4_09de),
    ("skewed", 1000, 871, 0xf9cc_ae63_5438_f8b2),
    ("skewed", 65534, 51892, 0xdc10_6734_f171_4b21),
    ("skewed", 65535, 51893, 0xe9e8_e27e_d24f_36b1),
    ("skewed", 65536, 51899, 0x1c59_9628_f3c5_94dc),
    ("skewed", 131070, 103763, 0x97e1_a90a_3ab1_f991),
    ("skewed", 131087, 103785, 0x1c2c_14aa_0f4e_b927),
    ("skewed", 300000, 237524, 0x730a_d82c_af74_3014),
    ("mixed", 0, 23, 0xecc4_d1a4_f3c2_d547),
    ("mixed", 1, 29, 0xb73d_40ef_4225_4cab),
    ("mixed", 16, 44, 0x1b53_4cec_6a66_4896),
    ("mixed", 17, 45, 0xb0ae_3753_bf18_bb28),
    ("mixed", 127, 155, 0x4c3c_24bb_65cc_5d3a),
    ("mixed", 128, 156, 0x0c69_31e7_7130_f698),
    ("mixed", 1000, 646, 0x9548_cced_67b1_72fc),
    ("mixed", 65534, 13633, 0xc753_40b9_e5ec_ea08),
    ("mixed", 65535, 13659, 0x5d29_1e5a_1f73_5327),
    ("mixed", 65536, 13586, 0xc32c_a746_fb0d_6acd),
    ("mixed", 131070, 31346, 0xbd19_1173_fa75_1e7d),
    ("mixed", 131087, 31555, 0x3831_2313_c201_7b8f),
    ("mixed", 300000, 90428, 0xf015_48b5_47cd_3fa1),
];

/// A small generator, which a program in Go repeats easily.
struct Numbers(u32);

impl Numbers {
    fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        self.0 >> 8
    }
}

fn input(shape: &str, length: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let seed = (length as u32).wrapping_mul(2_654_435_761).wrapping_add(shape.len() as u32);
    let mut numbers = Numbers(seed);
    while bytes.len() < length {
        match shape {
            "zeros" => bytes.push(0),
            "random" => bytes.push(numbers.next() as u8),
            "letters" => bytes.push(b'a' + (numbers.next() % 4) as u8),
            "lines" => {
                let (name, value) = (numbers.next() % 50, numbers.next() % 1000);
                bytes.extend_from_slice(format!("- name: item-{name}\n  value: {value}\n").as_bytes());
            }
            "skewed" => {
                let value = numbers.next() % 256;
                let value = value * (numbers.next() % 256) / 256;
                bytes.push((value * (numbers.next() % 256) / 256) as u8);
            }
            _ if numbers.next() % 100 < 30 => bytes.extend((0..40).map(|_| numbers.next() as u8)),
            _ if bytes.len() > 3000 => {
                let at = numbers.next() as usize % (bytes.len() - 300);
                let count = (numbers.next() % 300) as usize;
                bytes.extend_from_within(at..at + count);
            }
            _ => bytes.extend_from_slice(b"the quick brown fox "),
        }
    }
    bytes.truncate(length);
    bytes
}

fn hash(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[test]
fn the_bytes_are_those_of_go() {
    for (shape, length, compressed_length, compressed_hash) in VECTORS {
        let compressed = compress(&input(shape, *length));
        assert_eq!(
            (compressed.len(), hash(&compressed)),
            (*compressed_length, *compressed_hash),
            "{shape} {length}"
        );
    }
}

#[test]
fn pieces_make_no_difference() {
    let bytes = input("mixed", 200_000);
    let (mut encoder, mut out) = (GzipEncoder::new(), Vec::new());
    bytes.chunks(777).for_each(|piece| encoder.push(piece, &mut out));
    encoder.finish(&mut out);
    assert!(out == compress(&bytes));
}
