// Which process an id means: ids are used again, above all in containers, so a boot and a start time belong to each.

import { readdirSync, readFileSync } from 'node:fs'

let boot: string | undefined

/** Of the machine: changes when it restarts. */
export function bootId(): string {
  boot ??=
    process.platform === 'linux'
      ? readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
      : (printed(['sysctl', '-n', 'kern.bootsessionuuid']) ?? '')
  return boot
}

/** When a process began: clock ticks since boot on Linux, else what `ps` says, in UTC. Null: there is none. */
export function startOf(pid: number): string | null {
  if (process.platform !== 'linux') return printed(['ps', '-o', 'lstart=', '-p', String(pid)])
  return readStat(pid)?.started ?? null
}

/**
 * Whether the process that began at `started` (`startOf`) is at work. One that is gone is not, nor one that has ended and
 * waits for its parent to bury it, nor another program that was given the same id.
 */
export function isRunning(pid: number, started: string): boolean {
  if (process.platform === 'linux') {
    const stat = readStat(pid)
    return stat?.started === started && !isDead(stat.state)
  }
  const state = printed(['ps', '-o', 'stat=', '-p', String(pid)]) ?? ''
  return !isDead(state) && startOf(pid) === started
}

/** Processes of a group that are alive; what its parent has still to bury is not. */
export function groupMembers(group: number): number[] {
  return processTable()
    .filter(each => each.group === group && !isDead(each.state))
    .map(({ pid }) => pid)
}

/** A zombie (Z), one that is just being taken away (X), or none at all. */
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

/** proc(5). The name in parentheses may hold anything; what follows the last one is fields 3 and on. */
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
