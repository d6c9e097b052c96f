"""Compiles the `.pyx` modules when Cython and a C compiler are there: the broker's walker and the Spark source's loops.

Where they are not, or where compiling fails, the package is built without them and its plain Python twins serve:
slower, and the same in every byte. ZURAU_NATIVE=0 asks for that; with ZURAU_NATIVE=1 a failure to compile fails the
build.
"""

from __future__ import annotations

import os
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

#: Where `.pyx` modules lie.
PACKAGES = ("pyspark_zurau/arrow", "zurau/records")


class CustomBuildHook(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        wish = os.environ.get("ZURAU_NATIVE", "")
        if self.target_name != "wheel" or wish == "0":
            return
        source_root = Path(self.root) / "src"
        sources = [source for package in PACKAGES for source in sorted((source_root / package).glob("*.pyx"))]
        try:
            made = [compile_module(source, source_root) for source in sources]
        except Exception as error:
            if wish == "1":
                raise
            self.app.display_warning(
                f"NOT COMPILED: {error}\nPlain Python will serve: right, and several times slower. Install a C compiler"
                " (gcc or clang) and build again; `zurau version` tells how it is."
            )
            return
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        if version != "editable":
            build_data["force_include"] |= {
                str(library): library.relative_to(source_root).as_posix() for library in made
            }


def compile_module(source: Path, source_root: Path) -> Path:
    """The extension module, next to its source; left alone when it is newer than that."""
    library = source.with_suffix(sysconfig.get_config_var("EXT_SUFFIX"))
    if library.exists() and library.stat().st_mtime >= source.stat().st_mtime:
        return library

    from Cython.Build import cythonize
    from setuptools import Distribution, Extension

    name = ".".join(source.relative_to(source_root).with_suffix("").parts)
    with tempfile.TemporaryDirectory() as scratch:
        optimise = [] if sys.platform == "win32" else ["-O3", "-g0"]
        extensions = cythonize(
            [Extension(name, [str(source)], extra_compile_args=optimise)], build_dir=scratch, quiet=True, force=True
        )
        command = Distribution({"ext_modules": extensions}).get_command_obj("build_ext")
        command.build_temp, command.build_lib = scratch, scratch
        command.ensure_finalized()
        command.run()
        built = Path(command.get_ext_fullpath(name))
        # In one step, so that whoever imports it meanwhile has the old one or the new one.
        fresh = library.with_suffix(".new")
        fresh.write_bytes(built.read_bytes())
        fresh.chmod(0o755)
        fresh.replace(library)
    return library
