//! Transforms of the plane, as PDF writes them.

/// `[a b c d e f]`: x' = ax + cy + e, y' = bx + dy + f.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Matrix(pub [f64; 6]);

impl Matrix {
    pub const IDENTITY: Self = Self([1.0, 0.0, 0.0, 1.0, 0.0, 0.0]);

    pub fn translate(x: f64, y: f64) -> Self {
        Self([1.0, 0.0, 0.0, 1.0, x, y])
    }

    /// First `self`, then `outer`.
    pub fn then(self, outer: Self) -> Self {
        let ([a, b, c, d, e, f], [p, q, r, s, t, u]) = (self.0, outer.0);
        Self([a * p + b * r, a * q + b * s, c * p + d * r, c * q + d * s, e * p + f * r + t, e * q + f * s + u])
    }

    /// Where the point goes.
    pub fn point(self, x: f64, y: f64) -> (f64, f64) {
        let [a, b, c, d, e, f] = self.0;
        (a * x + c * y + e, b * x + d * y + f)
    }

    /// Where the direction goes.
    pub fn vector(self, x: f64, y: f64) -> (f64, f64) {
        let [a, b, c, d, ..] = self.0;
        (a * x + c * y, b * x + d * y)
    }

    /// By how much areas grow.
    pub fn area(self) -> f64 {
        let [a, b, c, d, ..] = self.0;
        (a * d - b * c).abs()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_counts() {
        let turn = Matrix([0.0, 1.0, -1.0, 0.0, 0.0, 0.0]);
        assert_eq!(Matrix::translate(1.0, 0.0).then(turn).point(0.0, 0.0), (0.0, 1.0));
        assert_eq!(turn.then(Matrix::translate(1.0, 0.0)).point(0.0, 0.0), (1.0, 0.0));
        assert!((turn.area() - 1.0).abs() < 1e-9);
    }
}
