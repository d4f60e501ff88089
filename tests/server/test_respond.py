"""The date of answers, which gunicorn would make for each of them."""

from __future__ import annotations

from email.utils import parsedate_to_datetime
from unittest.mock import patch

from extender.server.respond import date
from tests.server.service import Service, bind_body


def test_the_date_is_that_of_the_second() -> None:
    with patch("time.time", side_effect=[1795488000.1, 1795488000.9, 1795488001.0]):
        dates = [date(), date(), date()]
    assert dates == ["Tue, 24 Nov 2026 02:40:00 GMT", "Tue, 24 Nov 2026 02:40:00 GMT", "Tue, 24 Nov 2026 02:40:01 GMT"]


def test_the_answers_of_the_worker_have_it(service: Service) -> None:
    client = service.client()
    client.request("POST", "/bind", bind_body("dated"), {"Content-Type": "application/json"})
    answer = client.getresponse()
    answer.read()
    seconds = abs((parsedate_to_datetime(answer.headers["Date"]) - parsedate_to_datetime(date())).total_seconds())
    client.close()
    assert seconds < 60
