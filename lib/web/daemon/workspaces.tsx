// The folders that runs work in.

import { useSignal } from '@preact/signals'
import { AddWorkspace, ListWorkspaces, RemoveWorkspace } from '../../wire/calls/workspaces.ts'
import { ActionButton, useAction, type Work } from '../kit/actions.tsx'
import { call } from '../kit/api.ts'
import { bound, Field, handleSubmit } from '../kit/fields.tsx'
import { Cards, List, useList } from '../kit/lists.tsx'
import { Failure } from '../kit/parts.tsx'
import { When } from '../kit/time.tsx'

export function Workspaces() {
  const found = useList('workspaces', () => call(ListWorkspaces, {}))
  const path = useSignal('')
  const adding = useAction()
  const add: Work = async send => {
    await send(AddWorkspace, { path: path.value.trim() })
    path.value = ''
    found.again()
  }
  return (
    <main>
      <header class="top">
        <h1>Workspaces</h1>
      </header>
      <form class="row" onSubmit={handleSubmit(() => adding.run(add))}>
        <Field label="Folder" required placeholder="an absolute path" {...bound(path)} />
        <button type="submit">Add</button>
      </form>
      <Failure of={adding.error} />
      <List of={found} none={<p>No folder is registered yet. The first run in a folder registers it.</p>}>
        {workspaces => (
          <Cards>
            {workspaces.map(each => (
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
                  {each.offered
                    ? 'Runs that the hub dispatches may work in it.'
                    : 'Only runs of this machine work in it.'}
                </p>
                {each.teams.length > 0 && <p class="quiet small wrap">{each.teams.join(', ')}</p>}
                <ActionButton
                  plain
                  send={send => send(AddWorkspace, { path: each.path, offer: !each.offered })}
                  done={found.again}
                  undo={{
                    what: each.offered ? `${each.name} is offered no longer.` : `${each.name} is offered to the realm.`,
                    send: send => send(AddWorkspace, { path: each.path, offer: each.offered }),
                  }}
                >
                  {each.offered ? 'Offer it no longer' : 'Offer it to the realm'}
                </ActionButton>
                <ActionButton
                  question={`Remove ${each.path}? Runs of the hub find it no longer. Its files stay.`}
                  send={send => send(RemoveWorkspace, { workspace_id: each.workspace_id })}
                  done={found.again}
                >
                  Remove from the list
                </ActionButton>
              </li>
            ))}
          </Cards>
        )}
      </List>
    </main>
  )
}
