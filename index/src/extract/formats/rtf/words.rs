//! What the words of RTF mean, as far as they say where text goes or stand for a character.

use super::Place;

/// Where the text of a group goes, for the groups that are no part of the body.
pub(super) fn destination(word: &[u8]) -> Option<Place> {
    Some(match word {
        b"footnote" | b"header" | b"headerl" | b"headerr" | b"headerf" | b"footer" | b"footerl" | b"footerr"
        | b"footerf" | b"annotation" => Place::Aside,
        b"title" => Place::Title,
        b"author" => Place::Author,
        b"keywords" => Place::Keywords,
        b"fonttbl"
        | b"colortbl"
        | b"stylesheet"
        | b"info"
        | b"pict"
        | b"objdata"
        | b"objclass"
        | b"objname"
        | b"fldinst"
        | b"listtable"
        | b"listoverridetable"
        | b"rsidtbl"
        | b"generator"
        | b"themedata"
        | b"colorschememapping"
        | b"latentstyles"
        | b"datastore"
        | b"xmlnstbl"
        | b"bkmkstart"
        | b"bkmkend"
        | b"xe"
        | b"tc"
        | b"tcn"
        | b"rxe"
        | b"txe"
        | b"nonshppict"
        | b"shppict"
        | b"filetbl"
        | b"revtbl"
        | b"atnid"
        | b"atnauthor"
        | b"atntime"
        | b"atndate"
        | b"atnref"
        | b"atnparent"
        | b"sn"
        | b"sv"
        | b"upr"
        | b"creatim"
        | b"revtim"
        | b"printim"
        | b"buptim"
        | b"operator"
        | b"subject"
        | b"doccomm"
        | b"comment"
        | b"company"
        | b"manager"
        | b"category"
        | b"hlinkbase"
        | b"userprops"
        | b"falt"
        | b"panose"
        | b"fontemb"
        | b"mmathPr"
        | b"ftnsep"
        | b"ftnsepc"
        | b"ftncn"
        | b"aftnsep"
        | b"aftnsepc"
        | b"aftncn"
        | b"pgdsctbl"
        | b"htmltag"
        | b"blipuid"
        | b"picprop"
        | b"wgrffmtfilter"
        | b"template"
        | b"private"
        | b"passwordhash" => Place::Nowhere,
        _ => return None,
    })
}

/// Words that stand for a character.
pub(super) fn character(word: &[u8]) -> Option<&'static str> {
    Some(match word {
        b"tab" => "\t",
        b"emdash" => "—",
        b"endash" => "–",
        b"emspace" | b"enspace" | b"qmspace" => " ",
        b"bullet" => "•",
        b"lquote" => "‘",
        b"rquote" => "’",
        b"ldblquote" => "“",
        b"rdblquote" => "”",
        b"zwj" => "\u{200D}",
        b"zwnj" => "\u{200C}",
        _ => return None,
    })
}
