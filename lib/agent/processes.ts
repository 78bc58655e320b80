// Processes that agents start lead a group of their own, so that all they started ends with them: with the phase or,
// where the daemon itself was killed, before the next start repeats it. For that a group is an empty file while it runs,
// `<folder>/<boot>/<leader>.<start>.<run>`: made in one step, which no kill leaves half done, and not waited for to reach
// the disk, since no process outlives a power cut. Nothing begins before it is remembered.

import { closeSync, mkdirSync, openSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { failpoint } from '../failpoint.ts'
import type { Log } from '../log.ts'
import { bootId, groupMembers, startOf } from '../process.ts'

/** SIGTERM, then SIGKILL after this many milliseconds. */
const GRACE_MS = 2_000
/** What SIGKILL does not end by then waits in the kernel, and cannot be waited for. */
const GIVE_UP_MS = 5_000
/** macOS tells when a process began in whole seconds. */
const START_ROUNDED_MS = 2_000

export interface Group {
  readonly child: Bun.Subprocess<'pipe', 'pipe', 'pipe'>
  /** Asks all of it to end, and makes it end soon after. */
  stop(): void
  /** To be called when its leader has ended: what it left behind would outlive the phase and hold the pipes open. */
  close(): void
}

export interface GroupOptions {
  cwd: string
  env: Record<string, string>
  runId: string
  /** Where it is remembered; null: nowhere. */
  folder: string | null
}

interface Remembered {
  file: string
  /** The id of the group and of its leader. */
  group: number
  started: string
  run: string
}

/** Becomes the command once it is told to; where the daemon died before, the end of its input ends it. */
const GATE = ['sh', '-c', 'read -r CADRE_GO && exec "$@" </dev/null', 'sh']

/** Throws what the system says when it does not start. */
export function startGroup(command: string[], { cwd, env, runId, folder }: GroupOptions): Group {
  if (!Bun.which(command[0]!, { PATH: env.PATH ?? '' })) throw new Error(`${command[0]} is not in PATH`)
  const child = Bun.spawn([...GATE, ...command], {
    cwd,
    env: { ...env, CADRE_RUN_ID: runId },
    detached: true,
    stdin: 'pipe',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  failpoint()
  const file = folder === null ? null : remember(join(folder, bootId()), child.pid, runId)
  failpoint()
  child.stdin.write('\n')
  void Promise.resolve(child.stdin.end()).catch(() => {})
  let kill: Timer | undefined
  return {
    child,
    stop() {
      signalGroup(child.pid, 'SIGTERM')
      kill ??= setTimeout(() => signalGroup(child.pid, 'SIGKILL'), GRACE_MS)
    },
    close() {
      clearTimeout(kill)
      signalGroup(child.pid, 'SIGKILL')
      if (file) rmSync(file, { force: true })
    },
  }
}

function remember(folder: string, pid: number, run: string): string {
  // `ps` would take longer than most commands: on macOS the clock is near enough.
  const started = process.platform === 'linux' ? startOf(pid) : Date.now()
  const file = join(folder, `${pid}.${started}.${run}`)
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    closeSync(openSync(file, 'w', 0o600))
    return file
  } catch (error) {
    // What nobody would end must not run.
    signalGroup(pid, 'SIGKILL')
    throw error
  }
}

/** Signals a whole process group; one that is gone already is no error. */
function signalGroup(pid: number, signal: NodeJS.Signals | 0): boolean {
  // To the system -1 is every process there is, and 0 the daemon's own group.
  if (!(pid > 1)) return false
  try {
    return process.kill(-pid, signal)
  } catch {
    return false
  }
}

/**
 * Ends the groups that an earlier holder of the home left running, and forgets those that are gone. A group is known by
 * when its leader began. An id is not used again while its group lives; where the leader is gone, what is left has to
 * carry the run's id in its environment. Whatever cannot be told to be ours is left alone, and named.
 */
export async function endLeftGroups(folder: string, log: Log): Promise<void> {
  const left = new Set<Remembered>()
  for (const boot of namesIn(folder)) {
    if (boot !== bootId()) rmSync(join(folder, boot), { recursive: true, force: true })
    else {
      for (const name of namesIn(join(folder, boot))) {
        const remembered = parse(join(folder, boot), name)
        if (signalGroup(remembered.group, 0) && isOurs(remembered, log)) left.add(remembered)
        else rmSync(remembered.file, { force: true })
      }
    }
  }
  if (left.size === 0) return
  log.info('ending processes that the last start left', { groups: [...left].map(({ group }) => group) })
  for (const { group } of left) signalGroup(group, 'SIGTERM')
  const began = performance.now()
  for (let killed = false; left.size > 0; await Bun.sleep(20)) {
    for (const remembered of left) {
      if (groupMembers(remembered.group).length > 0) continue
      rmSync(remembered.file, { force: true })
      left.delete(remembered)
    }
    const waited = performance.now() - began
    if (waited > GIVE_UP_MS) break
    if (killed || waited < GRACE_MS) continue
    killed = true
    for (const { group } of left) signalGroup(group, 'SIGKILL')
  }
  for (const { group, run } of left) {
    const pids = groupMembers(group)
    log.error('processes of an interrupted phase cannot be ended: it starts again beside them', { run, pids })
  }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}

function parse(folder: string, name: string): Remembered {
  const [group, started = '', run = ''] = name.split('.')
  return { file: join(folder, name), group: Number(group), started, run }
}

function isOurs({ group, started, run }: Remembered, log: Log): boolean {
  const leader = startOf(group)
  if (leader !== null) return isStart(leader, started)
  const members = groupMembers(group)
  if (members.some(pid => carries(pid, run))) return true
  if (members.length > 0) {
    log.warn('processes that may be of an interrupted phase are left alone: end them if they are', {
      run,
      pids: members,
    })
  }
  return false
}

function isStart(leader: string, started: string): boolean {
  if (process.platform === 'linux') return leader === started
  return Math.abs(Date.parse(`${leader} UTC`) - Number(started)) <= START_ROUNDED_MS
}

/** Linux only: elsewhere the environment of another process is not shown. */
function carries(pid: number, run: string): boolean {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0').includes(`CADRE_RUN_ID=${run}`)
  } catch {
    return false
  }
}
