// Takes its time and does nothing, so that slots are held for a known length.

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
