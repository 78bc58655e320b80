// A code host: real repositories behind git's own HTTP server, and beside them the API that `api` answers.

import { cpSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type FakeVendor, refusal, type VendorRequest } from '../../lib/testing/fake-vendor.ts'
import { folder } from '../support/folder.ts'

/** `seen` has the requests of the API only; `fail` applies to all. */
export interface GitHost extends FakeVendor {
  /** Every request for a repository, with what it carried. */
  pulls: { path: string; authorization: string | null }[]
  /** Of the bare repository acme/app, which has one commit on main. */
  origin: string
}
type Answer = Parameters<FakeVendor['fail']>[1]

/** Runs git as a developer would, in a folder. */
export function git(cwd: string, ...args: string[]): string {
  const identity = { GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1' }
  const author = ['-c', 'user.name=dev', '-c', 'user.email=dev@acme.test']
  const { exitCode, stdout, stderr } = Bun.spawnSync(['git', ...author, ...args], {
    cwd,
    env: { PATH: process.env.PATH!, HOME: cwd, ...identity },
  })
  if (exitCode !== 0) throw new Error(`git ${args.join(' ')}: ${stderr}`)
  return stdout.toString().trim()
}

export function gitHost(authorization: string, api: (request: VendorRequest) => Response): GitHost {
  const root = folder()
  const origin = join(root, 'acme/app.git')
  cpSync(join(begun(), 'origin'), origin, { recursive: true })
  const faults: { match: RegExp; answer: Answer; done: boolean | Promise<unknown>; times: number }[] = []
  const host = { origin, pulls: [] as GitHost['pulls'], seen: [] as VendorRequest[] }
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      const { pathname, searchParams } = new URL(request.url)
      const given = request.headers.get('authorization')
      const isGit = /\.git\//.test(pathname)
      if (isGit) host.pulls.push({ path: pathname, authorization: given })
      const body = await request.arrayBuffer()
      const text = isGit ? '' : new TextDecoder().decode(body)
      const call: VendorRequest = {
        method: request.method,
        path: pathname,
        params: {},
        query: searchParams,
        headers: request.headers,
        body: text && request.headers.get('content-type')?.startsWith('application/json') ? JSON.parse(text) : text,
      }
      if (!isGit) host.seen.push(call)
      const answer = () => {
        if (!isGit) return api(call)
        if (given !== authorization) return refusal(401, '', { 'www-authenticate': 'Basic realm="git"' })
        return backend(root, request, body)
      }
      const fault = faults.find(each => each.times > 0 && each.match.test(`${request.method} ${pathname}`))
      if (!fault) return answer()
      fault.times--
      if (fault.done === true) await answer()
      else if (fault.done) void fault.done.then(answer)
      return fault.answer(call)
    },
  })
  return {
    ...host,
    url: `http://127.0.0.1:${server.port}`,
    traits: { lags: 0, pages: null, knowsRepetitions: false },
    fail: (match, answer, { done = false, times = 1 } = {}) => faults.push({ match, answer, done, times }),
    [Symbol.dispose]: () => void server.stop(true),
  }
}

/** Makes a fork of acme/app, as it is now, and returns its folder. */
export function forkOf({ origin }: Pick<GitHost, 'origin'>, owner: string): string {
  const path = join(origin, '../..', owner, 'app.git')
  cpSync(origin, path, { recursive: true })
  return path
}

/** A clone of a repository as it began, whose remote is at that address. */
export function freshClone(remote: string, at = folder()): string {
  cpSync(join(begun(), 'clone'), at, { recursive: true })
  const config = join(at, '.git/config')
  writeFileSync(config, readFileSync(config, 'utf8').replace(/url = .*/, `url = ${remote}`))
  return at
}

let made: string | undefined

/** A repository with one commit on main, and a clone of it; made once and copied from then on. */
function begun(): string {
  if (made) return made
  made = folder()
  git(made, 'init', '--quiet', '--template=', '--bare', '--initial-branch=main', 'origin')
  git(made, 'clone', '--quiet', '--template=', 'origin', 'clone')
  const clone = join(made, 'clone')
  writeFileSync(join(clone, 'readme.md'), 'first\n')
  git(clone, 'add', '.')
  git(clone, 'commit', '--quiet', '-m', 'First')
  git(clone, 'push', '--quiet', '-u', 'origin', 'HEAD:main')
  return made
}

async function backend(root: string, request: Request, body: ArrayBuffer): Promise<Response> {
  const { pathname, search } = new URL(request.url)
  const { headers } = request
  const child = Bun.spawn(['git', 'http-backend'], {
    env: {
      PATH: process.env.PATH!,
      GIT_PROJECT_ROOT: root,
      GIT_HTTP_EXPORT_ALL: '1',
      REMOTE_USER: 'someone',
      PATH_INFO: pathname,
      QUERY_STRING: search.slice(1),
      REQUEST_METHOD: request.method,
      CONTENT_TYPE: headers.get('content-type') ?? '',
      CONTENT_LENGTH: String(body.byteLength),
      HTTP_CONTENT_ENCODING: headers.get('content-encoding') ?? '',
      GIT_PROTOCOL: headers.get('git-protocol') ?? '',
    },
    stdin: new Uint8Array(body),
    stdout: 'pipe',
    stderr: 'inherit',
  })
  const output = Buffer.from(await child.stdout.bytes())
  const end = output.indexOf('\r\n\r\n')
  const lines = output.subarray(0, end).toString().split('\r\n')
  const fields = lines.map(line => line.split(': ') as [string, string])
  const status = Number(fields.find(([name]) => name === 'Status')?.[1].slice(0, 3) ?? 200)
  const reply = fields.filter(([name]) => name !== 'Status')
  return new Response(output.subarray(end + 4), { status, headers: reply })
}
