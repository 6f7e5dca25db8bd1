//! Numbers as a sheet shows them: `1599.99` as `$1,599.99`, `43363` as `2018-09-20`.
//!
//! Names of days and months are English and the marks those of English, for a workbook does not say in which language it
//! is shown. Where a format leaves the order of a date to the person's region, it is year, month, day.

use crate::extract::date::day_of;

/// Bytes of a format; Excel takes 255.
const CODE_BYTES_MAX: usize = 512;

/// Digits behind the point that are shown.
const DECIMALS_MAX: usize = 30;

/// Days since 1970 of day 0 of a sheet's calendar, and of the other one that some have.
const EPOCH_1900: i64 = -25_569;
const EPOCH_1904: i64 = -24_107;

/// The last day a sheet knows, in the year 9999.
const DAY_MAX: f64 = 2_958_465.0;

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const WEEKDAYS: [&str; 7] = ["Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday"];

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Literal(String),
    /// A place for a digit: `0`, `#` or `?`.
    Digit(char),
    Point,
    Percent,
    /// `E+` or `E-`; the digits that follow are the exponent's.
    Exponent,
    /// A part of a date, such as `mmm`.
    Date(char, usize),
    /// Hours, minutes or seconds that go on above their usual limit: `[h]`.
    Elapsed(char),
    AmPm,
    General,
}

/// A number format.
#[derive(Debug, Clone)]
pub(crate) struct NumberFormat {
    /// For positive, negative and zero, as far as they are given.
    sections: Vec<Section>,
}

#[derive(Debug, Clone, Default)]
struct Section {
    tokens: Vec<Token>,
    is_date: bool,
    grouped: bool,
    /// Each comma behind the last digit divides by a thousand.
    thousands: i32,
    percents: i32,
}

/// The code of a format that has a number only.
pub(crate) fn built_in(id: u32) -> &'static str {
    match id {
        1 => "0",
        2 => "0.00",
        3 | 5 | 6 | 37 | 38 | 41 | 42 => "#,##0",
        4 | 7 | 8 | 39 | 40 | 43 | 44 => "#,##0.00",
        9 => "0%",
        10 => "0.00%",
        11 | 48 => "0.00E+00",
        14 | 27..=31 | 36 | 50..=54 | 57 | 58 => "yyyy-mm-dd",
        15 => "d-mmm-yy",
        16 => "d-mmm",
        17 => "mmm-yy",
        18 => "h:mm AM/PM",
        19 => "h:mm:ss AM/PM",
        20 | 32 | 34 | 55 => "h:mm",
        21 | 33 | 35 | 56 => "h:mm:ss",
        22 => "yyyy-mm-dd h:mm",
        45 | 47 => "mm:ss",
        46 => "[h]:mm:ss",
        _ => "General",
    }
}

impl NumberFormat {
    pub(crate) fn parse(code: &str) -> Self {
        let code = if code.len() > CODE_BYTES_MAX { "General" } else { code };
        Self { sections: sections(code).iter().map(|s| Section::parse(s)).collect() }
    }

    /// The number as it is shown.
    pub(crate) fn show(&self, value: f64, from_1904: bool) -> String {
        if !value.is_finite() {
            return String::new();
        }
        let (section, value) = match self.sections.as_slice() {
            [] => return general(value),
            [_, negative, ..] if value < 0.0 => (negative, -value),
            [_, _, zero, ..] if value == 0.0 => (zero, value),
            [first, ..] => (first, value),
        };
        if section.tokens.contains(&Token::General) {
            return section.around_general(value);
        }
        if section.is_date {
            return if (0.0..=DAY_MAX).contains(&value) { section.date(value, from_1904) } else { general(value) };
        }
        if section.tokens.iter().any(|t| matches!(t, Token::Digit(_))) {
            // Fractions are shown as what they stand for.
            return if section.literals().contains('/') { general(value) } else { section.number(value) };
        }
        section.literals().trim().to_owned()
    }
}

/// The sections of a code: between semicolons that are not quoted.
fn sections(code: &str) -> Vec<String> {
    let (mut out, mut quoted, mut escaped) = (vec![String::new()], false, false);
    for c in code.chars() {
        if c == ';' && !quoted && !escaped {
            out.push(String::new());
            continue;
        }
        quoted ^= c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        if let Some(last) = out.last_mut() {
            last.push(c);
        }
    }
    out
}

impl Section {
    fn parse(code: &str) -> Self {
        let mut section = Self::default();
        let chars: Vec<char> = code.chars().collect();
        let mut at = 0;
        while at < chars.len() {
            at += section.token(&chars[at..]).max(1);
        }
        section.name_minutes();
        section.is_date = section.tokens.iter().any(|t| matches!(t, Token::Date(..) | Token::Elapsed(_)));
        section
    }

    /// Reads one token; how many characters it has.
    fn token(&mut self, rest: &[char]) -> usize {
        let text: String = rest.iter().take(7).collect::<String>().to_ascii_lowercase();
        if text == "general" {
            self.tokens.push(Token::General);
            return 7;
        }
        for (mark, len) in [("am/pm", 5), ("a/p", 3)] {
            if text.starts_with(mark) {
                self.tokens.push(Token::AmPm);
                return len;
            }
        }
        match rest[0] {
            '"' => {
                let end = rest.iter().skip(1).position(|&c| c == '"').map_or(rest.len(), |i| i + 1);
                self.literal(&rest[1..end]);
                end + 1
            }
            '\\' => {
                self.literal(&rest[1..rest.len().min(2)]);
                2
            }
            // The width of a character, as a space.
            '_' => {
                self.literal(&[' ']);
                2
            }
            '*' => 2,
            '[' => self.bracket(rest),
            c @ ('0' | '#' | '?') => {
                self.tokens.push(Token::Digit(c));
                1
            }
            '.' => {
                self.tokens.push(Token::Point);
                1
            }
            ',' => self.comma(rest),
            '%' => {
                self.percents += 1;
                self.tokens.push(Token::Percent);
                1
            }
            'E' | 'e' if matches!(rest.get(1), Some('+' | '-')) => {
                self.tokens.push(Token::Exponent);
                2
            }
            c if "ymdhsYMDHS".contains(c) => {
                let kind = c.to_ascii_lowercase();
                let count = rest.iter().take_while(|r| r.to_ascii_lowercase() == kind).count();
                self.tokens.push(Token::Date(kind, count));
                count
            }
            '@' => 1,
            c => {
                self.literal(&[c]);
                1
            }
        }
    }

    fn literal(&mut self, chars: &[char]) {
        if let Some(Token::Literal(text)) = self.tokens.last_mut() {
            text.extend(chars);
        } else {
            self.tokens.push(Token::Literal(chars.iter().collect()));
        }
    }

    /// Colours, conditions and languages say nothing; currencies and elapsed time do.
    fn bracket(&mut self, rest: &[char]) -> usize {
        let end = rest.iter().position(|&c| c == ']').unwrap_or(rest.len() - 1);
        let inside: String = rest[1..end.max(1)].iter().collect::<String>();
        if let Some(currency) = inside.strip_prefix('$') {
            self.literal(&currency.chars().take_while(|&c| c != '-').collect::<Vec<_>>());
        } else if let Some(c) = inside.chars().next().map(|c| c.to_ascii_lowercase())
            && "hms".contains(c)
            && inside.chars().all(|other| other.to_ascii_lowercase() == c)
        {
            self.tokens.push(Token::Elapsed(c));
        }
        end + 1
    }

    /// Between digits a comma groups them; behind the last it divides.
    fn comma(&mut self, rest: &[char]) -> usize {
        let after_digit = matches!(self.tokens.last(), Some(Token::Digit(_)));
        let more = rest.iter().skip(1).any(|c| matches!(c, '0' | '#' | '?')) && !self.tokens.contains(&Token::Point);
        match (after_digit, more) {
            (true, true) => self.grouped = true,
            (true, false) => self.thousands += 1,
            (false, _) => self.literal(&[',']),
        }
        1
    }

    /// An `m` behind hours or before seconds is minutes.
    fn name_minutes(&mut self) {
        let dates: Vec<usize> =
            (0..self.tokens.len()).filter(|&i| matches!(self.tokens[i], Token::Date(..) | Token::Elapsed(_))).collect();
        let is =
            |token: Option<&Token>, kind| matches!(token, Some(Token::Date(k, _) | Token::Elapsed(k)) if *k == kind);
        for (n, &i) in dates.iter().enumerate() {
            let before = n.checked_sub(1).and_then(|p| self.tokens.get(dates[p]));
            let after = dates.get(n + 1).and_then(|&next| self.tokens.get(next));
            let minutes = is(before, 'h') || is(after, 's');
            if let Token::Date('m', count) = self.tokens[i]
                && minutes
                && count <= 2
            {
                self.tokens[i] = Token::Date('n', count);
            }
        }
    }

    fn literals(&self) -> String {
        self.tokens.iter().filter_map(|t| if let Token::Literal(l) = t { Some(l.as_str()) } else { None }).collect()
    }

    fn around_general(&self, value: f64) -> String {
        let shown = self.tokens.iter().map(|token| match token {
            Token::General => general(value),
            Token::Literal(text) => text.clone(),
            _ => String::new(),
        });
        shown.collect::<String>().trim().to_owned()
    }

    fn number(&self, value: f64) -> String {
        let value = value * 100_f64.powi(self.percents) / 1000_f64.powi(self.thousands);
        let point = self.tokens.iter().position(|t| *t == Token::Point).unwrap_or(self.tokens.len());
        let exponent = self.tokens.iter().position(|t| *t == Token::Exponent).unwrap_or(self.tokens.len());
        let digits =
            |range: std::ops::Range<usize>| self.tokens[range].iter().filter(|t| matches!(t, Token::Digit(_))).count();
        let decimals = if point < exponent { digits(point..exponent).min(DECIMALS_MAX) } else { 0 };
        // A half is rounded up, also one that has no exact binary form.
        let size = value.abs() * (1.0 + 4.0 * f64::EPSILON);
        let (shown, power) = if exponent < self.tokens.len() {
            let text = format!("{:.*E}", decimals, size);
            let (mantissa, power) = text.split_once('E').unwrap_or((&text, "0"));
            (mantissa.to_owned(), power.parse::<i32>().unwrap_or(0))
        } else {
            (format!("{:.*}", decimals, size), 0)
        };
        let (whole, fraction) = shown.split_once('.').unwrap_or((&shown, ""));
        let nothing = shown.bytes().all(|b| matches!(b, b'0' | b'.'));
        let places = digits(0..point.min(exponent));
        let mut out = String::new();
        let (mut seen, mut behind) = (0, fraction.chars());
        for (i, token) in self.tokens.iter().enumerate() {
            match token {
                Token::Literal(text) => out.push_str(text),
                Token::Percent => out.push('%'),
                // Not where nothing but `#` is behind the point, and nothing to show there.
                Token::Point
                    if i == point
                        && (fraction.bytes().any(|b| b != b'0') || self.tokens[i..].contains(&Token::Digit('0'))) =>
                {
                    out.push('.');
                }
                Token::Digit(kind) if i < point && i < exponent => {
                    self.whole_digits(whole, *kind, places - 1 - seen, seen == 0, &mut out);
                    seen += 1;
                }
                Token::Digit(kind) if i < exponent => {
                    let rest_is_zero = behind.as_str().bytes().all(|b| b == b'0');
                    match behind.next() {
                        Some(digit) if *kind == '0' || !rest_is_zero => out.push(digit),
                        _ => {}
                    }
                }
                Token::Exponent => out.push_str(&format!("E{}{:02}", if power < 0 { '-' } else { '+' }, power.abs())),
                _ => {}
            }
        }
        let sign = if value < 0.0 && !nothing { "-" } else { "" };
        format!("{sign}{}", out.trim())
    }

    /// The digits for one place in front of the point, counted from the right. The first place takes all that are left.
    fn whole_digits(&self, whole: &str, kind: char, place: usize, is_first: bool, out: &mut String) {
        let digits: Vec<char> = whole.trim_start_matches('0').chars().collect();
        let top = if is_first { digits.len().max(place + 1) } else { place + 1 };
        for p in (place..top).rev() {
            match digits.len().checked_sub(p + 1).and_then(|i| digits.get(i)) {
                Some(digit) => out.push(*digit),
                None if kind == '0' => out.push('0'),
                None => continue,
            }
            if self.grouped && p > 0 && p.is_multiple_of(3) {
                out.push(',');
            }
        }
    }

    fn date(&self, value: f64, from_1904: bool) -> String {
        // To the second, as is shown: half a second more or less is how times are stored.
        let seconds_all = (value * 86_400.0).round() as i64;
        let (mut days, seconds) = (seconds_all.div_euclid(86_400), seconds_all.rem_euclid(86_400));
        // The calendar of 1900 has a 29th of February that never was; what lies before it is a day off.
        if !from_1904 && days < 60 {
            days += 1;
        }
        let days = days + if from_1904 { EPOCH_1904 } else { EPOCH_1900 };
        let day = day_of(days);
        let twelve = self.tokens.contains(&Token::AmPm);
        let (hours, minutes, rest) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        let month = MONTHS[(day.month.clamp(1, 12) - 1) as usize];
        let weekday = WEEKDAYS[usize::try_from(days.rem_euclid(7)).unwrap_or(0)];
        let mut out = String::new();
        for token in &self.tokens {
            match token {
                Token::Literal(text) => out.push_str(text),
                Token::Date('y', ..=2) => out.push_str(&format!("{:02}", day.year.rem_euclid(100))),
                Token::Date('y', _) => out.push_str(&format!("{:04}", day.year)),
                Token::Date('m', 3) => out.push_str(&month[..3]),
                Token::Date('m', 5) => out.push_str(&month[..1]),
                Token::Date('m', 4..) => out.push_str(month),
                Token::Date('m', n) => padded(i64::from(day.month), *n, &mut out),
                Token::Date('d', 3) => out.push_str(&weekday[..3]),
                Token::Date('d', 4..) => out.push_str(weekday),
                Token::Date('d', n) => padded(i64::from(day.day), *n, &mut out),
                Token::Date('h', n) => padded(if twelve { (hours + 11) % 12 + 1 } else { hours }, *n, &mut out),
                Token::Date('n', n) => padded(minutes, *n, &mut out),
                Token::Date(_, n) => padded(rest, *n, &mut out),
                Token::Elapsed('h') => padded(seconds_all / 3600, 1, &mut out),
                Token::Elapsed('m') => padded(seconds_all / 60, 1, &mut out),
                Token::Elapsed(_) => padded(seconds_all, 1, &mut out),
                Token::AmPm => out.push_str(if hours < 12 { "AM" } else { "PM" }),
                _ => {}
            }
        }
        out.trim().to_owned()
    }
}

fn padded(number: i64, width: usize, out: &mut String) {
    let width = width.min(2);
    out.push_str(&format!("{number:0width$}"));
}

/// A number without a format: whole where it is, else ten digits, so that no trace of binary fractions is seen.
pub(crate) fn general(value: f64) -> String {
    let size = value.abs();
    if size < 1e15 && value.fract() == 0.0 {
        return if value == 0.0 { "0".to_owned() } else { format!("{value:.0}") };
    }
    if !(1e-9..1e15).contains(&size) {
        return format!("{value:.5E}");
    }
    let whole = size.log10().floor() as i32 + 1;
    let decimals = usize::try_from(10 - whole).unwrap_or(0).clamp(1, 18);
    let text = format!("{value:.decimals$}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(code: &str, value: f64) -> String {
        NumberFormat::parse(code).show(value, false)
    }

    #[test]
    fn numbers_look_as_in_the_sheet() {
        for (code, value, shown) in [
            ("General", 0.300_000_000_000_000_04, "0.3"),
            ("General", 1e9, "1000000000"),
            ("General", -12.5, "-12.5"),
            ("General", 0.0, "0"),
            ("0", 2.6, "3"),
            ("0.00", 2.0, "2.00"),
            ("0.##", 2.5, "2.5"),
            ("0.##", 2.0, "2"),
            ("#,##0.00", 1_234_567.891, "1,234,567.89"),
            ("#,##0", 12.0, "12"),
            ("#,##0", -1234.0, "-1,234"),
            ("0%", 0.025, "3%"),
            ("0.00%", 0.025, "2.50%"),
            ("0.00E+00", 198_356_388.0, "1.98E+08"),
            ("\"$\"#,##0.00_);[Red]\\(\"$\"#,##0.00\\)", -1599.99, "($1,599.99)"),
            ("\"$\"#,##0.00_);[Red]\\(\"$\"#,##0.00\\)", 1599.99, "$1,599.99"),
            ("0\\ \"dollars and\"\\ .00\\ \"cents\"", 19.99, "19 dollars and .99 cents"),
            ("000\\-00\\-0000", 12_345_678.0, "012-34-5678"),
            ("#,##0.0,,\"M\"", 12_300_000.0, "12.3M"),
            ("[$€-407]\\ #,##0", 5.0, "€ 5"),
            ("0;-0;\"none\"", 0.0, "none"),
            ("# ?/?", 2.5, "2.5"),
        ] {
            assert_eq!(show(code, value), shown, "{code} {value}");
        }
    }

    #[test]
    fn dates_look_as_in_the_sheet() {
        for (code, value, shown) in [
            ("yyyy-mm-dd", 43_363.0, "2018-09-20"),
            (
                "\"At\"\\ h:mm\\ AM/PM\\ \"on\"\\ dddd\\ mmmm\\ d\",\"\\ yyyy",
                39_219.180_563_692_12,
                "At 4:20 AM on Thursday May 17, 2007",
            ),
            ("[$-409]d-mmm-yy;@", 39_219.0, "17-May-07"),
            ("h:mm", 0.75, "18:00"),
            ("[h]:mm:ss", 1.5, "36:00:00"),
            ("mm/dd/yyyy hh:mm", 2.5, "01/02/1900 12:00"),
        ] {
            assert_eq!(show(code, value), shown, "{code}");
        }
        assert_eq!(NumberFormat::parse("yyyy-mm-dd").show(41_901.0, true), "2018-09-20");
        assert_eq!(show("yyyy-mm-dd", -5.0), "-5");
        assert_eq!(show("yyyy", 1e300), "1.00000E300");
    }

    #[test]
    fn any_code_is_survived() {
        for code in [
            "",
            ";",
            "\"",
            "\\",
            "[",
            "[]",
            "_",
            "*",
            "0.",
            ".",
            "E+",
            "#,",
            ",,,",
            "[hm]",
            "0E+0E+0",
            &"0".repeat(500),
            "y".repeat(300).as_str(),
        ] {
            for value in [0.0, -1.5, 1e308, f64::NAN, 1e-300, 45_000.5] {
                let _ = show(code, value);
            }
        }
    }
}
