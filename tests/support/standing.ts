// What `cadre status --json` says of a home, without a process. The command itself is tested in tests/daemon.

import { homeStatusOf } from '../../lib/daemon/cli/machine/home-status.ts'

// biome-ignore lint/suspicious/noExplicitAny: tests say what they expect by asserting it
export const standing = async (home: string, hub?: string): Promise<any> => homeStatusOf(home, hub ? { hub } : {})
