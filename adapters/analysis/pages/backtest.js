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
  const draw = (id, drawing) => {
    Plotly.react(id, drawing.data, themed(drawing.layout),
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
  drawAll();
})();
