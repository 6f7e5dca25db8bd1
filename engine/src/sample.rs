//! From logits to the next token: filters first, then the draw.

use crate::error::RunError;

/// How tokens are chosen. The default is greedy.
#[derive(Debug, Clone, PartialEq)]
pub struct SamplerConfig {
    /// 0 takes the likeliest token; else logits are divided by it.
    pub temperature: f32,
    /// Keep so many of the likeliest tokens; 0 keeps all.
    pub top_k: usize,
    /// Keep the likeliest tokens that together have this probability; 1 keeps all.
    pub top_p: f32,
    /// Keep tokens at least this fraction as likely as the likeliest; 0 keeps all.
    pub min_p: f32,
    /// Divides positive (multiplies negative) logits of recent tokens; 1 does nothing.
    pub repeat_penalty: f32,
    /// How many recent tokens are penalized.
    pub repeat_window: usize,
    /// Seed of the draw.
    pub seed: u64,
}

impl Default for SamplerConfig {
    fn default() -> Self {
        Self { temperature: 0.0, top_k: 0, top_p: 1.0, min_p: 0.0, repeat_penalty: 1.0, repeat_window: 64, seed: 0 }
    }
}

/// A sampler with the state of its draw.
#[derive(Debug, Clone)]
pub struct Sampler {
    config: SamplerConfig,
    state: u64,
    logits: Vec<f32>,
    order: Vec<u32>,
}

impl Sampler {
    /// A sampler; equal configurations give equal tokens.
    #[must_use]
    pub fn new(config: SamplerConfig) -> Self {
        let state = config.seed;
        Self { config, state, logits: Vec::new(), order: Vec::new() }
    }

    /// Chooses the token that follows `recent`.
    ///
    /// # Errors
    /// [`RunError::NotFinite`] when a logit is no number, or there are none.
    pub fn sample(&mut self, logits: &[f32], recent: &[u32]) -> Result<u32, RunError> {
        self.sample_where(logits, recent, &|_| true)
    }

    /// The same among the tokens that `allowed` accepts; among all if it accepts none.
    ///
    /// # Errors
    /// As [`Sampler::sample`].
    pub fn sample_where(
        &mut self,
        logits: &[f32],
        recent: &[u32],
        allowed: &dyn Fn(u32) -> bool,
    ) -> Result<u32, RunError> {
        if logits.is_empty() || logits.iter().any(|l| !l.is_finite()) {
            return Err(RunError::NotFinite);
        }
        self.logits.clear();
        self.logits.extend_from_slice(logits);
        self.penalize(recent);
        if self.config.temperature <= 0.0 {
            return Ok(argmax_where(&self.logits, allowed));
        }
        if (0..).zip(&self.logits).any(|(id, _)| allowed(id)) {
            for (id, logit) in (0..).zip(&mut self.logits) {
                if !allowed(id) {
                    *logit = f32::NEG_INFINITY;
                }
            }
        }
        let weights = self.filter();
        Ok(self.draw(&weights))
    }

    fn penalize(&mut self, recent: &[u32]) {
        if self.config.repeat_penalty == 1.0 {
            return;
        }
        let from = recent.len().saturating_sub(self.config.repeat_window);
        let mut seen: Vec<u32> = recent[from..].to_vec();
        seen.sort_unstable();
        seen.dedup();
        for id in seen {
            if let Some(l) = self.logits.get_mut(id as usize) {
                *l = if *l > 0.0 { *l / self.config.repeat_penalty } else { *l * self.config.repeat_penalty };
            }
        }
    }

    /// Leaves the tokens that pass all filters in `order`, likeliest first, and returns their weights.
    fn filter(&mut self) -> Vec<f32> {
        let (c, logits) = (&self.config, &self.logits);
        self.order.clear();
        self.order.extend(0..logits.len() as u32);
        let by_logit = |a: &u32, b: &u32| logits[*b as usize].total_cmp(&logits[*a as usize]).then(a.cmp(b));
        if c.top_k > 0 && c.top_k < self.order.len() {
            self.order.select_nth_unstable_by(c.top_k - 1, by_logit);
            self.order.truncate(c.top_k);
        }
        self.order.sort_unstable_by(by_logit);
        let peak = logits[self.order[0] as usize];
        let weight = |id: &u32| ((logits[*id as usize] - peak) / c.temperature).exp();
        let mut weights: Vec<f32> = self.order.iter().map(weight).collect();
        if c.min_p > 0.0 {
            weights.truncate(weights.iter().take_while(|w| **w >= c.min_p).count().max(1));
        }
        if c.top_p < 1.0 {
            let total: f32 = weights.iter().sum();
            let mut sum = 0.0;
            let kept = weights.iter().take_while(|w| {
                let before = sum;
                sum += **w;
                before < c.top_p * total
            });
            let kept = kept.count().max(1);
            weights.truncate(kept);
        }
        weights
    }

    fn draw(&mut self, weights: &[f32]) -> u32 {
        let total: f64 = weights.iter().map(|w| f64::from(*w)).sum();
        let mut at = self.next_unit() * total;
        for (id, w) in self.order.iter().zip(weights) {
            at -= f64::from(*w);
            if at < 0.0 {
                return *id;
            }
        }
        self.order[weights.len() - 1]
    }

    /// A number in 0..1 (SplitMix64; Steele, Lea and Flood 2014).
    fn next_unit(&mut self) -> f64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// The likeliest token; of equals the lowest id.
#[must_use]
pub fn argmax(logits: &[f32]) -> u32 {
    argmax_where(logits, &|_| true)
}

/// The likeliest of the tokens that `allowed` accepts, or of all if it accepts none. It is asked about few: only about those
/// likelier than the best so far.
fn argmax_where(logits: &[f32], allowed: &dyn Fn(u32) -> bool) -> u32 {
    let mut best: Option<(u32, f32)> = None;
    for (id, logit) in (0..).zip(logits) {
        if best.is_none_or(|(_, most)| *logit > most) && allowed(id) {
            best = Some((id, *logit));
        }
    }
    best.map_or_else(|| argmax_where(logits, &|_| true), |(id, _)| id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(config: SamplerConfig, logits: &[f32], n: usize) -> Vec<usize> {
        let mut sampler = Sampler::new(config);
        let mut counts = vec![0; logits.len()];
        for _ in 0..n {
            counts[sampler.sample(logits, &[]).unwrap() as usize] += 1;
        }
        counts
    }

    #[test]
    fn greedy_takes_the_first_of_the_likeliest() {
        assert_eq!(Sampler::new(SamplerConfig::default()).sample(&[1.0, 3.0, 3.0, 2.0], &[]).unwrap(), 1);
    }

    #[test]
    fn only_allowed_tokens_are_chosen_unless_there_are_none() {
        let logits = [1.0, 4.0, 3.0, 2.0];
        for temperature in [0.0, 1.0] {
            let mut sampler = Sampler::new(SamplerConfig { temperature, ..Default::default() });
            assert_eq!(sampler.sample_where(&logits, &[], &|id| id == 3).unwrap(), 3);
            let drawn = sampler.sample_where(&logits, &[], &|_| false).unwrap();
            assert!(temperature > 0.0 || drawn == 1);
        }
    }

    #[test]
    fn draws_follow_the_probabilities() {
        let logits: Vec<f32> = [0.5f32, 0.3, 0.15, 0.05].iter().map(|p| p.ln()).collect();
        let config = SamplerConfig { temperature: 1.0, seed: 7, ..Default::default() };
        let n = 20_000;
        for (count, p) in counts(config, &logits, n).iter().zip([0.5, 0.3, 0.15, 0.05]) {
            // Five standard deviations of a binomial count.
            let (mean, sd) = (n as f64 * p, (n as f64 * p * (1.0 - p)).sqrt());
            assert!((*count as f64 - mean).abs() < 5.0 * sd, "{count} instead of {mean}");
        }
    }

    #[test]
    fn filters_keep_what_they_say() {
        let logits: Vec<f32> = [0.4f32, 0.3, 0.2, 0.1].iter().map(|p| p.ln()).collect();
        let base = SamplerConfig { temperature: 1.0, seed: 1, ..Default::default() };
        let kept = |c: SamplerConfig| counts(c, &logits, 2000).iter().filter(|n| **n > 0).count();
        assert_eq!(kept(base.clone()), 4);
        assert_eq!(kept(SamplerConfig { top_k: 2, ..base.clone() }), 2);
        assert_eq!(kept(SamplerConfig { top_p: 0.69, ..base.clone() }), 2);
        assert_eq!(kept(SamplerConfig { min_p: 0.45, ..base.clone() }), 3);
        assert_eq!(kept(SamplerConfig { top_p: 0.0, ..base }), 1);
    }

    #[test]
    fn equal_seeds_give_equal_tokens_and_penalties_bite() {
        let logits = [1.0, 1.1, 0.9, 1.0];
        let config = SamplerConfig { temperature: 0.8, seed: 42, ..Default::default() };
        let run = || {
            let mut s = Sampler::new(config.clone());
            (0..50).map(|_| s.sample(&logits, &[]).unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(run(), run());
        let penal = SamplerConfig { repeat_penalty: 2.0, ..Default::default() };
        assert_eq!(Sampler::new(penal).sample(&logits, &[1]).unwrap(), 0);
    }

    #[test]
    fn values_that_are_no_numbers_are_refused() {
        for bad in [f32::NAN, f32::INFINITY] {
            assert!(matches!(
                Sampler::new(SamplerConfig::default()).sample(&[0.0, bad], &[]),
                Err(RunError::NotFinite)
            ));
        }
    }
}
