"""Signing keys: ed25519, in a file only its owner can read.

A key for simulated documents is a different file with a line of text before the PEM block (RFC
7468 allows it, every tool reads on), and says so when it is used for the wrong kind.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer import CryptoSigner, Signature, SSlibKey  # type: ignore[attr-defined]

from nodeprep.errors import UsageError

_SIMULATED_LINE = b"nodeprep key for simulated documents only\n"
_PEM_BEGIN = b"-----BEGIN "
_MAX_KEY_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A key to verify with.

    Attributes:
        key_id: The id that envelopes name the key by: SHA-256 of the public key, as securesystemslib does.
        simulated: It vouches for simulated documents only.
    """

    key: SSlibKey
    simulated: bool

    @property
    def key_id(self) -> str:
        """Hex digits."""
        return self.key.keyid

    @classmethod
    def load(cls, path: Path) -> PublicKey:
        """A public key from a PEM file.

        Raises:
            UsageError: It cannot be read, or is not an ed25519 public key.
        """
        data = _read(path, what="public key")
        hint = "nodeprep writes the public key beside the private one, as *.pub"
        if b"PRIVATE KEY-----" in data:
            raise UsageError(f"{path} is a private key; a public key is wanted", hint=hint)
        try:
            key = load_pem_public_key(data)
        except (ValueError, UnsupportedAlgorithm) as error:
            raise UsageError(f"{path} is not a public key in PEM form: {error}", hint=hint) from error
        if not isinstance(key, Ed25519PublicKey):
            raise UsageError(f"{path} is not an ed25519 key but {_kind(key)}", hint=hint)
        return cls(SSlibKey.from_crypto(key), _is_marked(data))

    def holds(self, payload: bytes, payload_type: str, signature: bytes) -> bool:
        """Whether a signature is this key's over a DSSE payload."""
        signed = Signature(self.key_id, signature.hex())
        envelope = Envelope(payload, payload_type, {self.key_id: signed})
        try:
            envelope.verify([self.key], threshold=1)
        except VerificationError:
            return False
        return True


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A key to sign with.

    Attributes:
        path: The private key's file.
        simulated: It signs simulated documents only.
    """

    path: Path
    simulated: bool
    _signer: CryptoSigner = field(repr=False)

    @classmethod
    def load_or_create(cls, path: Path, *, simulated: bool, create: bool = True) -> SigningKey:
        """The key in a file; made when it is not there yet.

        Two runs that start at once end up with the same key. The public key is written beside it.

        Args:
            path: The private key's file, PEM (PKCS #8).
            simulated: The kind of documents it shall sign.
            create: False for a key somebody named: a misspelt path must not become a new key.

        Raises:
            UsageError: It cannot be read or written, others could read it, it needs a passphrase, is
                not ed25519, or is of the other kind.
        """
        if create and not path.exists() and path.with_suffix(".pub").exists():
            raise UsageError(
                f"{path.with_suffix('.pub')} is there and its private key {path} is not",
                hint="bring the private key back; or move the public key to where certificates are verified, "
                "since only it verifies those already issued, and a new pair is made",
            )
        if create:
            _create_once(path, simulated=simulated)
        key = cls._load(path)
        if key.simulated != simulated:
            kind, other = ("simulated", "real") if key.simulated else ("real", "simulated")
            raise UsageError(
                f"the key {path} signs {kind} documents, and these are {other}",
                hint="keep the two kinds of key apart; leave --key out to use nodeprep's own",
            )
        key._write_public(required=create)
        return key

    @property
    def public(self) -> PublicKey:
        """The key to verify with."""
        return PublicKey(self._signer.public_key, self.simulated)

    @property
    def key_id(self) -> str:
        """The id that envelopes name the key by."""
        return self._signer.public_key.keyid

    @property
    def public_path(self) -> Path:
        """Where the public key is, for those who verify."""
        return self.path.with_suffix(".pub")

    def public_pem(self) -> bytes:
        """The public key as a PEM file."""
        key = load_pem_private_key(self._signer.private_bytes, None)
        pem = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        return (_SIMULATED_LINE if self.simulated else b"") + pem

    def sign(self, payload: bytes, payload_type: str) -> dict[str, Any]:
        """A DSSE envelope over a payload, as plain JSON data."""
        envelope = Envelope(payload, payload_type, {})
        envelope.sign(self._signer)
        return envelope.to_dict()

    @classmethod
    def _load(cls, path: Path) -> SigningKey:
        data = _read(path, what="signing key", private=True)
        try:
            key = load_pem_private_key(data, None)
        except TypeError as error:
            raise UsageError(
                f"the signing key {path} is protected by a passphrase",
                hint="runs are unattended: name a key without one, kept with mode 0600",
            ) from error
        except (ValueError, UnsupportedAlgorithm) as error:
            raise UsageError(
                f"{path} is not a private key in PEM form: {error}",
                hint="an ed25519 key in PKCS #8: openssl genpkey -algorithm ed25519",
            ) from error
        if not isinstance(key, Ed25519PrivateKey):
            raise UsageError(
                f"{path} is not an ed25519 key but {_kind(key)}",
                hint="make one with: openssl genpkey -algorithm ed25519",
            )
        return cls(path, _is_marked(data), CryptoSigner(key))

    def _write_public(self, *, required: bool) -> None:
        """The public key beside the private one, unless it is there already."""
        wanted = self.public_pem()
        try:
            if self.public_path.read_bytes() == wanted:
                return
        except FileNotFoundError:
            pass
        except OSError as error:
            raise _cannot("read the public key", self.public_path, error) from error
        else:
            raise UsageError(
                f"{self.public_path} is not the public key of {self.path}",
                hint="remove it: nodeprep writes it anew",
            )
        temporary = self.public_path.with_name(f".{self.public_path.name}.{secrets.token_hex(4)}")
        try:
            temporary.write_bytes(wanted)
            temporary.chmod(0o644)
            temporary.replace(self.public_path)
        except OSError as error:
            with contextlib.suppress(OSError):
                temporary.unlink()
            # A key that somebody named may lie where nothing can be written, such as a mounted secret.
            if required:
                raise _cannot("write the public key", self.public_path, error) from error


def _create_once(path: Path, *, simulated: bool) -> None:
    try:
        if path.exists():
            return
    except OSError as error:
        raise _cannot("read the signing key", path, error) from error
    pem = Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    # Written whole under another name and then linked: whoever comes second finds a complete key.
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _refuse_open_folder(path.parent)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write((_SIMULATED_LINE if simulated else b"") + pem)
            file.flush()
            os.fsync(file.fileno())
        os.link(temporary, path)
    except FileExistsError:
        return
    except OSError as error:
        raise _cannot("write the signing key", path, error) from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()


def _refuse_open_folder(folder: Path) -> None:
    if folder.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise UsageError(
            f"the key folder {folder} can be written by others, who could replace the key",
            hint=f"chmod 700 {folder}",
        )


def _read(path: Path, *, what: str, private: bool = False) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_KEY_BYTES)
            if private and b"-----BEGIN PUBLIC KEY-----" in data:
                raise UsageError(f"{path} is a public key; a private key is wanted to sign with")
            if private:
                _refuse_open_key(path, os.fstat(file.fileno()))
            return data
    except FileNotFoundError as error:
        raise UsageError(f"there is no {what} {path}", hint="name the key's PEM file") from error
    except OSError as error:
        raise _cannot(f"read the {what}", path, error) from error


def _refuse_open_key(path: Path, state: os.stat_result) -> None:
    if state.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise UsageError(
            f"the signing key {path} is open to others (mode {stat.S_IMODE(state.st_mode):04o})",
            hint=f"chmod 600 {path}; if others may have read it, make a new one",
        )
    if state.st_uid not in (0, os.geteuid()):
        raise UsageError(
            f"the signing key {path} belongs to another user (uid {state.st_uid})",
            hint="sign with a key of your own",
        )


def _cannot(do_what: str, path: Path, error: OSError) -> UsageError:
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    return UsageError(
        f"cannot {do_what} {path}: {'the disk is full' if full else error.strerror}",
        hint="free some space"
        if full
        else "set NODEPREP_HOME to a folder of your own, or name a key with --key",
    )


def _is_marked(data: bytes) -> bool:
    return _SIMULATED_LINE.strip() in data.partition(_PEM_BEGIN)[0]


def _kind(key: object) -> str:
    return (
        type(key).__name__.removesuffix("PublicKey").removesuffix("PrivateKey").strip("_") or "another kind"
    )
