// `plan PATH|TEAM`: prints what a run would do, without doing it.

import type { Static } from 'typebox'
import { formatDuration } from '../../../duration.ts'
import { createLog } from '../../../log/log.ts'
import { createPaint, line, nothing, type Paint, type Printable, type Shown } from '../../../text/printable.ts'
import { print, printJson } from '../../../text/terminal.ts'
import { PlanTeam, ValidateTeam } from '../../../wire/calls/teams.ts'
import { ListTriggers } from '../../../wire/calls/triggers.ts'
import type { Plan, PlannedPhase, PlannedTeam } from '../../../wire/records/plans.ts'
import { homeFolder } from '../../home/home.ts'
import { misplaced } from '../../runs/own-files.ts'
import { existingFolder } from '../../runs/workspaces.ts'
import { workspaceOf } from '../backend/named-workspace.ts'
import { askAboutTeams } from '../backend/team-answers.ts'
import { askAboutTriggers } from '../backend/trigger-answers.ts'
import { EXIT } from '../kit/exit.ts'
import { type InputOptions, readInputs } from '../kit/inputs.ts'
import { whichTeam } from '../runs/run.ts'
import { table } from '../terminal/table.ts'
import { triggerWord } from '../terminal/trigger-lines.ts'

/** Exit code 2 when something is missing. */
export async function plan(
  reference: string,
  options: InputOptions & { home?: string; env?: string; workspace?: string; json?: boolean },
): Promise<number> {
  const which = whichTeam(reference)
  const workspace =
    options.workspace === undefined
      ? null
      : existingFolder((await workspaceOf(options.workspace, homeFolder(options.home))).path)
  const found = await askAboutTeams(homeFolder(options.home), createLog({ level: 'warn' }), async teams => {
    const { inputs, own_files = [] } = await teams.call(ValidateTeam, which)
    const environment = options.env === undefined ? {} : { environment: options.env }
    const planned = await teams.call(PlanTeam, { ...which, ...environment, inputs: await readInputs(inputs, options) })
    return { ...planned, warnings: [...planned.warnings, ...misplaced(own_files, workspace ?? process.cwd())] }
  })
  if (options.json) printJson(workspace === null ? found : { ...found, workspace })
  else {
    const home = homeFolder(options.home)
    const team = which.path ?? which.team!
    const started = await askAboutTriggers(home, all => all.call(ListTriggers, { team, limit: SHOWN_TRIGGERS }))
    print(drawPlan(found, workspace, started, createPaint(process.stdout)))
  }
  return found.missing.length > 0 ? EXIT.usage : EXIT.done
}

/** How many of what starts a team are listed. */
const SHOWN_TRIGGERS = 20

function drawPlan(
  {
    inputs,
    environment,
    review = [],
    secrets,
    concurrency,
    requires,
    triggers: declared = [],
    warnings,
    missing,
    team,
    writes,
  }: Plan,
  workspace: string | null,
  { triggers, total }: Static<(typeof ListTriggers)['data']>,
  paint: Paint,
): Printable[] {
  const section = (title: string, rows: readonly Printable[]) =>
    rows.length > 0 ? [nothing, paint.bold(title), ...rows] : []
  return [
    ...table([[paint.bold(team.name), team.version], ...teamRows(team, 1, paint)]),
    ...section('started by', [
      ...table(triggers.map(({ name, state, words, kind }) => [`  ${name}`, triggerWord(paint, state), words ?? kind])),
      ...(total > triggers.length ? [line`  and ${total - triggers.length} more`] : []),
    ]),
    ...section(
      'declared, and not enabled',
      table(
        declared
          .filter(({ name }) => !triggers.some(({ source }) => source !== 'manual' && source.name === name))
          .map(({ name, kind, words }) => [`  ${name}`, kind, words]),
      ),
    ),
    ...section('inputs', table(Object.entries(inputs).map(([name, value]) => [`  ${name}`, JSON.stringify(value)]))),
    ...section('workspace', workspace === null ? [] : [line`  ${workspace}`]),
    ...section('environment', environment ? [line`  ${environment}`] : []),
    ...section('approved before it begins', review.length > 0 ? [line`  by ${review.join(', ')}`] : []),
    ...section('secrets', secrets.length > 0 ? [line`  ${secrets.join(', ')}`] : []),
    ...section('concurrency', concurrency === null ? [] : [line`  ${keyText(concurrency)}`]),
    ...section(
      'required of a daemon',
      table([
        ...Object.entries(requires.labels).map(([name, value]) => [`  label ${name}`, value]),
        ...Object.entries(requires.agents).map(([name, range]) => [`  agent ${name}`, range]),
      ]),
    ),
    ...section(
      'written outside',
      table(
        writes.map(({ phase, agent, action, effect, to, credentials }) => [
          `  ${phase.join('/')}`,
          [agent, action].filter(part => part !== null).join('.'),
          effect,
          to,
          paint.dim(credentials.join(', ')),
        ]),
      ),
    ),
    ...section('commands', commandRows(team)),
    ...section(
      'warnings',
      warnings.map(text => line`  ${paint.yellow(text)}`),
    ),
    ...section(
      'missing',
      missing.map(({ message }) => line`  ${paint.yellow(message)}`),
    ),
  ]
}

const FULL = {
  queue: 'waits for its turn',
  skip: 'is cancelled at once',
  cancel_oldest: 'has the oldest one cancelled',
} as const

function keyText({ key, limit, when_full }: NonNullable<Plan['concurrency']>): string {
  const who = limit === 1 ? 'one run at a time holds' : `at most ${limit} runs at once hold`
  return `${who} the key ${key ?? '(of the inputs)'}; another ${FULL[when_full]}`
}

/** Maximum number of requests of a phase that are shown. */
const REQUESTS = 3

/** How a phase is carried out, where that is not the usual way. */
function waysOf(phase: PlannedPhase): string[] {
  const { reviewers, always, max_attempts, asks_instead, repeat, limit, timeout, on_failure, requests = [] } = phase
  return [
    ...(reviewers ? [`asks ${reviewers.includes('any') ? 'a person' : reviewers.join(', ')}`] : []),
    ...(always ? ['always'] : []),
    ...(max_attempts === undefined
      ? []
      : [`${max_attempts} attempts${asks_instead ? ', but cadre asks a person after a lost reply' : ''}`]),
    ...(repeat ? [`until ${repeat.until}, every ${formatDuration(repeat.every)}, at most ${repeat.most} turns`] : []),
    ...(limit ? [`at most ${limit.count} entries per ${formatDuration(limit.per)}`] : []),
    ...(timeout === undefined ? [] : [`timeout ${formatDuration(timeout)}`]),
    ...(on_failure === undefined ? [] : [`on_failure: ${on_failure}`]),
    ...requests
      .slice(0, REQUESTS)
      .map(({ method, url, account }) => `${method} ${url}${account ? ` in the name of ${account}` : ''}`),
    ...(requests.length > REQUESTS ? [`${requests.length - REQUESTS} more requests`] : []),
  ]
}

/** How many phases a line names. */
const NAMED = 5

/** Where commands run, each way with its phases; the phases are left out where there is one way for all. */
function commandRows(team: PlannedTeam): Printable[] {
  const ways = Map.groupBy(commandPhases(team, []), ([, way]) => way)
  return [...ways].map(([way, phases]) => {
    const more = phases.length > NAMED ? ` and ${phases.length - NAMED} more` : ''
    const names = phases.slice(0, NAMED).map(([path]) => path)
    return ways.size === 1 ? line`  ${way}` : line`  ${way}: ${names.join(', ')}${more}`
  })
}

/** The phases that run commands, by path, each with where it runs them. */
function commandPhases({ phases }: PlannedTeam, above: readonly string[]): [string, string][] {
  return phases.flatMap(({ name, sandbox, network, below }) => {
    const path = [...above, name]
    if (below) return commandPhases(below, path)
    if (sandbox === undefined) return []
    const way = sandbox === 'none' ? 'without a sandbox' : `in ${sandbox} ${network ? 'with' : 'without'} network`
    return [[path.join('/'), way]]
  })
}

function teamRows(team: PlannedTeam, depth: number, paint: Paint): Shown[][] {
  const phases = team.phases.flatMap(phase => {
    const { name, type, agent, action, when, depends_on, below } = phase
    const what = agent
      ? [agent, action].filter(part => part !== undefined).join('.')
      : below
        ? `${type} ${below.name}`
        : type
    const notes = [
      ...(depends_on.length > 0 ? [`after ${depends_on.join(', ')}`] : []),
      ...(when ? [`when ${when}`] : []),
      ...waysOf(phase),
      ...(below?.recursive ? ['calls itself'] : []),
      ...(below?.unheld === undefined ? [] : [`without its key ${below.unheld}`]),
    ]
    const row = [`${'  '.repeat(depth)}${name}`, what, paint.dim(notes.join('; '))]
    return [row, ...(below ? teamRows(below, depth + 1, paint) : [])]
  })
  const listeners = (team.listeners ?? []).map(({ name, agent, events }) => [
    `${'  '.repeat(depth)}${name}`,
    agent,
    paint.dim(`reports ${events.join(', ')}`),
  ])
  return [...phases, ...listeners]
}
