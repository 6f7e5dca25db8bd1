//! Dates for templates that print one.

use std::time::{SystemTime, UNIX_EPOCH};

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
const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// Today (UTC) in a format of `strftime`. Only days are told, so that a prompt, and with it the KV cache of its
/// beginning, stays the same for a day: hours, minutes and seconds are zero.
pub(super) fn format_now(format: &str) -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    format_day(format, seconds / 86_400)
}

/// The same for a day given as days since 1970-01-01.
fn format_day(format: &str, days: u64) -> String {
    let (year, month, day) = civil(days);
    let (month_name, day_name) = (MONTHS[month - 1], DAYS[((days + 4) % 7) as usize]);
    let mut out = String::new();
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('Y') => out += &year.to_string(),
            Some('y') => out += &format!("{:02}", year % 100),
            Some('m') => out += &format!("{month:02}"),
            Some('d') => out += &format!("{day:02}"),
            Some('e') => out += &format!("{day:2}"),
            Some('B') => out += month_name,
            Some('b' | 'h') => out += &month_name[..3],
            Some('A') => out += day_name,
            Some('a') => out += &day_name[..3],
            Some('F') => out += &format!("{year}-{month:02}-{day:02}"),
            Some('H' | 'M' | 'S') => out += "00",
            Some('%') => out.push('%'),
            Some(other) => out.extend(['%', other]),
            None => out.push('%'),
        }
    }
    out
}

/// Year, month and day of a day in the Gregorian calendar, counted from a March so that leap days come last.
fn civil(days: u64) -> (u64, usize, u64) {
    const ERA: u64 = 146_097;
    let z = days + 719_468;
    let (era, of_era) = (z / ERA, z % ERA);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / (ERA - 1)) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month as usize, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_told_as_strftime_does() {
        // By the `date` of a Unix system.
        for (days, expected) in [
            (0, "Thursday 01 January 1970"),
            (11_016, "Tuesday 29 February 2000"),
            (19_782, "Thursday 29 February 2024"),
            (19_783, "Friday 01 March 2024"),
            (20_423, "Monday 01 December 2025"),
            (47_540, "Sunday 28 February 2100"),
            (47_541, "Monday 01 March 2100"),
        ] {
            assert_eq!(format_day("%A %d %B %Y", days), expected);
        }
        assert_eq!(format_day("%e %b %y %F %H:%M %% %q %", 20_423), " 1 Dec 25 2025-12-01 00:00 % %q %");
    }
}
