// What must be true of an agent as a whole: its settings are checked and named, and its doctor says whose the
// credential is.

import { expect } from 'bun:test'
import { AgentError } from '../agent/core/agent-error.ts'
import { check, withOtherSecrets } from './check.ts'
import { isFake, refusal, type Vendor } from './fake-vendor.ts'
import { shownIn } from './secrecy.ts'
import type { Subject } from './subject.ts'

export function soundness<V extends Vendor>(subject: Subject<V>, open: () => V | Promise<V>): void {
  const { agent, name } = subject

  check('takes the settings of the test', async () => {
    await using vendor = await open()
    expect(await subject.settingProblems(subject.settingsAt(vendor))).toEqual([])
  })

  for (const key of (agent.settings as { required?: string[] }).required ?? []) {
    check(`names the setting ${key} when it is missing`, async () => {
      await using vendor = await open()
      const { [key]: _, ...rest } = subject.settingsAt(vendor)
      const problems = await subject.settingProblems(rest)
      expect(problems.map(({ path }) => path)).toContain(`agents.${name}.${key}`)
    })
  }

  if (!agent.doctor) return
  check('doctor says that all is well', async () => {
    await using vendor = await open()
    const found = await subject.doctor(vendor)
    expect(found).toEqual({ who: found.who, missing: [], text: expect.stringMatching(/\S/) })
    expect(found.who === null || found.who.trim() !== '').toBe(true)
    expect(shownIn(JSON.stringify(found), await subject.secretsOf(subject.settingsAt(vendor)))).toEqual([])
  })

  check('doctor names the setting to set anew, if it asks the vendor at all', async () => {
    await using vendor = await open()
    const settings = subject.settingsAt(vendor)
    const secrets = await subject.secretsOf(settings)
    if (isFake(vendor)) vendor.fail(/./, () => refusal(401, 'said by the vendor'), { times: 99 })
    const error: unknown = await subject.doctor(vendor, withOtherSecrets(settings, secrets) ?? settings).then(
      () => null,
      thrown => thrown,
    )
    const asked = isFake(vendor) ? vendor.seen.length > 0 : secrets.length > 0
    if (!asked) return expect(error).toBeNull()
    expect(error).toBeInstanceOf(AgentError)
    const { code, hint } = error as AgentError
    expect({ code, hint }).toEqual({ code: 'unauthorized', hint: expect.stringContaining(`agents.${name}.`) })
  })
}
