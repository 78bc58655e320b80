// What a tree of runs must come to, in a few lines without clocks, rows or promises; and the same tree as team.yml.
// People answer only when nothing goes on any more: then a map has begun all of its items, but for a failure.

import type { Json, JsonObject } from '../../lib/json.ts'

/**
 * Depends on earlier phases only. `fails` is the `n` at which a leaf fails. `when` may also ask whether the first
 * dependency came to nothing, or be an error itself. `answer` is what a person says where `onFailure` is to ask one.
 */
export interface ModelPhase {
  type: 'leaf' | 'team' | 'map'
  depends: number[]
  when: 'none' | 'true' | 'false' | 'null' | 'error'
  always: boolean
  onFailure: 'fail' | 'continue' | 'escalate'
  answer: 'fail' | 'skip' | 'complete'
  fails: number
  flaky: boolean
  items: number
  onItem: 'stop' | 'continue'
  team: ModelPhase[]
}

/** What a person fills in who completes a phase: whatever type it is of. */
export const VALUES = { value: 7, all: null, items: [] }

export interface ModelRun {
  state: string
  /** Whether a person was asked, in it or below. */
  asked: boolean
  /** State, reason, and the data as the outputs show it. */
  phases: [state: string, reason: string | null, data: Json][]
  /** Of this run and all below, depth first: depth, phase above, name, state. */
  tree: [number, string | null, string | null, string][]
}

type End = ModelRun['phases'][number]

/** The run of `team` with input `n`. */
export function model(team: ModelPhase[], n: number, place: [number, string | null, string | null] = [0, null, null]) {
  const run: ModelRun = { state: 'completed', asked: false, phases: [], tree: [[...place, '']] }
  for (const [position, phase] of team.entries()) {
    const end = endOf(team, phase, position, run, n)
    if (end[0] === 'failed' && phase.onFailure !== 'continue') run.state = 'failed'
    run.phases.push(end)
  }
  run.tree[0]![3] = run.state
  return run
}

function endOf(team: ModelPhase[], phase: ModelPhase, position: number, run: ModelRun, n: number): End {
  const blocked = phase.depends.some(on => {
    const [state, reason] = run.phases[on]!
    return (state === 'failed' && team[on]!.onFailure !== 'continue') || reason === 'upstream'
  })
  if (blocked && !phase.always) return ['skipped', 'upstream', null]
  const first = phase.depends[0] === undefined ? null : run.phases[phase.depends[0]]!
  // A map that stopped has failed and keeps its data.
  const hasData = first !== null && (first[0] === 'completed' || first[2] !== null)
  if (phase.when === 'false' || (phase.when === 'null' && hasData)) return ['skipped', 'when', null]
  const end = phase.when === 'error' ? failed() : workOf(phase, position, run, n)
  if (end[0] !== 'failed' || phase.onFailure !== 'escalate') return end
  run.asked = true
  if (phase.answer === 'fail') return ['failed', 'person', end[2]]
  return phase.answer === 'skip' ? ['skipped', 'person', null] : ['completed', null, DONE[phase.type]]
}

const failed = (data: Json = null): End => ['failed', null, data]
/** Of `VALUES`, as the outputs show them. */
const DONE: Record<ModelPhase['type'], Json> = { leaf: VALUES.value, team: VALUES.all, map: VALUES.items }

function workOf(phase: ModelPhase, position: number, run: ModelRun, n: number): End {
  if (phase.type === 'leaf') return phase.fails === n ? failed() : ['completed', null, n + position]
  const isMap = phase.type === 'map'
  const data: Json[] = []
  let failures = 0
  let stopped = false
  for (let item = 0; item < (isMap ? phase.items : 1); item++) {
    if (stopped) {
      data.push(null)
      continue
    }
    const below = model(phase.team, n + item, [run.tree[0]![0] + 1, `p${position}`, isMap ? `k${item}` : null])
    run.tree.push(...below.tree)
    run.asked ||= below.asked
    if (below.state === 'failed') failures++
    // One that asks a person gives its place to the next, and fails when all of them have begun.
    stopped = isMap && phase.onItem === 'stop' && below.state === 'failed' && !below.asked
    data.push(below.state === 'completed' ? below.phases.map(([, , value]) => value) : null)
  }
  if (!isMap) return failures > 0 ? failed() : ['completed', null, data[0]!]
  return failures > 0 && phase.onItem === 'stop' ? failed(data) : ['completed', null, data]
}

/** No run takes this long, but its clock is stopped while a person is asked, and has to go on afterwards. */
const LONG = '1h'

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
      ...(phase.when !== 'none' && { when: whenOf(phase) }),
    }
    if (phase.type === 'leaf') {
      const source = { name: 'x', value: `{{ inputs.n + ${position} }}`, fail: `{{ inputs.n == ${phase.fails} }}` }
      const retry = { attempts: 2, backoff: '1ms' }
      return { ...common, agent: 'leaf', retry, sources: [{ ...source, flaky: phase.flaky }] }
    }
    Object.assign(files, teamFiles(phase.team, `${folder}${name}/`))
    const below = { ...common, team: `./${name}`, timeout: LONG }
    if (phase.type === 'team') return { ...below, type: 'team', inputs: { n: '{{ inputs.n }}' } }
    return {
      ...below,
      type: 'map',
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
  // A template that names a phase which did not complete gives null.
  const plain = team.flatMap(({ type }, position) =>
    type === 'leaf' ? [{ name: `v${position}`, type: 'number', value: `{{ phases.p${position}.data.value }}` }] : [],
  )
  files[`${folder}team.yml`] = JSON.stringify({
    name: '@local/model',
    version: '1.0.0',
    timeout: LONG,
    inputs: [{ name: 'n', type: 'number', required: true }],
    outputs: [{ name: 'all', type: 'list', value: `{{ [${shown.join(', ')}] }}` }, ...plain],
    phases,
  })
  return files
}

function whenOf({ when, depends }: ModelPhase): string {
  if (when === 'null') return depends[0] === undefined ? '1 < 2' : `phases.p${depends[0]}.data == null`
  if (when === 'error') return "int('no number' + string(inputs.n)) > 0"
  return when === 'true' ? '1 < 2' : '1 > 2'
}
