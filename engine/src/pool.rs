//! A pool of fixed workers for short, frequent, data-parallel steps.
//!
//! A decode step runs some two hundred parallel regions of a few microseconds each, so workers spin briefly for the
//! next region before they park; between answers they cost nothing. Regions hand out job numbers from one counter, so
//! a slow core takes fewer jobs instead of stalling the rest.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use crate::limits::MAX_THREADS;

/// Spins before a waiting worker parks: about 50 microseconds, longer than any gap inside one token.
const SPINS: usize = 20_000;

/// A region's work: `(worker, job)`.
type Work = dyn Fn(usize, usize) + Sync + 'static;

/// The region now running.
#[derive(Clone, Copy)]
struct Region {
    work: *const Work,
    jobs: usize,
}

// SAFETY: the pointee is `Sync`, and `Pool::run` keeps it alive until no worker can call it any more.
unsafe impl Send for Region {}

struct Shared {
    region: Mutex<Option<Region>>,
    wake: Condvar,
    /// Counts regions; a change tells workers that there is one.
    generation: AtomicUsize,
    next_job: AtomicUsize,
    /// Workers that have not left the current region.
    busy: AtomicUsize,
    panicked: AtomicBool,
    stop: AtomicBool,
}

/// The workers. Dropping the pool ends them.
pub struct Pool {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
    /// One region at a time.
    turn: Mutex<()>,
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
        let shared = Arc::new(Shared {
            region: Mutex::new(None),
            wake: Condvar::new(),
            generation: AtomicUsize::new(0),
            next_job: AtomicUsize::new(0),
            busy: AtomicUsize::new(0),
            panicked: AtomicBool::new(false),
            stop: AtomicBool::new(false),
        });
        let workers = (1..threads.clamp(1, MAX_THREADS))
            .map_while(|i| {
                let shared = Arc::clone(&shared);
                // A system out of threads gets a smaller pool, not an error: the caller's thread always computes.
                std::thread::Builder::new().name(format!("compute-{i}")).spawn(move || worker(&shared, i)).ok()
            })
            .collect();
        Self { shared, workers, turn: Mutex::new(()) }
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
    /// When `work` panicked on any thread.
    pub fn run(&self, jobs: usize, work: impl Fn(usize, usize) + Sync) {
        let _turn = lock(&self.turn);
        if jobs <= 1 || self.workers.is_empty() {
            (0..jobs).for_each(|job| work(0, job));
            return;
        }
        let s = &*self.shared;
        let erased: *const (dyn Fn(usize, usize) + Sync + '_) = &work;
        // SAFETY: only the lifetime is erased. `work` outlives this call, and this call does not return (or unwind:
        // `jobs_of` catches) before every worker has left the region.
        let erased: *const Work = unsafe { std::mem::transmute(erased) };
        s.next_job.store(0, Ordering::Relaxed);
        s.busy.store(self.workers.len(), Ordering::Relaxed);
        {
            let mut region = lock(&s.region);
            *region = Some(Region { work: erased, jobs });
            s.generation.fetch_add(1, Ordering::Release);
        }
        s.wake.notify_all();
        jobs_of(s, 0, &work, jobs);
        while s.busy.load(Ordering::Acquire) != 0 {
            std::hint::spin_loop();
        }
        assert!(!s.panicked.swap(false, Ordering::Relaxed), "a compute worker panicked");
    }
}

/// Takes jobs until there are none left; a panic ends the region's hand-out and is reported by `run`.
fn jobs_of(s: &Shared, me: usize, work: &(dyn Fn(usize, usize) + Sync + '_), jobs: usize) {
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        loop {
            let job = s.next_job.fetch_add(1, Ordering::Relaxed);
            if job >= jobs {
                break;
            }
            work(me, job);
        }
    }));
    if result.is_err() {
        s.next_job.store(jobs, Ordering::Relaxed);
        s.panicked.store(true, Ordering::Relaxed);
    }
}

fn worker(s: &Shared, me: usize) {
    let mut seen = 0;
    while let Some(region) = next_region(s, &mut seen) {
        // SAFETY: `run` waits for `busy` to reach zero before `work` goes away, and this worker has not yet counted
        // itself out.
        jobs_of(s, me, unsafe { &*region.work }, region.jobs);
        s.busy.fetch_sub(1, Ordering::Release);
    }
}

/// Waits for a region that this worker has not joined: spins, then parks. None when the pool ends.
fn next_region(s: &Shared, seen: &mut usize) -> Option<Region> {
    for _ in 0..SPINS {
        if s.generation.load(Ordering::Acquire) != *seen || s.stop.load(Ordering::Relaxed) {
            break;
        }
        std::hint::spin_loop();
    }
    let mut region = lock(&s.region);
    loop {
        if s.stop.load(Ordering::Relaxed) {
            return None;
        }
        let generation = s.generation.load(Ordering::Acquire);
        if generation != *seen {
            *seen = generation;
            return *region;
        }
        region = s.wake.wait(region).unwrap_or_else(PoisonError::into_inner);
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        {
            let _region = lock(&self.shared.region);
            self.shared.stop.store(true, Ordering::Relaxed);
        }
        self.shared.wake.notify_all();
        for w in self.workers.drain(..) {
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
