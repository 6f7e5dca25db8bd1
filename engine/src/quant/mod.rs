//! Tensor storage types: block layouts and their meaning.
//!
//! Every format stores rows as blocks of 1, 32 or 256 elements. Here stands what the bytes mean (the scalar
//! reference, [`TensorType::dequantize`]), and the one form in which all kernels consume them
//! ([`Format::unpack`]): unsigned bytes `u` in groups of 16 or 32 with a scale and an offset,
//! `w = scale * (u - zero) + min`. Layouts as in ggml's `ggml-common.h`; element orders are told in each file.

mod activation;
mod blocks256;
mod blocks32;
mod plain;

use std::fmt;

pub use activation::{ACT_BLOCK, ActMatrix, ActTile, ActTileMut, GEMM_TILE, GEMV_COLUMNS};
pub use blocks32::quantize_q8_0;
pub use plain::{bf16_to_f32, f16_to_f32};

/// How a tensor is stored. The numbers are those of the file format.
#[allow(missing_docs, reason = "the names are the format's own")]
#[allow(non_camel_case_types, reason = "the names are the format's own")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum TensorType {
    F32 = 0,
    F16 = 1,
    Q4_0 = 2,
    Q4_1 = 3,
    Q5_0 = 6,
    Q5_1 = 7,
    Q8_0 = 8,
    Q2_K = 10,
    Q3_K = 11,
    Q4_K = 12,
    Q5_K = 13,
    Q6_K = 14,
    IQ4_NL = 20,
    IQ4_XS = 23,
    BF16 = 30,
}

/// One row of the format table.
struct Traits {
    name: &'static str,
    block_len: usize,
    block_bytes: usize,
    /// Elements that share a scale; 0 for the float types.
    group: usize,
    /// The stored zero: `w = scale * (u - zero) + min`.
    zero: i32,
    /// Whether groups carry a minimum.
    has_min: bool,
    /// Largest `u`; kernels choose their overflow rule by it.
    max: u8,
}

const fn traits(name: &'static str, len: usize, bytes: usize, group: usize, zero: i32, min: bool, max: u8) -> Traits {
    Traits { name, block_len: len, block_bytes: bytes, group, zero, has_min: min, max }
}

/// An integer format as a type, so that loops over it are compiled for it.
pub trait Format {
    /// The format's number and traits.
    const TYPE: TensorType;

    /// Unpacks whole blocks: `u` gets one byte per element, `scale` and `min` one value per group, with
    /// `w = scale * (u - zero) + min`. `min` is written only by formats that have one.
    fn unpack(row: &[u8], u: &mut [u8], scale: &mut [f32], min: &mut [f32]);
}

/// Declares the format types and the dispatch from a [`TensorType`] value to them.
macro_rules! formats {
    ($($ty:ident => |$row:ident, $u:ident, $scale:ident, $min:ident| $call:expr;)*) => {
        /// One empty type per integer format, named as the format.
        #[allow(missing_docs, non_camel_case_types, reason = "the names are the format's own")]
        pub mod format {
            $(#[derive(Debug)] pub struct $ty;)*
        }
        $(impl Format for format::$ty {
            const TYPE: TensorType = TensorType::$ty;
            #[inline(always)]
            fn unpack($row: &[u8], $u: &mut [u8], $scale: &mut [f32], $min: &mut [f32]) { $call }
        })*
        /// Runs an expression with `F` naming the format of an integer type; panics for float types.
        macro_rules! with_format {
            ($value:expr, $f:ident => $body:expr) => {
                match $value {
                    $($crate::quant::TensorType::$ty => { type $f = $crate::quant::format::$ty; $body })*
                    other => unreachable!("{other} has no blocks of integers"),
                }
            };
        }
    };
}

formats! {
    Q4_0 => |row, u, scale, _min| blocks32::q4_0(row, u, scale);
    Q4_1 => |row, u, scale, min| blocks32::q4_1(row, u, scale, min);
    Q5_0 => |row, u, scale, _min| blocks32::q5_0(row, u, scale);
    Q5_1 => |row, u, scale, min| blocks32::q5_1(row, u, scale, min);
    Q8_0 => |row, u, scale, _min| blocks32::q8_0(row, u, scale);
    IQ4_NL => |row, u, scale, _min| blocks32::iq4_nl(row, u, scale);
    Q2_K => |row, u, scale, min| blocks256::q2_k(row, u, scale, min);
    Q3_K => |row, u, scale, _min| blocks256::q3_k(row, u, scale);
    Q4_K => |row, u, scale, min| blocks256::q4_k(row, u, scale, min);
    Q5_K => |row, u, scale, min| blocks256::q5_k(row, u, scale, min);
    Q6_K => |row, u, scale, _min| blocks256::q6_k(row, u, scale);
    IQ4_XS => |row, u, scale, _min| blocks256::iq4_xs(row, u, scale);
}
pub(crate) use with_format;

impl TensorType {
    /// Every type, for tests and tables.
    pub const ALL: [TensorType; 15] = [
        Self::F32,
        Self::F16,
        Self::BF16,
        Self::Q4_0,
        Self::Q4_1,
        Self::Q5_0,
        Self::Q5_1,
        Self::Q8_0,
        Self::Q2_K,
        Self::Q3_K,
        Self::Q4_K,
        Self::Q5_K,
        Self::Q6_K,
        Self::IQ4_NL,
        Self::IQ4_XS,
    ];

    const fn traits(self) -> Traits {
        match self {
            Self::F32 => traits("F32", 1, 4, 0, 0, false, 0),
            Self::F16 => traits("F16", 1, 2, 0, 0, false, 0),
            Self::BF16 => traits("BF16", 1, 2, 0, 0, false, 0),
            Self::Q4_0 => traits("Q4_0", 32, 18, 32, 8, false, 15),
            Self::Q4_1 => traits("Q4_1", 32, 20, 32, 0, true, 15),
            Self::Q5_0 => traits("Q5_0", 32, 22, 32, 16, false, 31),
            Self::Q5_1 => traits("Q5_1", 32, 24, 32, 0, true, 31),
            Self::Q8_0 => traits("Q8_0", 32, 34, 32, 128, false, 255),
            Self::Q2_K => traits("Q2_K", 256, 84, 16, 0, true, 3),
            Self::Q3_K => traits("Q3_K", 256, 110, 16, 4, false, 7),
            Self::Q4_K => traits("Q4_K", 256, 144, 32, 0, true, 15),
            Self::Q5_K => traits("Q5_K", 256, 176, 32, 0, true, 31),
            Self::Q6_K => traits("Q6_K", 256, 210, 16, 32, false, 63),
            Self::IQ4_NL => traits("IQ4_NL", 32, 18, 32, 128, false, 255),
            Self::IQ4_XS => traits("IQ4_XS", 256, 136, 32, 128, false, 255),
        }
    }

    /// The type with this number, if this engine reads it.
    #[must_use]
    pub fn from_id(id: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|t| *t as u32 == id)
    }

    /// The name of a type that this engine does not read, for the error.
    #[must_use]
    pub fn foreign_name(id: u32) -> &'static str {
        match id {
            4 | 5 | 31..=33 | 36..=38 => "removed from the format",
            9 => "Q8_1",
            15 => "Q8_K",
            16 => "IQ2_XXS",
            17 => "IQ2_XS",
            18 => "IQ3_XXS",
            19 => "IQ1_S",
            21 => "IQ3_S",
            22 => "IQ2_S",
            24..=27 => "an integer type",
            28 => "F64",
            29 => "IQ1_M",
            34 => "TQ1_0",
            35 => "TQ2_0",
            39 => "MXFP4",
            40 => "NVFP4",
            _ => "unknown",
        }
    }

    /// Elements of a block.
    #[must_use]
    pub const fn block_len(self) -> usize {
        self.traits().block_len
    }

    /// Bytes of a block.
    #[must_use]
    pub const fn block_bytes(self) -> usize {
        self.traits().block_bytes
    }

    /// Elements that share a scale: 16 or 32, and 0 for the float types.
    #[must_use]
    pub const fn group(self) -> usize {
        self.traits().group
    }

    /// The stored zero point.
    #[must_use]
    pub const fn zero(self) -> i32 {
        self.traits().zero
    }

    /// Whether groups carry a minimum.
    #[must_use]
    pub const fn has_min(self) -> bool {
        self.traits().has_min
    }

    /// Largest unpacked byte.
    #[must_use]
    pub const fn max(self) -> u8 {
        self.traits().max
    }

    /// Whether elements are floats rather than blocks of integers.
    #[must_use]
    pub const fn is_float(self) -> bool {
        self.group() == 0
    }

    /// Bytes of a row of `columns` elements; `columns` must be a multiple of the block length.
    #[must_use]
    pub const fn row_bytes(self, columns: usize) -> usize {
        columns / self.block_len() * self.block_bytes()
    }

    /// Unpacks whole blocks of an integer type, as [`Format::unpack`] does.
    ///
    /// # Panics
    /// When the type is a float type or the lengths disagree: programmer errors.
    pub fn unpack(self, row: &[u8], u: &mut [u8], scale: &mut [f32], min: &mut [f32]) {
        with_format!(self, F => F::unpack(row, u, scale, min));
    }

    /// Decodes a row to floats: the reference meaning of every type.
    ///
    /// # Panics
    /// When `row` is not exactly the row of `out.len()` elements.
    pub fn dequantize(self, row: &[u8], out: &mut [f32]) {
        assert_eq!(row.len(), self.row_bytes(out.len()));
        match self {
            Self::F32 => plain::f32_row(row, out),
            Self::F16 => plain::f16_row(row, out),
            Self::BF16 => plain::bf16_row(row, out),
            _ => self.dequantize_blocks(row, out),
        }
    }

    fn dequantize_blocks(self, row: &[u8], out: &mut [f32]) {
        let (len, bytes, group) = (self.block_len(), self.block_bytes(), self.group());
        let (mut u, mut scale, mut min) = ([0u8; 256], [0f32; 16], [0f32; 16]);
        for (block, out) in row.chunks_exact(bytes).zip(out.chunks_exact_mut(len)) {
            self.unpack(block, &mut u[..len], &mut scale, &mut min);
            for (i, o) in out.iter_mut().enumerate() {
                let g = i / group;
                *o = scale[g] * (i32::from(u[i]) - self.zero()) as f32 + if self.has_min() { min[g] } else { 0.0 };
            }
        }
    }
}

impl fmt::Display for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.traits().name)
    }
}
