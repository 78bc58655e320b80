// An editor, as far as a language server sees one: it starts the real program and sends messages over its stdin.

import { writeFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import type { CompletionItem, Diagnostic, Hover, Location, Position, Range } from 'vscode-languageserver'
import { openCommand } from './daemon.ts'
import { folder } from './folder.ts'

interface Message {
  id?: number
  method?: string
  params?: unknown
  result?: unknown
  error?: { code: number; message: string }
}

export interface EditorOptions {
  home?: string
  /** The folder that is open; null for none. */
  workspace: string | null
  capabilities?: object
  processId?: number | null
}

const uriOf = (path: string): string => pathToFileURL(path).href

/** `|` marks the cursor in a text of a test. */
export function withCursor(marked: string): { text: string; position: Position } {
  const at = marked.indexOf('|')
  const before = marked.slice(0, at).split('\n')
  return {
    text: before.join('\n') + marked.slice(at + 1),
    position: { line: before.length - 1, character: before.at(-1)!.length },
  }
}

export class Editor {
  readonly process: ReturnType<typeof openCommand>
  readonly #waiting = new Map<number, (message: Message) => void>()
  readonly #shown: { uri: string; diagnostics: Diagnostic[] }[] = []
  readonly #versions = new Map<string, number>()
  /** Everything that the server has sent. */
  sent = ''
  /** What the server asked of the editor. */
  readonly asked: Message[] = []
  #news = Promise.withResolvers<void>()
  #next = 1
  #isOver = false

  constructor(home: string, through?: string[]) {
    this.process = openCommand(['lsp', '--stdio'], { home, ...(through && { through }) })
    void this.#read()
  }

  /** An editor whose server is ready. */
  static async open({
    home = folder(),
    workspace,
    capabilities = {},
    processId = null,
  }: EditorOptions): Promise<Editor> {
    const editor = new Editor(home)
    const workspaceFolders = workspace === null ? null : [{ uri: uriOf(workspace), name: 'workspace' }]
    await editor.request('initialize', { processId, capabilities, rootUri: null, workspaceFolders })
    editor.notify('initialized', {})
    return editor
  }

  /** Opens a file with this text, which need not be the one on disk. */
  show(path: string, text: string): void {
    this.#versions.set(path, 1)
    this.notify('textDocument/didOpen', { textDocument: { uri: uriOf(path), languageId: 'yaml', version: 1, text } })
  }

  /** Another program writes a file, of which the editor tells the server. */
  changeOnDisk(path: string, text: string): void {
    writeFileSync(path, text)
    this.notify('workspace/didChangeWatchedFiles', { changes: [{ uri: uriOf(path), type: 2 }] })
  }

  /** Replaces a part of an open text, or all of it. */
  type(path: string, text: string, range?: Range): void {
    const version = this.#versions.get(path)! + 1
    this.#versions.set(path, version)
    const change = range ? { range, text } : { text }
    this.notify('textDocument/didChange', { textDocument: { uri: uriOf(path), version }, contentChanges: [change] })
  }

  save(path: string): void {
    this.notify('textDocument/didSave', { textDocument: { uri: uriOf(path) } })
  }

  close(path: string): void {
    this.notify('textDocument/didClose', { textDocument: { uri: uriOf(path) } })
  }

  /** The next diagnostics of a file, which are no longer the next after that. */
  async diagnostics(path: string): Promise<Diagnostic[]> {
    for (;;) {
      const at = this.#shown.findIndex(({ uri }) => uri === uriOf(path))
      if (at !== -1) return this.#shown.splice(at, 1)[0]!.diagnostics
      if (this.#isOver) throw new Error('the language server has ended')
      await this.#news.promise
    }
  }

  /** Whether something was shown of a file that nobody has asked for yet. */
  hasDiagnostics(path: string): boolean {
    return this.#shown.some(({ uri }) => uri === uriOf(path))
  }

  /** Opens the text before and after `|`, and asks at the cursor. */
  async at<T>(method: string, path: string, marked: string): Promise<T> {
    const { text, position } = withCursor(marked)
    this.show(path, text)
    const answer = await this.request<T>(`textDocument/${method}`, { textDocument: { uri: uriOf(path) }, position })
    this.close(path)
    return answer
  }

  /** The labels of what is suggested. */
  async completions(path: string, marked: string): Promise<string[]> {
    const items = await this.at<CompletionItem[] | null>('completion', path, marked)
    return (items ?? []).toSorted((a, b) => (a.sortText! < b.sortText! ? -1 : 1)).map(({ label }) => label)
  }

  /** The text once a suggestion is taken. */
  async completed(path: string, marked: string, label: string): Promise<string> {
    const items = await this.at<CompletionItem[]>('completion', path, marked)
    const { range, newText } = items.find(each => each.label === label)!.textEdit as { range: Range; newText: string }
    const lines = withCursor(marked).text.split('\n')
    const offset = ({ line, character }: Position) =>
      lines.slice(0, line).join('\n').length + (line > 0 ? 1 : 0) + character
    const text = lines.join('\n')
    return text.slice(0, offset(range.start)) + newText + text.slice(offset(range.end))
  }

  async hover(path: string, marked: string): Promise<string> {
    const found = await this.at<Hover | null>('hover', path, marked)
    return (found?.contents as { value: string } | undefined)?.value ?? ''
  }

  definition(path: string, marked: string): Promise<Location | null> {
    return this.at<Location | null>('definition', path, marked)
  }

  async request<T>(method: string, params?: unknown): Promise<T> {
    const id = this.#next++
    const answered = new Promise<Message>(resolve => this.#waiting.set(id, resolve))
    this.#send({ id, method, params })
    const { result, error } = await answered
    if (error) throw new Error(error.message)
    return result as T
  }

  notify(method: string, params?: unknown): void {
    this.#send({ method, params })
  }

  /** Sends bytes that are no message. */
  raw(text: string): void {
    void this.process.stdin.write(text)
    void this.process.stdin.flush()
  }

  /** Ends the server as the protocol says, and gives its exit code. */
  async end(): Promise<number> {
    await this.request('shutdown')
    this.notify('exit')
    return this.process.exited
  }

  #send(message: Message): void {
    const text = JSON.stringify({ jsonrpc: '2.0', ...message })
    this.raw(`Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`)
  }

  async #read(): Promise<void> {
    let rest = Buffer.alloc(0)
    for await (const chunk of this.process.stdout) {
      rest = Buffer.concat([rest, chunk])
      this.sent += Buffer.from(chunk)
      for (;;) {
        const head = /^Content-Length: (\d+)\r\n\r\n/.exec(rest.toString('latin1'))
        if (!head || rest.length < head[0].length + Number(head[1])) break
        const end = head[0].length + Number(head[1])
        this.#take(JSON.parse(rest.subarray(head[0].length, end).toString()))
        rest = rest.subarray(end)
      }
    }
    this.#isOver = true
    this.#news.resolve()
    for (const [id, answer] of this.#waiting)
      answer({ id, error: { code: 0, message: 'the language server has ended' } })
  }

  #take(message: Message): void {
    if (message.method === undefined) return this.#waiting.get(message.id!)?.(message)
    if (message.id !== undefined) {
      this.asked.push(message)
      this.#send({ id: message.id, result: null })
    }
    if (message.method === 'textDocument/publishDiagnostics') this.#shown.push(message.params as never)
    this.#news.resolve()
    this.#news = Promise.withResolvers()
  }
}
