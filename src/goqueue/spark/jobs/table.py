"""All jobs, as one table: what `goqueue pipeline` offers and what spark-submit accepts."""

from goqueue.spark.jobs.words import Job, address, count, flag, moment, place, rate, span

_LAKE = flag("--lake", metavar="DIR", is_required=True, help="the directory (or hdfs://, s3a:// ...) of the archive")
_FOLLOW = flag("--follow", help="go on with what comes, until Ctrl-C (default: up to now, then end)")
_EVERY = flag(
    "--every", metavar="TIME", kind=span, default=60_000, help="with --follow: how often to write (default 1m)"
)
_PER_TRIGGER = flag(
    "--batch",
    metavar="N",
    kind=count,
    help="messages in a batch at most (default 1000000); more are faster and need more memory",
)
_VALUES = flag(
    "--values",
    metavar="raw|json|avro|protobuf",
    choices=("raw", "json", "avro", "protobuf"),
    default="raw",
    help="as they are (default), or as typed columns by the schema registry",
)
_FROM = flag("--from", metavar="TIME", kind=moment, dest="start", help="from then on: RFC 3339, or -2h")
_TO = flag("--to", metavar="TIME", kind=moment, dest="stop", help="up to then, without it")
_DRY_RUN = flag("--dry-run", help="only count them")

ARCHIVE = Job(
    "archive",
    "copy topics into a lake of Parquet, Delta or Iceberg, each message exactly once",
    (
        place("topic", "names of the topics", is_repeated=True),
        _LAKE,
        flag(
            "--format",
            metavar="parquet|delta|iceberg",
            choices=("parquet", "delta", "iceberg"),
            help="of the lake (default: as it is, a new one parquet); Delta and Iceberg need their package on Spark",
        ),
        _VALUES,
        _FOLLOW,
        _EVERY,
        _PER_TRIGGER,
    ),
    ("goqueue pipeline archive orders --lake lake", "goqueue pipeline archive orders payments --lake lake --follow"),
    about="Partitioned by topic and date. It goes on where the last run ended, and a run that was killed leaves"
    " neither gap nor duplicate.",
)

_RESTORE_FLAGS = (
    place("topic", "name of the topic, as it was archived"),
    _LAKE,
    _FROM,
    _TO,
    flag("--into", metavar="TOPIC", help="the topic to write to (default: the same)"),
    flag("--where", metavar="SQL", help="only those for which this holds, such as \"CAST(key AS STRING) = 'a'\""),
    flag("--keep-partitions", help="each to the partition that it was in (default: by key)"),
    flag("--keep-timestamps", help="each with the time that it had (default: the time of the restore)"),
    flag("--no-origin", help="without the header that says where a message came from"),
    flag(
        "--rate", metavar="N/s", kind=rate, help="so many a second at most, such as 1000/s (default: as fast as can be)"
    ),
    flag("--state", metavar="DIR", help="what was done already, so that it can go on (default: inside the lake)"),
    _DRY_RUN,
)
_RESTORE_ABOUT = (
    "In the order of their offsets, with keys and headers. A restore that was stopped or killed goes on where it was"
    " when it is called with the same words, and writes nothing twice."
)
RESTORE = Job(
    "restore",
    "write a time range of an archive back into a topic, each message exactly once",
    _RESTORE_FLAGS,
    (
        "goqueue pipeline restore orders --lake lake --from -2h --dry-run",
        "goqueue pipeline restore orders --lake lake --from 2026-11-16T10:00:00Z --into orders-again --rate 1000/s",
    ),
    about=_RESTORE_ABOUT,
    reads_brokers=False,
)
BACKFILL = Job(
    "backfill",
    "read the archive of a topic and then the topic itself, without gap or overlap, and write it elsewhere",
    (
        place("topic", "name of the topic"),
        _LAKE,
        _FROM,
        _TO,
        flag("--out", metavar="DIR", help="to a directory of Parquet files"),
        flag("--into", metavar="TOPIC", help="or to this topic"),
        flag("--keep-timestamps", help="with --into: each with the time that it had (default: that of the backfill)"),
        flag(
            "--select",
            metavar="SQL",
            help='what to make of it: a query of `messages`, such as "SELECT key, value FROM messages"',
        ),
        flag("--checkpoint", metavar="DIR", help="how far it is (default: inside the lake, by where it writes to)"),
        _FOLLOW,
        _EVERY,
        _PER_TRIGGER,
    ),
    ("goqueue pipeline backfill orders --lake lake --out everything",),
    about="What the archive holds is read from there, the rest from the topic; the archive may grow meanwhile.",
)

RECONCILE = Job(
    "reconcile",
    "compare what was produced with what arrived: lost, duplicated, reordered, by topic and window",
    (
        place("produced", "what should be there: topic:NAME, lake:DIR, or a file or directory"),
        place("arrived", "what is there: the same"),
        flag("--topic", metavar="TOPIC", is_repeated=True, help="only these topics"),
        _FROM,
        _TO,
        flag("--window", metavar="TIME", kind=span, default=3_600_000, help="by so long a time (default 1h)"),
        flag(
            "--by",
            metavar="SQL",
            help="what a message is known by, on both sides (default: its topic, partition and offset)",
        ),
        flag(
            "--order", metavar="COLUMN", help="what tells the order of arrival (default: the offset of another topic)"
        ),
        flag("--allow-duplicates", help="duplicates are no failure: at least once was promised"),
        flag("--allow-reordering", help="another order is no failure"),
        flag("--samples", metavar="N", kind=count, default=5, help="how many of each fault to show (default 5)"),
    ),
    (
        "goqueue pipeline reconcile topic:orders lake:lake --topic orders",
        "goqueue pipeline reconcile topic:orders consumed.parquet --order seen_at -o json",
        'goqueue pipeline reconcile topic:orders topic:enriched --by "CAST(key AS STRING)"',
    ),
    about="Ends with 0 if all arrived once and in order, with 1 if not. Files are Parquet, JSON lines or CSV, with the"
    " columns topic, partition and offset, or what --by asks for.",
    reads_brokers=False,
)

REPORT = Job(
    "report",
    "tell how topics and groups do: throughput, latency, retries, dead letters, lag; as tables and files",
    (
        place("topic", "names of the topics", is_repeated=True, is_optional=True),
        _FROM,
        _TO,
        flag("--window", metavar="TIME", kind=span, help="by so long a time (default: a sixtieth of the range)"),
        flag("--out", metavar="DIR", help="write every table as Parquet"),
    ),
    ("goqueue pipeline report --from -1h", "goqueue pipeline report orders --out report -o json"),
    about="Latencies come from the journeys of messages, as far as they are stored.",
)

DLQ = Job(
    "dlq",
    "group dead letters by reason and shape, choose some by SQL, send them back to work",
    (
        place("topic", "names of the topics (default: all)", is_repeated=True, is_optional=True),
        flag("--where", metavar="SQL", help="only those for which this holds, such as \"reason = 'rejected'\""),
        flag("--redrive", help="send those back to work"),
        flag("--into", metavar="TOPIC", help="to this topic (default: each to where it came from)"),
        flag("--rate", metavar="N/s", kind=rate, help="so many a second at most (default: as fast as can be)"),
        flag("--redrives-max", metavar="N", kind=count, default=3, help="not those sent back so often (default 3)"),
        _DRY_RUN,
    ),
    (
        "goqueue pipeline dlq orders",
        "goqueue pipeline dlq orders --where \"error LIKE 'timeout%'\" --redrive --dry-run",
    ),
    about="The columns are those of the table `dlq`, and `shape` and `cause`.",
    reads_brokers=False,
)

_AT = ("127.0.0.1", 9099)
SERVE = Job(
    "serve",
    "keep topics with the option table=iceberg as tables of Iceberg, each message exactly once, until it is stopped",
    (
        flag(
            "--lake",
            metavar="DIR",
            is_required=True,
            help="the service's directory: its own catalog, tables and checkpoints",
        ),
        flag(
            "--listen",
            metavar="HOST:PORT",
            kind=address,
            default=_AT,
            help="where /healthz, /metrics and /status are (default 127.0.0.1:9099)",
        ),
        flag("--look", metavar="TIME", kind=span, default=2000, help="how often to look for topics (default 2s)"),
        flag(
            "--tidy",
            metavar="TIME",
            kind=span,
            default=600_000,
            help="how often to put small files together and to remove old snapshots, rows and files (default 10m)",
        ),
        _PER_TRIGGER,
    ),
    ("goqueue pipeline serve --lake lake",),
    about="`goqueue topic alter orders --set table=iceberg` makes a topic one. New topics are found while it runs, and"
    " what fails is started again. It needs the extra goqueue[lake].",
    reads_brokers=False,
    extra="lake",
)
STATUS = Job(
    "status",
    "tell how the tables of goqueue pipeline serve do",
    (
        flag(
            "--at",
            metavar="HOST:PORT",
            kind=address,
            default=_AT,
            help="where it listens (default 127.0.0.1:9099)",
        ),
    ),
    ("goqueue pipeline status", "goqueue pipeline status --at 10.0.0.7:9099 -o json"),
    about="Ends with 1 if a table is failing.",
    reads_brokers=False,
    needs_spark=False,
)

JOBS = (SERVE, STATUS, ARCHIVE, RESTORE, BACKFILL, RECONCILE, REPORT, DLQ)
