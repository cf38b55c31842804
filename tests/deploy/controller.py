"""A VM controller: a small server that stops VMs when it is told to by a signed order.

It follows what `functions/terminate` sends: `POST /v1/vms/{vm}/terminate`, signed by HMAC-SHA256
over `<sentAt>.<body>`. It answers 200 `gone` for a VM that it has no more, 202 `stopping` for one
that takes its time, and refuses what is not signed, too old, or of another VM than its path says.
"""

import hashlib
import hmac
import json
import re
import threading
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOLERANCE_S = 300


class Controller:
    """The server, on a free port. `slow` names the VMs that take their time, `seen` its orders."""

    def __init__(self, secret):
        self.secret = secret.encode()
        self.slow = set()
        self.seen = []
        self.refused = []
        self.lock = threading.Lock()
        controller = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                status, answer = controller.follow(
                    self.path, self.headers.get("x-relet-signature", ""), body
                )
                text = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self):
        """Its base URL."""
        return f"http://127.0.0.1:{self.server.server_port}"

    def stop(self):
        """Ends it."""
        self.server.shutdown()
        self.server.server_close()

    def follow(self, path, signature, body):
        """The answer to one order."""
        status, answer = self.answer(path, signature, body)
        with self.lock:
            kept = self.seen if status < 300 else self.refused
            kept.append((path, answer))
        return status, answer

    def answer(self, path, signature, body):
        try:
            order = json.loads(body)
            sent_at = datetime.fromisoformat(order["sentAt"].replace("Z", "+00:00"))
        except (ValueError, KeyError, TypeError):
            return 400, {"error": "the body is no order"}
        signed = hmac.new(self.secret, order["sentAt"].encode() + b"." + body, hashlib.sha256)
        if not hmac.compare_digest(signed.hexdigest(), signature):
            return 401, {"error": "the signature is not that of the body"}
        if abs((datetime.now(timezone.utc) - sent_at).total_seconds()) > TOLERANCE_S:
            return 401, {"error": "sentAt is too far from now"}
        named = re.fullmatch(r"/v1/vms/([^/]+)/terminate", path)
        if not named or named[1] != order.get("vmId"):
            return 400, {"error": "the path names another VM than the body"}
        with self.lock:
            slow = order["vmId"] in self.slow
        return (202, {"state": "stopping"}) if slow else (200, {"state": "gone"})

    def told(self, vm):
        """How often it was told to stop this VM."""
        with self.lock:
            return sum(1 for path, _ in self.seen if path == f"/v1/vms/{vm}/terminate")
