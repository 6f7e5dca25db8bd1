//! The ranking by words: BM25 over the full-text postings, with phrases, beginnings of words and misspelled words.

use rusqlite::Connection;

use crate::error::Error;
use crate::limits::{PHRASE_PASSAGES_MAX, QUERY_POSTINGS_MAX, QUERY_TERMS_MAX};
use crate::phrase::{self, Phrases};
use crate::resident::Resident;
use crate::search::{Ranked, top};
use crate::spelling::Speller;
use crate::store::fulltext::{self, TIERS};
use crate::terms::{Group, Role, query_groups};

/// BM25: how soon more of the same word stops counting.
const K1: f32 = 0.9;
/// BM25: how much a long passage is held against it. Passages are of like size, so little.
const B: f32 = 0.4;
/// Power of a word's rarity (its idf). Above 1 the many common words of a question count less beside the few that say what
/// it is about, in any language and without a list of them. From 1.3 to 2 it helps nearly every set (docs/retrieval.md).
const RARITY: f32 = 1.5;
/// The passages that have words of a query.
#[derive(Default)]
pub(crate) struct Found {
    /// Best first.
    pub ranked: Vec<Ranked>,
    /// For each slot whether it has all phrases, where the query is nothing but phrases.
    pub only: Option<Vec<bool>>,
    /// For each slot what the words weigh that it has.
    weights: Vec<f32>,
    /// What all words of the query weigh.
    total: f32,
}

impl Found {
    /// Share of the query's words that a passage has, by their weights.
    pub(crate) fn coverage(&self, slot: usize) -> Option<f32> {
        self.weights.get(slot).filter(|_| self.total > 0.0).map(|weight| weight / self.total)
    }
}

/// Ranks by BM25. A word of the query counts once, whichever of its forms a passage has; a phrase counts as a word of its own.
pub(crate) fn rank(
    connection: &Connection,
    resident: &Resident,
    text: &str,
    allowed: Option<&[bool]>,
    depth: usize,
) -> Result<Found, Error> {
    let languages = resident.languages(allowed);
    let mut ranking = Ranking {
        connection,
        resident,
        searched: Searched::of(resident, allowed),
        matches: Matches::new(resident.slots()),
        scores: vec![0.0; resident.slots()],
        weights: vec![0.0; resident.slots()],
        total: 0.0,
    };
    ranking.add_words(query_groups(text, &languages))?;
    let phrases = Phrases::of(text);
    let mut only = phrases.alone.then(|| vec![true; resident.slots()]);
    for phrase in &phrases.all {
        let holding = ranking.holding(phrase, &query_groups(phrase, &languages))?;
        ranking.matches.set(&holding);
        ranking.add_scores();
        if let Some(only) = &mut only {
            only.iter_mut().enumerate().for_each(|(slot, o)| *o &= holding.binary_search(&slot).is_ok());
        }
    }
    let may = |slot: usize| allowed.is_none_or(|a| a[slot]) && only.as_ref().is_none_or(|o| o[slot]);
    let candidates = ranking.scores.iter().enumerate().filter(|(slot, score)| **score > 0.0 && may(*slot));
    let ranked = top(candidates.map(|(slot, score)| Ranked { slot, score: *score }), depth);
    Ok(Found { ranked, only, weights: ranking.weights, total: ranking.total })
}

/// A ranking in the making.
struct Ranking<'a> {
    connection: &'a Connection,
    resident: &'a Resident,
    searched: Searched<'a>,
    matches: Matches,
    scores: Vec<f32>,
    /// See [`Found`].
    weights: Vec<f32>,
    total: f32,
}

impl Ranking<'_> {
    fn add_words(&mut self, mut groups: Vec<Group>) -> Result<(), Error> {
        // Long words and pairs of characters are rarer than short words and single characters: they come first, so that the
        // budget is not spent on what decides least.
        groups.sort_by_key(|g| std::cmp::Reverse(g.forms.first().map_or(0, |f| f.chars().count())));
        groups.truncate(QUERY_TERMS_MAX);
        let mut speller = Speller::new(self.connection);
        let mut skipped = Vec::new();
        let mut budget = QUERY_POSTINGS_MAX;
        // A word that a third of a large index has decides little and costs most: it is read only if nothing rarer matched.
        let common = (self.resident.live() / 3).max(QUERY_POSTINGS_MAX / 6);
        for group in &groups {
            let limit = common.min(budget.max(1));
            self.read(group, limit)?;
            if self.matches.touched.is_empty() && group.role == Role::Word {
                self.read_nearest(group, &mut speller, limit)?;
            }
            if self.matches.cut {
                skipped.push(group);
            } else {
                self.add_scores();
            }
            budget = budget.saturating_sub(self.matches.touched.len());
        }
        if skipped.len() == groups.len() {
            for group in skipped {
                self.read(group, QUERY_POSTINGS_MAX)?;
                self.add_scores();
            }
        }
        Ok(())
    }

    fn read(&mut self, group: &Group, limit: usize) -> Result<(), Error> {
        self.matches.read(self.connection, self.resident, group, limit)
    }

    /// Reads the words that one that nothing has may stand for.
    fn read_nearest(&mut self, group: &Group, speller: &mut Speller<'_>, limit: usize) -> Result<(), Error> {
        let Some(form) = group.forms.first() else { return Ok(()) };
        let forms = speller.nearest(form)?;
        if forms.is_empty() {
            return Ok(());
        }
        self.read(&Group { forms, role: Role::Exact }, limit)
    }

    /// Slots that have a phrase, in rising order. Of more that have its words than may be read, those with the best scores are.
    fn holding(&mut self, phrase: &str, groups: &[Group]) -> Result<Vec<usize>, Error> {
        let mut candidates: Option<Vec<usize>> = None;
        for group in groups {
            self.read(group, QUERY_POSTINGS_MAX)?;
            // What was cut excludes nothing: the phrase itself is looked for in the text.
            if self.matches.cut && candidates.is_some() {
                continue;
            }
            let counts = &self.matches.counts;
            match &mut candidates {
                Some(candidates) => candidates.retain(|slot| counts[*slot] > 0),
                None => candidates = Some(self.matches.touched.clone()),
            }
        }
        let candidates = candidates.unwrap_or_default().into_iter().filter(|slot| self.searched.holds(*slot));
        let ranked = candidates.map(|slot| Ranked { slot, score: self.scores[slot] });
        let mut holding = Vec::new();
        for candidate in top(ranked, PHRASE_PASSAGES_MAX) {
            if phrase::stands_in(self.connection, self.resident.id(candidate.slot), phrase)? {
                holding.push(candidate.slot);
            }
        }
        holding.sort_unstable();
        Ok(holding)
    }

    /// Adds what the matches are worth.
    fn add_scores(&mut self) {
        let Self { resident, searched, matches, scores, weights, total, .. } = self;
        let df = matches.touched.iter().filter(|slot| searched.holds(**slot)).count() as f32;
        let idf = (1.0 + (searched.passages - df + 0.5).max(0.0) / (df + 0.5)).ln();
        let weight = idf.powf(RARITY);
        *total += weight;
        for &slot in &matches.touched {
            weights[slot] += weight;
            let tf = f32::from(matches.counts[slot]);
            let norm = K1 * (1.0 - B + B * resident.length(slot) as f32 / searched.mean_length);
            scores[slot] += weight * tf * (K1 + 1.0) / (tf + norm);
        }
    }
}

/// What BM25's statistics are of: the passages that the filter allows. A folder in one language would else be weighed by
/// the words of another.
struct Searched<'a> {
    allowed: Option<&'a [bool]>,
    passages: f32,
    mean_length: f32,
}

impl<'a> Searched<'a> {
    fn of(resident: &Resident, allowed: Option<&'a [bool]>) -> Self {
        let (passages, mean_length) = resident.passages_and_mean_length(allowed);
        Self { allowed, passages, mean_length }
    }

    fn holds(&self, slot: usize) -> bool {
        self.allowed.is_none_or(|allowed| allowed[slot])
    }
}

/// Passages that have a word, with its count; the arrays are used again for the next word.
struct Matches {
    counts: Vec<u16>,
    touched: Vec<usize>,
    /// Whether there were more than were read.
    cut: bool,
}

impl Matches {
    fn new(slots: usize) -> Self {
        Self { counts: vec![0; slots], touched: Vec::new(), cut: false }
    }

    fn clear(&mut self) {
        for slot in self.touched.drain(..) {
            self.counts[slot] = 0;
        }
        self.cut = false;
    }

    /// These slots, each with a count of 1.
    fn set(&mut self, slots: &[usize]) {
        self.clear();
        self.touched.extend_from_slice(slots);
        slots.iter().for_each(|slot| self.counts[*slot] = 1);
    }

    fn read(&mut self, connection: &Connection, resident: &Resident, group: &Group, limit: usize) -> Result<(), Error> {
        self.clear();
        let mut cursor = 0;
        let mut enter = |id, gain: u16, cursor: &mut usize| {
            let Some(slot) = resident.slot_from(id, *cursor) else { return };
            *cursor = slot;
            if self.counts[slot] == 0 {
                self.touched.push(slot);
            }
            self.counts[slot] = self.counts[slot].saturating_add(gain);
        };
        for form in &group.forms {
            if group.role == Role::Beginning {
                let read = fulltext::postings_of_prefix(connection, form, limit, |id| enter(id, 1, &mut cursor))?;
                self.cut |= read >= limit;
                continue;
            }
            let mut before = 0_u16;
            for (tier, least) in TIERS.iter().enumerate() {
                let gain = u16::try_from(*least).unwrap_or(u16::MAX) - before;
                before = u16::try_from(*least).unwrap_or(u16::MAX);
                let mut cursor = 0;
                let read = fulltext::postings(connection, form, tier, limit, |id| enter(id, gain, &mut cursor))?;
                self.cut |= read >= limit;
                if read == 0 || self.cut {
                    break;
                }
            }
        }
        Ok(())
    }
}
