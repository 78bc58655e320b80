// What the storm of doubt writes to: the agents that have `once` actions, each with a fake vendor behind a proxy that loses
// replies and lets writes land late. Each entry has a mark of its own, by which it is counted at the vendor.

import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import chat from '../../agents/chat.ts'
import crm from '../../agents/crm.ts'
import email from '../../agents/email.ts'
import filestore from '../../agents/filestore.ts'
import git from '../../agents/git.ts'
import helpdesk from '../../agents/helpdesk.ts'
import http from '../../agents/http.ts'
import issues from '../../agents/issues.ts'
import metrics from '../../agents/metrics.ts'
import wiki from '../../agents/wiki.ts'
import { AgentError } from '../../lib/agent/cadre.ts'
import type { Agent, Handler } from '../../lib/agent/define.ts'
import type { DrivenClock } from '../../lib/testing/driven-clock.ts'
import { fakeVendor } from '../../lib/testing/fake-vendor.ts'
import { ACCOUNT } from '../vendors/atlassian.ts'
import { ACCOUNT as BITBUCKET, fakeBitbucket } from '../vendors/bitbucket.ts'
import { chatVendor } from '../vendors/chat.ts'
import { fakeCrm, TOKEN as HUBSPOT } from '../vendors/crm.ts'
import { credentials, fakeDrive } from '../vendors/filestore.ts'
import { freshClone } from '../vendors/git-host.ts'
import { fakeGitHub, TOKEN } from '../vendors/github.ts'
import { fakeHelpdesk, ACCOUNT as ZENDESK } from '../vendors/helpdesk.ts'
import { fakeIssues } from '../vendors/issues.ts'
import { mailVendor, PASSWORD, USER } from '../vendors/mail.ts'
import { fakeMetrics, KEYS } from '../vendors/metrics.ts'
import { fakeWiki } from '../vendors/wiki.ts'
import { folder } from './folder.ts'
import { type LateProxy, lateProxy } from './late-proxy.ts'
import { type Fate, lateVendor } from './late-vendor.ts'
import type { Random } from './random.ts'

/** An entry: the idempotency key that cadre gives it, and the mark that its team gives it. */
export interface Place {
  key: string
  mark: string
}

/** A vendor with its agent, to which a storm writes. */
export interface DoubtTarget extends Disposable {
  agents: Record<string, Agent>
  settings: Record<string, Record<string, unknown>>
  /** The names of the entries of a phase; one empty name where the phase itself is what is written. */
  entries: readonly string[]
  /** What a phase has that writes entries of these marks, from files of `workspace`. */
  phase(marks: readonly string[], workspace: string, random: Random): object
  /** The ids of what is there of an entry. */
  there(place: Place): string[]
  /** Whether a write of the entry was asked for and is not there yet. */
  isComing(place: Place): boolean
  /** Milliseconds after its start in which a phase has sent its writes; 0 where that takes no time. */
  pace: number
  /** Lets everything go on that takes no time of the clock. */
  turn(): Promise<void>
  deaf: boolean
  fate: () => Fate
  /** Whether a look is refused for now. */
  fault: () => boolean
}

interface Given {
  agent: Agent
  vendor: Disposable & { url: string }
  /** What stands before the vendor, if it does not speak HTTP. */
  proxy?: LateProxy
  /** `METHOD /path` of the requests that write. */
  writes: RegExp
  settings(url: string): Record<string, unknown>
  /** The fields of a phase that is written as a whole. */
  whole?(mark: string, workspace: string, url: string): object
  /** The action, and its entry. */
  action?: string
  entry?(mark: string, workspace: string, url: string): object
  there(place: Place): string[]
}

const textOf = (mark: string, workspace: string, end = 'md') => {
  const file = `${mark}.${end}`
  writeFileSync(join(workspace, file), `the text of ${mark}`)
  return file
}

const onJira = (
  action: string,
  writes: RegExp,
  more: Pick<Given, 'entry'>,
  path: 'comments' | 'attachments' | 'issues',
) => {
  const vendor = fakeIssues()
  const first = vendor.issues.get('WEB-1')!
  const there = {
    comments: ({ key }: Place) =>
      first.comments.filter(({ properties }) => JSON.stringify(properties).includes(key)).map(({ id }) => id),
    attachments: ({ mark }: Place) =>
      first.attachments.filter(({ filename }) => filename === `${mark}.md`).map(({ id }) => id),
    issues: ({ mark }: Place) =>
      [...vendor.issues.values()].filter(({ fields }) => fields.summary === mark).map(({ key }) => key),
  }[path]
  const settings = (base_url: string) => ({ ...ACCOUNT, base_url })
  return { agent: issues, vendor, writes, settings, action, ...more, there }
}

const onGit = (settings: (url: string) => Record<string, unknown>): Omit<Given, 'vendor' | 'there'> => ({
  agent: git,
  writes: /^POST .*\/(pulls|pullrequests)$/,
  settings,
  whole(mark, workspace, url) {
    const clone = join(workspace, mark)
    mkdirSync(clone)
    freshClone(`${url}/acme/app.git`, clone)
    textOf(mark, clone)
    return { action: 'create_pr', title: mark, branch: mark, project_dir: mark }
  },
})

/** By name: what is written to. */
const GIVEN: Record<string, (clock: DrivenClock) => Given | Promise<Given>> = {
  comment: () =>
    onJira(
      'add_comment',
      /^POST .*\/comment$/,
      { entry: (mark, workspace) => ({ ref: 'WEB-1', file: textOf(mark, workspace) }) },
      'comments',
    ),
  attachment: () =>
    onJira(
      'add_attachment',
      /^POST .*\/attachments$/,
      { entry: (mark, workspace) => ({ ref: 'WEB-1', file: textOf(mark, workspace) }) },
      'attachments',
    ),
  issue: () =>
    onJira(
      'create_issue',
      /^POST .*\/issue$/,
      {
        entry(mark, workspace) {
          const drafts = [{ project: 'WEB', type: 'Story', summary: mark }]
          writeFileSync(join(workspace, `${mark}.json`), JSON.stringify({ issues: drafts }))
          return { file: `${mark}.json` }
        },
      },
      'issues',
    ),
  page() {
    const vendor = fakeWiki()
    return {
      agent: wiki,
      vendor,
      writes: /^POST .*\/pages$/,
      settings: base_url => ({ ...ACCOUNT, base_url }),
      action: 'create_page',
      entry: (mark, workspace) => ({ ref: 'DOCS', title: mark, file: textOf(mark, workspace) }),
      there: ({ mark }) => [...vendor.pages.values()].filter(({ title }) => title === mark).map(({ id }) => id),
    }
  },
  note() {
    const vendor = fakeCrm()
    return {
      agent: crm,
      vendor,
      writes: /^POST .*\/notes$/,
      settings: base_url => ({ access_token: HUBSPOT, base_url }),
      action: 'add_note',
      entry: (mark, workspace) => ({ ref: 'contacts/42', file: textOf(mark, workspace) }),
      there: ({ key }) =>
        vendor.objects.notes!.filter(note => note.properties.hs_note_body!.includes(key)).map(({ id }) => id),
    }
  },
  event() {
    const vendor = fakeMetrics()
    return {
      agent: metrics,
      vendor,
      writes: /^POST .*\/events$/,
      settings: base_url => ({ ...KEYS, base_url }),
      action: 'post_event',
      entry(mark, workspace) {
        writeFileSync(join(workspace, `${mark}.json`), JSON.stringify({ title: mark, text: mark }))
        return { file: `${mark}.json` }
      },
      there: ({ mark }) => vendor.posted.filter(({ title }) => title === mark).map(({ id_str }) => `${id_str}`),
    }
  },
  answer() {
    const vendor = fakeHelpdesk()
    return {
      agent: helpdesk,
      vendor,
      writes: /^PUT .*\/tickets\/\d+$/,
      settings: base_url => ({ ...ZENDESK, base_url }),
      action: 'add_comment',
      entry: (mark, workspace) => ({ ref: '35436', file: textOf(mark, workspace) }),
      there: ({ key }) =>
        vendor.comments.filter(({ metadata }) => JSON.stringify(metadata).includes(key)).map(({ id }) => `${id}`),
    }
  },
  file() {
    const vendor = fakeDrive()
    return {
      agent: filestore,
      vendor,
      writes: /^POST \/upload/,
      settings: base_url => ({ credentials_file: credentials('oauth'), auth_mode: 'oauth', base_url }),
      entry: (mark, workspace) => ({ ref: 'folder-1', file: textOf(mark, workspace) }),
      there: ({ mark }) => vendor.files.filter(({ name }) => name === `${mark}.md`).map(({ id }) => id),
    }
  },
  github() {
    const vendor = fakeGitHub()
    return {
      vendor,
      ...onGit(url => ({ provider: 'github', github: { token: TOKEN, base_url: url } })),
      there: ({ mark }) => vendor.pullRequests.filter(({ head }) => head.ref === mark).map(({ number }) => `${number}`),
    }
  },
  bitbucket() {
    const vendor = fakeBitbucket()
    return {
      vendor,
      ...onGit(url => ({ provider: 'bitbucket', bitbucket: { ...BITBUCKET, base_url: `${url}/2.0` } })),
      there: ({ mark }) =>
        vendor.pullRequests.filter(({ source }) => source.branch.name === mark).map(({ id }) => `${id}`),
    }
  },
  request() {
    const taken: string[] = []
    const vendor = fakeVendor({
      'POST /items'({ body }) {
        taken.push(`${body}`)
        return {}
      },
    })
    return {
      agent: http,
      vendor,
      writes: /^POST /,
      settings: () => ({}),
      entry: (mark, _, url) => ({ url: `${url}/items`, body: mark }),
      there: ({ mark }) => taken.flatMap((each, at) => (each === mark ? [`${at}`] : [])),
    }
  },
  async mail(clock) {
    const vendor = await mailVendor()
    const proxy: LateProxy = {
      ...{ url: '127.0.0.1', deaf: false, fate: () => ({}), coming: new Set(), landing: 0 },
      [Symbol.dispose]: () => void vendor.close(),
    }
    const land = async (text: string, after: number, take: () => void) => {
      proxy.coming.add(text)
      await clock.pause(after)
      take()
      proxy.coming.delete(text)
    }
    vendor.meets = ({ mail }, take) => {
      if (proxy.deaf) return 'lost'
      const { reply = 'ok', lands = 0 } = proxy.fate()
      if (reply === 'refused') return 'refused'
      if (lands === 0) take()
      else if (lands !== null) void land(mail.text ?? '', lands, take)
      return reply === 'ok' ? 'taken' : 'lost'
    }
    return {
      agent: email,
      vendor: { url: proxy.url, [Symbol.dispose]() {} },
      proxy,
      writes: /^$/,
      settings: smtp_host => ({
        ...{ smtp_host, smtp_port: vendor.port, tls: false, username: USER, password: PASSWORD },
        channels: { ada: 'ada@example.org' },
      }),
      whole: mark => ({ message: mark }),
      there: ({ mark }) => vendor.received.flatMap(({ mail }, at) => (mail.text?.includes(mark) ? [`${at}`] : [])),
    }
  },
  message() {
    const vendor = chatVendor()
    return {
      agent: chat,
      vendor,
      writes: /^POST /,
      settings: url => ({ channels: { ops: vendor.hook('ops').replace(vendor.url, url) } }),
      whole: mark => ({ message: mark }),
      there: ({ mark }) =>
        vendor.posts.flatMap(({ payload }, at) => (JSON.stringify(payload).includes(mark) ? [`${at}`] : [])),
    }
  },
}

export const TARGETS = ['ticket', ...Object.keys(GIVEN)]

export async function targetOf(name: string, clock: DrivenClock): Promise<DoubtTarget> {
  return name === 'ticket' ? tickets(clock) : behindProxy(await GIVEN[name]!(clock), clock)
}

/** The vendor of the tests, with an agent of its own, which can also show a write late. */
function tickets(clock: DrivenClock): DoubtTarget {
  const vendor = lateVendor(clock)
  const mine = ({ key }: Place) => vendor.tickets.filter(ticket => ticket.key === key).map(({ id }) => id)
  return Object.assign(vendor, {
    agents: { vendor: vendor.agent },
    settings: {},
    entries: ['e0', 'e1'],
    phase: (marks: readonly string[], _: string, random: Random) => ({
      action: random.once(6) ? 'blind' : 'create',
      target_entries: marks.map((title, n) => ({ name: `e${n}`, title })),
    }),
    there: mine,
    isComing: ({ key }: Place) => vendor.coming.has(key),
    pace: 0,
    turn: () => nextTurn(),
    [Symbol.dispose]() {},
  })
}

function behindProxy(given: Given, clock: DrivenClock): DoubtTarget {
  const { agent, vendor, writes, settings, whole, action, entry, there } = given
  const proxy = given.proxy ?? lateProxy(vendor.url, writes, clock)
  const home = process.env.HOME
  // The developer's own configuration of git stays out.
  process.env.HOME = folder()
  let busy = 0
  const during = async <T>(work: () => Promise<T>): Promise<T> => {
    busy++
    try {
      return await work()
    } finally {
      busy--
    }
  }
  const watched = <H extends Handler>(handler: H): H => ({
    ...handler,
    run: (given, context) => during(() => handler.run(given, context)),
    ...(handler.find && {
      find(given: unknown, context: never) {
        if (target.fault()) throw new AgentError('HTTP 503', { retryable: true })
        return during(() => handler.find!(given, context))
      },
    }),
  })
  const actions = agent.actions && Object.entries(agent.actions).map(([name, each]) => [name, watched(each)] as const)
  const target: DoubtTarget = {
    agents: {
      vendor: {
        ...agent,
        ...(actions && { actions: Object.fromEntries(actions) }),
        ...(agent.phase && { phase: watched(agent.phase) }),
        ...(agent.target && { target: watched(agent.target) }),
      },
    },
    settings: { vendor: settings(proxy.url) },
    entries: whole ? [''] : ['e0', 'e1'],
    phase: (marks, workspace) =>
      whole
        ? whole(marks[0]!, workspace, proxy.url)
        : {
            ...(action !== undefined && { action }),
            target_entries: marks.map((mark, n) => ({ name: `e${n}`, ...entry!(mark, workspace, proxy.url) })),
          },
    there,
    isComing: ({ key, mark }) => [...proxy.coming].some(text => text.includes(key) || text.includes(mark)),
    pace: whole ? 300 : 30,
    async turn() {
      await nextTurn()
      while (busy + proxy.landing > 0) await Bun.sleep(1)
    },
    fault: () => false,
    get deaf() {
      return proxy.deaf
    },
    set deaf(deaf) {
      proxy.deaf = deaf
    },
    get fate() {
      return proxy.fate
    },
    set fate(fate) {
      proxy.fate = fate
    },
    [Symbol.dispose]() {
      proxy[Symbol.dispose]()
      vendor[Symbol.dispose]()
      process.env.HOME = home
    },
  }
  return target
}
