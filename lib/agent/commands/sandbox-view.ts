// The part of this machine that the commands of one phase see in a sandbox: which folders and files, and whether they may
// change them. What is not named here does not exist for them. Bubblewrap and containers mount the same view. It looks
// at the file system only through `real`.

import { isAbsolute, join, relative, sep } from 'node:path'
import { AgentError } from '../core/agent-error.ts'

/** What a phase needs. All paths are absolute. */
export interface SandboxNeeds {
  workspace: string
  /** The folder of all runs, of the top run, and of this run. */
  runs: string
  rootDir: string
  stateDir: string
  /** Further folders of the run that the commands write to. They exist. */
  writes: readonly string[]
  /** Inputs of type `file`. */
  files: readonly string[]
  /**
   * Those among `files` that may lie outside the workspace: the ones that the person who started the run has named, as
   * they were recorded then, without links.
   */
  chosen: ReadonlySet<string>
  /** Whether a run belongs to the same tree, whose files may be given to this one. */
  sameTree(runId: string): boolean
  network: boolean
}

/** What is protected from every phase: the daemon's home, and the home folders of the person as whom it runs. */
export interface Protected {
  home: string
  persons: readonly string[]
}

export interface Mount {
  path: string
  /** Where it lies on this machine, without links; for `empty` there is nothing. */
  source: string
  access: 'read' | 'write' | 'empty'
}

export interface SandboxView {
  /** A folder stands before what lies in it. */
  mounts: readonly Mount[]
  network: boolean
}

/** The real path, or null when there is nothing. */
type Real = (path: string) => string | null

/** Folders that a sandbox makes itself or takes from the system. A workspace must not be or contain one of them. */
const TAKEN = [
  '/usr',
  '/bin',
  '/sbin',
  '/lib',
  '/lib64',
  '/etc',
  '/proc',
  '/sys',
  '/dev',
  '/run',
  '/tmp',
  '/var',
  '/boot',
]
/** Folders of the kernel, in which no workspace lies. */
const KERNEL = ['/proc', '/sys', '/dev']
/** What the daemon keeps in its home. A workspace may lie beside it, as that of a system's service does. */
const OWN = new Set(['runs', 'packages', 'agents', 'secrets', 'processes', 'backups'])

/** What the commands of a phase see. Throws an AgentError `sandbox` that says what cannot be had in a sandbox. */
export function sandboxView(needs: SandboxNeeds, { home, persons }: Protected, real: Real): SandboxView {
  const hidden = [home, ...persons].map(path => real(path) ?? path)
  const workspace = workspaceOf(needs, hidden, real)
  const mounts: Mount[] = [workspace]
  const add = (path: string, access: Mount['access']) => {
    const source = real(path)
    if (source !== null) mounts.push({ path, source, access })
  }
  // As a whole: mounting the folder of a phase by itself would follow a link that another phase could put there.
  add(join(needs.stateDir, 'files'), 'write')
  for (const folder of needs.writes) add(folder, 'write')
  for (const path of needs.files) if (isShown(path, needs, hidden, real)) add(path, 'read')
  return { mounts: inOrder([...mounts, ...masks(workspace, hidden[0]!)]), network: needs.network }
}

/** A folder that the view has besides, such as one of programs; null where it would show what is protected. */
export function sharedFolder(path: string, { home, persons }: Protected, real: Real): Mount | null {
  const source = isAbsolute(path) ? real(path) : null
  if (source === null) return null
  const hidden = [home, ...persons].map(each => real(each) ?? each)
  const taken = [...TAKEN, ...hidden].some(each => within(each, source) || within(source, each))
  return taken ? null : { path, source, access: 'read' }
}

function workspaceOf({ workspace, rootDir }: SandboxNeeds, hidden: readonly string[], real: Real): Mount {
  const source = real(workspace)
  if (source === null) throw refused(`the workspace ${workspace} does not exist`)
  const mount: Mount = { path: workspace, source, access: 'write' }
  const [home = '', ...persons] = hidden
  // The run's own folder for its work is in the home, as `real` knows it.
  if (source === real(join(rootDir, 'work'))) return mount
  // Registered workspaces are real paths. A command of another run may have put a link in the place of one.
  if (source !== workspace) throw refused(`the workspace ${workspace} is now reached through a link, to ${source}`)
  if (KERNEL.some(folder => within(source, folder))) throw refused(`the workspace ${workspace} belongs to the kernel`)
  if (TAKEN.some(folder => within(folder, source))) {
    throw refused(`the workspace ${workspace} contains folders of the system`)
  }
  if (persons.some(person => person !== home && within(person, source))) {
    throw refused(`the workspace ${workspace} contains a person's home, with keys such as those in ~/.ssh`)
  }
  // A command that is called there works in an empty folder.
  if (source === home) return { ...mount, access: 'empty' }
  if (within(source, home)) {
    const [first = ''] = relative(home, source).split(sep)
    if (OWN.has(first)) throw refused(`the workspace ${workspace} belongs to the daemon itself`)
  }
  for (const person of persons) {
    if (/^\.(ssh|gnupg|aws|kube|docker)(\/|$)/.test(relative(person, source))) {
      throw refused(`the workspace ${workspace} lies in a folder of keys`)
    }
  }
  return mount
}

/**
 * Hides the home of the daemon where it lies in the workspace. The folders between the two are mounted too, because
 * what is mounted cannot be renamed: otherwise a command could move the home away from under its cover.
 */
function masks({ path, source }: Mount, home: string): Mount[] {
  if (home === source || !within(home, source)) return []
  const names = relative(source, home).split(sep)
  return names.map((_, at) => {
    const below = names.slice(0, at + 1)
    const access = at === names.length - 1 ? 'empty' : 'write'
    return { path: join(path, ...below), source: join(source, ...below), access }
  })
}

/** Whether a file is mounted by itself. Throws for one that is given but may not be seen. */
function isShown(path: string, needs: SandboxNeeds, hidden: readonly string[], real: Real): boolean {
  const source = real(path)
  // The command itself finds that a file is missing.
  if (source === null) return false
  const [home = '', ...persons] = hidden
  const workspace = real(needs.workspace) ?? needs.workspace
  const masked = within(home, workspace) && within(source, home)
  const runs = real(needs.runs) ?? needs.runs
  if (within(source, join(real(needs.stateDir) ?? needs.stateDir, 'files'))) return false
  if (within(source, workspace) && !masked) return false
  const [runId = '', files] = within(source, runs) ? relative(runs, source).split(sep) : []
  if (files === 'files' && needs.sameTree(runId)) return true
  const secret = within(source, home) || persons.some(person => within(source, person) && isDotted(person, source))
  if (!secret && needs.chosen.has(path)) {
    // The person chose what lay there when the run began. A command may since have put a link in its place, or in that
    // of a folder above it, to lead the daemon to any file of this machine.
    if (source === path) return true
    throw refused(`the input ${path} now leads to ${source}`)
  }
  throw refused(`the input ${path} lies outside the run's files and its workspace`)
}

/** Whether a path lies in something hidden in a folder, as keys and settings are in a person's home. */
const isDotted = (folder: string, path: string): boolean => relative(folder, path).startsWith('.')

const refused = (what: string): AgentError =>
  new AgentError(`${what}, which the sandbox does not show to commands`, {
    code: 'sandbox',
    hint: 'choose a folder that has only what the commands may see and change, or let the owner of this machine decide by exec.sandbox and packages.sandbox',
    sent: 'no',
  })

/** Sorted so that a folder stands before what lies in it. Of two mounts of one path the later counts. */
function inOrder(mounts: readonly Mount[]): Mount[] {
  const byPath = new Map(mounts.map(mount => [mount.path, mount]))
  return [...byPath.values()].sort((a, b) => depth(a.path) - depth(b.path))
}

const depth = (path: string): number => path.split(sep).length

/** Whether `path` is `folder` or lies in it. */
function within(path: string, folder: string): boolean {
  const base = folder.endsWith(sep) ? folder : folder + sep
  return path === folder || path.startsWith(base)
}
