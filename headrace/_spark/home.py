"""A Spark home of our own, made of links to the installed one, and the classes that we add to it.

- Workers import pyspark from the environment instead of `pyspark.zip`: unzipping it costs seconds a start.
- `ForklessFileSystem` is compiled once a user from the source beside this file, by the compiler that
  Spark ships, so nothing is downloaded and no binary lies in the package.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import pyspark

__all__ = ["FILE_SYSTEM", "archive", "bytecode", "class_path", "compile_classes", "spark_home"]

FILE_SYSTEM = "headrace.ForklessFileSystem"
_SOURCE = Path(__file__).with_name("ForklessFileSystem.java")


def spark_home() -> Path:
    """The linked home; made on the first call and left as it is afterwards."""
    real = Path(pyspark.__file__).parent
    home = _cache() / f"spark-{_mark()}"
    if not home.exists():
        draft = Path(tempfile.mkdtemp(dir=_cache()))
        for name in ("bin", "jars"):
            (draft / name).symlink_to(real / name)
        _place(draft, home)
    return home


def bytecode() -> Path:
    """Where the workers keep compiled Python files, whatever the environment may be written to."""
    return _cache() / "bytecode"


def class_path() -> Path:
    """Our classes for Spark: a jar, or at a user's first start the directory that they are compiled into."""
    jar = _jar()
    if jar.exists():
        return jar
    directory = jar.with_suffix("")
    directory.mkdir(exist_ok=True)
    return directory


def archive() -> Path:
    """Where `headrace._spark.archive` puts the classes that a start loads; absent until it is run."""
    return _cache() / f"archive-{_mark()}.jsa"


def compile_classes(gateway: Any) -> bool:
    """Compile what is not compiled yet; False if this Spark cannot, which costs speed and nothing else."""
    jar = _jar()
    if jar.exists():
        return True
    directory = jar.with_suffix("")
    try:
        jvm = gateway.jvm
        compiler = jvm.org.codehaus.janino.CompilerFactory().newCompiler()
        compiler.setDestinationDirectory(jvm.java.io.File(str(directory)), False)
        files = gateway.new_array(jvm.java.io.File, 1)
        files[0] = jvm.java.io.File(str(_SOURCE))
        compiler.compile(files)
    except Exception:  # noqa: BLE001 - any compiler trouble has the same remedy: go on without
        return False
    draft = jar.with_suffix(f".{os.getpid()}")
    with zipfile.ZipFile(draft, "w") as file:
        for path in sorted(directory.rglob("*.class")):
            file.write(path, path.relative_to(directory))
    _place(draft, jar)
    return True


def _jar() -> Path:
    return _cache() / f"classes-{_mark()}.jar"


def _mark() -> str:
    content = _SOURCE.read_bytes() + f"{pyspark.__file__}{pyspark.__version__}".encode()
    return hashlib.sha256(content).hexdigest()[:12]


def _cache() -> Path:
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "headrace"
    root.mkdir(parents=True, exist_ok=True, mode=0o700)
    return root


def _place(draft: Path, final: Path) -> None:
    try:
        draft.rename(final)
    except OSError:
        if not final.exists():  # another process may have been faster
            raise
