// Continues an ended run: from where it failed, from a phase, or with its failed items only. A daemon deletes the values of
// secret inputs when a run ends, so this form asks for them when the daemon does.

import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { ResumeRun } from '../../wire/calls/runs.ts'
import { ActionButton, useAction, type Work } from '../kit/actions.tsx'
import { commandOf, Refusal } from '../kit/api.ts'
import { boundTo, Field, handleSubmit } from '../kit/fields.tsx'
import { Failure } from '../kit/parts.tsx'
import type { Live } from './live.ts'

interface Props {
  live: Live
  /** The part to repeat. The default is all that did not complete. */
  what?: { from_phase?: string; failed?: boolean; outputs?: boolean }
  plain?: boolean
  /** Why the reader may not, and who may. */
  forbidden?: string | null
  children: ComponentChildren
}

export function Resume({ live, what = {}, plain = false, forbidden = null, children }: Props) {
  const missing = useSignal<readonly string[]>([])
  const typed = useSignal<Record<string, string>>({})
  const { busy, error, run } = useAction()

  const resume: Work = async send => {
    const given = missing.value.length > 0 ? { inputs: typed.value } : {}
    try {
      await send(ResumeRun, { run_id: live.id, ...what, ...given })
    } catch (thrown) {
      const names = secretsOf(thrown)
      if (names.length === 0 || missing.value.length > 0) throw thrown
      missing.value = names
      return
    }
    missing.value = []
    typed.value = {}
    await live.again()
  }
  if (missing.value.length === 0) {
    return (
      <ActionButton
        plain={plain}
        forbidden={forbidden}
        command={commandOf('resume', live.id, ...flagsOf(what))}
        send={resume}
      >
        {children}
      </ActionButton>
    )
  }
  return (
    <form class="card" autocomplete="off" onSubmit={handleSubmit(() => run(resume))}>
      <p>Secret inputs are kept only until a run ends. Give them again.</p>
      <div class="grid">
        {missing.value.map(name => (
          <Field key={name} label={name} type="password" required {...boundTo(typed, name)} />
        ))}
      </div>
      <div class="row">
        <button type="submit" disabled={busy}>
          {children}
        </button>
        <button
          type="button"
          class="plain"
          onClick={() => {
            missing.value = []
          }}
        >
          Close
        </button>
      </div>
      <Failure of={error} />
    </form>
  )
}

/** The same part as the command line names it. */
const flagsOf = ({ from_phase, failed, outputs }: NonNullable<Props['what']>): string[] => [
  ...(from_phase === undefined ? [] : ['--from', from_phase]),
  ...(failed ? ['--failed'] : []),
  ...(outputs ? ['--outputs'] : []),
]

/** The secret inputs that the daemon asks for again. */
function secretsOf(thrown: unknown): string[] {
  if (!(thrown instanceof Refusal)) return []
  return thrown.details.flatMap(({ path }) => /^\/inputs\/([^/]+)$/.exec(path)?.[1] ?? [])
}
