// The agents that are installed, each with its manual: settings, actions, and the fields of their entries; and whether
// their systems take their credentials.

import { useSignal } from '@preact/signals'
import { isObject, type JsonObject } from '../../json.ts'
import type { AgentEntry, Finding } from '../../wire/calls/agents.ts'
import { ExamineAgents, ListAgents } from '../../wire/calls/agents.ts'
import { findingText, lackWords } from '../../wire/records/words.ts'
import { ActionButton, type Work } from '../kit/actions.tsx'
import { call, token } from '../kit/api.ts'
import { Failure, TokenForm, useLoaded } from '../kit/parts.tsx'
import { route, to } from '../kit/route.ts'
import { State } from '../kit/state.tsx'

export function Agents() {
  const name = route.value.parts[1]
  const { data, error } = useLoaded('agents', () => call(ListAgents, {}))
  if (!data) {
    return (
      <main>
        <Failure of={error} />
      </main>
    )
  }
  const agent = data.agents.find(each => each.name === name)
  if (agent) return <Manual agent={agent} />
  return (
    <main>
      <header class="top">
        <h1>Agents</h1>
      </header>
      {name !== undefined && <div class="notice failed">There is no agent {name}.</div>}
      <Doctor />
      {data.skipped.map(({ file, reason }) => (
        <div key={file} class="notice failed">
          <p class="wrap">
            {file} was skipped: {reason}
          </p>
        </div>
      ))}
      <ul class="cards">
        {data.agents.map(each => (
          <li key={each.name} class="card">
            <h2>
              <a href={to('agents', each.name)}>{each.name}</a>
            </h2>
            <p class="quiet">{each.description}</p>
          </li>
        ))}
      </ul>
    </main>
  )
}

function Manual({ agent }: { agent: AgentEntry }) {
  const { source, target, phase, notify } = agent
  const unnamed = { 'as a source': source, 'as a target': target, 'as a phase': phase, 'as a listener': notify }
  const handlers = [...Object.entries(agent.actions), ...Object.entries(unnamed)]
  return (
    <main>
      <p class="crumbs">
        <a href={to('agents')}>Agents</a>
      </p>
      <header class="top">
        <div>
          <h1>{agent.name}</h1>
          <p>{agent.description}</p>
          <p class="facts quiet small">
            <span>{agent.type}</span>
            <span>{agent.version}</span>
            <code class="wrap">{agent.file}</code>
          </p>
        </div>
      </header>
      <Doctor agent={agent.name} />
      <h2>Settings</h2>
      {agent.settings ? <Schema of={agent.settings} prefix={`agents.${agent.name}.`} /> : <p class="quiet">None.</p>}
      {handlers.map(
        ([name, handler]) =>
          handler && (
            <section key={name}>
              <h2>{name}</h2>
              {handler.description && <p>{handler.description}</p>}
              <p class="facts quiet small">
                <span>effect: {handler.effect}</span>
                {handler.find && <span>can look whether a write happened</span>}
              </p>
              <Schema of={handler.entry} />
              {handler.data && (
                <>
                  <h3>data</h3>
                  <Schema of={handler.data} />
                </>
              )}
            </section>
          ),
      )}
    </main>
  )
}

function Schema({ of, prefix = '' }: { of: JsonObject; prefix?: string }) {
  const fields = Object.entries(isObject(of.properties) ? (of.properties as JsonObject) : {})
  const required = Array.isArray(of.required) ? of.required : []
  if (fields.length === 0) return <p class="quiet">No fields.</p>
  return (
    <dl class="fields">
      {fields.map(([name, field]) => {
        const { description, type } = Object(field)
        return (
          <div key={name}>
            <dt>
              <code>
                {prefix}
                {name}
              </code>{' '}
              <span class="quiet small">
                {typeof type === 'string' ? type : ''} {required.includes(name) ? 'required' : ''}{' '}
                {Object(field)['x-secret'] ? 'secret' : ''}
              </span>
            </dt>
            <dd>{String(description ?? '')}</dd>
          </div>
        )
      })}
    </dl>
  )
}

const STATES: Record<Finding['state'], { state: string; word: string }> = {
  fine: { state: 'completed', word: 'fine' },
  wrong: { state: 'failed', word: 'wrong' },
  unset: { state: 'pending', word: 'not set up' },
  settings: { state: 'skipped', word: 'not asked' },
}

/** Without `agent`, all of them are asked. */
export function Doctor({ agent }: { agent?: string }) {
  const found = useSignal<readonly Finding[] | null>(null)
  const started = useSignal(false)
  const examine: Work = async send => {
    started.value = true
    if (token.value === null) return
    found.value = (await send(ExamineAgents, agent === undefined ? {} : { agent })).findings
  }
  return (
    <section aria-label="Doctor">
      <ActionButton plain send={examine}>
        {agent === undefined ? 'Check all credentials' : 'Check the credential'}
      </ActionButton>
      {started.value && <TokenForm />}
      {found.value && (
        <ul class="chain" role="status">
          {found.value.map((finding, index) => {
            const { agent: name, environment, state, who } = finding
            const lacks = lackWords(finding)
            return (
              <li key={index}>
                <State of={STATES[state].state} bare />
                <div>
                  <strong>{name}</strong> {environment} <span class="quiet small">{who ?? STATES[state].word}</span>
                  {lacks !== null && <p>{lacks}</p>}
                  <p class="quiet wrap">{findingText(finding)}</p>
                </div>
              </li>
            )
          })}
        </ul>
      )}
    </section>
  )
}
