// Asks the systems of agents whether the credentials of this daemon do, and says whose they are and what they lack.

import { useSignal } from '@preact/signals'
import type { Finding } from '../../wire/calls/agents.ts'
import { ExamineAgents } from '../../wire/calls/agents.ts'
import { call, token } from '../kit/api.ts'
import { Act, TokenForm } from '../kit/parts.tsx'
import { State } from '../kit/state.tsx'

const STATES: Record<Finding['state'], { state: string; word: string }> = {
  fine: { state: 'completed', word: 'fine' },
  wrong: { state: 'failed', word: 'wrong' },
  unset: { state: 'pending', word: 'not set up' },
  settings: { state: 'skipped', word: 'not asked' },
}

/** Without `agent`, all of them are asked. */
export function Doctor({ agent }: { agent?: string }) {
  const found = useSignal<readonly Finding[] | null>(null)
  const asked = useSignal(false)
  const examine = async () => {
    asked.value = true
    if (token.value === null) return
    found.value = (await call(ExamineAgents, agent === undefined ? {} : { agent })).findings
  }
  return (
    <section aria-label="Doctor">
      <Act plain work={examine}>
        {agent === undefined ? 'Check all credentials' : 'Check the credential'}
      </Act>
      {asked.value && <TokenForm />}
      {found.value && (
        <ul class="chain" role="status">
          {found.value.map(({ agent: name, state, who, missing, text }, index) => (
            <li key={index}>
              <State of={STATES[state].state} bare />
              <div>
                <strong>{name}</strong> <span class="quiet small">{who ?? STATES[state].word}</span>
                {missing.length > 0 && <p>lacks {missing.join(', ')}</p>}
                <p class="quiet wrap">{text}</p>
              </div>
            </li>
          ))}
        </ul>
      )}
    </section>
  )
}
