"""Styles for matplotlib: "column", "page" and "slide", sized for a paper's column, its page, and a slide.

Every ``plot()`` of adom takes a style by its name. The same files give your own figures the same look::

    plt.style.use("adom.styles.column")

They set sizes, the palette and how files are written, but not the font family.

Examples
--------
>>> import matplotlib.style
>>> with matplotlib.style.context("adom.styles.column"):
...     print(matplotlib.rcParams["figure.figsize"], matplotlib.rcParams["font.size"])
[3.5, 2.2] 8.0
"""
