// The language server: what an editor says and asks becomes calls of lib/team/editor, and offsets become lines and columns.

import {
  type CompletionItem,
  CompletionItemKind,
  createConnection,
  type Diagnostic,
  DiagnosticSeverity,
  DidChangeWatchedFilesNotification,
  type InitializeParams,
  StreamMessageReader,
  StreamMessageWriter,
  type TextDocumentPositionParams,
  TextDocumentSyncKind,
  TextDocuments,
} from 'vscode-languageserver/node'
import { TextDocument } from 'vscode-languageserver-textdocument'
import { messageOf } from '../../../error.ts'
import { createLog } from '../../../log/log.ts'
import { version } from '../../../program/version.ts'
import { type Around, complete, definition, hover, type Range, type Suggestion } from '../../../team/team.ts'
import { line } from '../../../text/printable.ts'
import { printMessage } from '../../../text/terminal.ts'
import { EXIT } from '../kit/exit.ts'
import type { Finding } from './check.ts'
import { Checks } from './checks.ts'
import { isTeam, pathOf, WorkspaceFiles } from './files.ts'
import { Known } from './known.ts'

const SEVERITY: Readonly<Record<Finding['severity'], DiagnosticSeverity>> = {
  error: DiagnosticSeverity.Error,
  warning: DiagnosticSeverity.Warning,
  information: DiagnosticSeverity.Information,
}

const KIND: Readonly<Record<Suggestion['kind'], CompletionItemKind>> = {
  property: CompletionItemKind.Property,
  value: CompletionItemKind.EnumMember,
  phase: CompletionItemKind.Reference,
  input: CompletionItemKind.Variable,
  secret: CompletionItemKind.Constant,
  field: CompletionItemKind.Field,
  variable: CompletionItemKind.Variable,
  agent: CompletionItemKind.Module,
  action: CompletionItemKind.Function,
  file: CompletionItemKind.File,
  folder: CompletionItemKind.Folder,
}

/** After these a suggestion is asked for without a key of the editor. */
const TRIGGERS = ['.', ' ', '/', '@', '[', '{', '"', "'"]

/** Resolves never: the process ends with the editor. */
export async function serveEditor(home: string): Promise<never> {
  // What an agent prints while it is loaded must not stand between the messages.
  for (const name of ['log', 'info', 'debug'] as const) console[name] = console.error
  const reader = new StreamMessageReader(process.stdin)
  const connection = createConnection(reader, new StreamMessageWriter(process.stdout))
  const texts = new TextDocuments(TextDocument)
  const files = new WorkspaceFiles(() => texts.all().map(each => ({ uri: each.uri, text: each.getText() })))
  const known = new Known(home, createLog({ level: 'warn' }))
  let canWatch = false
  let isEnding = false

  const checks = new Checks({
    files,
    known,
    show(path, text, findings) {
      const uri = files.uriOf(path)
      const at = rangesOf(TextDocument.create(uri, 'yaml', 0, text))
      const diagnostics = findings.map(({ severity, message, from, to }): Diagnostic => {
        return { range: at({ from, to }), severity: SEVERITY[severity], source: 'cadre', message }
      })
      const version = texts.get(uri)?.version
      void connection.sendDiagnostics({ uri, diagnostics, ...(version !== undefined && { version }) })
    },
  })

  connection.onInitialize(({ capabilities, workspaceFolders, rootUri }: InitializeParams) => {
    canWatch = capabilities.workspace?.didChangeWatchedFiles?.dynamicRegistration === true
    files.folders = workspaceFolders?.map(({ uri }) => uri) ?? (rootUri ? [rootUri] : [])
    return {
      serverInfo: { name: 'cadre', version },
      capabilities: {
        textDocumentSync: { openClose: true, change: TextDocumentSyncKind.Incremental, save: true },
        completionProvider: { triggerCharacters: TRIGGERS },
        hoverProvider: true,
        definitionProvider: true,
      },
    }
  })
  connection.onInitialized(() => {
    if (!canWatch) return
    const watchers = [{ globPattern: '**/*.{yml,yaml}' }]
    void connection.client.register(DidChangeWatchedFilesNotification.type, { watchers })
  })
  connection.onDidChangeWatchedFiles(({ changes }) => {
    for (const { uri } of changes) {
      const path = pathOf(uri)
      if (path !== null) checks.changed(path)
    }
  })
  connection.onShutdown(() => {
    isEnding = true
  })

  texts.onDidChangeContent(({ document }) => {
    const path = pathOf(document.uri)
    if (path !== null) checks.changed(path, isTeam(path, document.getText()))
  })
  texts.onDidClose(({ document }) => {
    const path = pathOf(document.uri)
    if (path !== null) checks.closed(path)
  })
  // An editor that does not watch files may have let other programs change them meanwhile.
  texts.onDidSave(() => checks.all())
  texts.listen(connection)

  /** Answers about a place of an open team; null for any other file. */
  const asked = async <T>(
    { textDocument: { uri }, position }: TextDocumentPositionParams,
    answer: (text: string, offset: number, around: Around, document: TextDocument) => T | null,
  ): Promise<T | null> => {
    const path = pathOf(uri)
    const found = texts.get(uri)
    if (path === null || !found || !isTeam(path, found.getText())) return null
    const around = await known.around(path, files)
    // It may have changed while agents were loaded, and the position is of the text that was there then.
    const document = texts.get(uri)
    return document?.version === found.version
      ? answer(document.getText(), document.offsetAt(position), around, document)
      : null
  }

  connection.onCompletion(params =>
    asked(params, (text, offset, around, document) =>
      complete(text, offset, around).map(each => itemOf(each, rangesOf(document))),
    ),
  )
  connection.onHover(params =>
    asked(params, (text, offset, around, document) => {
      const found = hover(text, offset, around)
      return found && { contents: { kind: 'markdown', value: found.text }, range: rangesOf(document)(found) }
    }),
  )
  connection.onDefinition(params =>
    asked(params, (text, offset, around, document) => {
      const found = definition(text, offset, around)
      if (!found) return null
      const uri = found.file === null ? document.uri : files.uriOf(found.file)
      return { uri, range: rangesOf(TextDocument.create(uri, 'yaml', 0, found.text))(found) }
    }),
  )

  // A text that is no JSON is lost alone, because its length was known. After anything else the next message is not found.
  reader.onError(error => {
    if (error instanceof SyntaxError) return
    printMessage(line`stdin has no messages of the language server protocol: ${messageOf(error)}`)
    process.exit(EXIT.failed)
  })
  reader.onClose(() => process.exit(isEnding ? EXIT.done : EXIT.failed))
  connection.listen()
  return new Promise(() => {})
}

const rangesOf = (document: TextDocument) => (range: Range) => ({
  start: document.positionAt(range.from),
  end: document.positionAt(range.to),
})

function itemOf(
  { label, kind, insert, detail, words, isFirst, filter, ...range }: Suggestion,
  at: ReturnType<typeof rangesOf>,
): CompletionItem {
  return {
    label,
    kind: KIND[kind],
    sortText: `${isFirst ? 0 : 1}${label}`,
    ...(detail !== undefined && { detail }),
    ...(words && { documentation: words }),
    ...(filter !== undefined && { filterText: filter }),
    textEdit: { range: at(range), newText: insert },
  }
}
