// Parts of a plan that other pages show as well: what is written where and with whose credential, and the inputs of a phase.

import type { Plan, PlannedPhase } from '../../wire/records/plans.ts'
import { Json, ScrollTable } from '../kit/parts.tsx'

const EFFECTS: Record<string, string> = {
  once: 'once, and never twice',
  idempotent: 'the same when repeated',
  'by entry': 'depends on the entry',
}

export function Writes({ of: { writes } }: { of: Pick<Plan, 'writes'> }) {
  if (writes.length === 0) {
    return <p class="quiet">It writes nothing to other systems, except what its commands do.</p>
  }
  return (
    <ScrollTable head={['Phase', 'Agent', 'Where to', 'Credential', 'Written']}>
      {writes.map((write, index) => (
        <tr key={index}>
          <td>{write.phase.join(' › ')}</td>
          <td>{write.action ? `${write.agent}.${write.action}` : write.agent}</td>
          <td class="wrap">{write.to}</td>
          <td>{write.credentials.join(', ') || 'none'}</td>
          <td>{EFFECTS[write.effect] ?? write.effect}</td>
        </tr>
      ))}
    </ScrollTable>
  )
}

/** The inputs of a phase, as the file of the team has them. */
export function PhaseInputs({ of: { when, items, inputs, entries } }: { of: Partial<PlannedPhase> }) {
  const given = {
    ...(when !== undefined && { when }),
    ...(items !== undefined && { items }),
    ...(inputs !== undefined && { inputs }),
  }
  return (
    <>
      {Object.keys(given).length > 0 && <Json of={given} />}
      {entries?.map((entry, index) => (
        <Json key={index} of={entry} />
      ))}
    </>
  )
}
