//! Typed metadata of a GGUF file.

use std::collections::HashMap;

use crate::error::LoadError;
use crate::gguf::reader::Reader;
use crate::limits::{MAX_ARRAY_LEN, MAX_KV};

/// A metadata value. Integer widths are not kept: writers disagree on them, so readers must not care.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Any unsigned integer.
    Unsigned(u64),
    /// Any signed integer.
    Signed(i64),
    /// `f32` or `f64`.
    Float(f64),
    /// A boolean.
    Bool(bool),
    /// UTF-8 text.
    String(String),
    /// Array of strings.
    Strings(Vec<String>),
    /// Array of integers or booleans.
    Integers(Vec<i64>),
    /// Array of floats.
    Floats(Vec<f32>),
}

/// The key-value pairs of a file's header.
#[derive(Debug, Clone, Default)]
pub struct Metadata {
    map: HashMap<String, Value>,
}

/// Value types, by their numbers in the file.
pub(super) const T_U8: u32 = 0;
pub(super) const T_I8: u32 = 1;
pub(super) const T_U16: u32 = 2;
pub(super) const T_I16: u32 = 3;
pub(super) const T_U32: u32 = 4;
pub(super) const T_I32: u32 = 5;
pub(super) const T_F32: u32 = 6;
pub(super) const T_BOOL: u32 = 7;
pub(super) const T_STRING: u32 = 8;
pub(super) const T_ARRAY: u32 = 9;
pub(super) const T_U64: u32 = 10;
pub(super) const T_I64: u32 = 11;
pub(super) const T_F64: u32 = 12;

impl Metadata {
    pub(crate) fn read(r: &mut Reader<'_>, count: u64) -> Result<Self, LoadError> {
        debug_assert!(count <= MAX_KV);
        let mut map = HashMap::with_capacity(count as usize);
        for _ in 0..count {
            let at = r.position();
            let key = r.string("metadata key")?.to_owned();
            let kind = r.u32(&key)?;
            let value = read_value(r, &key, kind)?;
            if map.insert(key.clone(), value).is_some() {
                return Err(LoadError::Malformed { what: format!("duplicate key {key}"), at });
            }
        }
        Ok(Self { map })
    }

    /// The raw value of a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.map.get(key)
    }

    /// All keys, sorted.
    #[must_use]
    pub fn keys(&self) -> Vec<&str> {
        let mut keys: Vec<&str> = self.map.keys().map(String::as_str).collect();
        keys.sort_unstable();
        keys
    }

    /// Sets a value; for writers.
    pub fn set(&mut self, key: impl Into<String>, value: Value) {
        self.map.insert(key.into(), value);
    }

    /// A string, or none when the key is absent.
    ///
    /// # Errors
    /// [`LoadError::BadKey`] when it is of another type.
    pub fn str(&self, key: &str) -> Result<Option<&str>, LoadError> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::String(s)) => Ok(Some(s)),
            Some(_) => Err(bad(key, "is not a string")),
        }
    }

    /// A non-negative integer that fits 32 bits, or none when the key is absent.
    ///
    /// # Errors
    /// [`LoadError::BadKey`] when it is of another type or does not fit.
    pub fn u32(&self, key: &str) -> Result<Option<u32>, LoadError> {
        let v = match self.get(key) {
            None => return Ok(None),
            Some(Value::Unsigned(v)) => u32::try_from(*v).ok(),
            Some(Value::Signed(v)) => u32::try_from(*v).ok(),
            Some(_) => None,
        };
        v.map(Some).ok_or_else(|| bad(key, "is not an unsigned 32-bit integer"))
    }

    /// A finite float (an integer is accepted), or none when the key is absent.
    ///
    /// # Errors
    /// [`LoadError::BadKey`] when it is of another type or not finite.
    pub fn f32(&self, key: &str) -> Result<Option<f32>, LoadError> {
        let v = match self.get(key) {
            None => return Ok(None),
            Some(Value::Float(v)) => *v as f32,
            Some(Value::Unsigned(v)) => *v as f32,
            Some(Value::Signed(v)) => *v as f32,
            Some(_) => f32::NAN,
        };
        if v.is_finite() { Ok(Some(v)) } else { Err(bad(key, "is not a finite number")) }
    }

    /// A boolean, or none when the key is absent.
    ///
    /// # Errors
    /// [`LoadError::BadKey`] when it is of another type.
    pub fn bool(&self, key: &str) -> Result<Option<bool>, LoadError> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::Bool(v)) => Ok(Some(*v)),
            Some(_) => Err(bad(key, "is not a boolean")),
        }
    }

    /// An array of strings, or none when the key is absent.
    ///
    /// # Errors
    /// [`LoadError::BadKey`] when it is of another type.
    pub fn strings(&self, key: &str) -> Result<Option<&[String]>, LoadError> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::Strings(v)) => Ok(Some(v)),
            Some(_) => Err(bad(key, "is not an array of strings")),
        }
    }

    /// An array of integers, or none when the key is absent.
    ///
    /// # Errors
    /// [`LoadError::BadKey`] when it is of another type.
    pub fn integers(&self, key: &str) -> Result<Option<&[i64]>, LoadError> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::Integers(v)) => Ok(Some(v)),
            Some(_) => Err(bad(key, "is not an array of integers")),
        }
    }

    /// An array of floats, or none when the key is absent.
    ///
    /// # Errors
    /// [`LoadError::BadKey`] when it is of another type.
    pub fn floats(&self, key: &str) -> Result<Option<&[f32]>, LoadError> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::Floats(v)) => Ok(Some(v)),
            Some(_) => Err(bad(key, "is not an array of floats")),
        }
    }

    /// As [`Metadata::str`], but the key must be there.
    ///
    /// # Errors
    /// [`LoadError::MissingKey`] besides those of `str`.
    pub fn need_str(&self, key: &str) -> Result<&str, LoadError> {
        self.str(key)?.ok_or_else(|| LoadError::MissingKey(key.to_owned()))
    }

    /// As [`Metadata::u32`], but the key must be there and lie in `1..=limit`.
    ///
    /// # Errors
    /// [`LoadError::MissingKey`] and [`LoadError::BadKey`].
    pub fn need_u32(&self, key: &str, limit: u32) -> Result<u32, LoadError> {
        let v = self.u32(key)?.ok_or_else(|| LoadError::MissingKey(key.to_owned()))?;
        if v == 0 || v > limit {
            return Err(bad(key, &format!("is {v}, outside 1..={limit}")));
        }
        Ok(v)
    }
}

fn bad(key: &str, what: &str) -> LoadError {
    LoadError::BadKey { key: key.to_owned(), what: what.to_owned() }
}

fn read_value(r: &mut Reader<'_>, key: &str, kind: u32) -> Result<Value, LoadError> {
    Ok(match kind {
        T_U8 => Value::Unsigned(r.u8(key)?.into()),
        T_U16 => Value::Unsigned(r.u16(key)?.into()),
        T_U32 => Value::Unsigned(r.u32(key)?.into()),
        T_U64 => Value::Unsigned(r.u64(key)?),
        T_I8 => Value::Signed((r.u8(key)? as i8).into()),
        T_I16 => Value::Signed((r.u16(key)? as i16).into()),
        T_I32 => Value::Signed((r.u32(key)? as i32).into()),
        T_I64 => Value::Signed(r.u64(key)? as i64),
        T_F32 => Value::Float(f32::from_bits(r.u32(key)?).into()),
        T_F64 => Value::Float(f64::from_bits(r.u64(key)?)),
        T_BOOL => Value::Bool(read_bool(r, key)?),
        T_STRING => Value::String(r.string(key)?.to_owned()),
        T_ARRAY => read_array(r, key)?,
        other => {
            let what = format!("key {key} has the unknown value type {other}");
            return Err(LoadError::Malformed { what, at: r.position() });
        }
    })
}

fn read_bool(r: &mut Reader<'_>, key: &str) -> Result<bool, LoadError> {
    match r.u8(key)? {
        0 => Ok(false),
        1 => Ok(true),
        v => Err(LoadError::Malformed { what: format!("key {key}: {v} is no boolean"), at: r.position() - 1 }),
    }
}

/// Arrays of arrays are refused, as the reference reader does.
fn read_array(r: &mut Reader<'_>, key: &str) -> Result<Value, LoadError> {
    let kind = r.u32(key)?;
    let n = r.count(MAX_ARRAY_LEN, key)?;
    let width = match kind {
        T_U8 | T_I8 | T_BOOL => 1,
        T_U16 | T_I16 => 2,
        T_U32 | T_I32 | T_F32 => 4,
        T_U64 | T_I64 | T_F64 | T_STRING => 8,
        other => {
            let what = format!("key {key} is an array of the unsupported type {other}");
            return Err(LoadError::Malformed { what, at: r.position() });
        }
    };
    // Checked before anything is allocated: a lying length costs nothing.
    if n * width > r.remaining() {
        return Err(LoadError::Truncated {
            what: key.to_owned(),
            from: r.position(),
            to: r.position() + n * width,
            have: r.position() + r.remaining(),
        });
    }
    if kind == T_STRING {
        let strings = (0..n).map(|_| Ok(r.string(key)?.to_owned())).collect::<Result<_, LoadError>>()?;
        return Ok(Value::Strings(strings));
    }
    if kind == T_F32 || kind == T_F64 {
        let mut floats = Vec::with_capacity(n as usize);
        for _ in 0..n {
            floats.push(match kind {
                T_F32 => f32::from_bits(r.u32(key)?),
                _ => f64::from_bits(r.u64(key)?) as f32,
            });
        }
        return Ok(Value::Floats(floats));
    }
    let mut integers = Vec::with_capacity(n as usize);
    for _ in 0..n {
        integers.push(match read_value(r, key, kind)? {
            Value::Unsigned(v) => i64::try_from(v).map_err(|_| bad(key, "holds an integer beyond 63 bits"))?,
            Value::Signed(v) => v,
            Value::Bool(v) => v.into(),
            _ => return Err(bad(key, "holds a value that is no integer")),
        });
    }
    Ok(Value::Integers(integers))
}
