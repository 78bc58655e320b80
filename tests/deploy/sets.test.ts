// The sets of deploy/ for Compose, and the proxy in front of two hubs, as far as they can be checked without Docker: they
// are read, and compared with the variables that the code reads and the documents name.

import { describe, expect, test } from 'bun:test'
import { MOST_DRAIN_SECONDS } from '../../lib/http/listen.ts'
import { adapted, hasCaddy } from '../support/caddy.ts'
import { deployText, imageVariables, type Service, servicesOf, volumesOf } from '../support/compose.ts'
import { fencesOf } from '../support/fences.ts'
import { allVariables, documentedVariables, variablesOf } from '../support/variables.ts'

const SETS = ['compose.yml', 'two-hubs.yml'] as const
const OWN_IMAGE = 'cadre:local'
/** The idle time after which Bun closes a connection to a hub (lib/http/listen.ts). */
const HUB_IDLE_SECONDS = 30
/** The longest poll (docs/hub.md), and a little for its way. */
const POLL_SECONDS = 35

const isSecret = (name: string) => /PASSWORD|KEY(?!_ID$)|SECRET|TOKEN/.test(name) && !/PUBLIC/.test(name)
const seconds = (text: string) => Number(/^(\d+)s$/.exec(text)![1])
/** Those of a set that do the work of cadre's hub or daemon. */
const own = (services: Record<string, Service>, program: 'hub' | 'daemon') =>
  Object.entries(services).filter(
    ([, { image, command }]) => image === OWN_IMAGE && (command?.[0] === 'hub') === (program === 'hub'),
  )

describe('variables', () => {
  test.each([
    ['hub.ts', 'The hub'],
    ['daemon.ts', 'The daemon, and the commands'],
  ] as const)('docs/variables.md has what %s reads, and nothing else', async (program, heading) => {
    const names = await variablesOf(program)
    expect(documentedVariables('Hub and daemon', heading)).toEqual(names)
    expect(names).toContain('CADRE_DRAIN_SECONDS')
    const other = program === 'hub.ts' ? await variablesOf('daemon.ts') : await variablesOf('hub.ts')
    expect(documentedVariables('Hub and daemon')).toEqual(names.filter(name => other.includes(name)))
  })

  test('no agent, and no process of its own, reads one that is none of these', async () => {
    const known = [...(await variablesOf('hub.ts')), ...(await variablesOf('daemon.ts'))]
    expect((await allVariables()).filter(name => !known.includes(name))).toEqual([])
  })

  test.each(SETS)('%s passes each of them on, unless the image sets it', file => {
    const services = servicesOf(file)
    const documented = {
      hub: documentedVariables('Hub and daemon', 'The hub'),
      daemon: documentedVariables('Hub and daemon', 'The daemon, and the commands'),
    }
    for (const program of ['hub', 'daemon'] as const) {
      for (const [name, { environment }] of own(services, program)) {
        const passed = Object.keys(environment!)
        // Compose would take one of the shell in place of what the image says.
        expect([name, passed.filter(each => imageVariables().includes(each))]).toEqual([name, []])
        const known = documented[program].filter(each => !imageVariables().includes(each))
        expect([name, passed.sort()]).toEqual([name, known])
      }
    }
    expect(own(services, 'hub').length).toBeGreaterThan(0)
  })

  test.each(SETS)('%s has no default for a secret, and the documents set what it asks for', file => {
    const text = deployText(file) + deployText('services.yml')
    const used = Array.from(text.matchAll(/(?<!\$)\$\{(\w+)([^}]*)\}/g), ([, name, rest]) => ({
      name: name!,
      rest: rest!,
    }))
    const asked = used.filter(({ rest }) => rest.startsWith(':?')).map(({ name }) => name)
    const open = used.filter(({ name, rest }) => !asked.includes(name) && !rest.startsWith(':-'))
    expect(open).toEqual([])
    expect(used.filter(({ name, rest }) => isSecret(name) && rest.startsWith(':-'))).toEqual([])
    for (const [service, { environment }] of Object.entries(servicesOf(file))) {
      const literal = Object.entries(environment ?? {}).filter(
        ([name, value]) => isSecret(name) && value !== null && value !== '' && !/^\$\{\w+(:\?[^}]*)?\}$/.test(value),
      )
      expect([service, literal]).toEqual([service, []])
    }
    const document = file === 'compose.yml' ? 'docs/install.md' : 'docs/hub.md'
    const commands = fencesOf(document).find(({ text }) => text.includes(`deploy/${file} up`))!.text
    const set = Array.from(commands.matchAll(/(\w+)=/g), ([, name]) => name!)
    expect([...new Set(asked)].filter(name => !set.includes(name))).toEqual([])
  })
})

describe.each(SETS)('%s', file => {
  const services = servicesOf(file)
  const awaited = (name: string, condition: string) =>
    Object.values(services).some(({ depends_on }) => depends_on?.[name]?.condition === condition)
  const isJob = (name: string) => awaited(name, 'service_completed_successfully')

  test('every image has a tag that stays what it is', () => {
    const images = Object.values(services).map(({ image }) => image)
    expect(images.filter(image => !/:[\w.-]+$/.test(image) || image.endsWith(':latest'))).toEqual([])
  })

  test('whatever goes on has a check of its health, and is started again', () => {
    expect(deployText('Containerfile')).toMatch(/^HEALTHCHECK /m)
    for (const [name, { image, healthcheck, restart }] of Object.entries(services)) {
      if (isJob(name)) expect([name, restart]).toEqual([name, 'no'])
      else
        expect([name, image === OWN_IMAGE || healthcheck !== undefined, restart]).toEqual([
          name,
          true,
          'unless-stopped',
        ])
    }
  })

  test('who is waited for exists, and so do the volumes', () => {
    for (const [name, { depends_on, volumes }] of Object.entries(services)) {
      const missing = Object.keys(depends_on ?? {}).filter(other => !(other in services))
      const named = (volumes ?? []).map(volume => volume.split(':')[0]!).filter(volume => !volume.startsWith('.'))
      expect([name, missing, named.filter(volume => !volumesOf(file).includes(volume))]).toEqual([name, [], []])
    }
    const used = Object.values(services).flatMap(({ volumes }) => (volumes ?? []).map(volume => volume.split(':')[0]))
    expect(volumesOf(file).filter(volume => used.filter(each => each === volume).length !== 1)).toEqual([])
  })

  test('a stop gives hub and daemon the longest drain and 15 seconds', () => {
    const stopped = [...own(services, 'hub'), ...own(services, 'daemon')]
    for (const [name, { stop_grace_period: given }] of stopped)
      expect([name, given]).toEqual([name, `${MOST_DRAIN_SECONDS + 15}s`])
  })
})

describe('the proxy in front of two hubs', () => {
  const services = servicesOf('two-hubs.yml')
  const hubs = own(services, 'hub')

  test('the hubs believe it, and nobody else can reach them', () => {
    expect(hubs.map(([name]) => name)).toEqual(['hub-1', 'hub-2'])
    for (const [, { environment, ports }] of hubs) {
      expect(environment).toMatchObject({ CADRE_TRUST_PROXY: '1', CADRE_HUB_PUBLIC_URL: 'https://${HUB_DOMAIN}' })
      expect(ports).toBeUndefined()
    }
    const published = Object.entries(services).filter(([, { ports }]) => ports)
    expect(published.map(([name]) => name)).toEqual(['proxy'])
  })

  test('both hubs have the same variables, and a home each', () => {
    expect(hubs[0]![1].environment).toEqual(hubs[1]![1].environment!)
    expect(hubs.map(([, { volumes }]) => volumes)).toEqual([['hub-1:/var/lib/cadre'], ['hub-2:/var/lib/cadre']])
  })

  test.skipIf(!hasCaddy)(
    'Caddy takes its configuration, and sends calls to both hubs while they are ready',
    async () => {
      const { config, servers, proxies, notes } = await adapted({ HUB_DOMAIN: 'hub.test', FILES_DOMAIN: 'files.test' })
      expect(notes).toEqual([])
      const hub = proxies.get('hub.test')!
      expect(hub.upstreams).toEqual(hubs.map(([name]) => ({ dial: `${name}:7400` })))
      expect(proxies.get('files.test')!.upstreams).toEqual([{ dial: 'storage:9000' }])

      const { uri, interval, timeout } = hub.health_checks!.active
      expect(uri).toBe('/ready')
      const drain = /\$\{CADRE_DRAIN_SECONDS:-(\d+)\}/.exec(hubs[0]![1].environment!.CADRE_DRAIN_SECONDS!)![1]
      expect((interval + timeout) / 1e9).toBeLessThan(Number(drain))

      for (const server of servers) {
        expect(server).not.toHaveProperty('trusted_proxies')
        expect(server).not.toHaveProperty('read_timeout')
        expect(server).not.toHaveProperty('write_timeout')
        expect(server.idle_timeout! / 1e9).toBeGreaterThan(POLL_SECONDS)
      }
      for (const { headers, transport } of proxies.values()) {
        expect(headers).toBeUndefined()
        expect(
          Object.keys(transport ?? {}).filter(name => /^(read|write|response_header)_timeout$/.test(name)),
        ).toEqual([])
      }
      expect(hub.transport!.keep_alive!.idle_timeout / 1e9).toBeLessThan(HUB_IDLE_SECONDS)

      const grace = config.apps.http.grace_period / 1e9
      expect(grace).toBeGreaterThanOrEqual(POLL_SECONDS)
      expect(seconds(services.proxy!.stop_grace_period!)).toBeGreaterThan(grace)
    },
  )
})
