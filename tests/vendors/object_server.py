"""An object store that is not ours (OpenStack Swift with its S3 API), whole in one process. Prints its address.

Arguments: an empty folder, the region, and the secret of the access key `test:tester`.
"""

import os
import sys

import eventlet

eventlet.monkey_patch()

from swift.common import utils  # noqa: E402

root, region, secret = sys.argv[1:]
utils.SWIFT_CONF_FILE = os.path.join(root, "swift.conf")
with open(utils.SWIFT_CONF_FILE, "w") as file:
    file.write("[swift-hash]\nswift_hash_path_suffix = suffix\nswift_hash_path_prefix = prefix\n")

from swift.common.ring import RingBuilder  # noqa: E402
from swift.common.storage_policy import reload_storage_policies  # noqa: E402
from swift.common.wsgi import SwiftHttpProtocol, loadapp  # noqa: E402

utils.validate_configuration()
reload_storage_policies()

PROXY = f"""
[pipeline:main]
pipeline = catch_errors cache s3api tempauth bulk slo proxy-server
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:cache]
use = egg:swift#memcache
memcache_servers = 127.0.0.1:1
[filter:s3api]
use = egg:swift#s3api
location = {region}
max_bucket_listing = 10
[filter:tempauth]
use = egg:swift#tempauth
user_test_tester = {secret} .admin
[filter:bulk]
use = egg:swift#bulk
[filter:slo]
use = egg:swift#slo
"""
QUIET = open(os.devnull, "w")
STORE = "[app:main]\nuse = egg:swift#{}\n"


def serve(kind, conf, socket):
    path = os.path.join(root, f"{kind}.conf")
    default = f"[DEFAULT]\nswift_dir = {root}\ndevices = {root}\nmount_check = false\nfallocate_reserve = 0\n"
    with open(path, "w") as file:
        file.write(default + conf)
    app = loadapp(path, allow_modify_pipeline=kind == "proxy")
    eventlet.spawn(eventlet.wsgi.server, socket, app, log=QUIET, protocol=SwiftHttpProtocol)


def listen():
    return eventlet.listen(("127.0.0.1", 0))


os.mkdir(os.path.join(root, "disk"))
for kind in ["account", "container", "object"]:
    socket = listen()
    ring = RingBuilder(1, 1, 0)
    place = {"ip": "127.0.0.1", "port": socket.getsockname()[1], "device": "disk"}
    ring.add_dev({"id": 0, "region": 1, "zone": 1, "weight": 1, **place})
    ring.rebalance()
    ring.get_ring().save(os.path.join(root, f"{kind}.ring.gz"))
    serve(kind, STORE.format(kind), socket)

front = listen()
serve("proxy", PROXY, front)
print(f"http://127.0.0.1:{front.getsockname()[1]}", flush=True)
eventlet.event.Event().wait()
