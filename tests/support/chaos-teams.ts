// Random teams for the kill storm: every type of phase, handed-up files of any size, keys that cannot be folder names,
// clocks and listeners.

import type { JsonObject } from '../../lib/json.ts'
import type { Random } from './random.ts'

/**
 * Sizes below and above the limit for files that are stored in the database. A file with an odd size is written as a
 * stream.
 */
const SIZES = [0, 20, 21, 3_000, 60_001, 66_000, 270_001, 500_000] as const
/** Some can name a folder, some cannot, and some look like the index of another item. */
const KEYS = ['1', 'a/b', '0', '..', 'x y', '2', 'é', 'k'.repeat(150), '.', '3', '-', 'a'] as const

/** A team and its sub-teams, as files by path. Its input is the number `n`. */
export function teamOf(random: Random, depth: number, folder = ''): Record<string, string> {
  const files: Record<string, string> = {}
  const kinds: string[] = []
  const phases = Array.from({ length: 1 + random.below(4) }, (_, position) => {
    const name = `p${position}`
    const depends = Array.from({ length: position }, (_, n) => n).filter(() => random.once(2))
    const kind = random.of(
      depth > 0
        ? ['leaf', 'leaf', 'exec', 'team', 'map', 'map', 'gate', 'ticket', 'mail']
        : ['leaf', 'leaf', 'leaf', 'exec', 'gate'],
    )
    kinds.push(kind)
    if (kind === 'team' || kind === 'map') Object.assign(files, teamOf(random, depth - 1, `${folder}${name}/`))
    const source = depends.find(on => kinds[on] === 'leaf')
    return {
      name,
      depends_on: depends.map(on => `p${on}`),
      on_failure: random.of(['fail', 'fail', 'continue', 'escalate']),
      ...(random.once(5) && { always: true }),
      ...(random.once(8) && { when: random.of(['1 > 2', 'inputs.n < 2']) }),
      ...phaseOf(random, kind, name, source),
    }
  })
  const listener = { name: 'tell', agent: 'vendor', notify: ['on_start', 'on_complete', 'on_fail', 'on_phase_fail'] }
  files[`${folder}team.yml`] = JSON.stringify({
    name: '@local/chaos',
    version: '1.0.0',
    inputs: [{ name: 'n', type: 'number', required: true }],
    outputs: outputsOf(random, kinds),
    ...(random.once(5) && { timeout: `${50 + random.below(300)}ms` }),
    ...(random.once(3) && { concurrency: 1 + random.below(2) }),
    phases: random.once(3) ? [...phases, listener] : phases,
  })
  return files
}

function phaseOf(random: Random, kind: string, name: string, source: number | undefined): JsonObject {
  const clock = random.once(6) ? { timeout: `${30 + random.below(200)}ms` } : {}
  switch (kind) {
    case 'leaf': {
      const fails = random.once(3) ? { fails: random.of(['always', 'first']) } : {}
      return {
        agent: 'leaf',
        sources: [{ name: 'x.txt', takes: random.below(30), bytes: random.of(SIZES), ...fails }],
        retry: { attempts: 1 + random.below(3), backoff: `${1 + random.below(50)}ms` },
        ...(random.once(8) && { timeout: '10ms' }),
      }
    }
    case 'exec': {
      const write = (bytes: number) => `echo said; head -c ${bytes} /dev/urandom > "$CADRE_OUT/x.txt"`
      const run = random.of([write(20), write(60_000), write(300_000), 'sleep 0.02', 'exit 1'])
      return { agent: 'exec', commands: [{ name: 'c', run }] }
    }
    case 'gate':
      return {
        type: 'gate',
        ...(random.once(2) && { commands: [{ name: 'c', run: 'true' }] }),
        review: { prompt: 'Go on?', reviewers: ['any'], ...(random.once(3) && { timeout: '40ms' }) },
      }
    case 'team':
      return { type: 'team', team: `./${name}`, inputs: { n: '{{ inputs.n }}' }, ...clock }
    case 'map':
      return {
        type: 'map',
        team: `./${name}`,
        ...itemsOf(random, source),
        on_item_failure: random.of(['stop', 'continue']),
        concurrency: 1 + random.below(3),
        ...clock,
      }
    default:
      return {
        agent: 'vendor',
        action: kind,
        target_entries: Array.from({ length: 1 + random.below(2) }, (_, n) => ({ name: `e${n}` })),
        retry: { attempts: 2, backoff: '5ms' },
      }
  }
}

function itemsOf(random: Random, source: number | undefined): JsonObject {
  if (source !== undefined && random.once(2)) {
    const data = `phases.p${source}.data`
    return {
      items: `{{ ${data} == null ? dyn([]) : dyn(${data}.items) }}`,
      key: 'k{{ item }}',
      inputs: { n: '{{ item }}' },
    }
  }
  const first = random.below(KEYS.length)
  const items = Array.from({ length: random.below(4) }, (_, n) => ({ n, key: KEYS[(first + n) % KEYS.length]! }))
  return { items, key: '{{ item.key }}', inputs: { n: '{{ item.n }}' } }
}

/** Outputs with the first files of two phases, which may have the same base name. */
function outputsOf(random: Random, kinds: readonly string[]): JsonObject[] {
  const first = (position: number) => `phases.p${position}.files`
  return kinds
    .flatMap((kind, position) => (['gate', 'ticket', 'mail'].includes(kind) || !random.once(2) ? [] : [position]))
    .slice(0, 2)
    .map((position, n) => ({
      name: `doc${n}`,
      type: 'file',
      value: `{{ ${first(position)}.size() == 0 ? dyn(null) : dyn(${first(position)}[0].path) }}`,
    }))
}
