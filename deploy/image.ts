// The image of a release as an archive (https://github.com/opencontainers/image-spec), built from deploy/Containerfile
// where podman or docker can build. It has the same bytes each time only if the Containerfile names its base images by
// digests, so without them none is built. No builder was at hand when this was written: it was not tried.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { imageName } from '../lib/program/release.ts'
import type { Target } from './build.ts'

const PINNED = /^ARG \w+_IMAGE=\S+@sha256:[0-9a-f]{64}$/
const PLATFORMS: Partial<Record<Target, string>> = { 'linux-x64': 'linux/amd64', 'linux-arm64': 'linux/arm64' }

interface Made {
  /** The export of the commit. */
  folder: string
  out: string
  version: string
  /** The time of the commit, in Unix seconds. */
  seconds: number
  targets: readonly Target[]
}

/** Builds the images of those targets that have one. Returns what a person should know. */
export function buildImages({ folder, out, version, seconds, targets }: Made): string[] {
  const wanted = targets.filter(target => PLATFORMS[target] !== undefined)
  if (wanted.length === 0) return []
  const lines = readFileSync(join(folder, 'deploy/Containerfile'), 'utf8').split('\n')
  const open = lines.filter(line => /^ARG \w+_IMAGE=/.test(line) && !PINNED.test(line))
  if (open.length > 0)
    return [`no image: deploy/Containerfile has no digest for ${open.map(line => line.slice(4)).join(', ')}`]
  const works = (command: string[]) =>
    Bun.which(command[0]!) !== null && Bun.spawnSync(command, { env: process.env }).success
  const builder = works(['podman', 'info']) ? 'podman' : works(['docker', 'info']) ? 'docker' : null
  if (builder === null) return ['no image: neither podman nor docker can build here']
  const snapshot = new Date(seconds * 1_000).toISOString().replaceAll(/[-:]|\.000/g, '')
  const args = [`SOURCE_DATE_EPOCH=${seconds}`, `DEBIAN_SNAPSHOT=${snapshot}`].flatMap(arg => ['--build-arg', arg])
  return wanted.map(target => {
    const file = join(out, imageName(version, target))
    const tag = `cadre-release:${version}-${target}`
    const from = ['--platform', PLATFORMS[target]!, '--no-cache', '--file', 'deploy/Containerfile', ...args]
    const commands =
      builder === 'podman'
        ? [
            ['podman', 'build', '--format', 'oci', '--timestamp', String(seconds), '--tag', tag, ...from, '.'],
            ['podman', 'save', '--format', 'oci-archive', '--output', file, tag],
          ]
        : [
            ['docker', 'buildx', 'build', '--provenance=false', '--sbom=false', ...from].concat(
              '--output',
              `type=oci,rewrite-timestamp=true,dest=${file}`,
              '.',
            ),
          ]
    for (const command of commands) {
      const { success, stderr } = Bun.spawnSync(command, { cwd: folder, env: process.env, stdin: 'ignore' })
      if (!success) throw new Error(`${command.slice(0, 3).join(' ')} failed: ${stderr}`)
    }
    return `image ${imageName(version, target)} by ${builder}`
  })
}
