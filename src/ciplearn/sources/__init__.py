"""Tables that are read piece by piece: files and folders of files, pyarrow datasets, Ray datasets."""

from ciplearn.sources.base import Part, Source
from ciplearn.sources.opening import as_source, open_source
from ciplearn.sources.table_files import TableFiles

__all__ = ["Part", "Source", "TableFiles", "as_source", "open_source"]
