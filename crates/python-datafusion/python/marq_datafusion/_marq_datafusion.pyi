from typing import final

__version__: str

@final
class Table:
    """Parquet files as a table of DataFusion. It may be registered several times, by any thread."""

    @staticmethod
    def of_files(
        paths: list[str],
        partitions: list[tuple[str, str]],
        columns: list[str] | None,
        filter: str | None,
    ) -> Table: ...
    @staticmethod
    def of_stream(stream: object) -> Table: ...
    @property
    def column_names(self) -> list[str]: ...
    def __datafusion_table_provider__(self, session: object | None = None) -> object: ...
