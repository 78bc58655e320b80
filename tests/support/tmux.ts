// A window of a terminal with a program in it: Debian's tmux, a server of its own for each test file.

import { join } from 'node:path'
import { until } from './bounded.ts'
import { folder } from './folder.ts'
import { environmentAt } from './program.ts'

const PROGRAM = join(import.meta.dir, '../../daemon.ts')

/** Tests that need it skip with a word where it is missing. */
export const hasTmux = Bun.which('tmux') !== null
if (!hasTmux) process.stderr.write('tmux is not installed: tests of the terminal are skipped\n')

export interface Size {
  columns: number
  rows: number
}

export class Window implements AsyncDisposable {
  readonly #socket: string

  private constructor(socket: string) {
    this.#socket = socket
  }

  /** Opens a window in which `bun daemon.ts …` runs. The window stays when the command has ended. */
  static async open(args: readonly string[], { home, columns, rows }: Size & { home: string }): Promise<Window> {
    const window = new Window(join(folder(), 'tmux'))
    const env = Object.entries({ ...environmentAt(home), LANG: 'C.UTF-8', TERM: 'xterm-256color', CADRE_HOME: home })
    const words = ['env', '-i', ...env.map(([name, value]) => `${name}=${value}`), process.execPath, PROGRAM, ...args]
    const command = `trap : INT; ${words.map(word => `'${word}'`).join(' ')}; echo "exit=$?"; read wait`
    // In one call, because a server without a window ends.
    const prepare = ['-f', '/dev/null', 'start-server', ';', 'set', '-g', 'history-limit', '10000', ';']
    await window.#tmux(...prepare, 'new-session', '-d', '-x', String(columns), '-y', String(rows), 'sh', '-c', command)
    return window
  }

  /** What is on the screen, without empty lines at its end. */
  async screen(): Promise<string> {
    return (await this.#tmux('capture-pane', '-p')).trimEnd()
  }

  /** How many lines have left the screen. */
  async scrolled(): Promise<number> {
    return Number(await this.#tmux('display', '-p', '#{history_size}'))
  }

  async press(...keys: readonly string[]): Promise<void> {
    await this.#tmux('send-keys', ...keys)
  }

  async resize({ columns, rows }: Size): Promise<void> {
    await this.#tmux('resize-window', '-x', String(columns), '-y', String(rows))
  }

  /** Waits until the screen fits, and returns it. */
  async shows(pattern: RegExp, ms = 60_000): Promise<string> {
    let last = ''
    try {
      return await until(
        async () => {
          last = await this.screen()
          if (pattern.test(last)) return last
          await Bun.sleep(50)
          return undefined
        },
        `${pattern} on the screen`,
        ms,
      )
    } catch (error) {
      throw new Error(`${(error as Error).message}; it shows:\n${last}`)
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#tmux('kill-server').catch(() => {})
  }

  async #tmux(...args: readonly string[]): Promise<string> {
    const child = Bun.spawn(['tmux', '-S', this.#socket, ...args], { stdout: 'pipe', stderr: 'pipe' })
    const [stdout, stderr, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
    if (code !== 0) throw new Error(`tmux ${args[0]}: ${stderr}`)
    return stdout
  }
}
