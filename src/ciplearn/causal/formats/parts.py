"""What a reader hands over: the pieces of a graph, before they are put together and checked."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class GraphParts:
    """The fields of a `CausalGraph` in the making."""

    nodes: list[str] = field(default_factory=list)
    directed: list[tuple[str, str]] = field(default_factory=list)
    bidirected: list[tuple[str, str]] = field(default_factory=list)
    undirected: list[tuple[str, str]] = field(default_factory=list)
    latent: list[str] = field(default_factory=list)
    exposures: list[str] = field(default_factory=list)
    outcomes: list[str] = field(default_factory=list)
    adjusted: list[str] = field(default_factory=list)
    positions: dict[str, tuple[float, float]] = field(default_factory=dict)

    def add_edge(self, a: str, arrow: str, b: str) -> None:
        """File the edge that ``a arrow b`` draws."""
        if arrow == "->":
            self.directed.append((a, b))
        elif arrow == "<-":
            self.directed.append((b, a))
        elif arrow == "<->":
            self.bidirected.append((a, b))
        else:
            self.undirected.append((a, b))

    def list_for(self, role: str) -> list[str]:
        """Return the list that a role such as ``"exposure"`` fills."""
        return {
            "latent": self.latent,
            "exposure": self.exposures,
            "outcome": self.outcomes,
            "adjusted": self.adjusted,
        }[role]

    def roles_of(self, name: str) -> list[str]:
        """Return the roles of a node, other than latent."""
        return [role for role in ("exposure", "outcome", "adjusted") if name in self.list_for(role)]

    def extend(self, other: GraphParts) -> None:
        """Add all pieces of another graph."""
        for name, pieces in vars(other).items():
            if name == "positions":
                self.positions.update(pieces)
            else:
                getattr(self, name).extend(pieces)
