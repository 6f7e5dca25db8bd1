//! Plain text: the text is the file.

use crate::extract::{Extracted, Limits, Refusal, charset};

/// Any charset; UTF-8 keeps its bytes.
pub(crate) fn extract(bytes: &[u8], limits: &Limits) -> Result<Extracted, Refusal> {
    let decoded = charset::decode(bytes, limits)?;
    Ok(Extracted {
        text: decoded.text.into_owned(),
        in_file: decoded.in_file,
        charset: decoded.charset,
        ..Extracted::default()
    })
}
