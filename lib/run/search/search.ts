// The exports of lib/run/search: searches in runs, and other reads that take long in a large home.

export { statsOfTeam } from './counted-runs.ts'
export { type Found, findByLooking, type SearchFilter } from './find.ts'
export { isLongRead, Reads } from './reads.ts'
export { noteChanges } from './search-index.ts'
