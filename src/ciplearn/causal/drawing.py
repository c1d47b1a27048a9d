"""x"""


def draw(graph, verdict, paths):
    return ""
