// The table of states: what ended stays, everything can end, and the words of the contract are all there are.

import { expect, test } from 'bun:test'
import fc from 'fast-check'
import {
  blocks,
  type PhaseState,
  phaseEnded,
  phaseMay,
  RUN_STATES,
  type RunState,
  runEnded,
  runMay,
} from '../../../lib/run/core/states.ts'
import { PHASE_STATES } from '../../../lib/wire/states.ts'

const run = fc.constantFrom<RunState>(...RUN_STATES)
const phase = fc.constantFrom<PhaseState>(...PHASE_STATES)
const RUN_ENDS: readonly string[] = ['completed', 'failed', 'cancelled']
const PHASE_ENDS: readonly string[] = [...RUN_ENDS, 'skipped']

test('the states are those of the contract', () => {
  expect(new Set<string>(RUN_STATES)).toEqual(new Set(['queued', 'running', 'awaiting_input', ...RUN_ENDS]))
  expect(new Set<string>(PHASE_STATES)).toEqual(new Set(['pending', 'running', 'awaiting_input', ...PHASE_ENDS]))
})

test('ended states have no transitions, and all other states have some', () => {
  fc.assert(
    fc.property(run, run, (from, to) => {
      expect(runEnded(from)).toBe(RUN_ENDS.includes(from))
      if (runEnded(from)) expect(runMay(from, to)).toBe(false)
    }),
  )
  fc.assert(
    fc.property(phase, phase, (from, to) => {
      expect(phaseEnded(from)).toBe(PHASE_ENDS.includes(from))
      if (phaseEnded(from)) expect(phaseMay(from, to)).toBe(false)
    }),
  )
})

test('whatever is open can be cancelled and can fail', () => {
  for (const from of RUN_STATES.filter(state => !runEnded(state))) {
    expect([from, runMay(from, 'cancelled'), runMay(from, 'failed')]).toEqual([from, true, true])
  }
  for (const from of PHASE_STATES.filter(state => !phaseEnded(state))) {
    expect([from, phaseMay(from, 'cancelled'), phaseMay(from, 'failed')]).toEqual([from, true, true])
  }
})

test('any walk along the table stops at an end and never before a state without a way out', () => {
  const walk = fc.array(fc.nat(PHASE_STATES.length - 1), { maxLength: 30 })
  fc.assert(
    fc.property(walk, steps => {
      let at: PhaseState = 'pending'
      for (const step of steps) {
        const to = PHASE_STATES[step]!
        if (phaseMay(at, to)) at = to
      }
      expect(PHASE_STATES.some(to => phaseMay(at, to))).toBe(!phaseEnded(at))
    }),
  )
  expect(phaseMay('pending', 'completed')).toBe(false)
  // A `when` that cannot be evaluated asks a person where the phase escalates.
  expect(phaseMay('pending', 'awaiting_input')).toBe(true)
  expect(runMay('queued', 'completed')).toBe(false)
  expect(phaseMay('running', 'skipped')).toBe(false)
})

test('a dependant is blocked only by a failed, cancelled or blocked dependency', () => {
  const reason = fc.constantFrom(null, 'when', 'upstream', 'person', 'retry', 'timeout')
  const onFailure = fc.constantFrom('fail', 'continue', 'escalate')
  fc.assert(
    fc.property(phase.filter(phaseEnded), reason, onFailure, (state, why, then) => {
      const held =
        (state === 'failed' && then !== 'continue') ||
        state === 'cancelled' ||
        (state === 'skipped' && why === 'upstream')
      expect(blocks(state, why, then)).toBe(held)
    }),
  )
})
