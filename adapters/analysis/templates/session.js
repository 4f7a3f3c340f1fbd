// Searches the history, and opens what a link names. The page also works without this.
"use strict";
(() => {
  const blocks = [...document.querySelectorAll("details.block")];
  const status = document.getElementById("status");
  const search = document.getElementById("search");
  document.documentElement.classList.add("scripted");

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

  search.addEventListener("input", find);
  addEventListener("hashchange", open);
  open();
})();
