use super::*;

fn read(rtf: &[u8]) -> Extracted {
    extract(rtf, &Limits::default()).unwrap()
}

fn text(rtf: &[u8]) -> String {
    read(rtf).text.trim().to_owned()
}

#[test]
fn charsets_follow_the_font() {
    let fonts = br"{\fonttbl{\f0\fcharset0 A;}{\f1\fcharset204 B;}{\f2\fcharset128 C;}}";
    let rtf = [b"{\\rtf1\\ansi\\ansicpg1250\\deff0", &fonts[..], br"{\f0\'e8}{\f1\'cc\'e8\'f0}{\f2\'82\'a0\'83e}\par}"]
        .concat();
    assert_eq!(text(&rtf), "čМирあテ");
}

#[test]
fn unicode_takes_its_alternatives_with_it() {
    assert_eq!(text(br"{\rtf1\uc1 a\u228?b\u-10179?\u-8704?c{\uc2\u26085\'93\'fa d}\u8364 \'80e}"), "aäb😀c日 d€e");
    assert_eq!(text(br"{\rtf1\uc0\u24565 x\u-10179 y}"), "念xy");
    // A group ends what is passed over.
    assert_eq!(text(br"{\rtf1{\uc3\u228 ?}abc}"), "äabc");
}

#[test]
fn what_is_no_text_is_left_out() {
    let rtf =
        br"{\rtf1{\info{\title T}{\author A}{\creatim\yr2020\mo2\dy3\hr4\min5}}{\pict 0102}{\*\unknown u}a{\v hidden}
        {\field{\*\fldinst HYPERLINK x}{\fldrslt link}}{\footnote note}\par{\object{\*\objdata 00}{\result shown}}}";
    let got = read(rtf);
    assert_eq!(got.text.split_whitespace().collect::<Vec<_>>(), ["a", "link", "shown", "note"]);
    assert_eq!(
        (got.title.as_deref(), got.author.as_deref(), got.dated),
        (Some("T"), Some("A"), Some(1_580_702_700_000))
    );
}

#[test]
fn outline_levels_are_headings() {
    let got = read(br"{\rtf1 x\par\pard\outlinelevel0 Head\par\pard y\par}");
    assert_eq!(got.headings, [Heading { start: 2, level: 1, text: "Head".into() }]);
    assert_eq!(got.text, "x\nHead\ny\n");
}

#[test]
fn hostile_files_end() {
    for rtf in [
        [b"{\\rtf1 ".to_vec(), b"{".repeat(300_000), b"deep".to_vec(), b"}".repeat(300_000)].concat(),
        b"{\\rtf1 marker \\bin2147483647 xx}".to_vec(),
        b"{\\rtf1\\uc99999 \\u-99999999999 ? marker".to_vec(),
        b"{\\rtf1 }}}}}}".to_vec(),
    ] {
        let _ = extract(&rtf, &Limits::default());
    }
}
