//! Documents of many kinds: the place that a passage cites is the one a person finds it at.

use serde_json::json;

use crate::harness::Home;

/// A PDF of these pages, each one line of text.
fn pdf(pages: &[&str]) -> Vec<u8> {
    let kids: Vec<String> = (0..pages.len()).map(|i| format!("{} 0 R", 4 + 2 * i)).collect();
    let mut objects = vec![
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        format!("<< /Type /Pages /Kids [{}] /Count {} >>", kids.join(" "), pages.len()),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>".to_owned(),
    ];
    for (i, text) in pages.iter().enumerate() {
        let content = format!("BT /F1 12 Tf 72 700 Td ({text}) Tj ET");
        objects.push(format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >> /Contents {} 0 R >>",
            5 + 2 * i
        ));
        objects.push(format!("<< /Length {} >>\nstream\n{content}\nendstream", content.len()));
    }
    let mut file = "%PDF-1.4\n".to_owned();
    let mut places = Vec::new();
    for (i, object) in objects.iter().enumerate() {
        places.push(file.len());
        file.push_str(&format!("{} 0 obj\n{object}\nendobj\n", i + 1));
    }
    let table = file.len();
    file.push_str(&format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1));
    for place in places {
        file.push_str(&format!("{place:010} 00000 n \n"));
    }
    file.push_str(&format!("trailer\n<< /Size {} /Root 1 0 R >>\nstartxref\n{table}\n%%EOF\n", objects.len() + 1));
    file.into_bytes()
}

#[test]
fn a_passage_of_a_pdf_says_its_page() {
    let home = Home::bare();
    let path = home.write("lease.pdf", pdf(&["The lease begins in amber.", "The rent falls due in beryl."]));
    let daemon = home.daemon();
    daemon.expect("beryl", &[&path]);
    let found = daemon.post("/v1/search", json!({"query": "beryl", "mode": "lexical"}));
    let hit = &found["hits"][0];
    assert_eq!(hit["page"], 2, "{hit}");
    assert!(!hit["text"].as_str().unwrap().contains("amber"), "a passage keeps to its page: {hit}");
    assert_eq!(daemon.file(&path).unwrap()["kind"], "pdf");
    let shown = home.run(["search", "beryl"]).ok();
    assert!(shown.out.contains("lease.pdf, page 2"), "{}", shown.out);
}

#[test]
fn a_passage_of_a_mail_says_who_wrote_it_and_when() {
    let home = Home::bare();
    let mail = "From: Ann Reed <ann@example.org>\r\nTo: bob@example.org\r\nSubject: The garden\r\n\
                Date: Thu, 02 Jan 2020 10:00:00 +0000\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n\
                The beryl lies under the pear tree.\r\n";
    home.write("garden.eml", mail);
    let daemon = home.daemon();
    let found = daemon.post("/v1/search", json!({"query": "beryl", "mode": "lexical"}));
    let hit = &found["hits"][0];
    assert!(hit["author"].as_str().unwrap().contains("Ann Reed"), "{hit}");
    assert_eq!(hit["dated"], 1_577_959_200, "{hit}");
}

#[test]
fn what_is_left_out_of_a_file_is_told() {
    let home = Home::bare();
    let page = "BT /F 9 Tf 9 9 Td (malachite) Tj ET";
    let pdf = format!(
        "%PDF-1.4\n1 0 obj << /Type /Catalog /Pages 2 0 R >> endobj\n\
         2 0 obj << /Type /Pages /Kids [3 0 R] /Count 1 >> endobj\n\
         3 0 obj << /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents [4 0 R 5 0 R] >> endobj\n\
         4 0 obj << /Length {} >> stream\n{page}\nendstream endobj\n\
         5 0 obj << /Length 4 /Filter [/FlateDecode /LZWDecode /FlateDecode /LZWDecode /FlateDecode] >> stream\nbomb\nendstream endobj\n\
         trailer << /Root 1 0 R >>\n",
        page.len()
    );
    let file = home.write("half.pdf", &pdf);
    let daemon = home.daemon();
    daemon.expect("malachite", &[&file]);
    let told = |entry: &serde_json::Value| entry["reason"].as_str().is_some_and(|r| r.contains("damaged"));
    let entry = daemon.file(&file).unwrap();
    assert!(entry["state"] == "indexed" && told(&entry), "{entry}");
    // The same content again: what was said of it holds.
    std::fs::write(&file, &pdf).unwrap();
    let later = home.write("later.txt", "azurite\n");
    daemon.expect("azurite", &[&later]);
    daemon.settled();
    let entry = daemon.file(&file).unwrap();
    assert!(entry["state"] == "indexed" && told(&entry), "{entry}");
}
