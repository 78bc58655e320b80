// What a person can do with a trigger: run it now, pause and resume it, disable, enable and remove it.

import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { isObject } from '../../json.ts'
import {
  DisableTrigger,
  EnableTrigger,
  PauseTrigger,
  RemoveTrigger,
  ResumeTrigger,
  RunTrigger,
  UpdateTrigger,
} from '../../wire/calls/triggers.ts'
import type { FiringRecord } from '../../wire/records/triggers.ts'
import { ActionButton, useAction, type Work } from '../kit/actions.tsx'
import { commandOf } from '../kit/api.ts'
import { bound, Field, handleSubmit, Select } from '../kit/fields.tsx'
import { Failure, LongText } from '../kit/parts.tsx'
import { go, to } from '../kit/route.ts'
import { BackfillForm } from './backfill.tsx'
import type { Place, Shown } from './place.ts'
import { told } from './warnings.tsx'
import { CATCH_UPS, REASONS, wordOf } from './words.ts'

interface Props {
  of: Shown
  done(): void
}

/** Only a hub has owners. */
const TO_ME = { owner: 'me' }

export function TriggerButtons({ of: trigger, place: { user }, done }: Props & { place: Place }) {
  const { id: trigger_id, name, kind, enabled, paused, source, owner } = trigger
  const held = paused ? 'resume' : 'pause'
  /** The form that is open below the buttons. */
  const open = useSignal<'' | 'pause' | 'resume' | 'backfill'>('')
  const toggle = (name: 'pause' | 'resume' | 'backfill') => () => {
    open.value = open.value === name ? '' : name
  }
  const closed = () => {
    open.value = ''
    done()
  }
  return (
    <div class="trigger-buttons">
      <div class="row">
        <RunNow of={trigger} done={done} />
        <Declared of={trigger} done={done} />
        {enabled && (
          <button type="button" class="plain" aria-expanded={open.value === held} onClick={toggle(held)}>
            {paused ? 'Resume' : 'Pause'}
          </button>
        )}
        {kind === 'schedule' && enabled && (
          <button type="button" class="plain" aria-expanded={open.value === 'backfill'} onClick={toggle('backfill')}>
            Backfill
          </button>
        )}
        {source === 'manual' && (
          <a class="button plain" href={to('triggers', trigger_id, 'edit')}>
            Edit
          </a>
        )}
        {enabled ? (
          <ActionButton
            question={`Disable ${name}? Nothing looks at its occasions until it is enabled again, and none is recorded.`}
            command={commandOf('triggers', 'disable', name)}
            send={send => send(DisableTrigger, { trigger_id })}
            done={done}
          >
            Disable
          </ActionButton>
        ) : (
          <ActionButton
            question={`Enable ${name}? It starts runs again from now on. What passed meanwhile is not caught up.`}
            command={commandOf('triggers', 'enable', name)}
            send={async send => told(await send(EnableTrigger, { trigger_id }))}
            done={done}
          >
            Enable
          </ActionButton>
        )}
        {owner !== undefined && user !== owner && (
          <ActionButton
            question={`Take over ${name}? Its runs start with your rights then, no longer with those of ${owner}.`}
            send={send => send(UpdateTrigger, { trigger_id, ...TO_ME })}
            done={done}
          >
            Take over
          </ActionButton>
        )}
        <ActionButton
          question={`Remove ${name}? It starts nothing any more, and its calendar is gone. Its runs stay.`}
          command={commandOf('triggers', 'remove', name)}
          send={send => send(RemoveTrigger, { trigger_id })}
          done={() => go(to('triggers'))}
        >
          Remove
        </ActionButton>
      </div>
      {open.value === 'pause' && !paused && <PauseForm of={trigger} done={closed} />}
      {open.value === 'resume' && paused && <ResumeForm of={trigger} done={closed} />}
      {open.value === 'backfill' && <BackfillForm of={trigger} done={done} />}
    </div>
  )
}

/** The file of its team says something else than it did when somebody enabled the trigger. */
function Declared({ of: { id: trigger_id, team, source, state, problem }, done }: Props) {
  if (!isObject(source) || state !== 'broken' || problem?.reason !== 'team') return null
  const { name } = source
  return (
    <>
      <ActionButton
        question={`It starts runs as the team.yml of ${team} says now.`}
        send={async send => told(await send(EnableTrigger, { team, name }))}
        done={done}
      >
        Take what the file says
      </ActionButton>
      <ActionButton
        question="It starts runs as it did before, whatever the file says."
        send={send => send(UpdateTrigger, { trigger_id, keep: true })}
        done={done}
      >
        Keep it as it was
      </ActionButton>
    </>
  )
}

/** Starts a run now. Where an earlier run holds it, a second button starts it all the same. */
function RunNow({ of: { id: trigger_id }, done }: Props) {
  const made = useSignal<FiringRecord | null>(null)
  const start =
    (force: boolean): Work =>
    async send => {
      made.value = await send(RunTrigger, { trigger_id, ...(force && { force }) })
    }
  const { run_id = null, state = '', reason = null, detail = null } = made.value ?? {}
  const isHeld = reason === 'overlap' || reason === 'limit'
  return (
    <>
      <ActionButton send={start(false)} done={done}>
        Run now
      </ActionButton>
      {made.value && (
        <Told>
          {run_id !== null ? (
            <p>
              It runs: <a href={to('runs', run_id)}>the run</a>.
            </p>
          ) : (
            <>
              <p>
                {state === 'waiting' ? 'It waits' : 'Nothing started'}: {wordOf(REASONS, reason ?? '')}.
              </p>
              {detail !== null && (
                <p class="quiet">
                  <LongText text={detail} />
                </p>
              )}
              {isHeld && (
                <ActionButton
                  question={
                    reason === 'overlap'
                      ? 'Two runs of it go on at the same time then.'
                      : 'It starts more often than its limit allows then.'
                  }
                  send={start(true)}
                  done={done}
                >
                  Run it all the same
                </ActionButton>
              )}
            </>
          )}
        </Told>
      )}
    </>
  )
}

const Told = ({ children }: { children: ComponentChildren }) => (
  <div class="notice full-width told" role="status">
    {children}
  </div>
)

function PauseForm({ of: { id: trigger_id }, done }: Props) {
  const reason = useSignal('')
  const { busy, error, run } = useAction()
  const pause: Work = async send => {
    await send(PauseTrigger, { trigger_id, reason: reason.value.trim() || null })
    done()
  }
  return (
    <form class="card" aria-label="Pause" onSubmit={handleSubmit(() => run(pause))}>
      <p class="quiet">It starts nothing until somebody resumes it. What passes meanwhile is recorded as skipped.</p>
      <div class="row fields-row">
        <Field
          label="Why"
          maxLength={1_000}
          placeholder="for those who look at it, such as: the wiki is being moved"
          {...bound(reason)}
        />
        <button type="submit" disabled={busy}>
          Pause it
        </button>
      </div>
      <Failure of={error} />
    </form>
  )
}

type CatchUp = 'none' | 'last' | 'all'

function ResumeForm({ of: { id: trigger_id, kind, overlap }, done }: Props) {
  const catchUp = useSignal<CatchUp>('none')
  const { busy, error, run } = useAction()
  const resume: Work = async send => {
    await send(ResumeTrigger, { trigger_id, catch_up: catchUp.value })
    done()
  }
  const choices: CatchUp[] = ['none', 'last', ...(overlap === 'queue' || overlap === 'allow' ? ['all' as const] : [])]
  return (
    <form class="card" aria-label="Resume" onSubmit={handleSubmit(() => run(resume))}>
      <p class="quiet">It goes on from now.</p>
      <div class="row fields-row">
        {kind === 'schedule' && (
          <Select
            label="Of what was due during the pause, start"
            {...bound(catchUp)}
            of={choices.map(each => [each, CATCH_UPS[each]!] as const)}
          />
        )}
        <button type="submit" disabled={busy}>
          Resume it
        </button>
      </div>
      <Failure of={error} />
    </form>
  )
}
