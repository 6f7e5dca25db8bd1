//! Dates as documents write them → milliseconds since 1970, and days → dates.

/// A day of the Gregorian calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Day {
    pub year: i64,
    /// 1 to 12.
    pub month: u32,
    /// 1 to 31.
    pub day: u32,
}

/// Days since 1970-01-01 of a day, by the calendar's rule of 400 years of 146,097 days, counted from March so that the
/// leap day is the last.
pub(crate) fn days_of(day: Day) -> i64 {
    let (month, year) = (i64::from(day.month), if day.month <= 2 { day.year - 1 } else { day.year });
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + i64::from(day.day) - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// The day so many days after 1970-01-01.
pub(crate) fn day_of(days: i64) -> Day {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let month = u32::try_from((from_march + 2) % 12 + 1).unwrap_or(1);
    let day = u32::try_from(day_of_year - (153 * from_march + 2) / 5 + 1).unwrap_or(1);
    Day { year: era * 400 + year_of_era + i64::from(month <= 2), month, day }
}

/// Milliseconds since 1970 of a date like `2007-05-17`, `2007-05-17T04:20:01Z` or `2007-05-17T04:20:01.5+02:00`. Without
/// a zone it is taken as UTC.
#[must_use]
pub fn parse_iso(text: &str) -> Option<i64> {
    let text = text.trim();
    let (date, time) = text.split_once(['T', ' ']).unwrap_or((text, ""));
    let mut fields = date.split('-');
    let year: i64 = fields.next()?.parse().ok().filter(|y| (1..=9999).contains(y))?;
    let month = fields.next().map_or(Some(1), |m| m.parse().ok()).filter(|m| (1..=12).contains(m))?;
    let day = fields.next().map_or(Some(1), |d| d.parse().ok()).filter(|d| (1..=31).contains(d))?;
    let seconds = days_of(Day { year, month, day }) * 86_400 + seconds_of_day(time).unwrap_or(0);
    Some(seconds * 1000)
}

fn seconds_of_day(time: &str) -> Option<i64> {
    let (clock, zone) = match time.find(['Z', '+', '-']) {
        Some(at) => (&time[..at], &time[at..]),
        None => (time, ""),
    };
    let mut fields = clock.split(':').map(|f| f.split('.').next().unwrap_or_default().parse::<i64>().ok());
    let mut field = |max| fields.next().flatten().filter(|f| (0..=max).contains(f));
    let seconds = field(23)? * 3600 + field(59)? * 60 + field(60).unwrap_or(0);
    let offset = zone.trim_start_matches(['Z', '+', '-']).split_once(':').and_then(|(hours, minutes)| {
        let (hours, minutes) = (hours.parse::<i64>().ok()?, minutes.parse::<i64>().ok()?);
        (hours <= 14 && minutes < 60 && hours >= 0 && minutes >= 0).then_some(hours * 3600 + minutes * 60)
    });
    let offset = offset.unwrap_or(0);
    Some(if zone.starts_with('-') { seconds + offset } else { seconds - offset })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_go_both_ways() {
        for (day, days) in
            [((1970, 1, 1), 0), ((2000, 2, 29), 11_016), ((1899, 12, 30), -25_569), ((1600, 3, 1), -135_080)]
        {
            let day = Day { year: day.0, month: day.1, day: day.2 };
            assert_eq!((days_of(day), day_of(days)), (days, day));
        }
        for days in (-800_000..800_000).step_by(997) {
            assert_eq!(days_of(day_of(days)), days);
        }
    }

    #[test]
    fn dates_are_read_with_their_zone() {
        for (text, ms) in [
            ("1970-01-02", 86_400_000),
            ("1970-01-01T00:00:01Z", 1000),
            ("1970-01-01T02:00:00.25+02:00", 0),
            ("1969-12-31 23:00:00-01:30", 1_800_000),
            ("2007", 1_167_609_600_000),
        ] {
            assert_eq!(parse_iso(text), Some(ms), "{text}");
        }
        for text in ["", "yesterday", "2007-13-01", "99999-01-01"] {
            assert_eq!(parse_iso(text), None, "{text}");
        }
    }
}
