//! The model's own chat format, and why no message can forge it.
//!
//! The template is rendered with a placeholder for each content. The rendering is cut at the placeholders into
//! [`Piece`]s: literals, which come from the template alone, and contents. Control tokens are looked for in literals
//! only. What lies between two control tokens, literal or content, is then tokenized as one plain text, so that the
//! tokens are those that the whole prompt would give, and yet no content ever yields a control token.

use minijinja::{Environment, Error, ErrorKind, Value, context};

use crate::error::{LoadError, RunError};
use crate::gguf::Metadata;
use crate::limits::{MAX_RENDERED_BYTES, MAX_TEMPLATE_BYTES, TEMPLATE_FUEL};
use crate::tokenizer::{Special, Tokenizer};

mod date;
mod json;
mod placeholder;

use placeholder::Cut;

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Instructions.
    System,
    /// The person.
    User,
    /// The model.
    Assistant,
}

impl Role {
    fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

/// One message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said.
    pub content: String,
}

impl Message {
    /// A message of the person.
    #[must_use]
    pub fn user(content: impl Into<String>) -> Self {
        Self { role: Role::User, content: content.into() }
    }

    /// Instructions.
    #[must_use]
    pub fn system(content: impl Into<String>) -> Self {
        Self { role: Role::System, content: content.into() }
    }

    /// A message of the model.
    #[must_use]
    pub fn assistant(content: impl Into<String>) -> Self {
        Self { role: Role::Assistant, content: content.into() }
    }
}

/// A part of a rendered conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// Text of the template, in which names of control tokens mean those tokens.
    Literal(String),
    /// What somebody said, trimmed if the template trims.
    Content(String),
}

/// A compiled chat template.
#[derive(Debug)]
pub struct ChatTemplate {
    environment: Environment<'static>,
    bos: String,
    eos: String,
}

/// For base models, which have no template and continue any text: instructions, then turns with the names of who
/// speaks. `User:` at the start of a line is where such a model begins to invent questions of its own.
const PLAIN: &str = "\
{%- for m in messages -%}
{%- if m.role == 'system' -%}{{ m.content }}{{ '\\n\\n' }}
{%- elif m.role == 'user' -%}User: {{ m.content }}{{ '\\n' }}
{%- else -%}Assistant: {{ m.content }}{{ '\\n' }}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}Assistant:{%- endif -%}";

impl ChatTemplate {
    /// Compiles the file's template; a file without one gets a plain format of named turns.
    ///
    /// # Errors
    /// [`LoadError::ChatTemplate`] when it is no valid template.
    pub fn from_gguf(metadata: &Metadata, tokenizer: &Tokenizer) -> Result<Self, LoadError> {
        let source = metadata.str("tokenizer.chat_template")?.unwrap_or(PLAIN);
        if source.len() > MAX_TEMPLATE_BYTES {
            return Err(LoadError::ChatTemplate(format!("{} bytes, more than {MAX_TEMPLATE_BYTES}", source.len())));
        }
        if placeholder::is_forged(source) {
            return Err(LoadError::ChatTemplate("it contains the characters that stand for contents here".into()));
        }
        let mut environment = environment();
        environment
            .add_template_owned("chat", without_generation_tags(source))
            .map_err(|e| LoadError::ChatTemplate(reason(&e)))?;
        let name = |id: Option<u32>| id.and_then(|id| tokenizer.token_name(id)).unwrap_or_default();
        Ok(Self { environment, bos: name(tokenizer.bos()), eos: name(tokenizer.eos()) })
    }

    /// Token ids of a conversation, with the token of the beginning where the model wants it; ready for the model to
    /// continue when `generate`.
    ///
    /// # Errors
    /// [`RunError::Text`] when the template refuses the messages or loses a content; those of [`Tokenizer::encode`].
    pub fn encode(&self, tokenizer: &Tokenizer, messages: &[Message], generate: bool) -> Result<Vec<u32>, RunError> {
        encode_pieces(tokenizer, &self.render(messages, generate)?)
    }

    /// The parts of a conversation, before they are tokenized.
    ///
    /// # Errors
    /// [`RunError::Text`] when the template refuses the messages or loses a content.
    pub fn render(&self, messages: &[Message], generate: bool) -> Result<Vec<Piece>, RunError> {
        let refused = |e: &Error| RunError::Text(format!("the chat template refused the messages: {}", reason(e)));
        let first = match self.try_render(messages, generate) {
            Ok(pieces) => return Ok(pieces),
            Err(e) => e,
        };
        // Some templates raise on instructions, or leave them out: then they go in front of the first question.
        let merged = with_system_in_user(messages).ok_or_else(|| refused(&first))?;
        self.try_render(&merged, generate).map_err(|_| refused(&first))
    }

    fn try_render(&self, messages: &[Message], generate: bool) -> Result<Vec<Piece>, Error> {
        let values: Vec<Value> = messages
            .iter()
            .enumerate()
            .map(|(i, m)| context! { role => m.role.name(), content => placeholder::of(i, &m.content) })
            .collect();
        let mut out = Bounded::default();
        self.environment.get_template("chat")?.render_captured_to(
            context! {
                messages => values,
                add_generation_prompt => generate,
                bos_token => self.bos,
                eos_token => self.eos,
            },
            &mut out,
        )?;
        let rendered = String::from_utf8(out.bytes).map_err(|e| invalid(e.to_string()))?;
        pieces(&rendered, messages).map_err(invalid)
    }
}

/// Tokens of pieces: control tokens from literals alone, and [`Tokenizer::bos`] once where the model wants it.
///
/// # Errors
/// As [`Tokenizer::encode`].
pub fn encode_pieces(tokenizer: &Tokenizer, pieces: &[Piece]) -> Result<Vec<u32>, RunError> {
    let mut ids = Vec::new();
    let mut text = String::new();
    for piece in pieces {
        match piece {
            Piece::Content(content) => text.push_str(content),
            Piece::Literal(literal) => {
                for (before, control) in tokenizer.controls(literal) {
                    text.push_str(before);
                    if let Some(control) = control {
                        ids.append(&mut tokenizer.encode(&text, Special::Text)?);
                        text.clear();
                        ids.push(control);
                    }
                }
            }
        }
    }
    ids.append(&mut tokenizer.encode(&text, Special::Text)?);
    if let Some(bos) = tokenizer.bos().filter(|bos| tokenizer.adds_bos() && ids.first() != Some(bos)) {
        ids.insert(0, bos);
    }
    Ok(ids)
}

/// Cuts a rendering at its placeholders; every content must be there.
fn pieces(rendered: &str, messages: &[Message]) -> Result<Vec<Piece>, String> {
    let mut pieces = Vec::new();
    let mut seen = vec![false; messages.len()];
    let mut rest = rendered;
    while let Some(Cut { before, index, trim, after }) = placeholder::next(rest)? {
        let message = messages.get(index).ok_or("it invented a message")?;
        seen[index] = true;
        if !before.is_empty() {
            pieces.push(Piece::Literal(before.to_owned()));
        }
        pieces.push(Piece::Content(trim.apply(&message.content).to_owned()));
        rest = after;
    }
    if !rest.is_empty() {
        pieces.push(Piece::Literal(rest.to_owned()));
    }
    // An empty content needs no place.
    match (0..).zip(messages).find(|(i, m): &(usize, _)| !seen[*i] && !m.content.trim().is_empty()) {
        Some((i, m)) => Err(format!("message {i} ({}) is not in its output", m.role.name())),
        None => Ok(pieces),
    }
}

/// What templates of known models call, bounded in steps. (Not bounded is the length of a string inside a template:
/// a hostile one can use up memory. Models are checked by hash when pulled; one imported by hand is trusted so far.)
fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_trim_blocks(true);
    environment.set_lstrip_blocks(true);
    environment.set_fuel(Some(TEMPLATE_FUEL));
    environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
    environment.add_function("raise_exception", |message: String| -> Result<String, Error> { Err(invalid(message)) });
    environment.add_function("strftime_now", |format: String| date::format_now(&format));
    environment.add_filter("tojson", |value: Value| json::tojson(&value));
    environment
}

/// `{% generation %}` marks what is trained on; for us it is nothing, but the marks for spaces inside it count.
fn without_generation_tags(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(at) = rest.find("{%") {
        let (before, tag) = rest.split_at(at);
        out.push_str(before);
        let end = tag.find("%}").map_or(tag.len(), |end| end + 2);
        let (tag, after) = tag.split_at(end);
        let name = tag.trim_start_matches("{%").trim_end_matches("%}").trim_matches(['-', '+']).trim();
        match name {
            "generation" => out.push_str(&tag.replacen("generation", "if true", 1)),
            "endgeneration" => out.push_str(&tag.replacen("endgeneration", "endif", 1)),
            _ => out.push_str(tag),
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

/// The first system message put in front of the first user message.
fn with_system_in_user(messages: &[Message]) -> Option<Vec<Message>> {
    let (system, rest) = messages.split_first().filter(|(m, _)| m.role == Role::System)?;
    let (user, rest) = rest.split_first().filter(|(m, _)| m.role == Role::User)?;
    let mut merged = vec![Message::user(format!("{}\n\n{}", system.content.trim_end(), user.content))];
    merged.extend_from_slice(rest);
    Some(merged)
}

fn invalid(what: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::InvalidOperation, what)
}

/// What is wrong and in which line.
fn reason(e: &Error) -> String {
    match (e.detail(), e.line()) {
        (Some(detail), Some(line)) => format!("{detail} (line {line})"),
        (None, Some(line)) => format!("{} (line {line})", e.kind()),
        (Some(detail), None) => detail.to_owned(),
        (None, None) => e.kind().to_string(),
    }
}

/// Output of a template, which is refused beyond a bound.
#[derive(Debug, Default)]
struct Bounded {
    bytes: Vec<u8>,
}

impl std::io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.bytes.len() + bytes.len() > MAX_RENDERED_BYTES {
            return Err(std::io::Error::other(format!("the output is longer than {MAX_RENDERED_BYTES} bytes")));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
