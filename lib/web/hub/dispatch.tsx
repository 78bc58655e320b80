// Dispatches a team to the daemons of a realm, with a form that is made of the team's inputs.

import { useSignal } from '@preact/signals'
import { useEffect, useLayoutEffect } from 'preact/hooks'
import type { JsonObject } from '../../json.ts'
import { ListDaemons } from '../../wire/calls/daemons.ts'
import { DispatchRun } from '../../wire/calls/dispatch.ts'
import { GetPackage, ListVersions } from '../../wire/calls/packages.ts'
import { ListRealmTeams } from '../../wire/calls/realms.ts'
import { GetRun } from '../../wire/calls/runs.ts'
import type { Environments } from '../../wire/needs.ts'
import { useAction, type Work } from '../kit/actions.tsx'
import { command, commandOf } from '../kit/api.ts'
import { CopyCommand } from '../kit/copyable.tsx'
import { bound, boundTo, Field, handleSubmit, nameChoices, Select } from '../kit/fields.tsx'
import { Fields, inputOptions, optionOf, type Typed, typedOf, valuesOf } from '../kit/forms.tsx'
import { Empty, Failure, useLoaded } from '../kit/parts.tsx'
import { go, route, to } from '../kit/route.ts'
import { hub } from './kit/api.ts'
import { may, NoRealm, RealmSelect, realms, useRealm } from './kit/realm-choice.tsx'

/** A choice of those that the team allows, or any name. */
function Environment({ of, ...chosen }: { of: Environments | undefined; value: string; set(value: string): void }) {
  if (!of) return <Field label="Environment" placeholder="staging; empty: the plain settings" {...chosen} />
  const usual: [string, string][] = of.default === null ? [['', 'choose']] : [['', of.default]]
  const others = of.allow.filter(name => name !== of.default).map((name): [string, string] => [name, name])
  return <Select label="Environment" {...chosen} of={[...usual, ...others]} />
}

export function Dispatch() {
  const realm = useRealm()
  const { query } = route.value
  const like = query.get('like')
  const team = useSignal(query.get('team') ?? '')
  const version = useSignal('')
  const realmId = useSignal(query.get('realm') ?? '')
  const chosen = realms.value?.find(({ id }) => id === realmId.value) ?? realm
  /** The inputs of the run that is dispatched again. */
  const before = useSignal<JsonObject>({})
  const typed = useSignal<Typed>({})
  const about = useSignal({ name: '', daemon: '', labels: '', workspace: '', environment: '', timeout: '' })
  const { busy, error, run } = useAction()
  const listed = useLoaded(`teams ${chosen?.id}`, async () =>
    chosen ? (await hub(ListRealmTeams, { realm_id: chosen.id, limit: 100 })).teams.map(({ team }) => team) : [],
  )
  const versions = useLoaded(`versions ${team.value}`, async () =>
    team.value === '' ? [] : (await hub(ListVersions, { team: team.value, limit: 100 })).versions,
  )
  const daemons = useLoaded(`daemons ${chosen?.id}`, async () =>
    chosen ? (await hub(ListDaemons, { realm_id: chosen.id, limit: 100 })).daemons : [],
  )

  const reference = version.value ? `${team.value.trim()}@${version.value}` : team.value.trim()
  const found = useLoaded(`team ${reference}`, async () => reference && hub(GetPackage, { team: reference }))
  const opened = found.data || null
  // An effect after the form is drawn would overwrite what the user types at once.
  useLayoutEffect(() => {
    if (opened) typed.value = typedOf(opened.inputs, before.value)
  }, [opened])
  useEffect(() => {
    if (like === null) return
    void run(async () => {
      const known = await hub(GetRun, { run_id: like })
      before.value = known.inputs
      team.value = known.team
      realmId.value = known.realm_id ?? ''
      const { run_name, workspace, environment, labels = {} } = known
      const written = Object.entries(labels).map(([name, value]) => (value === 'yes' ? name : `${name}=${value}`))
      about.value = {
        ...about.value,
        ...{ name: run_name ?? '', workspace: workspace ?? '', environment: environment ?? '' },
        labels: written.join(', '),
      }
    })
  }, [like])

  if (realms.value && !chosen) {
    return (
      <main>
        <h1>Dispatch</h1>
        <NoRealm />
      </main>
    )
  }
  const choose = (name: string) => {
    team.value = name
    version.value = ''
    before.value = {}
  }
  const start: Work = async send => {
    const labels = about.value.labels
      .split(',')
      .map(each => each.trim())
      .filter(Boolean)
    const request = {
      realm_id: chosen!.id,
      team: reference,
      inputs: valuesOf(
        opened!.inputs.filter(({ secret }) => !secret),
        typed.value,
      ),
      ...(about.value.name.trim() && { run_name: about.value.name.trim() }),
      ...(about.value.daemon && { daemon_id: about.value.daemon }),
      ...(labels.length > 0 && { requires: { labels } }),
      ...(about.value.workspace.trim() && { workspace: about.value.workspace.trim() }),
      ...(about.value.environment.trim() && { environment: about.value.environment.trim() }),
      ...(about.value.timeout.trim() && { queue_timeout: about.value.timeout.trim() }),
    }
    const { run_id } = await send(DispatchRun, request)
    go(to('runs', run_id))
  }
  /** Whether the command line has options for all that was chosen. */
  const isOfCommand = [about.value.daemon, about.value.labels, about.value.timeout].every(text => text.trim() === '')
  const secrets = opened?.inputs.filter(({ secret }) => secret) ?? []
  return (
    <main>
      <header class="top">
        <h1>Dispatch</h1>
      </header>
      {chosen && !may(chosen, 'operator') && (
        <div class="notice awaiting_input">
          <p>
            You are {chosen.my_role} of {chosen.name}. Operators and admins dispatch: ask one of them for that role.
          </p>
        </div>
      )}
      <div class="row filters">
        {(realms.value?.length ?? 0) > 1 && <RealmSelect value={chosen?.id ?? ''} set={bound(realmId).set} />}
        <Select
          label="Team"
          value={team.value}
          set={choose}
          of={nameChoices('choose', listed.data ?? [], team.value)}
        />
        <Select
          label="Version"
          {...bound(version)}
          of={nameChoices(
            'newest',
            (versions.data ?? []).map(each => each.version),
            version.value,
          )}
        />
      </div>
      <Failure of={error ?? found.error} />
      {listed.data?.length === 0 && team.value === '' && (
        <Empty>
          <p>{chosen?.name} may run no team yet.</p>
          <p>
            Publish one with <code>{command} publish FOLDER</code>, then put it on the list of the{' '}
            <a href={to('realms', chosen!.id, 'teams')}>realm</a>.
          </p>
        </Empty>
      )}
      {opened && (
        <form class="card" aria-label="Dispatch" onSubmit={handleSubmit(() => run(start))}>
          <h2>
            {opened.name} <span class="quiet">{opened.version}</span>
          </h2>
          {opened.description && <p class="quiet wrap">{opened.description}</p>}
          {opened.inputs.length === 0 && <p class="quiet">The team asks for no inputs.</p>}
          <div class="grid">
            <Fields of={opened.inputs.filter(({ secret }) => !secret)} typed={typed} prefix="input" />
          </div>
          {secrets.length > 0 && (
            <p class="small quiet">
              {secrets.map(({ name }) => name).join(', ')}: a secret is not sent through the hub. Set it on the machine
              of the daemon, with <code>{command} settings set</code>.
            </p>
          )}
          <Environment of={opened.environments} {...boundTo(about, 'environment')} />
          <details class="part" open={like !== null}>
            <summary>Where and how</summary>
            <div class="grid">
              <Field label="Name of the run" maxLength={200} {...boundTo(about, 'name')} />
              <Select
                label="Daemon"
                {...boundTo(about, 'daemon')}
                of={[
                  ['', 'any that fits'],
                  ...(daemons.data ?? []).map(({ id, name, status }) => [id, `${name} (${status})`] as const),
                ]}
              />
              <Field label="Labels of the daemon" placeholder="gpu, region=eu" {...boundTo(about, 'labels')} />
              <Field label="Workspace" placeholder="a name that the daemon knows" {...boundTo(about, 'workspace')} />
              <Field label="Wait at most" placeholder="2h; empty: for ever" {...boundTo(about, 'timeout')} />
            </div>
          </details>
          <div class="row">
            <button type="submit" disabled={busy || !may(chosen, 'operator')}>
              Dispatch
            </button>
            {isOfCommand && (
              <CopyCommand
                text={commandOf(
                  ...['dispatch', reference, '--realm', chosen?.slug ?? ''],
                  ...optionOf('name', about.value.name),
                  ...optionOf('workspace', about.value.workspace),
                  ...optionOf('env', about.value.environment),
                  ...inputOptions(opened.inputs, typed.value),
                )}
              />
            )}
          </div>
        </form>
      )}
    </main>
  )
}
