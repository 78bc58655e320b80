// Settings: a value can be written, and a secret is never shown again.

import { useSignal } from '@preact/signals'
import { isObject, type Json } from '../../json.ts'
import type { AgentEntry } from '../../wire/calls/agents.ts'
import { ListAgents } from '../../wire/calls/agents.ts'
import { ListSettings, SetSetting } from '../../wire/calls/settings.ts'
import { ActionButton, useAction, type Work } from '../kit/actions.tsx'
import { call, command, keepToken, token } from '../kit/api.ts'
import { bound, Field, handleSubmit } from '../kit/fields.tsx'
import { textOf } from '../kit/forms.tsx'
import { Rows, useList } from '../kit/lists.tsx'
import { Failure, TokenForm, useLoaded } from '../kit/parts.tsx'

/** Settings of agents that are neither text nor secret are written as JSON, as on the command line. */
function jsonOf(key: string, text: string): Json {
  if (/^(environments\.[^.]+\.)?secrets\./.test(key) || !/^(true|false)$|^[[{]/.test(text)) return text
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

export function Settings() {
  return (
    <main>
      <header class="top">
        <h1>Settings</h1>
      </header>
      {token.value === null ? <TokenForm /> : <Values />}
    </main>
  )
}

/** The settings that an agent has. */
const keysOf = ({ name, settings }: AgentEntry): string[] =>
  isObject(settings?.properties) ? Object.keys(settings.properties).map(key => `agents.${name}.${key}`) : []

function Values() {
  const found = useList('settings', () => call(ListSettings, {}), 0)
  const agents = useLoaded('agents', () => call(ListAgents, {}))
  const key = useSignal('')
  const text = useSignal('')
  const writing = useAction()
  const write: Work = async send => {
    const name = key.value.trim()
    await send(SetSetting, { key: name, value: jsonOf(name, text.value) })
    key.value = ''
    text.value = ''
    found.again()
  }
  return (
    <>
      <form class="row" autocomplete="off" onSubmit={handleSubmit(() => writing.run(write))}>
        <Field label="Key" required placeholder="agents.wiki.api_token" list="keys-of-settings" {...bound(key)}>
          <datalist id="keys-of-settings">
            {(agents.data?.agents ?? []).flatMap(keysOf).map(each => (
              <option key={each} value={each} />
            ))}
          </datalist>
        </Field>
        <Field label="Value" type="password" required {...bound(text)} />
        <button type="submit">Set</button>
      </form>
      <Failure of={writing.error} />
      <Rows
        of={found}
        none={
          <>
            <p>Nothing is set.</p>
            <p>
              The manual of an agent says what it needs, and <code>{command} doctor</code> checks it.
            </p>
          </>
        }
        name={each => each.key}
        columns={[
          { title: 'Key', class: 'wrap', cell: each => <code>{each.key}</code> },
          { title: 'Value', class: 'wrap', cell: each => textOf(each.value) },
          {
            title: '',
            cell: each => (
              <ActionButton
                question={`Remove ${each.key}? Its value is gone, and runs that need it fail.`}
                send={send => send(SetSetting, { key: each.key, value: null })}
                done={found.again}
              >
                Remove
              </ActionButton>
            ),
          },
        ]}
      />
      <p class="row">
        <ActionButton
          question={`Forget the local token in all tabs? To change something again, open the page with ${command} dashboard.`}
          send={async () => keepToken(null)}
        >
          Forget the token
        </ActionButton>
      </p>
    </>
  )
}
