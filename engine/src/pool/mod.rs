//! A pool of fixed workers for short, frequent, data-parallel steps.
//!
//! A decode step runs some two hundred parallel regions of a few microseconds each, so workers spin briefly for the
//! next region before they park; between answers they cost nothing. Each worker has a range of neighbouring jobs, so that
//! it reads memory in long runs (what the hardware fetches ahead is then its own), and takes from the others' ranges when
//! its own is done. A region ends when all jobs are done, not when all workers came by: a slow core is left with fewer
//! jobs. A worker that is stopped again and again with a job in its hands rests for a while (`pace`).

mod pace;

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{JoinHandle, Thread};
use std::time::{Duration, Instant};

use self::pace::{Pace, Share};
use crate::limits::MAX_THREADS;

/// Looks of a waiting worker before it parks: some hundred microseconds, longer than any gap inside one token.
const SPINS: usize = 10_000;

/// Looks of the caller for the last jobs of others before it offers its core: with more threads than free cores the one
/// that has the last job may be waiting for just that.
const SPINS_AT_END: usize = 2_000;

/// One region of so many is timed: often enough to notice a slow core within some tokens, and a prime, so that it is not
/// always the same step of a layer.
const TIMED: u32 = 7;

/// A region's work: `(worker, job)`.
type Work = dyn Fn(usize, usize) + Sync + 'static;

/// A worker's jobs of a region in one word, so that one is claimed by one addition: the region's number (24 bits, round and
/// round), where the range ends, and which job is next (20 bits each).
#[derive(Clone, Copy, PartialEq)]
struct Range(u64);

impl Range {
    const BITS: u32 = 20;
    const MASK: u64 = (1 << Self::BITS) - 1;
    /// The most jobs of a region. Each worker may count once past the last job of a range that it sees, so there is room
    /// for that above.
    const MAX_JOBS: usize = Self::MASK as usize - MAX_THREADS;

    fn new(region: u64, next: usize, end: usize) -> Self {
        Self(region << (2 * Self::BITS) | (end as u64) << Self::BITS | next as u64)
    }

    fn region(self) -> u64 {
        self.0 >> (2 * Self::BITS)
    }

    /// The next job, if there is one left.
    fn next(self) -> Option<usize> {
        let (next, end) = (self.0 & Self::MASK, self.0 >> Self::BITS & Self::MASK);
        (next < end).then_some(next as usize)
    }
}

/// What belongs to one worker, in a cache line of its own, or claiming a job would disturb the neighbours.
#[derive(Default)]
#[repr(align(128))]
struct Slot {
    range: AtomicU64,
    /// The worker sleeps, or is about to.
    parked: AtomicBool,
    /// Jobs that the worker did in a timed region, and the nanoseconds they took.
    jobs: AtomicU32,
    busy: AtomicU64,
}

impl Slot {
    fn look(&self, order: Ordering) -> Range {
        Range(self.range.load(order))
    }

    /// Claims the next job of the range.
    fn claim(&self) -> Option<usize> {
        self.look(Ordering::Relaxed).next()?;
        Range(self.range.fetch_add(1, Ordering::AcqRel)).next()
    }

    fn share(&self) -> Share {
        let busy = Duration::from_nanos(self.busy.load(Ordering::Relaxed));
        Share { jobs: self.jobs.load(Ordering::Relaxed), busy }
    }
}

struct Shared {
    /// One for each thread.
    slots: Box<[Slot]>,
    /// What the jobs of the current region do. Written only between regions, read only by who holds a job.
    work: UnsafeCell<Option<*const Work>>,
    /// Jobs of the current region that are done.
    done: AtomicUsize,
    /// The current region is one whose jobs are timed.
    timed: AtomicBool,
    panicked: AtomicBool,
    stop: AtomicBool,
}

// SAFETY: `work` is the only field that is not `Sync`. `Pool::region` writes it while no job is claimed or can be; the
// stores of the ranges that follow release it, and a claim acquires it. Its pointee is `Sync` and outlives the region.
unsafe impl Sync for Shared {}
// SAFETY: the same; nothing is bound to a thread.
unsafe impl Send for Shared {}

/// The workers. Dropping the pool ends them.
pub struct Pool {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
    /// One region at a time.
    turn: Mutex<Turn>,
}

/// What the regions have in common.
#[derive(Default)]
struct Turn {
    regions: u32,
    pace: Pace,
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Pool({} threads)", self.threads())
    }
}

fn lock<T>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    m.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pool {
    /// A pool that computes on `threads` threads, the calling one included; clamped to `1..=MAX_THREADS`.
    #[must_use]
    pub fn new(threads: usize) -> Self {
        let threads = threads.clamp(1, MAX_THREADS);
        let shared = Arc::new(Shared {
            slots: (0..threads).map(|_| Slot::default()).collect(),
            work: UnsafeCell::new(None),
            done: AtomicUsize::new(0),
            timed: AtomicBool::new(false),
            panicked: AtomicBool::new(false),
            stop: AtomicBool::new(false),
        });
        let workers = (1..threads)
            .map_while(|i| {
                let shared = Arc::clone(&shared);
                // A system out of threads gets a smaller pool, not an error: the caller's thread always computes.
                std::thread::Builder::new().name(format!("compute-{i}")).spawn(move || worker(&shared, i)).ok()
            })
            .collect();
        Self { shared, workers, turn: Mutex::default() }
    }

    /// Threads that compute, the calling one included.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.workers.len() + 1
    }

    /// Calls `work(worker, job)` for every job in `0..jobs`, and returns when all are done. `worker` is below
    /// [`Pool::threads`] and never runs two jobs at once.
    ///
    /// # Panics
    /// When `work` panicked on any thread; the other jobs were done all the same.
    pub fn run(&self, jobs: usize, work: impl Fn(usize, usize) + Sync) {
        let mut turn = lock(&self.turn);
        if jobs <= 1 || self.workers.is_empty() {
            (0..jobs).for_each(|job| work(0, job));
            return;
        }
        for from in (0..jobs).step_by(Range::MAX_JOBS) {
            self.region(&mut turn, Range::MAX_JOBS.min(jobs - from), &|worker, job| work(worker, from + job));
        }
        // Asked in this turn, or the next caller would be told; told after it, or the lock would be poisoned for nothing.
        let panicked = self.shared.panicked.swap(false, Ordering::Relaxed);
        drop(turn);
        assert!(!panicked, "a compute worker panicked");
    }

    /// One region.
    fn region(&self, turn: &mut Turn, jobs: usize, work: &(dyn Fn(usize, usize) + Sync)) {
        let s = &*self.shared;
        let work: *const (dyn Fn(usize, usize) + Sync + '_) = work;
        // SAFETY: only the lifetime is erased. `work` outlives this call, and this call neither returns nor unwinds
        // (`jobs_of` catches) before every claimed job is done; a worker without a claim does not look at `work`.
        let erased: *const Work = unsafe { std::mem::transmute(work) };
        // SAFETY: all jobs of the last region are done and its ranges have none left, so nobody reads.
        unsafe { *s.work.get() = Some(erased) };
        s.done.store(0, Ordering::Relaxed);
        turn.regions = turn.regions.wrapping_add(1);
        let timed = turn.regions.is_multiple_of(TIMED);
        s.timed.store(timed, Ordering::Relaxed);
        let started = timed.then(Instant::now);
        if let Some(now) = started {
            turn.pace.wake(now);
            for slot in &s.slots {
                slot.jobs.store(0, Ordering::Relaxed);
                slot.busy.store(0, Ordering::Relaxed);
            }
        }
        let region = s.slots[0].look(Ordering::Relaxed).region().wrapping_add(1);
        let (active, mut nth) = (self.threads() - turn.pace.resting(), 0);
        for (i, slot) in s.slots.iter().enumerate() {
            let (next, end) = if i < self.threads() && turn.pace.is_active(i) {
                nth += 1;
                ((nth - 1) * jobs / active, nth * jobs / active)
            } else {
                (0, 0)
            };
            // Sequentially consistent with the look at `parked`: a worker announces itself before it looks at its range
            // for the last time, so that one of the two sees the other.
            slot.range.store(Range::new(region, next, end).0, Ordering::SeqCst);
            if next < end && slot.parked.load(Ordering::SeqCst) {
                self.thread(i).inspect(|t| t.unpark());
            }
        }
        jobs_of(s, 0);
        let mut looks = 0;
        while s.done.load(Ordering::Acquire) < jobs {
            looks += 1;
            if looks < SPINS_AT_END { std::hint::spin_loop() } else { std::thread::yield_now() }
        }
        if let Some(started) = started {
            turn.pace.note(self.threads(), |i| s.slots[i].share(), started, Instant::now());
        }
    }

    /// The thread of worker `i`; none for the caller.
    fn thread(&self, i: usize) -> Option<&Thread> {
        self.workers.get(i.checked_sub(1)?).map(JoinHandle::thread)
    }
}

/// Does the jobs of the own range, then those left in the others'.
fn jobs_of(s: &Shared, me: usize) {
    for i in 0..s.slots.len() {
        let slot = &s.slots[(me + i) % s.slots.len()];
        while let Some(job) = slot.claim() {
            // SAFETY: a claimed job is not done yet, so its region has not ended: `work` is set, alive, and not written.
            let Some(work) = (unsafe { *s.work.get() }) else { return };
            // SAFETY: as above.
            let work = unsafe { &*work };
            let started = s.timed.load(Ordering::Relaxed).then(Instant::now);
            if std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(me, job))).is_err() {
                s.panicked.store(true, Ordering::Relaxed);
            }
            if let Some(started) = started {
                let own = &s.slots[me];
                own.jobs.fetch_add(1, Ordering::Relaxed);
                own.busy.fetch_add(started.elapsed().as_nanos() as u64, Ordering::Relaxed);
            }
            // Releases what the job wrote, and its time.
            s.done.fetch_add(1, Ordering::AcqRel);
        }
    }
}

fn worker(s: &Shared, me: usize) {
    while wait_for_jobs(s, me) {
        jobs_of(s, me);
    }
}

/// Waits until there are jobs: looks for a while, then parks. False when the pool ends.
fn wait_for_jobs(s: &Shared, me: usize) -> bool {
    for _ in 0..SPINS {
        if s.stop.load(Ordering::Relaxed) {
            return false;
        }
        if s.slots[me].look(Ordering::Relaxed).next().is_some() {
            return true;
        }
        std::hint::spin_loop();
    }
    let own = &s.slots[me];
    own.parked.store(true, Ordering::SeqCst);
    let more = loop {
        if s.stop.load(Ordering::SeqCst) {
            break false;
        }
        if own.look(Ordering::SeqCst).next().is_some() {
            break true;
        }
        // Returns at once when it was unparked since it last returned, or for no reason.
        std::thread::park();
    };
    own.parked.store(false, Ordering::SeqCst);
    more
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        for w in self.workers.drain(..) {
            w.thread().unpark();
            // A worker cannot panic outside `jobs_of`, which catches.
            let _ = w.join();
        }
    }
}

/// A slice that several workers write at once, each its own part.
#[derive(Debug, Clone, Copy)]
pub struct Disjoint<T> {
    start: *mut T,
    len: usize,
}

// SAFETY: the pointer is only turned into references by `part`, whose contract makes them exclusive.
unsafe impl<T: Send> Send for Disjoint<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Disjoint<T> {}

impl<T> Disjoint<T> {
    /// Borrows `slice` for parallel writing. The caller keeps it borrowed while parts are in use.
    pub fn new(slice: &mut [T]) -> Self {
        Self { start: slice.as_mut_ptr(), len: slice.len() }
    }

    /// The part `from..from + n`, still shared.
    ///
    /// # Panics
    /// When it lies outside the slice.
    #[must_use]
    pub fn sub(self, from: usize, n: usize) -> Self {
        assert!(from.checked_add(n).is_some_and(|end| end <= self.len), "part {from}+{n} of {}", self.len);
        // SAFETY: in bounds of the same allocation by the assertion.
        Self { start: unsafe { self.start.add(from) }, len: n }
    }

    /// Elements `from..from + n`.
    ///
    /// # Safety
    /// - The slice given to [`Disjoint::new`] is still borrowed by the caller.
    /// - No other live part overlaps this one.
    ///
    /// # Panics
    /// When the part lies outside the slice.
    #[allow(clippy::mut_from_ref, reason = "exclusivity is the caller's contract")]
    pub unsafe fn part<'a>(&self, from: usize, n: usize) -> &'a mut [T] {
        assert!(from.checked_add(n).is_some_and(|end| end <= self.len), "part {from}+{n} of {}", self.len);
        // SAFETY: in bounds by the assertion; alive and exclusive by the caller's contract.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(from), n) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_job_runs_exactly_once() {
        let pool = Pool::new(4);
        for jobs in [0, 1, 2, 3, 100, 1000] {
            let counts: Vec<AtomicUsize> = (0..jobs).map(|_| AtomicUsize::new(0)).collect();
            pool.run(jobs, |worker, job| {
                assert!(worker < pool.threads());
                counts[job].fetch_add(1, Ordering::Relaxed);
            });
            assert!(counts.iter().all(|c| c.load(Ordering::Relaxed) == 1), "{jobs} jobs");
        }
    }

    #[test]
    fn regions_follow_each_other_closely_and_after_pauses() {
        let pool = Pool::new(3);
        let total = AtomicUsize::new(0);
        for round in 0..20_000 {
            pool.run(2 + round % 5, |_, job| {
                total.fetch_add(job + 1, Ordering::Relaxed);
            });
            // Long enough for the workers to park, now and then.
            if round % 4_000 == 0 {
                while !pool.shared.slots[1..].iter().all(|slot| slot.parked.load(Ordering::SeqCst)) {
                    std::thread::yield_now();
                }
            }
        }
        assert_eq!(total.into_inner(), 4_000 * (3 + 6 + 10 + 15 + 21));
    }

    #[test]
    fn more_jobs_than_a_range_counts() {
        let pool = Pool::new(2);
        let jobs = 2 * Range::MAX_JOBS + 3;
        let (count, sum) = (AtomicUsize::new(0), AtomicU64::new(0));
        pool.run(jobs, |_, job| {
            count.fetch_add(1, Ordering::Relaxed);
            sum.fetch_add(job as u64, Ordering::Relaxed);
        });
        assert_eq!(count.into_inner(), jobs);
        assert_eq!(sum.into_inner(), (jobs as u64) * (jobs as u64 - 1) / 2);
    }

    #[test]
    fn a_panic_reaches_the_caller_and_the_pool_lives_on() {
        let pool = Pool::new(3);
        let failed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            pool.run(50, |_, job| assert!(job != 17, "job 17"));
        }));
        assert!(failed.is_err());
        let done = AtomicUsize::new(0);
        pool.run(50, |_, _| {
            done.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!(done.into_inner(), 50);
    }
}
