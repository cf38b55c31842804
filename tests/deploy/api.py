"""The deployed HTTP API, called as its users call it."""

import http.client
import json

from cloud import Failed


class Answer:
    """What came back."""

    def __init__(self, status, headers, body):
        self.status = status
        self.headers = headers
        self.body = body

    def __getitem__(self, name):
        return self.body[name]


class Api:
    """The API behind its own host name, which the emulator answers for on its one port."""

    def __init__(self, port, api_id):
        self.port = port
        self.host = f"{api_id}.execute-api.localhost:{port}"

    def call(self, method, path, key=None, body=None, headers=None):
        """Makes one call."""
        sent = {"Host": self.host, **(headers or {})}
        if key:
            sent["Authorization"] = f"Bearer {key}"
        text = None
        if body is not None:
            text = json.dumps(body)
            sent["Content-Type"] = "application/json"
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, body=text, headers=sent)
            reply = connection.getresponse()
            content = reply.read()
        finally:
            connection.close()
        received = {name.lower(): value for name, value in reply.getheaders()}
        try:
            value = json.loads(content) if content else None
        except ValueError:
            value = content.decode(errors="replace")
        return Answer(reply.status, received, value)

    def expect(self, status, method, path, key=None, body=None, headers=None):
        """Makes one call that is to be answered with this status."""
        answer = self.call(method, path, key, body, headers)
        if answer.status != status:
            raise Failed(f"{method} {path}: {answer.status}, not {status}: {answer.body}")
        return answer


def check(what, holds):
    """Says what holds; what does not ends the run."""
    if not holds:
        raise Failed(f"not as it should be: {what}")
    print(f"    ok: {what}", flush=True)
