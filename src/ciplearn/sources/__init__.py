"""Tables that are read piece by piece: files and folders of files, pyarrow datasets, Ray datasets."""

from ciplearn.sources.table_files import Part, Source, TableFiles, as_source, open_source

__all__ = ["Part", "Source", "TableFiles", "as_source", "open_source"]
