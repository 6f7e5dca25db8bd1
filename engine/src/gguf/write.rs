//! Writes GGUF version 3, alignment 32: for importers, and for tests that need a file of their own.
//!
//! The header is planned first, tensor by tensor, so that the offsets are known before any data exists; then
//! [`GgufWriter::write`] streams header and data to any writer, one tensor in memory at a time.

use std::borrow::Cow;
use std::io::{self, Write};

use super::Value;
use super::metadata::{T_ARRAY, T_BOOL, T_F32, T_F64, T_I32, T_I64, T_STRING, T_U8, T_U32, T_U64};
use crate::quant::TensorType;

/// The alignment of files written here, the format's default.
const ALIGNMENT: u64 = 32;

/// Why a file could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The output failed.
    #[error("cannot write the GGUF file: {0}")]
    Io(#[from] io::Error),
    /// A tensor's data is not as long as its planned shape and type say.
    #[error("tensor {tensor} was planned with {planned} bytes and given {given}")]
    TensorBytes {
        /// The tensor.
        tensor: String,
        /// Bytes by shape and type.
        planned: u64,
        /// Bytes given.
        given: u64,
    },
}

/// A tensor of the file to be.
#[derive(Debug, Clone)]
struct Planned {
    name: String,
    dims: Vec<u64>,
    ty: TensorType,
    /// From the start of the data section.
    offset: u64,
    bytes: u64,
}

/// A file in the making: pairs and tensors in the order in which they were added.
#[derive(Debug, Clone, Default)]
pub struct GgufWriter {
    pairs: Vec<u8>,
    pair_count: u64,
    tensors: Vec<Planned>,
    data_bytes: u64,
}

impl GgufWriter {
    /// A file of the given architecture, without anything else.
    #[must_use]
    pub fn new(architecture: &str) -> Self {
        let mut file = Self::default();
        file.set("general.architecture", &Value::String(architecture.to_owned()));
        file
    }

    /// Adds a pair, in the narrowest of the usual types that holds the value exactly: integers as 32 bits where they
    /// fit, floats as `f32` where that is exact. Keys are not checked for repetition.
    pub fn set(&mut self, key: &str, value: &Value) {
        self.key(key);
        match value {
            Value::Unsigned(v) => match u32::try_from(*v) {
                Ok(v) => self.tagged(T_U32, &v.to_le_bytes()),
                Err(_) => self.tagged(T_U64, &v.to_le_bytes()),
            },
            Value::Signed(v) => match i32::try_from(*v) {
                Ok(v) => self.tagged(T_I32, &v.to_le_bytes()),
                Err(_) => self.tagged(T_I64, &v.to_le_bytes()),
            },
            Value::Float(v) if f64::from(*v as f32) == *v => self.tagged(T_F32, &(*v as f32).to_le_bytes()),
            Value::Float(v) => self.tagged(T_F64, &v.to_le_bytes()),
            Value::Bool(v) => self.tagged(T_BOOL, &[u8::from(*v)]),
            Value::String(s) => {
                self.pairs.extend_from_slice(&T_STRING.to_le_bytes());
                push_string(&mut self.pairs, s);
            }
            Value::Strings(all) => {
                self.array(T_STRING, all.len());
                all.iter().for_each(|s| push_string(&mut self.pairs, s));
            }
            Value::Integers(all) if all.iter().all(|v| i32::try_from(*v).is_ok()) => {
                self.array(T_I32, all.len());
                self.pairs.extend(all.iter().flat_map(|v| (*v as i32).to_le_bytes()));
            }
            Value::Integers(all) => {
                self.array(T_I64, all.len());
                self.pairs.extend(all.iter().flat_map(|v| v.to_le_bytes()));
            }
            Value::Floats(all) => {
                self.array(T_F32, all.len());
                self.pairs.extend(all.iter().flat_map(|v| v.to_le_bytes()));
            }
        }
    }

    /// Adds an array of bytes (readers see integers).
    pub fn set_bytes(&mut self, key: &str, bytes: &[u8]) {
        self.key(key);
        self.array(T_U8, bytes.len());
        self.pairs.extend_from_slice(bytes);
    }

    /// Plans a tensor; `dims` are fastest first and the first is a multiple of the type's block length.
    pub fn tensor(&mut self, name: &str, dims: &[u64], ty: TensorType) {
        let bytes = dims.iter().product::<u64>() / ty.block_len() as u64 * ty.block_bytes() as u64;
        self.tensors.push(Planned { name: name.to_owned(), dims: dims.to_vec(), ty, offset: self.data_bytes, bytes });
        self.data_bytes += bytes.next_multiple_of(ALIGNMENT);
    }

    /// Size of the whole file.
    #[must_use]
    pub fn file_bytes(&self) -> u64 {
        (self.header().len() as u64).next_multiple_of(ALIGNMENT) + self.data_bytes
    }

    /// Writes the file. `data` gives the bytes of the tensor that was planned at that position, from 0.
    ///
    /// # Errors
    /// The output fails, or data is not of the planned size.
    pub fn write<'a>(
        &self,
        out: &mut dyn Write,
        mut data: impl FnMut(usize) -> Cow<'a, [u8]>,
    ) -> Result<(), WriteError> {
        let header = self.header();
        out.write_all(&header)?;
        pad(out, header.len() as u64)?;
        for (i, tensor) in self.tensors.iter().enumerate() {
            let bytes = data(i);
            if bytes.len() as u64 != tensor.bytes {
                return Err(WriteError::TensorBytes {
                    tensor: tensor.name.clone(),
                    planned: tensor.bytes,
                    given: bytes.len() as u64,
                });
            }
            out.write_all(&bytes)?;
            pad(out, tensor.bytes)?;
        }
        Ok(())
    }

    fn header(&self) -> Vec<u8> {
        let mut header = b"GGUF".to_vec();
        header.extend_from_slice(&3u32.to_le_bytes());
        header.extend_from_slice(&(self.tensors.len() as u64).to_le_bytes());
        header.extend_from_slice(&self.pair_count.to_le_bytes());
        header.extend_from_slice(&self.pairs);
        for tensor in &self.tensors {
            push_string(&mut header, &tensor.name);
            header.extend_from_slice(&(tensor.dims.len() as u32).to_le_bytes());
            tensor.dims.iter().for_each(|d| header.extend_from_slice(&d.to_le_bytes()));
            header.extend_from_slice(&(tensor.ty as u32).to_le_bytes());
            header.extend_from_slice(&tensor.offset.to_le_bytes());
        }
        header
    }

    fn key(&mut self, key: &str) {
        self.pair_count += 1;
        push_string(&mut self.pairs, key);
    }

    fn tagged(&mut self, ty: u32, bytes: &[u8]) {
        self.pairs.extend_from_slice(&ty.to_le_bytes());
        self.pairs.extend_from_slice(bytes);
    }

    fn array(&mut self, ty: u32, len: usize) {
        self.tagged(T_ARRAY, &ty.to_le_bytes());
        self.pairs.extend_from_slice(&(len as u64).to_le_bytes());
    }
}

fn push_string(out: &mut Vec<u8>, s: &str) {
    out.extend_from_slice(&(s.len() as u64).to_le_bytes());
    out.extend_from_slice(s.as_bytes());
}

/// Zeros up to the next aligned position after `written` bytes from an aligned one.
fn pad(out: &mut dyn Write, written: u64) -> io::Result<()> {
    let zeros = [0u8; ALIGNMENT as usize];
    out.write_all(&zeros[..(written.next_multiple_of(ALIGNMENT) - written) as usize])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gguf::parse;
    use crate::quant::quantize_q8_0;

    fn every_value() -> Vec<(&'static str, Value)> {
        vec![
            ("u32", Value::Unsigned(7)),
            ("u64", Value::Unsigned(1 << 40)),
            ("i32", Value::Signed(-7)),
            ("i64", Value::Signed(-(1 << 40))),
            ("f32", Value::Float(f64::from(1e-12f32))),
            ("f64", Value::Float(0.1)),
            ("yes", Value::Bool(true)),
            ("text", Value::String("śatchel".into())),
            ("texts", Value::Strings(vec![String::new(), "▁a".into()])),
            ("ints", Value::Integers(vec![1, -2, 3])),
            ("longs", Value::Integers(vec![1 << 40])),
            ("floats", Value::Floats(vec![0.5, -3.25])),
        ]
    }

    #[test]
    fn what_is_written_is_read_back() {
        let mut file = GgufWriter::new("bert");
        for (key, value) in every_value() {
            file.set(key, &value);
        }
        file.set_bytes("bytes", &[0, 255, 3]);
        let floats: Vec<f32> = (0..96).map(|i| i as f32 - 40.0).collect();
        let data = [bytemuck::cast_slice(&floats[..3]).to_vec(), quantize_q8_0(&floats)];
        file.tensor("odd", &[3], TensorType::F32);
        file.tensor("blocks", &[32, 3], TensorType::Q8_0);
        let mut out = Vec::new();
        file.write(&mut out, |i| Cow::Borrowed(&data[i])).unwrap();

        assert_eq!(out.len() as u64, file.file_bytes());
        let (metadata, tensors) = parse(&out).unwrap();
        for (key, value) in every_value() {
            assert_eq!(metadata.get(key), Some(&value), "{key}");
        }
        assert_eq!(metadata.integers("bytes").unwrap(), Some(&[0, 255, 3][..]));
        assert_eq!(metadata.need_str("general.architecture").unwrap(), "bert");
        for (name, expected) in [("odd", &data[0]), ("blocks", &data[1])] {
            let t = &tensors[name];
            assert_eq!(t.start % 32, 0, "{name}");
            assert_eq!(&out[t.start as usize..(t.start + t.bytes) as usize], &expected[..], "{name}");
        }
        assert_eq!(tensors["blocks"].dims, [32, 3]);
    }

    #[test]
    fn data_of_another_size_is_refused() {
        let mut file = GgufWriter::new("bert");
        file.tensor("t", &[4], TensorType::F32);
        let error = file.write(&mut Vec::new(), |_| Cow::Borrowed(&[0; 12])).unwrap_err();
        assert_eq!(error.to_string(), "tensor t was planned with 16 bytes and given 12");
    }

    #[test]
    fn a_cut_file_is_refused_by_the_reader_at_every_length() {
        let mut file = GgufWriter::new("bert");
        file.set("text", &Value::String("some".into()));
        file.tensor("t", &[8], TensorType::F32);
        let mut out = Vec::new();
        file.write(&mut out, |_| Cow::Borrowed(&[1; 32])).unwrap();
        assert!(parse(&out).is_ok());
        for n in 0..out.len() {
            assert!(parse(&out[..n]).is_err(), "{n} of {} bytes were accepted", out.len());
        }
    }
}
