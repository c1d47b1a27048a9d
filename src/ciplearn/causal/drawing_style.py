"""Colours and words of the drawing."""

# Fills differ in lightness as well as in hue, so that the roles stay apart without colour vision.
STYLE = """
.cg{--page:#fff;--ink:#334155;--pale:#b6c0ce;--red:#dc2626;--text:#0f172a;--soft:#64748b;--other:#f1f5f9;
--protected:#fdba74;--outcome:#93c5fd;--given:#a7e8bd;--context:#e9e3fb;--predictor:#fff;--block:#f8fafc;
font-family:ui-sans-serif,system-ui,"Segoe UI",Helvetica,Arial,sans-serif}
@media (prefers-color-scheme:dark){.cg{--page:#0f172a;--ink:#cbd5e1;--pale:#475569;--red:#f87171;--text:#f8fafc;
--soft:#94a3b8;--other:#1e293b;--protected:#9a4a12;--outcome:#1d4f91;--given:#1b6b41;--context:#43386e;
--predictor:#0f172a;--block:#172033}}
.cg .page{fill:var(--page)}
.cg text{font-size:14px;fill:var(--text);text-anchor:middle}
.cg text.key{font-size:12px;fill:var(--soft);text-anchor:start}
.cg path{fill:none;stroke:var(--ink);stroke-width:1.5;stroke-linecap:round}
.cg path.input{stroke:var(--pale);stroke-width:1.2}
.cg path.common{stroke-dasharray:5 4}
.cg path.refuted{stroke:var(--red);stroke-width:2;stroke-dasharray:1.5 5}
.cg path.open{stroke:var(--red);stroke-width:2.4}
.cg marker path{stroke:none}
.cg marker .ink{fill:var(--ink)}.cg marker .pale{fill:var(--pale)}.cg marker .red{fill:var(--red)}
.cg .node rect{fill:var(--other);stroke:var(--ink);stroke-width:1.3}
.cg .protected rect{fill:var(--protected)}.cg .outcome rect{fill:var(--outcome)}.cg .given rect{fill:var(--given)}
.cg .context rect{fill:var(--context)}.cg .predictor rect{fill:var(--predictor);stroke-width:2.4}
.cg .block{fill:var(--block);stroke:var(--soft);stroke-width:1}
.cg .seen{fill:var(--ink);stroke:var(--page);stroke-width:1.5}
.cg .latent rect{fill:none;stroke:var(--soft);stroke-dasharray:4 3}
.cg .latent text{fill:var(--soft);font-style:italic}
""".replace("\n", "")

LEGEND = (
    ("protected", "protected"),
    ("outcome", "outcome"),
    ("given", "adjusted for"),
    ("context", "context"),
    ("predictor", "predictor"),
    ("latent", "latent"),
    ("seen", "seen by the predictor"),
    ("block", "same causes and effects"),
    ("tiers", "acts on all that follow, not only on the next"),
    ("input", "input of the predictor"),
    ("common", "unobserved common cause"),
    ("loose", "direction not known"),
    ("open", "open path"),
    ("refuted", "independent in the graph, not in the data"),
)
