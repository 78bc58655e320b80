// The run database: one object a table. Whoever looks for a statement finds it in the file of its table.

import type { Database } from 'bun:sqlite'
import { Bundles, Facts } from './bundles.ts'
import { Deliveries } from './deliveries.ts'
import { Items } from './items.ts'
import { OutboxRows } from './outbox.ts'
import { Phases } from './phases.ts'
import { Receipts } from './receipts.ts'
import { Reviews } from './reviews.ts'
import { Runs } from './runs.ts'

export class Store {
  readonly db: Database
  readonly runs: Runs
  readonly phases: Phases
  readonly items: Items
  readonly receipts: Receipts
  readonly reviews: Reviews
  readonly deliveries: Deliveries
  readonly outbox: OutboxRows
  readonly bundles: Bundles
  readonly facts: Facts

  constructor(db: Database) {
    this.db = db
    this.runs = new Runs(db)
    this.phases = new Phases(db)
    this.items = new Items(db)
    this.receipts = new Receipts(db)
    this.reviews = new Reviews(db)
    this.deliveries = new Deliveries(db)
    this.outbox = new OutboxRows(db)
    this.bundles = new Bundles(db)
    this.facts = new Facts(db)
  }
}
