// The folders that runs work in.

import { useSignal } from '@preact/signals'
import { AddWorkspace, ListWorkspaces, RemoveWorkspace } from '../../wire/calls/workspaces.ts'
import { call } from '../kit/api.ts'
import { bound, Field } from '../kit/fields.tsx'
import { Act, Empty, Failure, handle, useLoaded, useWork } from '../kit/parts.tsx'
import { When } from '../kit/time.tsx'

export function Workspaces() {
  const { data, error, again } = useLoaded('workspaces', () => call(ListWorkspaces, {}), 5_000)
  const path = useSignal('')
  const adding = useWork()
  const add = async () => {
    await call(AddWorkspace, { path: path.value.trim() })
    path.value = ''
    again()
  }
  return (
    <main>
      <header class="top">
        <h1>Workspaces</h1>
      </header>
      <form class="row" onSubmit={handle(() => adding.run(add))}>
        <Field label="Folder" required placeholder="an absolute path" {...bound(path)} />
        <button type="submit">Add</button>
      </form>
      <Failure of={adding.error ?? error} />
      {data?.workspaces.length === 0 && (
        <Empty>
          <p>No folder is registered yet. The first run in a folder registers it.</p>
        </Empty>
      )}
      <ul class="cards">
        {data?.workspaces.map(each => (
          <li key={each.workspace_id} class="card">
            <h2>{each.name}</h2>
            <p class="quiet small wrap">
              <code>{each.path}</code>
            </p>
            <p class="small">
              {['no active run', '1 active run'][each.active_runs] ?? `${each.active_runs} active runs`} · since{' '}
              <When at={each.created_at} />
            </p>
            <p class="small">
              {each.offered ? 'Runs that the hub dispatches may work in it.' : 'Only runs of this machine work in it.'}
            </p>
            {each.teams.length > 0 && <p class="quiet small wrap">{each.teams.join(', ')}</p>}
            <Act
              plain
              work={async () => {
                await call(AddWorkspace, { path: each.path, offer: !each.offered })
                again()
              }}
            >
              {each.offered ? 'Offer it no longer' : 'Offer it to the realm'}
            </Act>
            <Act
              plain
              work={async () => {
                await call(RemoveWorkspace, { workspace_id: each.workspace_id })
                again()
              }}
            >
              Remove from the list
            </Act>
          </li>
        ))}
      </ul>
    </main>
  )
}
