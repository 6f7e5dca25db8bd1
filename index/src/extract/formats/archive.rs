//! Archives as folders: ZIP, and single files packed by gzip. Each file in one is read by the rules of its own kind.

use std::ffi::OsStr;
use std::io::Read;
use std::path::Path;

use crate::extract::cipher::PASSWORDS_MAX;
use crate::extract::draft::{Draft, Gap};
use crate::extract::package::{Member, Package};
use crate::extract::{Context, Extracted, PartKind, Refusal};
use crate::rules;

/// Bytes of one file packed by gzip, unpacked.
const GZIP_BYTES_MAX: u64 = 192 << 20;

/// The files that can be read, each a part under its path.
pub(crate) fn extract(bytes: &[u8], context: &Context<'_>) -> Result<Extracted, Refusal> {
    let mut package = Package::open(bytes, &context.budget)?;
    let mut draft = Draft::new(context.limits);
    let (mut locked, mut failed, mut number) = (0_usize, 0_usize, 0);
    for index in 0..package.len() {
        let Some(member) = package.member(index).filter(is_read) else { continue };
        let Some(inner) = context.inner() else { break };
        number += 1;
        let content = match unlocked(&mut package, index, &member, context) {
            Ok(content) => content,
            Err(refusal) => {
                locked += usize::from(refusal.state == crate::State::Locked);
                failed += usize::from(refusal.state == crate::State::Failed);
                continue;
            }
        };
        match crate::extract::extract(Path::new(&member.name), &content, &inner) {
            Ok(read) => {
                draft.part(PartKind::File, number, Some(&member.name));
                draft.push(&member.name);
                draft.separate(Gap::Line);
                draft.append(&read);
            }
            Err(refusal) => {
                locked += usize::from(refusal.state == crate::State::Locked);
                failed += usize::from(refusal.state == crate::State::Failed);
            }
        }
        if draft.is_full() {
            break;
        }
    }
    if draft.len() == 0 && locked > 0 {
        return Err(Refusal::locked());
    }
    if locked + failed > 0 {
        draft.about().cut =
            Some(format!("not read of its files: {locked} that need a password, {failed} that are broken"));
    }
    draft.finish()
}

/// A folder's hidden files and litter are left out in an archive too; what points elsewhere is not followed.
fn is_read(member: &Member) -> bool {
    let mut steps = member.name.split(['/', '\\']).filter(|s| !matches!(*s, "" | "." | "..")).peekable();
    let mut left_out = member.is_folder || member.is_link || member.bytes == 0;
    while let Some(step) = steps.next() {
        left_out |= step == "__MACOSX" || rules::is_litter(OsStr::new(step), steps.peek().is_some());
    }
    !left_out
}

fn unlocked(
    package: &mut Package<'_>,
    index: usize,
    member: &Member,
    context: &Context<'_>,
) -> Result<Vec<u8>, Refusal> {
    if !member.encrypted {
        return package.read_at(index, None);
    }
    for password in context.passwords.iter().take(PASSWORDS_MAX) {
        // A wrong password may pass the first check of the old way; then what comes out is broken.
        if let Ok(content) = package.read_at(index, Some(password)) {
            return Ok(content);
        }
    }
    Err(Refusal::locked())
}

/// A file packed by gzip, read under its name without the ending.
pub(crate) fn gzip(name: &Path, bytes: &[u8], context: &Context<'_>) -> Result<Extracted, Refusal> {
    let inner = context.inner().ok_or_else(|| Refusal::excluded("an archive in too many others"))?;
    let bound = GZIP_BYTES_MAX.min(context.budget.left());
    let mut content = Vec::new();
    let read = flate2::read::MultiGzDecoder::new(bytes).take(bound + 1).read_to_end(&mut content);
    context.budget.spend(content.len() as u64);
    if content.len() as u64 > bound {
        return Err(Refusal::failed("it unpacks to far more than a document does"));
    }
    read.map_err(|error| Refusal::failed(format!("it is broken: {error}")))?;
    let stem = name.file_stem().unwrap_or_default();
    let read = crate::extract::extract(Path::new(stem), &content, &inner)?;
    // Spans point into what was unpacked.
    Ok(Extracted { in_file: false, ..read })
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Write};

    use zip::write::{SimpleFileOptions, ZipWriter};

    use super::*;
    use crate::extract::Limits;
    use crate::extract::package::tests::packed;

    fn read(bytes: &[u8], passwords: &[String]) -> Result<Extracted, Refusal> {
        crate::extract::extract(Path::new("a.zip"), bytes, &Context::new(&Limits::default(), passwords))
    }

    #[test]
    fn files_are_parts_and_litter_is_left_out() {
        let bytes = packed(&[
            ("notes/a.txt", "first"),
            ("__MACOSX/notes/._a.txt", "no"),
            (".hidden/x.txt", "no"),
            ("b.md", "# Head\n\nsecond"),
            ("c.png", "\u{89}PNG"),
            ("empty.txt", ""),
            ("../../out.txt", "named, not written"),
        ]);
        let got = read(&bytes, &[]).unwrap();
        assert_eq!(
            got.text,
            "notes/a.txt\n\nfirst\n\nb.md\n\n# Head\n\nsecond\n\n../../out.txt\n\nnamed, not written\n"
        );
        let parts: Vec<_> = got.parts.iter().map(|p| p.name.as_deref().unwrap()).collect();
        assert_eq!(parts, ["notes/a.txt", "b.md", "../../out.txt"]);
        assert!(got.headings.iter().all(|h| got.text[h.start..].starts_with("# Head")));
    }

    #[test]
    fn files_that_cannot_be_read_are_told() {
        let got = read(&packed(&[("a.txt", "good"), ("b.pdf", "%PDF-1.4\n1 0 obj\n<<"), ("c.png", "x")]), &[]).unwrap();
        assert_eq!(got.cut.as_deref(), Some("not read of its files: 0 that need a password, 1 that are broken"));
        assert_eq!(read(&packed(&[("a.txt", "good")]), &[]).unwrap().cut, None);
    }

    #[test]
    fn archives_in_archives_end() {
        let mut bytes = packed(&[("deep.txt", "bottom")]);
        for _ in 0..10 {
            let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
            for name in ["a.zip", "b.zip"] {
                writer.start_file(name, SimpleFileOptions::default()).unwrap();
                writer.write_all(&bytes).unwrap();
            }
            bytes = writer.finish().unwrap().into_inner();
        }
        assert_eq!(read(&bytes, &[]).unwrap_err().state, crate::State::Empty);
    }

    #[test]
    fn locked_files_are_opened_with_the_persons_password() {
        let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
        let options = SimpleFileOptions::default().with_aes_encryption(zip::AesMode::Aes256, "secret");
        writer.start_file("a.txt", options).unwrap();
        writer.write_all(b"behind a lock").unwrap();
        let bytes = writer.finish().unwrap().into_inner();
        assert_eq!(read(&bytes, &["wrong".to_owned()]).unwrap_err().state, crate::State::Locked);
        let got = read(&bytes, &["wrong".to_owned(), "secret".to_owned()]).unwrap();
        assert!(got.text.contains("behind a lock"));
    }

    #[test]
    fn a_file_packed_alone_is_read_under_its_name() {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packer.write_all(b"# Head\n\ntext\n").unwrap();
        let bytes = packer.finish().unwrap();
        let limits = Limits::default();
        let got = crate::extract::extract(Path::new("n.md.gz"), &bytes, &Context::new(&limits, &[])).unwrap();
        assert_eq!((got.headings.len(), got.in_file), (1, false));
        let refused = crate::extract::extract(Path::new("n.md.gz"), &bytes[..10], &Context::new(&limits, &[]));
        assert_eq!(refused.unwrap_err().state, crate::State::Failed);
    }
}
