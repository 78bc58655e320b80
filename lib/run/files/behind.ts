// Small artifacts of sub-runs are written behind: their bytes are rows of the commit that records them, and their files
// follow in batches. Until a file is there, its bytes are here. Whoever gives a path of a tree to an agent or a process
// calls `flush` first, and so does the end of the top run. A file that a process could not write any more is made by the
// next one (small.ts).

import { lstatSync } from 'node:fs'
import { type FileHandle, mkdir, open, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { foldersOn, forgetDurable } from '../../agent/files/folders.ts'
import type { SmallFile } from '../../agent/files.ts'
import { messageOf } from '../../error.ts'
import { failpoint } from '../../failpoint.ts'
import type { RunId } from '../../files/run-id.ts'
import type { Log } from '../../log/log.ts'
import { makeAgain, makeAgainNow } from './make-again.ts'
import { refusalOf } from './room.ts'

/** The total size of what is held. Beyond it, files are written at once. */
const MOST_BYTES = 8 * 1_048_576
/** So many recorded files of a tree are written without waiting for more. */
const ENOUGH = 64
/** How long a recorded file waits for others. */
const WAIT_MS = 20
/** How long after a full disk the next try is. */
const RETRY_MS = 1_000
/** How often the database is told which files are written. */
const TOLD_MS = 1_000
const AT_ONCE = 16
/** So many files that the disk does not take end a try: the others would fail as well. */
const MOST_REFUSED = 16
/** What passes: the disk is full, or the machine is short of something. */
const PASSING = new Set<unknown>(['ENOSPC', 'EDQUOT', 'EMFILE', 'ENFILE', 'ENOMEM'])

interface Held extends SmallFile {
  root: RunId
  runId: RunId
  /** A number not above that of its row; null until the row is durable. */
  seq: number | null
  /** It cannot be written, whatever space there is. Its row stays. */
  lost: boolean
}

export interface FilesBehindOptions {
  stateDirOf(runId: RunId): string
  /** Records that the files of all rows up to this number are written. */
  tell(seq: number): Promise<void>
  /** Called when files can be written again. */
  recovered(): void
  log: Log
}

/** What one attempt writes behind. */
export interface AttemptFiles {
  /** Takes a file. False when it must be written at once. */
  hold(file: SmallFile): boolean
  /** The rows of the files are durable, and have numbers between these. */
  recorded(firstSeq: number, lastSeq: number): void
  /** Forgets what was not recorded. */
  drop(): void
}

export class FilesBehind {
  readonly #options: FilesBehindOptions
  /** By top run, and by run and path. */
  readonly #trees = new Map<RunId, Map<string, Held>>()
  readonly #writing = new Map<RunId, Promise<void>>()
  #bytes = 0
  #timer: Timer | undefined
  /** The highest number of a row that is known to be durable, and the number that was told last. */
  #known = 0
  #told = 0
  #telling: Timer | undefined
  /** Why files cannot be written at the moment, and the files that were tried in vain. */
  #lack: string | null = null
  readonly #refused = new Set<Held>()

  constructor(options: FilesBehindOptions) {
    this.#options = options
  }

  /** Where an attempt of a phase puts its small files. `isLive` says whether they may still be recorded. */
  of(root: RunId, runId: RunId, phase: string, isLive: () => boolean): AttemptFiles {
    const own: Held[] = []
    return {
      hold: file => {
        const stateDir = this.#options.stateDirOf(runId)
        if (!isLive() || this.#bytes + file.bytes.byteLength > MOST_BYTES || !isFree(stateDir, file.path, phase)) {
          return false
        }
        const held = { ...file, root, runId, seq: null, lost: false }
        own.push(held)
        this.#add(held)
        return true
      },
      recorded: (first, last) => {
        this.#known = Math.max(this.#known, last)
        for (const held of own) held.seq ??= first
        if (own.length > 0) this.#schedule(root)
        else this.#tellSoon()
      },
      drop: () => {
        for (const held of own) if (held.seq === null) this.#remove(held)
      },
    }
  }

  /** Takes a file whose row is there, but which could not be made again. */
  adopt(root: RunId, runId: RunId, file: SmallFile, seq: number): void {
    this.#add({ ...file, root, runId, seq, lost: false })
    this.#retry()
  }

  /** Whether the disk takes no files at the moment. */
  get isStalled(): boolean {
    return this.#lack !== null
  }

  /** Why files of runs cannot be written at the moment, or null. */
  get stalled(): string | null {
    if (this.#lack === null) return null
    let count = 0
    for (const tree of this.#trees.values()) count += tree.size
    return `${count} files of runs cannot be written: ${this.#lack}`
  }

  /** What the end of a tree waits for while its files cannot be written, or null. */
  waitOf(root: RunId): string | null {
    if (this.#lack === null || !this.has(root)) return null
    return `${this.#trees.get(root)!.size} files of its runs, which cannot be written: ${this.#lack}`
  }

  /** Whether files of a tree are still to be written. */
  has(root: RunId): boolean {
    for (const held of this.#trees.get(root)?.values() ?? []) if (!held.lost) return true
    return false
  }

  /** The bytes of a file that is not written yet. */
  bytesOf(root: RunId, runId: RunId, path: string): Uint8Array | null {
    return this.#trees.get(root)?.get(keyOf(runId, path))?.bytes ?? null
  }

  /** Whether a file is not written, although its row is there. */
  isUnwritten(runId: RunId, path: string): boolean {
    for (const tree of this.#trees.values()) if (tree.has(keyOf(runId, path))) return true
    return false
  }

  /** Writes the files of a tree that are held now. What cannot be written is logged, and `has` stays true on a full disk. */
  async flush(root: RunId): Promise<void> {
    const wanted = [...(this.#trees.get(root)?.values() ?? [])]
    const isOpen = (held: Held) => !held.lost && this.#isHeld(held)
    for (let tries = 0; tries < 2 && wanted.some(isOpen); tries++) await (this.#writing.get(root) ?? this.#write(root))
  }

  /** The same at once, for a call that cannot wait. */
  flushNow(root: RunId): void {
    let refused = 0
    for (const held of [...(this.#trees.get(root)?.values() ?? [])]) {
      if (refused >= MOST_REFUSED) break
      if (held.lost) continue
      try {
        makeAgainNow(this.#options.stateDirOf(held.runId), held)
        this.#remove(held)
      } catch (error) {
        if (this.#failed(held, error)) refused++
      }
    }
    this.#tellSoon()
  }

  /** Forgets the files of a tree that is deleted, and resolves when none of them is being written. */
  async forget(root: RunId): Promise<void> {
    for (const held of [...(this.#trees.get(root)?.values() ?? [])]) this.#remove(held)
    await this.#writing.get(root)
  }

  /** Writes everything, as far as the disk takes it. */
  async close(): Promise<void> {
    clearTimeout(this.#timer)
    await Promise.all([...this.#trees.keys()].map(root => this.flush(root)))
    clearTimeout(this.#timer)
    clearTimeout(this.#telling)
    // Not awaited, because a full disk may not take it.
    void this.#tell()
  }

  #add(held: Held): void {
    const tree = this.#trees.get(held.root) ?? new Map<string, Held>()
    const before = tree.get(keyOf(held.runId, held.path))
    if (before) this.#remove(before)
    this.#trees.set(held.root, tree)
    this.#bytes += held.bytes.byteLength
    tree.set(keyOf(held.runId, held.path), held)
  }

  #isHeld(held: Held): boolean {
    return this.#trees.get(held.root)?.get(keyOf(held.runId, held.path)) === held
  }

  #remove(held: Held): void {
    if (!this.#isHeld(held)) return
    const tree = this.#trees.get(held.root)!
    tree.delete(keyOf(held.runId, held.path))
    this.#bytes -= held.bytes.byteLength
    if (tree.size === 0) this.#trees.delete(held.root)
    this.#noMoreRefused(held)
  }

  #noMoreRefused(held: Held): void {
    if (!this.#refused.delete(held) || this.#refused.size > 0) return
    this.#lack = null
    this.#options.log.info('files of runs are written again')
    this.#options.recovered()
  }

  #schedule(root: RunId): void {
    if ((this.#trees.get(root)?.size ?? 0) >= ENOUGH && !this.isStalled && !this.#writing.has(root)) {
      void this.#write(root)
    } else this.#wake(this.isStalled ? RETRY_MS : WAIT_MS)
  }

  #wake(ms: number): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      for (const root of this.#trees.keys()) if (!this.#writing.has(root)) void this.#write(root)
    }, ms)
  }

  #retry(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#wake(RETRY_MS)
  }

  /** Writes what is held of a tree, a folder at a time. Never throws. */
  #write(root: RunId): Promise<void> {
    const folders = new Map<string, Held[]>()
    for (const held of this.#trees.get(root)?.values() ?? []) {
      if (held.lost) continue
      const folder = `${held.runId}/${dirname(held.path)}`
      const others = folders.get(folder)
      if (others) others.push(held)
      else folders.set(folder, [held])
    }
    const queue = folders.values()
    let refused = 0
    const lane = async () => {
      for (const files of queue) {
        if (refused >= MOST_REFUSED) return
        const more = await this.#writeFolder(files)
        refused += more
      }
    }
    const writing = Promise.all(Array.from({ length: Math.min(AT_ONCE, folders.size) }, lane)).then(() => {
      this.#writing.delete(root)
      if (this.has(root)) this.#wake(this.isStalled ? RETRY_MS : WAIT_MS)
      this.#tellSoon()
    })
    this.#writing.set(root, writing)
    return writing
  }

  /** Returns how many files the disk did not take. */
  async #writeFolder(files: readonly Held[]): Promise<number> {
    const { runId, path } = files[0]!
    const stateDir = this.#options.stateDirOf(runId)
    let isNew = false
    try {
      isNew = await makeNew(stateDir, dirname(path))
    } catch {
      // The other way says what is wrong.
    }
    failpoint()
    let refused = 0
    for (const held of files) {
      if (refused >= MOST_REFUSED) break
      try {
        if (!this.#isHeld(held)) continue
        if (!isNew || !(await writeNew(join(stateDir, held.path), held.bytes))) await makeAgain(stateDir, held)
        failpoint()
        this.#remove(held)
      } catch (error) {
        if (this.#failed(held, error)) refused++
      }
    }
    return refused
  }

  /** Whether the file is tried again. */
  #failed(held: Held, error: unknown): boolean {
    if (PASSING.has((error as NodeJS.ErrnoException | null)?.code)) {
      // Its tree was deleted meanwhile.
      if (!this.#isHeld(held)) return true
      const wasStalled = this.isStalled
      this.#lack = refusalOf(error, this.#options.stateDirOf(held.runId))
      this.#refused.add(held)
      if (!wasStalled) {
        this.#options.log.error('files of runs cannot be written; they are when the disk takes them', {
          error: this.#lack,
        })
      }
      this.#retry()
      return true
    }
    held.lost = true
    this.#options.log.error('a file of a run could not be written', {
      run_id: held.runId,
      path: held.path,
      error: messageOf(error),
    })
    this.#noMoreRefused(held)
    return false
  }

  #tellSoon(): void {
    this.#telling ??= setTimeout(() => {
      this.#telling = undefined
      void this.#tell()
    }, TOLD_MS)
    this.#telling.unref()
  }

  /** Rows up to this number need not be compared with their files after a kill. */
  async #tell(): Promise<void> {
    let written = this.#known
    for (const tree of this.#trees.values())
      for (const { seq } of tree.values()) if (seq !== null) written = Math.min(written, seq - 1)
    if (written <= this.#told) return
    this.#told = written
    await this.#options.tell(written).catch(() => {})
  }
}

const keyOf = (runId: RunId, path: string): string => `${runId}/${path}`

/**
 * Whether a file can be written later as well as now: it lies in the folder of its phase, and that folder is not there
 * yet, so nothing can be in its place.
 */
function isFree(stateDir: string, path: string, phase: string): boolean {
  const folder = `files/${phase}`
  if (path.indexOf('/', folder.length + 1) !== -1) return false
  for (const name of ['', '/files', `/${folder}`]) {
    const found = lstatSync(stateDir + name, { throwIfNoEntry: false })
    if (!found) return true
    if (!found.isDirectory()) return false
  }
  return false
}

/** Makes the folder of a run that has none, with the folder in it. False when the run has a folder. */
async function makeNew(stateDir: string, folder: string): Promise<boolean> {
  if (lstatSync(stateDir, { throwIfNoEntry: false })) return false
  const names = folder.split('/')
  forgetDurable(foldersOn(stateDir, names).slice(1))
  const first = await mkdir(join(stateDir, folder), { recursive: true, mode: 0o700 })
  // Nothing that a command made can be in a folder that was not there.
  return first !== undefined && stateDir.startsWith(first)
}

/**
 * Writes a file into a new folder. False when it is there. What does not fit is removed again. A kill may leave the file
 * cut short, as its row tells.
 */
async function writeNew(path: string, bytes: Uint8Array): Promise<boolean> {
  let handle: FileHandle
  try {
    handle = await open(path, 'wx', 0o600)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
  try {
    await handle.writeFile(bytes)
  } catch (error) {
    await rm(path, { force: true })
    throw error
  } finally {
    await handle.close()
  }
  return true
}
