// The view of a phase and the arguments that make it, as pure functions: every mount, for every workspace and
// the daemon's home.

import { describe, expect, test } from 'bun:test'
import { bubblewrap, container, HOME_INSIDE } from '../../lib/agent/commands/sandbox.ts'
import {
  type Protected,
  type SandboxNeeds,
  type SandboxView,
  sandboxView,
  sharedFolder,
} from '../../lib/agent/commands/sandbox-view.ts'
import type { AgentError } from '../../lib/agent/core/agent-error.ts'

const HOME = '/home/ada/.cadre'
const KEPT: Protected = { home: HOME, persons: ['/home/ada'] }
const STATE = `${HOME}/runs/r2`

const needs = (more: Partial<SandboxNeeds> = {}): SandboxNeeds => ({
  workspace: '/home/ada/site',
  runs: `${HOME}/runs`,
  rootDir: `${HOME}/runs/r1`,
  stateDir: STATE,
  writes: [`${STATE}/tmp/result-build`],
  files: [],
  chosen: new Set(),
  sameTree: id => id === 'r1',
  network: false,
  ...more,
})
/** A file system in which everything exists, with these links. */
const with_ =
  (links: Record<string, string> = {}) =>
  (path: string) =>
    links[path] ?? path
const mountsOf = (more: Partial<SandboxNeeds> = {}, kept = KEPT, links = {}) =>
  sandboxView(needs(more), kept, with_(links)).mounts.map(({ access, path }) => `${access} ${path}`)
const refusal = (more: Partial<SandboxNeeds>, kept = KEPT, links = {}) => {
  try {
    return mountsOf(more, kept, links)
  } catch (error) {
    return (error as AgentError).code
  }
}

describe('the view of a phase', () => {
  test('is the workspace, the files of the run, and the folders for results', () => {
    expect(mountsOf()).toEqual(['write /home/ada/site', `write ${STATE}/files`, `write ${STATE}/tmp/result-build`])
  })

  test('has the own workspace of its tree, and of no other', () => {
    expect(mountsOf({ workspace: `${HOME}/runs/r1/work` })[0]).toBe(`write ${HOME}/runs/r1/work`)
    expect(refusal({ workspace: `${HOME}/runs/r3/work` })).toBe('sandbox')
  })

  test('a folder comes before what lies in it', () => {
    const all = sandboxView(needs({ workspace: '/srv/deep/er/and/deeper' }), KEPT, with_()).mounts
    for (const [at, { path }] of all.entries()) {
      expect(all.slice(at + 1).filter(later => path.startsWith(`${later.path}/`))).toEqual([])
    }
  })

  test.each([
    '/',
    '/usr',
    '/etc',
    '/tmp',
    '/var',
    '/home',
    '/home/ada',
    '/proc',
    '/proc/1',
    '/sys/kernel',
    '/dev/shm',
    `${HOME}/runs`,
    `${HOME}/runs/r3/files`,
    `${HOME}/packages/x`,
    `${HOME}/agents`,
    '/home/ada/.ssh',
    '/home/ada/.ssh/keys',
    '/home/ada/.gnupg',
    '/home/ada/.aws',
  ])('%s is no workspace', workspace => {
    expect(refusal({ workspace })).toBe('sandbox')
  })

  test.each(['/home/ada/site', '/usr/src/app', '/var/www', '/tmp/x', '/etc/nginx', '/home/ada/.config/nvim', '/srv'])(
    '%s is a workspace',
    workspace => {
      expect(refusal({ workspace })[0]).toBe(`write ${workspace}`)
    },
  )

  test('a workspace lies beside what the daemon keeps where its home is the home of a service', () => {
    const kept = { home: '/var/lib/cadre', persons: ['/var/lib/cadre'] }
    const at = (workspace: string) =>
      refusal(
        {
          workspace,
          runs: '/var/lib/cadre/runs',
          rootDir: '/var/lib/cadre/runs/r1',
          stateDir: '/var/lib/cadre/runs/r2',
          writes: [],
        },
        kept,
      )
    expect(at('/var/lib/cadre/repository')[0]).toBe('write /var/lib/cadre/repository')
    for (const own of ['/runs', '/packages', '/secrets', '/processes'])
      expect(at(`/var/lib/cadre${own}`)).toBe('sandbox')
  })

  test('the daemon’s home is an empty workspace', () => {
    expect(mountsOf({ workspace: HOME })[0]).toBe(`empty ${HOME}`)
  })

  test('the daemon’s home in the workspace is covered, and what lies around it is pinned', () => {
    const kept = { home: '/srv/app/a/b/home', persons: ['/home/ada'] }
    const own = {
      runs: '/srv/app/a/b/home/runs',
      rootDir: '/srv/app/a/b/home/runs/r1',
      stateDir: '/srv/app/a/b/home/runs/r2',
      writes: [],
    }
    expect(mountsOf({ workspace: '/srv/app', ...own }, kept)).toEqual([
      'write /srv/app',
      'write /srv/app/a',
      'write /srv/app/a/b',
      'empty /srv/app/a/b/home',
      'write /srv/app/a/b/home/runs/r2/files',
    ])
  })

  test('links are judged by where they lead', () => {
    expect(refusal({ workspace: '/srv/link' }, KEPT, { '/srv/link': '/home/ada' })).toBe('sandbox')
    expect(refusal({ workspace: '/srv/link' }, KEPT, { '/srv/link': '/srv/other' })).toBe('sandbox')
    expect(refusal({ workspace: '/data/a' }, KEPT, { '/home/ada': '/data/a' })).toBe('sandbox')
    const chosen = { files: ['/srv/key'], chosen: new Set(['/srv/key']) }
    expect(refusal(chosen, KEPT, { '/srv/key': '/home/ada/.ssh/id' })).toBe('sandbox')
    // What a person named is recorded without links, so a link in its place came later.
    expect(refusal(chosen, KEPT, { '/srv/key': '/data/victim' })).toBe('sandbox')
    const inside = { files: ['/home/ada/site/x'], chosen: new Set(['/home/ada/site/x']) }
    expect(refusal(inside, KEPT, { '/home/ada/site/x': '/data/victim' })).toBe('sandbox')
    expect(refusal(inside, KEPT, { '/home/ada/site/x': '/home/ada/site/y' })).toEqual(mountsOf())
  })

  test('a file input is shown to be read when a person named it, or a run of the tree has it', () => {
    const shown = (path: string, chosen = false) =>
      refusal({ files: [path], chosen: new Set(chosen ? [path] : []) }).includes(`read ${path}`)
    expect(shown('/data/x', true)).toBe(true)
    expect(shown(`${HOME}/runs/r1/files/make/x`)).toBe(true)
    // It is there with its folder.
    expect(refusal({ files: ['/home/ada/site/x'] })).toEqual(mountsOf())
    for (const path of [
      '/data/x',
      `${HOME}/runs/r3/files/x`,
      `${HOME}/runs/r1/secrets`,
      `${HOME}/settings.yml`,
      '/home/ada/.ssh/id',
    ]) {
      expect([path, refusal({ files: [path] })]).toEqual([path, 'sandbox'])
    }
    for (const path of [`${HOME}/settings.yml`, `${HOME}/runs/r3/files/x`, '/home/ada/.ssh/id', '/home/ada/.netrc']) {
      expect([path, refusal({ files: [path], chosen: new Set([path]) })]).toEqual([path, 'sandbox'])
    }
  })

  test('a file that is missing is left to the command', () => {
    const real = (path: string) => (path === '/data/gone' ? null : path)
    expect(sandboxView(needs({ files: ['/data/gone'] }), KEPT, real).mounts.length).toBe(3)
  })
})

test('folders of programs are shared unless they are a person’s, the daemon’s or the system’s', () => {
  const shared = (path: string) => sharedFolder(path, KEPT, with_({ '/opt/link': '/home/ada/bin' })) !== null
  expect(['/opt/node/bin', '/snap/bin'].map(shared)).toEqual([true, true])
  const others = [
    '/usr/bin',
    '/bin',
    '/',
    '/home',
    '/home/ada/bin',
    `${HOME}/bin`,
    '/tmp/x',
    'relative',
    '.',
    '',
    '/opt/link',
  ]
  expect(others.filter(shared)).toEqual([])
})

const view = (more: Partial<SandboxView> = {}): SandboxView => ({
  mounts: [
    { path: '/w', source: '/w', access: 'write' },
    { path: '/w/home', source: '/w/home', access: 'empty' },
    { path: '/r', source: '/real/r', access: 'read' },
  ],
  network: false,
  ...more,
})
const outside = { PATH: '/usr/bin', HOME: '/home/ada', LANG: 'C' }

describe('bubblewrap', () => {
  const ways = {
    program: '/usr/bin/bwrap',
    forbidsNamespaces: true,
    mountsOpened: true,
    system: ['--ro-bind', '/usr', '/usr'],
    shared: [],
    env: outside,
  }
  const enclose = (given = view(), env: Record<string, string> = { ...outside, SECRET: 'value' }, more = {}) => {
    const enclosed = bubblewrap({ ...ways, ...more }, given).enclose(['sh', '-c', 'true'], '/w', env)
    return { ...enclosed, options: enclosed.input!.split('\0').slice(0, -1) }
  }
  const has = (options: string[], ...words: string[]) => options.join('\0').includes(words.join('\0'))

  test('has namespaces of its own, no capabilities, and ends with the daemon', () => {
    const { options, inGroup } = enclose()
    for (const each of ['--unshare-all', '--unshare-user', '--disable-userns', '--die-with-parent', '--clearenv']) {
      expect(options).toContain(each)
    }
    expect(has(options, '--cap-drop', 'ALL')).toBe(true)
    expect(options).not.toContain('--share-net')
    expect(inGroup).toBe(true)
    expect(enclose(view({ network: true })).options).toContain('--share-net')
  })

  test('the system, /proc and / are read-only, and /tmp is its own', () => {
    const { options } = enclose()
    expect(has(options, '--proc', '/proc', '--remount-ro', '/proc')).toBe(true)
    expect(has(options, '--remount-ro', '/', '--chdir', '/w')).toBe(true)
    expect(has(options, '--tmpfs', '/tmp')).toBe(true)
    expect(options.indexOf('/w')).toBeGreaterThan(options.indexOf('/tmp'))
  })

  test('mounts the view in its order, and closes what is empty when all is mounted', () => {
    const { options, opened } = enclose()
    expect(has(options, '--bind-fd', '3', '/w', '--tmpfs', '/w/home', '--ro-bind-fd', '4', '/r')).toBe(true)
    expect(opened).toEqual(['/w', '/real/r'])
    expect(has(options, '--remount-ro', '/w/home', '--remount-ro', '/', '--chdir')).toBe(true)
  })

  test('mounts paths where it cannot mount what is open', () => {
    const { options, opened } = enclose(view(), {}, { mountsOpened: false })
    expect(has(options, '--bind', '/w', '/w', '--tmpfs', '/w/home', '--ro-bind', '/real/r', '/r')).toBe(true)
    expect(opened).toEqual([])
  })

  test('the variables of a team are no arguments, and none of them is set outside', () => {
    const { command, env, options } = enclose(view(), { ...outside, LD_PRELOAD: 'x', PATH: '/mine', SECRET: 'value' })
    expect(command).toEqual(['/usr/bin/bwrap', '--args', '0', '--', 'sh', '-c', 'true'])
    expect(env).toEqual(outside)
    expect(has(options, '--setenv', 'PATH', '/mine')).toBe(true)
    expect(has(options, '--setenv', 'LD_PRELOAD', 'x')).toBe(true)
  })

  test('HOME is an empty folder, unless the team sets it', () => {
    expect(has(enclose().options, '--setenv', 'HOME', HOME_INSIDE)).toBe(true)
    expect(has(enclose(view(), { ...outside, HOME: '/w' }).options, '--setenv', 'HOME', '/w')).toBe(true)
  })
})

describe('a container', () => {
  const ways = { program: '/usr/bin/podman', image: 'debian', user: '1000:1000', label: 'cadre.home=x', env: outside }
  const enclose = (given = view(), more: Partial<typeof ways> = {}) =>
    container({ ...ways, ...more }, given).enclose(['sh', '-c', 'true'], '/w', {
      ...outside,
      SECRET: 'value',
      PATH: '/mine',
    })

  test('makes the same promises', () => {
    const { command, inGroup } = enclose()
    const text = command.join(' ')
    for (const each of [
      '--network none',
      '--read-only',
      '--cap-drop ALL',
      '--security-opt no-new-privileges',
      '--user 1000:1000',
      '--rm',
      '--userns keep-id',
      '--tmpfs /tmp:',
      '--mount type=bind,source=/w,destination=/w ',
      '--mount type=tmpfs,destination=/w/home ',
      '--mount type=bind,source=/real/r,destination=/r,readonly ',
    ]) {
      expect(text).toContain(each)
    }
    expect(inGroup).toBe(false)
    expect(enclose(view({ network: true })).command).not.toContain('--network')
    expect(enclose(view(), { user: '0:0' }).command).not.toContain('keep-id')
    expect(enclose(view(), { program: '/usr/bin/docker' }).command).not.toContain('keep-id')
  })

  test('no value is an argument, and no variable concerns podman itself', () => {
    const { command, env } = enclose()
    expect(command.join(' ')).not.toContain('value')
    expect(env).toEqual({ ...outside, CADRE_VAR_SECRET: 'value', CADRE_VAR_PATH: '/mine' })
  })

  test('is removed by its name', () => {
    const { command, remove } = enclose()
    expect(remove).toEqual(['/usr/bin/podman', 'rm', '--force', command[command.indexOf('--name') + 1]!])
  })
})
