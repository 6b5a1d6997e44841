"""Settings of the documentation's site; `make docs` builds it into out/site. Nothing in it comes from another host."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # for rendering.py

import matplotlib

import adom

project, author = "adom", "The adom developers"
version = release = adom.__version__
copyright = author  # noqa: A001  # the name that Sphinx reads

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "rendering",
]

# The pages are plain Markdown that a code-hosting page shows as well.
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
myst_fence_as_directive = []
html_math_renderer = "mathml"

# Docstrings: NumPy's sections; `name` is a link where there is such a name, and code where there is none.
default_role = "py:obj"
numpydoc_show_class_members = False
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autosummary_generate = False  # one page a room, and no files of its own
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
toc_object_entries_show_parents = "hide"

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "within_subsection_order": "FileNameSortKey",
    "ignore_repr_types": r"matplotlib\.",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "write_computation_times": False,
    "min_reported_time": 1e9,  # times of a shared machine mean little
    "remove_config_comments": True,
    "show_signature": False,
}

html_theme = "furo"
html_title = "adom"
html_static_path = ["_static", str(Path(matplotlib.get_data_path(), "fonts", "ttf", "STIXGeneral.ttf"))]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_show_search_summary = False  # it fetches pages, which browsers do not allow from files
pygments_style, pygments_dark_style = "tango", "github-dark"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
