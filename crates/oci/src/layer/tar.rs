//! Tar archives: a reader whose memory is bounded for every archive, and the headers that Go writes.
//!
//! The `tar` crate reads names of any length into memory; a hostile archive decides how much. Extended headers here
//! have a limit.

use std::io::{self, Read};

/// The size of a header, and what contents are padded to.
pub(crate) const BLOCK_BYTES: usize = 512;
/// The largest extended header (long name, PAX records) that is read, in bytes.
const EXTENSION_BYTES_MAX: u64 = 1 << 20;

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryKind {
    /// A file with content.
    File,
    /// A folder.
    Folder,
    /// Another name of a file in the archive.
    HardLink,
    /// A symbolic link.
    SymbolicLink,
    /// A device of blocks or characters.
    Device,
    /// A named pipe.
    Pipe,
    /// Something that holds no plain content, such as a sparse file.
    Other,
}

/// One entry of an archive.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// The name, as it is in the archive.
    pub(crate) path: String,
    pub(crate) kind: EntryKind,
    /// The permissions.
    pub(crate) mode: u32,
    /// The length of the content in bytes.
    pub(crate) size: u64,
    /// Where a link leads.
    pub(crate) link: String,
    /// Where the content begins in the archive.
    pub(crate) offset: u64,
}

/// Reads entries one after another. `Read` returns the content of the current entry.
pub(crate) struct TarReader<R> {
    inner: R,
    position: u64,
    remaining: u64,
    padding: u64,
}

/// What extended headers say of the next entry.
#[derive(Default)]
struct Extensions {
    path: Option<String>,
    link: Option<String>,
    size: Option<u64>,
    sparse: bool,
}

impl<R: Read> TarReader<R> {
    pub(crate) fn new(inner: R) -> Self {
        Self { inner, position: 0, remaining: 0, padding: 0 }
    }

    /// The next entry, or nothing at the end of the archive.
    pub(crate) fn next(&mut self) -> io::Result<Option<Entry>> {
        let mut extensions = Extensions::default();
        loop {
            self.skip_content()?;
            let Some(block) = self.header()? else { return Ok(None) };
            let size = number(&block[124..136])?;
            match block[156] {
                b'L' => extensions.path = Some(text(&self.extension(size)?)),
                b'K' => extensions.link = Some(text(&self.extension(size)?)),
                b'x' => {
                    let records = self.extension(size)?;
                    read_records(&records, &mut extensions)?;
                }
                b'g' => self.content(size),
                flag => return self.entry(&block, flag, size, extensions).map(Some),
            }
        }
    }

    fn entry(&mut self, block: &Block, flag: u8, size: u64, extensions: Extensions) -> io::Result<Entry> {
        let path = extensions.path.unwrap_or_else(|| header_path(block));
        let mut kind = match flag {
            0 if path.ends_with('/') => EntryKind::Folder,
            0 | b'0' | b'7' => EntryKind::File,
            b'1' => EntryKind::HardLink,
            b'2' => EntryKind::SymbolicLink,
            b'3' | b'4' => EntryKind::Device,
            b'6' => EntryKind::Pipe,
            b'5' => EntryKind::Folder,
            _ => EntryKind::Other,
        };
        if flag == b'S' {
            self.skip_sparse_map(block)?;
        }
        if extensions.sparse {
            kind = EntryKind::Other;
        }
        let has_content = matches!(kind, EntryKind::File | EntryKind::Other);
        let size = if has_content { extensions.size.unwrap_or(size) } else { 0 };
        self.content(size);
        let link = extensions.link.unwrap_or_else(|| text(&block[157..257]));
        let mode = number(&block[100..108]).map_or(0, |mode| u32::try_from(mode & 0o7777).unwrap_or(0));
        Ok(Entry { path, kind, mode, size, link, offset: self.position })
    }

    /// The next header, or nothing at the end: a block of zeros, or the end of the data.
    fn header(&mut self) -> io::Result<Option<Block>> {
        let mut block = [0; BLOCK_BYTES];
        let mut filled = 0;
        while filled < BLOCK_BYTES {
            match self.inner.read(&mut block[filled..])? {
                0 if filled == 0 => return Ok(None),
                0 => return Err(malformed("the archive ends within a header")),
                read => filled += read,
            }
        }
        self.position += BLOCK_BYTES as u64;
        if block.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        let sum: u64 = checksum(&block);
        if number(&block[148..156])? == sum {
            Ok(Some(block))
        } else {
            Err(malformed("a header has a wrong checksum"))
        }
    }

    fn content(&mut self, size: u64) {
        self.remaining = size;
        self.padding = size.wrapping_neg() % BLOCK_BYTES as u64;
    }

    /// The content of an extended header.
    fn extension(&mut self, size: u64) -> io::Result<Vec<u8>> {
        if size > EXTENSION_BYTES_MAX {
            return Err(malformed("an extended header is larger than 1 MiB"));
        }
        self.content(size);
        let mut bytes = Vec::new();
        self.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn skip_sparse_map(&mut self, block: &Block) -> io::Result<()> {
        let mut more = block[482] != 0;
        while more {
            let Some(next) = self.raw_block()? else { return Err(malformed("a sparse map is cut off")) };
            more = next[504] != 0;
        }
        Ok(())
    }

    fn raw_block(&mut self) -> io::Result<Option<Block>> {
        let mut block = [0; BLOCK_BYTES];
        match self.inner.read_exact(&mut block) {
            Ok(()) => {
                self.position += BLOCK_BYTES as u64;
                Ok(Some(block))
            }
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn skip_content(&mut self) -> io::Result<()> {
        let skip =
            self.remaining.checked_add(self.padding).ok_or_else(|| malformed("an entry is too large"))?;
        let skipped = io::copy(&mut (&mut self.inner).take(skip), &mut io::sink())?;
        self.position += skipped;
        // umoci leaves out the padding of the last entry, and Go's reader accepts that.
        let is_whole = skipped >= self.remaining;
        (self.remaining, self.padding) = (0, 0);
        if is_whole { Ok(()) } else { Err(malformed("the archive ends within an entry")) }
    }
}

impl<R: Read> Read for TarReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.remaining == 0 {
            return Ok(0);
        }
        let wanted = usize::try_from(self.remaining).unwrap_or(usize::MAX).min(buffer.len());
        let read = self.inner.read(&mut buffer[..wanted])?;
        if read == 0 && wanted > 0 {
            return Err(malformed("the archive ends within an entry"));
        }
        self.remaining -= read as u64;
        self.position += read as u64;
        Ok(read)
    }
}

type Block = [u8; BLOCK_BYTES];

fn malformed(problem: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("malformed tar archive: {problem}"))
}

fn text(field: &[u8]) -> String {
    let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
    String::from_utf8_lossy(&field[..end]).into_owned()
}

fn header_path(block: &Block) -> String {
    let name = text(&block[0..100]);
    // GNU's own format uses the field of the prefix for other things.
    let prefix = if &block[257..263] == b"ustar\0" { text(&block[345..500]) } else { String::new() };
    if prefix.is_empty() { name } else { format!("{prefix}/{name}") }
}

/// A number in octal digits, or, with the highest bit set, in base 256.
fn number(field: &[u8]) -> io::Result<u64> {
    if field[0] & 0x80 != 0 {
        if field[0] != 0x80 || field[1..field.len() - 8].iter().any(|byte| *byte != 0) {
            return Err(malformed("a number is negative or too large"));
        }
        return Ok(field[field.len() - 8..].iter().fold(0, |value, byte| value << 8 | u64::from(*byte)));
    }
    let digits: Vec<u8> = field.iter().copied().filter(|byte| *byte != 0 && *byte != b' ').collect();
    digits
        .iter()
        .try_fold(0u64, |value, digit| match digit {
            b'0'..=b'7' => value.checked_mul(8).map(|value| value + u64::from(digit - b'0')),
            _ => None,
        })
        .ok_or_else(|| malformed("a number is not octal"))
}

fn checksum(block: &Block) -> u64 {
    let byte = |(at, byte): (usize, &u8)| u64::from(if (148..156).contains(&at) { b' ' } else { *byte });
    block.iter().enumerate().map(byte).sum()
}

/// PAX records: `LENGTH KEY=VALUE\n`, where the length counts itself.
fn read_records(mut records: &[u8], extensions: &mut Extensions) -> io::Result<()> {
    let wrong = || malformed("a PAX record");
    while !records.is_empty() {
        let space = records.iter().position(|byte| *byte == b' ').ok_or_else(wrong)?;
        let length: usize = text(&records[..space]).parse().map_err(|_| wrong())?;
        let record = records.get(space + 1..length).ok_or_else(wrong)?;
        let record = record.strip_suffix(b"\n").ok_or_else(wrong)?;
        let equals = record.iter().position(|byte| *byte == b'=').ok_or_else(wrong)?;
        let value = || String::from_utf8_lossy(&record[equals + 1..]).into_owned();
        match &record[..equals] {
            b"path" => extensions.path = Some(value()),
            b"linkpath" => extensions.link = Some(value()),
            b"size" => extensions.size = Some(value().parse().map_err(|_| wrong())?),
            key if key.starts_with(b"GNU.sparse.") => extensions.sparse = true,
            _ => {}
        }
        records = &records[length..];
    }
    Ok(())
}

/// The header that Go's `archive/tar` writes for a file with mode 0644 and nothing else set. Names have at most 100
/// bytes: all names written here are digests and fixed names.
pub(crate) fn go_header(name: &str, size: u64) -> io::Result<Block> {
    go_header_of_mode(name, size, 0o644)
}

fn go_header_of_mode(name: &str, size: u64, mode: u32) -> io::Result<Block> {
    header_of(name, size, mode, b'0', "")
}

fn header_of(name: &str, size: u64, mode: u32, flag: u8, link: &str) -> io::Result<Block> {
    if name.len() > 100 || size >= 1 << 33 {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("{name}: name or size too large for tar"),
        ));
    }
    let mut block = [0; BLOCK_BYTES];
    let mut put = |at: usize, bytes: &[u8]| block[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, name.as_bytes());
    put(100, format!("{mode:07o}\x000000000\x000000000\0").as_bytes());
    put(124, format!("{size:011o}\x0000000000000\0").as_bytes());
    put(156, &[flag]);
    put(157, link.as_bytes());
    put(257, b"ustar\x0000");
    put(329, b"0000000\x000000000\0");
    let sum = checksum(&block);
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    Ok(block)
}

/// What an archive that is written here has besides files.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Written<'a> {
    /// A folder.
    Folder,
    /// A file with content of this length, which follows.
    File(u64),
    /// A symbolic link to a path.
    Link(&'a str),
}

/// The headers of an entry: GNU's for names and links of more than 100 bytes, then its own.
pub(crate) fn headers(name: &str, mode: u32, kind: Written<'_>) -> io::Result<Vec<u8>> {
    let (flag, size, link) = match kind {
        Written::Folder => (b'5', 0, ""),
        Written::File(size) => (b'0', size, ""),
        Written::Link(target) => (b'2', 0, target),
    };
    let mut bytes = Vec::new();
    for (text, flag) in [(link, b'K'), (name, b'L')] {
        if text.len() > 100 {
            let length = text.len() as u64 + 1;
            bytes.extend_from_slice(&header_of("././@LongLink", length, 0o644, flag, "")?);
            bytes.extend_from_slice(text.as_bytes());
            bytes.push(0);
            bytes.extend_from_slice(padding(length));
        }
    }
    bytes.extend_from_slice(&header_of(first_100(name), size, mode, flag, first_100(link))?);
    Ok(bytes)
}

fn first_100(text: &str) -> &str {
    let end = (0..=text.len().min(100)).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or_default()]
}

/// The zeros after content of this length.
pub(crate) fn padding(size: u64) -> &'static [u8] {
    static ZEROS: [u8; BLOCK_BYTES] = [0; BLOCK_BYTES];
    &ZEROS[..usize::try_from(size.wrapping_neg() % BLOCK_BYTES as u64).unwrap_or(0)]
}

/// A tar archive of one file, as Go writes it.
pub(crate) fn single_file(name: &str, content: &[u8], mode: u32) -> io::Result<Vec<u8>> {
    let mut archive = go_header_of_mode(name, content.len() as u64, mode)?.to_vec();
    archive.extend_from_slice(content);
    archive.extend_from_slice(padding(content.len() as u64));
    archive.extend_from_slice(&[0; 2 * BLOCK_BYTES]);
    Ok(archive)
}

#[cfg(test)]
mod tests {
    use super::*;
    use transom_packages::Digest;

    #[test]
    fn an_archive_has_the_bytes_that_go_writes() {
        // From Go's archive/tar, through go-containerregistry v0.21.6.
        let archive = single_file("package.yaml", b"---\nkind: <A&B>\n---\n", 0o644).unwrap();
        let expected = "sha256:fdabcdbee555a6d0fab595356de57ecd216f620d385096f9b12c28f9099c9a50";
        assert_eq!(Digest::of(&archive).as_str(), expected);
        let archive = single_file(".up/examples.yaml", b"example: 1\n", 0o644).unwrap();
        let expected = "sha256:7ae98061d371025eb3f9a82ecf0fa50cb2b3ea3f16a07709cd7fe1849557a819";
        assert_eq!(Digest::of(&archive).as_str(), expected);
    }

    #[test]
    fn long_names_and_pax_records_are_read() {
        let long = "d/".repeat(80) + "package.yaml";
        let mut archive = extension(b'L', long.as_bytes());
        archive.extend(single_file("short", b"one", 0o644).unwrap()[..1024].to_vec());
        archive.extend(extension(b'x', b"20 path=package.yaml\n".get(..).unwrap()));
        archive.extend(single_file("other", b"two", 0o644).unwrap());
        let mut reader = TarReader::new(archive.as_slice());
        assert_eq!(reader.next().unwrap().unwrap().path, long);
        // The record's length is wrong by one: refused, not misread.
        assert!(reader.next().is_err());
    }

    #[test]
    fn an_extended_header_cannot_take_memory() {
        let mut block = go_header("x", 1 << 32).unwrap();
        block[156] = b'L';
        let sum = checksum(&block);
        block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        let endless = block.chain(io::repeat(b'a'));
        let error = TarReader::new(endless).next().unwrap_err();
        assert!(error.to_string().contains("1 MiB"), "{error}");
    }

    #[test]
    fn long_names_and_links_are_written_as_they_are_read() {
        let (name, target) = ("é/".repeat(60) + "a", "../".repeat(50) + "b");
        let mut archive = headers(&name, 0o777, Written::Link(&target)).unwrap();
        archive.extend(headers("folder/", 0o755, Written::Folder).unwrap());
        let mut reader = TarReader::new(archive.as_slice());
        let link = reader.next().unwrap().unwrap();
        assert_eq!((link.path, link.link, link.kind), (name, target, EntryKind::SymbolicLink));
        let folder = reader.next().unwrap().unwrap();
        assert_eq!((folder.path.as_str(), folder.kind, folder.mode), ("folder/", EntryKind::Folder, 0o755));
    }

    fn extension(flag: u8, content: &[u8]) -> Vec<u8> {
        let mut block = go_header("x", content.len() as u64).unwrap();
        block[156] = flag;
        let sum = checksum(&block);
        block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        let mut bytes = block.to_vec();
        bytes.extend_from_slice(content);
        bytes.extend_from_slice(padding(content.len() as u64));
        bytes
    }
}
