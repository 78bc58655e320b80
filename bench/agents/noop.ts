// An agent that does nothing, so that only the engine is measured.

import { agent, Type } from 'cadre'

export default agent({
  type: 'connector',
  version: '1.0.0',
  description: 'Does nothing.',
  settings: Type.Object({}),
  source: {
    effect: 'read',
    entry: Type.Object({ name: Type.String() }),
    run: async () => ({ text: 'nothing', data: { done: true } }),
  },
})
