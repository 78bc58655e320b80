"""A mail server that is not ours (aiosmtpd). Prints its port, then each mail that it took as a line of JSON.

Arguments: user, password, and the files of certificate and key. With them STARTTLS comes before everything else; without
them the server offers none. Recipients named `nobody` are refused, and nobody sends without signing in.
"""

import asyncio
import json
import ssl
import sys

from aiosmtpd.smtp import SMTP, AuthResult

user, password, *files = sys.argv[1:]


def say(line):
    print(line, flush=True)


class Mailbox:
    async def handle_RCPT(self, server, session, envelope, address, options):
        if address.startswith("nobody@"):
            return "550 5.1.1 No such user here"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        mail = {
            "from": envelope.mail_from,
            "to": envelope.rcpt_tos,
            "user": session.auth_data.login.decode(),
            "secure": session.ssl is not None,
            "mail": envelope.content.decode("latin-1"),
        }
        say(json.dumps(mail))
        return "250 2.0.0 Kept"


def check(server, session, envelope, mechanism, given):
    good = given.login == user.encode() and given.password == password.encode()
    return AuthResult(success=good, handled=False, auth_data=given)


def connection():
    context = None
    if files:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(*files)
    return SMTP(
        Mailbox(),
        hostname="localhost",
        tls_context=context,
        require_starttls=bool(files),
        auth_required=True,
        auth_require_tls=bool(files),
        authenticator=check,
    )


async def main():
    server = await asyncio.get_running_loop().create_server(connection, "127.0.0.1", 0)
    say(server.sockets[0].getsockname()[1])
    await server.serve_forever()


asyncio.run(main())
