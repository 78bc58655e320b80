// What a tree of runs must come to, in a few lines without clocks, rows or promises; and the same tree as team.yml.

import type { Json, JsonObject } from '../../lib/json.ts'

/** Depends on earlier phases only. `fails` is the `n` at which a leaf fails. */
export interface ModelPhase {
  type: 'leaf' | 'team' | 'map'
  depends: number[]
  when: boolean
  always: boolean
  onFailure: 'fail' | 'continue'
  fails: number
  flaky: boolean
  items: number
  onItem: 'stop' | 'continue'
  team: ModelPhase[]
}

export interface ModelRun {
  state: string
  /** State, reason, and the data as the outputs show it. */
  phases: [state: string, reason: string | null, data: Json][]
  /** Of this run and all below, depth first: depth, phase above, name, state. */
  tree: [number, string | null, string | null, string][]
}

type End = ModelRun['phases'][number]

/** The run of `team` with input `n`. */
export function model(team: ModelPhase[], n: number, place: [number, string | null, string | null] = [0, null, null]) {
  const run: ModelRun = { state: 'completed', phases: [], tree: [[...place, '']] }
  for (const [position, phase] of team.entries()) {
    const end = endOf(team, phase, position, run, n)
    if (end[0] === 'failed' && phase.onFailure === 'fail') run.state = 'failed'
    run.phases.push(end)
  }
  run.tree[0]![3] = run.state
  return run
}

function endOf(team: ModelPhase[], phase: ModelPhase, position: number, run: ModelRun, n: number): End {
  const blocked = phase.depends.some(on => {
    const [state, reason] = run.phases[on]!
    return (state === 'failed' && team[on]!.onFailure === 'fail') || reason === 'upstream'
  })
  if (blocked && !phase.always) return ['skipped', 'upstream', null]
  if (!phase.when) return ['skipped', 'when', null]
  if (phase.type === 'leaf') return phase.fails === n ? ['failed', null, null] : ['completed', null, n + position]
  const isMap = phase.type === 'map'
  const data: Json[] = []
  let failed = false
  for (let item = 0; item < (isMap ? phase.items : 1); item++) {
    if (failed && phase.onItem === 'stop') {
      data.push(null)
      continue
    }
    const below = model(phase.team, n + item, [run.tree[0]![0] + 1, `p${position}`, isMap ? `k${item}` : null])
    run.tree.push(...below.tree)
    failed ||= below.state === 'failed'
    data.push(below.state === 'completed' ? below.phases.map(([, , value]) => value) : null)
  }
  if (!isMap) return failed ? ['failed', null, null] : ['completed', null, data[0]!]
  return [failed && phase.onItem === 'stop' ? 'failed' : 'completed', null, data]
}

/** Files by path. */
export function teamFiles(team: ModelPhase[], folder = ''): Record<string, string> {
  const files: Record<string, string> = {}
  const phases = team.map((phase, position) => {
    const name = `p${position}`
    const common: JsonObject = {
      name,
      depends_on: phase.depends.map(on => `p${on}`),
      on_failure: phase.onFailure,
      ...(phase.always && { always: true }),
      ...(!phase.when && { when: '1 > 2' }),
    }
    if (phase.type === 'leaf') {
      const source = { name: 'x', value: `{{ inputs.n + ${position} }}`, fail: `{{ inputs.n == ${phase.fails} }}` }
      const retry = { attempts: 2, backoff: '1ms' }
      return { ...common, agent: 'leaf', retry, sources: [{ ...source, flaky: phase.flaky }] }
    }
    Object.assign(files, teamFiles(phase.team, `${folder}${name}/`))
    if (phase.type === 'team') return { ...common, type: 'team', team: `./${name}`, inputs: { n: '{{ inputs.n }}' } }
    return {
      ...common,
      type: 'map',
      team: `./${name}`,
      items: Array.from({ length: phase.items }, (_, item) => item),
      key: 'k{{ item }}',
      inputs: { n: '{{ inputs.n + item }}' },
      on_item_failure: phase.onItem,
      concurrency: phase.onItem === 'stop' ? 1 : 2,
    }
  })
  const orNull = (value: string, then: string) => `(${value} == null ? dyn(null) : dyn(${then}))`
  const shown = team.map(({ type }, position) => {
    const data = `phases.p${position}.data`
    if (type === 'leaf') return orNull(data, `${data}.value`)
    if (type === 'team') return orNull(data, `${data}.all`)
    return orNull(data, `${data}.items.map(i, ${orNull('i.outputs', 'i.outputs.all')})`)
  })
  files[`${folder}team.yml`] = JSON.stringify({
    name: '@local/model',
    version: '1.0.0',
    inputs: [{ name: 'n', type: 'number', required: true }],
    outputs: [{ name: 'all', type: 'list', value: `{{ [${shown.join(', ')}] }}` }],
    phases,
  })
  return files
}
