// Reviews: `reviews` lists the questions to people, each with its form and what the commands of its gate printed, and
// `decide` answers one.

import { commandLine } from '../../called-as.ts'
import { CadreError } from '../../error.ts'
import type { JsonObject } from '../../json.ts'
import { createLog } from '../../log.ts'
import { CHOICES } from '../../run/engine.ts'
import { type AskedReview, GetLogs, ListReviews } from '../../wire/daemon-calls.ts'
import type { Field } from '../../wire/forms.ts'
import type { Callee } from '../calls/client.ts'
import { reviewIdOf } from '../calls/ids.ts'
import { askAboutRuns } from '../calls/run-answers.ts'
import { openRunner } from '../calls/runner.ts'
import { homeFolder } from '../home.ts'
import { createPaint, inline, type Paint, printable } from '../terminal/paint.ts'
import { clock, table } from '../terminal/table.ts'
import { EXIT } from './exit.ts'
import { askChoice, askForm, isAtTerminal } from './form.ts'
import { watch } from './watch.ts'

interface ListOptions {
  home?: string
  json?: boolean
  limit?: number
  all?: boolean
}

/** The last lines of what a gate's commands printed. */
const SAID = 10
const PAGE = 1_000

export async function reviews({ home, json, limit, all }: ListOptions): Promise<void> {
  const query = { limit: limit ?? 20, offset: 0, ...(!all && { state: 'pending' as const }) }
  const paint = createPaint(process.stdout)
  const { found, texts } = await askAboutRuns(homeFolder(home), async runs => {
    const found = await runs.call(ListReviews, query)
    const texts = json ? [] : await Promise.all(found.reviews.map(review => describe(runs, review, paint)))
    return { found, texts }
  })
  if (json) return void process.stdout.write(`${JSON.stringify(found, null, 2)}\n`)
  if (texts.length === 0) process.stderr.write('none\n')
  process.stdout.write(texts.map(lines => `${lines.join('\n')}\n`).join('\n'))
}

async function describe(runs: Callee, review: AskedReview, paint: Paint): Promise<string[]> {
  const { id, kind, phase, run_id, run_name, state, decision, decided_by, prompt, reason, created_at, entries } = review
  const place = inline([run_name, phase].filter(part => part !== null).join('/'))
  const isPending = state === 'pending'
  const what = isPending ? paint.yellow(kind) : `${kind} ${decision}${decided_by === null ? '' : ` by ${decided_by}`}`
  const head = `${what}  ${paint.bold(place)}  ${clock(created_at)}  ${paint.dim(`run ${run_id}`)}`
  const lines = [
    head,
    ...printable(prompt || reason)
      .split('\n')
      .map(line => `  ${line}`),
  ]
  if (entries.length > 0) lines.push(`  entries: ${inline(entries.join(', '))}`)
  if (!isPending) return lines
  const said = await lastLines(runs, run_id, phase)
  lines.push(...said.map(line => paint.dim(`  | ${line}`)), ...formLines(review.form))
  lines.push(paint.dim(`  ${commandLine('decide', id)}`))
  return lines
}

async function lastLines(runs: Callee, run_id: string, phase: string): Promise<string[]> {
  let last: string[] = []
  for (let after_seq = 0; ; ) {
    const { lines, next } = await runs.call(GetLogs, { run_id, phase, after_seq, limit: PAGE })
    last = [...last, ...lines.flatMap(({ text }) => printable(text).split('\n'))].slice(-SAID)
    if (next === after_seq) return last
    after_seq = next
  }
}

function formLines(form: readonly Field[]): string[] {
  const rows = form.map(({ name, type, required, choices, description, default: preset }) => [
    `  ${name}`,
    [
      choices ? choices.map(choice => String(choice)).join(' or ') : type,
      ...(preset === undefined ? (required ? ['required'] : []) : [`default ${JSON.stringify(preset)}`]),
    ].join(', '),
    inline(description ?? ''),
  ])
  return table(rows)
}

export interface DecideOptions {
  home?: string
  comment?: string
  values?: string
}

/** Answers a review. Without a daemon the run continues in this process, so it is followed. Returns the exit code. */
export async function decide(typed: string, word: string | undefined, options: DecideOptions): Promise<number> {
  const given = word === undefined ? null : decisionOf(word)
  const home = homeFolder(options.home)
  const reviewId = await reviewIdOf(home, typed)
  const review = await askAboutRuns(home, async runs => {
    const { reviews } = await runs.call(ListReviews, { begins: reviewId, limit: 1 })
    return reviews[0]
  })
  if (!review) throw new CadreError('not_found', `there is no review ${reviewId}`)
  const decision = given ?? (await chosen(home, review))
  const asks = decision === 'approve' && review.form.length > 0 && review.state === 'pending'
  const values =
    options.values !== undefined ? valuesOf(options.values) : asks && isAtTerminal() ? await askForm(review.form) : null
  const answer = {
    decision,
    ...(options.comment !== undefined && { comment: options.comment }),
    ...(values && { values }),
  }
  const log = createLog({ level: 'warn' })
  const { runner, result } = await openRunner(home, 'decide', log, runner => runner.decide(reviewId, answer))
  process.stderr.write(`${DONE[decision]} ${review.phase}\n`)
  if (runner.host) return watch(runner, result.run_id, { home, json: false })
  process.stderr.write(`the run goes on: ${commandLine('watch', result.run_id)}\n`)
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

async function chosen(home: string, review: AskedReview): Promise<Choice> {
  const choices = CHOICES[review.kind]
  if (!isAtTerminal()) {
    throw new CadreError('invalid_request', `what is the decision? \`decide ${review.id}\` takes ${choices.join(', ')}`)
  }
  const lines = await askAboutRuns(home, runs => describe(runs, review, createPaint(process.stderr)))
  // The last line is the command that was just called.
  process.stderr.write(`${lines.slice(0, -1).join('\n')}\n`)
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
