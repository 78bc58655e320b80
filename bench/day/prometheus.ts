// Debian's Prometheus with the rules of deploy/alerts.yml, whose waits (`for:`) alone are shortened.

import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { folder } from '../../tests/support/folder.ts'
import { freePort } from '../../tests/support/free-port.ts'
import { METRICS_TOKEN } from '../../tests/support/served-hub.ts'
import { startSilently, TREE } from './program.ts'

/** By how much each `for:` of the rules is shortened. */
export const FACTOR = 60
export const INTERVAL = '2s'
/** A scrape waits no longer than its interval, and a hub gives its database three seconds for a part of its metrics. */
const SCRAPE = '4s'

const CACHE = join(tmpdir(), 'cadre-bench-prometheus')

/** The program; null where it is not installed and cannot be had. It is kept for the next day. */
export async function prometheusProgram(): Promise<string | null> {
  const installed = Bun.which('prometheus')
  const kept = join(CACHE, 'usr/bin/prometheus')
  if (installed !== null || existsSync(kept)) return installed ?? kept
  mkdirSync(CACHE, { recursive: true })
  // The package alone: to install it would start a server that stays.
  const script = `timeout 120 apt-get download -qq prometheus && dpkg-deb --fsys-tarfile prometheus_*.deb | tar -x ./usr/bin/prometheus && rm prometheus_*.deb`
  const child = Bun.spawn(['sh', '-c', script], { cwd: CACHE, stdin: 'ignore', stdout: 'ignore', stderr: 'ignore' })
  return (await child.exited) === 0 ? kept : null
}

export interface Alert {
  name: string
  summary: string
}

export interface Prometheus {
  firing(): Promise<Alert[]>
  stop(): Promise<void>
}

const UNITS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600 }

/** The text of the rules with shorter waits. */
function shortened(rules: string): string {
  return rules.replace(/^( +for: )(\d+)([smh])$/gm, (_, before: string, count: string, unit: string) => {
    const seconds = (Number(count) * UNITS[unit]!) / FACTOR
    return `${before}${Math.ceil(seconds)}s`
  })
}

/** `host:port` of each. */
interface Targets {
  hubs: string[]
  daemons: string[]
}

export async function startPrometheus(program: string, { hubs, daemons }: Targets): Promise<Prometheus> {
  const place = folder()
  const rules = join(place, 'rules.yml')
  await Bun.write(rules, shortened(readFileSync(join(TREE, 'deploy/alerts.yml'), 'utf8')))
  const config = {
    global: { scrape_interval: SCRAPE, scrape_timeout: SCRAPE, evaluation_interval: INTERVAL },
    rule_files: [rules],
    scrape_configs: [
      {
        job_name: 'cadre-hub',
        authorization: { credentials: METRICS_TOKEN },
        static_configs: [{ targets: hubs }],
      },
      { job_name: 'cadre-daemon', static_configs: [{ targets: daemons }] },
    ],
  }
  const file = join(place, 'prometheus.yml')
  // JSON is YAML.
  await Bun.write(file, JSON.stringify(config))
  const address = `127.0.0.1:${freePort()}`
  const flags = [`--config.file=${file}`, `--storage.tsdb.path=${join(place, 'data')}`]
  const stop = startSilently([program, ...flags, `--web.listen-address=${address}`], { PATH: process.env.PATH! })
  interface Reply {
    data: { alerts: { state: string; labels: { alertname: string }; annotations: { summary: string } }[] }
  }
  return {
    async firing() {
      const reply = await fetch(`http://${address}/api/v1/alerts`).catch(() => null)
      if (!reply?.ok) return []
      return ((await reply.json()) as Reply).data.alerts
        .filter(({ state }) => state === 'firing')
        .map(({ labels: { alertname: name }, annotations: { summary } }) => ({ name, summary }))
    },
    stop,
  }
}
