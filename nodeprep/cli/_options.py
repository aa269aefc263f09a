"""Options that many commands share, spelled once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Hosts = Annotated[
    str | None,
    typer.Argument(
        help="Ansible host pattern (node01,node02 or rack1:!node07); all of the inventory by default, "
        "localhost without one."
    ),
]
Inventory = Annotated[
    Path | None,
    typer.Option("--inventory", "-i", help="Ansible inventory: a file, a folder or a script.", exists=True),
]
PolicyFile = Annotated[
    Path | None,
    typer.Option(
        "--policy",
        help="YAML with nodeprep_profile and nodeprep_policy, in place of the inventory's variables.",
    ),
]
OutputFolder = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="Run folder; by default a new one under NODEPREP_HOME."),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout and nothing else.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No talk on stderr but errors.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Every step on stderr; tracebacks of bugs.")]
Become = Annotated[
    bool, typer.Option("--become", "-b", help="Become root on the nodes (sudo), as in ansible-playbook.")
]
AskBecomePass = Annotated[
    bool, typer.Option("--ask-become-pass", "-K", help="Ask for the sudo password; never an argument.")
]
Forks = Annotated[int, typer.Option("--forks", help="Hosts worked on at the same time.", min=1, max=200)]
Key = Annotated[
    Path | None,
    typer.Option("--key", help="Private ed25519 key (PEM) to sign with; by default one made on first use."),
]
