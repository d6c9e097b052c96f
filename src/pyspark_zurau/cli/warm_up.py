"""`zurau pipeline warm-up`: Spark starts in half the time from then on."""

from __future__ import annotations

from zurau.cli.output import say


def warm_up() -> None:
    """Keep Spark's classes ready for Java, so that every later start takes about half the time.

    Runs Spark once, for some twenty seconds, and writes 200 MB to ~/.cache/zurau. Again after an update of Java or
    Spark; until then those start as they did before.

    \b
    Example:
      zurau pipeline warm-up
    """
    from pyspark_zurau.spark.class_archive import make_archive

    say("running Spark once")
    archive = make_archive()
    say(f"its classes are in {archive}" if archive else "this Java cannot keep classes; Spark starts as before")
