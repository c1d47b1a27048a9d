"""The tables of a page, read back."""

from html.parser import HTMLParser


class Tables(HTMLParser):
    """Collects the cells of every table, by what the table is of; a cell is the list of its texts."""

    def __init__(self):
        super().__init__()
        self.tables, self.row, self.cell, self.name = {}, None, None, None

    def handle_starttag(self, tag, attrs):
        if tag == "table":
            self.name = dict(attrs).get("data-of")
        elif tag == "tr":
            self.row = []
        elif tag in ("td", "th"):
            self.cell = []

    def handle_endtag(self, tag):
        if tag in ("td", "th"):
            self.row.append(self.cell)
            self.cell = None
        elif tag == "tr" and self.name:
            self.tables.setdefault(self.name, []).append(self.row)
        elif tag == "table":
            self.name = None

    def handle_data(self, data):
        if self.cell is not None and data.strip():
            self.cell.append(" ".join(data.split()))


def tables_of(page):
    reader = Tables()
    reader.feed(page)
    return reader.tables
