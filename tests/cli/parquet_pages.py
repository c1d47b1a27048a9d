"""Files that notice when their own bytes were changed."""

import pyarrow.parquet
import pytest


def refuse_changed_bytes(path):
    """The last bytes of the first column, turned around, are noticed by a reader who looks at checksums."""
    about = pyarrow.parquet.ParquetFile(path).metadata.row_group(0).column(0)
    end = (about.dictionary_page_offset or about.data_page_offset) + about.total_compressed_size
    content = path.read_bytes()
    path.write_bytes(content[: end - 2] + bytes(one ^ 255 for one in content[end - 2 : end]) + content[end:])
    with pytest.raises(OSError, match="CRC checksum"):
        pyarrow.parquet.ParquetFile(path, page_checksum_verification=True).read()
