"""The file of a pipeline: what it means, and what is told about its mistakes."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'zurau[spark]'")

from pyspark_zurau.engine.declaration import Trigger, Watermark
from pyspark_zurau.engine.problems import BadPipeline

SINK = 'from = "orders"\nkind = "console"'


def test_a_small_file_has_sensible_defaults(declare):
    pipeline = declare()
    source, sink = pipeline.sources["orders"], pipeline.sinks["out"]
    assert (source.bootstrap, source.starting, source.null_values) == ("127.0.0.1:9092", "earliest", "dead_letter")
    assert (sink.mode, sink.trigger) == ("append", Trigger("200 milliseconds"))


def test_a_checkpoint_is_kept_at_home_unless_it_has_a_place(declare, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert declare().checkpoint == str(tmp_path / "zurau" / "pipelines" / "shop")


def test_the_command_lines_cluster_counts_before_the_files(changed, declare):
    assert changed('name = "shop"', 'name = "shop"\nbootstrap = "a:1"').sources["orders"].bootstrap == "a:1"
    assert declare(bootstrap="b:2").sources["orders"].bootstrap == "b:2"


def test_a_sources_own_cluster_counts_before_all(declare):
    text = """
    name = "far"
    [sources.a]
    bootstrap = "far:1"
    topics = ["t"]
    format = "raw"
    [sinks.out]
    from = "a"
    kind = "console"
    """
    assert declare(text, bootstrap="near:2").sources["a"].bootstrap == "far:1"


def test_settings_with_dots_need_no_quotes(changed):
    pipeline = changed('format = "json"', 'format = "json"\noptions.kafka.isolation.level = "read_committed"')
    assert pipeline.sources["orders"].options == {"kafka.isolation.level": "read_committed"}
    pipeline = changed('name = "shop"', 'name = "shop"\n[spark]\nsql.shuffle.partitions = 2\n"spark.ui.enabled" = true')
    assert pipeline.spark == {"spark.sql.shuffle.partitions": "2", "spark.ui.enabled": "true"}


def test_settings_of_kafkas_clients_hold_for_all_and_secure_the_dead_letters(changed):
    from pyspark_zurau.engine.sources import dead_letter_target

    pipeline = changed('name = "shop"', 'name = "shop"\n[kafka]\nsecurity.protocol = "SSL"\nclient.id = "me"')
    source = pipeline.sources["orders"]
    assert source.options == {"kafka.security.protocol": "SSL", "kafka.client.id": "me"}
    assert dead_letter_target(source).options == {"kafka.security.protocol": "SSL"}


def test_a_sink_may_have_a_pace_of_its_own(changed):
    pipeline = changed(SINK, f'{SINK}\nevery = "5 minutes"')
    assert pipeline.sinks["out"].trigger.every == "5 minutes"
    assert pipeline.trigger.every == "200 milliseconds"


def test_a_watermark_is_a_column_and_a_delay(changed):
    pipeline = changed('format = "json"', 'format = "json"\nwatermark = {column = "time", delay = "10 seconds"}')
    assert pipeline.sources["orders"].watermark == Watermark("time", "10 seconds")


def test_a_file_that_is_no_toml_says_where(declare):
    with pytest.raises(BadPipeline, match=r"is not TOML: .*line 1"):
        declare("name = \nname")


def test_a_pipeline_without_anything_is_told_all_that_is_missing(declare):
    with pytest.raises(BadPipeline) as raised:
        declare("")
    assert [problem.key for problem in raised.value.problems] == ["name", "sources", "sinks"]


@pytest.mark.parametrize(
    ("line", "instead", "message"),
    [
        (
            'format = "json"',
            'fromat = "json"',
            "[sources.orders] fromat: there is no such key here; did you mean format?",
        ),
        (
            'format = "json"',
            'format = "jason"',
            "[sources.orders] format: 'jason' is not one of json, text, regex, csv,",
        ),
        ('schema = "id INT, shop STRING"', "", "[sources.orders] schema: json needs one, for example"),
        ('topics = ["orders"]', "", "[sources.orders] topics: which topics to read is not said"),
        ('topics = ["orders"]', "topics = [1]", "[sources.orders] topics: must be a list of texts"),
        ('dead_letter = "orders-dead"', "", "[sources.orders] dead_letter: where values go that cannot be read"),
        ('format = "json"', 'format = "json"\npattern = "x"', "[sources.orders] pattern: is for format = 'regex'"),
        ('format = "json"', 'format = "json"\nrecord = ["age"]', "[sources.orders] record: a record has no 'age'"),
        (
            'format = "json"',
            'format = "json"\noptions = {maxOffsetPerTrigger = 1}',
            "[sources.orders]: there is no option maxoffsetpertrigger; did you mean maxOffsetsPerTrigger?",
        ),
        (
            'from = "orders"',
            'from = "order"',
            "[sinks.out] from: there is no source or step 'order'; did you mean orders?",
        ),
        ('kind = "console"', 'kind = "parquet"', "[sinks.out] path: is missing; for example path = 'lake/requests'"),
        (
            'kind = "console"',
            'kind = "parquet"\npath = "gs://b"',
            "[sinks.out] path: gs:// is not written to; use s3://",
        ),
        ('kind = "console"', 'kind = "topic"', "[sinks.out] topic: is missing; for example topic = 'alerts'"),
        ('kind = "console"', 'kind = "console"\nrows = true', "[sinks.out] rows: True is not a whole number"),
        ('kind = "console"', 'kind = "console"\nevery = "soon"', "[sinks.out] every: 'soon' is not a duration"),
        (
            'kind = "console"',
            'kind = "delta"\npath = "d"\nmode = "update"',
            "[sinks.out] key: update needs to know which columns tell rows apart",
        ),
        (
            'kind = "console"',
            'kind = "postgres"\ndsn = "x"\ntable = "t"\ndelete = "gone"',
            "[sinks.out] delete: needs a key",
        ),
        ("[sources.orders]", "[sources.my-orders]", "[sources.my-orders]: 'my-orders' must be letters, digits and _"),
        ('name = "shop"', 'name = "my shop"', "name: 'my shop' must be letters, digits, - and _"),
    ],
)
def test_a_mistake_is_told_with_its_place_and_what_to_do(problems, line, instead, message):
    assert any(problem.startswith(message) for problem in problems(line, instead)), problems(line, instead)


def test_all_mistakes_are_told_at_once(problems):
    found = problems(SINK, 'form = "orders"\nkind = "parquet"\nmode = "update"')
    assert found == [
        "[sinks.out] from: is missing; for example from = 'requests'",
        "[sinks.out] path: is missing; for example path = 'lake/requests'",
        "[sinks.out] mode: update: files can only be added; use mode = 'append', or kind = 'delta' with a key",
        "[sinks.out] form: there is no such key here; did you mean from?",
    ]


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ('sql = "SELECT 1"\npython = "a:b"', "[steps.x]: needs one of sql (a query) and python"),
        ('python = "file.py"\ninputs = ["orders"]', "[steps.x] python: 'file.py' names no function"),
        ('python = "a:b"', "[steps.x] inputs: which frames the function gets is not said"),
        ('python = "a:b"\ninputs = ["y"]', "[steps.x] inputs: reads 'y' before its time"),
        ('python = "a:b"\ninputs = ["ordres"]', "[steps.x] inputs: there is no 'ordres'; did you mean orders?"),
    ],
)
def test_a_mistake_in_a_step_is_told_too(problems, step, message):
    found = problems("[sinks.out]", f'[steps.x]\n{step}\n[steps.y]\nsql = "SELECT 1"\n[sinks.out]')
    assert found[0].startswith(message)


def test_a_time_format_for_all_holds_for_every_column_that_is_a_time(changed):
    pipeline = changed(
        'schema = "id INT, shop STRING"', 'schema = "id INT, at TIMESTAMP, day DATE"\ntime_format = "iso"'
    )
    assert pipeline.sources["orders"].time_format == {"at": "iso", "day": "iso"}


def test_a_time_format_names_columns_and_forms_that_there_are(problems):
    told = problems('shop STRING"', 'at TIMESTAMP"\ntime_format = {att = "iso", at = "apach", id = "epoch"}')
    assert told[0] == "[sources.orders] time_format: there is no column 'att'; did you mean at?"
    assert told[1].startswith("[sources.orders] time_format: 'apach' is neither a pattern like 'dd.MM.yyyy HH:mm:ss'")
    assert told[1].endswith("did you mean apache?")
    assert told[2] == "[sources.orders] time_format: column id is INT; a time is a TIMESTAMP or a DATE"


def test_a_schema_is_read_before_spark_is_there(problems):
    (told,) = problems('shop STRING"', 'shop STRNG"')
    assert told == "[sources.orders] schema: column shop: STRNG is not a type of Spark; did you mean STRING?"
    (told,) = problems('shop STRING"', 'tags ARRAY<STRING"')
    assert told == "[sources.orders] schema: a '>' is missing in 'tags ARRAY<STRING'"
    (told,) = problems('shop STRING"', 'shop"')
    assert told == "[sources.orders] schema: 'shop' is not a column; write a name and a type, like 'time TIMESTAMP'"


def test_steps_of_either_kind_may_have_a_watermark(changed):
    step = '\n[steps.late]\nsql = "SELECT 1"\nwatermark = {column = "at", delay = "5 minutes"}\n[sinks.out]'
    assert changed("[sinks.out]", step).steps["late"].watermark == Watermark("at", "5 minutes")
