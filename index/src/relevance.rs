//! How likely it is that a passage is about the query at all. The fused score only orders: the first of ten passages that mean
//! nothing is first all the same.

/// What an embedder's cosines are worth: weights of a logistic regression over questions asked of folders that hold their
/// answer and of folders about something else (docs/retrieval.md, "Nothing relevant"). Cosines of one model lie elsewhere than
/// those of another, so each has its own.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Calibration {
    /// Weight of the cosine.
    pub similarity: f32,
    /// Weight of the share of the query's words that the passage has.
    pub coverage: f32,
    /// The constant.
    pub bias: f32,
    /// Weight and constant for the cosine alone, where the query is in another language than the documents.
    pub foreign: Option<(f32, f32)>,
}

/// The same by words alone, where there is no embedder.
const BY_WORDS: (f32, f32) = (15.1, -4.42);

/// Likelihood, 0 to 1. `foreign`: the document is in another language than the query, so that words it lacks say nothing. `None`
/// where nothing can be said: of a foreign document with an embedder that knows one language, or that was not measured.
pub(crate) fn relevance(
    calibration: Option<&Calibration>,
    similarity: Option<f32>,
    coverage: Option<f32>,
    foreign: bool,
) -> Option<f32> {
    let odds = match (similarity, calibration) {
        (Some(_), None) => return None,
        (Some(similarity), Some(c)) if foreign || coverage.is_none() => {
            let (weight, bias) = c.foreign?;
            weight * similarity + bias
        }
        (Some(similarity), Some(c)) => c.similarity * similarity + c.coverage * coverage? + c.bias,
        (None, _) => BY_WORDS.0 * coverage? + BY_WORDS.1,
    };
    Some(1.0 / (1.0 + (-odds).exp()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALIBRATION: Calibration =
        Calibration { similarity: 60.0, coverage: 10.0, bias: -55.0, foreign: Some((40.0, -33.0)) };

    #[test]
    fn words_and_meaning_both_count() {
        let of = |similarity, coverage| relevance(Some(&CALIBRATION), Some(similarity), Some(coverage), false).unwrap();
        assert!(of(0.9, 0.5) > 0.95 && of(0.78, 0.1) < 0.01);
        assert!(of(0.85, 0.5) > of(0.85, 0.2) && of(0.87, 0.2) > of(0.85, 0.2));
        assert!(relevance(None, None, Some(0.9), false).unwrap() > 0.9);
        assert!(relevance(None, None, Some(0.05), false).unwrap() < 0.05);
    }

    #[test]
    fn words_say_nothing_to_a_query_in_another_language() {
        let of = |foreign| relevance(Some(&CALIBRATION), Some(0.86), Some(0.0), foreign).unwrap();
        assert!(of(true) > 0.7 && of(false) < 0.1);
        let one_language = Calibration { foreign: None, ..CALIBRATION };
        assert_eq!(relevance(Some(&one_language), Some(0.86), Some(0.0), true), None);
        assert_eq!(relevance(None, Some(0.86), Some(0.9), false), None, "an embedder that was not measured");
        assert_eq!(relevance(None, None, None, false), None);
    }
}
