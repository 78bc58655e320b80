// Tabs of one origin hand each other the local token of a home. Each keeps it for itself: a cookie would also be sent to other
// ports of this machine, and what is in localStorage stays there when the browser is closed.

const channel = new BroadcastChannel('cadre-token')

type Told = 'ask' | { token: string | null }

/** `get` is the token of this tab, and `set` takes that of another one, or null when it was forgotten. */
export function shareToken(get: () => string | null, set: (token: string | null) => void): void {
  channel.onmessage = ({ data }: MessageEvent<Told>) => {
    if (data === 'ask') {
      if (get() !== null) tellToken(get())
      // The link of a stranger, with a wrong token, spoils no other tab.
    } else if (data.token === null || get() === null) set(data.token)
  }
  if (get() === null) askToken()
}

/** Asks the other tabs for the token. */
export const askToken = (): void => channel.postMessage('ask' satisfies Told)

/** Tells the other tabs the token, or that it is to be forgotten. */
export const tellToken = (token: string | null): void => channel.postMessage({ token } satisfies Told)
