// Keeps other processes of the same user from reading the environment and the memory of this one, so that a command of a
// run does not find the daemon's credentials in `/proc/$PPID`. Linux only: prctl(2), PR_SET_DUMPABLE.

import { messageOf } from '../../error.ts'
import type { Log } from '../../log/log.ts'

const PR_SET_DUMPABLE = 4
/** The C library under glibc and under musl. */
const LIBRARIES = ['libc.so.6', `libc.musl-${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}.so.1`]

/** A process with CAP_SYS_PTRACE, such as one of an unrestricted root, can still read everything. */
export async function makeUnreadable(log: Log): Promise<void> {
  if (process.platform !== 'linux') return
  try {
    const { dlopen } = await import('bun:ffi')
    const prctl = { args: ['i32', 'u64', 'u64', 'u64', 'u64'], returns: 'i32' } as const
    const open = (library: string) => dlopen(library, { prctl })
    let library: ReturnType<typeof open>
    try {
      library = open(LIBRARIES[0]!)
    } catch {
      library = open(LIBRARIES[1]!)
    }
    library.symbols.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    library.close()
  } catch (error) {
    log.warn('commands may be able to read the environment of this process', { error: messageOf(error) })
  }
}
