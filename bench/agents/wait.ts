// An agent that only waits, so that slots are occupied for a known time.

import { agent, Type } from 'cadre'

export default agent({
  type: 'connector',
  version: '1.0.0',
  description: 'Waits.',
  settings: Type.Object({}),
  source: {
    effect: 'read',
    entry: Type.Object({ name: Type.String(), ms: Type.Integer({ minimum: 1 }) }),
    async run({ ms }) {
      await Bun.sleep(ms)
      return { text: 'waited' }
    },
  },
})
