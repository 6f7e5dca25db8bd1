//! Every bound of this crate, each with its reason. Nothing here grows with what a watched folder holds.

use std::time::Duration;

/// Largest text file that is read. The whole file is in memory while it is extracted, together with its decoded text
/// and its passages, so the peak of one file is about three times this.
pub const FILE_BYTES_MAX: u64 = 64 << 20;

/// Largest extracted text. A charset conversion can grow a file by half (legacy CJK to UTF-8) or, for single bytes
/// that become three, up to threefold; what lies beyond is refused rather than cut.
pub const TEXT_BYTES_MAX: usize = 128 << 20;

/// Bytes looked at to tell text from binary data and one charset from another.
pub const SNIFF_BYTES: usize = 64 << 10;

/// Headings kept of one document; a longer outline carries no more context.
pub const HEADINGS_MAX: usize = 100_000;

/// Pages, sheets, messages and the like kept of one document; one mailbox may have that many messages.
pub const PARTS_MAX: usize = 100_000;

/// Version of the extractors. A newer one reads again what an older one got no text from.
pub const EXTRACTORS_VERSION: i64 = 3;

/// Words that describe a document, such as tags.
pub const KEYWORDS_MAX: usize = 200;

/// Bytes of the `passwords` file; what lies behind is not read.
pub const PASSWORDS_FILE_MAX: u64 = 64 << 10;

/// Passwords tried on one file. Each costs up to some milliseconds: formats make guessing slow on purpose.
pub const PASSWORDS_MAX: usize = 100;

/// Bytes of one password. PDF allows 127; office formats 255 characters.
pub const PASSWORD_BYTES_MAX: usize = 1024;

/// Longest time for one file, from handing it to a worker to its whole answer. The contract's figure.
pub const READ_DEADLINE: Duration = Duration::from_secs(10);

/// Memory of a worker, everything included. The contract's figure.
pub const WORKER_MEMORY_MAX: u64 = 512 << 20;

/// Stack of the thread that reads in a worker, part of its memory once it is touched. Some libraries recurse as deep as
/// a document nests; what is deeper than this ends the worker, and the file fails.
pub const WORKER_STACK_BYTES: usize = 64 << 20;

/// Files read by one worker before it is replaced. A worker that a file took over can lie about the files after it; this
/// bounds how many. A start costs some milliseconds.
pub const WORKER_FILES_MAX: u32 = 256;

/// Time that one worker may spend on files before it is replaced, and processor time at which the system ends it. The
/// second is never reached by a worker that is replaced in time.
pub const WORKER_BUSY_MAX: Duration = Duration::from_secs(300);
/// See [`WORKER_BUSY_MAX`].
pub const WORKER_CPU_SECONDS_MAX: u64 = 330;

/// Resident size after a file above which the worker is replaced: what a large file took is given back.
pub const WORKER_KEPT_BYTES_MAX: u64 = 96 << 20;

/// Quiet time after which a worker is ended, to give its memory back.
pub const WORKER_IDLE_MAX: Duration = Duration::from_secs(30);

/// Bytes of a title or of one heading kept as context.
pub const TITLE_BYTES_MAX: usize = 300;

/// Bytes of the heading path (all levels) kept for a passage.
pub const HEADING_PATH_BYTES_MAX: usize = 600;

/// Passages of one document. `FILE_BYTES_MAX` at the usual passage size stays below it.
pub const PASSAGES_PER_DOCUMENT_MAX: usize = 400_000;

/// Tokens aimed at in a passage; small enough that one passage is one topic, large enough to answer from.
pub const PASSAGE_TOKENS_TARGET: usize = 224;

/// Tokens assumed to fit when there is no embedder yet.
pub const PASSAGE_TOKENS_MAX_DEFAULT: usize = 480;

/// Tokens of an embedder's window left for the title and heading that are put before a passage.
pub const CONTEXT_TOKENS_RESERVED: usize = 32;

/// Bytes of text kept in one compressed block. One hit unpacks one or two blocks up to its end, so that must be quick (80
/// microseconds on average), yet a block long enough to compress well and to waste little of its last page.
pub const BLOCK_BYTES: usize = 32 << 10;

/// Blocks packed tightly in one transaction: 30 ms of work for full ones, after each window of vectors and while nothing waits.
pub const TIGHTEN_BATCH: usize = 64;

/// Bytes of one full-text term; longer words are cut on both sides alike.
pub const TERM_BYTES_MAX: usize = 48;

/// Distinct terms of a query that are looked up; a pasted page must not become a thousand posting lists.
pub const QUERY_TERMS_MAX: usize = 256;

/// Bytes of a query that are read.
pub const QUERY_BYTES_MAX: usize = 16 << 10;

/// Postings read for one query before its most common terms are left out.
pub const QUERY_POSTINGS_MAX: usize = 40_000;

/// Phrases of a query that are looked for; each reads the text of passages.
pub const PHRASES_MAX: usize = 8;

/// Bytes of one phrase; what is longer is a pasted text, not a phrase.
pub const PHRASE_BYTES_MAX: usize = 300;

/// Passages that are read to look for one phrase, those with the best scores. Reading one takes some 50 µs.
pub const PHRASE_PASSAGES_MAX: usize = 500;

/// Words of one query that no passage has and that are corrected.
pub const WORDS_CORRECTED_MAX: usize = 4;

/// Terms of the index that are compared with one misspelled word. All terms with one first letter in an index of some hundred
/// thousand passages; beyond them the search goes on without.
pub const SPELLING_WORDS_MAX: usize = 50_000;

/// Terms that the beginning of a word (`boil*`) may stand for is left to the postings' bound; so short a beginning is none.
pub const PREFIX_LETTERS_MIN: usize = 2;

/// Hits a search may ask for.
pub const HITS_MAX: usize = 1000;

/// Documents that a hit names because they say the same; a thousand copies of a form need no thousand lines.
pub const REPEATS_NAMED_MAX: usize = 20;

/// Depth of each ranking that enters the fusion.
pub const FUSION_DEPTH: usize = 100;

/// Dimensions of a vector; guards the resident table's size.
pub const DIMENSIONS_MAX: usize = 4096;

/// Passages handed to the embedder in one call. Passages of like length go together, so that nothing is padded.
pub const EMBED_BATCH: usize = 16;

/// Passages taken from the queue at once, sorted by length and cut into batches.
pub const EMBED_WINDOW: usize = 64;

/// Folders nested in a root that are descended into. One descriptor is held for each level during a scan, which must
/// stay well below the usual limit of 1,024 open files.
pub const FOLDER_DEPTH_MAX: usize = 400;

/// Entries of one folder that are read.
pub const FOLDER_ENTRIES_MAX: usize = 1_000_000;

/// Bytes of an ignore file that are read.
pub const IGNORE_FILE_BYTES_MAX: u64 = 256 << 10;

/// Changed paths remembered between two runs of the pipeline; more than that and a scan is cheaper than the list.
pub const CHANGED_PATHS_MAX: usize = 4096;

/// Quiet time after the last event before changed paths are looked at: an editor's save is several events.
pub const QUIET: Duration = Duration::from_millis(100);

/// Longest wait for that quiet time; a file that is written all the time must not hold up the others.
pub const QUIET_MAX: Duration = Duration::from_millis(500);

/// Time between two reconciling scans when no event asked for one. Events can be lost (network mounts, watch limits).
pub const RESCAN_EVERY: Duration = Duration::from_secs(300);

/// New files written to the store as `pending` in one transaction.
pub const PENDING_BATCH: usize = 1000;

/// Pages given back to the file system in one quiet moment (40 MB).
pub const VACUUM_PAGES: u32 = 10_000;

/// Pages of the full text written in one step of its merging (2 MB): a commit in between waits some tens of milliseconds.
pub const MERGE_PAGES: i64 = 500;

/// Idle read connections kept; more readers than this open their own for the time of a call.
pub const READERS_IDLE_MAX: usize = 4;

/// Vectors from which there are lists (`lists`). Below, an exact scan is as fast: 2.2 ms for so many of 384 dimensions, 5 ms
/// with half the memory bandwidth.
pub const LISTS_PASSAGES_MIN: usize = 200_000;

/// Vectors in a list, on average. Shorter lists are more to choose among, longer ones hold more that is far from the query.
pub const LIST_PASSAGES: usize = 64;

/// Vectors at which a list is cut in two.
pub const LIST_FULL: usize = 256;

/// A search of lists compares with one vector in this many.
pub const COMPARED_SHARE: usize = 20;

/// And with this many at least, which takes a millisecond: in smaller indexes the same share holds less of what is near.
pub const COMPARED_MIN: usize = 20_000;

/// Lists from which a graph finds the one for a new passage: from there on it is faster than comparing with each mean.
pub const GRAPH_LISTS_MIN: usize = 8192;

/// New passages that are given a list in one turn, for which commits wait (two milliseconds).
pub const LOOSE_BATCH: usize = 16;

/// New passages that may wait for a list until the next quiet moment; each search compares with all of them.
pub const LOOSE_MANY: usize = 2000;

/// Files listed in one page of `files`.
pub const FILES_PAGE_MAX: usize = 10_000;

const _: () = assert!(WORKER_BUSY_MAX.as_secs() + READ_DEADLINE.as_secs() < WORKER_CPU_SECONDS_MAX);
const _: () = assert!(FUSION_DEPTH <= HITS_MAX);
const _: () = assert!(EMBED_BATCH <= EMBED_WINDOW);
const _: () = assert!(PASSAGE_TOKENS_TARGET <= PASSAGE_TOKENS_MAX_DEFAULT);
