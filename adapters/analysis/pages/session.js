// Marks in the history what a call was sent, and searches it. The page also works without this.
"use strict";
(() => {
  const known = JSON.parse(document.getElementById("marks").textContent);
  const blocks = [...document.querySelectorAll("details.block")];
  const status = document.getElementById("status");
  const search = document.getElementById("search");
  document.documentElement.classList.add("scripted");

  const within = (runs, at) => runs.some(([first, last]) => first <= at && at <= last);

  const fateAt = (position, boundary, sees) => {
    if (position > sees) return "not yet said";
    if (known.retracted.some(([at, runs]) => at <= sees && within(runs, position))) return "retracted";
    return Object.keys(boundary).find((fate) => within(boundary[fate], position)) || "visible";
  };

  const show = (block, fate) => {
    block.className = `block fate-${fate.replaceAll(" ", "-")}`;
    block.classList.toggle("not-sent", !["visible", "pinned", "trimmed", "never-sent"].includes(fate));
    block.querySelector(".fate").textContent = fate.replaceAll("-", " ");
  };

  const mark = (call) => {
    const [sees, index] = known.calls[call];
    const boundary = index === null ? {} : known.boundaries[index];
    let sent = 0;
    blocks.forEach((block) => {
      const never = block.dataset.fate === "never-sent";
      const fate = never ? "never-sent" : fateAt(Number(block.dataset.position), boundary, sees);
      show(block, fate);
      sent += !never && ["visible", "pinned", "trimmed"].includes(fate) ? 1 : 0;
    });
    status.textContent = `As call ${call} was sent it: ${sent} blocks.`;
  };

  const unmark = () => {
    blocks.forEach((block) => {
      show(block, block.dataset.fate);
      block.classList.remove("not-sent");
    });
    status.textContent = "";
  };

  const find = () => {
    const wanted = search.value.trim().toLowerCase();
    let found = 0;
    blocks.forEach((block) => {
      const holds = !wanted || block.textContent.toLowerCase().includes(wanted);
      block.classList.toggle("unfound", !holds);
      found += holds ? 1 : 0;
    });
    status.textContent = wanted ? `${found} of ${blocks.length} blocks hold it.` : "";
  };

  const open = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target instanceof HTMLDetailsElement) {
      target.open = true;
      target.scrollIntoView();
    }
  };

  document.addEventListener("click", (event) => {
    const marker = event.target.closest("[data-call]");
    if (marker) mark(marker.dataset.call);
  });
  document.getElementById("unmark").addEventListener("click", unmark);
  search.addEventListener("input", find);
  addEventListener("hashchange", open);
  open();
})();
