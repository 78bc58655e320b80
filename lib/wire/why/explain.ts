// Puts the explanation of a run into words: the first leaf that failed, the causal chain from the run to it, which
// failures were tolerated, and what was written outside. Each fact is one line, whatever the errors contain. A daemon
// explains its runs and reports that to its hub; a hub explains only what it alone knows, such as the queue. Pure:
// lib/run/views/why.ts has the facts of a daemon, and lib/hub/queue/why.ts those of a hub.

import { formatDuration } from '../../duration.ts'
import { oneLine } from '../../text/one-line.ts'
import { cut, jsonBytes, within } from '../budget.ts'
import type { Explanation, FailedItems, Written } from '../records/run-records.ts'
import type { StartedBy } from '../records/started-by.ts'
import { doubtfulFirst, fateOf, isCertain, nameOfWrite, PASSED_OVER, starterText, tookMs } from '../records/words.ts'
import { lacksFile, lacksOutputs, type RunFacts, type WhyFacts, wasPassedOver } from './facts.ts'
import { nextCommands } from './next-commands.ts'

/** Maximum number of sentences for the chain. */
const CHAIN = 8
/** What a hub stores of an explanation, in bytes of JSON; few have a hundredth of that. */
const MOST_BYTES = 256 * 1024

export function explain(facts: WhyFacts): Explanation {
  const { chain, written } = facts
  const [run] = chain
  const leaf = chain.at(-1)!
  const tolerated = [...chain.flatMap(toleratedIn), ...facts.below.passedOver]
  const undelivered = chain.flatMap(({ deliveries }) =>
    deliveries
      .filter(({ state }) => state === 'failed' || state === 'unknown')
      .map(({ phase, event, error }) => `${phase}, ${event}${error === null ? '' : ` (${oneLine(error)})`}`),
  )
  const cancelled = chain.flatMap(({ run_id, phases }) =>
    phases
      .filter(({ state, reason }) => state === 'cancelled' || (state === 'skipped' && reason === 'upstream'))
      .map(({ name, state }) => ({ run_id, phase: name, state })),
  )
  const items = [...chain.flatMap(failedItemsOf), ...facts.below.items]
  const parts = [
    ...leafFirst(chain),
    ...items.map(itemsText),
    facts.unfilled !== null
      ? byHand(facts.unfilled)
      : lacksFile(leaf)
        ? MADE_AGAIN
        : lacksOutputs(leaf)
          ? INCURABLE
          : '',
    listText(chain.some(({ state }) => state === 'failed') ? 'Failed, too:' : 'Failed:', chain.flatMap(othersIn)),
    listText(PASSED_OVER, tolerated),
    listText('Events that listeners did not deliver, or may not have delivered:', undelivered),
    writtenText(written),
    listText('Not asked:', facts.unasked),
    cancelledText(cancelled),
  ]
  return {
    run_id: run.run_id,
    lines: parts.filter(Boolean).map(oneLine),
    next: [...nextCommands(facts), ...(facts.mayAsk ? [['why', run.run_id, '--ask']] : [])],
    chain: chain.map(({ run_id, run_name, team, state, cause, error }) => {
      return { run_id, run_name, team, state, phase: cause?.name ?? null, error: cause?.error ?? error }
    }),
    written: [...(written ?? [])],
    cancelled,
    ...(items.length > 0 && { items }),
  }
}

/** Of a map that failed with its only failed item, the sentence about that item is enough. */
function failedItemsOf({ run_id, phases }: RunFacts): FailedItems[] {
  return phases.flatMap(({ name, state, items }) =>
    items && items.failed > (state === 'completed' ? 0 : 1) ? [{ run_id, phase: name, ...items }] : [],
  )
}

/** `3 of 500 items of each failed.` */
export const itemsFailed = ({ phase, passed_over, total, failed }: FailedItems): string =>
  `${failed} of ${total} items of ${phase} failed${passed_over === undefined ? '' : ` in phase ${passed_over}, which was passed over`}`

/** `3 of 500 items of each failed: 2 × HTTP 400 (137, 311); 1 × timed out (9).` */
function itemsText(items: FailedItems): string {
  const { failed, causes } = items
  const told = causes.reduce((sum, { count }) => sum + count, 0)
  const texts = causes.map(({ message, count, keys }) => {
    const more = count > keys.length ? ', …' : ''
    return `${count} × ${mentioned(message)} (${keys.map(oneLine).join(', ')}${more})`
  })
  if (told > 0 && told < failed) texts.push(`${failed - told} × other errors`)
  return `${itemsFailed(items)}${texts.length > 0 ? `: ${texts.join('; ')}` : ''}.`
}

const INCURABLE =
  'A resume would end the same way, because a run keeps the team.yml of its start: correct team.yml, and start a new run.'
const MADE_AGAIN = 'Put the file there, and make the outputs again.'

const byHand = (phase: string): string =>
  `A person completed phase ${phase} by hand, and its result is read there: repeat the phase, and give its data with --values.`

/** Maximum length of an error that is only mentioned. */
const MENTIONED = 160

/** What failed and was not passed over, besides the phase that decided the end of the run. */
function othersIn({ phases, cause }: RunFacts): string[] {
  return phases
    .filter(phase => phase.state === 'failed' && !phase.tolerated && phase !== cause)
    .map(({ name, reason, error, cleanup }) => {
      return `${cleanup ? 'cleanup ' : ''}phase ${name} (${mentioned(error?.message ?? `${reason}`)})`
    })
}

function mentioned(text: string): string {
  const message = oneLine(text)
  return message.length > MENTIONED ? `${message.slice(0, MENTIONED)}…` : message
}

const toleratedIn = ({ phases }: RunFacts): string[] =>
  phases
    .filter(wasPassedOver)
    .map(({ name, reason, error }) => `phase ${name} (${oneLine(error?.message ?? `${reason}`)})`)

/** The explanation with who started its run; a sub-run has none. */
export function withStarter<E extends Explanation>(
  found: E,
  by: StartedBy | null,
): E & { started_by: StartedBy | null } {
  const text = by && starterText(by)
  return {
    ...found,
    lines: text === null ? found.lines : [...found.lines, oneLine(`Started by ${text}.`)],
    started_by: by,
  }
}

/**
 * The explanation as far as it fits into `room` bytes of JSON: with fewer steps of the way, fewer writes and shorter texts.
 */
export function bounded(found: Explanation, room: number): Explanation {
  const most = Math.min(room, MOST_BYTES)
  if (jsonBytes(found) <= most) return found
  const part = Math.floor(most / 6)
  const { lines, next, chain, written, cancelled, items } = found
  const shorter = chain.map(({ error, ...cause }) => ({
    ...cause,
    error: error && { ...error, message: cut(error.message, 1_000) },
  }))
  const ends =
    shorter.length <= 2 * MOST_STEPS ? shorter : [...shorter.slice(0, MOST_STEPS), ...shorter.slice(-MOST_STEPS)]
  return {
    run_id: found.run_id,
    lines: within(
      lines.map(line => cut(line, Math.floor(part / 20))),
      jsonBytes,
      part,
    ),
    next: next.filter(args => jsonBytes(args) < part / 10),
    chain: within(ends, jsonBytes, part),
    written: within(doubtfulFirst(written), jsonBytes, part),
    cancelled: within(cancelled, jsonBytes, part),
    ...(items && { items: within(items, jsonBytes, part) }),
  }
}

/** Steps at each end of a long chain. */
const MOST_STEPS = 20

/** The sentence about the leaf, where the failure began, and then those about the runs above it from the top down. */
function leafFirst(chain: readonly RunFacts[]): readonly string[] {
  return [...chain.slice(-1).map(sentence), ...shortened(chain.slice(0, -1))]
}

function sentence(run: RunFacts): string {
  const { run_id, run_name, team, call_depth, state, reason, error, cause, turn } = run
  const place = run.environment === null ? '' : ` in the environment ${run.environment}`
  const name = `${call_depth === 0 ? 'Run' : 'Sub-run'} ${run_name ? `${oneLine(run_name)} (${run_id})` : run_id} of ${team}${place}`
  const ms = tookMs(run)
  const took = ms === null ? '' : ` after ${formatDuration(ms)}`
  if (state === 'completed') return `${name} completed${took}${error ? `, but ${closed(error.message)}` : '.'}`
  if (state === 'cancelled') {
    const why = reason && reason !== 'cancelled' ? ` (${reason})` : ''
    return `${name} was cancelled${took}${why}${error === null ? '' : `: ${error.message}`}.`
  }
  if (state === 'failed' && !cause) {
    return `${name} failed${took}: ${error?.message ?? (reason === 'timeout' ? 'it took longer than its timeout' : reason)}.`
  }
  if (state === 'crashed') return `${name} has not ended, and its daemon has been silent for at least five minutes.`
  if (turn !== null) return `${name} waits for ${turn}.`
  if (!cause) return `${name} is ${state}.`
  const agent =
    cause.type === 'standard' ? ` (${cause.agent}${cause.action ? `.${cause.action}` : ''})` : ` (${cause.type})`
  if (state === 'awaiting_input') return `${name} waits for a person: phase ${cause.name}${agent}, ${cause.reason}.`
  if (cause.state === 'pending')
    return `${name} is ${state}, and its phase ${cause.name}${agent} waits for ${cause.waiting}.`
  const waits = cause.waiting === null ? '' : `, and waits: ${cause.waiting}`
  if (state === 'running')
    return `${name} is in phase ${cause.name}${agent}, ${cause.turn ?? `attempt ${cause.attempt}`}${waits}.`
  // The error of a sub-run is part of the sentence about the sub-run, which follows.
  const below = cause.error?.code === 'sub_run_failed' || cause.error?.code === 'item_failed'
  const how = cause.turn ? ` in ${cause.turn}` : cause.attempt > 1 ? ` on attempt ${cause.attempt}` : ''
  if (below) return `${name} failed${took} because its phase ${cause.name}${agent} did.`
  const hint = cause.error?.hint ? ` (${cause.error.hint})` : ''
  return `${name} failed${took} because its phase ${cause.name}${agent} failed${how}: ${closed(`${oneLine(cause.error?.message ?? `${cause.reason}`)}${hint}`)}`
}

/** A full stop behind a command would be pasted with it. */
const closed = (text: string): string =>
  /: (?:bun \S*daemon\.ts|(?:npx )?\S*cadre) [^:]*$/.test(text) ? text : `${text}.`

/** Shortens a long chain: of a thousand levels the sentences in the middle repeat the same failure. */
function shortened(runs: readonly RunFacts[]): readonly string[] {
  if (runs.length <= CHAIN) return runs.map(sentence)
  const left = runs.length - CHAIN + 1
  return [
    ...runs.slice(0, CHAIN - 3).map(sentence),
    `${left} more sub-runs below it failed the same way.`,
    ...runs.slice(-2).map(sentence),
  ]
}

function listText(lead: string, items: readonly string[]): string {
  if (items.length === 0) return ''
  const more = items.length > 10 ? `; and ${items.length - 10} more` : ''
  return `${lead} ${items.slice(0, 10).join('; ')}${more}.`
}

function writtenText(written: readonly Written[] | null): string {
  if (written === null) return 'Only the daemon of the run knows what the run wrote to other systems.'
  if (written.length === 0) {
    return 'Written outside: nothing that must happen only once. Writes that can be repeated, such as PUT and uploads, are not listed.'
  }
  const shown = doubtfulFirst(written)
    .slice(0, 10)
    .map(write => {
      const what = write.url ?? write.id
      const doubt = isCertain(write) ? '' : `, which ${fateOf(write)}`
      return `${nameOfWrite(write)}${what ? ` (${what})` : ''}${doubt}`
    })
  const more = written.length > 10 ? `, and ${written.length - 10} more` : ''
  return `Written outside: ${shown.join('; ')}${more}.`
}

function cancelledText(cancelled: Explanation['cancelled']): string {
  if (cancelled.length === 0) return ''
  const names = [...new Set(cancelled.map(({ phase }) => phase))]
  return `Because of it ${names.length === 1 ? 'phase' : 'phases'} ${names.slice(0, 10).join(', ')}${names.length > 10 ? ' and more' : ''} did not complete.`
}
