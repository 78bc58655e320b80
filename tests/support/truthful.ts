// An agent whose calls fail where the `data` of a result is not what the agent declares.

import type { Agent, Handler } from '../../lib/agent/define.ts'
import { asDeclared } from '../../lib/testing/declared-data.ts'

export function truthful(agent: Agent): Agent {
  const { actions, source, target, phase } = agent
  return {
    ...agent,
    ...(actions && { actions: Object.fromEntries(Object.entries(actions).map(([name, it]) => [name, checked(it)])) }),
    ...(source && { source: checked(source) }),
    ...(target && { target: checked(target) }),
    ...(phase && { phase: checked(phase) }),
  }
}

function checked<H extends Handler>(handler: H): H {
  const { run, find } = handler
  return {
    ...handler,
    run: async (...given: Parameters<Handler['run']>) => asDeclared(handler, await run(...given)),
    ...(find && { find: async (...given: Parameters<Handler['run']>) => asDeclared(handler, await find(...given)) }),
  }
}
