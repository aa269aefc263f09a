"""Inspect: what the nodes really are. Changes nothing."""

from __future__ import annotations

from nodeprep.workflows.session import Observed, Session


def inspect(session: Session) -> Observed:
    """Facts of every host of the session."""
    return session.observe(session.hosts, label="now")
