// A machine with nothing of ours: a new home, and a PATH of Node, npm and what every system has. What is called there
// works in a folder that somebody else wrote, and of which nothing may run.

import { existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import manifest from '../../package.json'
import { startProgram } from './daemon.ts'
import { folder } from './folder.ts'

const TOOLS =
  'sh awk basename cat chmod cp cut date dirname env find grep head id ls mkdir mv ps readlink rm sed setsid sleep sort tar ' +
  'tr uname wc which xargs gzip'

export interface Machine {
  home: string
  /** The folder that is called in. */
  hostile: string
  /** The folders of PATH, in which a program may be put. */
  bin: string
  /** The names of the hostile files that have run. */
  ran(): string[]
  /** Runs a command to its end. */
  run(command: string[], options?: { stdin?: string; env?: Record<string, string>; cwd?: string }): Promise<Said>
  /** Starts `command`, and resolves with what `pattern` captures on its stdout. The test kills it at its end. */
  serve(command: string[], pattern: RegExp, env?: Record<string, string>): Promise<Served>
}

export interface Said {
  code: number
  stdout: string
  stderr: string
}

export interface Served {
  found: string
  child: Bun.Subprocess
}

export function machine(): Machine {
  const [home, hostile, bin] = [folder(), folder(), folder()]
  for (const tool of [...TOOLS.split(' '), 'node', 'npm', 'npx']) {
    const file = Bun.which(tool)
    if (file) symlinkSync(file, join(bin, tool))
  }
  const marks = folder()
  write(hostile, marks)
  const start = (command: string[], env: Record<string, string> = {}, stdin = '', cwd = hostile) =>
    startProgram(command, {
      cwd,
      stdin,
      home: join(home, '.cadre'),
      env: { PATH: bin, HOME: home, LANG: 'C.UTF-8', ...env },
    })
  return {
    home,
    hostile,
    bin,
    ran: () => readdirSync(marks).sort(),
    async run(command, { stdin, env, cwd } = {}) {
      const child = start(command, env, stdin, cwd)
      const [stdout, stderr, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
      return { code, stdout, stderr }
    },
    async serve(command, pattern, env) {
      const child = start(command, env)
      const errors = child.stderr.text()
      let said = ''
      const decoder = new TextDecoder()
      for await (const chunk of child.stdout) {
        said += decoder.decode(chunk, { stream: true })
        const found = pattern.exec(said)
        if (found) return { found: found[1]!, child }
      }
      throw new Error(`${command.join(' ')} ended with ${await child.exited}: ${said}${await errors}`)
    },
  }
}

/** Files of `folder` that a program which looks at its current folder would execute or obey. Each leaves a mark. */
function write(folder: string, marks: string): void {
  const mark = (name: string) =>
    `require('node:fs').writeFileSync(${JSON.stringify(join(marks, name))}, '')\nmodule.exports = {}\n`
  const put = (path: string, text: string, mode = 0o644) => {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), text, { mode })
  }
  put('preload.js', mark('preload'))
  put('bunfig.toml', 'preload = ["./preload.js"]\n[test]\npreload = ["./preload.js"]\n')
  for (const name of ['.env', '.env.local', '.env.production', '.env.development']) {
    put(
      name,
      `CADRE_HOME=${join(marks, 'home')}\nCADRE_HUB_URL=http://127.0.0.1:9\nCADRE_AGENTS=${join(folder, 'agents')}\n`,
    )
  }
  put('redirected.js', mark('redirected'))
  put(
    'tsconfig.json',
    JSON.stringify({ compilerOptions: { paths: { '*': ['./redirected.js'] }, jsxImportSource: 'theirs' } }),
  )
  put('agents/exec.ts', mark('agent'))
  put('package.json', JSON.stringify({ name: 'cadre', bin: { cadre: './bin.js' }, main: './bin.js', type: 'commonjs' }))
  put('bin.js', `#!/usr/bin/env node\n${mark('bin')}`, 0o755)
  const modules = ['cadre', 'theirs', ...Object.keys(manifest.dependencies)]
  for (const name of modules) {
    put(`node_modules/${name}/package.json`, JSON.stringify({ name, version: '9.9.9', main: './index.js' }))
    put(`node_modules/${name}/index.js`, mark(`module-${basename(name)}`))
  }
  if (!existsSync(join(folder, 'hub.ts'))) put('hub.ts', mark('hub'))
  put('daemon.ts', mark('daemon'))
}
