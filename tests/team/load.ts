// Loads team.yml from text, for tests.

import { loadBundle } from '../../lib/team/compile/bundle.ts'
import type { Bundle, Scope, Team } from '../../lib/team/model/compiled-team.ts'
import { problemsOf } from '../../lib/team/model/problem.ts'
import { lookup } from './agents.ts'

export const HEAD = 'name: "@local/test"\nversion: 1.0.0\n'

export function load(text: string, others: Record<string, string> = {}): Promise<Bundle> {
  return loadBundle(new Map([['team.yml', text], ...Object.entries(others)]), { agents: lookup })
}

export async function team(text: string, others?: Record<string, string>): Promise<Team> {
  return (await load(text, others)).team('.')
}

/** `<line>:<column> <message>` of every problem; those of other files begin with their name. */
export async function problems(text: string, others?: Record<string, string>): Promise<string[]> {
  try {
    await load(text, others)
    return []
  } catch (error) {
    const found = problemsOf(error)
    if (found.length === 0) throw error
    return found.map(({ file, line, column, message }) => {
      return `${file === 'team.yml' ? '' : `${file}:`}${line}:${column} ${message}`
    })
  }
}

export function scope(given: Partial<Scope> = {}): Scope {
  return {
    inputs: {},
    run: { id: 'r1', name: null, started_at: null, environment: null },
    phase: name => {
      throw new Error(`phase ${name} was not expected to be read`)
    },
    ...given,
  }
}
