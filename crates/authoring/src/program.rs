//! What a program needs of the image that it is put into, read from its ELF header.

/// The type of a program header that names the dynamic linker.
const PT_INTERP: u32 = 3;

/// What is known of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The architecture, as images name it.
    pub architecture: &'static str,
    /// The dynamic linker that the image must have. A program without one needs no files besides itself.
    pub interpreter: Option<String>,
}

/// Reads the header of a program.
pub fn inspect(bytes: &[u8]) -> Result<Program, &'static str> {
    const CUT_OFF: &str = "it is cut off";
    if !bytes.starts_with(b"\x7fELF") {
        return Err("it is not a program for Linux");
    }
    if bytes.get(4..6) != Some(&[2, 1]) {
        return Err("it is not a 64-bit little-endian program");
    }
    let number = |at: usize, length: usize| -> Option<u64> {
        let field = bytes.get(at..at.checked_add(length)?)?;
        Some(field.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    };
    let offset = |at: usize, length: usize| number(at, length).and_then(|value| usize::try_from(value).ok());
    let architecture = match number(18, 2).ok_or(CUT_OFF)? {
        62 => "amd64",
        183 => "arm64",
        243 => "riscv64",
        _ => return Err("it is for a processor that images of functions are not built for"),
    };
    let (table, size, count) =
        (offset(32, 8).ok_or(CUT_OFF)?, offset(54, 2).ok_or(CUT_OFF)?, offset(56, 2).ok_or(CUT_OFF)?);
    for index in 0..count {
        let at = table.checked_add(index * size).ok_or(CUT_OFF)?;
        if number(at, 4).ok_or(CUT_OFF)? != u64::from(PT_INTERP) {
            continue;
        }
        let (from, length) = (offset(at + 8, 8).ok_or(CUT_OFF)?, offset(at + 32, 8).ok_or(CUT_OFF)?);
        let name = from.checked_add(length).and_then(|end| bytes.get(from..end)).ok_or(CUT_OFF)?;
        let name = String::from_utf8_lossy(name).trim_end_matches('\0').to_owned();
        return Ok(Program { architecture, interpreter: Some(name) });
    }
    Ok(Program { architecture, interpreter: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header with one program header.
    fn elf(machine: u8, kind: u8) -> Vec<u8> {
        let mut bytes = vec![0; 160];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        bytes[18] = machine;
        (bytes[32], bytes[54], bytes[56]) = (64, 56, 1);
        (bytes[64], bytes[72], bytes[96]) = (kind, 120, 8);
        bytes[120..128].copy_from_slice(b"/lib/ld\0");
        bytes
    }

    #[test]
    fn programs_are_recognised_by_their_header() {
        let program = |machine, kind| inspect(&elf(machine, kind));
        let linked = Program { architecture: "amd64", interpreter: Some("/lib/ld".to_owned()) };
        assert_eq!(program(62, 3), Ok(linked));
        assert_eq!(program(183, 1), Ok(Program { architecture: "arm64", interpreter: None }));
        assert!(program(3, 1).is_err());
        assert!(inspect(b"#!/bin/sh\n").is_err());
    }

    #[test]
    fn no_prefix_of_a_program_is_misread() {
        let whole = elf(62, 3);
        for length in 0..128 {
            assert!(inspect(&whole[..length]).is_err(), "{length}");
        }
        let mut far = whole;
        far[72..80].fill(0xff);
        assert_eq!(inspect(&far), Err("it is cut off"));
    }
}
