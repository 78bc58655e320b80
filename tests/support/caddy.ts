// Caddy with deploy/Caddyfile, where it is installed.

import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from './bounded.ts'
import { folder } from './folder.ts'

const FILE = join(import.meta.dir, '../../deploy/Caddyfile')

export const hasCaddy = Bun.which('caddy') !== null
if (!hasCaddy) console.log('caddy is not installed: the tests of deploy/Caddyfile are skipped')

/** The variables of the Caddyfile. */
interface Places {
  HUB_DOMAIN: string
  FILES_DOMAIN: string
  HUBS?: string
  STORAGE?: string
}

interface Route {
  match?: { host: string[] }[]
  handle: (Partial<ReverseProxy> & { handler: string; routes?: Route[] })[]
}

/** Times are in nanoseconds. */
interface ReverseProxy {
  upstreams: { dial: string }[]
  headers?: object
  health_checks?: { active: { uri: string; interval: number; timeout: number } }
  transport?: { keep_alive?: { idle_timeout: number } }
}

interface Server {
  protocols?: string[]
  listen: string[]
  idle_timeout?: number
  routes: Route[]
}

interface Config {
  admin?: { disabled: boolean }
  apps: { http: { http_port?: number; grace_period: number; servers: Record<string, Server> } }
}

/** The Caddyfile as Caddy understands it. `notes` are what Caddy says of it. Throws when Caddy refuses it. */
export async function adapted(places: Places) {
  const child = Bun.spawn(['caddy', 'adapt', '--validate', '--adapter', 'caddyfile', '--config', FILE], {
    env: environment(folder(), places),
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [text, said, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  if (code !== 0) throw new Error(`caddy refuses the Caddyfile: ${said}`)
  const config = JSON.parse(text) as Config
  const servers = Object.values(config.apps.http.servers)
  return {
    config,
    servers,
    proxies: new Map(servers.flatMap(({ routes }) => routes).map(route => [route.match![0]!.host[0]!, proxyIn(route)])),
    notes: said.split('\n').filter(line => /"level":"(warn|error)"/.test(line)),
  }
}

function proxyIn({ handle }: Route): ReverseProxy {
  const [first] = handle
  if (first?.handler === 'reverse_proxy') return first as ReverseProxy
  return proxyIn(first!.routes![0]!)
}

/**
 * Serves the Caddyfile on this machine only, with certificates of Caddy's own authority, whose certificate is `ca`. The
 * authority is kept in `home`.
 */
export async function startCaddy(
  places: Places,
  { httpsPort, httpPort, home = folder() }: { httpsPort: number; httpPort: number; home?: string },
) {
  const { config, servers } = await adapted(places)
  config.admin = { disabled: true }
  config.apps.http.http_port = httpPort
  for (const server of servers) {
    server.listen = [`127.0.0.1:${httpsPort}`]
    // HTTP/3 would need the port of UDP with the same number, which may be taken.
    server.protocols = ['h1', 'h2']
  }
  const file = join(home, 'caddy.json')
  await Bun.write(file, JSON.stringify(config))
  const child = Bun.spawn(['caddy', 'run', '--config', file], {
    env: environment(home, places),
    stdout: 'ignore',
    stderr: 'pipe',
  })
  const said = child.stderr.text()
  const certificate = join(home, 'caddy/pki/authorities/local/root.crt')
  const ca = await until(async () => {
    if (child.exitCode !== null) throw new Error(`caddy ended: ${await said}`)
    const text = existsSync(certificate) ? readFileSync(certificate, 'utf8') : ''
    return text.endsWith('-----END CERTIFICATE-----\n') && text
  }, 'Caddy has made its authority')
  return {
    ca,
    said,
    async stop() {
      child.kill('SIGKILL')
      await child.exited
    },
  }
}

const environment = (home: string, places: Places) => ({
  ...{ PATH: process.env.PATH!, HOME: home, XDG_DATA_HOME: home, XDG_CONFIG_HOME: home },
  ...places,
})
