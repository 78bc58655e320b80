// Another account of an agent (`wiki@eu`): the same agent, whose errors name the account's own settings.

import { type Action, type Agent, AgentError, type Handler } from './define.ts'

/** `agent` with every failure of `agents.<name>…` said of `agents.<reference>…`; `name@account` is the reference. */
export function accountOf(agent: Agent, name: string, reference: string): Agent {
  const own = new RegExp(`\\bagents\\.${name}(?![\\w@-])`, 'g')
  const renamed = (text: string) => text.replace(own, () => `agents.${reference}`)

  async function renaming<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      throw error instanceof AgentError ? inWords(error, renamed) : error
    }
  }

  const bind = <H extends Handler | Action>(handler: H): H => ({
    ...handler,
    run: (entry, context) => renaming(() => handler.run(entry, context)),
    ...(handler.find && { find: (entry, context) => renaming(() => handler.find!(entry, context)) }),
  })

  const { actions, source, target, phase, notify, doctor } = agent
  return {
    ...agent,
    ...(actions && {
      actions: Object.fromEntries(Object.entries(actions).map(([key, action]) => [key, bind(action)])),
    }),
    ...(source && { source: bind(source) }),
    ...(target && { target: bind(target) }),
    ...(phase && { phase: bind(phase) }),
    ...(notify && { notify: bind(notify) }),
    ...(doctor && { doctor: context => renaming(() => doctor(context)) }),
  }
}

/** The same error with its message and hint rewritten. */
function inWords(error: AgentError, rewrite: (text: string) => string): AgentError {
  const { code, hint, retryable, sent, cause } = error
  return new AgentError(rewrite(error.message), {
    code,
    retryable,
    cause,
    ...(hint !== undefined && { hint: rewrite(hint) }),
    ...(sent && { sent }),
  })
}
