//! Helpers of this crate's own tests.

/// A small generator (splitmix64): the same seed gives the same run on every machine.
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(1))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Below `n`, which must not be 0.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    /// A vector of length 1 that points anywhere.
    pub(crate) fn unit(&mut self, dim: usize) -> Vec<f32> {
        // The sum of a few is near enough to a normal distribution that no direction is preferred.
        let mut v: Vec<f32> = (0..dim).map(|_| (0..4).map(|_| self.below(2001) as f32 / 1000.0 - 1.0).sum()).collect();
        let length = v.iter().map(|x| x * x).sum::<f32>().sqrt();
        v.iter_mut().for_each(|x| *x /= length);
        v
    }
}
