(() => {
  const command = document.body.dataset.command;
  const shown = document.querySelector("figure[data-by]");
  for (const set of document.querySelectorAll("fieldset[hidden],output[hidden]")) set.hidden = false;
  for (const input of document.querySelectorAll("input[name=by]"))
    input.addEventListener("change", () => { shown.dataset.by = input.value; });

  // Says what is pointed at, until something is clicked; then what was clicked.
  const say = (stop, pin) => {
    const section = stop.closest("section"), output = section.querySelector("output");
    if (!output || (section.pinned && !pin)) return;
    section.pinned = pin;
    const title = stop.querySelector("title");
    output.textContent = title ? title.textContent : stop.getAttribute("aria-label") || "";
    if (stop.dataset.at) {
      const code = document.createElement("code");
      code.textContent = command + stop.dataset.at;
      output.append(document.createElement("br"), code);
      if (pin === true) getSelection().selectAllChildren(code);
    }
  };
  const stopOf = (event) => event.target.closest("[data-at],[tabindex]");

  // The nearest stop in the direction of an arrow.
  const next = (stops, from, dx, dy) => {
    const a = from.getBoundingClientRect();
    let best = null, least = Infinity;
    for (const stop of stops) {
      const b = stop.getBoundingClientRect();
      const x = (b.left + b.right - a.left - a.right) / 2, y = (b.top + b.bottom - a.top - a.bottom) / 2;
      const along = x * dx + y * dy, across = Math.abs(x * dy) + Math.abs(y * dx);
      if (along > 0.5 && along + 4 * across < least) { best = stop; least = along + 4 * across; }
    }
    return best;
  };
  const arrows = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

  for (const group of document.querySelectorAll(".stops")) {
    for (const type of ["pointerover", "focusin"])
      group.addEventListener(type, (event) => { const stop = stopOf(event); if (stop) say(stop, false); });
    group.addEventListener("click", (event) => { const stop = stopOf(event); if (stop) say(stop, true); });
    group.addEventListener("keydown", (event) => {
      const here = stopOf(event), stops = [...group.querySelectorAll("[tabindex]")];
      let to = null;
      if (event.key === "Enter") say(here, true);
      else if (event.key === "Home") to = stops[0];
      else if (event.key === "End") to = stops[stops.length - 1];
      else if (arrows[event.key]) to = next(stops, here, ...arrows[event.key]);
      else return;
      event.preventDefault();
      if (!to) return;
      here.tabIndex = -1;
      to.tabIndex = 0;
      to.focus();
    });
  }
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") for (const section of document.querySelectorAll("section")) section.pinned = false;
  });
})();
