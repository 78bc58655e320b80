// Checks a team as `validate` does, with the texts that are not saved, and says where in which file each mistake stands.

import { dirname, join } from 'node:path'
import { messageOf } from '../../../error.ts'
import {
  type Bundle,
  loadBundle,
  placeOfSecret,
  problemsOf,
  type Range,
  rangesIn,
  teamsOf,
} from '../../../team/team.ts'
import { type FileNote, named, noteText } from '../../../text/unseen.ts'
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

/** `<file>:<line>:<column>` */
const PLACE = /^(.+):(\d+):(\d+)$/

/** Checks the team of a file. Nothing in a file makes it throw. */
export async function check(path: string, files: WorkspaceFiles, known: Known): Promise<Checked> {
  const texts = new Map<string, string>()
  const asked = new Set<string>([path])
  await known.renew()
  const found = await loadBundle(path, {
    agents: known.agents,
    resolve: ref => known.resolve(ref),
    anyFile: true,
    async readFile(file, fromDisk) {
      asked.add(file)
      const bytes = await files.read(file, fromDisk)
      if (bytes) texts.set(file, new TextDecoder().decode(bytes))
      return bytes
    },
  }).then(bundle => [...notesIn(bundle, known), ...missingSecrets(bundle, known)], mistakesIn)
  const all: Checked['files'] = new Map([...texts].map(([file, text]) => [file, { text, findings: [] }]))
  if (!all.has(path)) all.set(path, { text: files.unsaved(path) ?? '', findings: [] })
  const ranges = new Map([...all].map(([file, { text }]) => [file, rangesIn(text)]))
  for (const { severity, place, message } of found) {
    const [, written, line = 1, column = 1] = PLACE.exec(place ?? '') ?? []
    const given = written === undefined ? path : join(dirname(path), written)
    // Of a file that the editor does not have, such as one of a package, the place stays in the message.
    const isHere = all.has(given)
    const file = isHere ? given : path
    const range = isHere ? ranges.get(file)!(Number(line), Number(column)) : ranges.get(file)!(1, 1)
    const words = isHere ? message : noteText({ place, message })
    all.get(file)!.findings.push({ severity, message: named(words), ...range })
  }
  return { files: all, asked }
}

interface Said extends FileNote {
  severity: Finding['severity']
}

function mistakesIn(error: unknown): Said[] {
  const problems = problemsOf(error)
  if (problems.length === 0) return [{ severity: 'error', place: null, message: messageOf(error) }]
  return problems.map(({ file, line, column, message, isUnread }) => {
    return { severity: isUnread ? 'information' : 'error', place: `${file}:${line}:${column}`, message }
  })
}

const notesIn = (bundle: Bundle, { agents }: Known): Said[] =>
  notesOf({ catalogue: agents }, bundle).map(note => ({ severity: 'information', ...note }))

/** Secrets that no part of settings.yml has. Of those that it has, no value is looked at. */
function missingSecrets(bundle: Bundle, { settings }: Known): Said[] {
  return teamsOf(bundle).flatMap(([key, { secrets }]) => {
    if (bundle.folder(key) === null) return []
    const { file, text } = bundle.json().teams[key]!
    const missing = secrets.filter(name => !settings.secrets.includes(name))
    return missing.map(name => {
      const place = placeOfSecret(file, text, name)
      return { severity: 'warning', place, message: `the secret ${name} is not set in settings.yml` }
    })
  })
}
