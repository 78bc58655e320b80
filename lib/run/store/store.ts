// The run database. Each table has one object with all of its statements, in the file named after the table;
// lists of runs for people are in a file of their own.

import type { Database } from 'bun:sqlite'
import { Attempts } from './attempts.ts'
import { Bundles, Facts } from './bundles.ts'
import { ConcurrencyKeys } from './concurrency-keys.ts'
import { Copies } from './copies.ts'
import { Deletions } from './deletions.ts'
import { Deliveries } from './deliveries.ts'
import { Identities } from './identities.ts'
import { Items } from './items.ts'
import { Looks } from './looks.ts'
import { Phases } from './phases.ts'
import { Receipts } from './receipts.ts'
import { Reviews } from './reviews.ts'
import { RunGroups } from './run-groups.ts'
import { RunLists } from './run-lists.ts'
import { Runs } from './runs.ts'
import { Turns } from './turns.ts'

export class Store {
  readonly db: Database
  readonly runGroups: RunGroups
  readonly runs: Runs
  readonly runLists: RunLists
  readonly phases: Phases
  readonly attempts: Attempts
  readonly turns: Turns
  readonly identities: Identities
  readonly items: Items
  readonly receipts: Receipts
  readonly looks: Looks
  readonly reviews: Reviews
  readonly deliveries: Deliveries
  readonly deletions: Deletions
  readonly bundles: Bundles
  readonly facts: Facts
  readonly concurrencyKeys: ConcurrencyKeys
  readonly copies: Copies

  constructor(db: Database) {
    this.db = db
    this.runGroups = new RunGroups(db)
    this.runs = new Runs(db, this.runGroups)
    this.runLists = new RunLists(db, this.runGroups)
    this.phases = new Phases(db)
    this.attempts = new Attempts(db)
    this.turns = new Turns(db)
    this.identities = new Identities(db)
    this.items = new Items(db)
    this.receipts = new Receipts(db)
    this.looks = new Looks(db)
    this.reviews = new Reviews(db)
    this.deliveries = new Deliveries(db)
    this.deletions = new Deletions(db)
    this.bundles = new Bundles(db)
    this.facts = new Facts(db)
    this.concurrencyKeys = new ConcurrencyKeys(db)
    this.copies = new Copies(db)
  }
}

// What other folders use of lib/run/store

export type { AttemptRow } from './attempts.ts'
export type { KeyClaim } from './concurrency-keys.ts'
export { HOME_FACTS } from './copies.ts'
export { type Commit, Journal, type JournalHooks, type Unit } from './journal.ts'
export { Lived } from './lived.ts'
export type { LookRow } from './looks.ts'
export type { Due, PhaseStates, Renewal } from './phase-reads.ts'
export type { PhaseChange } from './phases.ts'
export type { EntryId, Unasked } from './receipts.ts'
export type { ListedReview } from './reviews.ts'
export { runIdsAfter } from './run-batches.ts'
export {
  type Executed,
  LATE,
  type RunFilter,
  type RunHead,
  RunLists,
  restOf,
  type Statement,
} from './run-lists.ts'
export { type ChangedRun, type ChildRow, OPEN_TOPS } from './runs.ts'
export {
  allSmallFiles,
  dropSmallFilesBelow,
  dropSyncedFiles,
  putSmallFiles,
  type SmallFileRow,
  type UnsyncedRow,
  unsyncedFiles,
} from './small-files.ts'
export type { TurnRow } from './turns.ts'
