// Draws the figures by Plotly, in the colors of the page, and draws them again when those change.
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
