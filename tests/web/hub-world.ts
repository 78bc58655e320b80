// A hub with a daemon and with something to see on each of its pages.

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '../support/bounded.ts'
import { type RunningDaemon, spawnDaemon } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'
import { startTestHub, type TestHub } from '../support/hub.ts'

/** Runs in the page if markup of somebody else becomes markup of the page. */
export const EVIL = '<img src=x onerror="globalThis.ran=1"><script>globalThis.ran=1</script>'

const exec = (run: string) => `agent: exec, commands: [{ name: c, run: ${JSON.stringify(run)} }]`

/** A map over a sub-team, whose third item fails and is tolerated. */
const report = (version: string, more = '') => ({
  'team.yml': `name: "@local/nightly-report"
version: ${version}
description: Checks every service of the fleet and writes a report
inputs:
  - { name: environment, type: string, choices: [staging, production], default: staging, description: Where to look }
  - { name: depth, type: number, default: 2, description: How many days back }
phases:
  - { name: list, ${exec('for s in web api jobs mail; do echo "checking $s"; done')} }
  - name: check
    type: map
    depends_on: [list]
    items: '{{ ["web", "api", "jobs", "mail"] }}'
    key: "{{ item }}"
    team: ./service
    inputs: { service: "{{ item }}" }
  - name: write
    depends_on: [check]
    agent: exec
    commands: [{ name: c, run: 'printf "# Report\\n\\nAll services answer.\\n" > "$CADRE_OUT/report.md"; echo "wrote the report"' }]
${more}`,
  'service/team.yml': `name: "@local/service"
version: 1.0.0
inputs: [{ name: service, type: string, required: true }]
phases:
  - { name: probe, agent: exec, env: { S: "{{ inputs.service }}" }, commands: [{ name: c, run: 'echo "$S answers"' }] }
`,
})
const NOTIFY = `  - { name: post, depends_on: [write], agent: http, target_entries: [{ name: p, url: "https://status.example.com/reports", body: "done", method: POST }], when: "false" }
`
const GATE = {
  'team.yml': `name: "@local/release"
version: 2.3.0
description: Builds a release, asks a person, then publishes it
inputs: [{ name: tag, type: string, required: true }]
phases:
  - { name: build, ${exec('echo building; echo "12 packages, 0 warnings"')} }
  - name: approve
    type: gate
    depends_on: [build]
    review:
      prompt: "Publish this release?"
      reviewers: [any]
      inputs: [{ name: note, type: string, description: For the changelog }]
  - { name: publish, depends_on: [approve], ${exec('echo published')} }
`,
}
const BROKEN = {
  'team.yml': `name: "@local/backup-check"
version: 1.0.0
description: Restores last night’s backup into an empty database
phases:
  - { name: fetch, ${exec('echo "fetched 812 MB"')} }
  - { name: restore, depends_on: [fetch], ${exec('echo "restoring"; echo "relation accounts does not exist" >&2; exit 3')} }
  - { name: compare, depends_on: [restore], ${exec('true')} }
`,
}
/** Goes on until the file `go` is in the folder that is given as its input. */
const WAITS = {
  'team.yml': `name: "@local/waits"
version: 1.0.0
description: Goes on when it is told to
inputs: [{ name: place, type: string, required: true }]
phases:
  - name: talk
    agent: exec
    env: { PLACE: "{{ inputs.place }}" }
    commands: [{ name: c, run: 'echo first; while [ ! -e "$PLACE/go" ]; do sleep 0.05; done; printf "\\033[32mlast\\033[0m\\n"' }]
`,
}
const NEEDY = {
  'team.yml': `name: "@local/train"
version: 1.0.0
description: Needs a machine with a graphics card
requires: { labels: [gpu] }
phases:
  - { name: train, ${exec('true')} }
`,
}
const HOSTILE = {
  'team.yml': `name: "@local/hostile"
version: 1.0.0
description: ${JSON.stringify(EVIL)}
inputs: [{ name: text, type: string, default: '${EVIL}', description: '${EVIL}' }]
phases:
  - { name: say, agent: exec, env: { TEXT: "{{ inputs.text }}" }, commands: [{ name: c, run: 'echo "$TEXT"; echo "$TEXT" > "$CADRE_OUT/page.html"' }] }
  - name: ask
    type: gate
    depends_on: [say]
    review: { prompt: "{{ inputs.text }}", reviewers: [any] }
`,
}

export interface World {
  hub: TestHub
  /** Ends the daemon, or starts it again. */
  stopDaemon(): Promise<unknown>
  startDaemon(): Promise<void>
  daemonId: string
  realm: string
  /** Dispatches a team of the scope `admin`. */
  dispatch(team: string, more?: object): Promise<string>
  /** The record of a run, once it has reached a state. */
  reached(runId: string, state: string): Promise<{ run_id: string; state: string }>
  publish(files: Record<string, string>): Promise<unknown>
  /** Lets the run of `waits` in this folder go on. */
  release(place: string): void
}

export async function startWorld(env: Record<string, string> = {}): Promise<World> {
  const hub = await startTestHub({ env })
  const realm = hub.realm
  const { token } = await hub.realmToken(hub.admin, realm)
  const home = folder()
  // The commands of the runs wait for a file that a test makes.
  writeFileSync(join(home, 'settings.yml'), 'labels: [office]\npackages: { sandbox: none }\n', { mode: 0o600 })
  const spawn = () =>
    spawnDaemon({
      home,
      env: { CADRE_HUB_URL: hub.url, CADRE_REALM_TOKEN: token, CADRE_DAEMON_NAME: 'build-1' },
    })
  let daemon: RunningDaemon = await spawn()
  const { daemons } = await hub.ok(hub.admin, 'daemons/list', { realm_id: realm })
  const publish = (files: Record<string, string>) =>
    hub.ok(hub.admin, 'teams/publish', {
      scope: 'admin',
      files: Object.entries(files).map(([path, text]) => ({
        path,
        content_base64: Buffer.from(text).toString('base64'),
      })),
    })
  for (const files of [report('1.0.0'), report('1.1.0', NOTIFY), GATE, BROKEN, WAITS, NEEDY, HOSTILE]) {
    await publish(files)
  }
  for (const team of ['nightly-report', 'release', 'backup-check', 'waits', 'train', 'hostile']) {
    await hub.ok(hub.admin, 'realms/add_team', { realm_id: realm, team: `@admin/${team}` })
  }
  return {
    hub,
    stopDaemon: () => daemon.stop(),
    startDaemon: async () => {
      daemon = await spawn()
    },
    daemonId: daemons[0].id,
    realm,
    publish,
    dispatch: async (team, more = {}) =>
      (await hub.ok(hub.admin, 'dispatch/run', { realm_id: realm, team: `@admin/${team}`, ...more })).run_id,
    reached: (run_id, state) =>
      until(
        async () => {
          const run = await hub.ok(hub.admin, 'runs/get', { run_id })
          return run.state === state && run
        },
        `the run ${run_id} is ${state}`,
        30_000,
      ),
    release: place => writeFileSync(join(place, 'go'), ''),
  }
}
