"""Plumbing alone: an empty Flask view under gunicorn's own gevent worker, `python -m tests.benchmark.bare_service PORT`.

Used by the benchmark calls, which says what the verbs cost beside it.
"""

from gevent import monkey

monkey.patch_all()

import sys  # noqa: E402
from typing import Any  # noqa: E402

from flask import Flask, Response, request  # noqa: E402
from gunicorn.app.base import BaseApplication  # noqa: E402


def answer() -> Response:
    request.get_data()
    return Response(b'{"Error":""}', mimetype="application/json")


class Bare(BaseApplication):  # type: ignore[misc]
    def load_config(self) -> None:
        settings = {"bind": [f"127.0.0.1:{sys.argv[1]}"], "worker_class": "gevent", "keepalive": 120, "accesslog": None}
        for name, value in {**settings, "control_socket_disable": True, "loglevel": "warning"}.items():
            self.cfg.set(name, value)

    def load(self) -> Any:
        app = Flask("bare", static_folder=None)
        app.add_url_rule("/bind", view_func=answer, methods=["POST"])
        return app


if __name__ == "__main__":
    Bare().run()
