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
  const drawAll = () => {
    for (const place of document.querySelectorAll(".drawing"))
      draw(place.id, read(place.id + "-data"));
  };
  dark.addEventListener("change", drawAll);
  drawAll();
})();
