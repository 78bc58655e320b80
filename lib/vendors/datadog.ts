// Datadog's sites: https://docs.datadoghq.com/getting_started/site/. People know a site by its name (EU), by its domain, or
// by an address that they copied from the browser.

/** The domains by the names that Datadog shows. */
const SITES: Readonly<Record<string, string>> = {
  us: 'datadoghq.com',
  us1: 'datadoghq.com',
  us3: 'us3.datadoghq.com',
  us5: 'us5.datadoghq.com',
  eu: 'datadoghq.eu',
  eu1: 'datadoghq.eu',
  ap1: 'ap1.datadoghq.com',
  ap2: 'ap2.datadoghq.com',
  gov: 'ddog-gov.com',
  'us1-fed': 'ddog-gov.com',
  'us2-fed': 'us2.ddog-gov.com',
}
const DOMAIN = /^(?:[a-z0-9-]+\.)*?((?:us[0-9]+\.|ap[0-9]+\.)?(?:datadoghq\.com|datadoghq\.eu|ddog-gov\.com))$/

/** The domain of a site, as in the setting `site`; null when the text names no site of Datadog. */
export function datadogSite(text: string): string | null {
  const plain = text.trim().toLowerCase()
  const named = SITES[plain]
  if (named) return named
  const host = URL.parse(plain.includes('://') ? plain : `https://${plain}`)?.hostname ?? ''
  return DOMAIN.exec(host)?.[1] ?? null
}

/** What to write for a site, for a message. */
export const DATADOG_SITES = [...new Set(Object.values(SITES))].join(', ')

/** The address of the API. A `base_url` of the web application stands for its API, and any other for itself. */
export function datadogApi(site = 'datadoghq.com', base_url?: string): string {
  const given = base_url === undefined ? site : base_url
  const known = datadogSite(given)
  if (known !== null) return `https://api.${known}`
  return base_url?.replace(/\/+$/, '') ?? `https://api.${site}`
}

/** The address of the web application for an address of the API: app.datadoghq.com, but us5.datadoghq.com. */
export function datadogApp(api: string): string {
  const { origin, host } = new URL(api)
  const site = /^api\.(.+)$/.exec(host)?.[1]
  return site ? `https://${site.split('.').length === 2 ? 'app.' : ''}${site}` : origin
}
