//! Which workers take part: one that makes the others wait longer than it helps them rests for a while.
//!
//! A core that another program uses half of the time stops in the middle of a job, and the region waits for that job. Two
//! threads are then slower than one. A timed region tells for each worker how many jobs it did in what time; from that
//! follows how long the others would have taken without it, to be held against how long the region took.

use std::time::{Duration, Instant};

use super::MAX_THREADS;

/// Time of timed regions that a decision is made on; with those between, several slices of the system's scheduler.
const WINDOW: Duration = Duration::from_millis(8);
/// A first rest, short since a core that was taken once may be free at once; doubled each time that a worker is found slow
/// again, up to the longest, and halved each time that it is not.
const REST: Duration = Duration::from_millis(30);
const LONGEST_REST: Duration = Duration::from_secs(4);
/// A worker rests when all would have been done in this share of the time without it: less is not told from chance.
const GAIN: f64 = 0.97;

/// What a worker did in a region.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Share {
    pub(super) jobs: u32,
    /// Sum of the jobs' times.
    pub(super) busy: Duration,
}

impl Share {
    /// Jobs a second.
    fn rate(self) -> f64 {
        if self.jobs == 0 { 0.0 } else { f64::from(self.jobs) / self.busy.as_secs_f64().max(1e-9) }
    }
}

/// One worker as seen so far.
#[derive(Debug, Clone, Copy)]
struct Seen {
    /// Seconds that the window's regions would have taken without it.
    without: f64,
    /// Until when it rests.
    until: Option<Instant>,
    rest: Duration,
}

/// The workers' pace.
#[derive(Debug)]
pub(super) struct Pace {
    seen: [Seen; MAX_THREADS],
    resting: usize,
    /// Seconds of the window's regions.
    took: f64,
}

impl Default for Pace {
    fn default() -> Self {
        Self { seen: [Seen { without: 0.0, until: None, rest: REST }; MAX_THREADS], resting: 0, took: 0.0 }
    }
}

impl Pace {
    /// Workers that rest.
    pub(super) fn resting(&self) -> usize {
        self.resting
    }

    /// Whether worker `i` is to take part. The caller, worker 0, always is.
    pub(super) fn is_active(&self, i: usize) -> bool {
        self.seen[i].until.is_none()
    }

    /// Ends the rests that are over. All are then seen anew, or who came back would be judged by time that it was not there.
    pub(super) fn wake(&mut self, now: Instant) {
        if self.resting == 0 {
            return;
        }
        let mut woken = 0;
        for seen in self.seen.iter_mut().filter(|s| s.until.is_some_and(|until| now >= until)) {
            seen.until = None;
            woken += 1;
        }
        if woken > 0 {
            self.resting -= woken;
            self.took = 0.0;
            self.seen.iter_mut().for_each(|s| s.without = 0.0);
        }
    }

    /// Notes a timed region in which worker `i` of `threads` did `share(i)`.
    pub(super) fn note(&mut self, threads: usize, share: impl Fn(usize) -> Share, started: Instant, now: Instant) {
        let (mut jobs, mut all) = (0, 0.0);
        for i in 0..threads {
            jobs += share(i).jobs;
            all += share(i).rate();
        }
        self.took += (now - started).as_secs_f64();
        for (i, seen) in self.seen[..threads].iter_mut().enumerate().skip(1).filter(|(_, seen)| seen.until.is_none()) {
            let others = all - share(i).rate();
            // When no other came by, nothing is known of how fast they would have been.
            seen.without += if others > 0.0 { f64::from(jobs) / others } else { f64::INFINITY };
        }
        if self.took >= WINDOW.as_secs_f64() {
            self.decide(threads, now);
        }
    }

    /// Sends the worker that the others would miss least to rest, if they would be faster without it.
    fn decide(&mut self, threads: usize, now: Instant) {
        let active = |seen: &Seen| seen.until.is_none();
        let least = self.seen[1..threads].iter().filter(|s| active(s)).map(|s| s.without).fold(f64::INFINITY, f64::min);
        let mut found = least >= GAIN * self.took;
        for seen in self.seen[1..threads].iter_mut().filter(|s| active(s)) {
            if !found && seen.without <= least {
                found = true;
                self.resting += 1;
                seen.until = Some(now + seen.rest);
                seen.rest = (seen.rest * 2).min(LONGEST_REST);
            } else {
                seen.rest = (seen.rest / 2).max(REST);
            }
            seen.without = 0.0;
        }
        self.took = 0.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Notes regions of 3 ms, each with `shares`, from `now` on until some worker rests or `most` went by.
    fn regions(pace: &mut Pace, now: &mut Instant, most: Duration, shares: &[Share]) {
        let end = *now + most;
        while *now < end && pace.resting() == 0 {
            let started = *now;
            *now += 3 * MS;
            pace.note(shares.len(), |i| shares[i], started, *now);
            pace.wake(*now);
        }
    }

    fn share(jobs: u32, busy: Duration) -> Share {
        Share { jobs, busy }
    }

    #[test]
    fn slow_cores_that_help_stay() {
        let (mut pace, mut now) = (Pace::default(), Instant::now());
        // A fast core, a third as fast, and one at a tenth: without the last the others would take 3.2 ms.
        let shares = [share(30, 3 * MS), share(10, 3 * MS), share(3, 3 * MS)];
        regions(&mut pace, &mut now, Duration::from_secs(2), &shares);
        assert_eq!(pace.resting(), 0);
    }

    #[test]
    fn a_core_that_stops_with_a_job_rests_ever_longer_until_it_is_free() {
        let (mut pace, mut now) = (Pace::default(), Instant::now());
        // Worker 2 holds a job for the whole region; the others were through after 1 ms.
        let slow = [share(10, MS), share(10, MS), share(1, 3 * MS)];
        let mut rests = Vec::new();
        for _ in 0..9 {
            regions(&mut pace, &mut now, Duration::from_secs(1), &slow);
            assert!(pace.is_active(1) && !pace.is_active(2), "the slow one rests");
            let began = now;
            while pace.resting() > 0 {
                now += MS;
                pace.wake(now);
            }
            rests.push(now - began);
        }
        assert!(rests.windows(2).all(|w| w[0] <= w[1]), "{rests:?}");
        assert!(rests[0] <= REST + MS && rests[8] >= LONGEST_REST - MS && rests[8] <= LONGEST_REST + MS, "{rests:?}");
        // Free again: it stays, and a later rest would be short.
        let even = [share(10, 3 * MS); 3];
        regions(&mut pace, &mut now, Duration::from_secs(1), &even);
        assert_eq!(pace.resting(), 0);
        regions(&mut pace, &mut now, Duration::from_secs(1), &slow);
        pace.wake(now + REST + MS);
        assert_eq!(pace.resting(), 0);
    }

    #[test]
    fn who_comes_back_is_judged_by_what_it_does_then() {
        let (mut pace, mut now) = (Pace::default(), Instant::now());
        let slow = [share(10, MS), share(1, 3 * MS)];
        regions(&mut pace, &mut now, Duration::from_secs(1), &slow);
        assert_eq!(pace.resting(), 1);
        // A window of the caller alone has begun when the rest ends.
        let started = now;
        now += REST - MS;
        pace.note(2, |i| [share(10, MS), Share::default()][i], started, started + 6 * MS);
        now += 2 * MS;
        pace.wake(now);
        regions(&mut pace, &mut now, Duration::from_secs(1), &[share(10, 3 * MS); 2]);
        assert_eq!(pace.resting(), 0);
    }

    #[test]
    fn alone_nobody_is_missed() {
        let (mut pace, mut now) = (Pace::default(), Instant::now());
        // The caller got no job: what it would have done alone is not known.
        regions(&mut pace, &mut now, Duration::from_secs(1), &[share(0, Duration::ZERO), share(10, 3 * MS)]);
        assert_eq!(pace.resting(), 0);
    }
}
