// GET /metrics: what the daemon does, in Prometheus' text format.
// https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format

import { Elysia } from 'elysia'
import { RUN_STATES } from '../../run/engine.ts'
import { closed } from '../../schema.ts'
import type { Daemon } from '../daemon.ts'
import type { DaemonKit } from '../kit.ts'
import { version } from '../version.ts'

const HEADERS = { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' }

type Sample = [labels: Record<string, string>, value: number]

export function metrics(daemon: Daemon, kit: DaemonKit) {
  return new Elysia({ name: 'metrics' }).use(kit).get('/metrics', () => new Response(text(), { headers: HEADERS }), {
    access: { local: 'open', remote: 'access' },
    query: closed({}),
    detail: { summary: 'Prometheus metrics' },
  })

  function text(): string {
    const { slots, free, stalled } = daemon.engine.load
    return [
      gauge('cadre_build_info', 'Version of the daemon.', [[{ version }, 1]]),
      gauge('cadre_runs', 'Runs by state, sub-runs included.', runsByState()),
      gauge('cadre_slots_used', 'Leaf phases that run now.', [[{}, slots]]),
      gauge('cadre_slots_free', 'Leaf phases that could start now.', [[{}, free]]),
      gauge('cadre_stalled', '1 while nothing new begins, as on a full disk.', [[{}, stalled === null ? 0 : 1]]),
      gauge('cadre_outbox_changes', 'Changes that the hub has not acknowledged.', [[{}, waiting()]]),
      gauge('cadre_hub_connected', '1 while the hub answers.', [[{}, daemon.remote?.connected() ? 1 : 0]]),
    ].join('')
  }

  function runsByState(): Sample[] {
    const rows = daemon.db
      .query<{ state: string; count: number }, []>('SELECT state, count(*) AS count FROM runs GROUP BY state')
      .all()
    return RUN_STATES.map(state => [{ state }, rows.find(row => row.state === state)?.count ?? 0])
  }

  function waiting(): number {
    return daemon.db.query<{ count: number }, []>('SELECT count(*) AS count FROM outbox').get()!.count
  }
}

function gauge(name: string, help: string, samples: Sample[]): string {
  const lines = samples.map(([labels, value]) => {
    const pairs = Object.entries(labels).map(([key, text]) => `${key}=${JSON.stringify(text)}`)
    return `${name}${pairs.length > 0 ? `{${pairs.join(',')}}` : ''} ${value}\n`
  })
  return `# HELP ${name} ${help}\n# TYPE ${name} gauge\n${lines.join('')}`
}
