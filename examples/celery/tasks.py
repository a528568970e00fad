"""A Celery application whose broker and result backend are one server: REDIS_URL."""
import os

import scriptless
from celery import Celery

URL = os.environ.get("REDIS_URL", "redis://127.0.0.1:6379/0")
app = Celery("tasks", broker=URL, backend=f"scriptless.Backend+{URL}")
scriptless.apply(app)


@app.task
def square(n):
    return n * n


@app.task
def total(numbers):
    return sum(numbers)


@app.task
def broken(text):
    raise ValueError(text)
