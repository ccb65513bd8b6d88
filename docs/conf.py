"""Settings of the documentation site; `python -m docs` builds it."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # the extensions `generated` and `formulas` stand beside this file

import hinge

project = "Hinge"
author = "The Hinge developers"
copyright = "The Hinge developers"
version = release = hinge.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "formulas",
    "generated",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build"]
templates_path = ["_templates"]

# Markdown: headings are link targets, so that links written for a file viewer work on the site, too.
myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4
suppress_warnings = ["config.cache"]

# The reference: one page for each public name, from its docstring.
autosummary_generate = True
autosummary_generate_overwrite = True
autodoc_typehints = "none"  # docstrings say it in words
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "remove_config_comments": True,
    "within_subsection_order": "FileNameSortKey",
    "show_memory": False,
    "min_reported_time": 1000,
    "image_scrapers": ("matplotlib",),
    "backreferences_dir": "gallery/backreferences",
    "doc_module": ("hinge",),
}

html_theme = "pydata_sphinx_theme"
html_title = "Hinge"
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_css_files = ["hinge.css"]
html_show_sourcelink = False
html_theme_options = {
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "show_nav_level": 1,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "navbar_end": ["theme-switcher"],
    "pygments_light_style": "tango",
    "pygments_dark_style": "monokai",
}
html_sidebars = {"index": []}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
