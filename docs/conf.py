"""How Sphinx builds the site: ``make docs``, or ``make docs-quick`` without running the gallery."""

import os
import re

import torch
from docutils import nodes
from sphinx_gallery.sorting import FileNameSortKey

import ciplearn

# Examples of the gallery run while the site is built, on a machine that does other things too.
torch.set_num_threads(1)
os.environ.setdefault("TQDM_DISABLE", "1")

# The gallery shows objects as HTML, notebooks show graphs and verdicts as SVG, and SVG is HTML.
ciplearn.CausalGraph._repr_html_ = ciplearn.CausalGraph._repr_svg_
ciplearn.Verdict._repr_html_ = ciplearn.Verdict._repr_svg_

project = "ciplearn"
author = "The ciplearn developers"
copyright = author
release = version = ciplearn.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "gallery", "reproduction/*/result.md"]
templates_path = ["_templates"]
html_static_path = ["_static"]

# Markdown: headings are anchors as on code hosts, so links work in both places.
myst_enable_extensions = ["attrs_block", "colon_fence", "deflist"]
myst_heading_anchors = 4
suppress_warnings = ["config.cache"]

autosummary_generate = True
autodoc_typehints = "none"  # the numpydoc sections say it in words
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
numpydoc_citation_re = "(?!)"  # [kusner2017] is a key of the page of references, not a citation of numpydoc
default_role = "py:obj"
toc_object_entries_show_parents = "hide"

sphinx_gallery_conf = {
    "examples_dirs": ["gallery"],
    "gallery_dirs": ["auto_gallery"],
    "filename_pattern": r"plot_",
    "within_subsection_order": FileNameSortKey,
    "doc_module": ("ciplearn",),
    "backreferences_dir": None,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "download_all_examples": False,
    "write_computation_times": False,
    "thumbnail_size": (760, 340),
    "abort_on_example_error": True,
    "image_scrapers": ("matplotlib",),
}

html_theme = "pydata_sphinx_theme"
html_title = "ciplearn"
html_css_files = ["ciplearn.css"]
# Said here, or the theme complains on the console of whoever comes for the first time.
html_context = {"default_mode": "auto"}
html_favicon = "_static/favicon.svg"
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "ciplearn"},
    "header_links_before_dropdown": 6,
    "navigation_with_keys": False,
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"index": [], "start": [], "asked": [], "glossary": []}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True


def _skip_what_others_wrote(app, what, name, member, skip, options):
    """Leave out members that scikit-learn or the notebook's widgets hand down."""
    owner = getattr(member, "fget", None) or getattr(member, "func", None) or member
    module = getattr(owner, "__module__", None)
    return True if isinstance(module, str) and not module.startswith("ciplearn") else None


def _list_external_links(app, env):
    """Write which addresses of other sites stand on which pages: ``external-links.txt`` beside the pages."""
    found = {}
    for page in sorted(env.found_docs):
        for link in env.get_doctree(page).findall(nodes.reference):
            if link.get("refuri", "").startswith("http"):
                found.setdefault(link["refuri"], set()).add(page)
    lines = [f"{address}  {' '.join(sorted(pages))}\n" for address, pages in sorted(found.items())]
    app.outdir.mkdir(parents=True, exist_ok=True)
    (app.outdir / "external-links.txt").write_text("".join(lines), encoding="utf-8")


# Q_ij, f_V, X_A⊥ or Var_{a′ ~ p(A)}; names such as y_pos are left alone.
_SUBSCRIPT = re.compile(r"(?<=[A-Za-zŶŷΣλμ*\u0303\u0304])_(?:\{([^}]+)\}|([A-Za-zŶŷ0-9]{1,2}[′'⊥]?)(?!\w))")


def _with_subscripts(text):
    """Cut text into pieces that stand on the line and pieces that stand below it."""
    pieces, end = [], 0
    for found in _SUBSCRIPT.finditer(text):
        lowered = found[1] or found[2]
        pieces += [nodes.Text(text[end : found.start()]), nodes.subscript("", lowered)]
        end = found.end()
    return [*pieces, nodes.Text(text[end:])]


def _typeset_formulas(app, doctree):
    """Typeset the subscripts of sentences, and of formulas that stand by themselves: they are indented on a page."""
    for block in list(doctree.findall(nodes.literal_block)):
        if _SUBSCRIPT.search(block.astext()) and block.get("language", "none") in ("none", "default"):
            lines = [nodes.line("", "", *_with_subscripts(line)) for line in block.astext().splitlines()]
            block.replace_self(nodes.line_block("", *lines, classes=["formula"]))
    for text in list(doctree.findall(nodes.Text)):
        kept = (nodes.literal, nodes.literal_block, nodes.raw, nodes.subscript)
        if not isinstance(text.parent, kept) and _SUBSCRIPT.search(text):
            text.parent.replace(text, _with_subscripts(text.astext()))


def setup(app):
    """Tell Sphinx of the above."""
    app.connect("autodoc-skip-member", _skip_what_others_wrote)
    app.connect("env-check-consistency", _list_external_links)
    app.connect("doctree-read", _typeset_formulas)
