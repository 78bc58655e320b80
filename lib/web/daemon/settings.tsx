// Settings: a value can be written, and a secret is never shown again.

import { useSignal } from '@preact/signals'
import { isObject, type Json } from '../../json.ts'
import type { AgentEntry } from '../../wire/calls/agents.ts'
import { ListAgents } from '../../wire/calls/agents.ts'
import { ListSettings, SetSetting } from '../../wire/calls/settings.ts'
import { call, token } from '../kit/api.ts'
import { command } from '../kit/command.ts'
import { bound, Field } from '../kit/fields.tsx'
import { textOf } from '../kit/forms.tsx'
import { Act, Empty, Failure, handle, TokenForm, useLoaded, useWork, Wide } from '../kit/parts.tsx'

/** Settings of agents that are neither text nor secret are written as JSON, as on the command line. */
function jsonOf(key: string, text: string): Json {
  if (key.startsWith('secrets.') || !/^(true|false)$|^[[{]/.test(text)) return text
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
  const { data, error, again } = useLoaded('settings', () => call(ListSettings, {}))
  const agents = useLoaded('agents', () => call(ListAgents, {}))
  const key = useSignal('')
  const text = useSignal('')
  const writing = useWork()
  const write = async () => {
    const name = key.value.trim()
    await call(SetSetting, { key: name, value: jsonOf(name, text.value) })
    key.value = ''
    text.value = ''
    again()
  }
  return (
    <>
      <form class="row" autocomplete="off" onSubmit={handle(() => writing.run(write))}>
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
      <Failure of={writing.error ?? error} />
      {data?.settings.length === 0 && (
        <Empty>
          <p>Nothing is set.</p>
          <p>
            The manual of an agent says what it needs, and <code>{command} doctor</code> checks it.
          </p>
        </Empty>
      )}
      {data && data.settings.length > 0 && (
        <Wide head={['Key', 'Value', <span class="unseen">Actions</span>]}>
          {data.settings.map(each => (
            <tr key={each.key}>
              <td class="wrap">
                <code>{each.key}</code>
              </td>
              <td class="wrap">{textOf(each.value)}</td>
              <td>
                <Act
                  plain
                  work={async () => {
                    await call(SetSetting, { key: each.key, value: null })
                    again()
                  }}
                >
                  Remove
                </Act>
              </td>
            </tr>
          ))}
        </Wide>
      )}
    </>
  )
}
