// Checks a team as `validate` does, with the texts that are not saved, and says where in which file each mistake stands.

import { dirname, join } from 'node:path'
import { CadreError, messageOf } from '../../../error.ts'
import { type Bundle, loadBundle, placeOfSecret, type Range, rangesIn, teamsOf } from '../../../team/team.ts'
import { named } from '../../../text/unseen.ts'
import { notesOf } from '../../runs/plan.ts'
import type { WorkspaceFiles } from './files.ts'
import type { Known } from './known.ts'

export interface Finding extends Range {
  severity: 'error' | 'warning' | 'information'
  message: string
}

export interface Checked {
  /** By absolute path: the files with their texts, and what is wrong in them. */
  files: Map<string, { text: string; findings: Finding[] }>
  /** Every file that was looked for. When one changes, the team must be checked again. */
  asked: ReadonlySet<string>
}

/** `<file>:<line>:<column>: `, with which the details of an error and the notes begin. */
const PLACE = /^(.+?):(\d+):(\d+): ([\s\S]*)$/

/** Checks the team of a file. Nothing in a file makes it throw. */
export async function check(path: string, files: WorkspaceFiles, known: Known): Promise<Checked> {
  const texts = new Map<string, string>()
  const asked = new Set<string>([path])
  /** What was not looked at: no mistake of anybody. */
  const unread: string[] = []
  const noted = (error: unknown): never => {
    unread.push(messageOf(error))
    throw error
  }
  await known.renew()
  const found = await loadBundle(path, {
    agents: known.agents,
    resolve: ref => known.resolve(ref).catch(noted),
    anyFile: true,
    async readFile(file, fromDisk) {
      asked.add(file)
      const bytes = await files.read(file, fromDisk).catch(noted)
      if (bytes) texts.set(file, new TextDecoder().decode(bytes))
      return bytes
    },
  }).then(
    bundle => [...notesIn(bundle, known), ...missingSecrets(bundle, known)],
    (error: unknown) => mistakesIn(error, unread),
  )
  const all: Checked['files'] = new Map([...texts].map(([file, text]) => [file, { text, findings: [] }]))
  if (!all.has(path)) all.set(path, { text: files.unsaved(path) ?? '', findings: [] })
  const ranges = new Map([...all].map(([file, { text }]) => [file, rangesIn(text)]))
  for (const { severity, message } of found) {
    const [, written, line = 1, column = 1, words] = PLACE.exec(message) ?? []
    const given = written === undefined ? path : join(dirname(path), written)
    // Of a file that the editor does not have, such as one of a package, the place stays in the message.
    const isHere = all.has(given)
    const file = isHere ? given : path
    const range = isHere ? ranges.get(file)!(Number(line), Number(column)) : ranges.get(file)!(1, 1)
    all.get(file)!.findings.push({ severity, message: named(isHere && words ? words : message), ...range })
  }
  return { files: all, asked }
}

/** The place stands before the message. */
interface Said {
  severity: Finding['severity']
  message: string
}

function mistakesIn(error: unknown, unread: readonly string[]): Said[] {
  const details = error instanceof CadreError ? (error.details ?? []) : []
  if (details.length === 0) return [{ severity: 'error', message: messageOf(error) }]
  return details.map(({ message }) => {
    const isUnread = unread.some(each => message.endsWith(each))
    return { severity: isUnread ? 'information' : 'error', message }
  })
}

const notesIn = (bundle: Bundle, { agents }: Known): Said[] =>
  notesOf({ catalogue: agents }, bundle).map(message => ({ severity: 'information', message }))

/** Secrets that no part of settings.yml has. Of those that it has, no value is looked at. */
function missingSecrets(bundle: Bundle, { settings }: Known): Said[] {
  return teamsOf(bundle).flatMap(([key, { secrets }]) => {
    if (bundle.folder(key) === null) return []
    const { file, text } = bundle.json().teams[key]!
    const missing = secrets.filter(name => !settings.secrets.includes(name))
    return missing.map(name => {
      const place = placeOfSecret(file, text, name)
      return { severity: 'warning', message: `${place}: the secret ${name} is not set in settings.yml` }
    })
  })
}
