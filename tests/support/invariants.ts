// Asserts that the run database of a home that nobody serves is whole and keeps every rule.

import { expect } from 'bun:test'
import { join } from 'node:path'
import { openDatabase } from '../../db/open.ts'
import { brokenInvariants } from '../../lib/run/invariants.ts'

export function checkInvariants(home: string): void {
  const db = openDatabase(join(home, 'daemon.db'))
  try {
    expect(db.query('PRAGMA integrity_check').all()).toEqual([{ integrity_check: 'ok' }])
    expect(brokenInvariants(db)).toEqual([])
  } finally {
    db.close()
  }
}
