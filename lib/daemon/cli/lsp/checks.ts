// When which team is checked: once nobody has typed for a moment, and when a file changes that a team has looked for. A file
// that is not open, such as that of a sub-team, shows what the teams that use it found in it.

import { type Checked, check, type Finding } from './check.ts'
import type { WorkspaceFiles } from './files.ts'
import type { Known } from './known.ts'

/** How long nothing must have been typed. */
const PAUSE_MS = 150

export interface ChecksOptions {
  files: WorkspaceFiles
  known: Known
  /** Shows the findings in a file in place of all earlier ones. */
  show(path: string, text: string, findings: readonly Finding[]): void
}

interface Team {
  timer: ReturnType<typeof setTimeout> | null
  /** The check under way, and whether something has changed since it began. */
  isChecking: boolean
  isStale: boolean
  last: Checked | null
}

export class Checks {
  readonly #options: ChecksOptions
  /** The open teams, by path. */
  readonly #teams = new Map<string, Team>()
  /** The files that show something. */
  readonly #shown = new Set<string>()

  constructor(options: ChecksOptions) {
    this.#options = options
  }

  /** A file was opened, typed in or changed on disk. `isTeam` says of an open file whether it is one. */
  changed(path: string, isTeam?: boolean): void {
    if (isTeam === false) this.closed(path)
    if (isTeam && !this.#teams.has(path)) {
      this.#teams.set(path, { timer: null, isChecking: false, isStale: false, last: null })
    }
    for (const [each, { last }] of this.#teams) if (each === path || last?.asked.has(path)) this.#later(each)
  }

  closed(path: string): void {
    const team = this.#teams.get(path)
    if (!team) return
    clearTimeout(team.timer ?? undefined)
    this.#teams.delete(path)
    this.#show([...(team.last?.files.keys() ?? []), path])
    // Others show again what is on disk.
    this.changed(path)
  }

  /** Something that every team depends on may have changed. */
  all(): void {
    for (const path of this.#teams.keys()) this.#later(path)
  }

  #later(path: string): void {
    const team = this.#teams.get(path)!
    clearTimeout(team.timer ?? undefined)
    team.timer = setTimeout(() => void this.#check(path, team), PAUSE_MS)
  }

  async #check(path: string, team: Team): Promise<void> {
    team.isStale = team.isChecking
    if (team.isChecking) return
    team.isChecking = true
    const checked = await check(path, this.#options.files, this.#options.known).finally(() => {
      team.isChecking = false
    })
    if (team.isStale) return this.#check(path, team)
    if (this.#teams.get(path) !== team) return
    const before = team.last?.files.keys() ?? []
    team.last = checked
    this.#show([...before, ...checked.files.keys()])
  }

  #show(paths: Iterable<string>): void {
    for (const path of new Set(paths)) {
      const { text, findings } = this.#findingsIn(path)
      // What was typed since is checked in a moment.
      const now = this.#options.files.unsaved(path)
      if (now !== null && now !== text && this.#teams.has(path)) continue
      if (findings.length === 0 && !this.#shown.has(path) && !this.#teams.has(path)) continue
      if (findings.length > 0) this.#shown.add(path)
      else this.#shown.delete(path)
      this.#options.show(path, text, findings)
    }
  }

  #findingsIn(path: string): { text: string; findings: Finding[] } {
    const own = this.#teams.get(path)
    const teams = own ? [own] : [...this.#teams.values()]
    const all = teams.flatMap(({ last }) => last?.files.get(path) ?? [])
    const byKey = new Map(all.flatMap(({ findings }) => findings.map(each => [`${each.from} ${each.message}`, each])))
    return { text: all[0]?.text ?? '', findings: [...byKey.values()] }
  }
}
