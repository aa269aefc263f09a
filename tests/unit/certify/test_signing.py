"""Keys: made once, readable by their owner only, and never of the wrong kind."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

from nodeprep.certify.signing import PublicKey, SigningKey
from nodeprep.errors import UsageError


def write_key(path: Path, pem: bytes, mode: int = 0o600) -> Path:
    path.write_bytes(pem)
    path.chmod(mode)
    return path


def pem(key: object, encryption: object = None) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption or NoEncryption())  # type: ignore[attr-defined]


def test_made_on_first_use_for_its_owner_only(tmp_path: Path) -> None:
    key = SigningKey.load_or_create(tmp_path / "home" / "keys" / "nodeprep.pem", simulated=False)
    assert key.path.stat().st_mode & 0o777 == 0o600
    assert key.path.parent.stat().st_mode & 0o777 == 0o700
    assert key.public_path.stat().st_mode & 0o777 == 0o644
    assert sorted(file.name for file in key.path.parent.iterdir()) == ["nodeprep.pem", "nodeprep.pub"]


def test_kept_for_the_next_use(tmp_path: Path) -> None:
    first = SigningKey.load_or_create(tmp_path / "k" / "a.pem", simulated=False)
    second = SigningKey.load_or_create(tmp_path / "k" / "a.pem", simulated=False)
    assert first.key_id == second.key_id


def test_many_at_once_end_up_with_one_key(tmp_path: Path) -> None:
    path = tmp_path / "k" / "a.pem"
    with ThreadPoolExecutor(16) as pool:
        ids = set(pool.map(lambda _: SigningKey.load_or_create(path, simulated=False).key_id, range(64)))
    assert len(ids) == 1
    assert sorted(file.name for file in path.parent.iterdir()) == ["a.pem", "a.pub"]


def test_many_processes_at_once_end_up_with_one_key(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from nodeprep.certify.signing import SigningKey; "
        "print(SigningKey.load_or_create(Path(sys.argv[1]), simulated=False).key_id)"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "k" / "a.pem")]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(4)]
    assert len({process.communicate()[0] for process in running}) == 1
    assert all(process.returncode == 0 for process in running)


@pytest.mark.parametrize("simulated", [False, True])
def test_the_files_are_plain_pem_for_every_other_tool(tmp_path: Path, simulated: bool) -> None:
    key = SigningKey.load_or_create(tmp_path / "k" / "a.pem", simulated=simulated)
    private = load_pem_private_key(key.path.read_bytes(), None)
    public = load_pem_public_key(key.public_path.read_bytes())
    assert private.public_key() == public


def test_a_simulated_key_is_marked_in_both_files(tmp_path: Path) -> None:
    key = SigningKey.load_or_create(tmp_path / "k" / "simulated.pem", simulated=True)
    assert b"simulated documents only" in key.path.read_bytes()
    assert PublicKey.load(key.public_path).simulated
    assert SigningKey.load_or_create(key.path, simulated=True).simulated


@pytest.mark.parametrize("made_for", [False, True])
def test_a_key_of_the_other_kind_is_refused(tmp_path: Path, made_for: bool) -> None:
    key = SigningKey.load_or_create(tmp_path / "k" / "a.pem", simulated=made_for)
    with pytest.raises(UsageError, match="documents, and these are") as caught:
        SigningKey.load_or_create(key.path, simulated=not made_for)
    assert "keep the two kinds of key apart" in caught.value.hint


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o644, 0o660, 0o666, 0o601])
def test_a_key_open_to_others_is_refused(tmp_path: Path, mode: int) -> None:
    path = write_key(tmp_path / "k.pem", pem(Ed25519PrivateKey.generate()), mode)
    with pytest.raises(UsageError, match=f"mode 0{mode:o}") as caught:
        SigningKey.load_or_create(path, simulated=False, create=False)
    assert f"chmod 600 {path}" in caught.value.hint


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to give a file away")
def test_a_key_of_another_user_is_refused(tmp_path: Path) -> None:
    path = write_key(tmp_path / "k.pem", pem(Ed25519PrivateKey.generate()))
    os.chown(path, 12345, -1)
    with pytest.raises(UsageError, match="uid 12345"):
        SigningKey.load_or_create(path, simulated=False, create=False)


def test_a_named_key_is_never_made(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no signing key"):
        SigningKey.load_or_create(tmp_path / "mistyped.pem", simulated=False, create=False)
    assert list(tmp_path.iterdir()) == []


def test_a_passphrase_is_refused(tmp_path: Path) -> None:
    path = write_key(tmp_path / "k.pem", pem(Ed25519PrivateKey.generate(), BestAvailableEncryption(b"x")))
    with pytest.raises(UsageError, match="protected by a passphrase"):
        SigningKey.load_or_create(path, simulated=False, create=False)


def test_another_kind_of_key_is_refused(tmp_path: Path) -> None:
    path = write_key(tmp_path / "k.pem", pem(ec.generate_private_key(ec.SECP256R1())))
    with pytest.raises(UsageError, match="not an ed25519 key") as caught:
        SigningKey.load_or_create(path, simulated=False, create=False)
    assert "openssl genpkey -algorithm ed25519" in caught.value.hint


@pytest.mark.parametrize("content", [b"", b"junk", b"\x00" * 100, b"-----BEGIN PRIVATE KEY-----\n"])
def test_what_is_no_key_is_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(UsageError, match="not a private key in PEM form"):
        SigningKey.load_or_create(write_key(tmp_path / "k.pem", content), simulated=False)


def test_an_openssl_key_works(tmp_path: Path) -> None:
    path = write_key(tmp_path / "site.pem", pem(Ed25519PrivateKey.generate()))
    key = SigningKey.load_or_create(path, simulated=False, create=False)
    assert PublicKey.load(key.public_path).key_id == key.key_id


def test_a_public_key_that_belongs_to_another_is_not_overwritten(tmp_path: Path) -> None:
    key = SigningKey.load_or_create(tmp_path / "k" / "a.pem", simulated=False)
    other = SigningKey.load_or_create(tmp_path / "k" / "b.pem", simulated=False)
    key.public_path.write_bytes(other.public_pem())
    with pytest.raises(UsageError, match="is not the public key of"):
        SigningKey.load_or_create(key.path, simulated=False)
    assert key.public_path.read_bytes() == other.public_pem()


def test_a_lost_public_key_is_written_again(tmp_path: Path) -> None:
    key = SigningKey.load_or_create(tmp_path / "k" / "a.pem", simulated=False)
    key.public_path.unlink()
    SigningKey.load_or_create(key.path, simulated=False)
    assert PublicKey.load(key.public_path).key_id == key.key_id


def test_a_folder_others_can_write_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "k"
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(UsageError, match="can be written by others") as caught:
        SigningKey.load_or_create(folder / "a.pem", simulated=False)
    assert caught.value.hint == f"chmod 700 {folder}"
    assert list(folder.iterdir()) == []


def test_a_folder_that_is_a_file_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "k").write_text("")
    with pytest.raises(UsageError, match=r"cannot .* the signing key"):
        SigningKey.load_or_create(tmp_path / "k" / "a.pem", simulated=False)


def test_a_private_key_does_not_verify(tmp_path: Path) -> None:
    key = SigningKey.load_or_create(tmp_path / "k" / "a.pem", simulated=False)
    with pytest.raises(UsageError, match="is a private key; a public key is wanted"):
        PublicKey.load(key.path)


def test_public_keys_that_are_none(tmp_path: Path) -> None:
    path = tmp_path / "x.pub"
    with pytest.raises(UsageError, match="there is no public key"):
        PublicKey.load(path)
    path.write_bytes(b"ssh-ed25519 AAAA")
    with pytest.raises(UsageError, match="not a public key in PEM form"):
        PublicKey.load(path)
    curve = ec.generate_private_key(ec.SECP256R1()).public_key()
    path.write_bytes(curve.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    with pytest.raises(UsageError, match="not an ed25519 key"):
        PublicKey.load(path)


def test_the_key_does_not_show_itself(tmp_path: Path) -> None:
    key = SigningKey.load_or_create(tmp_path / "k" / "a.pem", simulated=False)
    assert "signer" not in repr(key).lower()
