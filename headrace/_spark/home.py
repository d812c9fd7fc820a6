"""A Spark home of our own, made of links to the installed one, and the classes that we add to it.

- Workers import pyspark from the environment instead of `pyspark.zip`: unzipping it costs seconds a start.
- `ForklessFileSystem` is compiled once a user from the source beside this file, by the compiler that
  Spark ships, so nothing is downloaded and no binary lies in the package.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path
from typing import Any

import pyspark

__all__ = ["FILE_SYSTEM", "bytecode", "classes", "compile_classes", "spark_home"]

FILE_SYSTEM = "headrace.ForklessFileSystem"
_SOURCE = Path(__file__).with_name("ForklessFileSystem.java")


def spark_home() -> Path:
    """The linked home; made on the first call and left as it is afterwards."""
    real = Path(os.environ.get("HEADRACE_SPARK_HOME") or Path(pyspark.__file__).parent)
    mark = hashlib.sha256(f"{real}{pyspark.__version__}".encode()).hexdigest()[:12]
    home = _cache() / f"spark-{mark}"
    if not home.exists():
        draft = Path(tempfile.mkdtemp(dir=_cache()))
        for name in ("bin", "jars"):
            (draft / name).symlink_to(real / name)
        _place(draft, home)
    return home


def bytecode() -> Path:
    """Where the workers keep compiled Python files, whatever the environment may be written to."""
    return _cache() / "bytecode"


def classes() -> Path:
    """The directory of our compiled classes; it is on Spark's class path and may still be empty."""
    mark = hashlib.sha256(_SOURCE.read_bytes() + pyspark.__version__.encode()).hexdigest()[:12]
    path = _cache() / f"classes-{mark}"
    path.mkdir(exist_ok=True)
    return path


def compile_classes(gateway: Any) -> bool:
    """Compile what `classes()` lacks; False if this Spark cannot, which costs speed and nothing else."""
    target = classes()
    package = target / "headrace"
    if package.exists():
        return True
    draft = Path(tempfile.mkdtemp(dir=_cache()))
    try:
        jvm = gateway.jvm
        compiler = jvm.org.codehaus.janino.CompilerFactory().newCompiler()
        compiler.setDestinationDirectory(jvm.java.io.File(str(draft)), False)
        files = gateway.new_array(jvm.java.io.File, 1)
        files[0] = jvm.java.io.File(str(_SOURCE))
        compiler.compile(files)
    except Exception:  # noqa: BLE001 - any compiler trouble has the same remedy: go on without
        return False
    _place(draft / "headrace", package)
    return package.exists()


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
