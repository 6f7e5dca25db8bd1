//! The model's own chat format, and why no message can forge it.
//!
//! The template is rendered with a placeholder for each message's content. The rendered text is cut at the
//! placeholders; the pieces between them, which come from the template alone, are tokenized with control tokens, and
//! the contents without. A content therefore never yields a control token, whatever it says.

use minijinja::{Environment, Error, ErrorKind, context};

use crate::error::{LoadError, RunError};
use crate::gguf::Metadata;
use crate::tokenizer::{Special, Tokenizer};

/// Steps that a template may take: real ones need some thousands for a long conversation.
const TEMPLATE_FUEL: u64 = 1_000_000;
/// Longest rendering of a template without contents.
const MAX_RENDERED_BYTES: usize = 1 << 20;

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

/// A compiled chat template.
#[derive(Debug)]
pub struct ChatTemplate {
    environment: Environment<'static>,
    bos: String,
    eos: String,
}

/// For base models, which have no template: contents one after the other, an empty line between them, and a cue.
const PLAIN: &str = "{% for m in messages %}{{ m.content }}\n\n{% endfor %}{% if add_generation_prompt %}Answer:{% endif %}";

impl ChatTemplate {
    /// Compiles the file's template; files without one get a plain format.
    ///
    /// # Errors
    /// [`LoadError::ChatTemplate`] when it is no valid template.
    pub fn from_gguf(m: &Metadata, tokenizer: &Tokenizer) -> Result<Self, LoadError> {
        let source = m.str("tokenizer.chat_template")?.unwrap_or(PLAIN).to_owned();
        let mut environment = Environment::new();
        environment.set_trim_blocks(true);
        environment.set_lstrip_blocks(true);
        environment.set_fuel(Some(TEMPLATE_FUEL));
        environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        environment.add_function("raise_exception", |message: String| -> Result<String, Error> {
            Err(Error::new(ErrorKind::InvalidOperation, message))
        });
        // Templates print a date; a fixed one keeps prompts, and so the KV cache, the same from day to day.
        environment.add_function("strftime_now", |_: String| "1 January 2025");
        let failed = |e: Error| LoadError::ChatTemplate(e.to_string());
        environment.add_template_owned("chat", source).map_err(failed)?;
        let name = |id: Option<u32>| id.and_then(|id| tokenizer.token_name(id)).unwrap_or_default().to_owned();
        Ok(Self { environment, bos: name(tokenizer.bos()), eos: name(tokenizer.eos()) })
    }

    /// Token ids of a conversation, ready for the model to continue when `generate`.
    ///
    /// # Errors
    /// [`RunError::Text`] when the template refuses the messages or loses a content.
    pub fn encode(&self, tokenizer: &Tokenizer, messages: &[Message], generate: bool) -> Result<Vec<u32>, RunError> {
        let (rendered, messages) = match self.render(messages, generate) {
            Ok(rendered) => (rendered, messages.to_vec()),
            // Some templates raise on a system role: then it goes in front of the first user message.
            Err(first) => match merge_system(messages) {
                Some(merged) => (self.render(&merged, generate).map_err(|_| refused(&first))?, merged),
                None => return Err(refused(&first)),
            },
        };
        let mut ids = Vec::new();
        let mut rest = rendered.as_str();
        let bos = tokenizer.bos().filter(|_| tokenizer.adds_bos());
        // A template that prints the begin token itself must not get it twice.
        if let Some(bos) = bos.filter(|_| self.bos.is_empty() || !rest.starts_with(&self.bos)) {
            ids.push(bos);
        }
        while let Some((literal, index, after)) = next_placeholder(rest) {
            ids.extend(tokenizer.encode(literal, Special::Template)?);
            let message = messages.get(index).ok_or_else(|| RunError::Text("the template changed a message".into()))?;
            ids.extend(tokenizer.encode(message.content.trim(), Special::Text)?);
            rest = after;
        }
        ids.extend(tokenizer.encode(rest, Special::Template)?);
        Ok(ids)
    }

    fn render(&self, messages: &[Message], generate: bool) -> Result<String, Error> {
        let values: Vec<_> = messages
            .iter()
            .enumerate()
            .map(|(i, m)| context! { role => m.role.name(), content => placeholder(i) })
            .collect();
        let rendered = self.environment.get_template("chat")?.render(context! {
            messages => values,
            add_generation_prompt => generate,
            bos_token => self.bos,
            eos_token => self.eos,
        })?;
        let found = std::iter::successors(next_placeholder(&rendered), |(_, _, rest)| next_placeholder(rest)).count();
        if rendered.len() > MAX_RENDERED_BYTES || found != messages.len() {
            let what = format!("{found} of {} messages are in the prompt", messages.len());
            return Err(Error::new(ErrorKind::InvalidOperation, what));
        }
        Ok(rendered)
    }
}

fn refused(e: &Error) -> RunError {
    RunError::Text(format!("the model's chat template refused the messages: {e}"))
}

/// What stands for the content of message `i`; characters of the private use area, which templates do not print.
fn placeholder(i: usize) -> String {
    format!("\u{f8fc}{i}\u{f8fd}")
}

/// The text before the next placeholder, its message, and the text after it.
fn next_placeholder(text: &str) -> Option<(&str, usize, &str)> {
    let (before, from) = text.split_once('\u{f8fc}')?;
    let (index, after) = from.split_once('\u{f8fd}')?;
    Some((before, index.parse().ok()?, after))
}

fn merge_system(messages: &[Message]) -> Option<Vec<Message>> {
    let (system, rest) = messages.split_first().filter(|(m, _)| m.role == Role::System)?;
    let (user, rest) = rest.split_first().filter(|(m, _)| m.role == Role::User)?;
    let mut merged = vec![Message::user(format!("{}\n\n{}", system.content, user.content))];
    merged.extend_from_slice(rest);
    Some(merged)
}
