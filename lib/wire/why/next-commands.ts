// The commands that an explanation names to go on with, as their arguments: what shows more, what is repeated, and what is
// decided. Only a top run is resumed, so the explanation of a sub-run names that of its top run.

import type { Explanation } from '../records/run-records.ts'
import { lacksFile, lacksOutputs, type PhaseFacts, type WhyFacts, wasPassedOver } from './facts.ts'

/** Maximum number of failed phases for each of which there is a command that repeats it. */
const PASSED_OVER = 3

export function nextCommands(facts: WhyFacts): string[][] {
  const { root_run_id, chain, review, holder, began } = facts
  const [run] = chain
  const leaf = chain.at(-1)!
  const { cause } = leaf
  // A map or a team phase says nothing itself, and what runs below it said is in their own logs.
  const isBelow = cause?.type === 'map' || cause?.type === 'team'
  const logs = isBelow ? ['tree', leaf.run_id] : ['logs', leaf.run_id, ...(cause ? ['--phase', cause.name] : [])]
  const resume = ['resume', root_run_id]
  const hasEnded = run.state === 'failed' || run.state === 'cancelled'
  if (hasEnded && !began)
    return [
      ['show', run.run_id],
      ['dispatch', run.team],
    ]
  switch (run.state) {
    case 'completed':
      return [
        ['show', run.run_id],
        ...(facts.unfilled === null ? [] : [repeatOf(facts, facts.unfilled)]),
        ...repeats(facts),
      ]
    case 'failed':
      if (facts.unfilled !== null) return [['show', leaf.run_id], repeatOf(facts, facts.unfilled)]
      return lacksOutputs(leaf)
        ? [['show', leaf.run_id], ...outputsAgain(facts)]
        : [logs, resume, ...repeatsOfItems(facts)]
    case 'cancelled':
      return [resume, ...repeatsOfItems(facts)]
    case 'awaiting_input':
      return [['reviews'], ...(review === null ? [] : [['decide', review]])]
    case 'queued':
    case 'crashed':
      return [...(holder === null ? [] : [['why', holder]]), ['watch', root_run_id], ['cancel', run.run_id]]
    default:
      return [['watch', root_run_id], logs]
  }
}

/** What makes missing outputs again. Only a top run is resumed, and a sub-run names it. */
function outputsAgain({ root_run_id, chain }: WhyFacts): string[][] {
  if (!lacksFile(chain.at(-1)!)) return []
  return [chain[0].run_id === root_run_id ? ['resume', root_run_id, '--outputs'] : ['why', root_run_id]]
}

/** What repeats a phase of the last run of the chain. A resume names a phase of the top run. */
function repeatOf({ root_run_id, chain }: WhyFacts, phase: string): string[] {
  const [run, ...below] = chain
  if (run.run_id !== root_run_id) return ['why', root_run_id]
  return ['resume', root_run_id, '--from', below.length === 0 ? phase : run.cause!.name]
}

/** The commands that repeat what failed in a completed run. Only a top run is resumed, and a sub-run names it. */
function repeats(facts: WhyFacts): string[][] {
  const {
    root_run_id,
    chain: [run],
  } = facts
  // `--from` would repeat the items of a map that completed.
  const passedOver = run.phases.filter(phase => wasPassedOver(phase) && phase.type !== 'map')
  if (run.run_id !== root_run_id) return passedOver.length > 0 || hasPassedOver(facts) ? [['why', root_run_id]] : []
  return [
    ...passedOver.slice(0, PASSED_OVER).map(({ name }) => ['resume', root_run_id, '--from', name]),
    ...repeatsOfItems(facts),
  ]
}

/** Whether `resume --failed` repeats more than a resume does: items of maps, and what failed in runs below. */
function hasPassedOver({ chain: [run], below }: WhyFacts): boolean {
  const hasItems = (phase: PhaseFacts) =>
    phase.type === 'map' && (phase.state === 'completed' ? (phase.items?.failed ?? 0) > 0 : wasPassedOver(phase))
  return below.items.length > 0 || below.passedOver.length > 0 || run.phases.some(hasItems)
}

/** What shows why items failed that were passed over, and what repeats them. */
function repeatsOfItems(facts: WhyFacts): string[][] {
  const {
    root_run_id,
    chain: [run],
  } = facts
  if (!hasPassedOver(facts) || run.run_id !== root_run_id) return []
  return [
    ['tree', root_run_id, '--failed'],
    ['resume', root_run_id, '--failed'],
  ]
}

/**
 * The explanation with the commands that can be given now. A top run, in `rootState`, may go on although a sub-run failed.
 */
export async function withCommandsOfNow(
  found: Explanation,
  rootState: string,
  hasLines: (run_id: string, phase: string) => Promise<boolean>,
): Promise<Explanation> {
  const next: string[][] = []
  for (const args of found.next) {
    const [command, run_id = '', flag, phase] = args
    const canResume = rootState === 'failed' || rootState === 'cancelled'
    if (command === 'resume' && flag === undefined && !canResume) next.push(['why', run_id])
    else if (command !== 'logs' || phase === undefined || (await hasLines(run_id, phase))) next.push(args)
  }
  return { ...found, next }
}
