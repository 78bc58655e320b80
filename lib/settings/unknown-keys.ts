// What in settings.yml nothing reads. Pure.

import type { Detail } from '../error.ts'
import { isObject, type Json, type JsonObject } from '../json.ts'
import { didYouMean } from '../text/spelling.ts'
import { environmentProblems } from './environments.ts'
import { type Agents, globalProblem, keyProblem, noAgent, SECTIONS, secretKeyProblem } from './key.ts'
import { labelsProblem } from './labels.ts'
import { entryProblem } from './named.ts'
import { leavesOf } from './tree.ts'

/** Every part of the file that nothing reads, each with the nearest known name. */
export function unknownKeys(settings: JsonObject, agents: Agents): Detail[] {
  const found: Detail[] = []
  const add = (path: readonly string[], problem: string | null) => {
    const key = path.join('.')
    if (problem !== null) found.push({ path: key, message: `${key} in settings.yml: ${problem}` })
  }
  const inAgents = (section: JsonObject, above: readonly string[]) => {
    for (const [reference, own] of Object.entries(section)) {
      const path = ['agents', reference]
      if (!agents.get(reference)) add([...above, ...path], noAgent(reference, agents))
      else if (!isObject(own)) add([...above, ...path], own === null ? null : 'must be a mapping of settings')
      else
        for (const leaf of leavesOf(own as JsonObject, path))
          add([...above, ...leaf.path], keyProblem(leaf.path, agents))
    }
  }
  const inSecrets = (section: JsonObject, above: readonly string[]) => {
    for (const [name, entry] of Object.entries(section)) {
      add([...above, 'secrets', name], secretKeyProblem(['secrets', name]) ?? entryProblem(entry))
    }
  }
  const inEnvironments = (section: JsonObject) => {
    for (const [name, entry] of Object.entries(section)) {
      const above = ['environments', name]
      const problems = environmentProblems(name, entry)
      for (const { path, message } of problems) add([...above, ...path], message)
      const { agents, secrets } = (isObject(entry) ? entry : {}) as JsonObject
      if (isObject(agents)) inAgents(agents as JsonObject, above)
      if (isObject(secrets)) inSecrets(secrets as JsonObject, above)
    }
  }
  const inOthers = (section: string, value: Json) => {
    const leaves = leavesOf({ [section]: value }).filter(leaf => leaf.path.length > 1 || leaf.value !== null)
    for (const { path, value } of leaves) add(path, keyProblem(path) ?? globalProblem(path.join('.'), value))
    if (section === 'labels' && value !== null) add([section], labelsProblem(value))
  }
  const mappings: Readonly<Record<string, (section: JsonObject, above: readonly string[]) => void>> = {
    agents: inAgents,
    secrets: inSecrets,
    environments: inEnvironments,
  }
  for (const [section, value] of Object.entries(settings)) {
    const inMapping = Object.hasOwn(mappings, section) ? mappings[section] : undefined
    if (!SECTIONS.includes(section)) {
      add([section], `there is no such section; known are ${SECTIONS.join(', ')}${didYouMean(section, SECTIONS)}`)
    } else if (!inMapping) inOthers(section, value)
    else if (isObject(value ?? {})) inMapping((value ?? {}) as JsonObject, [])
    else add([section], 'must be a mapping')
  }
  return found
}
