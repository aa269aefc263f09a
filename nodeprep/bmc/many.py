"""Asking many BMCs at the same time."""

from __future__ import annotations

import concurrent.futures
import threading
from collections.abc import Callable, Mapping
from typing import TypeVar

from nodeprep.errors import Interrupted, NodeprepError

T = TypeVar("T")
U = TypeVar("U")

WORKERS = 16


def for_all(
    subjects: Mapping[str, T], ask: Callable[[T, threading.Event], U], *, workers: int = WORKERS
) -> dict[str, U | NodeprepError]:
    """Asks about each host; a host whose BMC fails has the error in place of the answer.

    Threads and not processes: over IPMI each conversation has a process of its own already, and over Redfish
    a thread waits most of its time. Ctrl-C (or any other exception in this thread) ends all conversations
    within a second.

    Args:
        ask: Called in a thread with a subject and the event to hand on as `cancelled`.
        workers: Conversations at the same time.
    """
    cancelled = threading.Event()
    pool = concurrent.futures.ThreadPoolExecutor(max_workers=workers, thread_name_prefix="bmc")
    try:
        asked = {host: pool.submit(ask, subject, cancelled) for host, subject in subjects.items()}
        answers: dict[str, U | NodeprepError] = {}
        for host, future in asked.items():
            try:
                answers[host] = future.result()
            except Interrupted:
                raise
            except NodeprepError as error:
                answers[host] = error
            except Exception as error:
                # A bug that one BMC brings out must not break off the resets of the others.
                words = f"{type(error).__name__}: {error}"
                answers[host] = NodeprepError(words, hint="this is a bug in nodeprep; report it")
        return answers
    except BaseException:
        cancelled.set()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
