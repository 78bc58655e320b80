// The form of a trigger, to change it or to add one. Before it is saved, it shows when a schedule would be due, on which
// days a change of clocks moves that, what a hook would do with a delivery, and which files a watch would report.

import { type Signal, useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useLayoutEffect } from 'preact/hooks'
import { AddTrigger, UpdateTrigger } from '../../wire/calls/triggers.ts'
import { useAction, type Work } from '../kit/actions.tsx'
import { Refusal } from '../kit/api.ts'
import { handleSubmit, Refused } from '../kit/fields.tsx'
import { Fields, type Typed, typedOf } from '../kit/forms.tsx'
import { Failure, useLoaded } from '../kit/parts.tsx'
import { go, route, to } from '../kit/route.ts'
import { DeliveryPreview } from './delivery-preview.tsx'
import { KindChoice, Options, Rules, What } from './form-fields.tsx'
import { HookCondition, HookFields, schemeIn } from './hook-fields.tsx'
import { NO_SECRET, secretOf, showOnce } from './hook-secret.tsx'
import { MayNot } from './may-not.tsx'
import { ownPart, type SpecTexts, type Texts } from './own-fields.ts'
import { getTrigger, inPlace, type Place, type Shown } from './place.ts'
import { SlotPreview, useSettled } from './slot-preview.tsx'
import { ChainFields, WatchFields } from './source-fields.tsx'
import { SourcePreview } from './source-preview.tsx'
import { addBody, inputsOf, newTexts, restOf, templated, textsOf, updateBody } from './spec-body.ts'
import { told } from './warnings.tsx'

/** The page `#/triggers/new?team=…`. */
export function NewTrigger({ place, children }: { place: Place; children?: ComponentChildren }) {
  return (
    <main>
      <p class="crumbs">
        <a href={to('triggers')}>Triggers</a>
      </p>
      <header class="top">
        <h1>Add a trigger</h1>
      </header>
      {children && <div class="row filters">{children}</div>}
      {place.mayChange ? <TriggerForm place={place} /> : <MayNot place={place} />}
    </main>
  )
}

/** What the templates of a kind may name. */
const TEMPLATES: Record<Shown['kind'], ComponentChildren> = {
  schedule: (
    <>
      <code>{'{{ slot }}'}</code> is the time that was due
    </>
  ),
  hook: (
    <>
      <code>{'{{ body.name }}'}</code>, and so on with <code>headers</code>, <code>query</code> and{' '}
      <code>delivery</code>
    </>
  ),
  watch: (
    <>
      <code>{'{{ files }}'}</code> are the files that came or changed
    </>
  ),
  chain: (
    <>
      <code>{'{{ run.outputs.name }}'}</code>, and so on with what ended
    </>
  ),
}

/** The kind and the team may be in the address. */
function begin(place: Place, query: URLSearchParams): SpecTexts {
  const kind = place.kinds.find(each => each === query.get('kind')) ?? 'schedule'
  return { ...newTexts(kind, place), team: query.get('team') ?? '' }
}

/** Without `trigger` it adds one. `done` is called when it is saved. A trigger that is read again while it is edited does not change what was typed. */
export function TriggerForm({ place, trigger, done }: { place: Place; trigger?: Shown; done?(): void }) {
  const begun = useSignal(trigger)
  const texts = useSignal<SpecTexts>(trigger ? textsOf(trigger) : begin(place, route.value.query))
  const kind = texts.value.kind as Shown['kind']
  const typed = useSignal<Typed>({})
  /** It is no text of the form, because previews send those. */
  const secret = useSignal(NO_SECRET)
  const { busy, error, run } = useAction()
  const team = texts.value.team?.trim() ?? ''
  const fields = useTeam(place, team)
  const known = fields.data ?? []
  // An effect after the form is drawn would overwrite what the user types at once.
  useLayoutEffect(() => {
    if (fields.data) typed.value = { ...typedOf(known, begun.value?.inputs ?? {}), ...typed.value }
  }, [fields.data, begun.value])

  /** While nobody knows what the team asks for, its inputs stay as they are. */
  const inputsNow = () => (fields.data ? inputsOf(known, typed.value) : (begun.value?.inputs ?? {}))
  /** What decides whether an occasion starts a run, and with what. */
  const judged = () => {
    const { team, when, inputs } = restOf(texts.value, inputsNow(), place)
    return { ...ownPart(texts.value), ...(team !== '' && { team }), when, inputs }
  }
  const save: Work = async send => {
    const inputs = inputsNow()
    const before = begun.value
    const given = kind === 'hook' && !before ? secretOf(schemeIn(texts), secret.value, true) : null
    const saved = before
      ? await send(UpdateTrigger, {
          ...{ trigger_id: before.id, revision: before.revision },
          ...updateBody(before, texts.value, inputs),
        })
      : await send(AddTrigger, {
          ...{ ...inPlace(place), kind, ...addBody(texts.value, inputs, place) },
          ...(given && { secret: given.secret }),
        })
    if (given) showOnce(saved.id, given)
    told(saved)
    done?.()
    go(to('triggers', saved.id))
  }
  return (
    <form aria-label="Trigger" onSubmit={handleSubmit(() => run(save))}>
      <Refused.Provider value={error}>
        <div class="columns">
          <div>
            {!trigger && place.kinds.length > 1 && <KindChoice place={place} texts={texts} />}
            <What place={place} texts={texts} />
            {kind === 'schedule' && <Rules texts={texts} />}
            {kind === 'watch' && <WatchFields texts={texts} />}
            {kind === 'chain' && <ChainFields texts={texts} place={place} />}
            {kind === 'hook' && !trigger && <HookFields texts={texts} secret={secret} />}
            {kind === 'hook' && <HookCondition texts={texts} />}
            <Failure of={fields.error} />
            {known.length > 0 && (
              <>
                <h2>Inputs</h2>
                <p class="quiet small">A value may be a template: {TEMPLATES[kind]}.</p>
                <div class="grid">
                  <Fields of={templated(known)} typed={typed} prefix="input" />
                </div>
              </>
            )}
            <SecretInputs of={known.filter(({ secret }) => secret).map(({ name }) => name)} />
            <Options texts={texts} kind={kind} isDispatched={place.realm_id !== undefined} />
          </div>
          {kind === 'schedule' && <SlotPreview texts={texts} place={place} before={begun.value} />}
          {(kind === 'watch' || kind === 'chain') && <SourcePreview texts={texts} place={place} />}
          {kind === 'hook' && <DeliveryPreview place={place} of={begun.value} changes={judged} />}
        </div>
      </Refused.Provider>
      <Stale of={error} begun={begun} texts={texts} typed={typed} />
      <div class="row fields-row">
        <button type="submit" disabled={busy}>
          {trigger ? 'Save' : 'Add it'}
        </button>
        <a class="button plain" href={trigger ? to('triggers', trigger.id) : to('triggers')}>
          Leave it
        </a>
      </div>
    </form>
  )
}

/** The inputs of the team that is typed, once it is one. */
function useTeam(place: Place, team: string) {
  const settled = useSettled(team)
  return useLoaded(`fields ${settled}`, async () => (settled === '' ? [] : place.fieldsOf(settled)))
}

function SecretInputs({ of: names }: { of: readonly string[] }) {
  if (names.length === 0) return null
  return (
    <p class="small quiet wrap">
      {names.join(', ')}: a trigger keeps its inputs, and so takes no secret. Use a named secret in the team.
    </p>
  )
}

/** Why it could not be saved. Somebody else's change is told apart from other refusals. */
function Stale({
  of: error,
  begun,
  texts,
  typed,
}: {
  of: unknown
  begun: Signal<Shown | undefined>
  texts: Texts
  typed: Signal<Typed>
}) {
  const isConflict = error instanceof Refusal && error.code === 'conflict'
  const before = begun.value
  const found = useLoaded(`stale ${before?.revision} ${isConflict}`, async () =>
    isConflict && before ? getTrigger(before.id) : null,
  )
  const newer = found.data
  if (!isConflict || !newer || newer.revision === before?.revision) return <Failure of={error} />
  const load = () => {
    texts.value = textsOf(newer)
    typed.value = {}
    begun.value = newer
  }
  return (
    <div class="notice failed" role="alert">
      <p>
        Somebody changed this trigger after you opened it: it is at revision {newer.revision}, and you began at{' '}
        {before?.revision}. Nothing was saved.
      </p>
      <p class="row">
        <button type="button" class="plain" onClick={load}>
          Load it as it is now
        </button>
        <span class="quiet small">What you typed is lost then.</span>
      </p>
    </div>
  )
}
