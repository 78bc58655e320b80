// Processes that agents start lead a group of their own, so that what they started ends with them.

/** Signals a whole process group; one that is gone already is no error. */
export function signalGroup(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-pid, signal)
  } catch {}
}
