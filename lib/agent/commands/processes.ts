// Processes that agents start lead their own process group, so that everything they start ends with them: at the end of
// the phase or, if the daemon was killed, before the next start repeats the phase. For this purpose each running group
// is recorded as an empty file `<folder>/<boot>.<identity of folder>/<leader>.<start>.<run>`: what stands in a folder that
// was copied is about processes of the home that it was copied from. An empty file is created in one step, which a
// kill cannot leave half done, and needs no sync, because no process survives a power cut. A command begins only after
// its group has been recorded.

import { closeSync, mkdirSync, openSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { failpoint } from '../../failpoint.ts'
import { identityOf, identityText } from '../../files/file-identity.ts'
import { isSafeSegment } from '../../files/file-name.ts'
import type { Log } from '../../log/log.ts'
import { bootId, groupMembers, liveGroups, membersByGroup, startOf } from '../../program/process.ts'
import { openAll } from './opened.ts'
import { paced } from './output.ts'
import type { Sandbox } from './sandbox.ts'

/** Milliseconds between SIGTERM and SIGKILL. */
const GRACE_MS = 2_000
/**
 * Milliseconds to wait after SIGKILL. A process that still exists then is blocked in the kernel, and waiting longer
 * does not help.
 */
const GIVE_UP_MS = 5_000
/** macOS reports the start time of a process in whole seconds. */
const START_ROUNDED_MS = 2_000

export interface Group {
  /** What it prints comes as fast as the budget of all processes allows. */
  readonly child: Bun.Subprocess<'pipe', 'pipe', 'pipe'>
  /** Asks the whole group to end, and kills it shortly after. */
  stop(): void
  /**
   * Ends what remains of the group. It must be called when the leader has ended, because the other processes would
   * outlive the phase and keep the pipes open.
   */
  close(): void
}

export interface GroupOptions {
  cwd: string
  env: Record<string, string>
  /** What the command reads from its stdin. Without it, stdin is closed. */
  input?: string | Uint8Array | undefined
  /** Leaves stdin open after `input`: the caller writes to `child.stdin`, and ends it. */
  keepInput?: boolean | undefined
  runId: string
  /** Where the command runs. It reads no `input` there. */
  sandbox?: Sandbox | null | undefined
  /** The folder in which the group is recorded; null to record nothing. */
  folder: string | null
}

interface Remembered {
  file: string
  /** The id of the group and of its leader. */
  group: number
  started: string
  run: string
}

/**
 * A shell that becomes the command when it reads a line. If the daemon dies before that, the end of its input ends the
 * shell.
 */
const gate = (stdin: string) => ['sh', '-c', `read -r CADRE_GO && exec "$@"${stdin}`, 'sh']

/** Starts a command in its own process group. Throws the system's error when it cannot start. */
export function startGroup(given: string[], options: GroupOptions): Group {
  const { cwd, runId, sandbox, keepInput, folder } = options
  const named: Record<string, string> = { ...options.env, CADRE_RUN_ID: runId }
  const enclosed = sandbox?.enclose(given, cwd, named)
  const { command, env, input } = enclosed ?? { command: given, env: named, input: options.input }
  if (!Bun.which(command[0]!, { PATH: env.PATH ?? '' })) throw new Error(`${command[0]} was not found in PATH`)
  using opened = openAll(enclosed?.opened ?? [])
  const child: Group['child'] = Bun.spawn(
    [...gate(input === undefined && !keepInput ? ' </dev/null' : ''), ...command],
    {
      cwd,
      env: { ...env, CADRE_RUN_ID: runId },
      detached: true,
      stdio: ['pipe', 'pipe', 'pipe', ...opened.descriptors],
    },
  )
  const { stdout, stderr } = child
  Object.defineProperties(child, { stdout: { value: paced(stdout) }, stderr: { value: paced(stderr) } })
  failpoint()
  const file = folder === null ? null : remember(folder, child.pid, runId)
  failpoint()
  child.stdin.write('\n')
  if (input !== undefined) child.stdin.write(input)
  void Promise.resolve(keepInput ? child.stdin.flush() : child.stdin.end()).catch(() => {})
  let kill: Timer | undefined
  return {
    child,
    stop() {
      if (enclosed?.inGroup) terminateMembers(child.pid)
      else signalGroup(child.pid, 'SIGTERM')
      kill ??= setTimeout(() => signalGroup(child.pid, 'SIGKILL'), GRACE_MS)
    },
    close() {
      clearTimeout(kill)
      signalGroup(child.pid, 'SIGKILL')
      if (enclosed?.remove) Bun.spawn(enclosed.remove, { env, stdio: ['ignore', 'ignore', 'ignore'] })
      if (file) rmSync(file, { force: true })
    },
  }
}

const leaders = new Set<number>()

/**
 * Sends SIGTERM to the processes of a group, except the leader, with which the kernel would kill the others at once.
 * Groups that are terminated in one turn share a look at all processes.
 */
function terminateMembers(leader: number): void {
  if (leaders.size === 0) setImmediate(terminateAll)
  leaders.add(leader)
}

function terminateAll(): void {
  const members = membersByGroup()
  for (const leader of leaders) {
    for (const pid of members.get(leader) ?? []) {
      try {
        if (pid !== leader) process.kill(pid, 'SIGTERM')
      } catch {
        // It has ended.
      }
    }
  }
  leaders.clear()
}

function remember(folder: string, pid: number, run: string): string {
  // On macOS the clock is accurate enough, and `ps` would take longer than most commands.
  const started = process.platform === 'linux' ? startOf(pid) : Date.now()
  const name = `${pid}.${started}.${run}`
  try {
    if (!isSafeSegment(name)) throw new Error(`${JSON.stringify(run)} cannot be part of the name of a file`)
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    const ours = join(folder, nameOfOurs(folder))
    mkdirSync(ours, { recursive: true, mode: 0o700 })
    const file = join(ours, name)
    closeSync(openSync(file, 'w', 0o600))
    return file
  } catch (error) {
    // A process that is not recorded would not be ended after a kill, so it must not run.
    signalGroup(pid, 'SIGKILL')
    throw error
  }
}

/** The folder of the groups that were started since this boot, by daemons with this folder and no copy of it. */
const nameOfOurs = (folder: string): string => `${bootId()}.${identityText(identityOf(folder))}`

/** Sends a signal to a process group. Returns false if the group no longer exists. */
function signalGroup(pid: number, signal: NodeJS.Signals | 0): boolean {
  // For kill(2), -1 means every process, and 0 means the daemon's own group.
  if (!(pid > 1)) return false
  try {
    return process.kill(-pid, signal)
  } catch {
    return false
  }
}

/**
 * Ends the groups that an earlier daemon with this home left running, and removes the records of those that are gone. A
 * group is identified by the start time of its leader; the system does not reuse an id while its group exists. If the
 * leader is gone, the remaining processes must have the run's id in their environment. Processes that cannot be
 * identified are left alone and logged.
 */
export async function endLeftGroups(folder: string, log: Log): Promise<void> {
  const left = new Set<Remembered>()
  for (const own of namesIn(folder)) {
    // Older versions named the folder by the boot alone.
    if (own !== nameOfOurs(folder) && own !== bootId()) rmSync(join(folder, own), { recursive: true, force: true })
    else {
      for (const name of namesIn(join(folder, own))) {
        const remembered = parse(join(folder, own), name)
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
    // One look at all processes for all groups: each takes milliseconds on a busy machine.
    const live = liveGroups()
    for (const remembered of left) {
      if (live.has(remembered.group)) continue
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

/** Whether a process has the run's id in its environment. Only Linux shows the environment of other processes. */
function carries(pid: number, run: string): boolean {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0').includes(`CADRE_RUN_ID=${run}`)
  } catch {
    return false
  }
}
