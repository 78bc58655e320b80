// The commands `members`, `invite` and `tokens`.

import { collect, days } from '../options.ts'
import { type Group, inRealm, option, page, yes } from './entry.ts'

const circle = [
  inRealm,
  option('--org <org>', 'of an org instead of a realm'),
  option('--scope <scope>', 'of a scope instead of a realm'),
]

const members = () => import('./members.ts')
const invitations = () => import('./invitations.ts')
const tokens = () => import('./tokens.ts')

export const PEOPLE: readonly Group[] = [
  {
    word: 'members',
    does: 'who belongs to a realm, an org or a scope, and as what',
    entries: [
      {
        usage: 'list',
        does: 'list members with their roles (default)',
        example: '--realm prod',
        options: [...circle, ...page],
        isDefault: true,
        run: async options => (await members()).listMembers(options),
      },
      {
        usage: 'add <username>',
        does: 'add somebody who has an account (`invite` is for those who have none)',
        example: 'ada --realm prod --role operator',
        options: [...circle, option('--role <role>', 'the lowest is the default')],
        run: async (options, username) => (await members()).setMember(username, options),
      },
      {
        usage: 'role <username> <role>',
        does: 'change what somebody is: member, operator, admin; of an org owner; of a scope owned',
        example: 'ada admin --realm prod',
        options: circle,
        run: async (options, username, role) => (await members()).setMember(username!, { ...options, role: role! }),
      },
      {
        usage: 'remove <username>',
        does: 'remove somebody; from an org, also from its realms and scopes',
        example: 'ada --realm prod --yes',
        options: [...circle, yes],
        run: async (options, username) => (await members()).removeMember(username, options),
      },
    ],
  },
  {
    word: 'invite',
    does: 'invitations to a realm',
    entries: [
      {
        usage: 'create',
        does: 'print an invitation that works once, within 14 days (default)',
        example: '--realm prod --role operator',
        options: [
          inRealm,
          option('--role <role>', 'what they become (member)').choices(['member', 'operator', 'admin']),
          option('--user <username>', 'only this user name may accept it'),
        ],
        isDefault: true,
        run: async options => (await invitations()).invite(options),
      },
      {
        usage: 'list',
        does: 'list the invitations that can still be accepted',
        example: '--realm prod',
        options: [inRealm, ...page],
        run: async options => (await invitations()).listInvitations(options),
      },
      {
        usage: 'revoke <id>',
        does: 'revoke an invitation',
        example: '01a1fd72 --realm prod',
        options: [inRealm],
        run: async (options, id) => (await invitations()).revokeInvitation(id, options),
      },
      {
        usage: 'accept',
        does: 'join a realm; the invitation is typed, or read from stdin, and so is the password of a new account',
        example: '--username ada --hub https://hub.example.com',
        options: [option('--username <name>', 'a new account; without it the one that is signed in joins')],
        run: async options => (await invitations()).acceptInvitation(options),
      },
    ],
  },
  {
    word: 'tokens',
    does: 'credentials of programs and people at a hub',
    entries: [
      {
        usage: 'list',
        does: 'list your tokens, or those that reach a realm (default)',
        example: '--realm prod',
        options: [option('--realm <realm>', 'all tokens that reach this realm'), ...page],
        isDefault: true,
        run: async options => (await tokens()).listTokens(options),
      },
      {
        usage: 'create <name>',
        does: 'print a new token; without --allow it may do what you may',
        example: 'dashboard --allow runs:read,daemons:read --realm prod --days 90',
        options: [
          option('--allow <what:level>', 'such as runs:read or dispatch:write; repeat it, or use commas').argParser(
            collect,
          ),
          option('--realm <realm>', 'where; repeat it, or `all`').argParser(collect),
          option('--org <org>', 'where, with all realms of the org; repeat it, or `all`').argParser(collect),
          option('--days <number>', 'how long it is valid; without it, until it is revoked').argParser(days),
        ],
        run: async (options, name) => (await tokens()).createToken(name, options),
      },
      {
        usage: 'rotate <id>',
        does: 'give a token a new secret, and print it',
        example: '7 --yes',
        options: [yes],
        run: async (options, id) => (await tokens()).rotateToken(id, options),
      },
      {
        usage: 'revoke <id>',
        does: 'revoke a token, which is refused from then on',
        example: '7 --yes',
        options: [yes],
        run: async (options, id) => (await tokens()).revokeToken(id, options),
      },
    ],
  },
]
