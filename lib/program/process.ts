// Identifies processes. Process ids are reused, especially in containers, so a boot id and a start time belong to each.

import { readdirSync, readFileSync } from 'node:fs'

let boot: string | undefined

/** An id that changes when the machine restarts. */
export function bootId(): string {
  boot ??=
    process.platform === 'linux'
      ? readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
      : (printed(['sysctl', '-n', 'kern.bootsessionuuid']) ?? '')
  return boot
}

/**
 * When a process started: clock ticks since boot on Linux, otherwise the time that `ps` reports, in UTC. Null when
 * there is no such process.
 */
export function startOf(pid: number): string | null {
  if (process.platform !== 'linux') return printed(['ps', '-o', 'lstart=', '-p', String(pid)])
  return readStat(pid)?.started ?? null
}

/**
 * Whether the process that started at `started` (see `startOf`) still runs. False for a process that is gone, for a
 * zombie, and for another process that reuses the id.
 */
export function isRunning(pid: number, started: string): boolean {
  if (process.platform === 'linux') {
    const stat = readStat(pid)
    return stat?.started === started && !isDead(stat.state)
  }
  const state = printed(['ps', '-o', 'stat=', '-p', String(pid)]) ?? ''
  return !isDead(state) && startOf(pid) === started
}

/** What tells a process from all others, for a file that outlives it. */
export interface ProcessMark {
  pid: number
  /** The id of the machine's boot. */
  boot: string
  /** See `startOf`. Ids are reused, above all in containers, so they are not enough. */
  started: string
}

export const ownMark = (): ProcessMark => ({
  pid: process.pid,
  boot: bootId(),
  started: startOf(process.pid) ?? '',
})

export const isAlive = ({ pid, boot, started }: ProcessMark): boolean => boot === bootId() && isRunning(pid, started)

/** The live processes of a group, without zombies. */
export function groupMembers(group: number): number[] {
  return liveProcesses()
    .filter(each => each.group === group)
    .map(({ pid }) => pid)
}

/** The live processes of every group. */
export function membersByGroup(): Map<number, number[]> {
  const groups = new Map<number, number[]>()
  for (const { pid, group } of liveProcesses()) groups.set(group, [...(groups.get(group) ?? []), pid])
  return groups
}

/** The groups that have a live process. */
export function liveGroups(): Set<number> {
  return new Set(liveProcesses().map(({ group }) => group))
}

const liveProcesses = () => processTable().filter(({ state }) => !isDead(state))

/** A zombie (Z), a process that is being removed (X), or no process. */
const isDead = (state: string): boolean => /^([ZX]|$)/.test(state)

interface Entry {
  pid: number
  group: number
  state: string
}

function processTable(): Entry[] {
  if (process.platform === 'linux') {
    return readdirSync('/proc').flatMap(name => (/^\d+$/.test(name) ? (readStat(Number(name)) ?? []) : []))
  }
  return (printed(['ps', '-A', '-o', 'pid=,pgid=,stat=']) ?? '').split('\n').map(line => {
    const [pid, group, state = ''] = line.trim().split(/\s+/)
    return { pid: Number(pid), group: Number(group), state }
  })
}

/**
 * See proc(5). The name in parentheses may contain any character, so the fields from the third on begin after the last
 * parenthesis.
 */
function readStat(pid: number): (Entry & { started: string }) | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return { pid, state: fields[0]!, group: Number(fields[2]), started: fields[19]! }
  } catch {
    return null
  }
}

function printed(command: string[]): string | null {
  const env = { PATH: process.env.PATH ?? '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' }
  const { success, stdout } = Bun.spawnSync(command, { env, stderr: 'ignore' })
  return success ? stdout.toString().trim() : null
}
