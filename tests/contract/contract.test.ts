// Every request that the agents make is one that the vendor's own OpenAPI document declares, and Prism accepts.

import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { join } from 'node:path'
import { testContext } from '../support/context.ts'
import { folder } from '../support/folder.ts'
import { outcomeOf } from '../support/outcome.ts'
import type { Case, Contract } from './contract.ts'
import { areThere, DOCUMENTS, type DocumentName, lighterCopy } from './document.ts'
import { type Recorder, record } from './recorder.ts'
import { crm } from './vendors/crm.ts'
import { filestore } from './vendors/filestore.ts'
import { bitbucket, github } from './vendors/git.ts'
import { helpdesk } from './vendors/helpdesk.ts'
import { issues } from './vendors/issues.ts'
import { metrics } from './vendors/metrics.ts'
import { wiki } from './vendors/wiki.ts'

const CONTRACTS: readonly Contract[] = [issues, wiki, metrics, crm, helpdesk, github, bitbucket, filestore]
const isSkipped = !areThere()

// Prism takes seconds to load.
setDefaultTimeout(60_000)

describe.skipIf(isSkipped)(`the contract${isSkipped ? ' (skipped: no documents beside the repository)' : ''}`, () => {
  const recorders = new Map<DocumentName, Recorder>()
  const exercised = new Set<string>()
  let prism: Bun.Subprocess<'ignore', 'pipe', 'inherit'>
  const home = process.env.HOME

  beforeAll(async () => {
    // Nothing of the developer's own configuration of git.
    const room = folder()
    process.env.HOME = room
    const copies = await Promise.all(DOCUMENTS.map(name => lighterCopy(name, room)))
    prism = Bun.spawn([process.execPath, join(import.meta.dir, 'prism.ts'), ...copies], {
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'inherit',
    })
    const addresses = await addressesOf(prism.stdout)
    for (const contract of CONTRACTS) {
      const { document } = contract
      recorders.set(document, await record(contract, addresses[DOCUMENTS.indexOf(document)]!))
    }
  })
  afterAll(async () => {
    process.env.HOME = home
    for (const recorder of recorders.values()) recorder[Symbol.dispose]()
    prism.kill()
    await prism.exited
  })

  async function keeps({ document, name, agent, settings }: Contract, each: Case) {
    const { action, phase, files = {}, workspace, changes, calls, state = 'completed' } = each
    exercised.add(`${name}.${action}`)
    const recorder = recorders.get(document)!
    recorder.begin(changes)
    const outcome = await outcomeOf({
      agent,
      name,
      settings: { ...settings(recorder.url), ...each.settings },
      phase: { ...(agent.actions && { action }), ...phase },
      files,
      ...(workspace && { workspace: workspace() }),
    })
    expect(recorder.faults).toEqual([])
    const called = recorder.calls.map(({ operation }) => operation)
    // The error of a case that is to complete stands beside the calls, where it explains their absence.
    const error = state === 'completed' ? outcome.error : null
    expect({ called: called.slice(0, calls.length), state: outcome.state, error }).toEqual({
      ...{ called: [...calls], state, error: null },
    })
    // What is not certain is looked for again after the end, in the same way.
    const looks = state === 'failed' ? calls.slice(1) : []
    expect(called.slice(calls.length).filter(operation => !looks.includes(operation))).toEqual([])
  }

  async function examines({ document, agent, settings, doctor }: Contract) {
    const recorder = recorders.get(document)!
    recorder.begin(doctor.changes)
    const { context } = testContext({ settings: settings(recorder.url) })
    const { missing } = await agent.doctor!(context)
    const called = recorder.calls.map(({ operation }) => operation)
    expect({ faults: recorder.faults, called, missing }).toEqual({ faults: [], called: [...doctor.calls], missing: [] })
  }

  for (const contract of CONTRACTS) {
    describe(contract.document, () => {
      test('doctor', () => examines(contract))
      for (const each of contract.cases) test(`${each.action}: ${each.title}`, () => keeps(contract, each))
    })
  }

  test('has a case for every action', () => {
    const declared = CONTRACTS.flatMap(({ name, agent: { actions = {}, source, target } }) => {
      const names = [...Object.keys(actions), ...(source ? ['source'] : []), ...(target ? ['target'] : [])]
      return names.map(action => `${name}.${action}`)
    })
    expect([...exercised].sort()).toEqual([...new Set(declared)].sort())
  })
})

/** Reads until all have said where they are, and then on, so that Prism never waits to be read. */
function addressesOf(stdout: ReadableStream<Uint8Array>): Promise<string[]> {
  const { promise, resolve, reject } = Promise.withResolvers<string[]>()
  const read = async () => {
    const decoder = new TextDecoder()
    let said = ''
    for await (const chunk of stdout) {
      said += decoder.decode(chunk, { stream: true })
      const found = [...said.matchAll(/listening on (http:\S+)\s/g)].map(([, address]) => address!)
      if (found.length === DOCUMENTS.length) resolve(found)
    }
    throw new Error(`Prism ended: ${said}`)
  }
  read().catch(reject)
  return promise
}
