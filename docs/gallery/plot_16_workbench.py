"""
The workbench
=============

A page to draw the graph on, see the verdict at every change, train, and walk along the frontier: ``ciplearn
workbench`` in a terminal, or a widget in a notebook.
"""

# sphinx_gallery_thumbnail_path = "images/workbench.png"

from ciplearn import datasets

# %%
# .. code-block:: text
#
#    ciplearn workbench people.csv --graph graph.txt
#
# .. image:: /images/workbench.png
#    :alt: The workbench: the drawing at the left, and at the right the frontier with the stop that is walked to
#
# What is drawn there is an ordinary graph with roles, and this is its verdict:

graph = datasets.applicants().graph
graph.criterion(outcome="income", protected=["sex", "age"])
