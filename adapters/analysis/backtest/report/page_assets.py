"""Holds the style sheet and the script that the page contains."""

PAGE_STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --soft: #59636e; --line: #d5dae0;
  --paper: #ffffff; --tint: #f4f6f8; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e8ec; --soft: #9aa5b1; --line: #3a424b; --paper: #15191d; --tint: #1e2429; } }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 1600px; margin: 0 auto; padding: 1.5rem 1rem 4rem; }
h1 { margin-bottom: 0; } h2 { margin-top: 3rem; border-top: 1px solid var(--line);
  padding-top: 1rem; } h3 { margin-top: 2rem; }
p, li { max-width: 48rem; } figcaption, .soft { color: var(--soft); }
figure { margin: 1rem 0; } .drawing { width: 100%; } figcaption { max-width: 48rem; }
.wide { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; font-size: 13.5px; width: 100%; }
caption { text-align: left; font-weight: 600; padding: .3rem 0; }
th, td { padding: .2rem .7rem .2rem 0; text-align: left; border-bottom: 1px solid var(--line);
  vertical-align: top; }
thead th { color: var(--soft); font-weight: 500; vertical-align: bottom; }
tbody th { font-weight: 500; overflow-wrap: anywhere; min-width: 11rem; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
td.n { white-space: nowrap; } .pairs { max-width: 24rem; }
code, pre { font: 13px/1.5 ui-monospace, monospace; overflow-wrap: anywhere; }
pre { background: var(--tint); padding: .7rem 1rem; overflow-x: auto; white-space: pre-wrap; }
select { font: inherit; max-width: 100%; } summary { cursor: pointer; padding: .25rem 0; }
@media (max-width: 700px) {
  table, caption, tbody, tr, tbody th, td { display: block; }
  thead { display: none; }
  tr { border-bottom: 1px solid var(--line); padding: .5rem 0; }
  tbody th { border: 0; font-weight: 600; }
  td, td.n { border: 0; display: flex; justify-content: space-between; gap: 1rem; padding: .1rem 0;
    text-align: right; white-space: normal; overflow-wrap: anywhere; }
  td::before { content: attr(data-label); color: var(--soft); text-align: left;
    overflow-wrap: normal; }
  .pairs tr { display: flex; justify-content: space-between; padding: .1rem 0; }
  .pairs tbody th { font-weight: 400; } .pairs td::before { content: none; } }
"""

PAGE_SCRIPT = """
"use strict";
(() => {
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const read = id => JSON.parse(document.getElementById(id).textContent);
  const inks = () => {
    const style = getComputedStyle(document.documentElement);
    return name => style.getPropertyValue(name).trim();
  };
  const themed = layout => {
    const ink = inks();
    const made = { ...layout, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { color: ink("--ink"), family: "system-ui, sans-serif" },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: ink("--soft"), activecolor: ink("--ink") } };
    for (const name of Object.keys(made).filter(name => /^[xy]axis/.test(name)))
      made[name] = { ...made[name], gridcolor: ink("--line"), zerolinecolor: ink("--soft"),
        linecolor: ink("--line") };
    return made;
  };
  const narrow = window.matchMedia("(max-width: 700px)");
  // Panels side by side need room: on a narrow screen they stand below each other.
  const stacked = layout => {
    const panels = layout.annotations || [];
    if (!narrow.matches || panels.length < 2) return layout;
    const each = Math.max(260, layout.height / panels.length), made = { ...layout,
      height: each * panels.length + 120, annotations: [] };
    panels.forEach((panel, number) => {
      const name = number ? number + 1 : "", top = 1 - number / panels.length;
      made["xaxis" + name] = { ...made["xaxis" + name], domain: [0, 1] };
      made["yaxis" + name] = { ...made["yaxis" + name], showticklabels: true,
        domain: [top - 1 / panels.length + 110 / made.height, top - 10 / made.height] };
      made.annotations.push({ ...panel, x: 1, xanchor: "right", y: top - 10 / made.height });
    });
    return made;
  };
  const draw = (id, drawing) => {
    Plotly.react(id, drawing.data, themed(stacked(drawing.layout)),
      { responsive: true, displaylogo: false, modeBarButtons: [["toImage", "resetScale2d"]] });
  };
  const figures = [...document.querySelectorAll(".drawing")].map(place => place.id)
    .filter(id => document.getElementById(id + "-data"));
  const pick = document.getElementById("curves-pick");
  const chosen = () => {
    const all = read("curves-all");
    const one = all.sessions[Number(pick.value)];
    const data = one.curves.map(curve => ({ type: "scatter", mode: "lines", name: curve.name,
      x: curve.x, y: curve.y, line: { color: curve.color, dash: curve.dash, shape: "hv",
      width: 1.6 } }));
    draw("curves", { data, layout: { ...all.layout, shapes: [{ type: "line", xref: "paper",
      x0: 0, x1: 1, y0: one.limit, y1: one.limit, line: { dash: "dot", width: 1,
      color: inks()("--soft") } }] } });
  };
  const drawAll = () => {
    for (const id of figures) draw(id, read(id + "-data"));
    if (pick) chosen();
  };
  if (pick) pick.addEventListener("change", chosen);
  dark.addEventListener("change", drawAll);
  narrow.addEventListener("change", drawAll);
  drawAll();
})();
"""
