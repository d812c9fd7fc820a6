"""Java programs for the local servers: fetched once a user with Apache Ivy, which PySpark brings along.

They lie in `~/.cache/headrace/services/NAME-VERSION/`, whole or not at all. Deliberately not here: versions, which each
server names itself.
"""

import importlib.util
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

from headrace._spark.java import check_java
from headrace.errors import SetupError

__all__ = ["Artifact", "Product", "fetched", "java"]

_SETTINGS = """<ivysettings>
  <settings defaultResolver="central"/>
  <resolvers><ibiblio name="central" m2compatible="true" usepoms="{poms}"/></resolvers>
</ivysettings>
"""
_MODULE = """<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
  <info organisation="headrace" module="services"/>
  <dependencies>
{dependencies}
  </dependencies>
</ivy-module>
"""
_TELLING = re.compile(r"not found|ERROR|Exception|FAILED|timed out|SERVER ERROR", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Artifact:
    """One artifact of a Maven repository, with what it needs; `archive` names one that is unpacked instead."""

    organisation: str
    module: str
    version: str
    archive: str = ""


@dataclass(frozen=True, slots=True)
class Product:
    """What a server is made of."""

    name: str
    title: str
    version: str
    megabytes: int
    artifacts: tuple[Artifact, ...]

    @property
    def directory(self) -> Path:
        """Where it lies once it is fetched."""
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        return cache / "headrace" / "services" / f"{self.name}-{self.version}"


def java() -> Path:
    """The `java` that runs the servers."""
    return check_java()


def fetched(product: Product) -> Path:
    """The product's directory; downloads it the first time."""
    final = product.directory
    if final.is_dir():
        return final
    final.parent.mkdir(parents=True, exist_ok=True)
    print(  # noqa: T201 - a download must not look like a hang
        f"fetching {product.title} {product.version} ({product.megabytes} MB), once",
        file=sys.stderr,
        flush=True,
    )
    with tempfile.TemporaryDirectory(dir=final.parent, prefix=f".{final.name}-") as room:
        _retrieve(product, Path(room))
        _place(Path(room, "product"), final)
    return final


def _retrieve(product: Product, room: Path) -> None:
    (room / "product").mkdir()
    archives = any(artifact.archive for artifact in product.artifacts)
    # The description of an archive names parents that not every repository has; an archive needs none of them.
    (room / "settings.xml").write_text(_SETTINGS.format(poms="false" if archives else "true"))
    dependencies = "\n".join(_dependency(artifact) for artifact in product.artifacts)
    (room / "ivy.xml").write_text(_MODULE.format(dependencies=dependencies))
    _run_ivy(product, room)
    for path in sorted((room / "product").glob("*.tar.gz")):
        with tarfile.open(path) as archive:
            archive.extractall(room / "product", filter="data")
        path.unlink()


def _dependency(artifact: Artifact) -> str:
    head = f'    <dependency org="{artifact.organisation}" name="{artifact.module}" rev="{artifact.version}"'
    if not artifact.archive:
        return f'{head} conf="default"/>'
    named = f'<artifact name="{artifact.module}" type="tar.gz" ext="tar.gz" m:classifier="{artifact.archive}"/>'
    return f'{head} transitive="false">{named}</dependency>'


def _run_ivy(product: Product, room: Path) -> None:
    command = [java(), "-cp", _ivy(), "org.apache.ivy.Main", "-settings", room / "settings.xml"]
    command += ["-cache", room / "cache", "-ivy", room / "ivy.xml", "-retrieve"]
    command += [f"{room}/product/[artifact]-[revision](-[classifier]).[ext]"]
    done = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise _failure(product, done.stdout + done.stderr)


def _failure(product: Product, output: str) -> SetupError:
    telling = [line.strip() for line in output.splitlines() if _TELLING.search(line)]
    said = "\n".join(f"    {line[:200]}" for line in dict.fromkeys(telling[:6])) or "    (nothing)"
    return SetupError(
        f"{product.title} {product.version} could not be downloaded. Check the network (behind a proxy: "
        "JAVA_TOOL_OPTIONS='-Dhttps.proxyHost=… -Dhttps.proxyPort=…') and try again, or copy "
        f"{product.directory} from a machine that has it. The download said:\n{said}"
    )


def _ivy() -> Path:
    spec = importlib.util.find_spec("pyspark")
    places = [] if spec is None else spec.submodule_search_locations or []
    for place in places:
        for jar in sorted(Path(place, "jars").glob("ivy-*.jar")):
            return jar
    raise SetupError("PySpark has no jars/ivy-*.jar here. Install it again: pip install pyspark")


def _place(draft: Path, final: Path) -> None:
    try:
        draft.rename(final)
    except OSError:
        if not final.is_dir():  # otherwise somebody else was faster, with the same content
            raise
