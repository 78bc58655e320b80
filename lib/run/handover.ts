// Files that a sub-run gives to the run above it: hard links under `files/<phase>/[<key>/]<name>`, durable before the
// phase is recorded as completed. Doing it again changes nothing, so it may happen inside a change that is repeated.

import { createHash } from 'node:crypto'
import {
  closeSync,
  copyFileSync,
  existsSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import type { FileRecord } from '../agent/define.ts'
import { CadreError, messageOf } from '../error.ts'
import { failpoint } from '../failpoint.ts'
import type { JsonObject } from '../json.ts'
import type { MapPhase, TeamPhase } from '../team/team.ts'
import { type ChildRow, childrenOf, itemCount } from './children.ts'
import type { LiveRun } from './live.ts'
import type { Machine } from './machine.ts'

type Child = Pick<ChildRow, 'id' | 'item' | 'run_name' | 'team_key' | 'workspace'>

/** Keys that can be a folder's name; another item is stored under its index. */
const FOLDER_NAME = /^[A-Za-z0-9._-]{1,100}$/

function folderOf(phase: TeamPhase | MapPhase, child: Child): string {
  if (phase.type === 'team') return `files/${phase.name}`
  const key = child.run_name ?? ''
  const plain = FOLDER_NAME.test(key) && key !== '.' && key !== '..'
  return `files/${phase.name}/${plain ? key : child.item}`
}

function fileOutputs(live: LiveRun, child: Child, outputs: JsonObject): [name: string, path: string][] {
  return live.bundle
    .team(child.team_key)
    .outputs.filter(output => output.type === 'file' && typeof outputs[output.name] === 'string')
    .map(output => [output.name, outputs[output.name] as string])
}

/**
 * Where an output file of a sub-run lies on disk: among its own files, in its workspace, or among the files of its tree.
 * Anywhere else only in runs that were started on this machine from a path.
 */
function sourceOf(machine: Machine, live: LiveRun, child: Child, path: string): string {
  const stateDir = machine.host.stateDir(child.id)
  const own = path.startsWith('files/')
  const workspace = child.workspace ?? join(machine.host.stateDir(live.row.root_id), 'work')
  const full = own ? resolve(stateDir, path) : resolve(workspace, path)
  const within = (folder: string) => full.startsWith(`${folder}/`)
  if (within(own ? join(stateDir, 'files') : workspace) || (live.row.from_path === 1 && !own)) return full
  const runs = dirname(stateDir)
  const runId = within(runs) ? full.slice(runs.length + 1).split('/', 1)[0]! : null
  if (runId && within(join(runs, runId, 'files')) && machine.store.run(runId)?.root_id === live.row.root_id) return full
  throw new CadreError('invalid_request', `${path} lies outside the run's files and its workspace`)
}

/** Links the files among `outputs` into the parent's state folder. */
export function handOver(
  machine: Machine,
  live: LiveRun,
  phase: TeamPhase | MapPhase,
  child: Child,
  outputs: JsonObject,
): void {
  const files = fileOutputs(live, child, outputs)
  if (files.length === 0) return
  const folder = join(machine.host.stateDir(live.id), folderOf(phase, child))
  const first = mkdirSync(folder, { recursive: true, mode: 0o700 })
  for (const [name, path] of files) {
    const source = sourceOf(machine, live, child, path)
    const target = join(folder, basename(path))
    const temporary = join(folder, `.${basename(path)}.tmp`)
    try {
      rmSync(temporary, { force: true })
      if (path.startsWith('files/')) linkSync(source, temporary)
      else copyFileSync(source, temporary)
      failpoint()
      renameSync(temporary, target)
      failpoint()
    } catch (thrown) {
      if (!existsSync(source)) {
        throw new CadreError('not_found', `output ${name} of sub-run ${child.id}: there is no file ${path}`)
      }
      throw new CadreError(
        'internal',
        `output ${name} of ${child.id}: ${path} could not be handed over: ${messageOf(thrown)}`,
      )
    }
  }
  syncFolder(folder)
  if (first === undefined) return
  for (let at = folder; at !== dirname(first); at = dirname(at)) syncFolder(dirname(at))
}

/**
 * Removes what earlier attempts of a phase were given by sub-runs that run anew, or that do not count any more. Never
 * inside a change: until that is on disk, an ended phase may still have these files on record.
 */
export function dropStale(machine: Machine, live: LiveRun, phase: TeamPhase | MapPhase): void {
  const counted = phase.type === 'team' ? 1 : itemCount(machine.store, live.id, phase.index)
  const completed = new Set(
    childrenOf(machine.store, live.id, phase.index)
      .filter(child => child.state === 'completed' && child.item! < counted)
      .map(child => folderOf(phase, child)),
  )
  const folder = `files/${phase.name}`
  if (completed.has(folder)) return
  const stateDir = machine.host.stateDir(live.id)
  for (const entry of namesIn(join(stateDir, folder))) {
    if (!completed.has(`${folder}/${entry}`)) rmSync(join(stateDir, folder, entry), { recursive: true, force: true })
  }
}

function namesIn(folder: string): string[] {
  return existsSync(folder) ? readdirSync(folder) : []
}

/** The same outputs as the parent names them, with the records of their files. */
export function handedOver(
  machine: Machine,
  live: LiveRun,
  phase: TeamPhase | MapPhase,
  child: Child,
  outputs: JsonObject,
): { outputs: JsonObject; files: FileRecord[] } {
  const own = fileOutputs(live, child, outputs)
  if (own.length === 0) return { outputs, files: [] }
  const folder = folderOf(phase, child)
  const renamed = { ...outputs }
  const files: FileRecord[] = []
  for (const [name, path] of own) {
    const target = `${folder}/${basename(path)}`
    renamed[name] = target
    const known = machine.store.fileRecord(child.id, path)
    const place = { name: target.slice(`files/${phase.name}/`.length), path: target }
    if (known) files.push({ ...known, ...place })
    else files.push({ ...place, ...digest(join(machine.host.stateDir(live.id), target)) })
  }
  return { outputs: renamed, files }
}

/** The whole list of a map whose `data` had to be cut. */
export function writeItems(machine: Machine, live: LiveRun, phase: MapPhase, items: JsonObject[]): FileRecord {
  const path = `files/${phase.name}/items.json`
  const file = join(machine.host.stateDir(live.id), path)
  mkdirSync(dirname(file), { recursive: true })
  const text = `${JSON.stringify(items, null, 1)}\n`
  writeFileSync(`${file}.tmp`, text, { flush: true })
  renameSync(`${file}.tmp`, file)
  syncFolder(dirname(file))
  return { name: 'items.json', path, bytes: Buffer.byteLength(text), sha256: hash(text) }
}

function digest(file: string): { bytes: number; sha256: string } {
  const bytes = readFileSync(file)
  return { bytes: bytes.length, sha256: hash(bytes) }
}

const hash = (bytes: string | Uint8Array): string => createHash('sha256').update(bytes).digest('hex')

function syncFolder(folder: string): void {
  const handle = openSync(folder, 'r')
  try {
    fsyncSync(handle)
  } finally {
    closeSync(handle)
  }
}
