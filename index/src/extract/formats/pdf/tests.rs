use super::*;
use crate::extract::Limits;

/// A file of one page with that content and these further objects, numbered from 6.
fn file(content: &str, resources: &str, page: &str, catalog: &str, more: &[&str]) -> Vec<u8> {
    let mut objects = vec![
        format!("<< /Type /Catalog /Pages 2 0 R {catalog} >>"),
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_owned(),
        format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents 4 0 R /Resources << /Font << /F 5 0 R >> {resources} >> {page} >>"
        ),
        format!("<< /Length {} >>\nstream\n{content}\nendstream", content.len()),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>".to_owned(),
    ];
    objects.extend(more.iter().map(|&o| o.to_owned()));
    let mut out = "%PDF-1.7\n".to_owned();
    let mut places = Vec::new();
    for (i, object) in objects.iter().enumerate() {
        places.push(out.len());
        out.push_str(&format!("{} 0 obj\n{object}\nendobj\n", i + 1));
    }
    let start = out.len();
    out.push_str(&format!("xref\n0 {}\n0000000000 65535 f \n", places.len() + 1));
    for place in &places {
        out.push_str(&format!("{place:010} 00000 n \n"));
    }
    out.push_str(&format!("trailer << /Size {} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF", places.len() + 1));
    out.into_bytes()
}

fn read(bytes: &[u8]) -> Result<Extracted, Refusal> {
    let limits = Limits::default();
    extract(bytes, &Context::new(&limits, &[]))
}

fn text(content: &str) -> String {
    read(&file(content, "", "", "", &[])).unwrap().text.trim().to_owned()
}

#[test]
fn words_are_parted_by_their_gaps() {
    assert_eq!(text("BT /F 10 Tf 72 700 Td [(One) -300 (two)] TJ ET"), "One two");
    assert_eq!(text("BT /F 10 Tf 72 700 Td [(K) 80 (erned)] TJ ET"), "Kerned");
    assert_eq!(text("BT /F 10 Tf 5 Tc 72 700 Td (SPACED) Tj ET"), "SPACED");
    assert_eq!(text("BT /F 10 Tf 72 700 Td (impor\\255) Tj 0 -12 Td (tant) Tj ET"), "important");
}

#[test]
fn accents_go_onto_their_letters() {
    // As TeX sets them: the accent, back over it, the letter.
    assert_eq!(text("BT /F 10 Tf 72 700 Td [(M) (\\250) 500 (uller)] TJ ET"), "Müller");
    assert_eq!(text("BT /F 10 Tf 72 700 Td [(Universit) (\\264) 450 (e de)] TJ ET"), "Université de");
    assert_eq!(text("BT /F 10 Tf 72 700 Td (a \\264 b) Tj ET"), "a ´ b");
}

#[test]
fn lines_and_what_is_drawn_twice() {
    assert_eq!(text("BT /F 10 Tf 72 700 Td (bold) Tj ET BT /F 10 Tf 72.3 700 Td (bold) Tj ET"), "bold");
    assert_eq!(text("BT /F 10 Tf 12 TL 72 700 Td (one) Tj T* (two) Tj (three) ' ET"), "one\ntwo\nthree");
}

#[test]
fn text_that_is_turned_is_read_along_its_line() {
    assert_eq!(text("BT /F 10 Tf 0 1 -1 0 300 100 Tm (Up the page) Tj ET"), "Up the page");
    assert_eq!(text("BT /F 10 Tf 3 Tr 72 700 Td (hidden layer of a scan) Tj ET"), "hidden layer of a scan");
}

#[test]
fn pages_of_images_need_ocr() {
    let image = "<< /Type /XObject /Subtype /Image /Width 1 /Height 1 /BitsPerComponent 8 /ColorSpace /DeviceGray /Length 1 >>\nstream\nx\nendstream";
    let refusal = read(&file("600 0 0 800 0 0 cm /I Do", "/XObject << /I 6 0 R >>", "", "", &[image])).unwrap_err();
    assert_eq!(refusal.state, State::NeedsOcr);
    let page =
        "BT /F 9 Tf 72 700 Td (a scan that someone wrote a whole sentence on) Tj ET q 600 0 0 800 0 0 cm /I Do Q";
    assert!(read(&file(page, "/XObject << /I 6 0 R >>", "", "", &[image])).unwrap().text.contains("whole sentence"));
}

#[test]
fn notes_fields_and_layers() {
    let note = "<< /Type /Annot /Subtype /Text /Rect [0 0 9 9] /Contents (A comment) >>";
    let got = read(&file("BT /F 9 Tf 9 9 Td (x) Tj ET", "", "/Annots [6 0 R]", "", &[note])).unwrap();
    assert_eq!(got.text.trim(), "x\n\nA comment");
    let field = "<< /FT /Tx /T (name) /V (Ada Lovelace) >>";
    let got = read(&file("BT ET", "", "", "/AcroForm << /Fields [6 0 R] >>", &[field])).unwrap();
    assert_eq!(got.text.trim(), "Ada Lovelace");
    let page = "/OC /L BDC BT /F 9 Tf 9 9 Td (off) Tj ET EMC BT /F 9 Tf 9 99 Td (on) Tj ET";
    let layer = "/OCProperties << /OCGs [6 0 R] /D << /OFF [6 0 R] >> >>";
    let got = read(&file(page, "/Properties << /L 6 0 R >>", "", layer, &["<< /Type /OCG /Name (L) >>"])).unwrap();
    assert_eq!(got.text.trim(), "on");
}

#[test]
fn the_outline_gives_headings() {
    let page = "BT /F 9 Tf 9 99 Td (before) Tj 0 -12 Td (Chapter One) Tj ET";
    let outline = ["<< /First 7 0 R >>", "<< /Title (Chapter One) /Dest [3 0 R /Fit] /Next 7 0 R /First 7 0 R >>"];
    let got = read(&file(page, "", "", "/Outlines 6 0 R", &outline)).unwrap();
    assert_eq!(got.headings.len(), 1);
    assert!(got.text[got.headings[0].start..].starts_with("Chapter One"));
}

#[test]
fn forms_that_draw_themselves_end() {
    let form = "<< /Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /XObject << /X 6 0 R >> >> /Length 11 >>\nstream\n/X Do /X Do\nendstream";
    let page = "/X Do BT /F 9 Tf 9 9 Td (after) Tj ET";
    assert_eq!(read(&file(page, "/XObject << /X 6 0 R >>", "", "", &[form])).unwrap().text.trim(), "after");
}

#[test]
fn a_page_that_is_cut_is_told() {
    let form = "<< /Type /XObject /Subtype /Form /BBox [0 0 9 9] /Length 2 >>\nstream\nq\n\nendstream";
    let page = |draws: usize| format!("BT /F 9 Tf 9 9 Td (before) Tj ET {}", "/X Do ".repeat(draws));
    let drawn = |draws: usize, bytes: u64| {
        let limits = Limits::default();
        let context = Context::new(&limits, &[]);
        assert!(context.budget.spend(context.budget.left() - bytes));
        extract(&file(&page(draws), "/XObject << /X 6 0 R >>", "", "", &[form]), &context).unwrap()
    };
    assert_eq!(drawn(3, 1 << 20).cut, None);
    let cut = drawn(600, 1 << 20);
    assert_eq!(cut.text.trim(), "before");
    assert_eq!(cut.cut.as_deref(), Some("read to page 1 of 1, and that one in part"));
}

#[test]
fn what_is_no_pdf_fails() {
    for bytes in [&b"%PDF-1.7\n"[..], b"<html>404</html>", b"%PDF-1.4\n1 0 obj\n<<"] {
        assert_eq!(read(bytes).unwrap_err().state, State::Failed);
    }
}
