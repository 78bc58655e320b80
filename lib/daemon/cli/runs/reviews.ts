// Reviews: `reviews` lists the questions to people, each with its form and what the commands of its gate printed, and
// `decide` answers one.

import { CadreError, messageOf } from '../../../error.ts'
import type { JsonObject } from '../../../json.ts'
import { commandLine } from '../../../program/called-as.ts'
import { CHOICES } from '../../../run/engine.ts'
import { sizeText } from '../../../size.ts'
import { createPaint, line, lines, nothing, type Paint, type Printable } from '../../../text/printable.ts'
import { listed } from '../../../text/spelling.ts'
import { print, printJson, printMessage } from '../../../text/terminal.ts'
import { ListReviews } from '../../../wire/calls/reviews.ts'
import { GetLogs, GetPhases, GetRun } from '../../../wire/calls/runs.ts'
import { choicesOf } from '../../../wire/choices.ts'
import { askedOutput, markOf } from '../../../wire/records/asked-output.ts'
import type { Field } from '../../../wire/records/forms.ts'
import type { AskedReview } from '../../../wire/records/review-records.ts'
import type { RunDetailView } from '../../../wire/records/run-records.ts'
import { backendOf } from '../backend/home-backend.ts'
import type { Callee } from '../backend/home-client.ts'
import type { BackendOptions, RunBackend } from '../backend/run-backend.ts'
import { EXIT } from '../kit/exit.ts'
import { askChoice, askForm, isAtTerminal, lackOf } from '../kit/form.ts'
import { printUnreadable } from '../kit/print.ts'
import { clock, table } from '../terminal/table.ts'
import { watch } from './watch.ts'

interface ListOptions extends BackendOptions {
  json?: boolean
  limit?: number
  all?: boolean
}

/** What a review is about that has no phase: it asks whether the run may begin. */
export const THE_RUN = 'the run'

export async function reviews({ json, limit, all, ...where }: ListOptions): Promise<void> {
  const backend = await backendOf(where)
  const query = { limit: limit ?? 20, offset: 0, ...(!all && { state: 'pending' as const }) }
  const paint = createPaint(process.stdout)
  const { found, texts } = await backend.ask(async runs => {
    const found = await runs.call(ListReviews, query)
    const texts = json ? [] : await describeAll(runs, found.reviews, { paint, backend })
    return { found, texts }
  })
  if (json) return void printJson(found)
  printUnreadable(found)
  if (texts.length === 0) printMessage(line`none`)
  print(texts.flatMap((text, at) => (at === 0 ? text : [nothing, ...text])))
}

interface View {
  paint: Paint
  backend: RunBackend
}

/** One that cannot be described does not keep the others from being shown. Throws when none can. */
async function describeAll(runs: Callee, reviews: readonly AskedReview[], view: View): Promise<Printable[][]> {
  const all = await Promise.allSettled(reviews.map(review => describe(runs, review, view)))
  const [first] = all
  if (first?.status === 'rejected' && all.every(({ status }) => status === 'rejected')) throw first.reason
  return all.map((each, at) =>
    each.status === 'fulfilled'
      ? each.value
      : [line`${view.paint.yellow('unreadable')}  review ${reviews[at]?.id ?? ''}: ${messageOf(each.reason)}`],
  )
}

async function describe(runs: Callee, review: AskedReview, { paint, backend }: View): Promise<Printable[]> {
  const { id, kind, phase, run_id, run_name, state, decision, decided_by, prompt, reason, created_at, entries } = review
  const name = [run_name, phase].filter(part => part !== null).join('/') || THE_RUN
  const { prompt_bytes } = review
  const run = await runs.call(GetRun, { run_id })
  const isPending = state === 'pending'
  const what = isPending ? paint.yellow(kind) : `${kind} ${decision}${decided_by === null ? '' : ` by ${decided_by}`}`
  const head = line`${what}  ${paint.bold(name)}  ${clock(created_at)}  ${paint.dim(`run ${run_id}`)}`
  const drawn = [
    head,
    paint.dim(`  ${whose(run)}`),
    ...(kind === 'start' && isPending ? inputsOf(run) : []),
    ...(prompt_bytes === undefined
      ? lines(prompt || reason).map(asked => line`  ${asked}`)
      : [line`  … (${sizeText(prompt_bytes)}: ${backend.command('decide', id)})`]),
  ]
  if (entries.length > 0) drawn.push(line`  entries: ${entries.join(', ')}`)
  if (!isPending) return drawn
  const logged = phase === null ? [] : await printedBy(runs, { run_id, phase, backend })
  const isWhole = review.next && review.shown_bytes === undefined
  const whole = isWhole ? review : ((await runs.call(ListReviews, { review_id: id })).reviews[0] ?? review)
  drawn.push(
    ...logged.map(text => paint.dim(`  | ${text}`)),
    ...wroteLines(whole),
    ...nextLines(whole),
    ...formLines(review.form ?? []),
  )
  drawn.push(line`  takes ${oneOf(kind)}`, paint.dim(`  ${backend.command('decide', id)}`))
  return drawn
}

/** The team that asks, and the top run with its team, from which a person starts to look. */
function whose({ run_id, team, root_run_id, call_path }: RunDetailView): string {
  return run_id === root_run_id ? `of ${team}` : `of ${team}, in run ${root_run_id} of ${call_path[0]}`
}

/** What a run was given that waits for its approval. */
const inputsOf = ({ inputs }: RunDetailView): Printable[] =>
  Object.entries(inputs).map(([name, value]) => line`  ${name} = ${JSON.stringify(value)}`)

/** What the phase printed that asks. The first line says how many lines are left out, the last one what the hub lacks. */
async function printedBy(
  runs: Callee,
  { run_id, phase, backend }: { run_id: string; phase: string; backend: RunBackend },
): Promise<Printable[]> {
  const output = await askedOutput(phase, {
    phases: () => runs.call(GetPhases, { run_id }),
    lines: (after_seq, limit) => runs.call(GetLogs, { run_id, phase, after_seq, limit }),
  })
  const { earlier, hasEarlier, present, left, lacks } = output
  const log = ['logs', run_id, '--phase', phase]
  return [
    ...(left > 0 ? [line`… ${left} lines are not shown: ${backend.command(...log)}`] : []),
    ...earlier.flatMap(lines),
    ...(hasEarlier ? [line`${markOf(output)}`] : []),
    ...present.flatMap(lines),
    ...(lacks === null
      ? []
      : [line`… the hub lacks lines of its log: ${lacks}; on the machine of its daemon: ${commandLine(...log)}`]),
  ]
}

/** What the commands of the gate wrote. */
function wroteLines({ shown }: AskedReview): Printable[] {
  if (!shown) return []
  const { files, more_files = 0 } = shown
  return [
    ...files.map(({ path, bytes }) => line`  wrote: ${path} (${sizeText(bytes)})`),
    ...(more_files > 0 ? [line`  wrote: ${more_files} more`] : []),
  ]
}

/** What happens on approval, or why that is not known here. */
function nextLines({ next, lacks }: AskedReview): Printable[] {
  if (!next) return lacks ? [line`  what happens then is not known here: ${lacks}`] : []
  const { phases, writes, more_phases = 0, more_writes = 0 } = next
  const more = more_phases > 0 ? ` and ${more_phases} more` : ''
  return [
    phases.length === 0 ? line`  then no phase runs` : line`  then: ${phases.join(', ')}${more}`,
    ...writes.map(({ phase, agent, action, to, credentials }) => {
      const what = action === null ? agent : `${agent} ${action}`
      const by = credentials.length === 0 ? '' : `, with ${credentials.join(', ')}`
      return line`  writes: ${phase.join('/')}: ${what} to ${to}${by}`
    }),
    ...(more_writes > 0 ? [line`  writes: ${more_writes} more`] : []),
  ]
}

function formLines(form: readonly Field[]): Printable[] {
  const rows = form.map(({ name, type, required, choices, description, default: preset }) => [
    `  ${name}`,
    [
      choices ? choices.map(choice => String(choice)).join(' or ') : type,
      ...(preset === undefined ? (required ? ['required'] : []) : [`default ${JSON.stringify(preset)}`]),
    ].join(', '),
    description ?? '',
  ])
  return table(rows)
}

export interface DecideOptions extends BackendOptions {
  comment?: string
  values?: string
}

/**
 * Answers a review. Without a daemon the run continues in this process, so it is followed. A run of a hub is not, because
 * its daemon may be away. Returns the exit code.
 */
export async function decide(typed: string, word: string | undefined, options: DecideOptions): Promise<number> {
  const given = word === undefined ? null : decisionOf(word)
  const backend = await backendOf(options)
  const reviewId = await backend.reviewId(typed)
  const review = await backend.ask(async runs => {
    const { reviews } = await runs.call(ListReviews, { review_id: reviewId })
    return reviews[0]
  })
  if (!review) throw new CadreError('not_found', `there is no review ${reviewId}`)
  const decision = given ?? (await chosen(backend, review))
  if (review.state === 'pending') checkKind(review, decision)
  const { form = [] } = review
  const needsForm = decision === 'approve' && form.length > 0 && review.state === 'pending'
  const values =
    options.values !== undefined ? valuesOf(options.values) : needsForm && isAtTerminal() ? await askForm(form) : null
  if (needsForm) {
    const lack = lackOf(form, values ?? {})
    if (lack !== null) throw new CadreError('invalid_request', lack)
  }
  const answer = {
    decision,
    ...(options.comment !== undefined && { comment: options.comment }),
    ...(values && { values }),
  }
  const { runner, result } = await backend.open('decide', runner => runner.decide(reviewId, answer))
  const what = `${review.phase ?? THE_RUN}${decision === 'complete' ? resultOf(values, review) : ''}`
  const watching = backend.command('watch', result.run_id)
  if (backend.hub) {
    // The daemon may be away, and may refuse the decision.
    const waits = result.already_waits ? 'this decision already waits for its daemon' : 'its daemon gets the decision'
    printMessage(line`decided: ${decision} ${what}`, line`${waits}: ${watching}`)
    return EXIT.done
  }
  printMessage(line`${DONE[decision]} ${what}`)
  if (runner.host) return watch(runner, result.run_id, { backend, json: false })
  const { state, completed_at } = await backend.ask(all => all.call(GetRun, { run_id: result.run_id }))
  if (completed_at === null) printMessage(line`the run goes on: ${watching}`)
  else printMessage(line`the run is ${state}: ${backend.command('why', result.run_id)}`)
  return EXIT.done
}

type Choice = (typeof CHOICES)[keyof typeof CHOICES][number]

const DONE: Readonly<Record<Choice, string>> = {
  approve: 'approved',
  reject: 'rejected',
  retry: 'repeating',
  skip: 'skipped',
  complete: 'completed',
  fail: 'failed',
}

/** What a phase has as its result that a person completes by hand: phases after it may count on more. */
function resultOf(values: JsonObject | null, { readers = { outputs: [], phases: [] } }: AskedReview): string {
  if (values !== null) return ', with these values as its data and without files'
  const names = [...readers.phases.map(name => `phase ${name}`), ...readers.outputs.map(name => `output ${name}`)]
  const read = names.length === 0 ? '' : `, although ${listed(names)} read${names.length === 1 ? 's' : ''} its result`
  return `, without data and files${read}`
}

/** The decisions that a review takes. */
function oneOf(kind: AskedReview['kind']): string {
  const choices = choicesOf(kind)
  if (choices.length === 0) return 'decisions that only a newer program knows'
  return `${choices.slice(0, -1).join(', ')} or ${choices.at(-1)}`
}

function checkKind({ kind }: AskedReview, decision: Choice): void {
  if (choicesOf(kind).includes(decision)) return
  const what =
    kind === 'escalation'
      ? 'an escalation'
      : kind === 'gate'
        ? 'a gate'
        : kind === 'start'
          ? 'of a start'
          : `of the kind ${kind}`
  throw new CadreError('invalid_request', `this review is ${what}, which takes ${oneOf(kind)}, not ${decision}`)
}

async function chosen(backend: RunBackend, review: AskedReview): Promise<Choice> {
  const choices = choicesOf(review.kind)
  if (choices.length === 0) checkKind(review, 'approve')
  if (!isAtTerminal()) {
    throw new CadreError(
      'invalid_request',
      `what is the decision (${choices.join(', ')})? ${backend.command('decide', review.id, choices[0]!)}`,
    )
  }
  const drawn = await backend.ask(runs => describe(runs, review, { paint: createPaint(process.stderr), backend }))
  // The last line is the command that was just called.
  printMessage(drawn.slice(0, -1))
  return askChoice('decision', choices)
}

function decisionOf(word: string): Choice {
  const all = [...CHOICES.gate, ...CHOICES.escalation]
  const known = all.find(each => each === word)
  if (known) return known
  throw new CadreError('invalid_request', `${word}: expected one of ${all.join(', ')}`)
}

function valuesOf(text: string): JsonObject {
  try {
    return JSON.parse(text)
  } catch {
    throw new CadreError('invalid_request', `--values: expected a JSON object, such as '{"name":"value"}'`)
  }
}
