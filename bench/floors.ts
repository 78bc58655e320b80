// The servers that the hub is measured against. They do almost nothing, and each runs in its own process.
//
//   bun bench/floors.ts bare|read|elysia|hold DATABASE TOKEN      prints its URL

import { Elysia, t } from 'elysia'
import { openDatabase } from '../db/open.ts'

const [name, database, token] = process.argv.slice(2) as [string, string, string]
/** The number of rows besides the one that is looked up. */
const OTHERS = 1_000

const hash = (token: string) => new Bun.CryptoHasher('sha256').update(token).digest('hex')

/** Creates a table of tokens, keyed by the hash of their secret, and the query that looks one up. */
function lookUp() {
  const db = openDatabase(database)
  db.run('CREATE TABLE tokens (id INTEGER PRIMARY KEY, hash TEXT NOT NULL UNIQUE, user_id INTEGER NOT NULL)')
  const insert = db.query('INSERT INTO tokens (hash, user_id) VALUES (?, ?)')
  db.transaction(() => {
    for (let n = 0; n < OTHERS; n++) insert.run(hash(`another ${n}`), n)
    insert.run(hash(token), OTHERS)
  })()
  const find = db.query<{ id: number }, [string]>('SELECT id, user_id FROM tokens WHERE hash = ?')
  return (header: string | null | undefined) => (header ? find.get(hash(header.slice(7))) : null)
}

const reply = { ok: true, data: { status: 'online', next_ms: 15_000 } }
const listen = { hostname: '127.0.0.1', port: 0 }

const floors: Record<string, () => { url: unknown }> = {
  bare() {
    return Bun.serve({
      ...listen,
      async fetch(request) {
        await request.json()
        return Response.json(reply)
      },
    })
  },
  read() {
    const find = lookUp()
    return Bun.serve({
      ...listen,
      async fetch(request) {
        await request.json()
        return find(request.headers.get('authorization')) ? Response.json(reply) : new Response(null, { status: 401 })
      },
    })
  },
  /** Holds every request until another one asks for `/wake`, which answers the one that came first. */
  hold() {
    const held: ((reply: Response) => void)[] = []
    return Bun.serve({
      ...listen,
      idleTimeout: 0,
      async fetch(request) {
        if (request.url.endsWith('/wake')) held.shift()?.(Response.json(reply))
        else return new Promise<Response>(resolve => held.push(resolve))
        return Response.json(reply)
      },
    })
  },
  elysia() {
    const find = lookUp()
    const app = new Elysia()
      .post('/', ({ headers, status }) => (find(headers.authorization) ? reply : status(401)), {
        body: t.Object({ daemon_id: t.String() }, { additionalProperties: false }),
      })
      .listen(listen)
    return app.server!
  },
}

console.log(String(floors[name]!().url))
