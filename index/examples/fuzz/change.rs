//! A file that is nearly another one.
//!
//! Bytes are flipped, cut, doubled, moved and taken from another file of the format. What is packed is changed inside: the
//! members of a ZIP package, the compressed streams of a PDF; changed from outside they would hardly ever be unpacked.

use std::io::{Cursor, Read, Write};
use std::path::PathBuf;

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

/// Bytes of one unpacked member or stream that are kept.
const UNPACKED_MAX: u64 = 4 << 20;

/// Pieces that parsers are known to stumble over.
const PIECES: &[&[u8]] = &[
    b"\0",
    b"\xff\xff\xff\xff",
    b"\x7f\xff\xff\xff",
    b"\x80\0\0\0",
    b"-1",
    b"0",
    b"4294967296",
    b"99999999999999999999",
    b"1e999",
    b"<",
    b">",
    b"/>",
    b"&#0;",
    b"&a;",
    b"<!DOCTYPE a [",
    b"]]>",
    b"<<",
    b">>",
    b"[",
    b"]",
    b"(",
    b")",
    b"{",
    b"}",
    b"\\",
    b"\"",
    b"'",
    b"%",
    b"--",
    b"\r\n\r\n",
    b"\n\n",
    b"\nFrom ",
    b"obj",
    b"endobj",
    b"stream\n",
    b" 0 R",
    b"\xef\xbb\xbf",
    b"\xff\xfe",
    b"\xf0\x9f\x92\xa9",
    b"\xed\xa0\x80",
    b"=?utf-8?B?",
    b"```",
    b"\\begin{",
    b"#+BEGIN_",
    b"\\bin99999 ",
    b"\\'",
    b"\\u-32768?",
];

/// A small generator (splitmix64): the same seed gives the same run on every machine.
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Below `n`, which must not be 0.
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    /// From 1 to 2,048, small ones as often as large ones.
    fn length(&mut self) -> usize {
        let most = 1 << self.below(12);
        1 + self.below(most)
    }
}

/// A good file.
pub struct Seed {
    pub path: PathBuf,
    bytes: Vec<u8>,
    /// Members of a ZIP package, unpacked; none for other files.
    members: Vec<(String, Vec<u8>)>,
    /// The file with its compressed streams unpacked; empty where there are none.
    unpacked: Vec<u8>,
}

impl Seed {
    pub fn new(bytes: Vec<u8>, path: PathBuf) -> Self {
        let members = members(&bytes).unwrap_or_default();
        let unpacked = if bytes.starts_with(b"%PDF") { unpacked_pdf(&bytes) } else { Vec::new() };
        Self { path, bytes, members, unpacked }
    }

    /// This file, changed in a few places; now and then with a piece of the other.
    pub fn changed(&self, other: &Self, rng: &mut Rng) -> Vec<u8> {
        // Some from outside, so that the packing itself is tried too.
        if !self.members.is_empty() && rng.below(4) > 0 {
            return self.changed_inside(other, rng);
        }
        let inside = !self.unpacked.is_empty() && rng.below(3) > 0;
        let mut bytes = if inside { self.unpacked.clone() } else { self.bytes.clone() };
        let piece = if inside && !other.unpacked.is_empty() { &other.unpacked } else { &other.bytes };
        change(&mut bytes, piece, rng);
        bytes
    }

    fn changed_inside(&self, other: &Self, rng: &mut Rng) -> Vec<u8> {
        let mut members = self.members.clone();
        for _ in 0..=rng.below(2) {
            let at = rng.below(members.len());
            let piece = other.members.get(rng.below(other.members.len())).map_or(&other.bytes, |m| &m.1);
            match rng.below(12) {
                0 if members.len() > 1 => {
                    members.remove(at);
                }
                1 => members[at].1.clone_from(piece),
                2 => {
                    let twin = members[at].clone();
                    members.push(twin);
                }
                _ => change(&mut members[at].1, piece, rng),
            }
        }
        packed(&members).unwrap_or_else(|_| self.bytes.clone())
    }
}

fn change(bytes: &mut Vec<u8>, other: &[u8], rng: &mut Rng) {
    for _ in 0..=rng.below(6) {
        if bytes.is_empty() {
            bytes.push(b' ');
        }
        let at = rng.below(bytes.len());
        let length = rng.length();
        let end = (at + length).min(bytes.len());
        match rng.below(10) {
            0 => bytes[at] ^= 1 << rng.below(8),
            1 => bytes[at] = rng.next() as u8,
            2 => bytes.truncate(at),
            3 => drop(bytes.drain(at..end)),
            4 => {
                let double = bytes[at..end].repeat(1 + rng.below(8));
                insert(bytes, at, &double);
            }
            5 => {
                let piece = PIECES[rng.below(PIECES.len())];
                insert(bytes, at, &piece.repeat(rng.length()));
            }
            6 => {
                let piece = PIECES[rng.below(PIECES.len())];
                let end = (at + piece.len()).min(bytes.len());
                bytes.splice(at..end, piece.iter().copied());
            }
            7 if !other.is_empty() => {
                let from = rng.below(other.len());
                let to = (from + length).min(other.len());
                insert(bytes, at, &other[from..to]);
            }
            8 => number(bytes, at, rng),
            _ => {
                let piece = bytes[at..end].to_vec();
                let to = rng.below(bytes.len());
                insert(bytes, to, &piece);
            }
        }
    }
}

fn insert(bytes: &mut Vec<u8>, at: usize, piece: &[u8]) {
    bytes.splice(at..at, piece.iter().copied());
}

/// Puts another number in the place of the next one that is written in digits.
fn number(bytes: &mut Vec<u8>, from: usize, rng: &mut Rng) {
    let Some(start) = bytes[from..].iter().position(u8::is_ascii_digit).map(|i| from + i) else { return };
    let end = bytes[start..].iter().position(|b| !b.is_ascii_digit()).map_or(bytes.len(), |i| start + i);
    let numbers = ["0", "-1", "1", "65536", "2147483648", "4294967295", "18446744073709551616"];
    bytes.splice(start..end, numbers[rng.below(numbers.len())].bytes());
}

fn members(bytes: &[u8]) -> Option<Vec<(String, Vec<u8>)>> {
    if !bytes.starts_with(b"PK") {
        return None;
    }
    let mut archive = ZipArchive::new(Cursor::new(bytes)).ok()?;
    let mut members = Vec::new();
    for i in 0..archive.len() {
        let Ok(file) = archive.by_index(i) else { continue };
        let name = file.name().to_owned();
        let mut content = Vec::new();
        if !file.is_dir() && file.take(UNPACKED_MAX).read_to_end(&mut content).is_ok() {
            members.push((name, content));
        }
    }
    Some(members)
}

fn packed(members: &[(String, Vec<u8>)]) -> zip::result::ZipResult<Vec<u8>> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    let stored = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    for (n, (name, content)) in members.iter().enumerate() {
        // Of two of one name the library writes none: a twin is called a little differently.
        let twin = members[..n].iter().any(|m| m.0 == *name);
        archive.start_file(if twin { format!("{name}{n}") } else { name.clone() }, stored)?;
        archive.write_all(content)?;
    }
    Ok(archive.finish()?.into_inner())
}

/// The file with its compressed streams written out. Places in its table are wrong then, which readers have to repair.
fn unpacked_pdf(bytes: &[u8]) -> Vec<u8> {
    let find = |from: usize, what: &[u8]| bytes[from..].windows(what.len()).position(|w| w == what).map(|i| from + i);
    let (mut out, mut at) = (Vec::new(), 0);
    while let Some(start) = find(at, b"stream") {
        let mut data = start + 6;
        data += usize::from(bytes.get(data) == Some(&b'\r'));
        data += usize::from(bytes.get(data) == Some(&b'\n'));
        let Some(end) = find(data.min(bytes.len()), b"endstream") else { break };
        let head = &bytes[at..start];
        let mut plain = Vec::new();
        let unpacked = flate2::read::ZlibDecoder::new(&bytes[data..end]).take(UNPACKED_MAX).read_to_end(&mut plain);
        match head.windows(12).rposition(|w| w == b"/FlateDecode") {
            Some(filter) if unpacked.is_ok() && head.len() - filter < 400 => {
                // `null` stands for no filter, alone as well as in a list of one.
                out.extend([&head[..filter], &b"null"[..], &head[filter + 12..], &b"stream\n"[..], &plain].concat());
            }
            _ => out.extend([head, &bytes[start..end]].concat()),
        }
        out.extend(b"endstream");
        at = end + 9;
    }
    out.extend(&bytes[at..]);
    out
}
