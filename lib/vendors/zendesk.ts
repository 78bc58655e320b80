// The address of a Zendesk account, however people know it: by its subdomain, by its host, or by an address that they
// copied from the browser.

const SUBDOMAIN = /^[a-z0-9][a-z0-9-]*$/i
const HOST = /^([a-z0-9][a-z0-9-]*)\.zendesk\.com$/i
/** Where the paths of Zendesk's own pages and API begin. */
const OWN_PATH = /\/(agent|admin|api|hc|access|tickets)(\/.*)?$/

/** The subdomain that a text names: `acme`, `acme.zendesk.com` or an address of that host; null when it names none. */
export function zendeskSubdomain(text: string): string | null {
  const plain = text.trim()
  if (SUBDOMAIN.test(plain)) return plain
  const host = URL.parse(plain.includes('://') ? plain : `https://${plain}`)?.hostname ?? ''
  return HOST.exec(host)?.[1] ?? null
}

/** The address that precedes Zendesk's paths. */
export function zendeskSite(subdomain: string, base_url?: string): string {
  if (base_url === undefined) return `https://${zendeskSubdomain(subdomain) ?? subdomain}.zendesk.com`
  const { origin, pathname } = new URL(base_url)
  return origin + pathname.replace(OWN_PATH, '').replace(/\/+$/, '')
}
