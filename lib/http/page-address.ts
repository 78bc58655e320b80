// The one address of the page of a home. `127.0.0.1` and `localhost` are two origins to a browser, and the tabs of one know
// nothing of those of the other.

const LOOPBACK_OR_ANY = /^(http:\/\/)(127\.0\.0\.1|0\.0\.0\.0|\[::1?\])(?=:)/

/** The address of the page of a process that listens at `url`. */
export const pageAddress = (url: string): string => url.replace(LOOPBACK_OR_ANY, '$1localhost')
