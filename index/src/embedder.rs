//! What the index needs from an embedding model. The index never sees the model itself.

use crate::relevance::Calibration;

/// An embedding model behind a plain interface.
pub trait Embedder: Send + Sync {
    /// The model's name and hash. When it changes, everything is embedded anew; vectors of two models never mix.
    fn id(&self) -> String;
    /// Length of every vector.
    fn dim(&self) -> usize;
    /// Tokens that one passage may have.
    fn max_tokens(&self) -> usize;
    /// Tokens of a text, as the model counts them.
    fn count_tokens(&self, text: &str) -> usize;
    /// What its cosines say of relevance, where that was measured.
    fn calibration(&self) -> Option<Calibration> {
        None
    }
    /// Unit-length vectors of the passages, in their order. May block while an answer is being generated.
    ///
    /// # Errors
    /// The model is gone or refused the batch.
    fn embed_passages(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError>;
    /// Unit-length vector of a question.
    ///
    /// # Errors
    /// The model is gone or refused the text.
    fn embed_query(&self, text: &str) -> Result<Vec<f32>, EmbedError>;
    /// Called about once a millisecond by background work that needs processor time and no model. May block while an answer is
    /// being generated.
    fn wait_turn(&self) {}
}

/// Why an embedder gave no vector.
#[derive(Debug, thiserror::Error)]
pub enum EmbedError {
    /// It is stopping; the work stays queued.
    #[error("the embedder is stopping")]
    Stopping,
    /// It failed.
    #[error("embedding failed: {message}")]
    Failed {
        /// What happened, in words.
        message: String,
        /// Why.
        #[source]
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
}

/// Checks a vector before anything stores or compares it: right length, finite, unit length within 1 %.
pub(crate) fn check_vector(vector: &[f32], dim: usize) -> Result<(), String> {
    if vector.len() != dim {
        return Err(format!("it has {} dimensions instead of {dim}", vector.len()));
    }
    let squares: f32 = vector.iter().map(|x| x * x).sum();
    if !squares.is_finite() {
        return Err("it is not finite".to_owned());
    }
    if (squares.sqrt() - 1.0).abs() > 0.01 {
        return Err(format!("its length is {} instead of 1", squares.sqrt()));
    }
    Ok(())
}
