// What a person does at the sender of a hook, for the page and the command line: a row for each scheme.

import type { SchemeName } from './schemes.ts'

interface Sender {
  readonly name: string
  /**
   * Who makes the secret: `anyone`, so also the person who adds the hook; or the sender alone, which shows it at any time
   * (`sender`), or only once it has the URL (`sender_later`).
   */
  readonly maker: 'anyone' | 'sender' | 'sender_later'
  /** One sentence. */
  readonly todo: string
}

export const SENDERS: Readonly<Record<SchemeName, Sender>> = {
  github: {
    name: 'GitHub',
    maker: 'anyone',
    todo: 'In the settings of the repository or organisation, add a webhook with the URL, the secret and the content type application/json.',
  },
  gitea: {
    name: 'Gitea or Forgejo',
    maker: 'anyone',
    todo: 'In the settings of the repository, add a webhook with the URL, the secret and the content type application/json.',
  },
  gitlab: {
    name: 'GitLab, which signs',
    maker: 'anyone',
    todo: 'In the settings of the project, add a webhook with the URL, and the secret as its signing token.',
  },
  gitlab_token: {
    name: 'GitLab with a secret token',
    maker: 'anyone',
    todo: 'In the settings of the project, add a webhook with the URL, and the secret as its secret token.',
  },
  slack: {
    name: 'Slack',
    maker: 'sender',
    todo: 'In the settings of the app, give the URL for its events, commands or interactions; the secret is the signing secret of the app.',
  },
  stripe: {
    name: 'Stripe',
    maker: 'sender_later',
    todo: 'Among the webhooks, add an endpoint with the URL; Stripe then shows its signing secret.',
  },
  standard: {
    name: 'Standard Webhooks',
    maker: 'sender_later',
    todo: 'Add the URL at the sender, which then shows a secret that begins with whsec_, or a public key that begins with whpk_.',
  },
  jira: {
    name: 'Jira',
    maker: 'anyone',
    todo: 'As an administrator, add a webhook with the URL and the secret; those of apps are not signed.',
  },
  bitbucket: {
    name: 'Bitbucket',
    maker: 'anyone',
    todo: 'In the settings of the repository, add a webhook with the URL and the secret.',
  },
  shopify: {
    name: 'Shopify',
    maker: 'sender',
    todo: 'Subscribe the webhooks of the app to the URL; the secret is the client secret of the app.',
  },
  zendesk: {
    name: 'Zendesk',
    maker: 'sender_later',
    todo: 'In the Admin Center, add a webhook with the URL that posts JSON; Zendesk then shows its signing secret.',
  },
  hmac: {
    name: 'another program that signs (HMAC)',
    maker: 'anyone',
    todo: 'Let the program post to the URL, with the HMAC of the body under the secret in the header of the signature.',
  },
  graph: {
    name: 'Microsoft Graph',
    maker: 'anyone',
    todo: 'Make a subscription with the URL as notificationUrl, and the secret as clientState.',
  },
  bearer: {
    name: 'another program that sends the secret',
    maker: 'anyone',
    todo: 'Let the program post to the URL, with the secret in the header Authorization, after Bearer and a blank, or in the header that the hook names.',
  },
}
