// The work of the bench as a service of Restate (https://docs.restate.dev/develop/ts/services): `each` calls `one` for every
// item, and `one` fetches a page and stores it, in one durable step. The file is synced as Restate syncs its own log.
//
//   node restate-service.mjs PORT SDK

import { mkdir, open, rename } from 'node:fs/promises'
import { join } from 'node:path'

// The library needs it; Node.js has it from version 22 on.
Promise.withResolvers ??= function withResolvers() {
  let settle
  const promise = new this((resolve, reject) => {
    settle = { resolve, reject }
  })
  return { promise, ...settle }
}

const [port, sdk] = process.argv.slice(2)
const restate = await import(sdk)

async function fetchAndStore(url, folder, item) {
  const reply = await fetch(url)
  const at = join(folder, String(item))
  await mkdir(at)
  const handle = await open(join(at, 'draft'), 'w')
  await handle.write(await reply.text())
  await handle.sync()
  await handle.close()
  await rename(join(at, 'draft'), join(at, 'body.txt'))
}

const fetcher = restate.service({
  name: 'fetcher',
  handlers: {
    one: (context, { url, folder, item }) => context.run('store', () => fetchAndStore(url, folder, item)),
    each: async (context, { url, folder, items }) => {
      const numbers = Array.from({ length: items }, (_, item) => item)
      const calls = numbers.map(item => context.serviceClient(fetcher).one({ url, folder, item }))
      await restate.RestatePromise.all(calls)
    },
  },
})
await restate.serve({ services: [fetcher], port: Number(port) })
console.log('ready')
